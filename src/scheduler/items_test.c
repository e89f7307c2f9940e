/* Items of steps with for_each, through the scheduler and the store: rows that were read are not
 * taken for newer than they are, whatever happens to the items meanwhile. */
#include "base/when.h"
#include "core/decide.h"
#include "scheduler/scheduler_test_kit.h"

#define PACK(rules)                                                               \
    "{\"name\":\"p\",\"after\":[],\"for_each\":[0,1,2,3,4],\"max_items\":5,"      \
    "\"concurrency\":2,\"agent\":\"ag\",\"action\":\"x\",\"complete_by\":\"1h\"," \
    "\"heartbeat\":\"5s\",\"retry\":{\"attempts\":1}," rules                      \
    "\"undo\":{\"agent\":\"ag\",\"action\":\"y\",\"complete_by\":\"1h\"}}"

/* A step beside it keeps the task in memory. */
#define TWO(rules)                                                                 \
    "\"steps\":[" PACK(rules) ",{\"name\":\"o\",\"after\":[],\"agent\":\"other\"," \
                              "\"action\":\"x\",\"undo\":\"none\",\"complete_by\":\"9h\"}]"
#define GOES_ON "\"on_item_failure\":\"continue\","
#define HOLDS   "\"on_failure\":\"hold\","

enum { SILENCE_MS = 15000, DOUBT_MS = MS_PER_H + CLOCK_MARGIN_MS };

static struct stage s, other; /* too large for the stack */

/* The token of the next request of the agent, which has that key. */
static struct slice take(struct stage *at, const char *agent, const char *key)
{
    at->requests = 0;
    stage_take_requests(at, agent, 1);
    CHECK(slice_is(at->idempotency_key, key), "%.*s, not %s", SLICE_ARG(at->idempotency_key), key);
    return at->token;
}

static struct work_result done(struct slice token)
{
    return (struct work_result){.token = token, .output = SLICE("{\"id\":1}")};
}

static struct work_result failed(struct slice token)
{
    return (struct work_result){.token = token,
                                .failed = true,
                                .error = {SLICE("no"), SLICE("no")},
                                .effect = EFFECT_NONE};
}

static struct work *call_with(struct work_result first, const struct work_result *second)
{
    struct work *w = stage_call_of("ag", 0);

    w->results = arena_alloc(&w->arena, 2 * sizeof *w->results);
    w->results[w->result_count++] = first;
    if (second)
        w->results[w->result_count++] = *second;
    return w;
}

/* All in one call; the status of the first one is checked. */
static void hand_in(struct stage *at, struct work_result first, const struct work_result *second,
                    enum result_status status)
{
    stage_call(at, call_with(first, second));
    CHECK(at->status == status, "%s", result_status_text(at->status));
}

static void serve(struct stage *at, const char *key)
{
    hand_in(at, done(take(at, "ag", key)), NULL, RESULT_ACCEPTED);
}

static void asks(struct stage *at, const struct client *c, enum ask_kind kind, const char *step)
{
    struct ask a = {.kind = kind, .id = c->ask.id, .reason = SLICE("a test")};

    if (step)
        a.step = slice_of(step);
    if (kind == ASK_RESOLVE)
        a.attempt = 1;
    stage_until_answered(at, stage_ask(at, &a));
}

/* All but the last item are done, and the agent that has the last one is silent for good. Returns
 * its token. */
static struct slice last_one_is_silent(const struct client **ret_task)
{
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" PACK(HOLDS) "]");
    *ret_task = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, *ret_task);
    serve(&s, "t-0/p.0");
    serve(&s, "t-0/p.1");
    serve(&s, "t-0/p.2");
    serve(&s, "t-0/p.3");
    struct slice token = take(&s, "ag", "t-0/p.4");
    stage_pass(&s, SILENCE_MS);
    return token;
}

static void all_is_undone(void)
{
    stage_pass(&s, MS_PER_MIN);
    CHECK(s.ended_in == TASK_COMPENSATED, "all is undone");
    stage_end(&s);
}

/* Each of the first `count` items, on record. */
static void check_undone(const struct client *c, uint32_t count)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct item_read r = {
        .task = c->ask.id, .step = SLICE("p"), .order = ITEMS_UP, .limit = 10, .bytes_max = 100000};
    struct error e = {0};
    enum err err = s.store->ops->items->read(s.store, &r, &a, &e);

    CHECK(err == ERR_OK && r.count == count, "%zu rows", r.count);
    for (size_t i = 0; i < r.count; i++)
        CHECK(r.rows[i].state == STEP_UNDONE, "item %zu: %s", i, step_state_text(r.rows[i].state));
}

