/* The world outside of a test: members, effects by idempotency key, and their undo (world.h).
 * agent_player.c lets effects take place. */

#include "testing/world.h"

#include "definition/expression/expression.h"
#include "definition/expression/value.h"

static void minus_compile(struct world_state *w)
{
    struct error e = {0};
    size_t column = 0;

    enum err err = expression_compile(SLICE(".a - .b"), w->arena, &w->minus, &column, &e);
    ASSERT(err == ERR_OK);
}

static struct world_member *find(const struct world_state *w, struct slice name)
{
    for (size_t i = 0; i < w->count; i++)
        if (slice_eq(w->list[i].name, name))
            return &w->list[i];
    return NULL;
}

static void set(struct world_state *w, struct slice name, struct slice json)
{
    struct world_member *m = find(w, name);

    ASSERT(m); /* suite_bind has checked that */
    m->json = json;
}

static const struct json *parse(struct arena *a, struct slice json)
{
    struct json *j = NULL;

    enum err err = json_parse(a, json, &j, NULL);
    ASSERT(err == ERR_OK); /* it was read before, or written by us */
    return j;
}

void world_open(struct world_state *w, struct slice json, struct slice over, struct arena *a)
{
    const struct json *first = parse(a, json);
    const struct json *second = over.ptr ? parse(a, over) : NULL;
    size_t most = first->count + (second ? second->count : 0) + 1;

    *w = (struct world_state){.arena = a, .list = arena_alloc(a, most * sizeof *w->list)};
    minus_compile(w);
    for (const struct json *m = first->child; m; m = m->next)
        w->list[w->count++] = (struct world_member){m->key, m->raw, m->raw};
    for (const struct json *m = second ? second->child : NULL; m; m = m->next) {
        struct world_member *known = find(w, m->key);
        if (!known)
            known = &w->list[w->count++];
        *known = (struct world_member){m->key, m->raw, m->raw};
    }
}

void world_close(struct world_state *w)
{
    map_fini(&w->effects);
}

void world_write(const struct world_state *w, struct buf *b)
{
    json_open(b, '{');
    for (size_t i = 0; i < w->count; i++) {
        json_key_slice(b, w->list[i].name);
        json_raw(b, w->list[i].json);
    }
    json_close(b, '}');
}

const struct world_member *world_member(const struct world_state *w, struct slice name)
{
    return find(w, name);
}

struct effect_record *world_effect(struct world_state *w, struct slice key)
{
    struct effect_record *r = map_get(&w->effects, key);

    if (r)
        return r;
    r = arena_alloc(w->arena, sizeof *r);
    r->key = arena_copy(w->arena, key);
    map_put(&w->effects, r->key, r);
    return r;
}

/* ---- values ---- */

static enum err evaluate(const struct world_change *c, const struct json *root, struct arena *a,
                         struct slice *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct json *value = NULL;

    if (!c->value) {
        *ret = c->constant;
        return ERR_OK;
    }
    enum err err = expression_eval(c->value, root, a, &value, e);
    if (err != ERR_OK)
        return err;
    if (!value_write(&b, value))
        return error_set(e, ERR_INVALID, "its value is nested too deep");
    *ret = arena_copy(a, buf_view(&b));
    return ERR_OK;
}

static bool is_number(struct slice json)
{
    return json.len > 0 && (json.ptr[0] == '-' || (json.ptr[0] >= '0' && json.ptr[0] <= '9'));
}

static enum err minus(struct world_state *w, struct slice a, struct slice b, struct slice *ret,
                      struct error *e)
{
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf out = {0};
    const struct json *result = NULL;

    json_open(&text, '{');
    json_member_raw(&text, "a", a);
    json_member_raw(&text, "b", b);
    json_close(&text, '}');
    const struct json *root = parse(w->arena, arena_copy(w->arena, buf_view(&text)));
    enum err err = expression_eval(w->minus, root, w->arena, &result, e);
    if (err != ERR_OK)
        return err;
    bool ok = value_write(&out, result);
    ASSERT(ok); /* a number */
    *ret = arena_copy(w->arena, buf_view(&out));
    return ERR_OK;
}

/* from - (after - before) */
static enum err subtract(struct world_state *w, struct slice from, const struct changed *c,
                         struct slice *ret, struct error *e)
{
    struct slice added;
    enum err err = minus(w, c->after, c->before, &added, e);

    return err == ERR_OK ? minus(w, from, added, ret, e) : err;
}

/* ---- effects ---- */

