/* Rounds of notices over the memory store: what is asked, in which order, and what stays. The test
 * plays the scheduler, which decides when it wants to. */

#include "intake/notices.h"

#include <stdlib.h>

#include "base/test.h"
#include "store/memory/memory.h"

enum { ASKED_MAX = 2000 };

static struct {
    struct arena arena;
    struct store *store;
    struct store_queue queue;
    struct store_job *job;
    struct notices *notices;
    int64_t now;
    size_t room;
    struct notice_item *open[ASKED_MAX]; /* asked, and not answered yet */
    size_t open_count;
    char story[1000]; /* the bodies of what was asked, in that order */
    unsigned failed, refused;
} k;

/* ---- what it stands on ---- */

static void submit(struct store_queue *q, struct store_job *j)
{
    (void)q;
    CHECK(!k.job, "one job at a time");
    k.job = j;
}

static int64_t now(void *arg)
{
    (void)arg;
    return k.now;
}

static size_t room(void *arg)
{
    (void)arg;
    return k.room;
}

static void read_notice(void *arg, struct notice_item *it)
{
    (void)arg;
    it->ask = (struct ask){.kind = ASK_SIGNAL};
}

static void asks(void *arg, struct notice_item *it)
{
    size_t len = strlen(k.story);

    (void)arg;
    CHECK(k.open_count < ASKED_MAX, "too many");
    k.open[k.open_count++] = it;
    (void)snprintf(k.story + len, sizeof k.story - len, "%s%.*s", len ? " " : "",
                   SLICE_ARG(slice_cut(it->row->body, 20)));
}

static void refused(void *arg, const struct notice_item *it)
{
    (void)arg;
    CHECK(it->problem.ptr, "why");
    k.refused++;
}

static void failed(void *arg, const struct error *e)
{
    (void)arg;
    CHECK(e->text[0], "why");
    k.failed++;
}

static int begin(void **state)
{
    (void)state;
    memset(&k, 0, sizeof k);
    k.store = memory_store_new();
    k.queue.submit = submit;
    k.now = 100000;
    k.room = 1000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    notices_free(k.notices);
    k.store->ops->close(k.store);
    arena_fini(&k.arena);
    return 0;
}

static void reads_as(size_t page_max, bool shared)
{
    const struct notices_config c = {.store = &k.queue,
                                     .clock = {now, NULL},
                                     .me = SLICE("n1/1"),
                                     .shared = shared,
                                     .page_max = page_max,
                                     .room = room,
                                     .read = read_notice,
                                     .ask = asks,
                                     .refused = refused,
                                     .failed = failed};

    k.notices = notices_new(&c);
}

static void reads(size_t page_max)
{
    reads_as(page_max, false);
}

