/* Tests of how steps come to places, without a scheduler: rates and other limits (limiter.c),
 * lanes of actions behind a limit (lanes.c), the health of instances and their trials (health.c),
 * and the bounds on what one token may add. */

#include "base/prng.h"
#include "base/test.h"
#include "dispatch/dispatch.h"

static const struct share alone = {1, 0};

/* ---- limiters ---- */

static uint32_t begin_all(struct limiter *l, int64_t now)
{
    uint32_t n = 0;

    while (limiter_has_room(l, now)) {
        limiter_begin(l, now);
        n++;
    }
    return n;
}

static void a_rate_is_exact_over_any_time(void **state)
{
    static const struct limit rates[] = {{.rate_count = 1, .rate_ms = 1000},
                                         {.rate_count = 7, .rate_ms = 1000},
                                         {.rate_count = 333, .rate_ms = 60000},
                                         {.rate_count = 100000, .rate_ms = 1000},
                                         {.rate_count = 1, .rate_ms = 3600000},
                                         {.rate_count = UINT32_MAX, .rate_ms = 1000}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        const struct limit *r = &rates[i];
        struct limiter l = {0};
        limiter_set(&l, r, alone, 5000, 5000);
        CHECK(!limiter_has_room(&l, 5000), "%zu: it begins empty", i);
        if (r->rate_count == UINT32_MAX)
            continue; /* too many to count one by one */
        uint64_t began = 0;
        int64_t at = 5000;
        for (int n = 0; n < 500; n++) {
            int64_t next = limiter_ready_at(&l, at);
            CHECK(next > at, "%zu: after all that may begin there is a moment to wait for", i);
            CHECK(next == at + 1 || !limiter_has_room(&l, next - 1), "%zu: no sooner", i);
            at = next;
            began += begin_all(&l, at);
            uint64_t most = (uint64_t)(at - 5000) * r->rate_count / (uint64_t)r->rate_ms;
            CHECK(began == most, "%zu: %" PRIu64 " of %" PRIu64, i, began, most);
        }
        at += 10 * INT64_C(86400000);
        CHECK(begin_all(&l, at) == limiter_burst(r->rate_count, r->rate_ms), "%zu: one burst", i);
    }
}

static void parts_of_a_limit_make_up_the_whole(void **state)
{
    (void)state;
    for (uint32_t nodes = 1; nodes <= 9; nodes++)
        for (uint32_t whole = 1; whole <= 20; whole++) {
            const struct limit limit = {whole, whole, 1000};
            uint32_t most = 0;
            uint32_t count = 0;
            for (uint32_t place = 0; place < nodes; place++) {
                struct limiter l = {0};
                limiter_set(&l, &limit, (struct share){nodes, place}, 0, 0);
                CHECK(limiter_is_shut(&l) == (place >= whole), "%u of %u", place, whole);
                most += l.most;
                count += l.count;
            }
            CHECK(most == whole && count == whole, "%u among %u: %u, %u", whole, nodes, most,
                  count);
        }
}

static void a_limit_that_changes_keeps_what_is_known(void **state)
{
    const struct limit ten = {2, 10, 1000};
    const struct limit hundred = {3, 6000, 60000};
    struct limiter l = {0};
    (void)state;

    limiter_set(&l, &ten, (struct share){0}, 0, 0);
    CHECK(limiter_is_shut(&l) && !limiter_has_room(&l, 100000), "its part is not known");
    limiter_set(&l, &ten, alone, 0, 100000);
    CHECK(!limiter_has_room(&l, 100000), "what others began meanwhile is not known either");
    CHECK(limiter_has_room(&l, 100100), "the first after a tenth of a second");
    limiter_set(&l, &hundred, alone, 0, 100100);
    CHECK(begin_all(&l, 100100) == 1, "what it had it has");
    CHECK(limiter_ready_at(&l, 100100) == 100110, "and goes on at the new rate");
    l.open = 3;
    CHECK(!limiter_has_room(&l, 200000), "three are at work");
    const struct limit none = {0};
    limiter_set(&l, &none, alone, 0, 200000);
    CHECK(limiter_has_room(&l, 200000) && !limiter_is_on(&l), "no limit, whatever is at work");
}

/* ---- lanes ---- */

static struct heap_node steps[8];