enum err world_take(struct world_state *w, struct effect_record *r, const struct effect_spec *spec,
                    const struct json *root, bool *ret, uint32_t *ret_at, struct error *e)
{
    *ret = false;
    if (!spec || spec->count == 0 || (r->took && !r->repeats) || (r->undone && !r->ignores_undo))
        return ERR_OK;
    r->list = arena_alloc(w->arena, spec->count * sizeof *r->list);
    r->count = spec->count;
    for (size_t i = 0; i < spec->count; i++) {
        const struct world_member *m = find(w, spec->list[i].name);
        ASSERT(m); /* suite_bind has checked that */
        *ret_at = spec->list[i].at;
        r->list[i] = (struct changed){.name = m->name, .before = m->json};
        enum err err = evaluate(&spec->list[i], root, w->arena, &r->list[i].after, e);
        if (err != ERR_OK)
            return err;
    }
    for (size_t i = 0; i < r->count; i++)
        set(w, r->list[i].name, r->list[i].after);
    *ret = r->took = true;
    return ERR_OK;
}

static const struct world_change *reversed(const struct effect_record *r, struct slice name)
{
    for (size_t i = 0; r->reverse && i < r->reverse->count; i++)
        if (slice_eq(r->reverse->list[i].name, name))
            return &r->reverse->list[i];
    return NULL;
}

static enum err undo_member(struct world_state *w, const struct changed *c, struct slice *ret,
                            struct error *e)
{
    const struct world_member *m = find(w, c->name);

    if (!is_number(c->before) || !is_number(c->after) || !is_number(m->json))
        return error_set(e, ERR_INVALID,
                         "the effect on world.%.*s is not undone: it is no number, so `undone` has "
                         "to say how",
                         SLICE_ARG(c->name));
    return subtract(w, m->json, c, ret, e);
}

/* All values are found before the first one changes. */
enum err world_undo(struct world_state *w, struct effect_record *r, const struct json *root,
                    bool *ret, uint32_t *ret_at, struct error *e)
{
    size_t more = r->reverse ? r->reverse->count : 0;
    size_t count = 0;

    *ret = false;
    if (!r->took || (r->undone && !r->repeats_undo)) {
        r->undone = true;
        return ERR_OK;
    }
    struct changed *list = arena_alloc(w->arena, (r->count + more + 1) * sizeof *list);
    for (size_t i = 0; i < more; i++) {
        list[count].name = r->reverse->list[i].name;
        *ret_at = r->reverse->list[i].at;
        enum err err = evaluate(&r->reverse->list[i], root, w->arena, &list[count++].after, e);
        if (err != ERR_OK)
            return err;
    }
    for (size_t i = 0; i < r->count; i++) {
        if (reversed(r, r->list[i].name))
            continue;
        list[count].name = r->list[i].name;
        enum err err = undo_member(w, &r->list[i], &list[count++].after, e);
        if (err != ERR_OK)
            return err;
    }
    for (size_t i = 0; i < count; i++)
        set(w, list[i].name, list[i].after);
    *ret = r->undone = true;
    return ERR_OK;
}

bool world_undo_by_hand(struct world_state *w, struct slice step)
{
    bool any = false;
    size_t at = 0;

    for (struct effect_record *r = NULL; (r = map_next(&w->effects, &at));) {
        if (!slice_eq(r->step, step) || r->undone)
            continue;
        r->undone = true; /* nothing of it comes later */
        for (size_t i = 0; i < r->count && r->took; i++) {
            struct slice json = r->list[i].before;
            struct error e = {0};
            if (undo_member(w, &r->list[i], &json, &e) != ERR_OK)
                json = r->list[i].before;
            set(w, r->list[i].name, json);
        }
        any |= r->took;
    }
    return any;
}

/* ---- comparison ---- */

struct slice world_without_staying(struct world_state *w, const struct world_member *m)
{
    struct slice value = m->json;
    struct error e = {0};
    size_t at = 0;

    for (const struct effect_record *r = NULL; (r = map_next(&w->effects, &at));) {
        for (size_t i = 0; i < r->count && r->took && !r->undone && r->stays; i++) {
            const struct changed *c = &r->list[i];
            if (!slice_eq(c->name, m->name))
                continue;
            if (!is_number(c->before) || !is_number(c->after) || !is_number(value)
                || subtract(w, value, c, &value, &e) != ERR_OK)
                return SLICE_NONE;
        }
    }
    return value;
}

static void collect(void *arg, struct slice piece)
{
    buf_slice(arg, piece);
}

bool json_texts_equal(struct slice a, struct slice b)
{
    CLEANUP(arena_fini) struct arena trees = {0};
    CLEANUP(buf_fini) struct buf work = {0};
    CLEANUP(buf_fini) struct buf x = {0};
    CLEANUP(buf_fini) struct buf y = {0};

    if (slice_eq(a, b))
        return true;
    json_canonical(parse(&trees, a), &work, collect, &x);
    json_canonical(parse(&trees, b), &work, collect, &y);
    return slice_eq(buf_view(&x), buf_view(&y));
}