static void there_is(const char *task)
{
    const struct task_row row = {.id = slice_of(task),
                                 .workflow = SLICE("w"),
                                 .version = 1,
                                 .revision = 1,
                                 .state = TASK_PENDING,
                                 .priority = 5,
                                 .waiting_for = SLICE("@signal"),
                                 .rank = 100,
                                 .submitted_at = 1000,
                                 .doc = SLICE("{\"steps\":[]}")};
    struct change c = {.kind = CHANGE_INSERT, .row = row};
    struct batch b = {.changes = &c, .change_count = 1};
    struct error e = {0};

    enum err err = k.store->ops->commit(k.store, &b, &k.arena, &e);
    CHECK(err == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
}

static void put(const char *task, const char *body)
{
    const struct notice_row row = {.task = slice_of(task),
                                   .sender = SLICE("test"),
                                   .kind = NOTICE_SIGNAL,
                                   .at = k.now,
                                   .body = slice_of(body)};
    struct error e = {0};

    CHECK(k.store->ops->notices->put(k.store, &row, 1, &e) == ERR_OK, "%s", e.text);
}

/* ---- the scheduler ---- */

static void answer(size_t i, enum err outcome)
{
    struct notice_item *it = k.open[i];

    it->ask.outcome = outcome;
    if (outcome == ERR_OK) { /* the change deletes it */
        const struct notice_verdict v = {.seq = it->ask.notice};
        struct error e = {0};
        CHECK(k.store->ops->notices->settle(k.store, &v, 1, &e) == ERR_OK, "%s", e.text);
    }
    notices_answered(it);
}

static void answer_all(enum err outcome)
{
    size_t count = k.open_count;

    k.open_count = 0;
    for (size_t i = 0; i < count; i++)
        answer(i, outcome);
}

/* Until it waits for answers, or for a later time. */
static void goes(void)
{
    for (;;) {
        int64_t at = notices_turn(k.notices);
        struct store_job *j = k.job;
        k.job = NULL;
        if (j) {
            j->run(j, k.store);
            j->done(j);
        } else if (at == 0 || at > k.now) {
            return;
        }
    }
}

static void asked(const char *want)
{
    CHECK(strcmp(k.story, want) == 0, "asked: %s, expected: %s", k.story, want);
    k.story[0] = 0;
}

/* ---- tests ---- */

static void what_was_left_is_not_overtaken(void **state)
{
    (void)state;
    there_is("a");
    there_is("b");
    put("a", "a1");
    put("a", "a2");
    put("b", "b1");
    put("a", "a3");
    put("b", "b2");
    reads(3);
    goes();
    asked("a1 a2 b1");
    answer(0, ERR_OK);
    answer(1, ERR_BUSY);
    answer(2, ERR_OK);
    k.open_count = 0;
    goes();
    asked("b2"); /* the next page: a3 comes after a2 */
    answer_all(ERR_OK);
    k.now += 1000;
    goes();
    asked("a2 a3");
    answer_all(ERR_OK);
    CHECK(!notices_is_busy(k.notices), "there is nothing left");
}

static void who_is_answered_at_once(void *arg, struct notice_item *it)
{
    asks(arg, it);
    if (slice_is(it->row->body, "a1"))
        answer(--k.open_count, ERR_BUSY);
}

/* What the scheduler refuses while the others of a page are asked. */
static void nor_on_the_same_page(void **state)
{
    const struct notices_config c = {.store = &k.queue,
                                     .clock = {now, NULL},
                                     .me = SLICE("n1/1"),
                                     .room = room,
                                     .read = read_notice,
                                     .ask = who_is_answered_at_once,
                                     .refused = refused,
                                     .failed = failed};
    (void)state;

    there_is("a");
    there_is("b");
    put("a", "a1");
    put("a", "a2");
    put("b", "b1");
    k.notices = notices_new(&c);
    goes();
    asked("a1 b1");
    answer_all(ERR_OK);
}

static void one_change_takes_so_many(void **state)
{
    (void)state;
    there_is("a");
    for (int i = 0; i < NOTICES_OF_CHANGE_MAX + 2; i++)
        put("a", "a");
    reads(0);
    goes();
    CHECK(k.open_count == NOTICES_OF_CHANGE_MAX, "%zu", k.open_count);
    answer_all(ERR_OK);
    k.now += 1000;
    goes();
    CHECK(k.open_count == 2, "%zu", k.open_count);
    answer_all(ERR_OK);
}

/* It would take the loop tens of milliseconds. */
static void large_ones_take_several_turns(void **state)
{
    enum { LARGE = 64 << 10, COUNT = 80 };
    static char body[LARGE + 1];
    size_t most = 0;
    size_t asked_before = 0;
    (void)state;

    memset(body, '1', LARGE);
    there_is("a");
    there_is("b");
    for (int i = 0; i < COUNT; i++)
        put(i % 2 ? "a" : "b", body);
    reads(0);
    for (int i = 0; i < COUNT; i++) {
        (void)notices_turn(k.notices);
        struct store_job *j = k.job;
        k.job = NULL;
        if (j) {
            j->run(j, k.store);
            j->done(j);
        }
        most = k.open_count - asked_before > most ? k.open_count - asked_before : most;
        asked_before = k.open_count;
    }
    CHECK(most > 0 && most <= 3, "%zu in a turn", most);
    CHECK(k.open_count < COUNT && k.open_count * LARGE > 3 << 20, "a page has %zu", k.open_count);
    answer_all(ERR_OK);
    goes();
    CHECK(k.open_count > 0, "the others are on the next page");
    answer_all(ERR_OK);
}

enum { BACKLOG = 40 };

static void a_backlog(void)
{
    char id[16];

    for (int i = 0; i < BACKLOG; i++) {
        (void)snprintf(id, sizeof id, "t-%d", i);
        there_is(id);
        put(id, "x");
    }
}

/* How many notices of others the second of two nodes asks in so many seconds, in each of which it
 * is told that there are some. */
static size_t asks_in(int seconds, enum err outcome)
{
    size_t sum = 0;

    for (int i = 0; i < seconds; i++) {
        notices_surveyed(k.notices, &(struct survey){.schedulers = 2,
                                                     .schedulers_before = 1,
                                                     .notices = true});
        goes();
        for (size_t n = 0; n < k.open_count; n++)
            sum += k.open[n]->row->is_of_other;
        answer_all(outcome);
        goes();
        k.now += 1000;
    }
    return sum;
}

/* They would clash all the time. */
static void a_node_with_a_backlog_is_left_to_it(void **state)
{
    (void)state;
    a_backlog();
    reads_as(0, true);
    size_t early = asks_in(2, ERR_BUSY);
    CHECK(early == 0, "%zu asked at once", early);
    size_t sum = asks_in(60, ERR_BUSY);
    CHECK(sum > 0 && sum <= 6 * BACKLOG, "%zu asked", sum);
}

static void what_a_node_does_not_take_is_taken_by_the_next(void **state)
{
    (void)state;
    a_backlog();
    reads_as(0, true);
    size_t sum = asks_in(20, ERR_OK);
    CHECK(sum > 0 && sum < BACKLOG, "%zu asked", sum);
    struct notice_read n = {.limit = 100};
    struct error e = {0};
    CHECK(k.store->ops->notices->read(k.store, &n, &k.arena, &e) == ERR_OK, "%s", e.text);
    CHECK(n.count == 0, "%zu are left", n.count);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_was_left_is_not_overtaken),
        TEST(nor_on_the_same_page),
        TEST(one_change_takes_so_many),
        TEST(large_ones_take_several_turns),
        TEST(a_node_with_a_backlog_is_left_to_it),
        TEST(what_a_node_does_not_take_is_taken_by_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
