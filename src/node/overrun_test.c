/* The watch over evaluations, with a store that is played: what is counted, and taken back. The
 * test is the loop, and it is the store's thread, too. It waits for what has to come, for minutes.
 */
#include "base/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "node/overrun.h"

enum { JOBS_MAX = 16, PATIENCE_S = 120, SPELL_MS = 50 };

static struct stage {
    struct store store;
    struct store_queue queue;
    pthread_mutex_t lock; /* of the next two */
    struct store_job *jobs[JOBS_MAX];
    size_t count;
    size_t ran, done;
    enum err answer;
    char task[40]; /* of the job that ran last */
    int by;
    struct overrun_watch *watch;
} stage;

static enum err overrun_count(struct store *s, const struct overrun_count *c, struct error *e)
{
    (void)s;
    (void)e;
    (void)snprintf(stage.task, sizeof stage.task, "%.*s", SLICE_ARG(c->task));
    stage.by = c->by;
    return stage.answer;
}

static void submit(struct store_queue *q, struct store_job *j)
{
    (void)q;
    (void)pthread_mutex_lock(&stage.lock);
    ASSERT(stage.count < JOBS_MAX);
    stage.jobs[stage.count++] = j;
    (void)pthread_mutex_unlock(&stage.lock);
}

static int64_t now(void *arg)
{
    (void)arg;
    return 1;
}

static bool has_job(void)
{
    (void)pthread_mutex_lock(&stage.lock);
    bool any = stage.count > stage.ran;
    (void)pthread_mutex_unlock(&stage.lock);
    return any;
}

/* The next one; the loop is not told of it yet. */
static void run_job(enum err answer)
{
    stage.answer = answer;
    stage.jobs[stage.ran]->run(stage.jobs[stage.ran], &stage.store);
    stage.ran++;
}

static void tell_loop(void)
{
    for (; stage.done < stage.ran; stage.done++)
        stage.jobs[stage.done]->done(stage.jobs[stage.done]);
}

static int64_t spent_ms(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Processor time of the loop. */
static void work_on(void)
{
    int64_t until = spent_ms(CLOCK_THREAD_CPUTIME_ID) + SPELL_MS;

    while (spent_ms(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

static void rest(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = SPELL_MS * 1000000L}, NULL);
}

static void begin(void)
{
    static const struct store_ops ops = {.overrun_count = overrun_count};
    const struct overrun_config c = {.store = &stage.queue, .now = now};

    stage = (struct stage){.store = {.ops = &ops}, .queue = {submit}};
    (void)pthread_mutex_init(&stage.lock, NULL);
    CHECK(overrun_start(&c, &stage.watch) == 0, "there are threads");
}

static void end(void)
{
    overrun_stop(stage.watch);
    while (has_job())
        run_job(ERR_OK);
    tell_loop();
    overrun_free(stage.watch);
    (void)pthread_mutex_destroy(&stage.lock);
}

#define UNTIL_JOB(what)                                                        \
    for (int64_t from = spent_ms(CLOCK_MONOTONIC); !has_job();) {              \
        CHECK(spent_ms(CLOCK_MONOTONIC) < from + PATIENCE_S * 1000, "no job"); \
        what;                                                                  \
    }

static void ran(const char *task, int by)
{
    CHECK(strcmp(stage.task, task) == 0 && stage.by == by, "%s by %d", stage.task, stage.by);
}

static void what_cannot_be_taken_back_is_asked_for_again(void **state)
{
    (void)state;
    begin();
    overrun_evaluates(stage.watch, SLICE("slow"), true);
    UNTIL_JOB(work_on());
    run_job(ERR_OK);
    ran("slow", 1);
    overrun_evaluates(stage.watch, SLICE("slow"), false);
    overrun_turn_over(stage.watch);
    tell_loop();
    for (int i = 0; i < 3; i++) {
        UNTIL_JOB(rest());
        run_job(i < 2 ? ERR_BUSY : ERR_OK);
        ran("slow", -1);
        tell_loop();
    }
    end();
    CHECK(stage.count == 4, "%zu jobs", stage.count);
}

static void what_was_never_counted_is_not_taken_back(void **state)
{
    (void)state;
    begin();
    overrun_evaluates(stage.watch, SLICE("slow"), true);
    UNTIL_JOB(work_on());
    run_job(ERR_BUSY);
    overrun_evaluates(stage.watch, SLICE("slow"), false);
    overrun_turn_over(stage.watch);
    tell_loop();
    end();
    CHECK(stage.count == 1, "%zu jobs", stage.count);
}

static void many_short_ones_of_one_task_are_a_long_one(void **state)
{
    const struct slice task = SLICE("many");
    (void)state;

    begin();
    UNTIL_JOB({
        overrun_evaluates(stage.watch, task, true);
        work_on();
        overrun_evaluates(stage.watch, task, false);
    });
    run_job(ERR_OK);
    ran("many", 1);
    end();
    ran("many", -1);
}

/* The loop has not come back to give the first one's job back. */
static void an_endless_one_behind_a_slow_one_is_counted(void **state)
{
    (void)state;
    begin();
    overrun_evaluates(stage.watch, SLICE("slow"), true);
    UNTIL_JOB(work_on());
    run_job(ERR_OK);
    overrun_evaluates(stage.watch, SLICE("slow"), false);
    overrun_evaluates(stage.watch, SLICE("endless"), true);
    for (bool is_counted = false; !is_counted;) {
        UNTIL_JOB(work_on());
        run_job(ERR_OK);
        is_counted = strcmp(stage.task, "endless") == 0 && stage.by == 1;
    }
    overrun_evaluates(stage.watch, SLICE("endless"), false);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_taken_back_is_asked_for_again),
        cmocka_unit_test(what_was_never_counted_is_not_taken_back),
        cmocka_unit_test(many_short_ones_of_one_task_are_a_long_one),
        cmocka_unit_test(an_endless_one_behind_a_slow_one_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
