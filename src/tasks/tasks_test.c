/* Tests of the tasks in memory: commands that gather in the inbox, the order of the queue,
 * reading a task again, and dropping it. attempts_test.c has their attempts. */

#include "tasks/live.h"
#include "tasks/queue.h"
#include "tasks/task_inbox.h"
#include "tasks/tasks_test_kit.h"

#define STEPS                                                                \
    "[{\"name\":\"a\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"}," \
    "{\"name\":\"b\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"}]"

static struct floor f;

/* ---- commands ---- */

static void an_event_for_an_unknown_task_reads_it(void **state)
{
    const struct event e = {.kind = EVENT_DEADLINE, .step = -1};
    enum event_kind first = EVENT_START;
    (void)state;

    floor_begin(&f, STEPS);
    inbox_post_event(&f.ts, SLICE("t"), &e);
    struct live *l = live_find(&f.ts, SLICE("t"));
    CHECK(l && !l->loaded, "a stub");
    CHECK(link_is_in(&l->load_link) && link_is_in(&l->inbox_link), "to be read, with a command");
    CHECK(floor_posted(l, &first) == 1 && first == EVENT_DEADLINE, "the event");
    inbox_post_event(&f.ts, SLICE("t"), &e);
    CHECK(floor_posted(l, &first) == 2 && f.ts.counts.live == 1, "one task, two events");
    floor_end(&f);
}

static void a_submission_is_tried_without_a_read(void **state)
{
    const struct overrun overran = {.task = SLICE("bad"), .times = 2};
    struct ask good = {.kind = ASK_SUBMIT};
    struct ask bad = {.kind = ASK_SUBMIT};
    struct command first = {.kind = COMMAND_ASK, .ask = &good};
    struct command second = {.kind = COMMAND_ASK, .ask = &bad};
    (void)state;

    floor_begin(&f, STEPS);
    overruns_set(&f.ts.overruns, &overran, 1);
    inbox_post(&f.ts, SLICE("good"), &first);
    inbox_post(&f.ts, SLICE("bad"), &second);
    CHECK(!link_is_in(&live_find(&f.ts, SLICE("good"))->load_link), "it is inserted");
    CHECK(link_is_in(&live_find(&f.ts, SLICE("bad"))->load_link), "it overran: it may exist");
    floor_end(&f);
}

static void what_overtakes_a_read_is_marked(void **state)
{
    struct command c = {.kind = COMMAND_EVENT};
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    l->in_flight = true;
    inbox_post(&f.ts, l->id, &c);
    CHECK(c.overtook, "its row is being read, or written");
    floor_end(&f);
}

static void a_read_puts_applied_commands_before_later_ones(void **state)
{
    struct command c[4] = {{.kind = COMMAND_EVENT},
                           {.kind = COMMAND_EVENT},
                           {.kind = COMMAND_EVENT},
                           {.kind = COMMAND_EVENT}};
    size_t n = 0;
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    list_push(&l->applied, &c[0].link);
    list_push(&l->applied, &c[1].link);
    inbox_post(&f.ts, l->id, &c[2]);
    inbox_post(&f.ts, l->id, &c[3]);
    live_reload(&f.ts, l);
    CHECK(!l->loaded && list_empty(&l->applied), "its state is gone");
    LIST_FOREACH (link, after, &l->inbox)
        CHECK(link == &c[n++].link, "command %zu is out of order", n);
    CHECK(n == 4, "%zu commands", n);
    floor_end(&f);
}

/* ---- queues ---- */

static void queue(struct live *l, uint16_t step)
{
    queue_step(&f.ts, &l->steps[step], queue_lane(&f.ts, l, step));
}

static const struct live *first_of_queue(void)
{
    const struct lane *lane =
        dispatch_lane(dispatch_agent(&f.ts.dispatch, SLICE("ag")), SLICE("x"));
    struct heap_node *first = heap_min(&lane->queue);

    ASSERT(first);
    return CONTAINER_OF(first, struct live_step, want)->live;
}

