/*
 * The delivery of messages from the memory store, in simulated time. Targets are named after their
 * behavior: "ok..." accepts all; "hang..." never answers; "down..." fails while `down` is set, and
 * "away..." has no connection then; "gone..." refuses; "later..." fails, and asks for a wait of 100
 * s; "bad..." accepts all but the messages of task "poison"; "nowhere..." has no channel.
 */

#include "outbox/courier.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/test.h"
#include "store/memory/memory.h"

enum { SENT_MAX = 20000, BATCH_MAX = 5 };

struct post {
    struct delivery *list[BATCH_MAX];
    size_t count;
    delivery_done_fn *done;
    void *arg;
};

static struct {
    struct arena arena;
    struct store *store;
    struct store_queue queue;
    struct store_job *jobs[16];
    size_t job_count, runs, most_items, most_under_way, under_way;
    struct channel channel;
    struct courier *courier;
    int64_t now, wake_at;
    uint64_t epoch;
    bool leads, down, fails;
    unsigned fallen, works, dead;
    struct post *posts[SENT_MAX];
    size_t post_first, post_count;
    struct {
        char id[40], target[40];
        int64_t at;
        bool taken;
    } tries[SENT_MAX];
    size_t try_count;
    struct map tasks; /* revisions */
} k;

/* ---- the simulated outside ---- */

static void submit(struct store_queue *q, struct store_job *j)
{
    (void)q;
    CHECK(k.job_count < COUNT_OF(k.jobs), "jobs");
    k.jobs[k.job_count++] = j;
}

static int64_t now(void *arg)
{
    (void)arg;
    return k.now;
}

static bool leads(void *arg, struct fence *ret)
{
    (void)arg;
    *ret = (struct fence){SLICE("supervisor"), k.epoch};
    return k.leads;
}

static bool begins(struct slice text, const char *with)
{
    return text.len >= strlen(with) && memcmp(text.ptr, with, strlen(with)) == 0;
}

static struct channel *channel(void *arg, struct slice target, struct error *e)
{
    (void)arg;
    if (!begins(target, "nowhere"))
        return &k.channel;
    (void)error_set(e, ERR_INVALID, "nothing leads there");
    return NULL;
}

static void target_said(void *arg, struct slice target, const char *story)
{
    (void)arg;
    (void)target;
    k.fallen += story != NULL;
    k.works += story == NULL;
}

static void is_dead(void *arg, const struct delivery *d)
{
    (void)arg;
    CHECK(d->story[0], "why");
    k.dead++;
}

static bool takes(struct channel *c, struct slice target, struct error *e)
{
    (void)c;
    (void)target;
    (void)e;
    return true;
}

static size_t batch_max(struct channel *c, struct slice target)
{
    (void)c;
    (void)target;
    return BATCH_MAX;
}

static void send(struct channel *c, struct delivery **list, size_t count, delivery_done_fn *done,
                 void *arg)
{
    (void)c;
    CHECK(count > 0 && count <= BATCH_MAX && k.post_count < SENT_MAX, "%zu", count);
    k.under_way += count;
    k.most_under_way = k.under_way > k.most_under_way ? k.under_way : k.most_under_way;
    if (begins(list[0]->target, "hang"))
        return; /* it never returns them */
    struct post *p = arena_alloc(&k.arena, sizeof *p);
    *p = (struct post){.count = count, .done = done, .arg = arg};
    memcpy(p->list, list, count * sizeof *list);
    k.posts[k.post_count++] = p;
}

static void close_channel(struct channel *c)
{
    (void)c;
}

static enum delivery_end end_of(struct delivery *d)
{
    d->retry_after_ms = begins(d->target, "later") ? 100000 : 0;
    (void)snprintf(d->story, sizeof d->story, "played");
    if (begins(d->target, "gone"))
        return DELIVERY_REFUSED;
    if (begins(d->target, "away") && k.down)
        return DELIVERY_AWAY;
    if (begins(d->target, "later") || (begins(d->target, "down") && k.down)
        || (begins(d->target, "bad") && slice_is(d->subject, "poison")))
        return DELIVERY_RETRY;
    return DELIVERED;
}