static void limit(struct dispatch *d, const struct agent_settings *st)
{
    struct agent *a = dispatch_agent(d, SLICE("pay"));

    a->settings = *st;
    dispatch_limit(d, a, 0);
}

static struct lane *lane(struct dispatch *d, const char *action)
{
    return dispatch_lane(dispatch_agent(d, SLICE("pay")), slice_of(action));
}

static void those_behind_a_limit_hold_up_nobody(void **state)
{
    struct dispatch d;
    struct action_limit one = {SLICE("charge"), {.concurrency = 1}};
    const struct agent_settings st = {.actions = &one, .action_count = 1};
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    limit(&d, &st);
    lane_push(&d, lane(&d, "charge"), &steps[0], 10);
    lane_push(&d, lane(&d, "charge"), &steps[1], 11);
    lane_push(&d, lane(&d, "refund"), &steps[2], 12);
    CHECK(dispatch_next_lane(&d, a, 0) == lane(&d, "charge"), "the least rank");
    lane_remove(lane(&d, "charge"), &steps[0]);
    lane_open(lane(&d, "charge"));
    CHECK(dispatch_next_lane(&d, a, 0) == lane(&d, "refund"), "the next has no room");
    CHECK(lane_held_by(lane(&d, "charge"), 0) == HELD_BY_ACTION, "by its own limit");
    CHECK(dispatch_wakes_at(&d) == 0, "nothing to wait for but an end");
    lane_close(lane(&d, "charge"));
    CHECK(dispatch_next_lane(&d, a, 0) == lane(&d, "charge"), "it has ended");
    lane_open(lane(&d, "charge"));
    CHECK(dispatch_next_lane(&d, a, 0) == lane(&d, "refund"), "held again");
    const struct agent_settings none = {0};
    limit(&d, &none);
    CHECK(dispatch_next_lane(&d, a, 0) == lane(&d, "charge"), "no limit any more, at once");
    lane_close(lane(&d, "charge"));
    lane_remove(lane(&d, "charge"), &steps[1]);
    lane_remove(lane(&d, "refund"), &steps[2]);
    CHECK(list_empty(&d.busy), "nothing waits");
    dispatch_fini(&d);
}

static void a_rate_wakes_its_lane_by_itself(void **state)
{
    struct dispatch d;
    struct action_limit rate = {SLICE("charge"), {.rate_count = 2, .rate_ms = 1000}};
    const struct agent_settings st = {.actions = &rate, .action_count = 1};
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    limit(&d, &st);
    lane_push(&d, lane(&d, "charge"), &steps[0], 10);
    CHECK(!dispatch_next_lane(&d, a, 0), "not yet");
    CHECK(dispatch_wakes_at(&d) == 500, "in half a second: %" PRId64, dispatch_wakes_at(&d));
    dispatch_wake(&d, 499);
    CHECK(!dispatch_next_lane(&d, a, 499), "no sooner");
    dispatch_wake(&d, 500);
    CHECK(dispatch_next_lane(&d, a, 500) == lane(&d, "charge"), "now");
    lane_begin(lane(&d, "charge"), 500);
    CHECK(!dispatch_next_lane(&d, a, 500) && dispatch_wakes_at(&d) == 1000, "the second one");
    lane_remove(lane(&d, "charge"), &steps[0]);
    dispatch_fini(&d);
}

static void a_limited_lane_has_a_line_of_its_own(void **state)
{
    struct dispatch d;
    struct action_limit both[] = {{SLICE("charge"), {.concurrency = 1}},
                                  {SLICE("refund"), {.rate_count = 1, .rate_ms = 1000}}};
    const struct agent_settings st = {.actions = both, .action_count = 2};
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    CHECK(lane_rank(lane(&d, "charge"), -5) == -5, "no limit, no line");
    limit(&d, &st);
    CHECK(a->line_count == 2 && a->lines[0]->line < a->lines[1]->line, "in order");
    int64_t rank = lane_rank(lane(&d, "charge"), 1800000000000);
    CHECK(rank > lane(&d, "charge")->line, "within");
    CHECK(rank < lane(&d, "charge")->line + (INT64_C(1) << LINE_SHIFT), "its line");
    CHECK(lane_rank(lane(&d, "charge"), -5) == lane(&d, "charge")->line, "not in front of it");
    CHECK(lane_rank(lane(&d, "charge"), INT64_MAX) < a->lines[0]->line + (INT64_C(1) << LINE_SHIFT)
              || lane(&d, "charge") != a->lines[0],
          "nor behind");
    CHECK(lane_rank(lane(&d, "other"), 7) == 7, "no limit, no line");
    dispatch_fini(&d);
}

