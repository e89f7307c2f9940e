/* Evaluates an expression or a value with ${ } for `intact eval` (eval_text.h), and finds the place
 * of a mistake in the text as it was typed. */

#include "cli/verbs/eval_text.h"

#include <stdlib.h>

#include "config/config_reader.h"
#include "definition/expression/value.h"
#include "definition/template/template.h"
#include "json/text.h"

static void fail(struct eval_result *ret, struct arena *a, struct slice message)
{
    *ret = (struct eval_result){.message = arena_copy(a, message)};
}

static void fail_at(struct eval_result *ret, struct arena *a, size_t offset, struct slice message)
{
    fail(ret, a, message);
    ret->has_place = true;
    ret->offset = offset;
}

/* Values that are passed on have the blanks of where they come from. */
static void succeed(struct eval_result *ret, struct arena *a, struct slice value)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;
    bool is_short = json_parse(a, value, &j, NULL) == ERR_OK && value_write(&b, j);

    *ret = (struct eval_result){.is_ok = true,
                                .value = is_short ? arena_copy(a, buf_view(&b)) : value};
}

static bool begins_with(struct slice s, const char *words)
{
    size_t len = strlen(words);

    return s.len >= len && memcmp(s.ptr, words, len) == 0;
}

/* Takes "column 15: " off a message that begins with it. *ret: 14. */
static bool take_column(struct slice *message, size_t *ret)
{
    static const char head[] = "column ";
    size_t at = sizeof head - 1;
    size_t column = 0;

    if (!begins_with(*message, head))
        return false;
    for (; at < message->len && message->ptr[at] >= '0' && message->ptr[at] <= '9'; at++)
        column = column * 10 + (size_t)(message->ptr[at] - '0');
    if (column == 0 || at + 2 > message->len || memcmp(message->ptr + at, ": ", 2) != 0)
        return false;
    *ret = column - 1;
    *message = (struct slice){message->ptr + at + 2, message->len - at - 2};
    return true;
}

/* ---- an expression ---- */

static void eval_expression(struct slice text, const struct json *root, struct arena *a,
                            struct eval_result *ret)
{
    struct expression *x = NULL;
    const struct json *value = NULL;
    struct error e = {0};
    size_t column = 0;

    if (expression_compile(text, a, &x, &column, &e) != ERR_OK) {
        fail_at(ret, a, column - 1, slice_of(e.text));
        return;
    }
    if (expression_eval(x, root, a, &value, &e) == ERR_OK) {
        succeed(ret, a, value->raw);
        return;
    }
    struct slice message = slice_of(e.text);
    size_t offset = 0;
    if (take_column(&message, &offset))
        fail_at(ret, a, offset, message);
    else
        fail(ret, a, message);
}

/* ---- a value of a definition ---- */

/* A template while it is read: its first mistake. */
struct template_reading {
    struct reader *reader; /* NULL: the text itself is the string */
    struct arena *arena;
    struct eval_result *result;
    bool has_failed;
};

static void on_fault(void *arg, const struct json *string, size_t at, const char *what)
{
    struct template_reading *t = arg;

    if (t->has_failed)
        return;
    t->has_failed = true;
    fail_at(t->result, t->arena, t->reader ? reader_string_offset(t->reader, string, at) : at,
            slice_of(what));
}

static void on_reference(void *arg, const struct json *string, size_t at,
                         const struct reference *ref)
{
    (void)arg;
    (void)string;
    (void)at;
    (void)ref;
}

static void on_odd(void *arg, const struct json *string, size_t at, const struct odd_name *odd)
{
    (void)arg;
    (void)string;
    (void)at;
    (void)odd;
}

/* The message of a failure is "${ EXPRESSION }: column N: WHY". Finds the place in the text, unless
 * it is written with escapes there. */
static void fail_in_template(struct slice text, const struct template_place *place,
                             struct slice message, struct arena *a, struct eval_result *ret)
{
    static const char mid[] = "}: ";
    const char *end = memmem(message.ptr, message.len, mid, sizeof mid - 1);
    CLEANUP(buf_fini) struct buf told = {0};
    size_t column = 0;

