/* Schedules: stored, listed, fired; what becomes of moments that find a run open, that pass while
 * no server runs, and of those of a leader that is killed. */

#include "kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/when.h"

static struct node node;

/* A workflow whose tasks end at once. */
static void define_quick(const struct node *n)
{
    (void)define(n, "quick",
                 "\"steps\": [{\"name\": \"x\", \"agent\": \"nobody\", \"action\": \"x\", "
                 "\"if\": \".input.never == true\", \"undo\": \"none\"}]");
}

/* The workflow "slow-AGENT", whose tasks wait for that agent. */
static void define_slow(const char *agent)
{
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(buf_fini) struct buf rest = {0};

    buf_fmt(&name, "slow-%s", agent);
    buf_fmt(&rest,
            "\"steps\": [{\"name\": \"x\", \"agent\": \"%s\", \"action\": \"x\", "
            "\"complete_by\": \"10m\", \"undo\": {\"action\": \"back\"}}]",
            agent);
    (void)define(&node, name.ptr, rest.ptr);
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS(NULL));
    define_quick(&node);
    return 0;
}

static void put_text(const struct node *n, struct reply *ret, const char *name, const char *text)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/schedules/%s", name);
    send_as(n, ret, "PUT", path, "application/yaml", slice_of(text));
}

/* Stores a schedule that lacks its name. */
static void schedule(const struct node *n, const char *name, const char *rest)
{
    CLEANUP(buf_fini) struct buf text = {0};
    REPLY r = {0};

    buf_fmt(&text, "intact: 1\nschedule: %s\n%s", name, rest);
    put_text(n, &r, name, text.ptr);
    EXPECT(&r, 201);
}

static void get_schedule(const struct node *n, struct reply *ret, const char *name)
{
    get(n, ret, "/v1/schedules/%s", name);
    EXPECT(ret, 200);
}

static int64_t count_of(const struct node *n, const char *name, const char *member)
{
    REPLY r = {0};

    get_schedule(n, &r, name);
    return int_at(&r, member);
}

static void delete_schedule(const struct node *n, const char *name)
{
    char path[100];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/schedules/%s", name);
    send_as(n, &r, "DELETE", path, NULL, SLICE_NONE);
    EXPECT(&r, 200);
}

static void verb(const struct node *n, struct reply *ret, const char *name, const char *what,
                 const char *more)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/schedules/%s/%s", name, what);
    post(n, ret, path, "{%s\"reason\": \"test\"}", more);
}

/* The inbox makes a task of a submission a moment later. */
static void wait_for_task(const char *id, const char *state)
{
    REPLY r = {0};

    WAIT_FOR((reply_fini(&r), get(&node, &r, "/v1/tasks/%s", id), r.status == 200), id);
    wait_for_state(&node, id, state);
}

/* ---- texts ---- */

static void a_schedule_is_stored_and_versioned(void **state)
{
    static const char text[] = "intact: 1\nschedule: nightly\nworkflow: quick\n"
                               "cron: \"30 2 * * *\"\ntimezone: Europe/Rome\n"
                               "input: {day: \"${ .local }\"}\n";
    REPLY r = {0};
    (void)state;

    put_text(&node, &r, "nightly", text);
    EXPECT(&r, 201);
    EXPECT_INT(&r, "version", 1);
    EXPECT_TEXT(&r, "state", "active");
    CHECK(time_at(&r, "next_at") > now_ms(), "%.*s", SLICE_ARG(r.body));
    reply_fini(&r);
    put_text(&node, &r, "nightly", text);
    EXPECT(&r, 200);
    EXPECT_INT(&r, "version", 1);
    reply_fini(&r);
    put_text(&node, &r, "nightly",
             "intact: 1\nschedule: nightly\nworkflow: quick\nevery: 1d\ninput: \"${ .nope }\"\n");
    EXPECT(&r, 201);
    EXPECT_INT(&r, "version", 2);
    EXPECT_INT(&r, "warnings.0.line", 5);
    reply_fini(&r);
    get(&node, &r, "/v1/schedules/nightly/versions/1");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "text", text);
    EXPECT_TEXT(&r, "author", "admin");
    reply_fini(&r);
    get(&node, &r, "/v1/schedules/nightly/versions/3");
    expect_problem(&r, 404, "no-such-schedule");
    reply_fini(&r);
    get_schedule(&node, &r, "nightly");
    EXPECT_TEXT(&r, "kind", "every");
    EXPECT_TEXT(&r, "overlap", "skip");
    EXPECT_TEXT(&r, "format", "yaml");
    reply_fini(&r);
    get(&node, &r, "/v1/audit?limit=3");
    EXPECT_TEXT(&r, "entries.0.verb", "schedule.put");
    EXPECT_TEXT(&r, "entries.0.reason", "nightly, version 2");
    reply_fini(&r);
    delete_schedule(&node, "nightly");
    get(&node, &r, "/v1/schedules/nightly");
    expect_problem(&r, 404, "no-such-schedule");
}

