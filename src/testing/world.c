/* The world outside of a test: members, effects by idempotency key, and their undo (world.h).
 * agent_player.c lets effects take place. */

#include "testing/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
        w->list[w->count++] = (struct world_member){m->key, m->raw, m->raw, NULL};
    for (const struct json *m = second ? second->child : NULL; m; m = m->next) {
        struct world_member *known = find(w, m->key);
        if (!known)
            known = &w->list[w->count++];
        *known = (struct world_member){m->key, m->raw, m->raw, NULL};
    }
}

void world_close(struct world_state *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->list[i].own);
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
    r->older = w->newest;
    w->newest = r;
    map_put(&w->effects, r->key, r);
    return r;
}

/* ---- values ---- */

#define ROUNDING 1e-9 /* of sums of fractions, relative */

/* What evaluating takes is freed at once: a long test has many effects on large values. */
static enum err evaluate(const struct world_change *c, const struct json *root, struct buf *ret,
                         struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *value = NULL;

    if (!c->value) {
        buf_slice(ret, c->constant);
        return ERR_OK;
    }
    enum err err = expression_eval(c->value, root, &a, &value, e);
    if (err != ERR_OK)
        return err;
    if (!value_write(ret, value))
        return error_set(e, ERR_INVALID, "its value is nested too deep");
    return ERR_OK;
}

static bool is_number(struct slice json)
{
    return json.len > 0 && (json.ptr[0] == '-' || (json.ptr[0] >= '0' && json.ptr[0] <= '9'));
}

static enum err minus(struct world_state *w, struct slice a, struct slice b, struct buf *ret,
                      struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    const struct json *result = NULL;

    json_open(&text, '{');
    json_member_raw(&text, "a", a);
    json_member_raw(&text, "b", b);
    json_close(&text, '}');
    const struct json *root = parse(&own, buf_view(&text));
    enum err err = expression_eval(w->minus, root, &own, &result, e);
    if (err != ERR_OK)
        return err;
    bool ok = value_write(ret, result);
    ASSERT(ok); /* a number */
    return ERR_OK;
}

/* from - (after - before), without the rounding of a difference where nothing else changed it */
static enum err subtract(struct world_state *w, struct slice from, const struct changed *c,
                         struct buf *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf added = {0};

    if (slice_eq(from, c->after)) {
        buf_slice(ret, c->before);
        return ERR_OK;
    }
    enum err err = minus(w, c->after, c->before, &added, e);

    return err == ERR_OK ? minus(w, from, buf_view(&added), ret, e) : err;
}

/* ---- changes ---- */

/* New values of members: all of them are found before the first one changes. */
struct changes {
    struct change {
        struct world_member *member;
        struct buf json;
    } * list;
    size_t count;
};

static void changes_fini(struct changes *c)
{
    for (size_t i = 0; i < c->count; i++)
        buf_fini(&c->list[i].json);
    free(c->list);
}

static struct changes changes_of(size_t most)
{
    struct changes c = {calloc(most + 1, sizeof *c.list), 0};

    ASSERT(c.list);
    return c;
}

static struct change *changes_add(struct changes *c, const struct world_state *w, struct slice name)
{
    struct change *one = &c->list[c->count++];

    one->member = find(w, name);
    ASSERT(one->member); /* suite_bind has checked that */
    return one;
}

static void changes_apply(struct changes *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct world_member *m = c->list[i].member;
        free(m->own);
        m->own = c->list[i].json.ptr;
        m->json = buf_view(&c->list[i].json);
        c->list[i].json = (struct buf){0};
    }
}

/* ---- effects ---- */

/* What its undo has to know of a value. NONE: it is too large to be kept for each effect. */
static struct slice kept(struct world_state *w, struct slice json)
{
    return json.len <= KEPT_MAX ? arena_copy(w->arena, json) : SLICE_NONE;
}

enum err world_take(struct world_state *w, struct effect_record *r, const struct effect_spec *spec,
                    const struct json *root, bool *ret, uint32_t *ret_at, struct error *e)
{
    *ret = false;
    if (!spec || spec->count == 0 || (r->took && !r->repeats) || (r->undone && !r->ignores_undo))
        return ERR_OK;
    CLEANUP(changes_fini) struct changes changes = changes_of(spec->count);
    struct changed *list = arena_alloc(w->arena, spec->count * sizeof *list);
    for (size_t i = 0; i < spec->count; i++) {
        struct change *c = changes_add(&changes, w, spec->list[i].name);
        *ret_at = spec->list[i].at;
        enum err err = evaluate(&spec->list[i], root, &c->json, e);
        if (err != ERR_OK)
            return err;
        list[i] = (struct changed){.name = c->member->name,
                                   .before = kept(w, c->member->json),
                                   .after = kept(w, buf_view(&c->json))};
    }
    changes_apply(&changes);
    r->list = list;
    r->count = spec->count;
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

static enum err undo_member(struct world_state *w, const struct changed *c, struct change *ret,
                            struct error *e)
{
    struct slice now = ret->member->json;

    if (!is_number(c->before) || !is_number(c->after) || !is_number(now))
        return error_set(e, ERR_INVALID,
                         "the effect on world.%.*s is not undone: it is no number, so `undone` has "
                         "to say how",
                         SLICE_ARG(c->name));
    return subtract(w, now, c, &ret->json, e);
}

enum err world_undo(struct world_state *w, struct effect_record *r, const struct json *root,
                    bool *ret, uint32_t *ret_at, struct error *e)
{
    size_t more = r->reverse ? r->reverse->count : 0;

    *ret = false;
    if (!r->took || (r->undone && !r->repeats_undo)) {
        r->undone = true;
        return ERR_OK;
    }
    CLEANUP(changes_fini) struct changes changes = changes_of(r->count + more);
    for (size_t i = 0; i < more; i++) {
        struct change *c = changes_add(&changes, w, r->reverse->list[i].name);
        *ret_at = r->reverse->list[i].at;
        enum err err = evaluate(&r->reverse->list[i], root, &c->json, e);
        if (err != ERR_OK)
            return err;
    }
    for (size_t i = 0; i < r->count; i++) {
        if (reversed(r, r->list[i].name))
            continue;
        struct change *c = changes_add(&changes, w, r->list[i].name);
        enum err err = undo_member(w, &r->list[i], c, e);
        if (err != ERR_OK)
            return err;
    }
    changes_apply(&changes);
    *ret = r->undone = true;
    return ERR_OK;
}

/* ---- comparison ---- */

static const struct changed *change_of(const struct effect_record *r, struct slice name)
{
    for (size_t i = 0; i < r->count && r->took && !r->undone; i++)
        if (slice_eq(r->list[i].name, name))
            return &r->list[i];
    return NULL;
}

/* What `undone` sees, with that value of the member. There is no request to undo it: `.undo` is a
 * text, so an expression that needs the input of one fails, and does not go on with null. */
static const struct json *root_without(const struct world_state *w, const struct world_member *m,
                                       struct slice value, const struct effect_record *r,
                                       struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "world");
    json_open(&b, '{');
    for (size_t i = 0; i < w->count; i++) {
        json_key_slice(&b, w->list[i].name);
        json_raw(&b, &w->list[i] == m ? value : w->list[i].json);
    }
    json_close(&b, '}');
    json_member_raw(&b, "input", r->input);
    json_member_raw(&b, "output", r->output);
    json_member_text(&b, "undo", SLICE("nobody asked"));
    json_close(&b, '}');
    return parse(a, arena_copy(a, buf_view(&b)));
}

