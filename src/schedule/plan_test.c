/*
 * Which moments get a task: on time, too late, while a run is open, from a backlog. The story is
 * told by minutes: the schedule fires every ten minutes from 10 on.
 */
#include <stdlib.h>

#include "base/test.h"
#include "base/when.h"
#include "schedule/plan.h"

static struct arena arena;
static struct schedule *schedule;
static struct schedule_state state_of_it;
static struct plan plan;

#define MIN(n) ((int64_t)(n)*MS_PER_MIN)

static void begins(const char *rules)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct mistakes *m = calloc(1, sizeof *m);

    schedule_free(schedule);
    schedule = NULL;
    buf_fmt(&text, "intact: 1\nschedule: s\nworkflow: w\nevery: 10m\n%s", rules);
    CHECK(schedule_parse(buf_view(&text), SOURCE_GUESS, &schedule, m, NULL) == ERR_OK, "%s: %s",
          rules, m->list[0].expected);
    free(m);
    state_of_it = (struct schedule_state){.last = 0};
}

/* What fires at that minute: minutes, each with that of the moment before it in brackets. */
static void decides(int minute, bool run_is_open, const char *wanted)
{
    CLEANUP(buf_fini) struct buf b = {0};

    do {
        plan_decide(schedule, &state_of_it, run_is_open, MIN(minute), &arena, &plan);
        for (size_t i = 0; i < plan.fire_count; i++)
            buf_fmt(&b, "%s%d(%d)", b.len ? " " : "", (int)(plan.fires[i].moment / MS_PER_MIN),
                    (int)(plan.fires[i].previous / MS_PER_MIN));
        run_is_open = state_of_it.run.ptr != NULL;
    } while (plan.more);
    CHECK(slice_is(buf_view(&b), wanted), "at %d: %s instead of %s", minute, b.ptr ? b.ptr : "",
          wanted);
}

static void gap_is(size_t i, enum gap_kind kind, int first, int last, unsigned count)
{
    const struct gap *g = &state_of_it.gaps[i];

    assert_true(i < state_of_it.gap_count);
    CHECK(g->kind == kind && g->first == MIN(first) && g->last == MIN(last) && g->count == count,
          "%s %d to %d: %d", gap_kind_text(g->kind), (int)(g->first / MS_PER_MIN),
          (int)(g->last / MS_PER_MIN), (int)g->count);
}

static int wakes(int minute)
{
    return (int)(plan_wakes_at(schedule, &state_of_it, MIN(minute)) / MS_PER_MIN);
}

static void each_moment_fires_once(void **state)
{
    (void)state;
    begins("overlap: allow\n");
    assert_int_equal(wakes(5), 10);
    decides(9, false, "");
    decides(10, false, "10(0)");
    decides(10, false, "");
    decides(19, false, "");
    decides(21, false, "20(10)");
    decides(15, false, ""); /* the clock was set back */
    assert_int_equal(wakes(15), 30);
    assert_int_equal(state_of_it.fired_count, 2);
    assert_int_equal(state_of_it.gap_count, 0);
    assert_false(state_of_it.run.ptr);
}

static void of_missed_moments_the_latest_fires(void **state)
{
    (void)state;
    begins("overlap: allow\n");
    decides(45, false, "40(0)");
    assert_int_equal(state_of_it.gap_count, 1);
    gap_is(0, GAP_MISSED, 10, 30, 3);
    assert_int_equal(state_of_it.missed_count, 3);
    assert_int_equal(state_of_it.gap_at, MIN(45));
    decides(50, false, "50(40)");
    decides(70, false, "70(50)");
    assert_int_equal(state_of_it.gap_count, 2); /* one fired between them */
}

static void all_missed_moments_fire_if_all_are_wanted(void **state)
{
    (void)state;
    begins("overlap: allow\nmissed: all\n");
    decides(45, false, "10(0) 20(10) 30(20) 40(30)");
    assert_int_equal(state_of_it.gap_count, 0);
    decides(40 + 10 * 250, false,
            "2480(40) 2490(2480) 2500(2490) 2510(2500) "
            "2520(2510) 2530(2520) 2540(2530)");
    gap_is(0, GAP_MISSED, 50, 2470, 243);
}

