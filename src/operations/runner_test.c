/* Running an operation, on a memory store: each matching task is asked and counted once, also when
 * another runner goes on with a page that was asked already. */
#include "operations/runner.h"

#include "base/test.h"
#include "store/codec/codec.h"
#include "store/memory/memory.h"

#define START INT64_C(1800000000000)

enum { ASKS_MAX = 16, JOBS_MAX = 8, TURNS_MAX = 1000 };

struct stage {
    struct store *store;
    struct store_queue queue;
    struct store_job *jobs[JOBS_MAX]; /* at the store, in order */
    size_t job_count;
    struct registry registry;
    struct runner *runner;
    int64_t now;
    size_t room;
    struct ask *asks[ASKS_MAX];
    size_t ask_count;
};

static struct stage s;

static void submit_job(struct store_queue *q, struct store_job *j)
{
    (void)q;
    ASSERT(s.job_count < JOBS_MAX);
    s.jobs[s.job_count++] = j;
}

static int64_t clock_now(void *arg)
{
    (void)arg;
    return s.now;
}

static size_t room(void *arg)
{
    (void)arg;
    return s.room;
}

static void on_ask(void *arg, struct ask *a)
{
    (void)arg;
    ASSERT(s.ask_count < ASKS_MAX);
    s.asks[s.ask_count++] = a;
}

static struct runner *runner_make(struct slice holder)
{
    const struct runner_config config = {.holder = holder};
    const struct runner_outside outside = {.now = clock_now,
                                           .steady = clock_now,
                                           .room = room,
                                           .ask = on_ask};

    return runner_new(&config, &s.queue, &s.queue, &s.registry, &outside);
}