/* The value without one of these effects; false: it cannot be told. */
static bool take_away(struct world_state *w, const struct world_member *m,
                      const struct effect_record *r, const struct changed *c, struct buf *value)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf next = {0};
    const struct world_change *reverse = reversed(r, m->name);
    struct slice now = buf_view(value);
    struct error e = {0};
    enum err err = ERR_INVALID;

    if (reverse)
        err = evaluate(reverse, root_without(w, m, now, r, &a), &next, &e);
    if (err != ERR_OK && is_number(c->before) && is_number(c->after) && is_number(now))
        err = subtract(w, now, c, &next, &e);
    if (err != ERR_OK)
        return false;
    buf_clear(value);
    buf_slice(value, buf_view(&next));
    return true;
}

/* ---- by hand ---- */

/* Whoever restores a member by hand does what `undone` says; otherwise it restores what was before,
 * and of a number subtracts what was added. */
static void restore(struct world_state *w, const struct effect_record *r, const struct changed *c)
{
    CLEANUP(changes_fini) struct changes changes = changes_of(1);
    struct change *one = changes_add(&changes, w, c->name);

    buf_slice(&one->json, one->member->json);
    if (!take_away(w, one->member, r, c, &one->json)) {
        if (!c->before.ptr)
            return;
        buf_clear(&one->json);
        buf_slice(&one->json, c->before);
    }
    changes_apply(&changes);
}

/* The step itself, one of its items, or a step of its child. */
static bool is_of_step(const struct effect_record *r, struct slice step)
{
    if (r->step.len <= step.len)
        return slice_eq(r->step, step);
    return memcmp(r->step.ptr, step.ptr, step.len) == 0
           && (r->step.ptr[step.len] == '.' || r->step.ptr[step.len] == '/');
}

bool world_undo_by_hand(struct world_state *w, struct slice step)
{
    bool any = false;

    for (struct effect_record *r = w->newest; r; r = r->older) {
        if (!is_of_step(r, step) || r->undone || (r->stays && r->step.len > step.len))
            continue;
        for (size_t i = 0; i < r->count && r->took; i++)
            restore(w, r, &r->list[i]);
        r->undone = true; /* nothing of it comes later */
        any |= r->took;
    }
    return any;
}

/* ---- what stays ---- */

struct slice world_without_staying(struct world_state *w, const struct world_member *m)
{
    CLEANUP(buf_fini) struct buf value = {0};

    buf_slice(&value, m->json);
    for (const struct effect_record *r = w->newest; r; r = r->older) {
        const struct changed *c = r->stays ? change_of(r, m->name) : NULL;
        if (c && !take_away(w, m, r, c, &value))
            return SLICE_NONE;
    }
    return arena_copy(w->arena, buf_view(&value));
}

const struct effect_record *world_unclear(const struct world_state *w, const struct world_member *m)
{
    const struct effect_record *unclear = NULL;
    bool has_others = false;

    for (const struct effect_record *r = w->newest; r; r = r->older) {
        const struct changed *c = NULL;
        for (size_t i = 0; i < r->count && r->took && !c; i++)
            c = slice_eq(r->list[i].name, m->name) ? &r->list[i] : NULL;
        if (!c)
            continue;
        has_others |= !r->stays;
        if (r->stays && !reversed(r, m->name))
            unclear = r;
    }
    return has_others ? unclear : NULL;
}

static void collect(void *arg, struct slice piece)
{
    buf_slice(arg, piece);
}

static double number_of(struct slice json)
{
    char text[64];

    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(slice_cut(json, sizeof text - 1)));
    return strtod(text, NULL);
}

bool world_values_equal(struct slice a, struct slice b)
{
    if (!is_number(a) || !is_number(b))
        return json_texts_equal(a, b);
    double x = number_of(a);
    double y = number_of(b);
    return fabs(x - y) <= ROUNDING * fmax(1, fmax(fabs(x), fabs(y)));
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