/* ---- health ---- */

static void ends(struct health *h, struct ends *all, int count, bool good, int64_t now)
{
    for (int i = 0; i < count; i++)
        health_ended(h, all, good, now);
}

static void who_does_worse_gets_less_then_none_then_a_trial(void **state)
{
    struct health bad = {0};
    struct health good = {0};
    struct ends all = {0};
    (void)state;

    ends(&good, &all, 10, true, 1000);
    ends(&bad, &all, 6, true, 1000);
    ends(&bad, &all, 4, false, 1000);
    CHECK(bad.state == HEALTH_POOR && good.state == HEALTH_GOOD, "40 %% against none");
    CHECK(health_places(&bad, 10, false) == 5, "%u places", health_places(&bad, 10, false));
    CHECK(health_places(&bad, 1, false) == 1, "one at least");
    CHECK(health_places(&bad, 10, true) == 10, "all of them if it is the last");
    CHECK(health_may_begin(&bad, 10, 4, false, 1000), "a fifth");
    CHECK(!health_may_begin(&bad, 10, 5, false, 1000), "but no sixth");
    ends(&bad, &all, 10, false, 2000);
    CHECK(bad.state == HEALTH_ILL && bad.trial_at == 2000 + HEALTH_TRIAL_MS, "70 %%");
    CHECK(!health_may_begin(&bad, 10, 0, false, bad.trial_at - 1), "nothing");
    CHECK(health_may_begin(&bad, 10, 0, false, bad.trial_at), "a trial");
    CHECK(health_may_begin(&bad, 10, 3, true, 2000), "all if it is the last");
    int64_t wait = HEALTH_TRIAL_MS;
    for (int i = 0; i < 6; i++) {
        int64_t at = bad.trial_at;
        health_begun(&bad, at);
        CHECK(!health_may_begin(&bad, 10, 1, false, at + 100000), "one at a time");
        health_ended(&bad, &all, false, at + 10);
        wait = min_i64(2 * wait, HEALTH_TRIAL_MAX_MS);
        CHECK(bad.state == HEALTH_ILL && bad.trial_at == at + 10 + wait, "it waits longer");
    }
    health_begun(&bad, bad.trial_at);
    health_ended(&bad, &all, true, bad.trial_at);
    CHECK(bad.state == HEALTH_GOOD && ends_sum(&bad.ends) == 0, "it is back, as if new");
    CHECK(good.state == HEALTH_GOOD, "the other never was anything else");
}

static void if_all_fail_none_is_ill(void **state)
{
    struct health h[3] = {0};
    struct ends all = {0};
    (void)state;

    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 3; k++)
            health_ended(&h[k], &all, false, 1000 + i);
    for (int k = 0; k < 3; k++)
        CHECK(h[k].state == HEALTH_GOOD, "it is the service");
}

static void little_tells_nothing_and_old_ends_are_forgotten(void **state)
{
    struct health bad = {0};
    struct health good = {0};
    struct ends all = {0};
    (void)state;

    ends(&good, &all, 10, true, 1000);
    ends(&bad, &all, HEALTH_ENDS_MIN - 1, false, 1000);
    CHECK(bad.state == HEALTH_GOOD, "too few");
    ends(&bad, &all, 1, false, 1000);
    CHECK(bad.state == HEALTH_ILL, "enough");
    struct health other = {0};
    ends(&other, &all, HEALTH_ENDS_MIN, false, 1000 + 2 * HEALTH_WINDOW_MS);
    CHECK(other.state == HEALTH_GOOD, "nobody else has done anything lately");
}

