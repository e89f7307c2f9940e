/* Draws workflows whose steps start tasks of other workflows, and meets these tasks when a commit
 * starts them (family.h). From random sources of its own: other runs stay as they are. */

#include "sim/family.h"

#include <stdlib.h>

#include "definition/family.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/sql.h"
#include "sim/world.h"
#include "json/json.h"

enum {
    CHILD_STEPS_MAX = 2, /* of a workflow: families grow with its power */
    ITEMS_FEW = 4,       /* that start children */
    ROWS_MAX = 100       /* of one commit */
};

static struct {
    bool on;
    struct prng own;
} families;

/* About one run in four. With these numbers, no seed that was kept earlier is among them. */
bool flows_family(void)
{
    static const uint64_t numbers[] = {0x15eae22, 0x2221171, 0x5bf2401};
    uint64_t own = hash_stable(&world.seed, sizeof world.seed);
    bool schedules = (own ^ 0x4f71fe) % 7 == 0; /* they name their runs alike */
    bool any = false;

    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        any |= (own ^ numbers[i]) % 6 == 0;
    return any && !schedules && !flows_signal() && !flows_approve();
}

/* Most of those that have families and items. No seed that was kept earlier is among them. */
bool flows_item_children(void)
{
    uint64_t own = hash_stable(&world.seed, sizeof world.seed);

    return flows_family() && flows_items() && (own ^ 0x6368727e) % 5 != 0;
}

bool flow_has_children(const struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].is_child)
            return true;
    return false;
}

bool flow_has_item_children(const struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].is_child
            && (f->steps[i].is_each || flow_has_item_children(f->steps[i].child)))
            return true;
    return false;
}

/* ---- drawing ---- */

static bool has_pivot(const struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].undo == UNDO_PIVOT)
            return true;
    return false;
}

/* What a step may start; NULL: nothing. */
static const struct flow *draw_child(const struct flow *flows, uint32_t number, bool pivot,
                                     struct prng *own)
{
    const struct flow *c = &flows[prng_below(own, number)];

    return c->lock_keys > 0 || (has_pivot(c) && !pivot) ? NULL : c;
}

static void become_child(struct flow_step *s, const struct flow *c, struct prng *own)
{
    uint32_t roll = prng_below(own, 10);

    s->is_wait = s->is_child = true;
    s->child = c;
    s->retry = (struct flow_retry){.attempts = 1};
    s->heartbeat_ms = 0;
    if (s->undo != UNDO_PIVOT)
        s->undo = roll < 6 ? UNDO_CHILD : roll < 8 ? UNDO_CALL : UNDO_NONE;
    if (prng_chance(own, 40))
        s->child_ms = 200 + prng_below(own, prng_chance(own, 50) ? 5000 : 60000);
    s->child_input = prng_chance(own, 50) ? INPUT_SAME : INPUT_OWN;
    if (prng_chance(own, 3)) {
        s->child_input = INPUT_BAD;
        s->may_break = true;
    }
}

/* Some step with for_each starts a child for each item. */
static void draw_item_children(struct flow *flows, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x6974656d6b696400) + number)};
    struct flow *f = &flows[number];

    for (uint32_t i = 0; i < f->step_count; i++) {
        struct flow_step *s = &f->steps[i];
        if (!s->is_each || !prng_chance(&own, 75))
            continue;
        const struct flow *c = draw_child(flows, number, s->undo == UNDO_PIVOT, &own);
        if (!c || flow_has_item_children(c))
            continue;
        become_child(s, c, &own);
        s->child_input = INPUT_OWN;
        s->item_rounds = false;
        s->rounds = 0;
        s->items_max = ITEMS_FEW;
        s->items_fixed = prng_chance(&own, 80) ? 1 + prng_below(&own, ITEMS_FEW) : 0;
        s->concurrency = 1 + prng_below(&own, ITEMS_FEW - 1);
        return;
    }
}

