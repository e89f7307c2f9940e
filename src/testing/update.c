/* Fills in what stands as "?" in a test file (update.h). The rest of the text stays as it is,
 * comments included. Values are written as YAML on one line, in a JSON file as JSON. */

#include "testing/update.h"

#include <stdlib.h>

#include "base/when.h"

enum { QUESTION_SIZE = 3 /* "?" with its quotes */ };

void update_fini(struct update *u)
{
    free(u->list);
    arena_fini(&u->arena);
}

static void replace_at(struct update *u, const struct json *j, struct slice text)
{
    if (u->count == u->cap) {
        u->cap = u->cap ? u->cap * 2 : 16;
        u->list = reallocarray(u->list, u->cap, sizeof *u->list);
        ASSERT(u->list);
    }
    u->list[u->count++] = (struct replacement){j->at, arena_copy(&u->arena, text)};
}

static void replace(struct update *u, const struct expected *e, struct slice text)
{
    replace_at(u, e->json, text);
}

/* Whether a text needs no quotes in YAML, between brackets. */
static bool is_plain(struct slice s)
{
    static const char words[][8] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (slice_is(s, words[i]))
            return false;
    if (s.len == 0 || s.ptr[0] < 'a' || s.ptr[0] > 'z')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                  || c == '_' || c == '-' || c == '.' || c == '/' || (c == ' ' && i + 1 < s.len);
        if (!ok)
            return false;
    }
    return true;
}

static void write_text(struct buf *b, struct slice s, bool is_yaml)
{
    CLEANUP(buf_fini) struct buf quoted = {0};

    json_string(&quoted, s);
    buf_slice(b, is_yaml && is_plain(s) ? s : buf_view(&quoted));
}

/* Where a test file may have expressions, "${" is written "$${". */
static void write_literal(struct buf *b, struct slice s, bool is_yaml)
{
    CLEANUP(buf_fini) struct buf text = {0};

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '$' && i + 1 < s.len && s.ptr[i + 1] == '{')
            buf_byte(&text, '$');
        buf_byte(&text, s.ptr[i]);
    }
    write_text(b, buf_view(&text), is_yaml);
}

/* Keys are no place for expressions, and nor are `order` and `steps`, which have no "${". */
static void write_value(struct buf *b, const struct json *j, bool is_yaml)
{
    bool is_object = j->type == JSON_OBJECT;

    if (j->type == JSON_STRING) {
        write_literal(b, j->text, is_yaml);
        return;
    }
    if (!is_object && j->type != JSON_ARRAY) {
        buf_slice(b, j->raw);
        return;
    }
    buf_byte(b, is_object ? '{' : '[');
    for (const struct json *m = j->child; m; m = m->next) {
        if (is_object)
            write_text(b, m->key, is_yaml);
        buf_str(b, is_object ? ": " : "");
        write_value(b, m, is_yaml);
        buf_str(b, m->next ? ", " : "");
    }
    buf_byte(b, is_object ? '}' : ']');
}

/* A depth of at most JSON_DEPTH_MAX, as every text that is parsed has. */
static void replace_json(struct update *u, const struct trial *t, const struct expected *e,
                         struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;

    enum err err = json_parse(&a, json.ptr ? json : SLICE("null"), &j, NULL);
    ASSERT(err == ERR_OK);
    write_value(&b, j, t->suite->is_yaml);
    replace(u, e, buf_view(&b));
}

static void replace_text(struct update *u, const struct trial *t, const struct expected *e,
                         struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (text.ptr)
        write_text(&b, text, t->suite->is_yaml);
    else
        buf_str(&b, "null");
    replace(u, e, buf_view(&b));
}

static void replace_order(struct update *u, const struct trial *t)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '[');
    for (size_t i = 0; i < t->effect_count; i++)
        json_string(&b, t->effects[i].name);
    json_close(&b, ']');
    replace_json(u, t, &t->test->order, buf_view(&b));
}

