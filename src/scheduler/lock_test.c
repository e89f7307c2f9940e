/* Locks, through the scheduler and the store: a task waits for its lock in the store, holds it from
 * its first step to its end, and the next one begins when it gives it back. */
#include "base/when.h"
#include "scheduler/scheduler_test_kit.h"

#define CALL(name, more) \
    "{\"name\":\"" name "\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"" more "}"
#define WAIT(name, wait)  "{\"name\":\"" name "\",\"wait\":" wait "}"
#define LOCK(more, steps) "\"lock\":{\"key\":\"${ .input.k }\"" more "},\"steps\":[" steps "]"
#define QUEUE             "@lock/w/a"
#define INPUT             SLICE("{\"k\":\"a\"}")

static struct stage s;

static struct task_row row_of(const struct client *c, struct arena *a)
{
    struct task_row row = {0};
    struct error e = {0};
    enum err err = s.store->ops->get(s.store, c->ask.id, a, &row, &e);

    CHECK(err == ERR_OK, "%s", e.text);
    return row;
}

static int64_t row_started_at(const struct client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};

    return row_of(c, &a).started_at;
}

static void check_row(const struct client *c, enum task_state state, const char *waiting_for,
                      bool holds)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = row_of(c, &a);

    CHECK(row.state == state, "%s is %s", c->id, task_state_text(row.state));
    CHECK(slice_eq(row.waiting_for, waiting_for ? slice_of(waiting_for) : SLICE_NONE),
          "%s waits for %.*s", c->id, SLICE_ARG(row.waiting_for));
    CHECK((row.lock_since != 0) == holds, "%s holds its lock: %d", c->id, holds);
}

static const struct client *submit(const char *workflow, struct slice input, enum err expected)
{
    struct client *c = stage_submit(&s, workflow, input);

    c->expected = expected;
    stage_until_answered(&s, c);
    return c;
}

static void ask_of(enum ask_kind kind, const struct client *c, enum err expected)
{
    struct client *asked =
        stage_ask(&s, &(struct ask){.kind = kind, .id = c->ask.id, .reason = SLICE("why")});

    asked->expected = expected;
    stage_until_answered(&s, asked);
    stage_pass(&s, 1);
}

static void supply(const struct client *c, struct slice step)
{
    const struct ask a = {.kind = ASK_SUPPLY,
                          .id = c->ask.id,
                          .step = step,
                          .output = SLICE("1"),
                          .reason = SLICE("why")};

    stage_until_answered(&s, stage_ask(&s, &a));
    stage_pass(&s, 1);
}

static void one_after_the_other_takes_it(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *second = submit("w", INPUT, ERR_OK);
    const struct client *other = submit("w", SLICE("{\"k\":\"b\"}"), ERR_OK);
    stage_pass(&s, 1);
    check_row(first, TASK_PENDING, "@wait", true);
    check_row(second, TASK_PENDING, QUEUE, false);
    check_row(other, TASK_PENDING, "@wait", true);
    CHECK(stage_stats(&s).live == 0, "who waits is not in memory");
    stage_pass(&s, MS_PER_H);
    check_row(first, TASK_PROCESSED, NULL, false);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_pass(&s, MS_PER_H);
    check_row(second, TASK_PROCESSED, NULL, false);
    stage_end(&s);
}

static void who_waits_for_it_asks_no_agent(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", CALL("x", "")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(first, TASK_PENDING, "ag", true); /* nobody is connected: it holds it meanwhile */
    check_row(second, TASK_PENDING, QUEUE, false);
    stage_take_requests(&s, "ag", 1);
    CHECK(slice_is(s.idempotency_key, "t-0/x"), "the first one's");
    check_row(second, TASK_PENDING, QUEUE, false);
    stage_end(&s);
}

static void conditions_are_not_decided_before(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    stage_define(&s, "v",
                 "\"lock\":{\"key\":\"a\",\"shared\":\"w\"},\"steps\":["
                 "{\"name\":\"x\",\"wait\":\"1h\",\"if\":\".input.long\"}]");
    submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *second = submit("v", SLICE("{}"), ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, QUEUE, false);
    stage_pass(&s, MS_PER_H);
    check_row(second, TASK_PROCESSED, NULL, false);
    stage_end(&s);
}