void family_draw(struct flow *flows, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x66616d696c790000) + number)};
    struct flow *f = &flows[number];
    uint32_t count = 0;

    if (!flows_family() || number == 0)
        return;
    for (uint32_t i = 0; i < f->step_count && count < CHILD_STEPS_MAX; i++) {
        struct flow_step *s = &f->steps[i];
        if (s->on_undo || s->is_wait || s->is_repeated || !prng_chance(&own, 50))
            continue;
        const struct flow *c = draw_child(flows, number, s->undo == UNDO_PIVOT, &own);
        if (!c)
            continue;
        become_child(s, c, &own);
        count++;
    }
    if (flows_item_children())
        draw_item_children(flows, number);
    flow_fit_undo(f);
}

static void put_own_input(struct buf *b, bool bad)
{
    json_key(b, "input");
    json_open(b, '{');
    json_key(b, "n");
    json_string(b, SLICE("${ .input.n }"));
    json_key(b, "flag");
    json_string(b, SLICE("${ .input.flag | not }"));
    json_key(b, "text");
    json_string(b, bad ? SLICE("${ .input.text.nothing }") : SLICE("${ .input.text }"));
    json_close(b, '}');
}

/* It cannot be evaluated for an item that has no `v`. */
static void put_input_of_item(struct buf *b, const struct flow_step *s)
{
    json_key(b, "input");
    json_open(b, '{');
    json_key(b, "n");
    json_string(b, s->items_break ? SLICE("${ .item.v }") : SLICE("${ .index }"));
    json_key(b, "flag");
    json_string(b, SLICE("${ .index % 2 == 0 }"));
    json_key(b, "text");
    json_string(b, SLICE("${ .input.text }"));
    json_key(b, "list");
    json_string(b, SLICE("${ .input.list // [] }"));
    json_close(b, '}');
}

void family_put_task(struct buf *b, const struct flow_step *s)
{
    json_key(b, "task");
    json_open(b, '{');
    json_key(b, "workflow");
    json_string(b, slice_of(s->child->name));
    if (s->is_each)
        put_input_of_item(b, s);
    else if (s->child_input != INPUT_SAME)
        put_own_input(b, s->child_input == INPUT_BAD);
    json_close(b, '}');
    if (s->child_ms) {
        json_key(b, "complete_by");
        json_string(b, text_of("%" PRId64 "ms", s->child_ms));
    }
}

/* ---- what nodes know ---- */

bool family_is_stored(const struct flow *f)
{
    bool stored = f->stored;

    for (uint32_t i = 0; i < f->step_count; i++)
        stored = stored && (!f->steps[i].is_child || family_is_stored(f->steps[i].child));
    return stored;
}

bool family_is_known(struct node *n, const struct flow *f)
{
    bool known = node_knows(n, f);

    for (uint32_t i = 0; i < f->step_count; i++)
        known = known && (!f->steps[i].is_child || family_is_known(n, f->steps[i].child));
    return known;
}

static const struct definition *newest(void *arg, struct slice workflow)
{
    return registry_find(arg, workflow, 0);
}

struct slice family_fixed(const struct node *n, const struct definition *d, struct arena *a)
{
    const struct family_source source = {newest, (void *)(uintptr_t)&n->registry, false};
    struct slice family = SLICE_NONE;
    struct family_fault fault;

    if (family_resolve(d, &source, a, &family, &fault) != ERR_OK)
        broken("families are accepted", "%.*s: found %s, expected %s", SLICE_ARG(d->workflow.name),
               fault.path, fault.expected);
    return family;
}

/* ---- children ---- */

void families_begin(bool on)
{
    families.on = on;
    families.own = (struct prng){.state = world.seed ^ UINT64_C(0x6368696c64000001)};
    check_families_begin();
}

bool families_are_on(void)
{
    return families.on;
}

bool child_is_unread(const struct subject *t)
{
    return t->refusal == REFUSED_BY_READER;
}

bool child_is_too_big(struct slice id)
{
    const struct subject *t = families.on ? subject_find(id) : NULL;

    return t && t->refusal == REFUSED_BY_STORE;
}

