/* Tests of alerts.c and alerts_tell.c in simulated time: hours and days of conditions that come
 * and go, sinks that fail, restarts and changes of the leader, and random histories at the end. */

#include "base/test.h"

#include "alerts/alerts.h"
#include "base/prng.h"
#include "base/when.h"

enum {
    TASKS = BIT(CONDITION_TASK_ERROR) | BIT(CONDITION_COMPENSATION_FAILED)
            | BIT(CONDITION_APPROVAL_WAITING),
    SEEN_MAX = 256
};

/* A receiver that records everything. */
struct desk {
    struct alerts *a;
    struct alert_sink sinks[3];
    size_t sink_count;
    int64_t now;
    bool broken[3];
    size_t deliveries[3], notices[3][NOTICE_RESOLVED + 1];
    char last[3][64]; /* id/notice */
    bool store_works;
};

static struct desk desk_of(size_t sinks)
{
    static const char *const names[] = {"one", "two", "three"};
    struct desk d = {.sink_count = sinks, .now = INT64_C(1700000000000), .store_works = true};

    for (size_t i = 0; i < sinks; i++)
        (void)snprintf(d.sinks[i].name, sizeof d.sinks[i].name, "%s", names[i]);
    return d;
}

static void desk_open(struct desk *d)
{
    struct alerts_config c = alerts_config_default();

    c.sinks = d->sinks;
    c.sink_count = d->sink_count;
    d->a = alerts_new(&c);
}

static void store_all(struct desk *d)
{
    struct alert *al = NULL;

    while (d->store_works && (al = alerts_unwritten(d->a, d->now))) {
        alert_writing(al);
        alert_written(al, al->notice, al->lifted, d->now);
    }
}

static void hear(struct desk *d, size_t sink)
{
    const struct alert *list[ALERTS_A_DELIVERY];
    int64_t next = 0;

    size_t count = alerts_tell(d->a, sink, d->store_works, d->now, list, &next);
    if (count == 0)
        return;
    for (size_t i = 1; i < count; i++) /* otherwise its id would differ in the next process */
        CHECK(slice_order(list[i - 1]->key, list[i]->key) < 0, "a delivery has its order");
    for (size_t i = 0; i < count && !d->broken[sink]; i++) {
        CHECK(list[i]->id[0] && list[i]->notice > 0, "what is told has a name");
        d->notices[sink][list[i]->kind]++;
        (void)snprintf(d->last[sink], sizeof d->last[sink], "%s/%u", list[i]->id, list[i]->notice);
    }
    d->deliveries[sink] += !d->broken[sink];
    alerts_told(d->a, sink, !d->broken[sink], "no", d->now);
}

static void step(struct desk *d)
{
    (void)alerts_turn(d->a, d->now);
    store_all(d);
    for (size_t i = 0; i < d->sink_count; i++)
        hear(d, i);
    store_all(d);
}

static void pass(struct desk *d, int64_t ms)
{
    for (int64_t until = d->now + ms; d->now < until;) {
        d->now = min_i64(until, d->now + 1000);
        step(d);
    }
}

static struct sighting failure(const char *step, const char *code, const char *task, uint64_t count)
{
    return (struct sighting){.condition = CONDITION_TASK_ERROR,
                             .labels = {{"workflow", SLICE("order")},
                                        {"step", slice_of(step)},
                                        {"code", slice_of(code)}},
                             .count = count,
                             .example = slice_of(task)};
}

static void look(struct desk *d, const struct sighting *list, size_t count)
{
    alerts_look_begin(d->a, TASKS);
    for (size_t i = 0; i < count; i++)
        alerts_see(d->a, &list[i], d->now);
    alerts_look_end(d->a, TASKS, d->now);
}

static const struct alert *only(const struct desk *d)
{
    size_t i = 0;
    const struct alert *al = alerts_next(d->a, &i);

    CHECK(al && !alerts_next(d->a, &i), "one alert");
    return al;
}

static void told(const struct desk *d, size_t opened, size_t reminders, size_t resolved)
{
    const size_t *n = d->notices[0];

    CHECK(n[NOTICE_OPENED] == opened && n[NOTICE_REMINDER] == reminders
              && n[NOTICE_RESOLVED] == resolved,
          "told %zu opened, %zu reminders, %zu resolved", n[NOTICE_OPENED], n[NOTICE_REMINDER],
          n[NOTICE_RESOLVED]);
}

