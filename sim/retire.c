/* Deletes ended tasks during the run by rules, as a leading node does, and checks that nothing
 * else disappears (retire.h). In some runs only, from a random source of its own. */

#include "sim/retire.h"

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/operations.h"
#include "sim/subject.h"
#include "sim/world.h"

enum {
    EVERY_MS = 3000,
    AGE_MS = 30000,  /* maximum age before deletion */
    LATER_MS = 2000, /* maximum time between look and deletion */
    ONE_RUN_OF = 4,
    PART = 12
};

#define FOR_EVER (INT64_C(1) << 50)

static struct prng own;
static int64_t after_seq;

/* What one look found. */
struct found {
    struct retire_rule rule;
    struct retire_look look;
};

static void check_gone(struct subject *t)
{
    trace("%s is deleted", t->id);
    if (t->seen.state != TASK_PROCESSED && t->seen.state != TASK_COMPENSATED)
        broken("what is not over is never deleted", "%s is %s", t->id,
               task_state_text(t->seen.state));
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        if (seen_open(&t->seen.steps[i]))
            broken("what is not over is never deleted", "%s has an open attempt", t->id);
    if (t->deleted)
        broken("nothing is deleted twice", "%s", t->id);
    t->deleted = true;
    operations_seen(t);
    covered(COVER_DELETED);
}

void check_nothing_lost(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        CLEANUP(arena_fini) struct arena a = {0};
        struct slice id = slice_of(t->id);
        struct glance g = {0};
        struct error e = {0};
        if (t->seen.revision == 0)
            continue;
        if (inner->ops->glance(inner, &id, 1, &a, &g, &e) != ERR_OK)
            broken("the store can be looked at", "%s", e.text);
        if (g.revision == 0 && !t->deleted)
            broken("nothing that is not over disappears", "%s", t->id);
        if (g.revision != 0 && t->deleted)
            broken("an id does not run twice while it is reserved", "%s", t->id);
    }
}

static void deletes(void *arg, uint64_t n)
{
    const struct found *f = arg;
    bool gone[PART + 1] = {false};
    struct retire r = {.tasks = f->look.found,
                       .task_count = f->look.found_count,
                       .reserve_until = FOR_EVER,
                       .gone = gone};
    struct error e = {0};
    (void)n;

    if (store_is_away() || inner->ops->retention->retire(inner, &r, &e) != ERR_OK)
        return;
    for (size_t i = 0; i < r.dealt_with; i++) {
        struct subject *t = subject_find(f->look.found[i].id);
        if (gone[i])
            check_gone(t);
        else if (!t->deleted)
            covered(COVER_NOT_DELETED);
    }
    check_nothing_lost();
}

static void looks(void *arg, uint64_t n)
{
    struct found *f = arena_alloc(&world.arena, sizeof *f);
    struct error e = {0};
    (void)arg;
    (void)n;

    later(1 + prng_below(&own, 2 * EVERY_MS), looks, NULL, 0);
    f->rule = (struct retire_rule){.states = 1U << TASK_PROCESSED | 1U << TASK_COMPENSATED,
                                   .ended_before = store_now() - prng_below(&own, AGE_MS)};
    f->look = (struct retire_look){.rules = &f->rule,
                                   .rule_count = 1,
                                   .scan_max = 1 + prng_below(&own, PART),
                                   .after_seq = after_seq};
    if (store_is_away() || inner->ops->retention->look(inner, &f->look, &world.arena, &e) != ERR_OK)
        return;
    after_seq = f->look.more ? f->look.after_seq : 0;
    if (f->look.found_count > 0)
        later(prng_below(&own, LATER_MS), deletes, f, 0);
}

void retire_begin(void)
{
    own = (struct prng){.state = world.seed ^ UINT64_C(0x7265746972650001)};
    after_seq = 0;
    if (prng_below(&own, ONE_RUN_OF) == 0)
        later(EVERY_MS, looks, NULL, 0);
}
