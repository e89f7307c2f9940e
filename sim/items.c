/* Draws steps with for_each, and keeps what the world knows of each item (items.h). From random
 * sources of its own: other runs stay as they are. check_items.c has the rules. */

#include "sim/items.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/ledger.h"
#include "sim/world.h"
#include "tasks/ask.h"
#include "json/json.h"

enum { LIVES = 64, EACH_MAX = 2, LIST_SHORT = 12, LIST_LONG = 40 };

struct item_lives {
    struct item_life *buckets[LIVES];
};

static struct prng own;

/* About one run in four. With these numbers, no seed that was kept earlier is among them. */
bool flows_items(void)
{
    static const uint64_t numbers[] = {0x166baff1, 0x532765a5};
    uint64_t seed = hash_stable(&world.seed, sizeof world.seed);
    bool any = false;

    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        any |= (seed ^ numbers[i]) % 6 == 0;
    return any;
}

bool flow_has_items(const struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].is_each)
            return true;
    return false;
}

void lists_begin(void)
{
    own = (struct prng){.state = world.seed ^ UINT64_C(0x6974656d73000001)};
}

const char *unit_name(uint32_t unit)
{
    static char names[8][24];
    static uint32_t next;
    char *name = names[next++ % COUNT_OF(names)];

    if (unit_is_item(unit))
        (void)snprintf(name, sizeof names[0], "s%u.%u", step_of_unit(unit), item_of_unit(unit));
    else
        (void)snprintf(name, sizeof names[0], "s%u", unit);
    return name;
}

/* ---- what is known of items ---- */

struct item_life *life_find(const struct subject *t, uint32_t unit)
{
    struct item_life *l = t->lives ? t->lives->buckets[unit / UNITS_OF_ITEM % LIVES] : NULL;

    while (l && l->unit != unit)
        l = l->next;
    return l;
}

struct item_life *life_of(struct subject *t, uint32_t unit)
{
    struct item_life *l = life_find(t, unit);

    if (l)
        return l;
    if (!t->lives) {
        t->lives = arena_alloc(&world.arena, sizeof *t->lives);
        *t->lives = (struct item_lives){0};
    }
    struct item_life **bucket = &t->lives->buckets[unit / UNITS_OF_ITEM % LIVES];
    l = arena_alloc(&world.arena, sizeof *l);
    *l = (struct item_life){.next = *bucket, .unit = unit};
    l->seen.generation = 1;
    *bucket = l;
    return l;
}

void lives_walk(const struct subject *t, uint32_t step,
                void (*see)(const struct item_life *l, void *arg), void *arg)
{
    for (uint32_t i = 0; t->lives && i < LIVES; i++)
        for (const struct item_life *l = t->lives->buckets[i]; l; l = l->next)
            if (step_of_unit(l->unit) == step)
                see(l, arg);
}

struct ledger *ledger_of(struct subject *t, uint32_t unit)
{
    return unit_is_item(unit) ? &life_of(t, unit)->ledger : &t->ledger[unit];
}

const struct seen_step *seen_unit(const struct subject *t, uint32_t unit)
{
    static const struct seen_step nothing = {.generation = 1};
    const struct item_life *l = NULL;

    if (!unit_is_item(unit))
        return &t->seen.steps[unit];
    l = life_find(t, unit);
    return l ? &l->seen : &nothing;
}

void unit_is_skipped(struct subject *t, uint32_t unit)
{
    if (unit_is_item(unit))
        life_of(t, unit)->skipped = true;
    else
        t->skipped[unit] = true;
}

/* A verb names an item, and who asks for it may know a list which the step had before. */
bool unit_was_skipped(const struct subject *t, uint32_t unit)
{
    bool skipped = t->skipped[step_of_unit(unit)];

    for (uint32_t u = unit % UNITS_OF_LIST; unit_is_item(unit) && u <= unit; u += UNITS_OF_LIST) {
        const struct item_life *l = life_find(t, u);
        skipped |= l && l->skipped;
    }
    return skipped;
}

