/* The supervisor's scans, on a memory store: what is overdue is requested once, only by the leader,
 * and not before its time; a stopped leader gives up its lease. */
#include "supervisor/supervisor.h"

#include "base/test.h"
#include "base/when.h"
#include "store/codec/codec.h"
#include "store/memory/memory.h"
#include "supervisor/overdue.h"

#define START  INT64_C(1800000000000)
#define LEADER SLICE("n1/1")

enum { INTERVAL = 1000, GRACE = 10000, TASKS_MAX = 8 };

struct stage {
    struct store *store;
    struct store_queue queue;
    struct store_job *job;
    struct registry registry;
    struct supervisor *supervisor;
    int64_t now;
    int64_t complete_by; /* of the tasks that are inserted next; 0: none */
    size_t requested, released, failures;
};

static struct stage s;

static void submit_job(struct store_queue *q, struct store_job *j)
{
    (void)q;
    ASSERT(!s.job);
    s.job = j;
}

static int64_t clock_now(void *arg)
{
    (void)arg;
    return s.now;
}

static void on_requested(void *arg, struct slice id, bool released)
{
    (void)arg;
    (void)id;
    s.requested++;
    s.released += released;
}

static void on_failed(void *arg, const struct error *e)
{
    (void)arg;
    (void)e;
    s.failures++;
}

static struct supervisor *supervisor_make(struct slice holder)
{
    const struct supervisor_config config = {.holder = holder,
                                             .interval_ms = INTERVAL,
                                             .grace_ms = GRACE};
    const struct supervisor_outside outside = {.now = clock_now,
                                               .steady = clock_now,
                                               .requested = on_requested,
                                               .failed = on_failed};

    return supervisor_new(&config, &s.queue, &s.registry, &outside);
}

