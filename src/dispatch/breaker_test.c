/* Tests of breaker.c. All traces of a few events are compared with a model that keeps every end
 * and counts them anew each time; then single rules follow: waits, slow calls, operation by hand,
 * trials that hang, and damaged records. */

#include "dispatch/breaker.h"

#include "base/test.h"

enum { DEPTH = 7, TRACE_CALLS = 3, TRACE_TRIALS = 2, BUCKET_MS = 100, BEGIN = 1000000 };

static const struct breaker_rule rule = {.calls = TRACE_CALLS,
                                         .failures_percent = 60,
                                         .slow_ms = 10,
                                         .slow_percent = 100,
                                         .window_ms = 10 * BUCKET_MS,
                                         .wait_ms = 2 * BUCKET_MS,
                                         .max_wait_ms = 5 * BUCKET_MS,
                                         .trials = TRACE_TRIALS};

struct model {
    enum breaker_state state;
    int64_t since, until, now, tried_at;
    uint32_t times, good, trials, changes;
    struct {
        int64_t at;
        enum breaker_end end;
    } ends[DEPTH];
    uint32_t count;
};

static void model_enter(struct model *m, enum breaker_state s)
{
    m->state = s;
    m->since = m->now;
    m->until = 0;
    m->good = m->trials = m->count = 0;
    m->changes++;
}

static void model_closed(struct model *m, enum breaker_end end)
{
    uint32_t all = 0;
    uint32_t bad = 0;
    uint32_t slow = 0;

    m->ends[m->count].at = m->now / BUCKET_MS;
    m->ends[m->count++].end = end;
    for (uint32_t i = 0; i < m->count; i++) {
        bool counts = m->now / BUCKET_MS - m->ends[i].at < 10;
        all += counts;
        bad += counts && m->ends[i].end == END_BAD;
        slow += counts && m->ends[i].end == END_SLOW;
    }
    if (all >= TRACE_CALLS && (bad * 10 >= all * 6 || slow == all)) {
        model_enter(m, BREAKER_OPEN);
        m->times++;
    }
}

static void model_ended(struct model *m, enum breaker_end end, int64_t started_at)
{
    if (m->state == BREAKER_OPEN || started_at < m->since)
        return;
    if (m->state == BREAKER_CLOSED) {
        model_closed(m, end);
    } else if (end != END_GOOD) {
        model_enter(m, BREAKER_OPEN);
        m->times++;
    } else if (++m->good == TRACE_TRIALS) {
        model_enter(m, BREAKER_CLOSED);
        m->times = 0;
    }
}

/* Trials that run longer than the longest wait no longer block others. */
static void model_patience(struct model *m)
{
    if (m->trials == TRACE_TRIALS && m->now - m->tried_at >= rule.max_wait_ms)
        m->trials = 0;
}

/* Applies one letter of a trace to both. */
static void letter(struct breaker *b, struct model *m, unsigned what)
{
    bool changed = false;
    uint32_t before = m->changes;

    switch (what) {
    case 0:
    case 1:
    case 2:
        changed = breaker_ended(b, &rule, (enum breaker_end)what, m->now, m->now, 7);
        model_ended(m, (enum breaker_end)what, m->now);
        break;
    case 3: /* begun before the first event */
        changed = breaker_ended(b, &rule, END_BAD, BEGIN - 1, m->now, 7);
        model_ended(m, END_BAD, BEGIN - 1);
        break;
    case 4:
        m->now += 2 * BUCKET_MS;
        model_patience(m);
        changed = breaker_tick(b, &rule, m->now);
        if (m->state == BREAKER_OPEN && m->now >= b->until && changed)
            model_enter(m, BREAKER_HALF_OPEN);
        break;
    case 5: /* clears all counts */
        m->now += 11 * BUCKET_MS;
        model_patience(m);
        changed = breaker_tick(b, &rule, m->now);
        if (m->state == BREAKER_OPEN)
            model_enter(m, BREAKER_HALF_OPEN); /* no wait is that long */
        break;
    case 6:
        m->tried_at = m->now;
        if (breaker_room(b, &rule) > 0)
            m->trials += breaker_start(b, &rule, m->now) != 0;
        break;
    default:
        if (m->trials > 0) {
            breaker_trial_over(b, b->epoch);
            m->trials--;
        }
    }
    CHECK(changed == (m->changes != before), "it says so if its state has changed");
}