static void stage_begin(void)
{
    static struct mistakes mistakes; /* too large for the stack */
    struct definition *d = NULL;

    s = (struct stage){.now = START,
                       .room = 10,
                       .queue.submit = submit_job,
                       .store = memory_store_new()};
    enum err err = definition_parse(SLICE("{\"intact\":1,\"workflow\":\"w\",\"steps\":[{\"name\":"
                                          "\"a\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":"
                                          "\"none\"}]}"),
                                    DEFINITION_JSON, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s", mistakes.list[0].found);
    registry_add(&s.registry, d, 1);
    s.runner = runner_make(SLICE("n1/1"));
    runner_refresh(s.runner);
}

static void store_runs(void)
{
    struct store_job *j = s.jobs[0];

    memmove(s.jobs, s.jobs + 1, --s.job_count * sizeof(struct store_job *));
    j->run(j, s.store);
    j->done(j);
}

/* Turns until nothing happens by itself, or so many asks are open. */
static void run_until(size_t asks)
{
    for (int i = 0; i < TURNS_MAX && s.ask_count < asks; i++) {
        int64_t delay = runner_turn(s.runner);
        if (s.job_count > 0)
            store_runs();
        else if (delay < 0)
            return;
        s.now += max_i64(delay, 0);
    }
}

static void stop(void)
{
    runner_stop(s.runner);
    for (int i = 0; i < TURNS_MAX && (s.job_count > 0 || runner_is_busy(s.runner) || i < 2); i++) {
        (void)runner_turn(s.runner);
        if (s.job_count > 0)
            store_runs();
    }
    CHECK(!runner_is_busy(s.runner), "everything is back");
    runner_free(s.runner);
}

static void stage_end(void)
{
    stop();
    registry_fini(&s.registry);
    s.store->ops->close(s.store);
}

static void task_insert(const char *id, const char *audited)
{
    const struct definition *d = registry_find(&s.registry, SLICE("w"), 1);
    CLEANUP(arena_fini) struct arena arena = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct step step = {0};
    struct task t = {.id = slice_of(id),
                     .priority = 5,
                     .submitted_at = s.now,
                     .input.json = SLICE("{}"),
                     .steps = &step,
                     .step_count = 1};
    const struct audit audit = {.at = s.now,
                                .actor = SLICE("me"),
                                .verb = SLICE("pause"),
                                .task = slice_of(id),
                                .reason = slice_of(audited)};
    struct change c = {.kind = CHANGE_INSERT, .audits = &audit, .audit_count = audited ? 1 : 0};
    struct batch batch = {.changes = &c, .change_count = 1};
    struct error e = {0};

    task_encode(&d->workflow, &t, &arena, &doc, &c.row);
    c.row.doc = buf_view(&doc);
    c.row.revision = 1;
    c.row.waiting_for = SLICE("ag");
    enum err err = s.store->ops->commit(s.store, &batch, &arena, &e);
    CHECK(err == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
}

static void put(struct operation *op)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct operation_row row;
    struct error e = {0};

    op->id = SLICE("op-1");
    op->actor = SLICE("me");
    op->revision = 1;
    op->started_at = s.now;
    operation_encode(op, &doc, &row);
    enum err err = s.store->ops->operations->put(s.store, &row, NULL, &e);
    CHECK(err == ERR_OK, "%s", e.text);
}

static void operation_read_from(struct arena *a, const char *text, struct operation *ret)
{
    struct json *j = NULL;
    struct error e = {0};

    enum err err = json_parse(a, slice_of(text), &j, NULL);
    CHECK(err == ERR_OK, "it is JSON");
    err = operation_read(a, j, ret, &e);
    CHECK(err == ERR_OK, "%s", e.text);
}

static void operation_of(struct arena *a, struct operation *ret)
{
    operation_read_from(
        a, "{\"verb\":\"pause\",\"filter\":{\"workflow\":\"w\"},\"reason\":\"a test\"}", ret);
}

static void answer(size_t i, enum err outcome, const char *story)
{
    s.asks[i]->outcome = outcome;
    (void)snprintf(s.asks[i]->story, sizeof s.asks[i]->story, "%s", story);
    runner_answered(s.runner, s.asks[i]);
}

static void check_stored(enum operation_state state, uint64_t done, uint64_t refused, uint64_t gone)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct operation_query q = {.id = SLICE("op-1"), .limit = 1};
    struct operation_page page = {0};
    struct operation op;
    struct error e = {0};

    enum err err = s.store->ops->operations->list(s.store, &q, &a, &page, &e);
    CHECK(err == ERR_OK && page.count == 1, "%s", e.text);
    err = operation_decode(&a, &page.rows[0], &op, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(op.state == state, "%s", operation_state_text(op.state));
    CHECK(op.done == done && operation_refused_count(&op) == refused && op.gone == gone,
          "%llu done, %llu gone", (unsigned long long)op.done, (unsigned long long)op.gone);
}

static void each_task_is_asked_and_counted_once(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    (void)state;

    stage_begin();
    task_insert("t-1", NULL);
    task_insert("t-2", NULL);
    task_insert("t-3", NULL);
    operation_of(&a, &op);
    put(&op);
    run_until(3);
    CHECK(s.ask_count == 3, "%zu asks", s.ask_count);
    CHECK(slice_is(s.asks[0]->id, "t-3") && s.asks[0]->bulk, "newest first");
    CHECK(slice_is(s.asks[0]->reason, "operation op-1: a test"), "its audit");
    check_stored(OPERATION_RUNNING, 0, 0, 0); /* the page is stored before its tasks are asked */
    answer(0, ERR_OK, "");
    answer(1, ERR_CONFLICT, "not possible");
    answer(2, ERR_NOT_FOUND, "");
    run_until(ASKS_MAX);
    CHECK(s.ask_count == 3, "no more");
    check_stored(OPERATION_DONE, 1, 1, 1);
    stage_end();
}

static void a_page_that_was_asked_already_is_checked_by_the_audit(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    (void)state;

    stage_begin();
    task_insert("t-1", "operation op-1: a test");
    task_insert("t-2", "operation op-12: a test");
    operation_of(&a, &op);
    op.page[0] = SLICE("t-1");
    op.page[1] = SLICE("t-2");
    op.page[2] = SLICE("t-gone");
    op.page_count = 3;
    op.matched = 3;
    op.seen_all = true;
    put(&op);
    run_until(1);
    CHECK(s.ask_count == 1 && slice_is(s.asks[0]->id, "t-2"), "the one that was not done");
    answer(0, ERR_OK, "");
    run_until(ASKS_MAX);
    check_stored(OPERATION_DONE, 2, 0, 1);
    stage_end();
}

static void an_ask_of_unknown_outcome_is_asked_again(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    (void)state;

    stage_begin();
    task_insert("t-1", NULL);
    operation_of(&a, &op);
    put(&op);
    run_until(1);
    answer(0, ERR_BUSY, "the store is away");
    run_until(2);
    CHECK(s.ask_count == 2, "again");
    answer(1, ERR_OK, "");
    run_until(ASKS_MAX);
    check_stored(OPERATION_DONE, 1, 0, 0);
    stage_end();
}

/* What was stored of an earlier ask of that task becomes visible. */
static void task_was_changed(const char *id, const char *audited)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct audit audit = {.at = s.now,
                                .actor = SLICE("me"),
                                .verb = SLICE("pause"),
                                .task = slice_of(id),
                                .reason = slice_of(audited)};
    struct change c = {.kind = CHANGE_UPDATE, .audits = &audit, .audit_count = 1};
    struct batch batch = {.changes = &c, .change_count = 1};
    struct error e = {0};

    enum err err = s.store->ops->get(s.store, slice_of(id), &a, &c.row, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    c.row.revision++;
    err = s.store->ops->commit(s.store, &batch, &a, &e);
    CHECK(err == ERR_OK && c.outcome == ERR_OK, "%s: %s", e.text, err_text(c.outcome));
}

/* The first ask is stored after all, by a node that did not answer any more, once the audit was
 * read: so the second one is refused, and the audit tells which of the two did it. */
static void a_task_that_refuses_after_an_unknown_outcome_may_be_done(void **state)
{
    static const enum err refusals[] = {ERR_CONFLICT, ERR_TAKEN, ERR_INVALID, ERR_OK};
    (void)state;

    for (size_t i = 0; i < 2 * COUNT_OF(refusals); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        bool was_done = i % 2 == 0;
        struct operation op;
        stage_begin();
        task_insert("t-1", NULL);
        operation_of(&a, &op);
        put(&op);
        run_until(1);
        answer(0, ERR_UNKNOWN, "nobody answered");
        run_until(2);
        CHECK(s.ask_count == 2, "again");
        if (was_done)
            task_was_changed("t-1", "operation op-1: a test");
        s.asks[1]->existed = refusals[i / 2] == ERR_OK;
        answer(1, refusals[i / 2], "not possible");
        run_until(3);
        CHECK((s.ask_count == 2) == was_done, "%zu asks", s.ask_count);
        if (!was_done) {
            s.asks[2]->existed = refusals[i / 2] == ERR_OK;
            answer(2, refusals[i / 2], "not possible");
        }
        run_until(ASKS_MAX);
        check_stored(OPERATION_DONE, was_done, !was_done, 0);
        stage_end();
    }
}

static void it_gives_way_while_others_need_the_room(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    (void)state;

    stage_begin();
    task_insert("t-1", NULL);
    task_insert("t-2", NULL);
    operation_of(&a, &op);
    put(&op);
    s.room = 0;
    int64_t from = s.now;
    run_until(1);
    CHECK(s.ask_count == 1 && s.now >= from + 1000, "one in a second");
    answer(0, ERR_OK, "");
    s.room = 10;
    run_until(2);
    answer(1, ERR_OK, "");
    run_until(ASKS_MAX);
    check_stored(OPERATION_DONE, 2, 0, 0);
    stage_end();
}

/* The store may have forgotten the audit: what the task keeps tells that it was sent. */
static void a_signal_that_a_task_has_already_is_done(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    (void)state;

    stage_begin();
    task_insert("t-1", NULL);
    task_insert("t-2", NULL);
    operation_read_from(&a,
                        "{\"verb\":\"signal\",\"filter\":{\"workflow\":\"w\"},\"reason\":\"r\","
                        "\"arguments\":{\"name\":\"go\",\"data\":[1]}}",
                        &op);
    op.signal.content = SLICE("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    put(&op);
    run_until(2);
    CHECK(s.ask_count == 2 && s.asks[0]->kind == ASK_SIGNAL, "%zu asks", s.ask_count);
    CHECK(slice_is(s.asks[0]->signal.key, "op-1") && slice_is(s.asks[0]->signal.name, "go")
              && slice_is(s.asks[0]->signal.data.json, "[1]"),
          "what is sent");
    CHECK(slice_eq(s.asks[0]->signal.content, op.signal.content), "the content, for the task");
    answer(0, ERR_OK, "");
    answer(1, ERR_BUSY, "the store is away");
    run_until(3);
    CHECK(s.ask_count == 3 && slice_is(s.asks[2]->id, "t-1"), "again");
    CHECK(slice_is(s.asks[2]->signal.key, "op-1"), "it is the same signal");
    s.asks[2]->existed = true;
    answer(2, ERR_OK, "");
    run_until(ASKS_MAX);
    check_stored(OPERATION_DONE, 2, 0, 0);
    stage_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_is_asked_and_counted_once),
        cmocka_unit_test(a_page_that_was_asked_already_is_checked_by_the_audit),
        cmocka_unit_test(an_ask_of_unknown_outcome_is_asked_again),
        cmocka_unit_test(a_task_that_refuses_after_an_unknown_outcome_may_be_done),
        cmocka_unit_test(it_gives_way_while_others_need_the_room),
        cmocka_unit_test(a_signal_that_a_task_has_already_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