static void who_does_not_wait_is_refused(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK(",\"if_taken\":\"refuse\"", WAIT("x", "\"1h\"")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    check_row(first, TASK_PENDING, "@wait", true);
    const struct client *second = submit("w", INPUT, ERR_TAKEN);
    CHECK(strstr(second->ask.story, "lock w/a is held by another task"), "%s", second->ask.story);
    struct client *reader = stage_submit(&s, "w", INPUT);
    reader->expected = ERR_TAKEN;
    reader->ask.reads_all = true;
    stage_until_answered(&s, reader);
    CHECK(strstr(reader->ask.story, "lock w/a is held by task t-0"), "%s", reader->ask.story);
    stage_pass(&s, MS_PER_H);
    submit("w", INPUT, ERR_OK);
    stage_end(&s);
}

static void a_key_that_is_none_is_refused(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", CALL("x", "")));
    const struct client *c = submit("w", SLICE("{\"k\":[]}"), ERR_INVALID);
    CHECK(c->ask.bad_key && strstr(c->ask.story, "lock.key of workflow \"w\": found []"), "%s",
          c->ask.story);
    CHECK(stage_stats(&s).live == 0, "nothing is left of it");
    stage_end(&s);
}

/* What was accepted once is accepted again, whatever a newer version asks for. */
static void who_is_there_needs_no_key(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT("x", "\"1h\"") "]");
    const struct client *first = submit("w", SLICE("{}"), ERR_OK);
    stage_pass(&s, 1);
    CHECK(stage_stats(&s).live == 0, "it is in the store");
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    struct ask a = first->ask;
    a.definition = registry_find(&s.registry, SLICE("w"), 0);
    const struct client *again = stage_ask(&s, &a);
    stage_until_answered(&s, again);
    CHECK(again->ask.existed && again->ask.version == 1 && !again->ask.bad_key, "the same task");
    a.content.hash = 7;
    struct client *other = stage_ask(&s, &a);
    other->expected = ERR_CONFLICT;
    stage_until_answered(&s, other);
    CHECK(!other->ask.bad_key, "that it exists matters more");
    CHECK(submit("w", SLICE("{}"), ERR_INVALID)->ask.bad_key, "a new one");
    CHECK(stage_stats(&s).live == 0, "nothing is left of it");
    stage_end(&s);
}

/* Each key is evaluated within the turn's share. */
static void keys_that_are_dear_take_turns(void **state)
{
    enum { MANY = 10 };
    CLEANUP(buf_fini) struct buf input = {0};
    const struct client *c[MANY];
    (void)state;

    buf_str(&input, "{\"a\":[0");
    for (int i = 0; i < 100000; i++)
        buf_str(&input, ",0");
    buf_str(&input, "]}");
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"lock\":{\"key\":\"${ .input.a | length }\"},\"steps\":[" WAIT("x",
                                                                                  "\"1h\"") "]");
    for (int i = 0; i < MANY; i++)
        c[i] = stage_submit(&s, "w", buf_view(&input));
    for (int i = 0; i < MANY; i++)
        stage_until_answered(&s, c[i]);
    CHECK(stage_stats(&s).evaluations == MANY, "%llu evaluations",
          (unsigned long long)stage_stats(&s).evaluations);
    CHECK(stage_stats(&s).turns_left_out >= MANY - 1, "each has a turn");
    stage_pass(&s, 1);
    check_row(c[0], TASK_PENDING, "@wait", true);
    check_row(c[1], TASK_PENDING, "@lock/w/100001", false);
    stage_end(&s);
}