uint32_t unit_named(const struct subject *t, struct slice name)
{
    const char *dot = memchr(name.ptr, '.', name.len);
    uint32_t step = flow_step_number(name);

    if (!dot || step >= t->flow->step_count || !t->items[step])
        return step;
    return unit_of(step, t->items[step]->list, (uint32_t)strtoul(dot + 1, NULL, 10));
}

uint32_t items_open(const struct subject *t, uint32_t step)
{
    const struct seen_items *in = t->items[step];
    uint32_t open = 0;

    for (uint32_t i = 0; in && i < in->work_count; i++)
        open += seen_open(&in->work[i].step) != NULL;
    return open;
}

bool items_elsewhere(const struct subject *t, uint32_t step)
{
    const struct seen_items *in = t->items[step];

    for (uint32_t i = 0; in && i < in->work_count; i++)
        if (seen_open(&in->work[i].step) && seen_open(&in->work[i].step)->elsewhere)
            return true;
    return false;
}

static void see_standing(const struct item_life *l, void *arg)
{
    if (ledger_stands(&l->ledger) && !seen_undone_by_hand(&l->seen) && !life_is_excused(l))
        *(bool *)arg = true;
}

bool step_stands(const struct subject *t, uint32_t step)
{
    bool stands = ledger_stands(&t->ledger[step]);

    lives_walk(t, step, see_standing, &stands);
    return stands;
}

static void see_happened(const struct item_life *l, void *arg)
{
    if (l->ledger.happened_at != 0)
        *(bool *)arg = true;
}

bool step_ever_happened(const struct subject *t, uint32_t step)
{
    bool any = t->ledger[step].happened_at != 0;

    lives_walk(t, step, see_happened, &any);
    return any;
}

/* ---- drawing ---- */

static void become_each(struct flow_step *s, struct prng *draw)
{
    uint32_t roll = prng_below(draw, 10);

    s->is_wait = s->is_each = s->may_break = true;
    s->heartbeat_ms = s->undo_heartbeat_ms = 0;
    s->retry.attempts = (uint32_t)min_i64(s->retry.attempts, 3);
    s->undo_retry.attempts = (uint32_t)min_i64(s->undo_retry.attempts, 5);
    if (prng_chance(draw, 40))
        s->on_failure = ON_FAILURE_HOLD; /* for operators */
    s->concurrency = 1 + prng_below(draw, 5);
    s->items_max = prng_chance(draw, 30) ? LIST_SHORT : LIST_LONG;
    s->items_go_on = roll < 3;
    s->tolerated = roll >= 3 && roll < 5 ? 500 + 100 * prng_below(draw, 50) : 0;
    if (prng_chance(draw, 40))
        s->items_fixed = 1 + prng_below(draw, LIST_SHORT);
    s->items_break = prng_chance(draw, 25);
    if (s->undo != UNDO_NONE || !prng_chance(draw, 40))
        return;
    s->item_rounds = true;
    s->rounds = 1 + prng_below(draw, 3);
    s->every_ms = 1 + prng_below(draw, 500);
    s->factor = 1;
    s->max_every_ms = s->every_ms;
    s->for_ms = min_i64(s->every_ms + prng_below(draw, 10000), 1000 * s->every_ms);
    s->retry.defers = 0;
}

void flow_draw_items(struct flow *f, uint32_t number)
{
    struct prng draw = {.state = world.seed ^ (UINT64_C(0x666f725f65616300) + number)};
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->step_count && flows_items() && count < EACH_MAX; i++) {
        struct flow_step *s = &f->steps[i];
        if (s->on_undo || s->is_wait || s->is_repeated || !prng_chance(&draw, 45))
            continue;
        become_each(s, &draw);
        count++;
    }
}

/* An item for which an expression fails has no `v`. */
static void put_value(struct buf *b, uint32_t i, bool breaks)
{
    if (breaks)
        json_string(b, SLICE("x"));
    else
        json_raw(b, text_of("{\"v\":%u}", i));
}