static void many_fire_in_parts(void **state)
{
    (void)state;
    begins("overlap: allow\nmissed: all\ncatch_up: 30d\n");
    plan_decide(schedule, &state_of_it, false, MIN(10 * 250), &arena, &plan);
    assert_int_equal(plan.fire_count, PLAN_FIRES_MAX);
    assert_true(plan.more);
    plan_decide(schedule, &state_of_it, false, MIN(10 * 250), &arena, &plan);
    plan_decide(schedule, &state_of_it, false, MIN(10 * 250), &arena, &plan);
    assert_int_equal(plan.fire_count, 50);
    assert_false(plan.more);
    assert_int_equal(state_of_it.fired_count, 250);
}

static void what_is_too_old_is_missed(void **state)
{
    (void)state;
    begins("overlap: allow\nmissed: all\ncatch_up: 20m\n");
    decides(60, false, "40(0) 50(40) 60(50)");
    gap_is(0, GAP_MISSED, 10, 30, 3);
    begins("catch_up: 1m\n");
    decides(12, false, "");
    gap_is(0, GAP_MISSED, 10, 10, 1);
    begins("catch_up: 1m\n");
    decides(11, false, "10(0)");
    begins("catch_up: 366d\n");
    decides(60 * 24 * 365, false, "525600(0)");
    assert_int_equal(state_of_it.missed_count, 52559);
}

/* By when each is due, which a spread puts off; whenever that is looked at. */
static void no_moment_is_missed_that_is_not_too_old(void **state)
{
    (void)state;
    for (int64_t now = MIN(40); now < MIN(62); now += 1777) {
        uint64_t fires = 0;
        uint64_t missed = 0;
        begins("overlap: allow\nmissed: all\ncatch_up: 20m\nspread: 9m\n");
        assert_true(schedule_due_at(schedule, 0) > MIN(1)); /* else nothing would be seen */
        for (int64_t m = MIN(10); schedule_due_at(schedule, m) <= now; m += MIN(10))
            *(schedule_due_at(schedule, m) < now - MIN(20) ? &missed : &fires) += 1;
        plan_decide(schedule, &state_of_it, false, now, &arena, &plan);
        CHECK(plan.fire_count == fires && state_of_it.missed_count == missed,
              "at %d s %d fire and %d are missed", (int)(now / MS_PER_S), (int)plan.fire_count,
              (int)state_of_it.missed_count);
    }
}

static void of_a_list_too_old_ones_are_missed(void **state)
{
    struct mistakes *m = calloc(1, sizeof *m);
    (void)state;

    begins("");
    schedule_free(schedule);
    schedule = NULL;
    CHECK(schedule_parse(SLICE("intact: 1\nschedule: s\nworkflow: w\noverlap: allow\nmissed: all\n"
                               "catch_up: 20m\nat: [1970-01-01T00:10:00Z, "
                               "1970-01-01T00:40:00Z, 1970-01-01T00:50:00Z]\n"),
                         SOURCE_GUESS, &schedule, m, NULL)
              == ERR_OK,
          "%s", m->list[0].expected);
    free(m);
    decides(60, false, "40(0) 50(40)");
    gap_is(0, GAP_MISSED, 10, 10, 1);
    assert_int_equal(wakes(60), 0);
}

static void a_moment_that_finds_a_run_is_skipped(void **state)
{
    (void)state;
    begins("");
    decides(10, false, "10(0)");
    assert_true(slice_is(state_of_it.run, "s@1970-01-01T00:10:00Z"));
    assert_false(plan_waits(&state_of_it));
    decides(20, true, "");
    decides(30, true, "");
    gap_is(0, GAP_SKIPPED, 20, 30, 2);
    assert_true(slice_is(state_of_it.gaps[0].why, "s@1970-01-01T00:10:00Z"));
    decides(40, false, "40(10)");
    assert_true(slice_is(state_of_it.run, "s@1970-01-01T00:40:00Z"));
    assert_int_equal(state_of_it.skipped_count, 2);
}