static void who_beats_and_does_not_move_gets_less(void **state)
{
    struct health h = {0};
    (void)state;

    health_moved(&h, 1000);
    health_beat(&h, 90000, 1000 + HEALTH_STILL_MS - 1);
    CHECK(h.state == HEALTH_GOOD, "not so long yet");
    health_beat(&h, 2000, 1000 + HEALTH_STILL_MS);
    CHECK(h.state == HEALTH_GOOD, "the others do not get on either");
    health_beat(&h, 30000, 1000 + HEALTH_STILL_MS);
    CHECK(h.state == HEALTH_POOR, "they do");
    health_beat(&h, 60000, 1000 + 2 * HEALTH_STILL_MS);
    CHECK(h.state == HEALTH_ILL, "still");
    struct ends all = {0};
    health_ended(&h, &all, true, 70000);
    CHECK(h.state == HEALTH_GOOD, "it has moved");
}

/* ---- several instances ---- */

static struct work *call_of(const char *instance, uint32_t places)
{
    struct work *w = work_new();

    w->agent_name = SLICE("pay");
    w->instance_name = slice_of(instance);
    w->max = places;
    return w;
}

static void hang_up(struct work *w, int64_t now)
{
    dispatch_unpark(w, now);
    work_free(w);
}

static struct instance *falls_ill(struct dispatch *d, const char *name, int64_t now)
{
    struct agent *a = dispatch_agent(d, SLICE("pay"));
    struct instance *ill = dispatch_instance(a, slice_of(name));
    struct health good = {0};

    ends(&good, &a->ends, 10, true, now);
    ends(&ill->health, &a->ends, 10, false, now);
    CHECK(ill->health.state == HEALTH_ILL, "it is ill");
    return ill;
}

static void who_has_all_places_taken_is_there_all_the_same(void **state)
{
    struct dispatch d;
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    struct instance *good = dispatch_instance(a, SLICE("good"));
    const struct instance *ill = falls_ill(&d, "ill", 10000);
    struct work *w = call_of("ill", 3);
    dispatch_park(&d, w, 10000);
    CHECK(instance_is_last(ill, 10000), "nobody else has called yet");
    good->open = 1;
    good->seen_at = 10000;
    CHECK(!instance_is_last(ill, 3600000), "it does not call, but it is at work");
    CHECK(!dispatch_next_call(&d, a, 10100), "no trial yet");
    good->open = 0;
    CHECK(instance_is_last(ill, 3600000), "it is at work no more, and does not call");
    CHECK(dispatch_next_call(&d, a, 3600000) == w, "then it gets all");
    w->instance->health.trial = true;
    w->instance->health.trial_at = 3700000;
    w->instance->open = 1;
    CHECK(dispatch_next_call(&d, a, 3600001) == w, "and not one trial after the other");
    w->instance->open = 0;
    hang_up(w, 3600000);
    dispatch_fini(&d);
}

static void trials_of_a_breaker_go_to_who_is_well(void **state)
{
    struct dispatch d;
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    struct instance *ill = falls_ill(&d, "ill", 1000);
    struct work *bad = call_of("ill", 3);
    struct work *good = call_of("good", 3);
    dispatch_park(&d, bad, 1000);
    dispatch_park(&d, good, 1000);
    a->breaker.state = BREAKER_HALF_OPEN;
    for (int i = 0; i < 3; i++)
        CHECK(dispatch_next_call(&d, a, 100000) == good, "its own trial is due, but not this one");
    a->breaker.state = BREAKER_CLOSED;
    link_remove(&good->turn);
    CHECK(dispatch_next_call(&d, a, 100000) == bad, "closed, it gets its trial");
    a->breaker.state = BREAKER_HALF_OPEN;
    CHECK(!dispatch_next_call(&d, a, 100000), "the good one is there, and is waited for");
    list_push(&a->calls, &good->turn);
    ill->health = (struct health){.failed = true};
    CHECK(dispatch_next_call(&d, a, 100000) == good, "who failed last waits, ill or not");
    good->instance->health.failed = true;
    CHECK(agent_has_call(a, 100000), "all failed: whoever is next");
    hang_up(good, 100000);
    CHECK(dispatch_next_call(&d, a, 200000) == bad, "it is the last one");
    hang_up(bad, 100000);
    dispatch_fini(&d);
}