static void put_list(struct buf *b, const struct flow_step *s)
{
    json_key(b, "for_each");
    if (!s->items_fixed) {
        json_string(b, SLICE("${ .input.list }"));
        return;
    }
    json_open(b, '[');
    for (uint32_t i = 0; i < s->items_fixed; i++)
        put_value(b, i, s->items_break && i == s->items_fixed / 2);
    json_close(b, ']');
}

void items_put(struct buf *b, const struct flow_step *s)
{
    put_list(b, s);
    json_key(b, "max_items");
    json_number(b, s->items_max);
    json_key(b, "concurrency");
    json_number(b, s->concurrency);
    if (!s->items_go_on && !s->tolerated)
        return;
    json_key(b, "on_item_failure");
    if (s->items_go_on)
        json_string(b, SLICE("continue"));
    else
        json_raw(b,
                 text_of("{\"tolerate\":\"%u.%02u%%\"}", s->tolerated / 100, s->tolerated % 100));
}

void items_put_input(struct buf *b, const struct flow_step *s)
{
    json_key(b, "input");
    json_open(b, '{');
    json_key(b, "index");
    json_string(b, SLICE("${ .index }"));
    json_key(b, "item");
    json_string(b, s->items_break ? SLICE("${ .item.v }") : SLICE("${ .item }"));
    json_close(b, '}');
}

/* ---- lists ---- */

struct slice items_input(struct slice input)
{
    CLEANUP(buf_fini) struct buf b = {0};
    uint32_t roll = prng_below(&own, 100);
    uint32_t count = prng_below(&own, LIST_SHORT + 1);

    if (!flows_items() || roll < 2)
        return input;
    buf_slice(&b, (struct slice){input.ptr, input.len - 1});
    buf_str(&b, ",\"list\":");
    if (roll < 4) {
        buf_str(&b, "7}");
        return arena_copy(&world.arena, buf_view(&b));
    }
    count = roll < 10 ? LIST_LONG : roll < 12 ? LIST_LONG + 1 : count;
    int bad = prng_chance(&own, 25) && count > 0 ? (int)prng_below(&own, count) : -1;
    buf_byte(&b, '[');
    for (uint32_t i = 0; i < count; i++) {
        if ((int)i == bad)
            buf_fmt(&b, "%s\"x\"", i ? "," : "");
        else
            buf_fmt(&b, "%s{\"v\":%u}", i ? "," : "", i);
    }
    buf_str(&b, "]}");
    return arena_copy(&world.arena, buf_view(&b));
}

/* ---- operators ---- */

struct pick {
    uint32_t unit, seen;
    bool doubtful;
};

int items_repair(const struct subject *t)
{
    static const enum ask_kind verbs[] = {ASK_RETRY, ASK_SKIP, ASK_SUPPLY, ASK_CORRECT};

    return flow_has_items(t->flow) && prng_chance(&own, 60)
               ? (int)verbs[prng_below(&own, COUNT_OF(verbs))]
               : -1;
}

int items_anew(const struct subject *t)
{
    for (uint32_t i = 0; i < t->flow->step_count; i++)
        if (t->flow->steps[i].is_each && t->flow->steps[i].undo == UNDO_NONE
            && prng_chance(&own, 20))
            return (int)i;
    return -1;
}

/* Each of them is equally likely. */
static void see_to_pick(const struct item_life *l, void *arg)
{
    struct pick *p = arg;

    if ((p->doubtful && !seen_in_doubt(&l->seen)) || (!l->at_work && !prng_chance(&own, 20)))
        return;
    if (prng_below(&own, ++p->seen) == 0)
        p->unit = l->unit;
}

int items_meant(const struct subject *t, int step, bool doubtful)
{
    struct pick p = {.doubtful = doubtful};

    for (uint32_t i = 0; t->lives && i < t->flow->step_count; i++)
        if (t->flow->steps[i].is_each && prng_chance(&own, 60))
            lives_walk(t, i, see_to_pick, &p);
    return p.seen > 0 ? (int)p.unit : step;
}