static void what_is_wrong_is_refused(void **state)
{
    REPLY r = {0};
    (void)state;

    put_text(&node, &r, "s", "intact: 1\nschedule: s\nworkflow: quick\ncron: \"0 0 30 2 *\"\n");
    expect_problem(&r, 422, "bad-schedule");
    EXPECT_INT(&r, "errors.0.line", 4);
    EXPECT_INT(&r, "errors.0.column", 7);
    reply_fini(&r);
    put_text(&node, &r, "s", "{");
    expect_problem(&r, 400, "bad-schedule");
    reply_fini(&r);
    put_text(&node, &r, "s", "intact: 1\nschedule: s\nworkflow: none\nevery: 1h\n");
    expect_problem(&r, 422, "no-such-workflow");
    reply_fini(&r);
    put_text(&node, &r, "t", "intact: 1\nschedule: s\nworkflow: quick\nevery: 1h\n");
    expect_problem(&r, 422, "other-name");
    reply_fini(&r);
    put_text(&node, &r, "s",
             "intact: 1\nschedule: s\nworkflow: quick\nevery: 1h\nreply_to: ftp://x/\n");
    CHECK(r.status == 422, "%.*s", SLICE_ARG(r.body));
    reply_fini(&r);
    send_as(&node, &r, "PUT", "/v1/schedules/s", "text/plain", SLICE("x"));
    EXPECT(&r, 415);
    reply_fini(&r);
    verb(&node, &r, "s", "pause", "");
    expect_problem(&r, 404, "no-such-schedule");
    reply_fini(&r);
    post(&node, &r, "/v1/schedules/s/pause", "{}");
    expect_problem(&r, 422, "no-reason");
    reply_fini(&r);
    send_as(&node, &r, "DELETE", "/v1/schedules/s", NULL, SLICE_NONE);
    expect_problem(&r, 404, "no-such-schedule");
    reply_fini(&r);
    get(&node, &r, "/v1/schedules?limit=0");
    expect_problem(&r, 422, "bad-limit");
    reply_fini(&r);
    get(&node, &r, "/v1/schedules?cursor=a%%20b");
    expect_problem(&r, 422, "bad-cursor");
    reply_fini(&r);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"quick\", \"id\": \"a@b\"}");
    expect_problem(&r, 422, "bad-id");
}

