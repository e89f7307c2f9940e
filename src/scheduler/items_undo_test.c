/* Lists of items through the scheduler and the store: how rows of items that are undone are
 * read. */
#include "scheduler/scheduler_test_kit.h"

#include <stdio.h>

/* More than three reads of rows, which have 256. */
enum { ITEMS = 800, PLACES = 50 };

static struct stage s;

static void submit_list(void)
{
    CLEANUP(buf_fini) struct buf input = {0};

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"each\",\"for_each\":\"${ .input.list }\","
                 "\"max_items\":1000,\"concurrency\":50,\"agent\":\"ag\",\"action\":\"do\","
                 "\"undo\":{\"action\":\"undo\"}},{\"name\":\"last\",\"agent\":\"other\","
                 "\"action\":\"fail\",\"undo\":\"none\",\"retry\":{\"attempts\":1}}]");
    buf_str(&input, "{\"list\":[");
    for (int i = 0; i < ITEMS; i++)
        buf_fmt(&input, "%s%d", i ? "," : "", i);
    buf_str(&input, "]}");
    (void)stage_submit(&s, "w", arena_copy(&s.arena, buf_view(&input)));
}

/* Answers what the last call was given, all like that, and takes as many new requests as there are
 * places. */
static void answer(struct stage *at, const char *agent, uint32_t places, struct work_result like)
{
    struct work *w = stage_call_of(agent, places);

    w->results = arena_alloc(&w->arena, (at->token_count + 1) * sizeof *w->results);
    for (size_t i = 0; i < at->token_count; i++) {
        like.token = at->tokens[i];
        w->results[w->result_count++] = like;
    }
    at->token_count = 0;
    stage_call(at, w);
}

static struct work_result done(void)
{
    return (struct work_result){.output = SLICE("1")};
}

static struct work_result failed(bool retryable)
{
    return (struct work_result){.failed = true,
                                .retryable = retryable,
                                .effect = EFFECT_NONE,
                                .error = {SLICE("no"), SLICE("no")}};
}

/* Serves the list in one direction: each call gets as many as it has places. */
static void serve_list(void)
{
    size_t served = 0;

    while (served < ITEMS) {
        answer(&s, "ag", PLACES, done());
        served += s.token_count;
        CHECK(s.token_count == PLACES, "%zu requests after %zu", s.token_count, served);
    }
    answer(&s, "ag", 0, done());
}

/* Rows are read beside the commits of those before them, so no place waits for a row. */
static void an_undo_keeps_all_places_busy(void **state)
{
    (void)state;
    submit_list();
    serve_list();
    answer(&s, "other", 1, done());
    CHECK(s.token_count == 1, "the last step");
    answer(&s, "other", 0, failed(false));
    uint64_t changes = stage_stats(&s).changes;
    serve_list();
    changes = stage_stats(&s).changes - changes;
    CHECK(changes <= ITEMS / PLACES + 2, "%d changes", (int)changes);
    CHECK(s.ended == 1 && s.ended_in == TASK_COMPENSATED, "%s", task_state_text(s.ended_in));
    stage_end(&s);
}

/* ---- rows that no place waits for ---- */

enum { FEW = 6, ROWS = 2 };

static struct stage other;
static const struct store_ops *works;
static unsigned reads;            /* of rows to be undone ... */
static struct item_read asked[2]; /* ... the first ones */
static int ahead;                 /* from the second read on: ... */
enum { FINE, GARBLED, FAILS };

/* The first rows bring one item back, and leave another one known. */
static enum err read_rows(struct store *store, struct item_read *r, struct arena *a,
                          struct error *e)
{
    if (r->order != ITEMS_TO_UNDO)
        return works->items->read(store, r, a, e);
    if (reads < COUNT_OF(asked))
        asked[reads] = *r;
    r->limit = ROWS;
    r->is_all = false;
    bool spoilt = ++reads > 1;
    if (spoilt && ahead == FAILS)
        return error_set(e, ERR_IO, "a test");
    enum err err = works->items->read(store, r, a, e);
    for (size_t i = 0; spoilt && ahead == GARBLED && i < r->count; i++)
        r->rows[i].doc = SLICE("{}");
    return err;
}

static void define_few(struct stage *at)
{
    stage_define(at, "w",
                 "\"steps\":[{\"name\":\"p\",\"for_each\":[0,1,2,3,4,5],\"max_items\":6,"
                 "\"concurrency\":1,\"agent\":\"ag\",\"action\":\"do\","
                 "\"undo\":{\"action\":\"undo\",\"complete_by\":\"1h\","
                 "\"retry\":{\"attempts\":5,\"wait\":\"30m\"}}},{\"name\":\"last\","
                 "\"agent\":\"other\",\"action\":\"fail\",\"undo\":\"none\","
                 "\"retry\":{\"attempts\":1}}]");
}

static void turns(struct stage *at, int64_t ms)
{
    int64_t until = at->now + ms;

    at->asleep = false;
    while (at->now < until && !at->asleep)
        stage_turn(at);
}

/* All items are done, and the task turns back. Perhaps an agent waits for the first undo. `then`:
 * what comes of rows ahead. */