/* In full seconds, so that a reader sees no false precision. */
static void replace_within(struct update *u, const struct trial *t)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t took = max_i64(t->ended_at - t->test->start_at, 1);

    duration_write(&b, (took + MS_PER_S - 1) / MS_PER_S * MS_PER_S);
    if (t->suite->is_yaml)
        replace(u, &t->test->within, buf_view(&b)); /* needs no quotes */
    else
        replace_text(u, t, &t->test->within, buf_view(&b));
}

/* Members that stand as "?", of a value that does not. */
static void replace_members(struct update *u, const struct trial *t, const struct expected *e,
                            struct slice found)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (!e->is_given || e->is_asked || e->json->type != JSON_OBJECT || !found.ptr)
        return;
    enum err err = json_parse(&a, found, &j, NULL);
    ASSERT(err == ERR_OK);
    for (const struct json *m = e->json->child; m; m = m->next)
        for (const struct json *f = j->child; f && json_is_asked(m); f = f->next) {
            CLEANUP(buf_fini) struct buf b = {0};
            if (!slice_eq(f->key, m->key))
                continue;
            write_value(&b, f, t->suite->is_yaml);
            replace_at(u, m, buf_view(&b));
        }
}

static bool asks(const struct expected *e)
{
    return e->is_given && e->is_asked;
}

static bool asks_for_members(const struct expected *e)
{
    bool has_members = e->is_given && e->json->type == JSON_OBJECT;

    for (const struct json *m = has_members ? e->json->child : NULL; m; m = m->next)
        if (json_is_asked(m))
            return true;
    return asks(e);
}

bool update_is_asked(const struct test_case *c)
{
    return asks(&c->state) || asks(&c->error) || asks_for_members(&c->world_after)
           || asks(&c->order) || asks(&c->within) || asks(&c->output)
           || asks_for_members(&c->steps);
}

void update_take(struct update *u, const struct trial *t)
{
    const struct test_case *c = t->test;
    CLEANUP(buf_fini) struct buf world = {0};

    world_write(&t->world, &world);
    if (asks(&c->state))
        replace_text(u, t, &c->state, slice_of(task_state_text(t->state)));
    if (asks(&c->error))
        replace_text(u, t, &c->error, t->error_code);
    if (asks(&c->world_after))
        replace_json(u, t, &c->world_after, buf_view(&world));
    if (asks(&c->order))
        replace_order(u, t);
    if (asks(&c->within))
        replace_within(u, t);
    if (asks(&c->output))
        replace_json(u, t, &c->output, t->output);
    if (asks(&c->steps))
        replace_json(u, t, &c->steps, t->steps);
    replace_members(u, t, &c->world_after, buf_view(&world));
    replace_members(u, t, &c->steps, t->steps);
}

static int by_place(const void *a, const void *b)
{
    const struct replacement *x = a;
    const struct replacement *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Text that means the same, "\x3f" or a block, is left to who wrote it. */
static bool is_question(struct slice text, size_t at)
{
    return at + QUESTION_SIZE <= text.len
           && (memcmp(text.ptr + at, "\"?\"", QUESTION_SIZE) == 0
               || memcmp(text.ptr + at, "'?'", QUESTION_SIZE) == 0);
}

size_t update_write(struct update *u, const struct suite *s, struct buf *b)
{
    size_t filled = 0;
    size_t from = 0;

    if (u->count > 0)
        qsort(u->list, u->count, sizeof *u->list, by_place);
    for (size_t i = 0; i < u->count; i++) {
        const struct replacement *r = &u->list[i];
        if (!is_question(s->text, r->at))
            continue;
        buf_add(b, s->text.ptr + from, r->at - from);
        buf_slice(b, r->text);
        from = r->at + QUESTION_SIZE;
        filled++;
    }
    buf_add(b, s->text.ptr + from, s->text.len - from);
    return filled;
}