static void a_trial_that_is_lost_keeps_nobody_out(void **state)
{
    struct health h = {.state = HEALTH_ILL, .wait_ms = 5000, .trial_at = 5000};
    (void)state;

    health_begun(&h, 5000);
    CHECK(!health_may_begin(&h, 4, 2, false, 20000), "its trial, and an old attempt that lasts");
    health_lost(&h);
    CHECK(!health_may_begin(&h, 4, 1, false, 9999), "not at once");
    CHECK(health_may_begin(&h, 4, 1, false, 10000), "the next one, though the old one still lasts");
}

static void who_is_idle_does_not_get_on(void **state)
{
    struct dispatch d;
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    struct instance *busy = dispatch_instance(a, SLICE("busy"));
    struct instance *other = dispatch_instance(a, SLICE("other"));
    struct instance *third = dispatch_instance(a, SLICE("third"));
    for (int64_t now = 1000; now < 90000; now += 1000)
        for (int i = 0; i < 2; i++) {
            struct work *w = call_of(i == 0 ? "other" : "third", 1);
            dispatch_park(&d, w, now);
            hang_up(w, now);
        }
    CHECK(others_moved_at(busy) == 0, "they only asked for work");
    instance_moved(other, 90000);
    CHECK(others_moved_at(busy) == 90000 && others_moved_at(other) == 0, "one got on");
    instance_moved(third, 91000);
    instance_moved(third, 92000);
    CHECK(others_moved_at(third) == 90000 && others_moved_at(other) == 92000, "and another one");
    dispatch_fini(&d);
}

/* The counts that each call updates equal a recount. */
static void places_are_counted_right(void **state)
{
    enum { INSTANCES = 20, CALLS = 30 };
    static const char *const names[INSTANCES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
                                                 "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"};
    struct dispatch d;
    struct work *calls[CALLS] = {0};
    struct prng p = {.state = 7};
    int64_t now = 100000;
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    for (int round = 0; round < 50000; round++) {
        struct work **w = &calls[prng_below(&p, CALLS)];
        now += prng_below(&p, 10) ? prng_below(&p, 200) : prng_below(&p, 5000);
        if (*w) {
            hang_up(*w, now);
            *w = NULL;
        } else {
            uint32_t places = prng_below(&p, 5);
            *w = call_of(names[prng_below(&p, INSTANCES)], places);
            dispatch_park(&d, *w, now);
        }
        if (round % 3 == 0)
            continue;
        uint32_t places = 0;
        const struct instance *i = NULL;
        for (size_t k = 0; (i = map_next(&a->instances, &k));)
            places += instance_is_connected(i, now) ? i->places : 0;
        CHECK(dispatch_places(a, now) == places, "round %d: %u, not %u", round,
              dispatch_places(a, now), places);
        if (round % 1000 == 0)
            dispatch_sweep(&d, now);
    }
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i])
            hang_up(calls[i], now);
    CHECK(dispatch_places(a, now + AGENT_ABSENT_MS) == 0, "all are away");
    dispatch_sweep(&d, now + 3600000);
    dispatch_fini(&d);
}

/* Its attempts are still to be committed; that may take as long as the store stands still. */
static void who_hung_up_is_away_before_its_call_is_over(void **state)
{
    const int64_t left_at = 5000;
    const int64_t away_at = left_at + AGENT_ABSENT_MS;
    struct dispatch d;
    (void)state;

    dispatch_init(&d, alone, 0);
    struct agent *a = dispatch_agent(&d, SLICE("pay"));
    struct work *w = call_of("one", 4);
    dispatch_park(&d, w, 1000);
    CHECK(dispatch_is_connected(a, away_at) && a->parked == 1, "it is there while it waits");
    dispatch_leave(w, left_at);
    CHECK(a->parked == 0 && dispatch_is_connected(a, away_at - 1), "it may come back");
    CHECK(!dispatch_is_connected(a, away_at), "it is away");
    CHECK(dispatch_places(a, away_at) == 0, "it has no places");
    dispatch_sweep(&d, left_at + 24 * 3600000);
    CHECK(map_get(&a->instances, SLICE("one")) == w->instance, "its call needs its instance");
    hang_up(w, away_at + 1000);
    CHECK(a->seen_at == left_at && a->parked == 0, "nobody was there at its end");
    CHECK(!dispatch_is_connected(a, away_at + 1000), "it is still away");
    dispatch_fini(&d);
}