static void one_moment_waits(void **state)
{
    (void)state;
    begins("overlap: wait\n");
    decides(10, false, "10(0)");
    decides(20, true, "");
    assert_true(plan_waits(&state_of_it));
    assert_false(plan.undo);
    decides(30, true, "");
    gap_is(0, GAP_SKIPPED, 30, 30, 1);
    decides(33, false, "20(10)");
    assert_false(plan_waits(&state_of_it));
    decides(40, true, "");
    decides(50, false, "40(20)"); /* that of 50 finds the run of 40, and waits */
    assert_true(plan_waits(&state_of_it));
    assert_int_equal(state_of_it.waiting, MIN(50));
    decides(51, false, "50(40)");
}

static void an_open_run_is_undone(void **state)
{
    (void)state;
    begins("overlap: undo\n");
    decides(10, false, "10(0)");
    decides(20, true, "");
    assert_true(plan.undo);
    assert_int_equal(wakes(20), 21);
    decides(21, true, "");
    assert_true(plan.undo);
    decides(22, false, "20(10)");
    assert_false(plan.undo);
}

static void missed_ones_run_one_by_one(void **state)
{
    (void)state;
    begins("missed: all\n");
    decides(35, false, "10(0)");
    assert_true(plan_waits(&state_of_it));
    assert_int_equal(state_of_it.gap_count, 0);
    decides(36, true, "");
    decides(37, false, "20(10)");
    decides(41, true, ""); /* it finds a run of the backlog, and waits */
    assert_int_equal(state_of_it.waiting, MIN(40));
    assert_int_equal(state_of_it.gap_count, 0);
    decides(42, false, "40(20)");
    decides(43, false, "30(20)");
    decides(44, false, "");
    assert_int_equal(state_of_it.fired, MIN(40));
    assert_false(plan_waits(&state_of_it));
}

static void a_backlog_runs_one_by_one(void **state)
{
    uint64_t count = 0;
    struct error e = {0};
    (void)state;

    begins("overlap: allow\n");
    state_of_it.last = MIN(100);
    assert_int_equal(plan_backfill(schedule, &state_of_it, MIN(20), MIN(40), &count, &e), ERR_OK);
    assert_int_equal(count, 3);
    assert_int_equal(wakes(101), 101);
    decides(101, false, "20(0)");
    assert_true(plan_waits(&state_of_it));
    assert_int_equal(wakes(101), 110);
    decides(110, true, "110(20)");
    decides(111, false, "30(20)");
    decides(112, false, "40(30)");
    decides(113, false, "");
    assert_false(plan_waits(&state_of_it));
    assert_int_equal(state_of_it.fired, MIN(110));
}

static void backfills_have_bounds(void **state)
{
    uint64_t count = 0;
    struct error e = {0};
    (void)state;

    begins("");
    assert_int_equal(plan_backfill(schedule, &state_of_it, MIN(11), MIN(19), &count, &e),
                     ERR_INVALID);
    assert_int_equal(plan_backfill(schedule, &state_of_it, 0, MIN(10 * (BACKFILL_MAX + 1)), &count,
                                   &e),
                     ERR_INVALID);
    for (int i = 0; i < BACKLOG_RANGES_MAX; i++)
        assert_int_equal(plan_backfill(schedule, &state_of_it, 0, MIN(10), &count, &e), ERR_OK);
    assert_int_equal(plan_backfill(schedule, &state_of_it, 0, MIN(10), &count, &e), ERR_CONFLICT);
}

static void nothing_begins_during_a_pause(void **state)
{
    (void)state;
    begins("overlap: wait\n");
    decides(10, false, "10(0)");
    decides(20, true, "");
    state_of_it.paused_at = MIN(21);
    assert_int_equal(plan_wakes_at(schedule, &state_of_it, MIN(21)), 0);
    assert_false(plan_waits(&state_of_it));
    decides(45, false, "");
    assert_int_equal(state_of_it.last, MIN(20));
    state_of_it.paused_at = 0;
    state_of_it.last = MIN(45);
    assert_int_equal(wakes(45), 45);
    decides(45, false, "20(10)");
}

#define FAILS_AT_20 \
    "input: {a: '${ .time[14:16] | tonumber | if . == 20 then error else . end }'}\n"