static void verbs_want_what_they_need(void **state)
{
    static const char *const verbs[] = {"pause", "resume", "run", "backfill"};
    static const char times[] = "\"from\": \"2026-01-01T00:00:00Z\", "
                                "\"to\": \"2026-01-02T00:00:00Z\", ";
    static const struct {
        const char *body, *type;
        int status;
    } cases[] = {
        {"{%s\"reason\": \"\"}", "no-reason", 422},
        {"{%s\"reason\": \"r\", \"x\": 1}", "unknown-member", 422},
        {"{%s\"reason\": \"r\"}", "no-such-schedule", 404},
        {"[%.0s]", "not-an-object", 422},
        {"{%.0s", "not-json", 400},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        for (size_t k = 0; k < COUNT_OF(cases); k++) {
            CLEANUP(buf_fini) struct buf body = {0};
            char path[60];
            REPLY r = {0};
            const char *mark = strchr(cases[k].body, '%');
            bool takes = mark[1] == 's' && strcmp(verbs[i], "backfill") == 0;
            buf_slice(&body, (struct slice){cases[k].body, (size_t)(mark - cases[k].body)});
            buf_str(&body, takes ? times : "");
            buf_str(&body, strchr(mark, 's') + 1);
            (void)snprintf(path, sizeof path, "/v1/schedules/none/%s", verbs[i]);
            send_as(&node, &r, "POST", path, "application/json", buf_view(&body));
            expect_problem(&r, cases[k].status, cases[k].type);
        }
}

static void what_is_too_big_or_fails_is_refused(void **state)
{
    CLEANUP(buf_fini) struct buf big = {0};
    REPLY r = {0};
    (void)state;

    buf_str(&big, "intact: 1\nschedule: big\nworkflow: quick\nevery: 1d\n");
    while (big.len <= 64 << 10)
        buf_str(&big, "# a comment of some length, so that the text becomes too long\n");
    put_text(&node, &r, "big", big.ptr);
    expect_problem(&r, 413, "too-big");
    reply_fini(&r);
    send_as(&node, &r, "PUT", "/v1/schedules/fails", "application/json",
            SLICE("{\"intact\": 1, \"schedule\": \"fails\", \"workflow\": \"quick\", "
                  "\"at\": [\"9998-01-01T00:00:00Z\"], \"input\": {\"a\": \"${ .time + 1 }\"}}"));
    EXPECT(&r, 201);
    reply_fini(&r);
    verb(&node, &r, "fails", "run", "");
    expect_problem(&r, 422, "bad-moments");
    reply_fini(&r);
    get(&node, &r, "/v1/schedules/none/next");
    expect_problem(&r, 404, "no-such-schedule");
    delete_schedule(&node, "fails");
}

static void the_next_moments_are_shown_in_both_zones(void **state)
{
    REPLY r = {0};
    (void)state;

    schedule(
        &node, "new-year",
        "workflow: quick\nat: [\"9998-01-01T00:00:00Z\"]\ntimezone: Europe/Rome\nspread: 1h\n");
    get(&node, &r, "/v1/schedules/new-year/next?count=5");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "moments.0.time", "9998-01-01T00:00:00.000Z");
    EXPECT_TEXT(&r, "moments.0.local", "9998-01-01T01:00:00+01:00");
    CHECK(time_at(&r, "moments.0.due_at") > INT64_C(1), "%.*s", SLICE_ARG(r.body));
    CHECK(!at(&r, "moments.1"), "%.*s", SLICE_ARG(r.body));
    reply_fini(&r);
    get(&node, &r, "/v1/schedules/new-year/next?count=101");
    expect_problem(&r, 422, "bad-limit");
    reply_fini(&r);
    schedule(&node, "past", "workflow: quick\nat: [\"1999-01-01T00:00:00Z\"]\n");
    get(&node, &r, "/v1/schedules?limit=1");
    EXPECT_TEXT(&r, "schedules.0.name", "new-year");
    EXPECT_TEXT(&r, "next", "new-year");
    reply_fini(&r);
    get(&node, &r, "/v1/schedules?limit=1&cursor=new-year");
    EXPECT_TEXT(&r, "schedules.0.name", "past");
    EXPECT_TEXT(&r, "schedules.0.state", "ended");
    CHECK(at(&r, "next")->type == JSON_NULL, "%.*s", SLICE_ARG(r.body));
    delete_schedule(&node, "past");
    delete_schedule(&node, "new-year");
}

/* ---- moments ---- */

/* The task of a moment has the time of its id in its input. */
static void check_task(const struct node *n, const char *name, int64_t moment)
{
    CLEANUP(buf_fini) struct buf time = {0};
    char id[100];
    REPLY r = {0};

    time_write(&time, moment);
    (void)snprintf(id, sizeof id, "%s@%.19sZ", name, time.ptr);
    WAIT_FOR((reply_fini(&r), get(n, &r, "/v1/tasks/%s", id), r.status == 200), id);
    (void)snprintf(id, sizeof id, "%.19sZ", time.ptr);
    EXPECT_TEXT(&r, "input.time", id);
}

static void moments_become_tasks(void **state)
{
    REPLY r = {0};
    (void)state;

    schedule(&node, "tick",
             "workflow: quick\nevery: 1s\noverlap: allow\ntags: {kind: test}\npriority: 7\n"
             "input: {time: \"${ .time }\", before: \"${ .previous }\"}\n");
    WAIT_FOR(count_of(&node, "tick", "counts.fired") >= 2, "two fired");
    get_schedule(&node, &r, "tick");
    int64_t fired_at = time_at(&r, "fired_at");
    check_task(&node, "tick", fired_at);
    reply_fini(&r);
    get(&node, &r, "/v1/tasks?tag.kind=test&limit=1");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "tasks.0.priority", 7);
    EXPECT_TEXT(&r, "tasks.0.state", "processed");
    delete_schedule(&node, "tick");
    CHECK(!node_log_has(&node, "submission_refused"), "all were accepted");
}

