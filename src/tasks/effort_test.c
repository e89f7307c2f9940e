/* Tests of effort.c and overruns.c: the share of a turn that evaluations get, that no kind of
 * work starves, and which tasks count as having taken too much. */

#include "base/test.h"

#include "tasks/effort.h"
#include "tasks/overruns.h"

enum { MAX = 100 };

static void evaluate(struct effort *f, uint64_t steps)
{
    *effort_begin(f) += steps;
}

static void a_turn_ends_at_its_limit(void **state)
{
    struct effort f;
    (void)state;

    effort_init(&f, MAX);
    CHECK(effort_may(&f, EFFORT_INPUTS), "the first one may always");
    evaluate(&f, 1000);
    CHECK(!effort_may(&f, EFFORT_INPUTS) && effort_left_out(&f, EFFORT_INPUTS), "no more");
    CHECK(!effort_left_out(&f, EFFORT_OUTPUTS), "nobody asked for these");
    effort_end_turn(&f);
    CHECK(f.turns_left_out == 1 && f.evaluations == 1 && f.last_turn > 1000, "it is counted");
    CHECK(effort_may(&f, EFFORT_INPUTS), "the next turn");
}

static void a_kind_that_got_nothing_has_the_next_turn_to_itself(void **state)
{
    struct effort f;
    (void)state;

    effort_init(&f, MAX);
    CHECK(effort_may(&f, EFFORT_CONDITIONS), "conditions come first");
    evaluate(&f, MAX);
    CHECK(!effort_may(&f, EFFORT_INPUTS) && !effort_may(&f, EFFORT_OUTPUTS), "and use it up");
    effort_end_turn(&f);
    CHECK(!effort_may(&f, EFFORT_CONDITIONS), "not again");
    CHECK(effort_may(&f, EFFORT_INPUTS), "inputs");
    CHECK(!effort_may(&f, EFFORT_OUTPUTS), "alone");
    effort_end_turn(&f);
    CHECK(effort_may(&f, EFFORT_OUTPUTS) && !effort_may(&f, EFFORT_INPUTS), "then outputs");
    effort_end_turn(&f);
}

static void no_kind_starves(void **state)
{
    int turns[EFFORT_ANY] = {0};
    struct effort f;
    (void)state;

    effort_init(&f, MAX);
    for (int turn = 0; turn < 300; turn++) {
        for (int kind = 0; kind < EFFORT_ANY; kind++)
            while (effort_may(&f, (enum effort_kind)kind)) { /* each wants all there is */
                turns[kind]++;
                evaluate(&f, MAX);
            }
        effort_end_turn(&f);
    }
    for (int kind = 0; kind < EFFORT_ANY; kind++)
        CHECK(turns[kind] >= 75, "kind %d had %d turns of 300", kind, turns[kind]);
}

static void twice_is_too_often(void **state)
{
    const struct overrun list[] = {{.task = SLICE("once"), .times = 1},
                                   {.task = SLICE("twice"), .times = 2}};
    struct overruns o = {0};
    (void)state;

    CHECK(!overruns_any(&o) && !overruns_too_often(&o, SLICE("twice")), "there are none");
    overruns_set(&o, list, COUNT_OF(list));
    CHECK(overruns_has(&o, SLICE("once")) && !overruns_too_often(&o, SLICE("once")), "once");
    CHECK(overruns_too_often(&o, SLICE("twice")), "twice");
    overruns_forget(&o, SLICE("twice"));
    overruns_forget(&o, SLICE("never"));
    CHECK(!overruns_has(&o, SLICE("twice")) && overruns_any(&o), "it was let go");
    overruns_set(&o, list + 1, 1);
    CHECK(!overruns_has(&o, SLICE("once")) && overruns_too_often(&o, SLICE("twice")), "read anew");
    overruns_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_ends_at_its_limit),
        cmocka_unit_test(a_kind_that_got_nothing_has_the_next_turn_to_itself),
        cmocka_unit_test(no_kind_starves),
        cmocka_unit_test(twice_is_too_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
