/* Signals, through the scheduler and the store: a task that waits for one costs nothing, and
 * whoever decides on a signal goes on with the task. */
#include <stdio.h>

#include "base/when.h"
#include "scheduler/scheduler_test_kit.h"
#include "store/codec/codec.h"
#include "store/row_request.h"

#define CALL(name, more) \
    "{\"name\":\"" name "\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"" more "}"
#define WAIT                 "{\"name\":\"a\",\"wait\":\"1h\"}"
#define SIGNAL(name, signal) "{\"name\":\"" name "\",\"signal\":" signal "}"

static struct stage s;

static struct task_row row_of(const struct client *c, struct arena *a)
{
    struct task_row row = {0};
    struct error e = {0};
    enum err err = s.store->ops->get(s.store, c->ask.id, a, &row, &e);

    CHECK(err == ERR_OK, "%s", e.text);
    return row;
}

static void check_row(const struct client *c, enum task_state state, const char *waiting_for)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = row_of(c, &a);

    CHECK(row.state == state, "%s", task_state_text(row.state));
    CHECK(slice_eq(row.waiting_for, waiting_for ? slice_of(waiting_for) : SLICE_NONE),
          "waits for %.*s", SLICE_ARG(row.waiting_for));
}

static bool doc_has(const struct client *c, const char *text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = row_of(c, &a);

    return memmem(row.doc.ptr, row.doc.len, text, strlen(text)) != NULL;
}

static const struct client *answered(const struct ask *a, enum err expected)
{
    struct client *c = stage_ask(&s, a);

    c->expected = expected;
    stage_until_answered(&s, c);
    stage_pass(&s, 1);
    return c;
}

static const struct client *sends_and(const struct client *c, const char *name, const char *key,
                                      const char *data, enum err expected)
{
    const struct ask a = {.kind = ASK_SIGNAL,
                          .id = c->ask.id,
                          .signal = {.key = slice_of(key),
                                     .name = slice_of(name),
                                     .data = {.json = slice_of(data)},
                                     .content = slice_of(data)}};
    return answered(&a, expected);
}

static const struct client *sends(const struct client *c, const char *name, const char *key,
                                  const char *data)
{
    return sends_and(c, name, key, data, ERR_OK);
}

static void a_task_that_waits_is_no_burden(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" SIGNAL("a", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PENDING, "@signal");
    CHECK(stage_stats(&s).live == 0, "it is not in memory");
    uint64_t claims = stage_stats(&s).claims;
    stage_pass(&s, 1000 * MS_PER_D);
    check_row(c, TASK_PENDING, "@signal");
    CHECK(stage_stats(&s).claims == claims, "nobody claims it");
    const struct client *sender = sends(c, "go", "k", "{\"x\":1}");
    CHECK(sender->ask.outcome == ERR_OK && !sender->ask.existed, "it is taken");
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"output\":{\"name\":\"go\",\"data\":{\"x\":1}}"), "its output");
    CHECK(stage_stats(&s).claims == claims, "whoever decides on it goes on with it");
    CHECK(s.ended == 1, "its end was reported");
    stage_end(&s);
}

static void what_came_before_is_taken_when_the_step_begins(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT "," SIGNAL("b", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    CHECK(sends(c, "go", "k", "1")->ask.outcome == ERR_OK, "it is kept");
    check_row(c, TASK_PENDING, "@wait");
    CHECK(doc_has(c, "\"state\":\"kept\""), "in the row");
    stage_pass(&s, MS_PER_H);
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"state\":\"taken\",\"step\":\"b\""), "by the step");
    stage_end(&s);
}

static void one_that_does_not_match_is_kept(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(
        &s, "w",
        "\"steps\":[" SIGNAL(
            "a",
            "{\"name\":\"go\",\"match\":\".data >= .input.least\"}") "," SIGNAL("b",
                                                                                "{\"name\":"
                                                                                "\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{\"least\":5}"));
    stage_until_answered(&s, c);
    CHECK(sends(c, "go", "k1", "3")->ask.outcome == ERR_OK, "it is kept");
    check_row(c, TASK_PENDING, "@signal");
    CHECK(stage_stats(&s).live == 0, "the task is not in memory");
    CHECK(sends(c, "go", "k2", "4")->ask.outcome == ERR_OK, "so is another");
    check_row(c, TASK_PENDING, "@signal");
    CHECK(sends(c, "go", "k3", "5")->ask.outcome == ERR_OK, "this one matches");
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"output\":{\"name\":\"go\",\"data\":5}"), "the first step");
    CHECK(doc_has(c, "\"output\":{\"name\":\"go\",\"data\":3}"), "the second takes the oldest");
    CHECK(doc_has(c, "\"key\":\"k2\",\"name\":\"go\",\"state\":\"kept\""), "one is left");
    stage_end(&s);
}