static void who_is_paused_is_passed_over(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *third = submit("w", INPUT, ERR_OK);
    ask_of(ASK_PAUSE, second, ERR_OK);
    check_row(second, TASK_PENDING, NULL, false);
    stage_pass(&s, MS_PER_H);
    check_row(third, TASK_PENDING, "@wait", true);
    ask_of(ASK_RESUME, second, ERR_OK);
    check_row(second, TASK_PENDING, QUEUE, false);
    stage_pass(&s, MS_PER_H);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

static void a_start_time_comes_before_the_queue(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"2h\"")));
    struct client *later = stage_submit(&s, "w", INPUT);
    later->ask.not_before = s.now + MS_PER_H;
    stage_until_answered(&s, later);
    const struct client *now = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(later, TASK_PENDING, "time", false);
    check_row(now, TASK_PENDING, "@wait", true);
    stage_pass(&s, MS_PER_H);
    check_row(later, TASK_PENDING, QUEUE, false);
    stage_pass(&s, MS_PER_H);
    check_row(later, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

/* A moment that cannot be evaluated holds the first one. */
static void an_error_keeps_it_until_it_is_closed(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"on_failure\":\"hold\"," LOCK("", WAIT("x", "{\"until\":\"${ .input.at }\"}")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(first, TASK_ERROR, NULL, true);
    const struct client *second =
        submit("w", SLICE("{\"k\":\"a\",\"at\":\"2100-01-01T00:00:00Z\"}"), ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, QUEUE, false);
    ask_of(ASK_CLOSE, first, ERR_OK);
    check_row(first, TASK_ERROR, NULL, false);
    check_row(second, TASK_PENDING, "@wait", true);
    ask_of(ASK_REOPEN, first, ERR_TAKEN);
    check_row(first, TASK_ERROR, NULL, false);
    ask_of(ASK_UNDO, second, ERR_OK);
    check_row(second, TASK_COMPENSATED, NULL, false);
    ask_of(ASK_REOPEN, first, ERR_OK);
    check_row(first, TASK_ERROR, NULL, true);
    stage_end(&s);
}

static void an_undo_that_does_nothing_needs_no_lock(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, MS_PER_H + 1);
    check_row(first, TASK_PROCESSED, NULL, false);
    const struct client *second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, "@wait", true);
    ask_of(ASK_UNDO, first, ERR_OK); /* nothing is to be undone: it ends at once */
    check_row(first, TASK_COMPENSATED, NULL, false);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

static void an_undo_of_what_has_ended_needs_it(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 LOCK("", "{\"name\":\"x\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":{\"action\":"
                          "\"y\"}},{\"name\":\"z\",\"wait\":\"1h\"}"));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    supply(first, SLICE("x"));
    stage_pass(&s, MS_PER_H + 1);
    check_row(first, TASK_PROCESSED, NULL, false);
    const struct client *second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, "ag", true);
    ask_of(ASK_UNDO, first, ERR_TAKEN);
    check_row(first, TASK_PROCESSED, NULL, false);
    ask_of(ASK_UNDO, second, ERR_OK);
    check_row(second, TASK_COMPENSATED, NULL, false);
    ask_of(ASK_UNDO, first, ERR_OK);
    check_row(first, TASK_PENDING, "ag", true);
    const struct client *third = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(third, TASK_PENDING, QUEUE, false);
    stage_end(&s);
}

/* Versions differ in their bounds: the first of the queue holds up the next one, which has room. */
static void begin_queue_of_two(const struct client **ret_first, const struct client **ret_second)
{
    stage_begin(&s);
    stage_define(&s, "w", "" LOCK("", WAIT("x", "\"9h\"")));
    submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    *ret_first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    stage_define(&s, "w", LOCK(",\"max\":2", WAIT("x", "\"9h\"")));
    *ret_second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(*ret_first, TASK_PENDING, QUEUE, false);
    check_row(*ret_second, TASK_PENDING, QUEUE, false);
}

static void who_leaves_the_queue_lets_others_go_on(void **state)
{
    const struct client *first = NULL;
    const struct client *second = NULL;
    (void)state;

    begin_queue_of_two(&first, &second);
    ask_of(ASK_PAUSE, first, ERR_OK);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_end(&s);
    begin_queue_of_two(&first, &second);
    ask_of(ASK_UNDO, first, ERR_OK);
    check_row(first, TASK_COMPENSATED, NULL, false);
    CHECK(row_started_at(first) == 0, "it never began");
    check_row(second, TASK_PENDING, "@wait", true);
    CHECK(row_started_at(second) != 0, "it began");
    stage_end(&s);
}