static void a_queue_goes_by_priority_and_age(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *old = floor_task(&f, "old", 5);
    f.now += 2 * AGING_MS;
    struct live *recent = floor_task(&f, "recent", 5);
    struct live *urgent = floor_task(&f, "urgent", 9);
    queue(recent, 0);
    queue(urgent, 0);
    queue(old, 0);
    CHECK(first_of_queue() == urgent, "four levels are worth more than two minutes");
    queue_leave(&f.ts, &urgent->steps[0]);
    CHECK(first_of_queue() == old, "the older one");
    CHECK(f.ts.counts.waiting == 2, "%zu wait", f.ts.counts.waiting);
    floor_end(&f);
}

static void what_failed_in_an_outage_goes_behind_and_so_does_a_bulk_operation(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *spared = floor_task(&f, "spared", 5);
    struct live *bulk = floor_task(&f, "bulk", 5);
    f.now += 1000;
    struct live *recent = floor_task(&f, "recent", 5);
    spared->task.steps[0].spared_at = f.now + 1;
    bulk->bulk_at = f.now;
    queue(bulk, 0);
    queue(spared, 0);
    queue(recent, 0);
    CHECK(f.ts.counts.bulk_waiting == 1, "%zu of bulk operations", f.ts.counts.bulk_waiting);
    CHECK(queue_bulk_room(&f.ts, 5) == 0, "the agent has no place for what waits already");
    CHECK(first_of_queue() == recent, "not tried yet");
    queue_leave(&f.ts, &recent->steps[0]);
    CHECK(first_of_queue() == spared, "then what failed");
    queue_leave_all(&f.ts, spared);
    CHECK(first_of_queue() == bulk, "then the operation: one level of priority less");
    queue_leave_all(&f.ts, bulk);
    CHECK(f.ts.counts.bulk_waiting == 0 && queue_bulk_room(&f.ts, 5) == 5, "there is room");
    floor_end(&f);
}

static void a_dropped_task_is_in_no_list(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    queue(l, 0);
    heap_push(&f.ts.naps, &l->nap, f.now + 1);
    CHECK(link_is_in(&l->dirty_link), "the claim is to be stored");
    live_drop(&f.ts, l);
    CHECK(!live_find(&f.ts, SLICE("t")) && f.ts.counts.live == 0, "it is gone");
    CHECK(list_empty(&f.ts.dirty) && f.ts.naps.len == 0 && f.ts.counts.waiting == 0, "everywhere");
    floor_end(&f);
}

static void only_what_is_ready_is_ready(void **state)
{
    struct ready *ready = NULL;
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    CHECK(queue_ready(&f.ts, l, &ready) == 1 && ready[0].step == 0, "b comes after a");
    l->task.not_before = f.now + 5000;
    CHECK(queue_ready(&f.ts, l, &ready) == 1 && ready[0].at == f.now + 5000, "not before its time");
    floor_end(&f);
}

static void time_is_frozen_for_a_turn(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    tasks_freeze_now(&f.ts);
    int64_t at = tasks_now(&f.ts);
    f.now += 10;
    CHECK(tasks_now(&f.ts) == at, "frozen");
    tasks_release_now(&f.ts);
    CHECK(tasks_now(&f.ts) == at + 10, "released");
    floor_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_for_an_unknown_task_reads_it),
        cmocka_unit_test(a_submission_is_tried_without_a_read),
        cmocka_unit_test(what_overtakes_a_read_is_marked),
        cmocka_unit_test(a_read_puts_applied_commands_before_later_ones),
        cmocka_unit_test(a_queue_goes_by_priority_and_age),
        cmocka_unit_test(what_failed_in_an_outage_goes_behind_and_so_does_a_bulk_operation),
        cmocka_unit_test(a_dropped_task_is_in_no_list),
        cmocka_unit_test(only_what_is_ready_is_ready),
        cmocka_unit_test(time_is_frozen_for_a_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
