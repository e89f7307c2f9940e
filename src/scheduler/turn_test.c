/* The turn: nothing is answered before it is durable, conflicts are decided anew, and what was not
 * sent or not stored is done again. */
#include "scheduler/scheduler_test_kit.h"

#define STEP(more) \
    "\"steps\":[{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"" more "}]"

static struct stage s;

static struct work *call_with(struct work_result r, uint32_t places)
{
    struct work *w = stage_call_of("ag", places);

    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[w->result_count++] = r;
    return w;
}

static void check_row(const struct client *c, enum task_state state, bool locked)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {0};
    struct error e = {0};

    enum err err = s.store->ops->get(s.store, c->ask.id, &a, &row, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(row.state == state, "%s", task_state_text(row.state));
    CHECK((row.locked_by.ptr != NULL) == locked, "owned by %.*s", SLICE_ARG(row.locked_by));
}

/* ---- a task's way ---- */

static void a_task_goes_from_its_submission_to_its_end(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PENDING, false);
    stage_take_requests(&s, "ag", 1);
    CHECK(slice_is(s.idempotency_key, "t-0/s") && s.attempt == 1, "the request");
    check_row(c, TASK_PROCESSING, true);
    stage_call(&s, call_with((struct work_result){.token = s.token, .output = SLICE("7")}, 0));
    CHECK(s.status == RESULT_ACCEPTED && s.ended == 1 && s.ended_in == TASK_PROCESSED, "its end");
    check_row(c, TASK_PROCESSED, false);
    CHECK(stage_stats(&s).live == 0 && stage_stats(&s).open_attempts == 0, "it left memory");
    stage_end(&s);
}

static void nothing_is_answered_before_it_is_durable(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    stage_turn(&s); /* claims what an older boot left */
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    while (!stage_turn_without_store(&s))
        CHECK(!c->answered, "there is no job yet");
    CHECK(!c->answered, "its row is at the store");
    stage_store(&s);
    stage_until_answered(&s, c);
    stage_take_requests(&s, "ag", 1);
    struct work *w = call_with((struct work_result){.token = s.token, .output = SLICE("7")}, 0);
    s.call_answered = s.asleep = false;
    scheduler_work(s.scheduler, w);
    CHECK(stage_turn_without_store(&s), "its result is at the store");
    CHECK(!s.call_answered && s.ended == 0, "nobody knows of it");
    stage_store(&s);
    stage_turn(&s);
    CHECK(s.call_answered && s.ended == 1, "now");
    stage_end(&s);
}

static void a_result_counts_once(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    stage_until_answered(&s, stage_submit(&s, "w", SLICE("{}")));
    stage_take_requests(&s, "ag", 1);
    const struct work_result r = {.token = s.token, .output = SLICE("7")};
    stage_call(&s, call_with(r, 0));
    stage_call(&s, call_with(r, 0));
    CHECK(s.status == RESULT_REPEATED && s.ended == 1, "the second one");
    stage_call(&s, call_with((struct work_result){.token = SLICE("no token")}, 0));
    CHECK(s.status == RESULT_UNKNOWN, "a made-up token");
    stage_end(&s);
}

/* ---- what goes wrong ---- */

/* As the supervisor does, between the decision and its commit. */
static void write_request(const struct client *c, struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct change change = {.kind = CHANGE_REQUEST};
    struct batch batch = {.changes = &change, .change_count = 1};
    struct error e = {0};

    enum err err = s.store->ops->get(s.store, c->ask.id, &a, &change.row, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    change.row.revision++;
    change.row.request = text;
    change.row.payloads = NULL;
    change.row.payload_count = 0;
    err = s.store->ops->commit(s.store, &batch, &a, &e);
    CHECK(err == ERR_OK && change.outcome == ERR_OK, "%s", e.text);
}

static void a_conflict_is_decided_anew_on_the_fresh_row(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", "\"complete_by\":\"1h\"," STEP());
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    const struct ask pause = {.kind = ASK_PAUSE, .id = c->ask.id, .reason = SLICE("a test")};
    const struct client *p = stage_ask(&s, &pause);
    stage_turn(&s); /* reads the row */
    CHECK(stage_turn_without_store(&s), "the pause is at the store");
    write_request(c, SLICE("[{\"do\":\"extend\",\"until\":1800009999999}]"));
    stage_store(&s);
    CHECK(stage_stats(&s).conflicts == 1 && !p->answered, "the row changed");
    stage_until_answered(&s, p);
    CHECK(stage_stats(&s).conflicts == 1, "the second time it fits");
    stage_end(&s);
}