static void a_key_is_one_signal(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[" SIGNAL("a",
                                      "{\"name\":\"go\"}") "," SIGNAL("b",
                                                                      "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    const struct client *first = sends(c, "go", "k", "1");
    const struct client *again = sends(c, "go", "k", "1");
    CHECK(again->ask.outcome == ERR_OK && again->ask.existed, "the same again");
    CHECK(again->ask.signal_at == first->ask.signal_at, "it arrived once");
    check_row(c, TASK_PENDING, "@signal");
    const struct client *other = sends_and(c, "go", "k", "2", ERR_CONFLICT);
    CHECK(other->ask.outcome == ERR_CONFLICT && other->ask.refusal == OBSTACLE_SIGNAL_OTHER,
          "other content");
    CHECK(sends(c, "go", "k2", "1")->ask.outcome == ERR_OK, "another key");
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(sends(c, "go", "k2", "1")->ask.existed, "the same, after the end");
    const struct client *late = sends_and(c, "go", "k3", "1", ERR_CONFLICT);
    CHECK(late->ask.outcome == ERR_CONFLICT && late->ask.refusal == OBSTACLE_STATE, "too late");
    stage_end(&s);
}

static void what_no_step_waits_for_is_refused(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" SIGNAL("a", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    const struct client *odd = sends_and(c, "gone", "k", "1", ERR_CONFLICT);
    CHECK(odd->ask.outcome == ERR_CONFLICT && odd->ask.refusal == OBSTACLE_SIGNAL_UNWANTED, "%s",
          odd->ask.story);
    check_row(c, TASK_PENDING, "@signal");
    stage_end(&s);
}

static void a_paused_task_keeps_it(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" SIGNAL("a", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    struct ask verb = {.kind = ASK_PAUSE, .id = c->ask.id, .reason = SLICE("a test")};
    stage_until_answered(&s, stage_ask(&s, &verb));
    CHECK(sends(c, "go", "k", "1")->ask.outcome == ERR_OK, "it is kept");
    check_row(c, TASK_PENDING, NULL);
    verb.kind = ASK_RESUME;
    stage_until_answered(&s, stage_ask(&s, &verb));
    stage_pass(&s, 1);
    check_row(c, TASK_PROCESSED, NULL);
    stage_end(&s);
}

static void signals_are_dropped(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT "," SIGNAL("b", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    (void)sends(c, "go", "k1", "1");
    (void)sends(c, "go", "k2", "2");
    struct ask drop = {.kind = ASK_DROP, .id = c->ask.id, .signal = {.name = SLICE("go")}};
    drop.signal.key = SLICE("k1");
    CHECK(answered(&drop, ERR_OK)->answered, "one is dropped");
    CHECK(answered(&drop, ERR_CONFLICT)->answered, "it is gone");
    stage_pass(&s, MS_PER_H);
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"output\":{\"name\":\"go\",\"data\":2}"), "the other one is taken");
    stage_end(&s);
}

static void a_signal_has_the_task_undone(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"on_signal\":{\"stop\":\"undo\"},\"steps\":[" CALL("a", "") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    CHECK(sends(c, "stop", "k", "null")->ask.outcome == ERR_OK, "it is taken");
    check_row(c, TASK_COMPENSATED, NULL);
    CHECK(doc_has(c, "\"error\":{\"code\":\"signal\",\"message\":\"stop\"}"), "the reason");
    stage_end(&s);
}

/* {"a":[0,0,...],"n":1}: long enough that two looks at it are too much for a turn. */
static struct slice heavy(struct arena *a)
{
    enum { ZEROS = 100000 };
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "{\"n\":1,\"a\":[0");
    for (size_t i = 1; i < ZEROS; i++)
        buf_str(&b, ",0");
    buf_str(&b, "]}");
    return arena_copy(a, buf_view(&b));
}