static void check(const struct breaker *b, const struct model *m, const unsigned *trace, int len)
{
    char story[DEPTH + 1] = "";

    for (int i = 0; i < len; i++)
        story[i] = (char)('0' + trace[i]);
    CHECK(b->state == m->state, "%s: %s, expected %s", story, breaker_state_text(b->state),
          breaker_state_text(m->state));
    CHECK(b->since == (m->changes ? m->since : 0), "%s: since", story);
    CHECK(b->times == m->times, "%s: %u times in a row", story, b->times);
    CHECK(b->trials == m->trials, "%s: %u trials", story, b->trials);
    uint32_t room = breaker_room(b, &rule);
    CHECK(room
              == (m->state == BREAKER_CLOSED ? UINT32_MAX
                  : m->state == BREAKER_OPEN ? 0
                  : m->trials < TRACE_TRIALS ? TRACE_TRIALS - m->trials
                                             : 0),
          "%s: room for %u", story, room);
    bool due = m->state == BREAKER_OPEN || (m->state == BREAKER_HALF_OPEN && room == 0);
    CHECK((breaker_next(b, &rule) != 0) == due, "%s: what comes next", story);
    if (m->state == BREAKER_OPEN)
        CHECK(b->until - b->since <= rule.max_wait_ms
                  && b->until - b->since >= rule.wait_ms * 4 / 5,
              "%s: it waits %" PRId64, story, b->until - b->since);
}

static void every_trace_is_as_the_model_says(void **state)
{
    unsigned trace[DEPTH];
    unsigned long total = 1;
    uint32_t seen[BREAKER_STATE_COUNT] = {0};
    (void)state;

    for (int i = 0; i < DEPTH; i++)
        total *= 8;
    for (unsigned long n = 0; n < total; n++) {
        struct breaker b = {0};
        struct model m = {.now = BEGIN, .since = 0};
        for (int i = 0; i < DEPTH; i++) {
            trace[i] = (unsigned)(n >> (3 * i) & 7);
            letter(&b, &m, trace[i]);
            check(&b, &m, trace, i + 1);
        }
        seen[b.state]++;
    }
    for (int s = 0; s < BREAKER_STATE_COUNT; s++)
        CHECK(seen[s] > 0, "no trace ends %s", breaker_state_text((enum breaker_state)s));
}

static void fails(struct breaker *b, const struct breaker_rule *r, uint32_t count, int64_t now)
{
    for (uint32_t i = 0; i < count; i++)
        (void)breaker_ended(b, r, END_BAD, now, now, i);
}

/* Makes it half-open at `now`, whatever its wait. */
static void half_open(struct breaker *b, int64_t now)
{
    CHECK(b->state == BREAKER_OPEN, "it is open");
    CHECK(breaker_tick(b, &rule, now) && b->state == BREAKER_HALF_OPEN, "its wait is over");
}

static void the_default_opens_after_twenty_of_which_sixteen_failed(void **state)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    (void)state;

    for (int i = 0; i < 4; i++)
        CHECK(!breaker_ended(&b, &r, END_GOOD, BEGIN, BEGIN, 1), "good");
    fails(&b, &r, 15, BEGIN);
    CHECK(b.state == BREAKER_CLOSED, "nineteen say nothing");
    CHECK(breaker_ended(&b, &r, END_BAD, BEGIN, BEGIN, 1), "the twentieth");
    CHECK(b.state == BREAKER_OPEN && b.until > BEGIN + 3999 && b.until <= BEGIN + 5000, "open");
    CHECK(strcmp(b.reason, "16 of 20 attempts failed") == 0, "%s", b.reason);
    struct breaker other = {0};
    for (int i = 0; i < 5; i++)
        (void)breaker_ended(&other, &r, END_GOOD, BEGIN, BEGIN, 1);
    fails(&other, &r, 15, BEGIN);
    CHECK(other.state == BREAKER_CLOSED, "three of four are not enough");
}