static void as_many_as_max_hold_it(void **state)
{
    const struct client *c[5];
    int holders = 0;
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", LOCK(",\"max\":3", WAIT("x", "\"1h\"")));
    for (size_t i = 0; i < COUNT_OF(c); i++)
        c[i] = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        holders += row_of(c[i], &a).lock_since != 0;
    }
    CHECK(holders == 3, "%d hold it", holders);
    stage_pass(&s, MS_PER_H);
    CHECK(s.ended == 3, "%zu ended", s.ended);
    stage_pass(&s, MS_PER_H);
    CHECK(s.ended == COUNT_OF(c), "%zu ended", s.ended);
    stage_end(&s);
}

static void check_replaced(const struct client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = row_of(c, &a);

    CHECK(row.state == TASK_COMPENSATED && row.lock_since == 0, "%s is %s", c->id,
          task_state_text(row.state));
    CHECK(memmem(row.doc.ptr, row.doc.len, "\"replaced\"", 10), "%.*s", SLICE_ARG(row.doc));
}

static void the_newest_replaces_those_that_wait(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK(",\"if_taken\":\"replace\"", WAIT("x", "\"1h\"")));
    stage_define(&s, "v", LOCK(",\"if_taken\":\"replace\",\"shared\":\"w\"", WAIT("x", "\"1h\"")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *second = submit("w", INPUT, ERR_OK);
    const struct client *other = submit("v", INPUT, ERR_OK);
    const struct client *key = submit("w", SLICE("{\"k\":\"b\"}"), ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, QUEUE, false);
    const struct client *third = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(first, TASK_PENDING, "@wait", true);
    check_replaced(second);
    check_row(third, TASK_PENDING, QUEUE, false);
    check_row(other, TASK_PENDING, QUEUE, false); /* another workflow's */
    check_row(key, TASK_PENDING, "@wait", true);
    stage_pass(&s, MS_PER_H);
    check_row(other, TASK_PENDING, "@wait", true);
    stage_pass(&s, MS_PER_H);
    check_row(third, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

/* It cannot be undone any more: it waits on. */
static void who_has_a_pivot_is_not_replaced(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 LOCK(",\"if_taken\":\"replace\"",
                      "{\"name\":\"p\",\"agent\":\"ag\",\"action\":\"x\",\"pivot\":true}," WAIT(
                          "x", "\"1h\"")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(first, TASK_PENDING, "ag", true);
    const struct client *second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    supply(second, SLICE("p"));
    check_row(second, TASK_PENDING, QUEUE, false);
    const struct client *third = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, QUEUE, false);
    check_row(third, TASK_PENDING, QUEUE, false);
    ask_of(ASK_UNDO, first, ERR_OK);
    check_row(first, TASK_COMPENSATED, NULL, false);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_pass(&s, MS_PER_H);
    check_row(second, TASK_PROCESSED, NULL, false);
    check_row(third, TASK_PENDING, "ag", true);
    stage_end(&s);
}

static void who_is_paused_is_replaced_later(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", LOCK(",\"if_taken\":\"replace\"", WAIT("x", "\"1h\"")));
    submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    const struct client *second = submit("w", INPUT, ERR_OK);
    ask_of(ASK_PAUSE, second, ERR_OK);
    const struct client *third = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, NULL, false);
    ask_of(ASK_RESUME, second, ERR_OK);
    check_replaced(second);
    check_row(third, TASK_PENDING, QUEUE, false);
    stage_end(&s);
}

/* ---- who gives a lock back does not look at it any more ---- */

/* Until the end of a task is in the store. */
static void until_stored(struct stage *at, const struct client *c, enum task_state state)
{
    CLEANUP(arena_fini) struct arena a = {0};

    at->asleep = false;
    while (row_of(c, &a).state != state)
        stage_turn(at);
}

