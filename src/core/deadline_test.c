/* Deadlines: what is overdue when, grace after lost time, and the time at which a task is
 * checked. */
#include "core/core_test_kit.h"

static void deadlines_in_lost_time_move_to_its_end_and_a_grace(void **state)
{
    static const struct {
        const char *what;
        int64_t at;
        struct lost_time lost;
        int64_t want;
    } cases[] = {
        {"no time was lost", 500, {0}, 500},
        {"before it was lost", 99, {100, 200, 50, 0, 0}, 99},
        {"as it began to be lost", 100, {100, 200, 50, 0, 0}, 250},
        {"in the middle", 150, {100, 200, 50, 0, 0}, 250},
        {"as it ended", 200, {100, 200, 50, 0, 0}, 250},
        {"in the grace", 249, {100, 200, 50, 0, 0}, 250},
        {"as the grace ends", 250, {100, 200, 50, 0, 0}, 250},
        {"after it", 251, {100, 200, 50, 0, 0}, 251},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(deadline_at(cases[i].at, &cases[i].lost) == cases[i].want, "%s", cases[i].what);
}

static struct kit k;
#define MINUTE INT64_C(60000)

static const struct lost_time none = {0};

static void a_step_is_overdue_from_its_complete_by_on(void **state)
{
    (void)state;
    kit_make(&k, "overdue", "a b<a");
    CHECK(!step_is_overdue(&k.steps[0], k.now + MINUTE, &none), "not started");
    kit_play(&k, "claim, start a");
    int64_t at = k.attempts[0][0].complete_by;
    CHECK(!step_is_overdue(&k.steps[0], at - 1, &none), "not yet");
    CHECK(step_is_overdue(&k.steps[0], at, &none), "now");
    CHECK(step_is_overdue(&k.steps[0], at + 1, &none), "later");
    kit_play(&k, "ok a");
    CHECK(!step_is_overdue(&k.steps[0], at + 1, &none), "completed");
}

static void lost_time_is_not_the_steps_fault(void **state)
{
    (void)state;
    kit_make(&k, "lost", "a");
    kit_play(&k, "claim, start a");
    int64_t at = k.attempts[0][0].complete_by;
    struct lost_time lost = {at - 10, at + 100, 5000, 0, 0};
    CHECK(!step_is_overdue(&k.steps[0], at + 5099, &lost), "within the grace");
    CHECK(step_is_overdue(&k.steps[0], at + 5100, &lost), "after it");
    lost.until_of_tasks = at + 50;
    CHECK(step_overdue_at(&k.t.steps[0], &lost) == at + 5100, "it is the task's own business");
    lost = (struct lost_time){at - 50000, k.now, 60000, 0, 0};
    CHECK(step_is_overdue(&k.steps[0], at, &lost), "it began after the time was lost");
    lost = (struct lost_time){at - 50000, k.now + 1, 60000, 0, 0};
    CHECK(!step_is_overdue(&k.steps[0], at, &lost), "it began just before");
}

static void a_task_is_overdue_from_its_complete_by_on(void **state)
{
    (void)state;
    kit_make(&k, "overdue", "by=60s undo=30s a! b<a");
    int64_t at = k.t.complete_by;
    CHECK(!task_is_overdue(&k.g.w, &k.t, at - 1, &none) && task_is_overdue(&k.g.w, &k.t, at, &none),
          "pending");
    kit_play(&k, "claim, start a, ok a, deadline = alert");
    CHECK(!task_is_overdue(&k.g.w, &k.t, at + MINUTE, &none), "once");
    kit_make(&k, "overdue", "by=60s a");
    kit_play(&k, "claim, start a, ok a");
    CHECK(!task_is_overdue(&k.g.w, &k.t, at + MINUTE, &none), "not after the end");
    kit_make(&k, "overdue", "by=60s a#");
    kit_play(&k, "claim, start a, fail a");
    CHECK(!task_is_overdue(&k.g.w, &k.t, at + MINUTE, &none), "not while it is in error");
    kit_make(&k, "overdue", "a");
    CHECK(!task_is_overdue(&k.g.w, &k.t, INT64_MAX, &none), "never without one");
    kit_make(&k, "overdue", "by=60s undo=30s a b<a");
    kit_play(&k, "claim, start a, ok a, undo");
    at = k.t.undo_complete_by;
    CHECK(at == k.now + 30000, "the undo's own");
    CHECK(!task_is_overdue(&k.g.w, &k.t, at - 1, &none) && task_is_overdue(&k.g.w, &k.t, at, &none),
          "undo");
}

static void lost_time_is_not_the_task_s_fault(void **state)
{
    (void)state;
    kit_make(&k, "lost", "by=60s undo=30s a b<a");
    int64_t at = k.t.complete_by;
    struct lost_time lost = {at - 10, at + 100, 5000, 0, 0};
    CHECK(!task_is_overdue(&k.g.w, &k.t, at + 5099, &lost), "within the grace");
    CHECK(task_is_overdue(&k.g.w, &k.t, at + 5100, &lost), "after it");
    lost.from_of_tasks = at - 10;
    lost.until_of_tasks = at + 50;
    CHECK(!task_is_overdue(&k.g.w, &k.t, at + 5099, &lost)
              && task_is_overdue(&k.g.w, &k.t, at + 5100, &lost),
          "where the last gap does not move it, it has its grace all the same");
    CHECK(task_extended_to(&k.g.w, &k.t, &lost) == at + 5050, "although nothing more starts");
    lost.from_of_tasks = at - 30;
    lost.until_of_tasks = at - 20;
    lost.grace_ms = 10;
    CHECK(task_extended_to(&k.g.w, &k.t, &lost) == at, "at all");
    CHECK(task_overdue_at(&k.g.w, &k.t, &lost) == at + 110, "in the grace");
    lost = (struct lost_time){at + 60, at + 100, 5000, at - 10, at + 50};
    CHECK(task_overdue_at(&k.g.w, &k.t, &lost) == at + 5050, "nor what began it for attempts");
    CHECK(task_extended_to(&k.g.w, &k.t, &lost) == at + 5050, "and until then more starts");
    lost = (struct lost_time){at - MINUTE * 9, k.now, MINUTE * 5, 0, 0};
    CHECK(task_is_overdue(&k.g.w, &k.t, at, &lost), "submitted after the time was lost");
    k.t.submitted_at--;
    CHECK(!task_is_overdue(&k.g.w, &k.t, at, &lost), "submitted just before");
    k.t.not_before = k.now;
    CHECK(task_is_overdue(&k.g.w, &k.t, at, &lost), "but was not to begin before");
    k.t.not_before = 0;
    kit_play(&k, "claim, start a, ok a, undo");
    at = k.t.undo_complete_by;
    lost = (struct lost_time){at - 10, at + 100, 5000, 0, 0};
    CHECK(!task_is_overdue(&k.g.w, &k.t, at + 5099, &lost)
              && task_is_overdue(&k.g.w, &k.t, at + 5100, &lost),
          "going back");
}

static void a_task_wakes_at_its_earliest_deadline(void **state)
{
    (void)state;
    kit_make(&k, "wake", "a b c");
    CHECK(task_wake_at(&k.t) == 0, "nothing to wait for");
    kit_make(&k, "wake", "by=60s undo=90s a b c<ab");
    CHECK(task_wake_at(&k.t) == k.t.complete_by, "its own");
    kit_play(&k, "claim, start a");
    int64_t first = k.attempts[0][0].complete_by;
    CHECK(task_wake_at(&k.t) == first, "an attempt's");
    kit_play(&k, "wait 1s, start b");
    CHECK(task_wake_at(&k.t) == first, "the earlier one's");
    kit_play(&k, "ok a");
    CHECK(task_wake_at(&k.t) == k.attempts[1][0].complete_by, "the one that is left");
    kit_play(&k, "ok b, undo");
    CHECK(task_wake_at(&k.t) == k.t.undo_complete_by, "the undo's");
    kit_play(&k, "start a, fail a, start b, ok b");
    kit_expect(&k, "error a:failed b:undone c:waiting");
    CHECK(task_wake_at(&k.t) == 0, "nothing while it is in error");
    kit_play(&k, "skip a");
    kit_expect(&k, "compensated a:undone b:undone c:waiting");
    CHECK(task_wake_at(&k.t) == 0, "nothing after the end");
    kit_make(&k, "wake", "by=60s a! b<a");
    kit_play(&k, "claim, start a, ok a, deadline = alert");
    CHECK(task_wake_at(&k.t) == 0, "nor for one that was acted on");
}

static const char *const order_of_starts[] = {"abcd", "dcba", "acbd", "bdac", "cadb", "dbca"};

/* No later than any deadline, and no earlier than the earliest. */
static void check_alarm(const char *about)
{
    int64_t first = k.t.direction == DIRECTION_UNDO ? k.t.undo_complete_by : k.t.complete_by;

    for (uint16_t i = 0; i < k.t.step_count; i++) {
        const struct attempt *a = step_open_attempt(&k.steps[i]);
        if (!a)
            continue;
        CHECK(task_wake_at(&k.t) <= a->complete_by, "%s: later than %c's", about, 'a' + i);
        first = first == 0 ? a->complete_by : min_i64(first, a->complete_by);
    }
    CHECK(task_wake_at(&k.t) == first, "%s: earlier than any", about);
}

static void play(const char *before, const char *verb, char step, const char *after)
{
    char script[60];

    (void)snprintf(script, sizeof script, "%s%s %c%s", before, verb, step, after);
    kit_play(&k, script);
}

/* Steps that begin later and have less time, before and after those that have more. */
static void a_task_wakes_no_later_than_any_of_its_deadlines(void **state)
{
    static const char *const graphs[] = {"a b/ c d/", "by=12s a b/ c d/", "by=1h a/ b c/ d"};
    static const char *const waits[][2] = {{"", ""}, {"", ", wait 1s"}, {"wait 4s, ", ""}};
    (void)state;
    for (size_t g = 0; g < COUNT_OF(graphs); g++)
        for (size_t o = 0; o < COUNT_OF(order_of_starts) * COUNT_OF(order_of_starts); o++) {
            const char *order = order_of_starts[o / COUNT_OF(order_of_starts)];
            const char *ends = order_of_starts[o % COUNT_OF(order_of_starts)];
            kit_make(&k, graphs[g], graphs[g]);
            kit_play(&k, "claim");
            for (size_t i = 0; order[i] && (k.t.complete_by == 0 || i < 3); i++) {
                const char *const *wait = waits[(i + o) % COUNT_OF(waits)];
                play(wait[0], "start", order[i], wait[1]);
                check_alarm(order);
            }
            for (size_t i = 0; ends[i] && k.t.state == TASK_PROCESSING; i++) {
                if (!step_is_open(&k.steps[ends[i] - 'a']))
                    continue;
                play("", "ok", ends[i], "");
                if (k.t.state == TASK_PROCESSING)
                    check_alarm(ends);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines_in_lost_time_move_to_its_end_and_a_grace),
        cmocka_unit_test(a_step_is_overdue_from_its_complete_by_on),
        cmocka_unit_test(lost_time_is_not_the_steps_fault),
        cmocka_unit_test(a_task_is_overdue_from_its_complete_by_on),
        cmocka_unit_test(lost_time_is_not_the_task_s_fault),
        cmocka_unit_test(a_task_wakes_at_its_earliest_deadline),
        cmocka_unit_test(a_task_wakes_no_later_than_any_of_its_deadlines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