static void answer(const struct post *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct delivery *d = p->list[i];
        bool held = false;
        for (size_t n = 0; n < i; n++)
            held |= p->list[n]->end != DELIVERED && slice_eq(p->list[n]->subject, d->subject);
        d->end = held ? DELIVERY_RETRY : end_of(d);
        CHECK(k.try_count < SENT_MAX, "tries");
        if (held) /* it never ends */
            continue;
        (void)snprintf(k.tries[k.try_count].id, 40, "%.*s", SLICE_ARG(d->id));
        (void)snprintf(k.tries[k.try_count].target, 40, "%.*s", SLICE_ARG(d->target));
        k.tries[k.try_count].at = k.now;
        k.tries[k.try_count++].taken = d->end == DELIVERED;
        (void)slice_eq(d->body, SLICE("{}")); /* still valid */
    }
    k.under_way -= p->count;
    p->done(p->arg, (struct delivery **)(uintptr_t)p->list, p->count);
}

/* ---- time ---- */

static void one_job(void)
{
    struct store_job *j = k.jobs[0];

    memmove(k.jobs, k.jobs + 1, --k.job_count * sizeof(struct store_job *));
    j->run(j, k.store);
    k.runs++;
    j->done(j);
}

/* Does everything that is possible at this time. */
static void settle_down(void)
{
    struct courier_stats s;

    for (unsigned n = 0;; n++) {
        CHECK(n < 100000, "it turns and turns at %" PRId64 ", to be woken at %" PRId64, k.now,
              k.wake_at);
        k.wake_at = courier_turn(k.courier);
        courier_stats(k.courier, &s);
        k.most_items = s.items > k.most_items ? s.items : k.most_items;
        if (k.job_count > 0)
            one_job();
        else if (k.post_first < k.post_count)
            answer(k.posts[k.post_first++]);
        else if (k.wake_at == 0 || k.wake_at > k.now)
            return;
    }
}

static void pass(int64_t ms)
{
    int64_t until = k.now + ms;

    for (settle_down(); k.wake_at != 0 && k.wake_at <= until; settle_down())
        k.now = k.wake_at;
    k.now = until;
    settle_down();
}

/* ---- helpers ---- */