static void what_fails_is_told_within_seconds_once(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = failure("charge", "declined", "t-1", 1);
    (void)state;

    desk_open(&d);
    alerts_add(d.a, &s, d.now);
    step(&d);
    told(&d, 0, 0, 0);
    pass(&d, 6000);
    told(&d, 1, 0, 0);
    pass(&d, 50 * MS_PER_MIN);
    told(&d, 1, 0, 0);
    CHECK(strcmp(only(&d)->examples[0], "t-1") == 0, "with an example");
    alerts_free(d.a);
}

/* The promise: an outage of one service, 100 000 tasks, eight hours, no acknowledgement. */
static void an_outage_of_100_000_failures_is_few_deliveries(void **state)
{
    struct desk d = desk_of(1);
    char task[20];
    (void)state;

    desk_open(&d);
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(task, sizeof task, "t-%d", i);
        struct sighting s = failure("charge", i % 7 ? "unavailable" : "timeout", task, 1);
        alerts_add(d.a, &s, d.now);
        if (i % 4 == 0) {
            d.now += 1000; /* 25 000 s of failures */
            step(&d);
        }
    }
    pass(&d, MS_PER_H);
    CHECK(d.deliveries[0] > 0 && d.deliveries[0] < 10, "%zu deliveries", d.deliveries[0]);
    CHECK(d.notices[0][NOTICE_OPENED] == 2, "two groups");
    size_t i = 0;
    uint64_t sum = 0;
    for (struct alert *al = NULL; (al = alerts_next(d.a, &i));) {
        sum += al->count;
        CHECK(al->example_count == ALERT_EXAMPLES, "examples are bounded");
    }
    CHECK(sum == 100000, "all are counted: %d", (int)sum);
    alerts_free(d.a);
}

/* Failures of every kind: groups and deliveries stay bounded. */
static void failures_of_a_thousand_kinds_are_bounded(void **state)
{
    struct desk d = desk_of(1);
    char code[20];
    size_t count = 0;
    (void)state;

    desk_open(&d);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(code, sizeof code, "c-%d", i % 1000);
        struct sighting s = failure("charge", code, "t", 1);
        alerts_add(d.a, &s, d.now);
        if (i % 10 == 0) {
            d.now += 1000;
            step(&d);
        }
    }
    for (size_t i = 0; alerts_next(d.a, &i);)
        count++;
    CHECK(count == CONDITION_GROUPS + 1, "%zu groups", count);
    pass(&d, 10 * MS_PER_MIN);
    CHECK(d.notices[0][NOTICE_OPENED] == CONDITION_GROUPS + 1, "each is told");
    CHECK(d.deliveries[0] < 12, "%zu deliveries", d.deliveries[0]);
    alerts_free(d.a);
}

static void it_is_repeated_until_somebody_knows(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = failure("charge", "declined", "t-1", 3);
    (void)state;

    desk_open(&d);
    look(&d, &s, 1);
    pass(&d, 3 * MS_PER_H + MS_PER_MIN);
    told(&d, 1, 2, 0); /* after 1 h, and 2 h more */
    struct slice id = slice_of(only(&d)->id);
    CHECK(alerts_acknowledge(d.a, SLICE("a-0"), d.now, SLICE("ann"), SLICE("x")) == ERR_NOT_FOUND,
          "no such");
    CHECK(alerts_acknowledge(d.a, id, d.now, SLICE("ann"), SLICE("calling them")) == ERR_OK, "ack");
    pass(&d, 40 * MS_PER_H);
    told(&d, 1, 2, 0);
    look(&d, NULL, 0);
    pass(&d, 6 * MS_PER_MIN);
    told(&d, 1, 2, 1);
    pass(&d, 3 * MS_PER_H);
    told(&d, 1, 2, 1);
    size_t i = 0;
    CHECK(!alerts_next(d.a, &i), "and then forgotten");
    alerts_free(d.a);
}

/* After an acknowledgement nothing more is sent about this outage, but the next one, hours later,
 * is. */