/* A call without places: it only leaves the name of its instance. */
static void call_as(struct dispatch *d, const char *agent, const char *name, int64_t now)
{
    struct work w = {.agent_name = slice_of(agent), .instance_name = slice_of(name)};

    list_init(&w.turn);
    dispatch_park(d, &w, now);
    dispatch_unpark(&w, now);
}

static enum dispatch_room room_of(const struct dispatch *d, struct slice agent,
                                  struct slice instance, uint64_t by)
{
    const struct work w = {.agent_name = agent, .instance_name = instance, .by = by};

    return dispatch_room(d, &w);
}

/* A token adds as many names as it may, of agents or of instances; returns how many. */
static size_t add_names(struct dispatch *d, uint64_t by, bool agents)
{
    for (size_t n = 0;; n++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n-%d-%zu", (int)by, n);
        char own[32]; /* many agents: what one may have is no limit then */
        (void)snprintf(own, sizeof own, "a-%d-%zu", (int)by, n % 64);
        struct work w = {.agent_name = slice_of(agents ? name : own),
                         .instance_name = agents ? SLICE("i") : slice_of(name),
                         .by = by};
        if (dispatch_room(d, &w) != ROOM_FOR_IT)
            return n;
        list_init(&w.turn);
        dispatch_park(d, &w, 1);
        dispatch_unpark(&w, 1);
    }
}

static void tokens_leave_names_to_each_other(void **state)
{
    struct dispatch d;
    (void)state;

    for (int agents = 0; agents < 2; agents++) {
        dispatch_init(&d, (struct share){1, 0}, 1);
        d.agents_max = agents ? 640 : 10000;
        d.instances_max = 640;
        size_t first = add_names(&d, 1, agents);
        size_t second = add_names(&d, 2, agents);
        CHECK(first > 320, "one alone has %zu", first);
        CHECK(second >= first / 9 && second < first, "the next one gets %zu", second);
        CHECK(add_names(&d, 1, agents) == first, "the first one gets no more, and keeps those");
        CHECK(add_names(&d, 3, agents) > 0, "something is left to the third");
        CHECK(room_of(&d, SLICE("n-1-0"), SLICE("i"), 1) == ROOM_FOR_IT || !agents,
              "known ones go on");
        for (int n = 0; n < 64; n++) /* each forgets a part */
            dispatch_sweep(&d, 3600000);
        CHECK(add_names(&d, 2, agents) == first, "all names are free again");
        CHECK(add_names(&d, 1, agents) == second, "what was forgotten counts no more");
        dispatch_fini(&d);
    }
}

/* Later agents get some names, however many the first ones use. */
static void few_agents_leave_names_to_others(void **state)
{
    enum { MANY = 40 };
    static const char *const agents[] = {"a", "b", "c", "d", "e"};
    struct dispatch d;
    size_t all = 0;
    (void)state;

    dispatch_init(&d, (struct share){1, 0}, 1);
    d.instances_max = MANY;
    for (size_t k = 0; k < COUNT_OF(agents); k++) {
        size_t has = 0;
        for (int i = 0; i < MANY; i++) {
            char name[20];
            (void)snprintf(name, sizeof name, "i-%d", i);
            if (room_of(&d, slice_of(agents[k]), slice_of(name), 0) == ROOM_FOR_IT) {
                call_as(&d, agents[k], name, 1);
                has++;
            }
        }
        CHECK(has > 0, "nothing is left to %s", agents[k]);
        all += has;
    }
    CHECK(all < 4 * (size_t)MANY, "%zu names", all);
    dispatch_fini(&d);
}