    if (place->path[0])
        buf_fmt(&told, "%s: ", place->path);
    while (end && begins_with(message, "${")) {
        struct slice shown = {message.ptr, (size_t)(end - message.ptr) + 1};
        size_t behind = shown.len - 1 + sizeof mid - 1;
        struct slice why = {message.ptr + behind, message.len - behind};
        const char *at = memmem(text.ptr, text.len, shown.ptr, shown.len);
        if (at && take_column(&why, &column)) {
            buf_slice(&told, why);
            fail_at(ret, a, (size_t)(at - text.ptr) + 2 + column, buf_view(&told));
            return;
        }
        size_t from = (size_t)(end - message.ptr) + 1; /* a brace of the expression */
        end = memmem(message.ptr + from, message.len - from, mid, sizeof mid - 1);
    }
    buf_slice(&told, message);
    fail(ret, a, buf_view(&told));
}

static void eval_value(struct slice text, const struct json *value, struct reader *reader,
                       const struct json *root, struct arena *a, struct eval_result *ret)
{
    struct template_reading t = {reader, a, ret, false};
    struct wanted of_input = {0};
    struct template_watch w = {&t, on_fault, on_reference, on_odd, {.of_input = &of_input}};
    struct budget budget = {TEMPLATE_BYTES_MAX, TEMPLATE_STEPS_MAX, false};
    struct template_place place;
    struct slice json = SLICE_NONE;
    struct error e = {0};

    struct template *compiled = template_read(value, a, &w);
    if (t.has_failed)
        return;
    if (template_run(compiled, root, a, &budget, &json, &place, &e) == ERR_OK)
        succeed(ret, a, json);
    else
        fail_in_template(text, &place, slice_of(e.text), a, ret);
}

static void eval_string(struct slice text, const struct json *root, struct arena *a,
                        struct eval_result *ret)
{
    CLEANUP(buf_fini) struct buf raw = {0};
    struct json string = {.type = JSON_STRING, .text = text};

    json_string(&raw, text);
    string.raw = arena_copy(a, buf_view(&raw));
    eval_value(text, &string, NULL, root, a, ret);
}

static size_t offset_of(struct slice text, const struct mistake *m)
{
    size_t at = 0;

    for (uint32_t line = 1; line < m->line && at < text.len; at++)
        line += text.ptr[at] == '\n';
    at += m->column - 1;
    return at < text.len ? at : text.len;
}

static void eval_yaml(struct slice text, const struct json *root, struct arena *a,
                      struct eval_result *ret)
{
    struct mistakes *m = calloc(1, sizeof *m); /* too large for the stack */
    struct reader r = {.arena = a, .mistakes = m};
    CLEANUP(buf_fini) struct buf told = {0};
    struct json *value = NULL;

    ASSERT(m);
    enum err err = read_source(&r, text, SOURCE_YAML, &value);
    if (err == ERR_OK && m->count == 0) {
        eval_value(text, value, &r, root, a, ret);
    } else {
        ASSERT(m->count > 0);
        buf_fmt(&told, "found %s, expected %s", m->list[0].found, m->list[0].expected);
        fail_at(ret, a, offset_of(text, &m->list[0]), buf_view(&told));
    }
    free(m);
}

/* ---- either ---- */

static bool is_yaml(struct slice text)
{
    size_t at = 0;

    while (at < text.len && text.ptr[at] == ' ')
        at++;
    return memchr(text.ptr, '\n', text.len)
           || (at < text.len && strchr("{[\"'", text.ptr[at]) != NULL);
}

static struct slice without_blank_end(struct slice text)
{
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[text.len - 1], 4))
        text.len--;
    return text;
}

void eval_text(struct slice text, const struct json *root, struct arena *a, struct eval_result *ret)
{
    struct slice own = arena_copy(a, without_blank_end(text)); /* ends with a NUL */
    size_t utf8_end = text_utf8_end(own);
    const char *nul = memchr(own.ptr, 0, own.len);

    if (own.len == 0)
        fail(ret, a, SLICE("there is no expression"));
    else if (utf8_end < own.len)
        fail_at(ret, a, utf8_end, SLICE("found bytes that are not UTF-8"));
    else if (nul)
        fail_at(ret, a, (size_t)(nul - own.ptr), SLICE("found a NUL character"));
    else if (!memmem(own.ptr, own.len, "${", 2))
        eval_expression(own, root, a, ret);
    else if (is_yaml(own))
        eval_yaml(own, root, a, ret);
    else
        eval_string(own, root, a, ret);
}