static void new_failures_after_a_quiet_hour_are_told_again(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = failure("charge", "declined", "t-1", 1);
    (void)state;

    desk_open(&d);
    alerts_add(d.a, &s, d.now);
    pass(&d, 10000);
    struct slice id = slice_of(only(&d)->id);
    CHECK(alerts_acknowledge(d.a, id, d.now, SLICE("ann"), SLICE("known")) == ERR_OK, "ack");
    for (int i = 0; i < 300; i++) { /* it continues for hours */
        alerts_add(d.a, &s, d.now);
        pass(&d, MS_PER_MIN);
    }
    told(&d, 1, 0, 0);
    pass(&d, 2 * MS_PER_H);
    alerts_add(d.a, &s, d.now);
    pass(&d, 10000);
    told(&d, 1, 1, 0);
    CHECK(only(&d)->acknowledged_at == 0, "it is open again");
    alerts_free(d.a);
}

static void a_short_one_is_not_told(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = {.condition = CONDITION_BREAKER_OPEN,
                         .labels = {{"agent", SLICE("bank")}},
                         .count = 1};
    (void)state;

    desk_open(&d);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 50; k++) {
            alerts_look_begin(d.a, BIT(CONDITION_BREAKER_OPEN));
            alerts_see(d.a, &s, d.now);
            alerts_look_end(d.a, BIT(CONDITION_BREAKER_OPEN), d.now);
            pass(&d, 1000);
        }
        alerts_look_begin(d.a, BIT(CONDITION_BREAKER_OPEN));
        alerts_look_end(d.a, BIT(CONDITION_BREAKER_OPEN), d.now);
        pass(&d, 1000);
    }
    told(&d, 0, 0, 0);
    alerts_free(d.a);
}

static void what_comes_and_goes_is_told_seldom(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = failure("charge", "declined", "t-1", 1);
    (void)state;

    desk_open(&d);
    for (int i = 0; i < 24; i++) { /* every ten minutes, for four hours */
        look(&d, &s, 1);
        pass(&d, 2 * MS_PER_MIN);
        look(&d, NULL, 0);
        pass(&d, 8 * MS_PER_MIN);
    }
    CHECK(d.deliveries[0] < 10, "%zu deliveries", d.deliveries[0]);
    alerts_free(d.a);
}

static void a_sink_that_fails_is_told_later_and_holds_up_nobody(void **state)
{
    struct desk d = desk_of(2);
    struct sighting s = failure("charge", "declined", "t-1", 1);
    (void)state;

    d.broken[1] = true;
    desk_open(&d);
    alerts_add(d.a, &s, d.now);
    pass(&d, 20 * MS_PER_MIN);
    CHECK(d.deliveries[0] == 1 && d.deliveries[1] == 0, "one works");
    CHECK(alerts_sink(d.a, 1)->failing > 5 && alerts_sink(d.a, 1)->failing < 20, "%u tries",
          alerts_sink(d.a, 1)->failing);
    d.broken[1] = false;
    pass(&d, 6 * MS_PER_MIN);
    CHECK(d.deliveries[1] == 1 && d.notices[1][NOTICE_OPENED] == 1, "told when it is back");
    CHECK(d.deliveries[0] == 1, "and nobody twice");
    alerts_free(d.a);
}

static void sinks_hear_what_they_asked_for(void **state)
{
    struct desk d = desk_of(3);
    struct sighting s = failure("charge", "declined", "t-1", 1);
    struct sighting store = {.condition = CONDITION_STORE_TROUBLE, .count = 1};
    (void)state;

    d.sinks[0].conditions = BIT(CONDITION_STORE_TROUBLE);
    d.sinks[1].workflow = SLICE("order");
    d.sinks[2].workflow = SLICE("other");
    desk_open(&d);
    alerts_add(d.a, &s, d.now);
    pass(&d, 10000);
    alerts_add(d.a, &store, d.now);
    pass(&d, MS_PER_MIN);
    CHECK(d.deliveries[0] == 1 && d.notices[0][NOTICE_OPENED] == 1, "the store alone");
    CHECK(d.deliveries[1] == 1 && d.notices[1][NOTICE_OPENED] == 1, "that workflow alone");
    CHECK(d.deliveries[2] == 0, "nothing");
    alerts_free(d.a);
}