static void names_are_bounded_and_forgotten(void **state)
{
    enum { MANY = 100, HOUR = 3600000 };
    const char *const agents[] = {"b", "c", "d", "e"};
    struct dispatch d;
    char name[20];
    int64_t now = HOUR;
    (void)state;

    dispatch_init(&d, (struct share){1, 0}, now);
    d.instances_max = MANY;
    d.agents_max = 6;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "i-%d", i);
        CHECK(room_of(&d, SLICE("a"), slice_of(name), 0) == ROOM_FOR_IT, "%s", name);
        call_as(&d, "a", name, now);
    }
    CHECK(room_of(&d, SLICE("a"), SLICE("new"), 0) == NO_ROOM_FOR_INSTANCE, "one too many");
    CHECK(room_of(&d, SLICE("a"), SLICE("i-7"), 0) == ROOM_FOR_IT, "known ones go on");
    CHECK(room_of(&d, SLICE("b"), SLICE("new"), 0) == ROOM_FOR_IT, "so do other agents");
    for (size_t k = 0; k < COUNT_OF(agents); k++)
        for (int i = 0; i < MANY && k < 3; i++) {
            (void)snprintf(name, sizeof name, "i-%d", i);
            call_as(&d, agents[k], name, now);
        }
    CHECK(room_of(&d, SLICE("e"), SLICE("new"), 0) == NO_ROOM_FOR_INSTANCE, "of all agents");
    for (int i = 0; i < 10; i++) { /* named by a step, or by settings */
        (void)snprintf(name, sizeof name, "named-%d", i);
        (void)dispatch_agent(&d, slice_of(name));
    }
    CHECK(room_of(&d, SLICE("g"), SLICE("i"), 0) == NO_ROOM_FOR_INSTANCE, "agents have room");
    call_as(&d, "e", "i", now);
    call_as(&d, "f", "i", now);
    CHECK(room_of(&d, SLICE("g"), SLICE("i"), 0) == NO_ROOM_FOR_AGENT, "of agents");
    now += 31000; /* with half of the names taken, absent instances are forgotten after this */
    for (int i = 0; i < 3; i++)
        dispatch_sweep(&d, now);
    CHECK(room_of(&d, SLICE("a"), SLICE("new"), 0) == ROOM_FOR_IT, "there is room again");
    CHECK(d.instances_about < 2 * MANY, "%zu are left", d.instances_about);
    call_as(&d, "few", "i", now);
    dispatch_sweep(&d, now + 31000);
    dispatch_fini(&d);
}

/* Its attempts were begun by another node, which died; it has not called this one yet. */
static void who_is_ill_is_remembered_though_it_never_called(void **state)
{
    enum { DAY = 86400000, TEN_MINUTES = 600000 };
    struct dispatch d;
    int64_t now = DAY;
    (void)state;

    dispatch_init(&d, (struct share){1, 0}, now);
    struct agent *a = dispatch_agent(&d, SLICE("a"));
    struct instance *bad = dispatch_instance(a, SLICE("bad"));
    for (int i = 0; i < 20; i++)
        ends_count(&a->ends, true, now); /* of the other instances */
    for (int i = 0; i < 20; i++)
        health_ended(&bad->health, &a->ends, false, now);
    CHECK(bad->health.state == HEALTH_ILL, "it is ill");
    dispatch_sweep(&d, now + 1000);
    CHECK(map_get(&a->instances, SLICE("bad")) == bad, "and is known");
    dispatch_sweep(&d, now + TEN_MINUTES + 1);
    CHECK(d.agents.len == 0, "until nothing was heard of it for long");
    dispatch_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_hung_up_is_away_before_its_call_is_over),
        cmocka_unit_test(few_agents_leave_names_to_others),
        cmocka_unit_test(tokens_leave_names_to_each_other),
        cmocka_unit_test(names_are_bounded_and_forgotten),
        cmocka_unit_test(who_is_ill_is_remembered_though_it_never_called),
        cmocka_unit_test(a_rate_is_exact_over_any_time),
        cmocka_unit_test(parts_of_a_limit_make_up_the_whole),
        cmocka_unit_test(a_limit_that_changes_keeps_what_is_known),
        cmocka_unit_test(those_behind_a_limit_hold_up_nobody),
        cmocka_unit_test(a_rate_wakes_its_lane_by_itself),
        cmocka_unit_test(a_limited_lane_has_a_line_of_its_own),
        cmocka_unit_test(who_does_worse_gets_less_then_none_then_a_trial),
        cmocka_unit_test(if_all_fail_none_is_ill),
        cmocka_unit_test(little_tells_nothing_and_old_ends_are_forgotten),
        cmocka_unit_test(who_beats_and_does_not_move_gets_less),
        cmocka_unit_test(who_has_all_places_taken_is_there_all_the_same),
        cmocka_unit_test(trials_of_a_breaker_go_to_who_is_well),
        cmocka_unit_test(a_trial_that_is_lost_keeps_nobody_out),
        cmocka_unit_test(who_is_idle_does_not_get_on),
        cmocka_unit_test(places_are_counted_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