static void a_failed_input_is_on_record(void **state)
{
    (void)state;
    begins(FAILS_AT_20);
    decides(10, false, "10(0)");
    decides(20, false, "");
    assert_false(state_of_it.run.ptr);
    gap_is(0, GAP_FAILED, 20, 20, 1);
    assert_int_equal(state_of_it.fired_count, 1);
    decides(30, false, "30(10)");
    assert_true(slice_is(plan.fires[0].input, "{\"a\":30}"));
}

/* Found by the simulator: later moments named it as the one that had a task before, or were skipped
 * because of its run. */
static void nothing_follows_a_failed_input(void **state)
{
    (void)state;
    begins(FAILS_AT_20 "missed: all\noverlap: allow\n");
    decides(45, false, "10(0) 30(10) 40(30)");
    begins(FAILS_AT_20 "overlap: wait\n");
    decides(10, false, "10(0)");
    decides(20, true, "");
    assert_int_equal(state_of_it.waiting, MIN(20));
    decides(30, false, "30(10)");
    assert_int_equal(state_of_it.failed_count, 1);
    assert_int_equal(state_of_it.skipped_count, 0);
    begins(FAILS_AT_20 "missed: all\n");
    decides(35, false, "10(0)");
    decides(35, false, "");
    decides(35, false, "30(10)");
    assert_int_equal(state_of_it.failed_count, 1);
}

static void gaps_are_bounded(void **state)
{
    (void)state;
    begins("overlap: allow\n");
    for (int i = 0; i < 2 * GAPS_KEPT; i++) {
        plan_decide(schedule, &state_of_it, false, MIN(20 * (i + 1)), &arena, &plan);
        assert_int_equal(plan.fire_count, 1);
    }
    assert_int_equal(state_of_it.gap_count, GAPS_KEPT);
    gap_is(GAPS_KEPT - 1, GAP_MISSED, 40 * GAPS_KEPT - 10, 40 * GAPS_KEPT - 10, 1);
    assert_int_equal(state_of_it.missed_count, 2 * GAPS_KEPT);
}

static void the_state_can_be_stored(void **state)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    CLEANUP(buf_fini) struct buf again = {0};
    struct schedule_state read = {0};
    struct error e = {0};
    (void)state;

    begins(FAILS_AT_20 "missed: all\n");
    decides(10, false, "10(0)");
    decides(20, false, "");
    decides(35, false, "30(10)");
    assert_int_equal(state_of_it.failed_count, 1);
    decides(36 + 100, true, "");
    schedule_state_write(&state_of_it, &doc);
    assert_int_equal(schedule_state_read(buf_view(&doc), &arena, &read, &e), ERR_OK);
    schedule_state_write(&read, &again);
    CHECK(slice_eq(buf_view(&doc), buf_view(&again)), "%s\n%s", doc.ptr, again.ptr);
    assert_true(read.backlog_count > 0);
    assert_int_equal(schedule_state_read(SLICE("{}"), &arena, &read, &e), ERR_CORRUPT);
    assert_int_equal(schedule_state_read(SLICE("x"), &arena, &read, &e), ERR_CORRUPT);
}

static int end(void **state)
{
    (void)state;
    schedule_free(schedule);
    arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_moment_fires_once),
        cmocka_unit_test(of_missed_moments_the_latest_fires),
        cmocka_unit_test(all_missed_moments_fire_if_all_are_wanted),
        cmocka_unit_test(many_fire_in_parts),
        cmocka_unit_test(what_is_too_old_is_missed),
        cmocka_unit_test(no_moment_is_missed_that_is_not_too_old),
        cmocka_unit_test(of_a_list_too_old_ones_are_missed),
        cmocka_unit_test(a_moment_that_finds_a_run_is_skipped),
        cmocka_unit_test(one_moment_waits),
        cmocka_unit_test(an_open_run_is_undone),
        cmocka_unit_test(missed_ones_run_one_by_one),
        cmocka_unit_test(a_backlog_runs_one_by_one),
        cmocka_unit_test(backfills_have_bounds),
        cmocka_unit_test(nothing_begins_during_a_pause),
        cmocka_unit_test(a_failed_input_is_on_record),
        cmocka_unit_test(nothing_follows_a_failed_input),
        cmocka_unit_test(gaps_are_bounded),
        cmocka_unit_test(the_state_can_be_stored),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