/* Alertmanager forgets alerts that are not repeated. */
static void one_that_forgets_is_told_again_while_it_is_open(void **state)
{
    struct desk d = desk_of(2);
    struct sighting s = failure("charge", "declined", "t-1", 1);
    (void)state;

    d.sinks[1].resend_ms = MS_PER_MIN;
    desk_open(&d);
    look(&d, &s, 1);
    pass(&d, 30 * MS_PER_MIN);
    CHECK(d.deliveries[0] == 1, "one is enough");
    CHECK(d.deliveries[1] >= 29 && d.deliveries[1] <= 31, "%zu", d.deliveries[1]);
    look(&d, NULL, 0);
    pass(&d, 7 * MS_PER_MIN);
    CHECK(d.notices[1][NOTICE_RESOLVED] == 1, "resolved once");
    size_t before = d.deliveries[1];
    pass(&d, 30 * MS_PER_MIN);
    CHECK(d.deliveries[1] == before, "and then quiet");
    alerts_free(d.a);
}

/* ---- rows ---- */

struct row {
    struct buf doc, key;
    char id[ALERT_ID_SIZE];
    int64_t opened_at, resolved_at, acknowledged_at;
};

static size_t rows_of(const struct desk *d, struct row *rows, size_t max)
{
    size_t count = 0;
    size_t i = 0;

    for (const struct alert *al = NULL; (al = alerts_next(d->a, &i));) {
        CHECK(count < max, "rows");
        if (!al->id[0])
            continue;
        struct row *r = &rows[count++];
        *r = (struct row){.opened_at = al->opened_at,
                          .resolved_at = al->resolved_at,
                          .acknowledged_at = al->acknowledged_at};
        memcpy(r->id, al->id, sizeof r->id);
        alert_write(d->a, al, &r->doc);
        buf_slice(&r->key, al->key);
    }
    return count;
}

static void load(struct desk *d, struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct alert_stored st = {.id = slice_of(rows[i].id),
                                        .key = buf_view(&rows[i].key),
                                        .doc = buf_view(&rows[i].doc),
                                        .opened_at = rows[i].opened_at,
                                        .resolved_at = rows[i].resolved_at,
                                        .acknowledged_at = rows[i].acknowledged_at,
                                        .acknowledged_by = SLICE("ann"),
                                        .acknowledged_why = SLICE("known")};
        CHECK(alerts_load(d->a, &st, d->now) == ERR_OK, "row %s", rows[i].id);
        buf_fini(&rows[i].doc);
        buf_fini(&rows[i].key);
    }
}

/* A restart, or another leader: only the stored state is known. */
static void fail_over(struct desk *d)
{
    static struct row rows[SEEN_MAX];
    size_t count = rows_of(d, rows, COUNT_OF(rows));

    alerts_free(d->a);
    desk_open(d);
    load(d, rows, count);
}

/* Readers look for the task that failed now, not for one that was fixed long ago. */
static void it_names_what_is_wrong_now(void **state)
{
    struct desk d = desk_of(1);
    struct sighting first = failure("charge", "declined", "t-1", 1);
    struct sighting second = failure("charge", "declined", "t-2", 1);
    struct sighting third = failure("charge", "declined", "t-3", 1);
    (void)state;

    first.story = SLICE("of the first");
    desk_open(&d);
    look(&d, &first, 1);
    pass(&d, 10000);
    look(&d, NULL, 0); /* it is fixed, and not yet resolved: another one fails */
    pass(&d, 10000);
    alerts_add(d.a, &second, d.now);
    pass(&d, 10000);
    told(&d, 1, 0, 0);
    CHECK(only(&d)->example_count == 1, "one task");
    CHECK(strcmp(only(&d)->examples[0], "t-2") == 0, "%s", only(&d)->examples[0]);
    CHECK(!only(&d)->story[0], "%s", only(&d)->story);
    look(&d, (struct sighting[]){second, third}, 2);
    CHECK(only(&d)->example_count == 2, "both");
    look(&d, &third, 1); /* one of two is fixed */
    CHECK(only(&d)->example_count == 1 && strcmp(only(&d)->examples[0], "t-3") == 0, "the other");
    look(&d, NULL, 0);
    pass(&d, 30 * MS_PER_MIN);
    told(&d, 1, 0, 1);
    alerts_add(d.a, &first, d.now); /* it is open again */
    pass(&d, 10000);
    told(&d, 2, 0, 1);
    CHECK(only(&d)->example_count == 1 && strcmp(only(&d)->examples[0], "t-1") == 0, "that one");
    fail_over(&d);
    pass(&d, 1000);
    CHECK(only(&d)->example_count == 1 && strcmp(only(&d)->examples[0], "t-1") == 0,
          "so does its row");
    alerts_free(d.a);
}