static void an_attempt_that_was_not_sent_was_none(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP(",\"retry\":{\"attempts\":1}"));
    stage_until_answered(&s, stage_submit(&s, "w", SLICE("{}")));
    s.client_gone = true;
    stage_call(&s, stage_call_of("ag", 1));
    CHECK(s.requests == 0, "the client is gone");
    s.client_gone = false;
    stage_take_requests(&s, "ag", 1);
    CHECK(s.attempt == 2, "another attempt, though only one is allowed: the first was none");
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

static enum err probe_fails(struct store *st, struct error *e)
{
    (void)st;
    return error_set(e, ERR_BUSY, "the disk is full");
}

static void a_store_that_fails_is_asked_again_and_reported_once(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    stage_turn(&s);
    const struct store_ops *works = s.store->ops;
    broken = *works;
    broken.commit = commit_fails;
    broken.probe = probe_fails;
    s.store->ops = &broken;
    struct client *c = stage_submit(&s, "w", SLICE("{}"));
    c->expected = ERR_BUSY;
    stage_until_answered(&s, c);
    for (int i = 0; i < 5; i++)
        stage_turn(&s);
    CHECK(s.troubles == 1, "%d reports", s.troubles);
    s.store->ops = works;
    stage_until_answered(&s, stage_submit(&s, "w", SLICE("{}")));
    CHECK(s.troubles == 0, "it works again");
    stage_end(&s);
}

/* ---- operators, and the end ---- */

static void a_verb_that_does_not_fit_is_refused_with_a_reason(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    const struct ask resume = {.kind = ASK_REOPEN, .id = c->ask.id, .reason = SLICE("a test")};
    struct client *r = stage_ask(&s, &resume);
    r->expected = ERR_CONFLICT;
    stage_until_answered(&s, r);
    CHECK(strstr(r->ask.story, "pending"), "%s", r->ask.story);
    const struct ask skip = {.kind = ASK_SKIP, .id = c->ask.id, .step = SLICE("none")};
    r = stage_ask(&s, &skip);
    r->expected = ERR_INVALID;
    stage_until_answered(&s, r);
    CHECK(strstr(r->ask.story, "no step \"none\""), "%s", r->ask.story);
    const struct ask nobody = {.kind = ASK_PAUSE, .id = SLICE("nobody")};
    r = stage_ask(&s, &nobody);
    r->expected = ERR_NOT_FOUND;
    stage_until_answered(&s, r);
    stage_end(&s);
}

static void a_submission_again_gets_its_task_or_a_conflict(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    const struct client *again = stage_ask(&s, &c->ask);
    stage_until_answered(&s, again);
    CHECK(again->ask.existed, "the same");
    struct ask other = c->ask;
    other.content.hash = 1;
    other.content.sha256 =
        SLICE("0123456789012345678901234567890123456789012345678901234567890123");
    struct client *o = stage_ask(&s, &other);
    o->expected = ERR_CONFLICT;
    stage_until_answered(&s, o);
    CHECK(strstr(o->ask.story, "other content"), "%s", o->ask.story);
    CHECK(stage_stats(&s).submitted == 1, "one task");
    stage_end(&s);
}

static void a_drain_takes_results_and_starts_nothing(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", STEP());
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    const struct client *later = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, later);
    stage_take_requests(&s, "ag", 1);
    scheduler_drain(s.scheduler);
    s.asleep = false;
    scheduler_work(s.scheduler, stage_call_of("ag", 1));
    stage_call(&s, call_with((struct work_result){.token = s.token, .output = SLICE("7")}, 0));
    while (!scheduler_is_drained(s.scheduler))
        stage_turn(&s);
    CHECK(s.ended == 1 && stage_stats(&s).open_attempts == 0, "the result counts");
    check_row(c, TASK_PROCESSED, false);
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_goes_from_its_submission_to_its_end),
        cmocka_unit_test(nothing_is_answered_before_it_is_durable),
        cmocka_unit_test(a_result_counts_once),
        cmocka_unit_test(a_conflict_is_decided_anew_on_the_fresh_row),
        cmocka_unit_test(an_attempt_that_was_not_sent_was_none),
        cmocka_unit_test(a_store_that_fails_is_asked_again_and_reported_once),
        cmocka_unit_test(a_verb_that_does_not_fit_is_refused_with_a_reason),
        cmocka_unit_test(a_submission_again_gets_its_task_or_a_conflict),
        cmocka_unit_test(a_drain_takes_results_and_starts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
