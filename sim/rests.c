/* Acts on items at rest, at bad times (rests.h). check_items.c has the rules, disk_items.c counts
 * what nodes read meanwhile. */

#include "sim/rests.h"

#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/people.h"
#include "sim/world.h"

enum { LATE = 45, RASH = 75, FALLS_ASLEEP = 12, UNDOES = 6 }; /* per cent */

static struct prng own;

/* About one run in three of those with lists. With this number, no seed that was kept earlier is
 * among them. */
bool flows_rest(void)
{
    return flows_items()
           && (hash_stable(&world.seed, sizeof world.seed) ^ UINT64_C(0x726573e1)) % 3 == 0;
}

/* ---- agents ---- */

/* Late enough that somebody may have said meanwhile that it took no effect. */
int64_t rests_are_late(const struct gig *g)
{
    bool may =
        flows_rest() && !world.calm && unit_is_item(g->step) && g->direction == DIRECTION_FORWARD;

    if (!may || !prng_chance(&own, LATE))
        return 0;
    int64_t late = 4000 + prng_below(&own, 60000);
    life_of(g->task, g->step)->answers_at = g->deadline + late;
    return late;
}

/* ---- operators ---- */

bool rests_resolve_rashly(const struct subject *t, uint32_t unit)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(unit)];

    return flows_rest() && !t->flow->fixed && unit_is_item(unit) && f->undo == UNDO_CALL
           && !f->is_child && prng_chance(&own, RASH);
}

void rests_are_resolved_rashly(struct subject *t, uint32_t unit)
{
    life_of(t, unit)->rash = true;
    covered(COVER_RESOLVED_RASHLY);
}

struct pick {
    const struct subject *t;
    const struct item_life *item;
    uint32_t seen;
};

/* One in doubt is worth several others, above all if a late answer may contradict who resolves it.
 */
static void see_at_rest(const struct item_life *l, void *arg)
{
    struct pick *p = arg;
    uint32_t worth = l->row_doubt && l->answers_at > world.now ? 60 : l->row_doubt ? 9 : 1;

    if (l->row == 0 || l->at_work
        || list_of_unit(l->unit) != p->t->items[step_of_unit(l->unit)]->list)
        return;
    p->seen += worth;
    if (prng_below(&own, p->seen) < worth)
        p->item = l;
}

/* One that sleeps does not know yet what others did meanwhile. */
static int node_to_ask(void)
{
    NODES_FOREACH (n)
        if (node_is_up(n) && !node_is_awake(n))
            return (int)n->name;
    return ANY_NODE;
}

/* At a node that is awake: one that sleeps may have the task, and does not know what comes of it.
 */
static void wants_undo(struct subject *t)
{
    int at = ANY_NODE;

    NODES_FOREACH (n)
        if (node_is_awake(n))
            at = (int)n->name;
    people_want(t, ASK_UNDO, -1, at);
}

static void undoes(void *arg, uint64_t n)
{
    (void)n;
    if (!world.calm)
        wants_undo(arg);
}

static void resolves(struct subject *t, uint32_t unit)
{
    people_want(t, ASK_RESOLVE, (int)unit, node_to_ask());
    if (prng_chance(&own, 60))
        later(100 + prng_below(&own, 8000), undoes, t, 0);
}

static void acts_on(struct subject *t)
{
    static const enum ask_kind verbs[] = {ASK_RETRY, ASK_SKIP, ASK_SUPPLY, ASK_CORRECT};
    struct pick p = {.t = t};

    for (uint32_t i = 0; i < t->flow->step_count; i++)
        if (t->items[i])
            lives_walk(t, i, see_at_rest, &p);
    if (prng_chance(&own, UNDOES))
        wants_undo(t);
    else if (p.item && p.item->row_doubt && prng_chance(&own, 85))
        resolves(t, p.item->unit);
    else if (p.item)
        people_want(t, verbs[prng_below(&own, COUNT_OF(verbs))], (int)p.item->unit, node_to_ask());
}

static struct node *any_node(void)
{
    uint32_t number = prng_below(&own, NODES_MAX);
    struct node *n = &nodes.list[number];

    return n->used && node_is_awake(n) ? n : NULL;
}

static void looks(void *arg, uint64_t n)
{
    struct subject *t = &subjects.list[prng_below(&own, subjects.count)];
    struct node *sleeper = nodes.shared && prng_chance(&own, FALLS_ASLEEP) ? any_node() : NULL;

    if (world.calm)
        return;
    if (sleeper) /* long enough that others take over what it has */
        node_suspend(sleeper, 4000 + prng_below(&own, 16000));
    if (t->seen.revision != 0 && t->lives && !t->parent)
        acts_on(t);
    later(200 + prng_below(&own, 2000), looks, arg, n);
}

void rests_begin(void)
{
    own = (struct prng){.state = world.seed ^ UINT64_C(0x7265737473000001)};
    if (flows_rest())
        later(0, looks, NULL, 0);
}