static struct sighting question(int64_t asked_at, int64_t remind_ms)
{
    return (struct sighting){.condition = CONDITION_APPROVAL_WAITING,
                             .labels = {{"workflow", SLICE("expense")},
                                        {"step", SLICE("allow")},
                                        {"group", SLICE("finance")}},
                             .count = 1,
                             .first_at = asked_at,
                             .repeat_ms = remind_ms,
                             .each = true};
}

/* Neither more often nor less, whoever leads. */
static void people_are_reminded_as_their_step_says(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = question(d.now, 5 * MS_PER_H);
    (void)state;

    desk_open(&d);
    look(&d, &s, 1);
    pass(&d, 4 * MS_PER_H);
    told(&d, 1, 0, 0);
    fail_over(&d); /* the next one has not looked yet */
    pass(&d, 30 * MS_PER_MIN);
    told(&d, 1, 0, 0);
    look(&d, &s, 1);
    pass(&d, 11 * MS_PER_H);
    told(&d, 1, 3, 0); /* after 5, 10 and 15 hours */
    look(&d, NULL, 0); /* they have decided */
    pass(&d, 6 * MS_PER_MIN);
    told(&d, 1, 3, 1);
    alerts_free(d.a);
}

static void is_looked_at(struct desk *d, struct sighting s, int64_t ms)
{
    look(d, &s, 1);
    pass(d, ms / 2);
    look(d, &s, 1);
    pass(d, ms / 2);
}

static void acknowledge(struct desk *d)
{
    CHECK(alerts_acknowledge(d->a, slice_of(only(d)->id), d->now, SLICE("ann"), SLICE("known"))
              == ERR_OK,
          "acknowledged");
}

/* People must decide on each: it is no more of the same, as failures are. */
static void each_question_is_told_once(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = question(d.now, MS_PER_D);
    (void)state;

    desk_open(&d);
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 0, 0);
    s.count = 2; /* another task asks them, and its step, too */
    s.latest_at = d.now;
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 1, 0);
    acknowledge(&d);
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 1, 0);
    s.latest_at = d.now; /* one was decided, and there is another one */
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 2, 0);
    CHECK(only(&d)->acknowledged_at == 0, "nobody knows of that one");
    acknowledge(&d);
    look(&d, NULL, 0); /* all are decided, and a minute later there is one */
    pass(&d, MS_PER_MIN);
    s = question(d.now, MS_PER_D);
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 3, 0);
    s.count = 2; /* one that was asked earlier, and is seen only now */
    s.first_at -= 1000;
    s.latest_at = s.first_at;
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 4, 0);
    s.count = 1;
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 4, 0);
    fail_over(&d);
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 1, 4, 0);
    look(&d, NULL, 0);
    pass(&d, 10 * MS_PER_MIN);
    told(&d, 1, 4, 1);
    s = question(d.now, MS_PER_D);
    is_looked_at(&d, s, 20 * MS_PER_MIN);
    told(&d, 2, 4, 1); /* opened again, which is one notice */
    alerts_free(d.a);
}

/* However short the interval is. */
static void reminders_hold_up_nothing(void **state)
{
    struct desk d = desk_of(1);
    struct sighting s = question(d.now, 1);
    (void)state;

    desk_open(&d);
    look(&d, &s, 1);
    pass(&d, 10000);
    told(&d, 1, 0, 0);
    pass(&d, 5 * MS_PER_MIN);
    CHECK(only(&d)->notice == 6, "one a minute, not %u in all", only(&d)->notice);
    fail_over(&d);
    CHECK(only(&d)->repeat_ms == MS_PER_MIN, "as its row says, too");
    alerts_free(d.a);
}

