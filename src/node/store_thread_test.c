/*
 * The real store thread, with a played store and an event loop of its own: a store that hangs
 * during maintenance is reported as busy, and urgent jobs overtake those that wait. Waits for
 * conditions, never for a time. What the thread promises: store_thread.h; the jobs: store/job.h.
 */

#include "node/store_thread.h"

#include <stdatomic.h>

#include "base/test.h"

enum { PATIENCE_MS = 180000 };

static atomic_bool hangs, is_hanging;

/* A checkpoint on a disk that does not answer. */
static bool maintain_slowly(struct store *s, bool idle)
{
    (void)s;
    (void)idle;
    while (atomic_load(&hangs)) {
        atomic_store(&is_hanging, true);
        uv_sleep(1);
    }
    return false;
}

static unsigned ran;

/* Jobs that say in which order they ran. */
struct entry {
    struct store_job job;
    unsigned place;
};

static void enters(struct store_job *j, struct store *s)
{
    (void)s;
    CONTAINER_OF(j, struct entry, job)->place = ++ran;
}

static void holds_up(struct store_job *j, struct store *s)
{
    (void)maintain_slowly(s, false);
    enters(j, s);
}

static void nothing(struct store_job *j, struct store *s)
{
    (void)j;
    (void)s;
}

static void is_done(struct store_job *j)
{
    (void)j;
}

static void wait_for_busy(struct store_thread *t, bool busy)
{
    for (int i = 0; (store_thread_busy_since_ms(t) != 0) != busy; i++) {
        CHECK(i < PATIENCE_MS, "it never says that it is %s", busy ? "busy" : "idle");
        uv_sleep(1);
    }
}

/* Looking after the store is work, too: who asks whether it hangs must hear of it. */
static void a_store_that_hangs_between_two_jobs_is_busy(void **state)
{
    const struct store_thread_config c = {.maintain = maintain_slowly};
    struct store_job job = {.run = nothing, .done = is_done};
    struct store_thread *t = NULL;
    uv_loop_t loop;
    (void)state;

    CHECK(uv_loop_init(&loop) == 0, "no loop");
    atomic_store(&hangs, true);
    CHECK(store_thread_start(&loop, &c, &t) == 0, "no thread");
    struct store_queue *q = store_thread_queue(t);
    q->submit(q, &job);
    while (!atomic_load(&is_hanging))
        uv_sleep(1);
    wait_for_busy(t, true);
    atomic_store(&hangs, false);
    wait_for_busy(t, false);
    store_thread_stop(t);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0, "something is open");
}

/* One that came later, and even after the thread had taken the others. */
static void what_is_urgent_overtakes_what_waits(void **state)
{
    const struct store_thread_config c = {0};
    struct entry e[5] = {0};
    struct store_thread *t = NULL;
    uv_loop_t loop;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(e); i++)
        e[i].job = (struct store_job){.run = enters, .done = is_done, .urgent = i >= 3};
    e[0].job.run = holds_up;
    CHECK(uv_loop_init(&loop) == 0, "no loop");
    atomic_store(&hangs, true);
    atomic_store(&is_hanging, false);
    CHECK(store_thread_start(&loop, &c, &t) == 0, "no thread");
    struct store_queue *q = store_thread_queue(t);
    for (size_t i = 0; i < 3; i++)
        q->submit(q, &e[i].job);
    while (!atomic_load(&is_hanging))
        uv_sleep(1);
    q->submit(q, &e[3].job);
    q->submit(q, &e[4].job);
    atomic_store(&hangs, false);
    store_thread_stop(t);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0, "something is open");
    CHECK(e[0].place == 1 && e[3].place == 2 && e[4].place == 3, "what is urgent: %u and %u",
          e[3].place, e[4].place);
    CHECK(e[1].place == 4 && e[2].place == 5, "the others: %u and %u", e[1].place, e[2].place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_hangs_between_two_jobs_is_busy),
        cmocka_unit_test(what_is_urgent_overtakes_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