static void tell(const char *task, const char *name, const char *target)
{
    struct message m = {.name = slice_of(name),
                        .target = slice_of(target),
                        .body = SLICE("{}"),
                        .created_at = k.now};
    struct task_row row = {.id = slice_of(task),
                           .workflow = SLICE("w"),
                           .version = 1,
                           .revision = 1,
                           .priority = 5,
                           .waiting_for = SLICE("a"),
                           .rank = 100,
                           .submitted_at = 1000,
                           .doc = SLICE("{\"steps\":[]}")};
    struct change c = {.kind = CHANGE_INSERT, .row = row, .messages = &m, .message_count = 1};
    struct batch b = {.changes = &c, .change_count = 1};
    struct arena a = {0};
    struct error e;
    uint64_t *revision = map_get(&k.tasks, row.id);

    if (!revision) {
        revision = arena_alloc(&k.arena, sizeof *revision);
        map_put(&k.tasks, arena_copy(&k.arena, row.id), revision);
    } else {
        c.kind = CHANGE_UPDATE;
    }
    c.row.revision = ++*revision;
    CHECK(k.store->ops->commit(k.store, &b, &a, &e) == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
    arena_fini(&a);
    courier_told(k.courier);
}

static size_t tried(const char *target, bool taken)
{
    size_t n = 0;

    for (size_t i = 0; i < k.try_count; i++)
        n += begins(slice_of(k.tries[i].target), target) && (!taken || k.tries[i].taken);
    return n;
}

static struct outbox_census census(void)
{
    struct outbox_census c;
    struct error e;

    CHECK(k.store->ops->outbox->census(k.store, 100000, &c, &e) == ERR_OK, "%s", e.text);
    return c;
}

static void start_courier_of(size_t items_max, bool shared)
{
    const struct courier_outside outside = {
        .now = now, .leads = leads, .channel = channel, .target = target_said, .dead = is_dead};
    const struct courier_config c = {.shared = shared, .seed = 7, .items_max = items_max};

    k.courier = courier_new(&c, &k.queue, &outside);
    CHECK(k.courier, "memory");
}

static void start_courier(size_t items_max)
{
    start_courier_of(items_max, true);
}

static int begin(void **state)
{
    static const struct channel_ops ops = {takes, batch_max, send, close_channel};

    memset(&k, 0, sizeof k);
    k.store = memory_store_new();
    k.queue.submit = submit;
    k.channel.ops = &ops;
    k.now = 1000000;
    k.leads = true;
    start_courier(0);
    /* Settling needs the fence of an existing lease. */
    struct lease_try t = {.name = SLICE("supervisor"),
                          .holder = SLICE("n/1"),
                          .now = k.now,
                          .length_ms = 10000};
    struct lease l;
    struct error e;
    CHECK(k.store->ops->lease(k.store, &t, &k.arena, &l, &e) == ERR_OK, "%s", e.text);
    k.epoch = l.epoch;
    *state = &k;
    return 0;
}

static int end(void **state)
{
    (void)state;
    while (k.job_count > 0)
        one_job();
    courier_free(k.courier);
    k.store->ops->close(k.store);
    map_fini(&k.tasks);
    arena_fini(&k.arena);
    return 0;
}

/* ---- tests ---- */

/* For each task in order, once. */
static void check_order(const char *target, const char *task)
{
    long last = 0;

    for (size_t i = 0; i < k.try_count; i++) {
        size_t len = strlen(task);
        if (strcmp(k.tries[i].target, target) != 0 || strncmp(k.tries[i].id, task, len) != 0
            || k.tries[i].id[len] != '/' || !k.tries[i].taken)
            continue;
        long n = strtol(k.tries[i].id + len + 1, NULL, 10);
        CHECK(n == last + 1, "%s after %ld", k.tries[i].id, last);
        last = n;
    }
}

static void tell_many(const char *target, int tasks, int each)
{
    char task[40];
    char name[40];

    for (int n = 1; n <= each; n++)
        for (int t = 0; t < tasks; t++) {
            (void)snprintf(task, sizeof task, "%s-%d", target, t);
            (void)snprintf(name, sizeof name, "%d/progress/a", n);
            tell(task, name, target);
        }
}

static void all_is_told_in_order_and_forgotten(void **state)
{
    struct courier_stats s;
    (void)state;

    tell_many("ok", 20, 30);
    pass(5000);
    CHECK(tried("ok", true) == 600 && tried("ok", false) == 600, "%zu", tried("ok", true));
    for (int t = 0; t < 20; t++) {
        char task[20];
        (void)snprintf(task, sizeof task, "ok-%d", t);
        check_order("ok", task);
    }
    CHECK(census().waiting == 0 && census().dead == 0, "nothing is left in the store");
    courier_stats(k.courier, &s);
    CHECK(s.items == 0 && s.targets == 0 && s.delivered == 600, "nor in memory");
    size_t runs = k.runs;
    pass(3600000);
    CHECK(k.runs == runs, "who has nothing to do asks the store nothing");
}

static void a_target_that_is_down_is_tried_one_at_a_time(void **state)
{
    int64_t gap = 0;
    (void)state;

    k.down = true;
    tell_many("down", 10, 4);
    pass(3600000);
    /* 1 s, doubling up to 5 min: about twenty in an hour, besides the first batches */
    CHECK(tried("down", false) > 15 && tried("down", false) < 70, "%zu", tried("down", false));
    for (size_t i = k.try_count - 3; i < k.try_count; i++) {
        gap = k.tries[i].at - k.tries[i - 1].at;
        CHECK(gap >= 240000 && gap <= 361000, "%" PRId64, gap);
    }
    CHECK(k.fallen == 1 && k.works == 0, "it is said once");
    CHECK(k.runs < 1000, "the store was asked %zu times", k.runs);
    k.down = false;
    pass(400000);
    CHECK(tried("down", true) == 40, "%zu", tried("down", true));
    for (int t = 0; t < 10; t++) {
        char task[20];
        (void)snprintf(task, sizeof task, "down-%d", t);
        check_order("down", task);
    }
    CHECK(k.works == 1 && census().waiting == 0, "and it works again");
}

static void check_all_of(const char *target, int tasks, int each)
{
    char task[40];

    CHECK(tried(target, true) == (size_t)(tasks * each), "%zu", tried(target, true));
    for (int t = 0; t < tasks; t++) {
        (void)snprintf(task, sizeof task, "%s-%d", target, t);
        check_order(target, task);
    }
    CHECK(census().waiting == 0, "nothing is left in the store");
}

/* Without a connection no message waits by itself: all are sent once one is delivered. */
static void what_was_away_goes_at_once(void **state)
{
    (void)state;
    k.down = true;
    tell_many("away", 10, 4);
    pass(3600000);
    size_t before = tried("away", false);
    CHECK(before > 15 && before < 100, "%zu", before);
    CHECK(census().dead == 0 && k.fallen == 1, "it is said once");
    k.down = false;
    for (int i = 0; i < 400 && tried("away", true) == 0; i++)
        pass(1000);
    pass(2000); /* it may have been delivered just before that second ended */
    check_all_of("away", 10, 4);
}

static uint32_t most_tries(const char *target)
{
    struct outbox_query q = {.target = slice_of(target), .limit = 1000};
    struct message_page page = {0};
    struct error e;
    uint32_t most = 0;

    CHECK(k.store->ops->outbox->list(k.store, &q, &k.arena, &page, &e) == ERR_OK, "%s", e.text);
    for (size_t i = 0; i < page.count; i++)
        most = page.messages[i].tries > most ? page.messages[i].tries : most;
    return most;
}

/* At once if the channel reports that the connection is back. */
static void who_is_back_is_told_all_now(void **state)
{
    struct channel another = {0};
    (void)state;

    k.down = true;
    tell_many("away", 10, 4);
    tell_many("down", 1, 1);
    pass(3600000);
    CHECK(census().waiting == 41 && most_tries("away") == 0, "no try is used up");
    size_t before = k.try_count;
    courier_back(k.courier, &another);
    settle_down();
    CHECK(k.try_count == before, "it is not theirs");
    for (int i = 0; i < 20; i++) { /* flapping */
        courier_back(k.courier, &k.channel);
        pass(500);
    }
    k.down = false;
    courier_back(k.courier, &k.channel);
    pass(200); /* what was just set aside is written first */
    CHECK(tried("away", true) == 40, "%zu", tried("away", true));
    pass(400000);
    check_all_of("away", 10, 4);
}

/* A batch in order that was interrupted. */
static void those_behind_one_that_was_away_wait_for_it_alone(void **state)
{
    (void)state;
    k.down = true;
    tell_many("away", 1, 30);
    pass(100);
    k.down = false;
    pass(3000);
    check_all_of("away", 1, 30);
}

static void patience_that_is_asked_for_is_had(void **state)
{
    (void)state;
    tell("a", "1/received", "later");
    pass(99000);
    CHECK(tried("later", false) == 1, "%zu", tried("later", false));
    pass(5000);
    CHECK(tried("later", false) == 2, "%zu", tried("later", false));
}

static void what_is_gone_is_dead_and_the_next_goes_on(void **state)
{
    (void)state;
    tell("a", "1/received", "gone");
    tell("a", "2/started", "gone");
    pass(5000);
    CHECK(k.dead == 2 && census().dead == 2 && census().waiting == 0, "%u", k.dead);
}

static void nobody_tries_for_ever(void **state)
{
    (void)state;
    k.down = true;
    tell_many("down", 5, 3);
    pass(2 * INT64_C(86400000));
    CHECK(k.dead == 0, "before its time");
    pass(2 * INT64_C(86400000));
    CHECK(k.dead == 15 && census().dead == 15, "%u", k.dead);
    k.down = false;
    tell("new", "1/received", "down");
    pass(400000);
    CHECK(tried("down", true) == 1, "new ones go");
}

/* A message that is always refused blocks only those of its task. */
static void poison_holds_up_only_its_own(void **state)
{
    (void)state;
    tell("poison", "1/received", "bad");
    tell_many("bad", 30, 5);
    tell("poison", "2/started", "bad");
    pass(10000);
    CHECK(tried("bad", true) == 150, "%zu", tried("bad", true));
    tell("poison", "3/progress/a", "bad");
    tell("other", "1/received", "bad");
    pass(3000);
    CHECK(tried("bad", true) == 151, "%zu", tried("bad", true));
    for (size_t i = 0; i < k.try_count; i++)
        CHECK(strncmp(k.tries[i].id, "poison/", 7) != 0 || k.tries[i].id[7] == '1',
              "%s overtook the one before it", k.tries[i].id);
    CHECK(census().waiting == 3, "%zu", (size_t)census().waiting);
}

/* Though it was first, and nothing else had been delivered before. */
static void poison_alone_pauses_its_target_not_for_long(void **state)
{
    (void)state;
    char target[20];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(target, sizeof target, "bad%d", i);
        tell("poison", "1/received", target);
    }
    pass(3600000);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(target, sizeof target, "bad%d", i);
        tell("other", "1/received", target);
    }
    pass(730000); /* two of the longest pauses */
    CHECK(tried("bad", true) == 20, "%zu", tried("bad", true));
}