static void a_restart_repeats_nothing_and_forgets_nothing(void **state)
{
    struct desk d = desk_of(2);
    struct sighting s[] = {failure("charge", "declined", "t-1", 2),
                           failure("ship", "\"quoted\"\n", "t-2", 1)};
    (void)state;

    desk_open(&d);
    look(&d, s, 2);
    d.broken[1] = true;
    pass(&d, 10 * MS_PER_MIN);
    fail_over(&d);
    look(&d, s, 2);
    pass(&d, 10 * MS_PER_MIN);
    told(&d, 2, 0, 0);
    d.broken[1] = false;
    fail_over(&d);
    look(&d, s, 2);
    pass(&d, MS_PER_MIN);
    CHECK(d.notices[1][NOTICE_OPENED] == 2, "who was not told is told by the next one");
    look(&d, s, 1);
    pass(&d, 2 * MS_PER_MIN);
    fail_over(&d);
    look(&d, s, 1);
    pass(&d, 4 * MS_PER_MIN);
    told(&d, 2, 0, 1);
    pass(&d, 35 * MS_PER_MIN);
    told(&d, 2, 1, 1);
    fail_over(&d);
    look(&d, s, 1);
    pass(&d, 100 * MS_PER_MIN);
    told(&d, 2, 1, 1);
    alerts_free(d.a);
}

static void rows_that_are_none_are_refused(void **state)
{
    static const char *const docs[] = {
        "",
        "[]",
        "{}",
        "{\"condition\":\"task_error\"}",
        "{\"condition\":\"nothing\",\"labels\":{},\"notice\":1,\"kind\":\"opened\"}",
        "{\"condition\":\"task_error\",\"labels\":{\"x\":\"y\"},\"notice\":1,\"kind\":\"opened\"}",
        "{\"condition\":\"task_error\",\"labels\":{\"step\":1},\"notice\":1,\"kind\":\"opened\"}",
        "{\"condition\":\"task_error\",\"labels\":{},\"notice\":0,\"kind\":\"opened\"}",
        "{\"condition\":\"task_error\",\"labels\":{},\"notice\":1,\"kind\":\"other\"}",
        ("{\"condition\":\"task_error\",\"labels\":{\"step\":\"a\"},\"notice\":1,\"kind\":"
         "\"opened\"}"),
    };
    struct desk d = desk_of(1);
    (void)state;

    desk_open(&d);
    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        const struct alert_stored st = {.id = SLICE("a-1"),
                                        .key = SLICE("task_error{}"),
                                        .doc = slice_of(docs[i]),
                                        .opened_at = 5};
        CHECK(alerts_load(d.a, &st, d.now) == ERR_INVALID, "%s", docs[i]);
    }
    size_t i = 0;
    CHECK(!alerts_next(d.a, &i), "none was taken");
    alerts_free(d.a);
}

/* ---- random histories ---- */

enum { KINDS = 6, STEPS = 4000 };

struct history {
    struct desk d;
    struct prng dice;
    bool on[KINDS]; /* the present state */
    int64_t changed[KINDS];
    int64_t shaken; /* when a sink last failed, or the leader changed */
};

static const char *const codes[KINDS] = {"c0", "c1", "c2", "c3", "c4", "c5"};

static void look_at_all(struct history *h)
{
    struct sighting list[KINDS];
    size_t count = 0;

    for (size_t i = 0; i < KINDS; i++)
        if (h->on[i])
            list[count++] = failure("charge", codes[i], "t", 1 + i);
    look(&h->d, list, count);
}

static const struct alert *alert_of(const struct history *h, size_t kind)
{
    size_t i = 0;

    for (const struct alert *al = NULL; (al = alerts_next(h->d.a, &i));)
        if (strcmp(al->labels[2].value, codes[kind]) == 0)
            return al;
    return NULL;
}

/* What holds is sent to all sinks in bounded time; what has ended is resolved; sinks have no notice
 * that does not exist. */
static void check_history(const struct history *h, uint64_t seed)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct alert *al = alert_of(h, i);
        int64_t calm = min_i64(h->d.now - h->changed[i], h->d.now - h->shaken);
        for (size_t k = 0; al && k < h->d.sink_count; k++)
            CHECK(al->told[k] <= al->notice, "seed %d", (int)seed);
        if (h->on[i] && calm > ALERT_PACE_MS * 2) {
            CHECK(al && al->opened_at && !al->resolved_at, "seed %d: %zu is open", (int)seed, i);
            for (size_t k = 0; k < h->d.sink_count; k++)
                CHECK(al->told[k] > 0, "seed %d: sink %zu knows of %zu", (int)seed, k, i);
        }
        if (!h->on[i] && calm > 2 * MS_PER_H) /* 16 times 5 min, and some more */
            CHECK(!al || al->resolved_at, "seed %d: %zu is over", (int)seed, i);
    }
}