static const struct client *few_are_to_be_undone(bool awaited, int then)
{
    static struct store_ops counting;
    static struct store_item_ops items;

    stage_begin_shared(&s);
    works = s.store->ops;
    counting = *works;
    items = *works->items;
    items.read = read_rows;
    counting.items = &items;
    define_few(&s);
    turns(&s, 2000);
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    for (int i = 0; i < FEW; i++)
        answer(&s, "ag", 1, done());
    answer(&s, "ag", 0, done());
    answer(&s, "other", 1, done());
    s.store->ops = &counting;
    reads = 0;
    ahead = then;
    if (awaited)
        scheduler_work(s.scheduler, stage_call_of("ag", 1));
    answer(&s, "other", 0, failed(false));
    while (awaited && s.token_count == 0)
        stage_turn(&s);
    return c;
}

static void few_end(void)
{
    s.store->ops = works;
    stage_end(&s);
}

static void asks(struct stage *at, const struct client *c, enum ask_kind kind)
{
    const struct ask a = {.kind = kind, .id = c->ask.id, .reason = SLICE("a test")};

    stage_until_answered(at, stage_ask(at, &a));
}

/* All that are left, one by one. */
static void undo_all(struct stage *at, int count)
{
    for (int i = 0; i < count; i++) {
        at->requests = 0;
        stage_take_requests(at, "ag", 1);
        answer(at, "ag", 0, done());
    }
}

static void nothing_is_read_ahead_while_nothing_runs(void **state)
{
    (void)state;
    (void)few_are_to_be_undone(false, FINE);
    turns(&s, 1000);
    CHECK(reads == 1, "%u reads", reads);
    few_end();
}

static void nothing_is_read_ahead_for_a_paused_task(void **state)
{
    (void)state;
    const struct client *c = few_are_to_be_undone(true, FAILS);
    asks(&s, c, ASK_PAUSE);
    unsigned before = reads;
    turns(&s, 5000);
    CHECK(before > 1 && reads == before, "%u reads, then %u", before, reads);
    ahead = FINE;
    few_end();
}

/* The list counts how many there are, so nobody looks for others behind the last one: a late result
 * may be that of one item of ten thousand. */
static void no_more_rows_are_asked_for_than_there_are(void **state)
{
    (void)state;
    (void)few_are_to_be_undone(true, FINE);
    turns(&s, 1000);
    CHECK(reads == 2, "%u reads", reads);
    CHECK(asked[0].is_all && asked[0].limit == FEW, "%zu rows", asked[0].limit);
    /* one runs, and one is known */
    CHECK(asked[1].is_all && asked[1].limit == FEW - 2, "then %zu", asked[1].limit);
    answer(&s, "ag", 0, done());
    undo_all(&s, FEW - 1);
    CHECK(s.ended_in == TASK_COMPENSATED, "%s", task_state_text(s.ended_in));
    few_end();
}

/* A row ahead is unreadable, which concerns nobody yet: the undo that runs is tried again later,
 * the task is paused, and whichever node it is resumed on goes on with it. */
static void an_undo_with_rows_ahead_is_for_any_node(void **state)
{
    (void)state;
    const struct client *c = few_are_to_be_undone(true, GARBLED);
    turns(&s, 5000);
    CHECK(reads == 2, "%u reads: it is not tried again", reads);
    answer(&s, "ag", 0, failed(true));
    turns(&s, 5000);
    CHECK(stage_stats(&s).live == 0, "it rests until the next try");
    asks(&s, c, ASK_PAUSE);
    turns(&s, 5000);
    CHECK(stage_stats(&s).live == 0, "and while it is paused");
    ahead = FINE;
    stage_join(&other, &s);
    define_few(&other);
    turns(&other, 2000);
    asks(&other, c, ASK_RESUME);
    other.now += 31 * 60 * 1000;
    undo_all(&other, FEW);
    CHECK(other.ended_in == TASK_COMPENSATED, "%s", task_state_text(other.ended_in));
    s.now = other.now;
    stage_leave(&other);
    few_end();
}

/* The row ahead is needed at last: then it is an error, and read again until it can be. */
static void a_row_ahead_is_read_again_when_a_place_waits_for_it(void **state)
{
    (void)state;
    (void)few_are_to_be_undone(true, GARBLED);
    turns(&s, 5000);
    answer(&s, "ag", 1, done()); /* by the row that is known */
    CHECK(s.token_count == 1, "its row was read before");
    answer(&s, "ag", 0, done());
    turns(&s, 5000);
    CHECK(reads > 3, "%u reads", reads);
    ahead = FINE;
    undo_all(&s, FEW - 2);
    CHECK(s.ended_in == TASK_COMPENSATED, "%s", task_state_text(s.ended_in));
    few_end();
}

/* All that runs of it runs elsewhere: once the rows ahead are read, it need not be in memory. */
static void rows_ahead_do_not_keep_a_task_whose_undo_is_elsewhere(void **state)
{
    (void)state;
    (void)few_are_to_be_undone(true, FINE);
    answer(&s, "ag", 0, (struct work_result){.elsewhere = true});
    turns(&s, 1000);
    CHECK(reads == 2, "%u reads", reads);
    CHECK(stage_stats(&s).live == 0, "it has left memory");
    few_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undo_keeps_all_places_busy),
        cmocka_unit_test(nothing_is_read_ahead_while_nothing_runs),
        cmocka_unit_test(nothing_is_read_ahead_for_a_paused_task),
        cmocka_unit_test(no_more_rows_are_asked_for_than_there_are),
        cmocka_unit_test(an_undo_with_rows_ahead_is_for_any_node),
        cmocka_unit_test(a_row_ahead_is_read_again_when_a_place_waits_for_it),
        cmocka_unit_test(rows_ahead_do_not_keep_a_task_whose_undo_is_elsewhere),
    };
    return cmocka_run_group_tests_name("scheduler-items", tests, NULL, NULL);
}
