/*
 * A task that another node has: a client that waits for its end is woken up by the first lookup
 * that shows the end. The store is played, so nothing here waits for an answer that may not come.
 */

#include "background/waits.h"

#include "background/background.h"
#include "base/test.h"
#include "node/node.h"
#include "scheduler/scheduler_test_kit.h"

static struct stage stage; /* its scheduler has no task */
static struct server sv;
static struct glance as_stored; /* each lookup finds the task so ... */
static enum err trouble;        /* ... unless the store fails */
static struct store_job *job;   /* the lookup that the store has; NULL: none */

struct client_of_task {
    struct waiter waiter;
    int told;
};

static void told(struct waiter *w, const struct task_end *end)
{
    CHECK(!end, "what another node did is to be read");
    CONTAINER_OF(w, struct client_of_task, waiter)->told++;
}

static enum err glance(struct store *s, const struct slice *ids, size_t count, struct arena *a,
                       struct glance *ret, struct error *e)
{
    (void)s;
    (void)a;
    CHECK(count == 1 && slice_is(ids[0], "t"), "%zu tasks", count);
    ret[0] = as_stored;
    return trouble == ERR_OK ? ERR_OK : error_set(e, trouble, "it is away");
}

static const struct store_ops ops = {.glance = glance};
static struct store store = {.ops = &ops, .shared = true};

static void submit(struct store_queue *q, struct store_job *j)
{
    (void)q;
    CHECK(!job, "one lookup at a time");
    job = j;
}

static struct store_queue queue = {submit};

static int begin(void **state)
{
    struct error e = {0};
    (void)state;

    stage_begin(&stage);
    sv = (struct server){.config.store = &store,
                         .store = &queue,
                         .scheduler = stage.scheduler,
                         .background = background_new()};
    trouble = ERR_OK;
    CHECK(uv_loop_init(&sv.loop) == 0, "no loop");
    CHECK(waits_part.open(&sv, &e) == ERR_OK, "%s", e.text);
    return 0;
}

static int end(void **state)
{
    (void)state;
    waits_part.close(&sv);
    (void)uv_run(&sv.loop, UV_RUN_DEFAULT);
    waits_part.free(&sv);
    background_free(sv.background);
    CHECK(uv_loop_close(&sv.loop) == 0, "something is open");
    stage_end(&stage);
    return 0;
}

static void begins_to_wait(struct client_of_task *c)
{
    *c = (struct client_of_task){.waiter.ended = told};
    waiter_join(&sv, SLICE("t"), &c->waiter);
}

/* Lets the next lookup be made, and answers it. */
static void look(uint64_t revision, enum task_state state)
{
    as_stored = (struct glance){revision, state};
    while (!job) {
        int active = uv_run(&sv.loop, UV_RUN_ONCE);
        CHECK(job || active, "nobody looks at the task");
    }
    struct store_job *j = job;
    job = NULL;
    j->run(j, &store);
    j->done(j);
}

/* TASK_ERROR is no end, but only a person continues the task. */
static const enum task_state endings[] = {TASK_PROCESSED, TASK_COMPENSATED, TASK_ERROR};

static void an_end_is_told_as_soon_as_it_is_seen(void **state)
{
    struct client_of_task c;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        begins_to_wait(&c);
        look(1, TASK_PENDING);
        look(1, TASK_PENDING);
        look(2, TASK_PROCESSING);
        look(3, TASK_COMPENSATING);
        CHECK(c.told == 0, "it has not ended");
        look(4, endings[i]);
        CHECK(c.told == 1, "%s: told %d times", task_state_text(endings[i]), c.told);
    }
}

static void the_first_lookup_may_show_the_end(void **state)
{
    struct client_of_task c;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        begins_to_wait(&c);
        look(9, endings[i]);
        CHECK(c.told == 1, "%s: told %d times", task_state_text(endings[i]), c.told);
    }
}

static void a_task_that_is_gone_is_not_waited_for(void **state)
{
    struct client_of_task c;
    (void)state;

    begins_to_wait(&c);
    look(1, TASK_PENDING);
    look(0, TASK_PENDING);
    CHECK(c.told == 1, "told %d times", c.told);
}

static void all_who_wait_are_told(void **state)
{
    struct client_of_task all[3];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(all); i++)
        begins_to_wait(&all[i]);
    waiter_leave(&sv, &all[1].waiter);
    look(5, TASK_ERROR);
    CHECK(all[0].told == 1 && all[1].told == 0 && all[2].told == 1, "%d %d %d", all[0].told,
          all[1].told, all[2].told);
}

static void a_store_that_fails_tells_nobody(void **state)
{
    struct client_of_task c;
    (void)state;

    begins_to_wait(&c);
    trouble = ERR_BUSY;
    look(2, TASK_PROCESSED);
    CHECK(c.told == 0, "nothing is known");
    trouble = ERR_OK;
    look(2, TASK_PROCESSED);
    CHECK(c.told == 1, "told %d times", c.told);
}

/* Also while a lookup is on its way. */
static void a_node_that_ends_lets_all_go(void **state)
{
    struct client_of_task c;
    (void)state;

    begins_to_wait(&c);
    while (!job)
        CHECK(uv_run(&sv.loop, UV_RUN_ONCE) || job, "nobody looks at the task");
    waits_part.drain(&sv);
    CHECK(c.told == 1, "told %d times", c.told);
    look(2, TASK_PROCESSED);
    CHECK(c.told == 1, "told %d times", c.told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_is_told_as_soon_as_it_is_seen, begin, end),
        cmocka_unit_test_setup_teardown(the_first_lookup_may_show_the_end, begin, end),
        cmocka_unit_test_setup_teardown(a_task_that_is_gone_is_not_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(all_who_wait_are_told, begin, end),
        cmocka_unit_test_setup_teardown(a_store_that_fails_tells_nobody, begin, end),
        cmocka_unit_test_setup_teardown(a_node_that_ends_lets_all_go, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