static void a_run_is_beside_the_moments(void **state)
{
    CLEANUP(buf_fini) struct buf id = {0};
    REPLY r = {0};
    (void)state;

    define_slow("rare");
    schedule(&node, "rare", "workflow: slow-rare\nat: [\"9998-01-01T00:00:00Z\"]\n");
    verb(&node, &r, "rare", "run", "");
    EXPECT(&r, 202);
    buf_str(&id, text_at(&r, "task"));
    CHECK(strncmp(id.ptr, "rare@run-", 9) == 0, "%s", id.ptr);
    wait_for_task(id.ptr, "pending");
    reply_fini(&r);
    get_schedule(&node, &r, "rare");
    CHECK(at(&r, "run")->type == JSON_NULL, "%.*s", SLICE_ARG(r.body));
    serve_step(&node, "rare", "i", "1");
    wait_for_state(&node, id.ptr, "processed");
    delete_schedule(&node, "rare");
}

static void a_moment_that_finds_a_run_open_is_skipped(void **state)
{
    CLEANUP(buf_fini) struct buf run = {0};
    REPLY r = {0};
    (void)state;

    define_slow("one");
    schedule(&node, "one", "workflow: slow-one\nevery: 1s\n");
    WAIT_FOR(count_of(&node, "one", "counts.skipped") >= 2, "two are skipped");
    get_schedule(&node, &r, "one");
    EXPECT_INT(&r, "counts.fired", 1);
    buf_str(&run, text_at(&r, "run"));
    CHECK(strncmp(run.ptr, "one@2", 5) == 0, "%.*s", SLICE_ARG(r.body));
    EXPECT_TEXT(&r, "gaps.0.kind", "skipped");
    EXPECT_TEXT(&r, "gaps.0.why", run.ptr);
    CHECK(!at(&r, "gaps.1"), "they are one gap: %.*s", SLICE_ARG(r.body));
    CHECK(node_log_has(&node, "event=schedule_gap schedule=one"), "the log tells");
    serve_step(&node, "one", "i", "1");
    WAIT_FOR(count_of(&node, "one", "counts.fired") == 2, "the next one fires");
    WAIT_FOR((reply_fini(&r), get(&node, &r, "/v1/alerts"),
              strstr(r.body.ptr, "schedule_gap") != NULL),
             "the alert");
    delete_schedule(&node, "one");
}

static void a_moment_waits_for_the_run(void **state)
{
    REPLY r = {0};
    (void)state;

    define_slow("queue");
    schedule(&node, "queue", "workflow: slow-queue\nevery: 1s\noverlap: wait\n");
    WAIT_FOR(count_of(&node, "queue", "counts.skipped") >= 1, "one waits, one is skipped");
    get_schedule(&node, &r, "queue");
    EXPECT_INT(&r, "counts.fired", 1);
    int64_t waiting = time_at(&r, "waiting_at");
    CHECK(waiting > 0, "%.*s", SLICE_ARG(r.body));
    reply_fini(&r);
    serve_step(&node, "queue", "i", "1");
    WAIT_FOR(count_of(&node, "queue", "counts.fired") >= 2, "it fires");
    verb(&node, &r, "queue", "pause", "");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "paused");
    reply_fini(&r);
    get_schedule(&node, &r, "queue");
    int64_t fired = int_at(&r, "counts.fired");
    serve_step(&node, "queue", "i", "1");
    sleep_ms(1500); /* a moment passes: nothing may happen */
    CHECK(count_of(&node, "queue", "counts.fired") == fired, "it is paused");
    reply_fini(&r);
    verb(&node, &r, "queue", "resume", "");
    EXPECT_TEXT(&r, "state", "active");
    WAIT_FOR(count_of(&node, "queue", "counts.fired") > fired, "it goes on");
    delete_schedule(&node, "queue");
}

static void an_open_run_is_undone(void **state)
{
    CLEANUP(buf_fini) struct buf run = {0};
    REPLY r = {0};
    (void)state;

    define_slow("latest");
    schedule(&node, "latest", "workflow: slow-latest\nevery: 1s\noverlap: undo\n");
    WAIT_FOR((reply_fini(&r), get_schedule(&node, &r, "latest"), text_at(&r, "run")[0]), "a run");
    buf_str(&run, text_at(&r, "run"));
    wait_for_task(run.ptr, "compensated"); /* its step had not begun */
    WAIT_FOR(count_of(&node, "latest", "counts.fired") >= 2, "the next one");
    delete_schedule(&node, "latest");
}