/* As a supervisor does it: the step was overdue at that moment. */
static void requests_timeout(const struct client *c, const char *step, int64_t overdue_at)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct task_row row = row_of(c, &a);
    struct request_item item = {.kind = REQUEST_ATTEMPT,
                                .step = slice_of(step),
                                .outlook = SLICE("undo"),
                                .until = overdue_at};
    struct change change = {.kind = CHANGE_REQUEST, .release = !row.locked_by.ptr, .row = row};
    struct batch batch = {.changes = &change, .change_count = 1};
    struct error e = {0};

    row_request_write(&text, &(struct request){&item, 1});
    change.row.revision++;
    change.row.request = buf_view(&text);
    change.row.wake_at = s.now + 60 * MS_PER_S;
    change.row.payloads = NULL;
    change.row.payload_count = 0;
    if (change.release) {
        change.row.waiting_for = SLICE("time");
        change.row.rank = s.now;
    }
    enum err err = s.store->ops->commit(s.store, &batch, &a, &e);
    CHECK(err == ERR_OK && change.outcome == ERR_OK, "%s", e.text);
    scheduler_requested(s.scheduler, c->ask.id, change.release);
    stage_pass(&s, 1);
}

static void hands_over(void)
{
    struct work *w = stage_call_of("ag", 1);

    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[w->result_count++] = (struct work_result){.token = s.token, .elsewhere = true};
    stage_call(&s, w);
    CHECK(s.status == RESULT_ACCEPTED, "its result comes from elsewhere");
}

/* Two steps look at each signal, of which one fits in a turn. The task may not leave memory in
 * between, although all that runs of it runs elsewhere. */
static void it_is_taken_while_an_attempt_is_elsewhere(void **state)
{
    struct arena a = {0};
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[" CALL(
                     "x",
                     ",\"after\":[]") ","
                                      "{\"name\":\"a\",\"after\":[],\"signal\":{\"name\":\"go\","
                                      "\"match\":\".input.a[0] == 1\"}},"
                                      "{\"name\":\"b\",\"after\":[],\"signal\":{\"name\":\"go\","
                                      "\"match\":\".input.a[0] == 0\"}}]");
    const struct client *c = stage_submit(&s, "w", heavy(&a));
    stage_until_answered(&s, c);
    stage_take_requests(&s, "ag", 1);
    hands_over();
    stage_pass(&s, 1);
    CHECK(stage_stats(&s).live == 0, "it need not be in memory");
    CHECK(sends(c, "go", "k", "1")->ask.outcome == ERR_OK, "it is kept");
    stage_pass(&s, 1);
    CHECK(doc_has(c, "\"state\":\"taken\",\"step\":\"b\""), "and taken");
    stage_end(&s);
    arena_fini(&a);
}

#define HURRY                                                                       \
    "{\"name\":\"a\",\"signal\":{\"name\":\"go\",\"match\":\".data == .input.n\"}," \
    "\"complete_by\":\"1m\",\"default\":{\"name\":\"nobody\"}}"

static int64_t complete_by_of(const struct client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = row_of(c, &a);
    struct error e = {0};
    struct task t;

    enum err err =
        task_decode(&registry_find(&s.registry, row.workflow, 0)->workflow, &row, &a, &t, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    return t.steps[0].complete_by;
}

static const struct client *waits_until_it_is_late(void)
{
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" HURRY "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{\"n\":1}"));
    stage_until_answered(&s, c);
    stage_pass(&s, 120 * MS_PER_S); /* no supervisor came */
    CHECK(sends(c, "go", "k", "1")->ask.outcome == ERR_OK, "it is kept");
    CHECK(doc_has(c, "\"state\":\"kept\""), "it is late");
    check_row(c, TASK_PENDING, "@signal");
    return c;
}

static void what_comes_late_does_not_count(void **state)
{
    (void)state;
    const struct client *c = waits_until_it_is_late();
    requests_timeout(c, "a", complete_by_of(c));
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"output\":{\"name\":\"nobody\"}"), "nobody sent one in time");
    CHECK(doc_has(c, "\"state\":\"kept\""), "it stays");
    stage_end(&s);
}

/* The supervisor knows of the grace time, and says so when it is over. */
static void what_comes_in_the_grace_time_counts(void **state)
{
    (void)state;
    const struct client *c = waits_until_it_is_late();
    requests_timeout(c, "a", s.now);
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"output\":{\"name\":\"go\",\"data\":1}"), "it is taken");
    stage_end(&s);
}