static void what_is_older_than_the_window_does_not_count(void **state)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    (void)state;

    fails(&b, &r, 19, BEGIN);
    fails(&b, &r, 19, BEGIN + 31000);
    CHECK(b.state == BREAKER_CLOSED, "two times nineteen");
    fails(&b, &r, 1, BEGIN + 40000);
    CHECK(b.state == BREAKER_OPEN, "twenty within the window");
}

static void waits_double_up_to_the_longest(void **state)
{
    const struct breaker_rule r = settings_default().breaker;
    const int64_t waits[] = {5000, 10000, 20000, 40000, 60000, 60000};
    struct breaker b = {0};
    int64_t now = BEGIN;
    (void)state;

    fails(&b, &r, 20, now);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        int64_t wait = b.until - now;
        CHECK(wait <= waits[i] && wait >= waits[i] * 4 / 5, "wait %zu: %" PRId64, i, wait);
        CHECK(!breaker_tick(&b, &r, b.until - 1), "not yet");
        now = b.until;
        half_open(&b, now);
        CHECK(breaker_ended(&b, &r, END_BAD, now, now, i), "a trial failed");
    }
    now = b.until;
    half_open(&b, now);
    for (uint32_t i = 0; i < r.trials; i++)
        CHECK(breaker_ended(&b, &r, END_GOOD, now, now, 1) == (i + 1 == r.trials), "as many");
    CHECK(b.state == BREAKER_CLOSED && b.times == 0, "closed");
}

static void slow_calls_open_it_only_if_that_is_asked_for(void **state)
{
    struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    (void)state;

    for (int i = 0; i < 100; i++)
        CHECK(!breaker_ended(&b, &r, END_SLOW, BEGIN, BEGIN, 1), "nothing is slow");
    r.slow_ms = 10;
    b = (struct breaker){0};
    for (int i = 0; i < 20; i++)
        CHECK(breaker_ended(&b, &r, END_SLOW, BEGIN, BEGIN, 1) == (i == 19), "slow");
    CHECK(strcmp(b.reason, "20 of 20 attempts were slow") == 0, "%s", b.reason);
}

static void by_hand_it_stays_open_until_somebody_says_so(void **state)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    (void)state;

    breaker_open_by_hand(&b, SLICE("maintenance"), BEGIN);
    CHECK(breaker_room(&b, &r) == 0 && breaker_next(&b, &r) == 0, "nothing starts, nothing is due");
    CHECK(!breaker_tick(&b, &r, BEGIN + INT64_C(1000000000)), "however long");
    CHECK(!breaker_ended(&b, &r, END_GOOD, BEGIN, BEGIN, 1), "whatever ends");
    struct breaker_rule off = r;
    off.off = true;
    CHECK(!breaker_ruled(&b, &off, BEGIN) && b.state == BREAKER_OPEN, "even if it is off");
    breaker_close_by_hand(&b, SLICE_NONE, BEGIN + 5);
    CHECK(b.state == BREAKER_CLOSED && !b.by_hand, "closed");
    fails(&b, &r, 20, BEGIN + 4);
    CHECK(b.state == BREAKER_CLOSED, "what began before that does not count");
    fails(&b, &r, 20, BEGIN + 5);
    CHECK(b.state == BREAKER_OPEN && !b.by_hand, "it is automatic again");
}

static void switched_off_it_closes_and_stays_so(void **state)
{
    struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    (void)state;

    fails(&b, &r, 20, BEGIN);
    CHECK(!breaker_ruled(&b, &r, BEGIN), "the same rule");
    r.off = true;
    CHECK(breaker_ruled(&b, &r, BEGIN + 1) && b.state == BREAKER_CLOSED, "closed");
    fails(&b, &r, 100, BEGIN + 2);
    CHECK(b.state == BREAKER_CLOSED, "and so it stays");
}