static void something_happens(struct history *h)
{
    size_t kind = prng_below(&h->dice, KINDS);
    const struct alert *al = alert_of(h, kind);

    switch (prng_below(&h->dice, 12)) {
    case 0:
        fail_over(&h->d);
        h->shaken = h->d.now;
        break;
    case 1:
        h->d.broken[prng_below(&h->dice, 2)] = prng_chance(&h->dice, 30);
        h->shaken = h->d.now;
        break;
    case 2:
        if (al && al->id[0])
            (void)alerts_acknowledge(h->d.a, slice_of(al->id), h->d.now, SLICE("a"), SLICE("b"));
        break;
    case 3:
        h->d.store_works = !h->d.store_works;
        h->shaken = h->d.now;
        break;
    case 4:
    case 5:
        h->on[kind] = !h->on[kind];
        h->changed[kind] = h->d.now;
        break;
    default:
        break;
    }
}

static void any_history_tells_what_holds_and_resolves_what_is_over(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct history h = {.d = desk_of(2), .dice = {seed}};
        desk_open(&h.d);
        h.shaken = h.d.now;
        for (int i = 0; i < STEPS; i++) {
            if (prng_chance(&h.dice, 3))
                something_happens(&h);
            look_at_all(&h);
            h.d.now += prng_chance(&h.dice, 5) ? 1 + prng_below(&h.dice, 600000) : 10000;
            look_at_all(&h);
            step(&h.d);
            if (h.d.broken[0] || h.d.broken[1] || !h.d.store_works)
                h.shaken = h.d.now;
            check_history(&h, seed);
        }
        alerts_free(h.d.a);
    }
}

/* With one leader and working sinks, each notice is sent exactly once. */
static void nothing_is_told_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct history h = {.d = desk_of(1), .dice = {seed}};
        uint64_t notices = 0;
        desk_open(&h.d);
        for (int i = 0; i < STEPS; i++) {
            size_t kind = prng_below(&h.dice, KINDS);
            if (prng_chance(&h.dice, 2))
                h.on[kind] = !h.on[kind];
            look_at_all(&h);
            h.d.now += 10000;
            char before[64];
            memcpy(before, h.d.last[0], sizeof before);
            size_t deliveries = h.d.deliveries[0];
            step(&h.d);
            CHECK(h.d.deliveries[0] == deliveries || strcmp(before, h.d.last[0]) != 0,
                  "seed %d: %s twice", (int)seed, before);
        }
        for (int k = NOTICE_OPENED; k <= NOTICE_RESOLVED; k++)
            notices += h.d.notices[0][k];
        CHECK(h.d.notices[0][NOTICE_RESOLVED] <= h.d.notices[0][NOTICE_OPENED], "seed %d",
              (int)seed);
        CHECK(notices > 10, "seed %d: something was told", (int)seed);
        alerts_free(h.d.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_is_told_within_seconds_once),
        cmocka_unit_test(an_outage_of_100_000_failures_is_few_deliveries),
        cmocka_unit_test(failures_of_a_thousand_kinds_are_bounded),
        cmocka_unit_test(it_is_repeated_until_somebody_knows),
        cmocka_unit_test(people_are_reminded_as_their_step_says),
        cmocka_unit_test(each_question_is_told_once),
        cmocka_unit_test(reminders_hold_up_nothing),
        cmocka_unit_test(new_failures_after_a_quiet_hour_are_told_again),
        cmocka_unit_test(it_names_what_is_wrong_now),
        cmocka_unit_test(a_short_one_is_not_told),
        cmocka_unit_test(what_comes_and_goes_is_told_seldom),
        cmocka_unit_test(a_sink_that_fails_is_told_later_and_holds_up_nobody),
        cmocka_unit_test(sinks_hear_what_they_asked_for),
        cmocka_unit_test(one_that_forgets_is_told_again_while_it_is_open),
        cmocka_unit_test(a_restart_repeats_nothing_and_forgets_nothing),
        cmocka_unit_test(rows_that_are_none_are_refused),
        cmocka_unit_test(any_history_tells_what_holds_and_resolves_what_is_over),
        cmocka_unit_test(nothing_is_told_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