/* While two items are undone, a result says of a later one that it took effect after all. The rows
 * are read from there on again; that of an item in work is older than the item. */
static void an_item_that_is_being_undone_is_not_brought_back_from_its_row(void **state)
{
    const struct client *c = NULL;
    (void)state;

    struct slice late = last_one_is_silent(&c);
    stage_pass(&s, DOUBT_MS);
    asks(&s, c, ASK_RESOLVE, "p.4");
    asks(&s, c, ASK_UNDO, NULL);
    struct slice third = take(&s, "ag", "t-0/p.3/undo");
    struct slice second = take(&s, "ag", "t-0/p.2/undo");
    hand_in(&s, done(late), NULL, RESULT_LATE);
    hand_in(&s, done(third), NULL, RESULT_ACCEPTED);
    struct slice fourth = take(&s, "ag", "t-0/p.4/undo");
    asks(&s, c, ASK_PAUSE, NULL); /* nothing is brought back as soon as it could be */
    hand_in(&s, done(second), NULL, RESULT_ACCEPTED);
    asks(&s, c, ASK_RESUME, NULL);
    serve(&s, "t-0/p.1/undo");
    serve(&s, "t-0/p.0/undo");
    hand_in(&s, done(fourth), NULL, RESULT_ACCEPTED);
    all_is_undone();
}

/* Two results come at once: by the first one there is nothing to undo, by the second one there is,
 * before the row of the item is stored. Rows of earlier items, which were read, come after it. */
static void an_item_is_not_left_out_for_rows_that_were_read(void **state)
{
    const struct client *c = NULL;
    (void)state;

    struct slice first_try = last_one_is_silent(&c);
    stage_pass(&s, DOUBT_MS);
    asks(&s, c, ASK_RESOLVE, "p.4");
    asks(&s, c, ASK_RETRY, "p.4");
    struct slice second_try = take(&s, "ag", "t-0/p.4");
    stage_pass(&s, SILENCE_MS);
    asks(&s, c, ASK_UNDO, NULL);
    struct slice third = take(&s, "ag", "t-0/p.3/undo");
    const struct work_result after_all = done(first_try);
    hand_in(&s, failed(second_try), &after_all, RESULT_LATE);
    serve(&s, "t-0/p.4/undo");
    hand_in(&s, done(third), NULL, RESULT_ACCEPTED);
    serve(&s, "t-0/p.2/undo");
    serve(&s, "t-0/p.1/undo");
    serve(&s, "t-0/p.0/undo");
    all_is_undone();
}

/* What follows is at the store when it is answered. */
static void hand_in_before_the_next_job(struct work_result r)
{
    s.call_answered = s.asleep = false;
    scheduler_work(s.scheduler, call_with(r, NULL));
    while (stage_turn_without_store(&s), !s.call_answered)
        if (s.job)
            stage_store(&s);
}

/* The same while rows are being read: what was read does not have that item. */
static void an_item_is_not_left_out_for_rows_that_are_being_read(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", TWO(HOLDS));
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    serve(&s, "t-0/p.0");
    serve(&s, "t-0/p.1");
    serve(&s, "t-0/p.2");
    struct slice third = take(&s, "ag", "t-0/p.3");
    struct slice first_try = take(&s, "ag", "t-0/p.4");
    stage_pass(&s, SILENCE_MS + DOUBT_MS);
    asks(&s, c, ASK_RESOLVE, "p.3");
    asks(&s, c, ASK_RESOLVE, "p.4");
    asks(&s, c, ASK_RETRY, "p.4");
    (void)take(&s, "other", "t-0/o");
    struct slice second_try = take(&s, "ag", "t-0/p.4");
    stage_pass(&s, SILENCE_MS);
    asks(&s, c, ASK_UNDO, NULL);
    serve(&s, "t-0/p.2/undo");
    serve(&s, "t-0/p.1/undo");
    serve(&s, "t-0/p.0/undo");
    const struct work_result after_all = done(first_try);
    hand_in_before_the_next_job(done(third));
    CHECK(s.job, "its row is read");
    s.call_answered = false;
    scheduler_work(s.scheduler, call_with(failed(second_try), &after_all));
    CHECK(stage_turn_without_store(&s), "it is still being read");
    stage_store(&s);
    while (!s.call_answered)
        stage_turn(&s);
    CHECK(s.status == RESULT_LATE, "%s", result_status_text(s.status));
    struct slice fourth = take(&s, "ag", "t-0/p.4/undo");
    serve(&s, "t-0/p.3/undo");
    hand_in(&s, done(fourth), NULL, RESULT_ACCEPTED);
    check_undone(c, 5);
    stage_end(&s);
}