static void trials_are_counted_by_who_began_them(void **state)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    (void)state;

    CHECK(breaker_start(&b, &r, BEGIN) == 0, "closed: no trial");
    fails(&b, &r, 20, BEGIN);
    int64_t now = b.until;
    half_open(&b, now);
    uint32_t trial = breaker_start(&b, &r, now);
    CHECK(trial != 0 && breaker_room(&b, &r) == r.trials - 1, "one");
    CHECK(breaker_adopt(&b, &r, now - 1, now) == 0, "it began before");
    CHECK(breaker_adopt(&b, &r, now, now) == trial && breaker_room(&b, &r) == r.trials - 2,
          "another");
    breaker_trial_over(&b, 0);
    breaker_trial_over(&b, trial - 1);
    CHECK(breaker_room(&b, &r) == r.trials - 2, "those of others");
    breaker_trial_over(&b, trial);
    CHECK(breaker_room(&b, &r) == r.trials - 1, "its place is free");
    (void)breaker_ended(&b, &r, END_BAD, now, now, 1);
    half_open(&b, b.until);
    breaker_trial_over(&b, trial);
    CHECK(breaker_room(&b, &r) == r.trials, "one of before holds no place");
}

static void trials_that_hang_let_others_try(void **state)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    uint32_t hangs = 0;
    (void)state;

    fails(&b, &r, 20, BEGIN);
    int64_t now = b.until;
    half_open(&b, now);
    for (uint32_t i = 0; i < r.trials; i++)
        hangs = breaker_start(&b, &r, now + i);
    CHECK(breaker_room(&b, &r) == 0, "all trials are at work");
    int64_t until = breaker_next(&b, &r);
    CHECK(until == now + r.trials - 1 + r.max_wait_ms, "they have time");
    CHECK(!breaker_tick(&b, &r, until - 1) && breaker_room(&b, &r) == 0, "not yet");
    CHECK(!breaker_tick(&b, &r, until) && b.state == BREAKER_HALF_OPEN, "the same state");
    CHECK(breaker_room(&b, &r) == r.trials, "others may try");
    (void)breaker_start(&b, &r, until);
    breaker_trial_over(&b, hangs);
    CHECK(breaker_room(&b, &r) == r.trials - 1, "who hung has no place to give");
    for (uint32_t i = 0; i < r.trials; i++)
        (void)breaker_ended(&b, &r, END_GOOD, until, until + 5, 1);
    CHECK(b.state == BREAKER_CLOSED, "and they close it");
}

/* The clock was set back during a restart, or the wait was made shorter. */
static void no_wait_is_longer_than_the_longest(void **state)
{
    struct breaker_rule r = settings_default().breaker;
    struct breaker_record rec = {.state = BREAKER_OPEN,
                                 .since = BEGIN,
                                 .until = BEGIN + INT64_C(86400000),
                                 .times = 1};
    struct breaker b = {0};
    (void)state;

    CHECK(breaker_follow(&b, &r, &rec, BEGIN), "it opens");
    CHECK(b.until == BEGIN + r.max_wait_ms, "not for a day");
    CHECK(!breaker_follow(&b, &r, &rec, BEGIN), "that is no news");
    r.max_wait_ms = 1000;
    CHECK(!breaker_ruled(&b, &r, BEGIN + 1) && b.until == BEGIN + 1001, "a shorter wait");
    r.max_wait_ms = 5000;
    CHECK(!breaker_ruled(&b, &r, BEGIN + 2) && b.until == BEGIN + 1001, "a longer one comes next");
    half_open(&b, b.until);
    CHECK(!breaker_ruled(&b, &r, BEGIN + 1002) && b.until == 0, "trials wait for nothing");
}