/* A node that ends takes nothing new: the lock is given back, and nobody looks. */
static void gives_back_as_the_last(struct stage *at, const struct client *c)
{
    scheduler_drain(at->scheduler);
    (void)stage_ask(at, &(struct ask){.kind = ASK_CANCEL, .id = c->ask.id, .reason = SLICE("why")});
    until_stored(at, c, TASK_COMPENSATED);
}

/* The next process of the node, before its first turn. */
static const struct client *begin_again_with_one_waiting(void)
{
    stage_begin(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    const struct client *first = submit("w", INPUT, ERR_OK);
    const struct client *second = submit("w", INPUT, ERR_OK);
    stage_pass(&s, 1);
    gives_back_as_the_last(&s, first);
    check_row(second, TASK_PENDING, QUEUE, false);
    stage_restart(&s);
    return second;
}

static void at_a_start_all_locks_are_looked_at(void **state)
{
    const struct client *second = begin_again_with_one_waiting();
    (void)state;

    stage_pass(&s, 1);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

static struct store_ops broken;

static enum err commit_fails(struct store *st, struct batch *b, struct arena *a, struct error *e)
{
    (void)st;
    (void)b;
    (void)a;
    return error_set(e, ERR_BUSY, "the disk is full");
}

static void after_a_failure_they_are_looked_at_again(void **state)
{
    const struct client *second = begin_again_with_one_waiting();
    const struct store_ops *works = s.store->ops;
    (void)state;

    broken = *works;
    broken.commit = commit_fails;
    s.store->ops = &broken;
    while (s.troubles == 0)
        stage_turn(&s);
    s.store->ops = works;
    stage_pass(&s, MS_PER_MIN);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

static void turns(struct stage *at, int count)
{
    at->asleep = false;
    for (int i = 0; i < count; i++)
        stage_turn(at);
}

static void locks_of_other_nodes_are_looked_at(void **state)
{
    static struct stage other; /* too large for the stack */
    (void)state;

    stage_begin_shared(&s);
    stage_define(&s, "w", LOCK("", WAIT("x", "\"1h\"")));
    turns(&s, 20);
    const struct client *first = submit("w", INPUT, ERR_OK);
    const struct client *second = submit("w", INPUT, ERR_OK);
    turns(&s, 20);
    check_row(second, TASK_PENDING, QUEUE, false);
    stage_join(&other, &s);
    stage_define(&other, "w", LOCK("", WAIT("x", "\"1h\"")));
    turns(&other, 20);
    gives_back_as_the_last(&other, first);
    check_row(second, TASK_PENDING, QUEUE, false);
    s.now = other.now;
    stage_leave(&other);
    turns(&s, 100);
    check_row(second, TASK_PENDING, "@wait", true);
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_replaces_those_that_wait),
        cmocka_unit_test(who_has_a_pivot_is_not_replaced),
        cmocka_unit_test(who_is_paused_is_replaced_later),
        cmocka_unit_test(one_after_the_other_takes_it),
        cmocka_unit_test(who_waits_for_it_asks_no_agent),
        cmocka_unit_test(conditions_are_not_decided_before),
        cmocka_unit_test(who_does_not_wait_is_refused),
        cmocka_unit_test(a_key_that_is_none_is_refused),
        cmocka_unit_test(who_is_there_needs_no_key),
        cmocka_unit_test(keys_that_are_dear_take_turns),
        cmocka_unit_test(who_leaves_the_queue_lets_others_go_on),
        cmocka_unit_test(who_is_paused_is_passed_over),
        cmocka_unit_test(a_start_time_comes_before_the_queue),
        cmocka_unit_test(an_error_keeps_it_until_it_is_closed),
        cmocka_unit_test(an_undo_that_does_nothing_needs_no_lock),
        cmocka_unit_test(an_undo_of_what_has_ended_needs_it),
        cmocka_unit_test(as_many_as_max_hold_it),
        cmocka_unit_test(at_a_start_all_locks_are_looked_at),
        cmocka_unit_test(after_a_failure_they_are_looked_at_again),
        cmocka_unit_test(locks_of_other_nodes_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