static void turns(struct stage *at, int64_t ms)
{
    int64_t until = at->now + ms;

    at->asleep = false;
    while (at->now < until)
        stage_turn(at);
}

/* A node that has lost a task to another one, which undoes it, does not know that yet when a late
 * result comes. */
static void a_row_that_is_newer_than_its_task_has_the_task_read_again(void **state)
{
    (void)state;

    stage_begin_shared(&s);
    stage_define(&s, "w", TWO(GOES_ON));
    turns(&s, 2000);
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    (void)take(&s, "other", "t-0/o");
    struct slice late = take(&s, "ag", "t-0/p.0");
    turns(&s, SILENCE_MS);
    serve(&s, "t-0/p.1");
    stage_join(&other, &s);
    stage_define(&other, "w", TWO(GOES_ON));
    turns(&other, MS_PER_MIN);
    asks(&other, c, ASK_UNDO, NULL);
    serve(&other, "t-0/p.1/undo");
    turns(&other, DOUBT_MS);
    serve(&other, "t-0/p.0/undo");
    s.now = other.now;
    hand_in(&s, done(late), NULL, RESULT_LATE);
    CHECK(stage_stats(&s).conflicts == 0, "nothing was decided on the task as it was");
    stage_leave(&other);
    stage_end(&s);
}

static struct store_item_ops worked;
static const struct store_ops *works;
static unsigned bad_reads; /* so many to come */

static enum err read_garbled(struct store *store, struct item_read *r, struct arena *a,
                             struct error *e)
{
    enum err err = worked.read(store, r, a, e);

    for (size_t i = 0; i < r->count && bad_reads > 0; i++)
        r->rows[i].doc = SLICE("{}");
    bad_reads -= bad_reads > 0;
    return err;
}

static enum err read_nothing(struct store *store, struct item_read *r, struct arena *a,
                             struct error *e)
{
    enum err err = worked.read(store, r, a, e);

    if (bad_reads > 0)
        r->count = 0;
    bad_reads -= bad_reads > 0;
    return err;
}

static enum err read_fails(struct store *store, struct item_read *r, struct arena *a,
                           struct error *e)
{
    if (bad_reads == 0)
        return worked.read(store, r, a, e);
    bad_reads--;
    return error_set(e, ERR_IO, "a test");
}

/* The next `count` reads of items are spoiled. */
static void spoil_reads(struct stage *at, unsigned count,
                        enum err (*read)(struct store *, struct item_read *, struct arena *,
                                         struct error *))
{
    static struct store_ops broken;
    static struct store_item_ops items;

    works = at->store->ops;
    broken = *works;
    items = worked = *works->items;
    items.read = read;
    broken.items = &items;
    at->store->ops = &broken;
    bad_reads = count;
}

/* An agent keeps what has no outcome, and sends it again. */
static void a_result_is_not_lost_while_its_row_cannot_be_read(void **state)
{
    enum err (*const reads[])(struct store *, struct item_read *, struct arena *,
                              struct error *) = {read_garbled, read_nothing};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(reads); i++) {
        const struct client *c = NULL;
        struct slice late = last_one_is_silent(&c);
        stage_pass(&s, DOUBT_MS);
        asks(&s, c, ASK_RESOLVE, "p.4");
        asks(&s, c, ASK_UNDO, NULL);
        struct slice third = take(&s, "ag", "t-0/p.3/undo");
        spoil_reads(&s, 2, reads[i]);
        stage_call(&s, call_with(done(late), NULL));
        CHECK(s.undecided, "it has no outcome");
        struct ask verb = {.kind = ASK_SKIP,
                           .id = c->ask.id,
                           .step = SLICE("p.4"),
                           .reason = SLICE("a test")};
        struct client *asked = stage_ask(&s, &verb);
        asked->expected = ERR_CORRUPT;
        stage_until_answered(&s, asked);
        s.store->ops = works;
        hand_in(&s, done(late), NULL, RESULT_LATE);
        CHECK(!s.undecided, "it has an outcome");
        hand_in(&s, done(third), NULL, RESULT_ACCEPTED);
        stage_end(&s);
    }
}