static void others_are_followed(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    const struct breaker_rule r = settings_default().breaker;
    struct breaker_record rec;
    struct breaker b = {0};
    struct breaker other = {0};
    (void)state;

    fails(&b, &r, 20, BEGIN);
    rec = breaker_record(&b);
    breaker_record_write(&text, &rec);
    CHECK(breaker_record_read(buf_view(&text), &a, &rec) == ERR_OK, "%s", text.ptr);
    CHECK(breaker_follow(&other, &r, &rec, BEGIN + 100), "it opens");
    CHECK(other.state == BREAKER_OPEN && other.until == b.until && other.times == 1, "the same");
    CHECK(strcmp(other.reason, b.reason) == 0, "%s", other.reason);
    CHECK(!breaker_follow(&other, &r, &rec, BEGIN + 200), "that is no news");
    half_open(&other, b.until);
    breaker_open_by_hand(&b, SLICE("x"), BEGIN + 300);
    rec = breaker_record(&b);
    CHECK(breaker_follow(&other, &r, &rec, BEGIN + 400) && other.by_hand, "by hand");
    breaker_close_by_hand(&b, SLICE("y"), BEGIN + 500);
    rec = breaker_record(&b);
    CHECK(breaker_follow(&other, &r, &rec, BEGIN + 600) && other.state == BREAKER_CLOSED, "closed");
    CHECK(other.since == BEGIN + 600, "by its own clock");
    fails(&other, &r, 19, BEGIN + 650);
    CHECK(!breaker_follow(&other, &r, &rec, BEGIN + 700), "it is");
    fails(&other, &r, 19, BEGIN + 750);
    CHECK(other.state == BREAKER_CLOSED, "what was before does not count any more");
}

/* Any stored record makes a breaker that can close again. */
static void odd_records_do_no_harm(void **state)
{
    static const char *const odd[] = {"",
                                      "{",
                                      "[]",
                                      "7",
                                      "{}",
                                      "{\"state\":7}",
                                      "{\"state\":\"open\"}",
                                      "{\"state\":\"open\",\"until\":-5,\"times\":99999999999}",
                                      "{\"state\":\"closed\",\"by_hand\":true}",
                                      "{\"state\":\"open\",\"until\":9223372036854775807}",
                                      "{\"state\":\"open\",\"reason\":7,\"since\":\"x\"}"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct breaker_record rec;
        struct breaker b = {0};
        if (breaker_record_read(slice_of(odd[i]), &a, &rec) != ERR_OK)
            continue;
        (void)breaker_follow(&b, &rule, &rec, BEGIN);
        CHECK(b.state == BREAKER_CLOSED || breaker_tick(&b, &rule, BEGIN + rule.max_wait_ms), "%s",
              odd[i]);
    }
}

static void people_see_it(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct breaker br = {0};
    (void)state;

    breaker_render(&b, &br);
    CHECK(slice_is(buf_view(&b), "{\"state\":\"closed\",\"since\":null,\"until\":null,"
                                 "\"reason\":null,\"by_hand\":false}"),
          "%s", b.ptr);
    buf_clear(&b);
    breaker_open_by_hand(&br, SLICE("so"), 1769853600123);
    breaker_render(&b, &br);
    CHECK(slice_is(buf_view(&b),
                   "{\"state\":\"open\",\"since\":\"2026-01-31T10:00:00.123Z\",\"until\":null,"
                   "\"reason\":\"so\",\"by_hand\":true}"),
          "%s", b.ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_trace_is_as_the_model_says),
        cmocka_unit_test(the_default_opens_after_twenty_of_which_sixteen_failed),
        cmocka_unit_test(what_is_older_than_the_window_does_not_count),
        cmocka_unit_test(waits_double_up_to_the_longest),
        cmocka_unit_test(slow_calls_open_it_only_if_that_is_asked_for),
        cmocka_unit_test(by_hand_it_stays_open_until_somebody_says_so),
        cmocka_unit_test(switched_off_it_closes_and_stays_so),
        cmocka_unit_test(trials_are_counted_by_who_began_them),
        cmocka_unit_test(trials_that_hang_let_others_try),
        cmocka_unit_test(no_wait_is_longer_than_the_longest),
        cmocka_unit_test(others_are_followed),
        cmocka_unit_test(odd_records_do_no_harm),
        cmocka_unit_test(people_see_it),
    };
    return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