static void refuse_some(struct subject *t)
{
    if (prng_chance(&families.own, 2) && !t->flow->fixed)
        t->refusal = prng_chance(&families.own, 50) ? REFUSED_BY_READER : REFUSED_BY_STORE;
}

/* Reads whose child it is, by its own means. */
static void meet(const struct submission_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (subject_find(row->id))
        broken("a child is started once", "%.*s", SLICE_ARG(row->id));
    if (!row->child.ptr || json_parse(&a, row->child, &j, NULL) != ERR_OK)
        broken("a child says whose it is", "%.*s", SLICE_ARG(row->id));
    struct subject *parent = subject_find(json_get_text(j, "parent"));
    struct subject *root = subject_find(json_get_text(j, "root"));
    struct subject *t = subject_add(row->id);
    t->parent = parent;
    t->root = root;
    t->parent_step = flow_step_number(json_get_text(j, "step"));
    t->parent_unit = parent ? unit_named(parent, json_get_text(j, "step")) : 0;
    t->parent_number = (uint32_t)json_get_int(j, "number", 0);
    t->cap = json_get_int(j, "complete_by", 0);
    t->content = (prng_next(&families.own) << 1 | 2) & ~UINT64_C(4);
    t->by_sql = true;
    if (!t->parent || !t->root || t->parent_step >= t->parent->flow->step_count
        || !t->parent->flow->steps[t->parent_step].is_child
        || unit_is_item(t->parent_unit) != t->parent->flow->steps[t->parent_step].is_each)
        broken("a child says whose it is", "%s: %.*s", t->id, SLICE_ARG(row->child));
    t->flow = t->parent->flow->steps[t->parent_step].child;
    t->input = arena_copy(&world.arena, row->input);
    t->priority = t->parent->priority;
    refuse_some(t);
    covered(t->parent->parent ? COVER_GRANDCHILD : COVER_CHILD);
    if (unit_is_item(t->parent_unit))
        covered(COVER_ITEM_CHILD);
    if (t->parent_number > 1)
        covered(COVER_CHILD_AGAIN);
    trace("%s starts %s", t->parent->id, t->id);
    check_child_started(t, row);
    sql_has_run(t, row->seq);
}

void families_meet(void)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct submission_query q = {.source = SLICE("task"), .limit = ROWS_MAX};
    struct submission_page page;
    struct error e = {0};

    if (!families.on)
        return;
    enum err err = inner->ops->submissions->list(inner, &q, &a, &page, &e);
    ASSERT(err == ERR_OK);
    for (size_t i = page.count; i-- > 0;) /* newest first */
        if (page.rows[i].seq > sql_last_seq())
            meet(&page.rows[i]);
}

/* ---- the store ---- */

bool family_begins_with(const struct change *c)
{
    bool child = c->kind == CHANGE_INSERT && memchr(c->row.id.ptr, '@', c->row.id.len);

    return families.on && (child || c->notice_count > 0); /* no word is refused */
}

static bool is_refused(const struct change *c)
{
    return family_begins_with(c) && child_is_too_big(c->row.id);
}

/* The others are stored in their order. */
enum err family_commit(struct batch *b, struct arena *a, struct error *e)
{
    struct change *all = b->changes;
    size_t count = b->change_count;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        kept += !is_refused(&all[i]);
    if (kept == count)
        return inner->ops->commit(inner, b, a, e);
    b->changes = arena_alloc(a, (kept + 1) * sizeof *b->changes);
    b->change_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_refused(&all[i]))
            b->changes[b->change_count++] = all[i];
    enum err err = inner->ops->commit(inner, b, a, e);
    const struct change *done = b->changes;
    for (size_t i = 0; i < count; i++)
        if (is_refused(&all[i]))
            all[i].outcome = err == ERR_OK ? ERR_TOO_BIG : err;
        else
            all[i] = *done++;
    b->changes = all;
    b->change_count = count;
    return err;
}
