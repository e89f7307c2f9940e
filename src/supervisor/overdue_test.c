/*
 * What the supervisor makes of a row: any steps may run, with any times, in lost time or not. Its
 * alarm is never later than the first time at which the row must be checked, and it requests
 * exactly what is overdue.
 */

#include "supervisor/overdue.h"

#include "base/prng.h"
#include "core/core_test_kit.h"

enum { ROUNDS = 20000, REMINDER = 10000, SPREAD = 30000 };

static struct kit k;
static struct lost_time lost;

static int64_t around(struct prng *p, int64_t at)
{
    return at - SPREAD + prng_below(p, 2 * SPREAD);
}

/* Each step runs or not, forward or back, with any start and any complete-by. */
static void make_any(struct prng *p)
{
    bool back = prng_chance(p, 50);

    kit_make(&k, "any", "by=60s undo=60s a b c d e f");
    lost = (struct lost_time){0};
    if (prng_chance(p, 50))
        lost = (struct lost_time){.from = around(p, k.now),
                                  .until = k.now - prng_below(p, SPREAD),
                                  .grace_ms = REMINDER};
    if (lost.until && lost.from > lost.until)
        lost.from = lost.until;
    if (lost.until && prng_chance(p, 50)) {
        lost.until_of_tasks = lost.until - prng_below(p, SPREAD);
        lost.from_of_tasks = lost.until_of_tasks - prng_below(p, SPREAD);
    }
    k.t.state = back ? TASK_COMPENSATING : TASK_PROCESSING;
    k.t.direction = back ? DIRECTION_UNDO : DIRECTION_FORWARD;
    k.t.submitted_at = k.now - 60000;
    k.t.complete_by = k.t.undo_complete_by = prng_chance(p, 50) ? 0 : around(p, k.now);
    k.t.paused_at = prng_chance(p, 20) ? k.now - 1 : 0;
    for (uint16_t i = 0; i < k.t.step_count; i++) {
        struct step *s = &k.steps[i];
        if (prng_chance(p, 40))
            continue;
        s->state = back ? STEP_UNDOING : STEP_RUNNING;
        s->direction = k.t.direction;
        s->attempt = s->attempt_count = 1;
        s->attempts[0] = (struct attempt){.number = 1,
                                          .direction = k.t.direction,
                                          .outcome = OUTCOME_OPEN,
                                          .effect = EFFECT_UNKNOWN,
                                          .started_at = k.now - prng_below(p, 60000),
                                          .complete_by = around(p, k.now)};
    }
}

/* Until when that time puts off something that began at `began` with this complete-by. */
static int64_t put_off(int64_t from, int64_t until, int64_t began, int64_t complete_by)
{
    bool fell_into_it =
        until != 0 && began < until && complete_by >= from && complete_by < until + lost.grace_ms;

    return fell_into_it ? until + lost.grace_ms : complete_by;
}

/* When it is overdue. */
static int64_t due_at(int64_t began, int64_t complete_by)
{
    return put_off(lost.from, lost.until, began, complete_by);
}

static int64_t task_began_at(void)
{
    return k.t.direction == DIRECTION_UNDO ? k.t.undo_complete_by - k.g.w.undo_complete_by_ms
                                           : k.t.submitted_at;
}

/* To when the task's own complete-by moves. */
static int64_t extended_to(void)
{
    return lost.until_of_tasks
               ? put_off(lost.from_of_tasks, lost.until_of_tasks, task_began_at(), k.t.complete_by)
               : due_at(task_began_at(), k.t.complete_by);
}

static void check_extension(const struct request *r, uint32_t round)
{
    int64_t to = k.t.paused_at || !k.t.complete_by ? 0 : extended_to();
    bool moves = k.t.complete_by <= k.now && to > k.now;
    size_t count = 0;

    for (size_t i = 0; i < r->count; i++) {
        if (r->list[i].kind != REQUEST_EXTEND)
            continue;
        count++;
        CHECK(r->list[i].until == to, "round %u: extended to another time", round);
    }
    CHECK(count == (moves ? 1 : 0), "round %u: %zu extensions", round, count);
}

static bool asks_of_step(const struct request *r, uint16_t i)
{
    bool asks = false;

    for (size_t n = 0; n < r->count; n++)
        asks |=
            r->list[n].kind == REQUEST_ATTEMPT && slice_eq(r->list[n].step, k.g.w.steps[i].name);
    return asks;
}

static void check_verdict(const struct verdict *v, uint32_t round)
{
    int64_t task_at = k.t.paused_at || !k.t.complete_by
                          ? 0
                          : max_i64(due_at(task_began_at(), k.t.complete_by), extended_to());
    bool due = task_at != 0 && task_at <= k.now;
    int64_t first = task_at > k.now ? task_at : 0;

    for (uint16_t i = 0; i < k.t.step_count; i++) {
        const struct attempt *a = step_open_attempt(&k.steps[i]);
        int64_t at = a ? due_at(a->started_at, a->complete_by) : 0;
        CHECK(asks_of_step(&v->request, i) == (at != 0 && at <= k.now), "round %u: step %u", round,
              i);
        due |= at != 0 && at <= k.now;
        if (at <= k.now)
            continue;
        CHECK(v->wake_at != 0 && v->wake_at <= at, "round %u: the alarm is later than step %u's",
              round, i);
        first = first == 0 ? at : min_i64(first, at);
    }
    if (due)
        first = first == 0 ? k.now + REMINDER : min_i64(first, k.now + REMINDER);
    CHECK(v->wake_at == first, "round %u: the alarm", round);
    CHECK(!due || v->request.count > 0, "round %u: nobody is asked", round);
    check_extension(&v->request, round);
}

static void the_alarm_is_no_later_than_any_deadline(void **state)
{
    struct prng p = {.state = 1};
    (void)state;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct verdict v;
        make_any(&p);
        overdue_judge(&k.g.w, &k.t, k.now, 0, &lost, &a, &v);
        check_verdict(&v, i);
    }
}

static size_t asks_when(int64_t now, int64_t told_at)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct verdict v;

    overdue_judge(&k.g.w, &k.t, now, told_at, &lost, &a, &v);
    CHECK(v.request.count > 0 || v.wake_at <= now, "it is checked again at once");
    return v.request.count;
}

static void a_notice_in_time_holds_up_the_end_of_a_wait(void **state)
{
    (void)state;
    lost = (struct lost_time){0};
    kit_make(&k, "notices", "a$");
    kit_play(&k, "begin a");
    int64_t by = k.t.steps[0].complete_by;
    CHECK(by > 0, "it has a limit");
    CHECK(asks_when(by, 0) == 1, "there is none");
    CHECK(asks_when(by, by) == 0, "it was in time");
    CHECK(asks_when(by + 5000, by + 1) == 1, "it is late");
    CHECK(asks_when(by + NOTICE_HOLD_MS - 1, 1) == 0, "it may still be decided");
    CHECK(asks_when(by + NOTICE_HOLD_MS, 1) == 1, "it cannot be decided");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_alarm_is_no_later_than_any_deadline),
        cmocka_unit_test(a_notice_in_time_holds_up_the_end_of_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