/* The task may have been deleted by another node, or had other lists since. */
static void a_row_that_is_missing_has_the_task_read_again(void **state)
{
    (void)state;

    stage_begin_shared(&s);
    stage_define(&s, "w", TWO(GOES_ON));
    turns(&s, 2000);
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    (void)take(&s, "other", "t-0/o");
    struct slice late = take(&s, "ag", "t-0/p.0");
    turns(&s, SILENCE_MS);
    spoil_reads(&s, 1, read_nothing);
    hand_in(&s, done(late), NULL, RESULT_LATE);
    CHECK(!s.undecided, "it has an outcome");
    s.store->ops = works;
    stage_end(&s);
}

/* The task is in memory for the result alone, whose caller is told to try again. */
static void a_task_whose_items_cannot_be_read_leaves_memory(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" PACK(HOLDS) "]");
    stage_until_answered(&s, stage_submit(&s, "w", SLICE("{}")));
    struct slice first = take(&s, "ag", "t-0/p.0");
    hand_in(&s, done(first), NULL, RESULT_ACCEPTED);
    hand_in(&s, failed(take(&s, "ag", "t-0/p.1")), NULL, RESULT_ACCEPTED);
    stage_pass(&s, 1000);
    CHECK(s.ended_in == TASK_ERROR && stage_stats(&s).live == 0, "it has left memory");
    spoil_reads(&s, 1, read_fails);
    stage_call(&s, call_with(done(first), NULL));
    CHECK(s.troubles == 1, "the read failed");
    stage_pass(&s, 1000);
    CHECK(stage_stats(&s).live == 0, "it has left memory again");
    hand_in(&s, done(first), NULL, RESULT_REPEATED);
    s.store->ops = works;
    stage_end(&s);
}

/* The list ends by what the scheduler decides about an answer, while an agent waits for the next
 * step. */
static void the_next_step_waits_for_the_outputs_of_a_list(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"p\",\"for_each\":[0],\"max_items\":5,\"agent\":\"ag\","
                 "\"action\":\"x\",\"undo\":\"none\",\"repeat\":{\"until\":\".output.id == 1\","
                 "\"every\":\"1m\",\"for\":\"1h\"}},{\"name\":\"n\",\"agent\":\"other\","
                 "\"action\":\"x\",\"undo\":\"none\",\"input\":\"${ .steps.p.output }\"}]");
    stage_until_answered(&s, stage_submit(&s, "w", SLICE("{}")));
    struct slice token = take(&s, "ag", "t-0/p.0");
    scheduler_work(s.scheduler, stage_call_of("other", 1));
    s.asleep = false;
    stage_turn(&s);
    s.requests = 0;
    hand_in(&s, done(token), NULL, RESULT_ACCEPTED);
    while (s.requests == 0)
        stage_turn(&s);
    CHECK(slice_is(s.input, "[{\"id\":1}]"), "%.*s", SLICE_ARG(s.input));
    stage_end(&s);
}

/* Rows that cannot be read are wanted again a second later. A pause ends that. */
static void a_task_that_is_paused_wants_no_rows(void **state)
{
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" PACK(HOLDS) "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    serve(&s, "t-0/p.0");
    hand_in(&s, failed(take(&s, "ag", "t-0/p.1")), NULL, RESULT_ACCEPTED);
    stage_pass(&s, 1000);
    spoil_reads(&s, 1, read_garbled);
    asks(&s, c, ASK_UNDO, NULL);
    while (bad_reads > 0)
        stage_turn(&s);
    CHECK(stage_stats(&s).live == 1, "it waits to read them again");
    asks(&s, c, ASK_PAUSE, NULL);
    for (int i = 0; i < 100 && !s.asleep; i++)
        stage_turn(&s);
    CHECK(s.asleep && stage_stats(&s).live == 0, "it has left memory");
    asks(&s, c, ASK_RESUME, NULL);
    serve(&s, "t-0/p.0/undo");
    s.store->ops = works;
    all_is_undone();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_that_is_being_undone_is_not_brought_back_from_its_row),
        cmocka_unit_test(an_item_is_not_left_out_for_rows_that_were_read),
        cmocka_unit_test(an_item_is_not_left_out_for_rows_that_are_being_read),
        cmocka_unit_test(a_row_that_is_newer_than_its_task_has_the_task_read_again),
        cmocka_unit_test(a_row_that_is_missing_has_the_task_read_again),
        cmocka_unit_test(a_task_whose_items_cannot_be_read_leaves_memory),
        cmocka_unit_test(the_next_step_waits_for_the_outputs_of_a_list),
        cmocka_unit_test(a_task_that_is_paused_wants_no_rows),
        cmocka_unit_test(a_result_is_not_lost_while_its_row_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