static void what_nothing_leads_to_waits(void **state)
{
    (void)state;
    tell("a", "1/received", "nowhere");
    tell_many("ok", 3, 3);
    pass(60000);
    CHECK(tried("ok", true) == 9 && census().waiting == 1, "it holds up nobody");
}

/* Thousands of targets, most of which never answer. */
static void who_hangs_holds_up_nobody(void **state)
{
    char target[40];
    struct courier_stats s;
    (void)state;

    for (int i = 0; i < 3000; i++) {
        (void)snprintf(target, sizeof target, "%s%d", i % 10 ? "hang" : "ok", i);
        tell_many(target, 2, 2);
    }
    pass(60000);
    courier_stats(k.courier, &s);
    CHECK(tried("ok", true) == 300 * 4, "%zu, with %zu in memory", tried("ok", true), s.items);
    for (int i = 0; i < 20; i++) { /* and later ones */
        (void)snprintf(target, sizeof target, "ok-late%d", i);
        tell_many(target, 2, 2);
    }
    pass(60000);
    CHECK(tried("ok-late", true) == 80, "%zu", tried("ok-late", true));
}

/* A target with more messages than fit into memory. */
static void memory_is_bounded(void **state)
{
    (void)state;
    courier_free(k.courier);
    start_courier(200);
    k.down = true;
    tell_many("down", 100, 50);
    tell_many("hang", 100, 20);
    pass(60000);
    CHECK(k.most_items <= 200 * 2 + 512, "%zu messages at once", k.most_items);
    tell_many("ok", 10, 2);
    pass(60000);
    CHECK(tried("ok", true) == 20, "%zu", tried("ok", true));
    k.down = false;
    pass(1000000);
    CHECK(tried("down", true) == 5000, "%zu", tried("down", true));
}