static void stage_begin(void)
{
    static struct mistakes mistakes; /* too large for the stack */
    struct definition *d = NULL;

    s = (struct stage){.now = START, .queue.submit = submit_job, .store = memory_store_new()};
    enum err err = definition_parse(SLICE("{\"intact\":1,\"workflow\":\"w\",\"steps\":[{\"name\":"
                                          "\"a\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":"
                                          "\"none\",\"after\":[]},{\"name\":\"b\",\"agent\":"
                                          "\"ag\",\"action\":\"x\",\"undo\":\"none\","
                                          "\"after\":[]}]}"),
                                    DEFINITION_JSON, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s", mistakes.list[0].found);
    registry_add(&s.registry, d, 1);
    s.supervisor = supervisor_make(LEADER);
}

static void store_runs(void)
{
    struct store_job *j = s.job;

    s.job = NULL;
    j->run(j, s.store);
    j->done(j);
}

/* All that is due at this moment. */
static void turn(struct supervisor *sv)
{
    (void)supervisor_turn(sv);
    while (s.job)
        store_runs();
}

static void scan_at(int64_t at)
{
    while (s.now + INTERVAL < at) {
        s.now += INTERVAL;
        turn(s.supervisor);
    }
    s.now = at;
    turn(s.supervisor);
}

static void stage_end(void)
{
    supervisor_stop(s.supervisor);
    while (s.job)
        store_runs();
    supervisor_free(s.supervisor);
    registry_fini(&s.registry);
    s.store->ops->close(s.store);
}

/* A task of a node, whose steps run until then; 0: that step was not started. */
static void task_insert(struct slice id, int64_t a_until, int64_t b_until)
{
    const struct definition *d = registry_find(&s.registry, SLICE("w"), 1);
    CLEANUP(arena_fini) struct arena arena = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct attempt attempts[2] = {{0}};
    struct step steps[2] = {{0}};
    const int64_t until[2] = {a_until, b_until};
    struct task t = {.id = id,
                     .state = TASK_PROCESSING,
                     .priority = 5,
                     .submitted_at = s.now,
                     .complete_by = s.complete_by,
                     .locked_by = LEADER,
                     .input.json = SLICE("{}"),
                     .steps = steps,
                     .step_count = 2};
    struct change c = {.kind = CHANGE_INSERT};
    struct batch batch = {.changes = &c, .change_count = 1};
    struct error e = {0};

    for (size_t i = 0; i < 2; i++) {
        if (until[i] == 0)
            continue;
        attempts[i] = (struct attempt){.number = 1,
                                       .outcome = OUTCOME_OPEN,
                                       .effect = EFFECT_UNKNOWN,
                                       .instance = SLICE("i"),
                                       .started_at = s.now,
                                       .complete_by = until[i]};
        steps[i] = (struct step){.state = STEP_RUNNING,
                                 .attempt = 1,
                                 .input.json = SLICE("{}"),
                                 .attempts = &attempts[i],
                                 .attempt_count = 1,
                                 .attempt_cap = 1};
    }
    task_encode(&d->workflow, &t, &arena, &doc, &c.row);
    c.row.doc = buf_view(&doc);
    c.row.revision = 1;
    c.row.wake_at = task_wake_at(&t);
    enum err err = s.store->ops->commit(s.store, &batch, &arena, &e);
    CHECK(err == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
}

/* What its row requests. */
static void check_request(struct slice id, size_t count, const char *step)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {0};
    struct error e = {0};
    struct request r;

    enum err err = s.store->ops->get(s.store, id, &a, &row, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    row_request_read(row.request, &a, &r);
    CHECK(r.count == count, "%.*s", SLICE_ARG(row.request));
    if (step)
        CHECK(slice_is(r.list[0].step, step), "%.*s", SLICE_ARG(row.request));
}

static void what_is_overdue_is_requested_and_not_before(void **state)
{
    (void)state;

    stage_begin();
    scan_at(s.now);
    task_insert(SLICE("t"), s.now + 60000, 0);
    scan_at(s.now + 59999);
    CHECK(s.requested == 0, "not yet");
    scan_at(s.now + 1000);
    CHECK(s.requested == 1 && s.released == 1, "nothing else of it runs");
    check_request(SLICE("t"), 1, "a");
    scan_at(s.now + 5000);
    CHECK(s.requested == 1, "once");
    scan_at(s.now + REMINDER_MS);
    CHECK(s.requested == 2, "and again if nobody did it");
    stage_end();
}

/* Its complete-by passes while it waits for its lock: who is behind it may have room. */
static void who_leaves_the_queue_of_its_lock_says_so(void **state)
{
    const struct definition *d = NULL;
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct step steps[2] = {{0}};
    struct change c = {.kind = CHANGE_INSERT};
    struct claim claim = {.kind = CLAIM_LOCK, .locked_by = LEADER, .limit = 9};
    struct batch batch = {.changes = &c, .change_count = 1};
    struct batch look = {.claims = &claim, .claim_count = 1};
    struct error e = {0};
    (void)state;

    stage_begin();
    d = registry_find(&s.registry, SLICE("w"), 1);
    scan_at(s.now);
    for (int i = 0; i < 3; i++) { /* the first holds it, the second is held up, not the third */
        static const char *const ids[] = {"t", "u", "v"};
        struct task t = {.id = slice_of(ids[i]),
                         .state = TASK_PENDING,
                         .priority = 5,
                         .submitted_at = s.now,
                         .complete_by = i == 1 ? s.now + 60000 : 0,
                         .input.json = SLICE("{}"),
                         .lock = SLICE("w/k"),
                         .lock_since = i == 0 ? s.now : 0,
                         .steps = steps,
                         .step_count = 2};
        buf_clear(&doc);
        c = (struct change){.kind = CHANGE_INSERT, .lock_move = i == 0 ? LOCK_TAKE : LOCK_STAYS};
        task_encode(&d->workflow, &t, &a, &doc, &c.row);
        c.row.doc = buf_view(&doc);
        c.row.revision = 1;
        c.row.lock_max = i == 2 ? 2 : 1;
        c.row.wake_at = task_wake_at(&t);
        c.row.rank = i;
        c.row.waiting_for = i == 0 ? SLICE("ag") : SLICE(WAITING_LOCK "w/k");
        CHECK(s.store->ops->commit(s.store, &batch, &a, &e) == ERR_OK && c.outcome == ERR_OK, "%s",
              e.text);
    }
    CHECK(s.store->ops->commit(s.store, &look, &a, &e) == ERR_OK && claim.row_count == 0, "full");
    scan_at(s.now + 61000);
    CHECK(s.requested == 1 && s.released == 1, "u is overdue");
    CHECK(s.store->ops->commit(s.store, &look, &a, &e) == ERR_OK && claim.row_count == 1
              && slice_is(claim.rows[0].id, "v"),
          "v has room");
    stage_end();
}

static void a_task_of_which_something_runs_is_not_released(void **state)
{
    struct supervisor_stats stats;
    (void)state;

    stage_begin();
    scan_at(s.now);
    task_insert(SLICE("t"), s.now + 60000, s.now + 600000);
    task_insert(SLICE("u"), s.now + 600000, s.now + 600000);
    scan_at(s.now + 61000);
    CHECK(s.requested == 1 && s.released == 0, "its owner ends the attempt");
    check_request(SLICE("t"), 1, "a");
    check_request(SLICE("u"), 0, NULL);
    supervisor_stats(s.supervisor, &stats);
    CHECK(stats.leads && stats.overdue == 1 && stats.requests == 1 && stats.scans > 50, "counts");
    stage_end();
}

/* Otherwise an agent would be blamed for the time in which the server did not run. */
static void what_fell_due_in_lost_time_gets_grace(void **state)
{
    (void)state;

    stage_begin();
    scan_at(s.now);
    task_insert(SLICE("t"), s.now + 5000, 0);
    s.now += 60000; /* it slept */
    int64_t back = s.now;
    scan_at(s.now);
    check_request(SLICE("t"), 0, NULL); /* it was due while nobody could answer */
    CHECK(s.requested == 1 && s.released == 0, "only its alarm moves");
    scan_at(back + GRACE - 1);
    check_request(SLICE("t"), 0, NULL);
    scan_at(back + GRACE + INTERVAL);
    check_request(SLICE("t"), 1, "a"); /* the grace time is over */
    stage_end();
}

/* Found by the simulator: the node had slept, and its store had been slow before. So no complete-by
 * of a task moved any more, and one was given up as soon as the node was back. */
/* Virtual time jumps to the moment at which something falls due. */
static void scans_that_were_left_out_are_no_lost_time(void **state)
{
    (void)state;
    stage_begin();
    scan_at(START + GRACE + INTERVAL); /* the start itself is over */
    task_insert(SLICE("t"), s.now + 30 * MS_PER_D, 0);
    s.now += 30 * MS_PER_D - 1;
    supervisor_left_out(s.supervisor);
    turn(s.supervisor);
    check_request(SLICE("t"), 0, NULL);
    s.now += 30 * MS_PER_D; /* it is a month late, and nobody had looked: still no outage */
    supervisor_left_out(s.supervisor);
    turn(s.supervisor);
    check_request(SLICE("t"), 1, "a");
    stage_end();
}

static void no_task_is_given_up_in_the_grace_time(void **state)
{
    enum { SLOW = 4 * INTERVAL, GAPS = 9 };
    (void)state;

    stage_begin();
    scan_at(s.now);
    s.complete_by = s.now + GAPS * SLOW - 1;
    task_insert(SLICE("t"), s.now + 600000, 0);
    for (int i = 0; i < GAPS; i++) {
        s.now += SLOW;
        turn(s.supervisor);
    }
    int64_t back = s.now;
    check_request(SLICE("t"), 0, NULL); /* no gap moves it any more, but it fell into the last */
    scan_at(back + GRACE - 1);
    check_request(SLICE("t"), 0, NULL);
    scan_at(back + GRACE + INTERVAL);
    check_request(SLICE("t"), 1, NULL);
    stage_end();
}

static void one_supervisor_leads_and_hands_over_when_it_stops(void **state)
{
    struct supervisor *other = NULL;
    struct fence fence;
    int64_t until = 0;
    (void)state;

    stage_begin();
    scan_at(s.now);
    other = supervisor_make(SLICE("n2/1"));
    turn(other);
    CHECK(supervisor_leads(s.supervisor, &fence, &until), "the first one");
    CHECK(!supervisor_leads(other, &fence, &until), "has the lease");
    supervisor_stop(s.supervisor);
    while (s.job)
        store_runs();
    CHECK(!supervisor_leads(s.supervisor, &fence, &until), "it gave up the lease");
    s.now += INTERVAL;
    turn(other);
    CHECK(supervisor_leads(other, &fence, &until), "at once, not when it expires");
    supervisor_stop(other);
    while (s.job)
        store_runs();
    supervisor_free(other);
    stage_end();
}

static enum err lease_fails(struct store *st, const struct lease_try *t, struct arena *a,
                            struct lease *ret, struct error *e)
{
    (void)st;
    (void)t;
    (void)a;
    (void)ret;
    return error_set(e, ERR_BUSY, "the store is away");
}

static void a_scan_that_fails_is_reported_and_tried_again(void **state)
{
    static struct store_ops broken;
    (void)state;

    stage_begin();
    const struct store_ops *works = s.store->ops;
    broken = *works;
    broken.lease = lease_fails;
    s.store->ops = &broken;
    scan_at(s.now);
    scan_at(s.now + INTERVAL);
    CHECK(s.failures == 2 && s.requested == 0, "%zu failures", s.failures);
    s.store->ops = works;
    scan_at(s.now + INTERVAL);
    CHECK(s.failures == 2, "it works again");
    stage_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_overdue_is_requested_and_not_before),
        cmocka_unit_test(who_leaves_the_queue_of_its_lock_says_so),
        cmocka_unit_test(a_task_of_which_something_runs_is_not_released),
        cmocka_unit_test(what_fell_due_in_lost_time_gets_grace),
        cmocka_unit_test(scans_that_were_left_out_are_no_lost_time),
        cmocka_unit_test(no_task_is_given_up_in_the_grace_time),
        cmocka_unit_test(one_supervisor_leads_and_hands_over_when_it_stops),
        cmocka_unit_test(a_scan_that_fails_is_reported_and_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
