/* Tests of wake.c with a second thread: nothing that was sent is missed, and one wake-up answers
 * all that was sent before. */

#include "node/wake.h"

#include <pthread.h>

#include "base/test.h"

enum { SENDS = 20000, PATIENCE_MS = 180000 };

struct told {
    struct wake wake;
    atomic_int said;
    int seen, times;
    int again; /* so often it sends by itself */
    bool closed;
};

static void looks(struct wake *w)
{
    struct told *t = CONTAINER_OF(w, struct told, wake);

    t->seen = atomic_load(&t->said);
    t->times++;
    if (t->again-- > 0)
        wake_send(w);
}

static void *says(void *arg)
{
    struct told *t = arg;

    for (int i = 1; i <= SENDS; i++) {
        atomic_store(&t->said, i);
        wake_send(&t->wake);
    }
    return NULL;
}

static void closed(uv_handle_t *h)
{
    ((struct told *)h->data)->closed = true;
}

static void open_both(uv_loop_t *loop, struct told *t)
{
    CHECK(uv_loop_init(loop) == 0, "no loop");
    CHECK(wake_open(&t->wake, loop, looks) == 0, "no descriptor");
    t->wake.poll.data = t;
}

static void close_both(uv_loop_t *loop, struct told *t)
{
    wake_close(&t->wake, closed);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    CHECK(t->closed, "it is not let go");
    CHECK(uv_loop_close(loop) == 0, "something is open");
}

static void nothing_is_missed(void **state)
{
    struct told t = {0};
    pthread_t thread;
    uv_loop_t loop;
    (void)state;

    open_both(&loop, &t);
    CHECK(pthread_create(&thread, NULL, says, &t) == 0, "no thread");
    for (int i = 0; t.seen < SENDS; i++) {
        CHECK(i < PATIENCE_MS, "it has seen %d", t.seen);
        if (uv_run(&loop, UV_RUN_NOWAIT) != 0 && i % 16 == 15)
            uv_sleep(1);
    }
    CHECK(pthread_join(thread, NULL) == 0, "join");
    close_both(&loop, &t);
}

/* So that who goes on in the next round lets others have theirs. */
static void one_round_answers_all_that_was_sent_before(void **state)
{
    struct told t = {0};
    uv_loop_t loop;
    (void)state;

    open_both(&loop, &t);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(t.times == 0, "nobody has sent");
    (void)says(&t);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(t.times == 1 && t.seen == SENDS, "%d times, %d", t.times, t.seen);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(t.times == 1, "%d times", t.times);
    close_both(&loop, &t);
}

static void who_sends_when_woken_is_woken_once_in_each_round(void **state)
{
    struct told t = {.again = 3};
    uv_loop_t loop;
    (void)state;

    open_both(&loop, &t);
    wake_send(&t.wake);
    for (int i = 1; i <= 6; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        CHECK(t.times == (i < 4 ? i : 4), "%d times after %d rounds", t.times, i);
    }
    close_both(&loop, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_missed),
        cmocka_unit_test(one_round_answers_all_that_was_sent_before),
        cmocka_unit_test(who_sends_when_woken_is_woken_once_in_each_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