static void the_end_of_its_time_costs_a_turn_no_more_than_others(void **state)
{
    enum { MANY = 15 };
    struct arena a = {0};
    char key[16];
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"a\",\"signal\":{\"name\":\"go\","
                 "\"match\":\".input.a[0] == .data\"},\"complete_by\":\"1m\","
                 "\"default\":{\"name\":\"nobody\"}}]");
    const struct client *c = stage_submit(&s, "w", heavy(&a));
    stage_until_answered(&s, c);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        (void)sends(c, "go", key, "1");
    }
    stage_pass(&s, 120 * MS_PER_S);
    uint64_t before = stage_stats(&s).turns_left_out;
    requests_timeout(c, "a", complete_by_of(c));
    for (int i = 0; i < 1000 && s.ended == 0; i++)
        stage_pass(&s, 1);
    CHECK(stage_stats(&s).turns_left_out > before + MANY / 2, "many turns");
    CHECK(doc_has(c, "\"output\":{\"name\":\"nobody\"}"), "none matches");
    stage_end(&s);
    arena_fini(&a);
}

/* An attempt of another step keeps the task in memory. */
static void what_did_not_match_is_asked_anew_when_it_may(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"a\",\"signal\":{\"name\":\"go\","
                 "\"match\":\".data == .input.n\"}}," CALL("x", ",\"after\":[]") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{\"n\":1}"));
    stage_until_answered(&s, c);
    stage_take_requests(&s, "ag", 1);
    uint64_t before = stage_stats(&s).evaluations;
    (void)sends(c, "go", "k1", "2");
    (void)sends(c, "go", "k2", "3");
    CHECK(stage_stats(&s).evaluations == before + 2, "each is looked at once");
    const struct ask correct = {.kind = ASK_CORRECT,
                                .id = c->ask.id,
                                .input = SLICE("{\"n\":3}"),
                                .reason = SLICE("a test")};
    CHECK(answered(&correct, ERR_OK)->answered, "another input");
    stage_pass(&s, 1);
    CHECK(doc_has(c, "\"output\":{\"name\":\"go\",\"data\":3}"), "now the second one matches");
    stage_end(&s);
}

static void who_may_act_on_own_tasks_only_sends_to_no_others(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" SIGNAL("a", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}")); /* it is nobody's */
    stage_until_answered(&s, c);
    const struct ask a = {
        .kind = ASK_SIGNAL,
        .id = c->ask.id,
        .signal = {.key = SLICE("k"),
                   .name = SLICE("go"),
                   .data = {.json = SLICE("1")},
                   .content = SLICE("1")},
        .owner = SLICE("shop"),
        .own_only = true,
    };
    const struct client *sender = answered(&a, ERR_NOT_FOUND);
    CHECK(sender->ask.not_own, "it is of another one");
    check_row(c, TASK_PENDING, "@signal");
    stage_end(&s);
}

/* A client that has the whole content may repeat the submission of a task without an owner. */
static void a_submission_carries_signals_to_own_tasks_only(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" SIGNAL("a", "{\"name\":\"go\"}") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    struct carried_signal carried = {.signal = {.key = SLICE("k"),
                                                .name = SLICE("go"),
                                                .data = {.json = SLICE("1")},
                                                .content = SLICE("1")}};
    struct ask a = c->ask;
    a.signals = &carried;
    a.signal_count = 1;
    a.owner = SLICE("shop");
    a.signals_own_only = true;
    const struct client *sender = answered(&a, ERR_OK);
    CHECK(sender->ask.existed && sender->ask.signals_not_own, "it is nobody's");
    CHECK(carried.fate == CARRIED_REFUSED, "it is not sent");
    check_row(c, TASK_PENDING, "@signal");
    a.signals_own_only = false;
    sender = answered(&a, ERR_OK);
    CHECK(!sender->ask.signals_not_own && carried.fate == CARRIED_ACCEPTED, "it is sent");
    check_row(c, TASK_PROCESSED, NULL);
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_waits_is_no_burden),
        cmocka_unit_test(what_came_before_is_taken_when_the_step_begins),
        cmocka_unit_test(one_that_does_not_match_is_kept),
        cmocka_unit_test(a_key_is_one_signal),
        cmocka_unit_test(what_no_step_waits_for_is_refused),
        cmocka_unit_test(a_paused_task_keeps_it),
        cmocka_unit_test(signals_are_dropped),
        cmocka_unit_test(a_signal_has_the_task_undone),
        cmocka_unit_test(it_is_taken_while_an_attempt_is_elsewhere),
        cmocka_unit_test(what_comes_late_does_not_count),
        cmocka_unit_test(what_comes_in_the_grace_time_counts),
        cmocka_unit_test(the_end_of_its_time_costs_a_turn_no_more_than_others),
        cmocka_unit_test(what_did_not_match_is_asked_anew_when_it_may),
        cmocka_unit_test(who_may_act_on_own_tasks_only_sends_to_no_others),
        cmocka_unit_test(a_submission_carries_signals_to_own_tasks_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