/* Its messages were tried often: they wait long, although the state of the target is unknown. */
static void who_takes_over_reads_no_more_than_it_can_try(void **state)
{
    (void)state;
    k.down = true;
    tell_many("down", 3, 2);
    pass(7200000);
    courier_free(k.courier);
    start_courier(0);
    size_t runs = k.runs;
    size_t before = k.try_count;
    pass(3600000);
    CHECK(k.runs - runs < 1000, "the store was asked %zu times", k.runs - runs);
    CHECK(k.try_count - before > 8, "%zu tries", k.try_count - before);
}

/* Another node leads: deliveries under way are dropped, and the new leader sends them again. */
static void who_leads_no_more_sends_no_more(void **state)
{
    (void)state;
    tell_many("hang", 3, 2);
    tell("a", "1/received", "ok");
    pass(1000);
    k.leads = false;
    pass(1000);
    size_t before = k.try_count;
    tell("a", "2/started", "ok");
    pass(60000);
    CHECK(k.try_count == before, "it does not lead");
    k.leads = true;
    pass(1000);
    check_order("ok", "a");
    CHECK(tried("ok", true) == 2, "%zu", tried("ok", true));
}

static enum err settle_fails(struct store *s, const struct settlement *list, size_t count,
                             const struct fence *fence, struct error *e)
{
    (void)s;
    (void)list;
    (void)count;
    (void)fence;
    return error_set(e, ERR_IO, "not now");
}

/* Also for a store without other writers, where delivered messages have no item. */
static void what_was_delivered_is_deleted_as_soon_as_the_store_can(void **state)
{
    const struct store_ops *ops = k.store->ops;
    struct store_outbox_ops outbox = *ops->outbox;
    struct store_ops failing = *ops;
    (void)state;

    outbox.settle = settle_fails;
    failing.outbox = &outbox;
    for (int shared = 0; shared < 2; shared++) {
        courier_free(k.courier);
        start_courier_of(0, shared);
        k.store->ops = &failing;
        tell("a", shared ? "3/x" : "1/x", "ok");
        tell("b", shared ? "3/x" : "1/x", "ok");
        pass(5000);
        CHECK(census().waiting == 2 && tried("ok", true) == (shared ? 4 : 2), "they were told");
        k.store->ops = ops;
        pass(5000);
        CHECK(census().waiting == 0, "%" PRIu64 " are still there", census().waiting);
        CHECK(tried("ok", true) == (shared ? 4 : 2), "once each");
        struct courier_stats st;
        courier_stats(k.courier, &st);
        CHECK(st.items == 0, "none is in memory");
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(all_is_told_in_order_and_forgotten),
        TEST(a_target_that_is_down_is_tried_one_at_a_time),
        TEST(what_was_away_goes_at_once),
        TEST(who_is_back_is_told_all_now),
        TEST(those_behind_one_that_was_away_wait_for_it_alone),
        TEST(patience_that_is_asked_for_is_had),
        TEST(what_is_gone_is_dead_and_the_next_goes_on),
        TEST(nobody_tries_for_ever),
        TEST(poison_holds_up_only_its_own),
        TEST(poison_alone_pauses_its_target_not_for_long),
        TEST(what_nothing_leads_to_waits),
        TEST(who_hangs_holds_up_nobody),
        TEST(memory_is_bounded),
        TEST(who_takes_over_reads_no_more_than_it_can_try),
        TEST(who_leads_no_more_sends_no_more),
        TEST(what_was_delivered_is_deleted_as_soon_as_the_store_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