static void a_backfill_runs_one_by_one(void **state)
{
    REPLY r = {0};
    (void)state;

    define_slow("old");
    schedule(&node, "old", "workflow: slow-old\nevery: 6h\noverlap: allow\n");
    verb(&node, &r, "old", "backfill",
         "\"from\": \"2026-01-01T00:00:00Z\", \"to\": \"2026-01-01T12:00:00Z\", ");
    EXPECT(&r, 202);
    EXPECT_INT(&r, "moments", 3);
    wait_for_task("old@2026-01-01T00:00:00Z", "pending");
    reply_fini(&r);
    get_schedule(&node, &r, "old");
    EXPECT_RAW(&r, "backfills", "true");
    EXPECT_TEXT(&r, "run", "old@2026-01-01T00:00:00Z");
    reply_fini(&r);
    get(&node, &r, "/v1/tasks/old@2026-01-01T06:00:00Z");
    EXPECT(&r, 404);
    reply_fini(&r);
    for (int i = 0; i < 3; i++)
        serve_step(&node, "old", "i", "1");
    wait_for_task("old@2026-01-01T12:00:00Z", "processed");
    verb(&node, &r, "old", "backfill", /* once more: they have their tasks */
         "\"from\": \"2026-01-01T00:00:00Z\", \"to\": \"2026-01-01T12:00:00Z\", ");
    EXPECT(&r, 202);
    WAIT_FOR(count_of(&node, "old", "counts.fired") == 6, "all are decided");
    WAIT_FOR((reply_fini(&r), get_schedule(&node, &r, "old"), !text_at(&r, "run")[0]), "the end");
    reply_fini(&r);
    verb(&node, &r, "old", "backfill",
         "\"from\": \"2026-01-01T00:00:01Z\", \"to\": \"2026-01-01T00:00:02Z\", ");
    expect_problem(&r, 422, "bad-moments");
    reply_fini(&r);
    verb(&node, &r, "old", "backfill",
         "\"from\": \"2026-01-01T00:00:00Z\", \"to\": \"9026-01-01T00:00:00Z\", ");
    expect_problem(&r, 422, "bad-moments");
    CHECK(!node_log_has(&node, "submission_refused"), "what exists is not refused");
    delete_schedule(&node, "old");
}

/* ---- while no server runs ---- */

static void missed_moments_are_caught_up_or_on_record(void **state)
{
    REPLY r = {0};
    (void)state;

    schedule(&node, "last", "workflow: quick\nevery: 1s\noverlap: allow\n");
    schedule(&node, "every", "workflow: quick\nevery: 1s\noverlap: allow\nmissed: all\n");
    WAIT_FOR(count_of(&node, "every", "counts.fired") >= 1
                 && count_of(&node, "last", "counts.fired") >= 1,
             "both fire");
    node_kill(&node);
    sleep_ms(3500); /* moments pass */
    node_start(&node, FLAGS(NULL));
    WAIT_FOR(count_of(&node, "last", "counts.missed") >= 2, "some are missed");
    get_schedule(&node, &r, "last");
    EXPECT_TEXT(&r, "gaps.0.kind", "missed");
    reply_fini(&r);
    get_schedule(&node, &r, "every");
    EXPECT_INT(&r, "counts.missed", 0);
    int64_t fired = int_at(&r, "counts.fired");
    int64_t last = time_at(&r, "fired_at");
    CHECK(fired >= 4, "%d", (int)fired);
    for (int64_t i = 0; i < fired; i++) {
        CLEANUP(buf_fini) struct buf time = {0};
        REPLY t = {0};
        time_write(&time, last - i * MS_PER_S);
        WAIT_FOR((reply_fini(&t), get(&node, &t, "/v1/tasks/every@%.19sZ", time.ptr),
                  t.status == 200),
                 "its task");
    }
    delete_schedule(&node, "last");
    delete_schedule(&node, "every");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_is_stored_and_versioned),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(verbs_want_what_they_need),
        cmocka_unit_test(what_is_too_big_or_fails_is_refused),
        cmocka_unit_test(the_next_moments_are_shown_in_both_zones),
        cmocka_unit_test(moments_become_tasks),
        cmocka_unit_test(a_run_is_beside_the_moments),
        cmocka_unit_test(a_moment_that_finds_a_run_open_is_skipped),
        cmocka_unit_test(a_moment_waits_for_the_run),
        cmocka_unit_test(an_open_run_is_undone),
        cmocka_unit_test(a_backfill_runs_one_by_one),
        cmocka_unit_test(missed_moments_are_caught_up_or_on_record),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests_name("schedule", tests, start, node_end);
}
