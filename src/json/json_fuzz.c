/*
 * Parses any text as JSON. The first byte chooses the nesting limit. What is accepted must survive
 * writing and parsing; a refusal has a position and a valid message.
 */

#include "base/fuzz.h"
#include "json/json.h"
#include "json/text.h"

/* Writes a tree from its decoded values. */
static void rewrite(struct buf *b, const struct json *j)
{
    bool is_object = j->type == JSON_OBJECT;

    switch (j->type) {
    case JSON_NULL:
        json_null(b);
        return;
    case JSON_FALSE:
    case JSON_TRUE:
        json_bool(b, j->type == JSON_TRUE);
        return;
    case JSON_NUMBER:
        json_raw(b, j->text);
        return;
    case JSON_STRING:
        json_string(b, j->text);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        json_open(b, is_object ? '{' : '[');
        for (const struct json *m = j->child; m; m = m->next) {
            if (is_object)
                json_key_slice(b, m->key);
            rewrite(b, m);
        }
        json_close(b, is_object ? '}' : ']');
        return;
    }
    UNREACHABLE();
}

static void check_text(struct slice s)
{
    ASSERT(text_utf8_end(s) == s.len);
    ASSERT(s.len == 0 || !memchr(s.ptr, 0, s.len));
}

/* Every node is where it says, and contains nothing that must be refused. */
static void check_node(const struct json *j, struct slice text, uint32_t depth_left)
{
    bool is_container = j->type == JSON_ARRAY || j->type == JSON_OBJECT;
    uint32_t count = 0;

    ASSERT(j->raw.len > 0);
    ASSERT(j->raw.ptr >= text.ptr);
    ASSERT(j->raw.ptr + j->raw.len <= text.ptr + text.len);
    ASSERT(!is_container || depth_left > 0);
    if (j->type == JSON_STRING) {
        check_text(j->text);
        ASSERT(j->text.ptr[j->text.len] == 0);
    }
    for (const struct json *m = j->child; m; m = m->next) {
        ASSERT(is_container);
        check_node(m, j->raw, depth_left - 1);
        if (j->type == JSON_OBJECT) {
            check_text(m->key);
            ASSERT(text.ptr[0] != 0);
        }
        count++;
    }
    ASSERT(count == j->count);
}

static void check_fault(const struct json_fault *f, struct slice text)
{
    uint32_t line = 0;
    uint32_t column = 0;

    ASSERT(f->offset <= text.len);
    ASSERT(f->what[0]);
    check_text(slice_of(f->what));
    json_position(text, f->offset, &line, &column);
    ASSERT(f->line == line);
    ASSERT(f->column == column);
}

static void gather(void *arg, struct slice piece)
{
    buf_slice(arg, piece);
}

static struct slice canonical(struct arena *a, const struct json *j)
{
    CLEANUP(buf_fini) struct buf piece = {0};
    CLEANUP(buf_fini) struct buf whole = {0};

    json_canonical(j, &piece, gather, &whole);
    return arena_copy(a, buf_view(&whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf once = {0};
    CLEANUP(buf_fini) struct buf twice = {0};
    struct fuzz f = {bytes, len};
    uint32_t depth_max = 1 + fuzz_byte(&f) % JSON_DEPTH_MAX;
    struct slice text = fuzz_rest(&f);
    struct json_fault fault = {0};
    struct json *j = NULL;
    struct json *again = NULL;
    int64_t v = 0;

    if (json_parse_within(&a, text, depth_max, &j, &fault) != ERR_OK) {
        check_fault(&fault, text);
        return 0;
    }
    check_node(j, text, depth_max);
    ASSERT(!json_int(j, &v) || j->type == JSON_NUMBER);
    rewrite(&once, j);
    enum err err = json_parse_within(&a, buf_view(&once), depth_max, &again, NULL);
    ASSERT(err == ERR_OK);
    ASSERT(json_hash(again) == json_hash(j));
    ASSERT(slice_eq(canonical(&a, again), canonical(&a, j)));
    rewrite(&twice, again);
    ASSERT(slice_eq(buf_view(&once), buf_view(&twice)));
    return 0;
}
