/* Tests of the ticker with the store in memory: how it works through more schedules than fit into
 * one transaction. plan_test.c tests what a moment means, sim/schedules.c the rest. */

#include <stdlib.h>

#include "base/test.h"
#include "base/when.h"
#include "schedule/row.h"
#include "schedule/ticker.h"
#include "store/memory/memory.h"

enum { COUNT = 10, BATCH = 2, HOUR = 10 };

/* One node, which leads; its clock stands still. */
static struct stage {
    struct store_queue queue;
    struct store *store;
    struct lease lease;
    struct arena arena;
    int64_t now;
} s;

static void at_once(struct store_queue *q, struct store_job *j)
{
    (void)q;
    j->run(j, s.store);
    j->done(j);
}

static int64_t now_of(void *arg)
{
    (void)arg;
    return s.now;
}

static bool leads(void *arg, struct fence *ret)
{
    (void)arg;
    *ret = (struct fence){SLICE(SUPERVISOR_LEASE), s.lease.epoch};
    return true;
}

static void submitted(void *arg)
{
    (void)arg;
}

static void no_undo(void *arg, const char *run)
{
    (void)arg;
    CHECK(false, "undo of %s", run);
}

/* Its moment at 10:00 waits for the end of a run that has ended. */
static void store_one(int number)
{
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct mistakes *m = calloc(1, sizeof *m);
    struct schedule *schedule = NULL;
    struct error e = {0};

    buf_fmt(&text, "intact: 1\nschedule: s-%d\nworkflow: w\nevery: 1h\noverlap: wait\n", number);
    CHECK(schedule_parse(buf_view(&text), SOURCE_GUESS, &schedule, m, NULL) == ERR_OK, "%s",
          m->list[0].expected);
    free(m);
    struct schedule_state st = {.last = HOUR * MS_PER_H,
                                .waiting = HOUR * MS_PER_H,
                                .run = SLICE("ended@1")};
    struct schedule_change c = {.row = {.name = schedule->name,
                                        .version = 1,
                                        .workflow = schedule->workflow,
                                        .text = buf_view(&text),
                                        .author = SLICE("ann"),
                                        .stored_at = 1},
                                .new_version = true};
    schedule_encode(schedule, &st, s.now, &doc, &c.row);
    CHECK(c.row.waits && c.row.revision == 1, "it waits for a run");
    enum err err = s.store->ops->schedules->write(s.store, &c, 1, NULL, &e);
    CHECK(err == ERR_OK && c.done, "%s", e.text);
    schedule_free(schedule);
}

static int begin(void **state)
{
    const struct lease_try want = {.name = SLICE(SUPERVISOR_LEASE),
                                   .holder = SLICE("n1/1"),
                                   .now = 1,
                                   .length_ms = MS_PER_MIN};
    struct error e = {0};

    (void)state;
    s = (struct stage){.queue.submit = at_once,
                       .store = memory_store_new(),
                       .now = HOUR * MS_PER_H + MS_PER_MIN};
    enum err err = s.store->ops->lease(s.store, &want, &s.arena, &s.lease, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    for (int i = 0; i < COUNT; i++)
        store_one(i);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_fini(&s.arena);
    s.store->ops->close(s.store);
    return 0;
}

/* The rest of those that wait follows at once, and not when they are looked at again. */
static void all_that_wait_are_decided_at_once(void **state)
{
    const struct ticker_config c = {.store = &s.queue,
                                    .batch_max = BATCH,
                                    .now = now_of,
                                    .steady = now_of,
                                    .leads = leads,
                                    .submitted = submitted,
                                    .undo = no_undo};
    struct ticker *tk = ticker_new(&c);
    struct ticker_stats stats;

    (void)state;
    for (int i = 0; i < 3 * COUNT; i++)
        (void)ticker_turn(tk);
    ticker_stats(tk, &stats);
    CHECK(stats.fired == COUNT, "%" PRIu64 " of %d", stats.fired, COUNT);
    CHECK(stats.wait_count == 0, "none waits");
    ticker_free(tk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_that_wait_are_decided_at_once, begin, end),
    };

    return cmocka_run_group_tests_name("ticker", tests, NULL, NULL);
}
