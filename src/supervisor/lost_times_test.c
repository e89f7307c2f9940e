/* Tests of lost_times.c: which time counts as lost, if scans come at any times, in time or late,
 * and succeed or fail. supervisor/supervisor_test.c has the scans themselves. */

#include "supervisor/lost_times.h"

#include "base/prng.h"
#include "base/test.h"

enum { INTERVAL = 1000, GRACE = 10000 };

#define START INT64_C(1800000000000)

/* A store's clock that may be ahead of the steady one, and the scans that are played. */
struct stage {
    struct lost_times lt;
    int64_t steady, ahead;
};

static int64_t now_of(const struct stage *s)
{
    return START + s->steady + s->ahead;
}

static struct stage begin(void)
{
    struct stage s = {0};

    lost_times_init(&s.lt, INTERVAL, GRACE, now_of(&s), s.steady);
    return s;
}

/* After so many ms. Returns what is to be reported. */
static int64_t scan_begins(struct stage *s, int64_t after)
{
    s->steady += after;
    return lost_times_scan_begins(&s->lt, now_of(s), s->steady);
}

static int64_t scan(struct stage *s, int64_t after)
{
    int64_t found = scan_begins(s, after);

    CHECK(lost_times_scan_succeeds(&s->lt, now_of(s), s->steady) == 0,
          "a scan that succeeds at once ends no outage longer than the one it found");
    return found;
}

static void before_the_start_all_time_is_lost(void **state)
{
    struct stage s = begin();
    (void)state;

    CHECK(s.lt.lost.from == 1 && s.lt.lost.until == START, "from ever until now");
    CHECK(deadline_at(START - 1000000, &s.lt.lost) == START + GRACE, "what was due gets grace");
    CHECK(deadline_at(START + GRACE, &s.lt.lost) == START + GRACE, "what is due later does not");
}

static void scans_in_time_lose_nothing(void **state)
{
    struct stage s = begin();
    (void)state;

    for (int i = 0; i < 1000; i++)
        CHECK(scan(&s, i % 2 ? INTERVAL : 3 * INTERVAL) == 0, "scan %d", i);
    CHECK(s.lt.lost.until == START, "only what was lost before the start");
}

static void an_outage_is_reported_once_and_again_if_it_was_longer(void **state)
{
    struct stage s = begin();
    (void)state;

    (void)scan(&s, INTERVAL);
    CHECK(scan_begins(&s, 4 * INTERVAL) == 4 * INTERVAL, "it is found");
    CHECK(scan_begins(&s, 20 * INTERVAL) == 0, "the previous scan failed: the same outage");
    CHECK(s.lt.lost.from == 1 && s.lt.lost.until == now_of(&s), "it goes on");
    CHECK(lost_times_scan_succeeds(&s.lt, now_of(&s), s.steady) == 24 * INTERVAL, "it was longer");
    CHECK(scan(&s, INTERVAL) == 0, "it is over");
    CHECK(scan(&s, 5 * INTERVAL) == 5 * INTERVAL, "the next one is another one");
}

static void an_outage_lasts_until_the_answer(void **state)
{
    struct stage s = begin();
    (void)state;

    (void)scan_begins(&s, 5 * INTERVAL);
    s.steady += 700;
    lost_times_answered(&s.lt, now_of(&s));
    CHECK(s.lt.lost.until == now_of(&s), "until the answer");
    (void)lost_times_scan_succeeds(&s.lt, now_of(&s), s.steady);
    (void)scan_begins(&s, INTERVAL);
    lost_times_answered(&s.lt, now_of(&s));
    CHECK(s.lt.lost.until == now_of(&s) - INTERVAL, "a scan in time loses nothing");
}

static void time_that_the_store_skips_is_lost(void **state)
{
    struct stage s = begin();
    (void)state;

    (void)scan(&s, INTERVAL);
    s.ahead += INTERVAL;
    CHECK(scan(&s, INTERVAL) == 0, "a little");
    s.ahead += 60000;
    CHECK(scan(&s, INTERVAL) == 60000 + INTERVAL, "a jump");
    CHECK(s.lt.lost.until == now_of(&s), "until now");
}

/* Otherwise no task's own deadline would pass while the store is slow. */
static void a_slow_store_moves_the_deadlines_of_tasks_a_few_times_only(void **state)
{
    enum { SLOW = 4 * INTERVAL };
    struct stage s = begin();
    int64_t last = 0;
    int moved = 0;
    (void)state;

    for (int i = 0; i < 100; i++) {
        (void)scan(&s, SLOW);
        moved += s.lt.lost.until_of_tasks != last;
        last = s.lt.lost.until_of_tasks;
        CHECK(s.lt.lost.until == now_of(&s), "attempts are still postponed, scan %d", i);
    }
    CHECK(moved == 5, "%d times", moved);
    CHECK(scan(&s, 50 * SLOW) == 50 * SLOW, "a far longer gap is an outage all the same");
    CHECK(s.lt.lost.until_of_tasks == now_of(&s), "which moves them");
}

static void scans_in_time_end_a_slow_time(void **state)
{
    struct stage s = begin();
    (void)state;

    for (int i = 0; i < 20; i++)
        (void)scan(&s, 4 * INTERVAL);
    int64_t before = s.lt.lost.until_of_tasks;
    (void)scan(&s, INTERVAL);
    (void)scan(&s, 4 * INTERVAL);
    CHECK(s.lt.lost.until_of_tasks == before, "one scan in time does not end it");
    for (int i = 0; i <= GRACE / INTERVAL; i++)
        (void)scan(&s, INTERVAL);
    CHECK(scan(&s, 4 * INTERVAL) == 4 * INTERVAL, "it is an outage again");
    CHECK(s.lt.lost.until_of_tasks == now_of(&s), "which moves deadlines of tasks");
}

/* Whatever happens, lost time lies in the past and in order. */
static void any_scans_leave_it_in_order(void **state)
{
    enum { ROUNDS = 200, SCANS = 200 };
    struct prng p = {.state = 7};
    (void)state;

    for (int round = 0; round < ROUNDS; round++) {
        struct stage s = begin();
        for (int i = 0; i < SCANS; i++) {
            s.ahead += prng_chance(&p, 3) ? prng_below(&p, 100000) : 0;
            int64_t found = scan_begins(&s, prng_below(&p, prng_chance(&p, 20) ? 60000 : 1500));
            CHECK(found == 0 || found > INTERVAL, "round %d: %lld ms", round, (long long)found);
            if (prng_chance(&p, 30))
                lost_times_answered(&s.lt, now_of(&s));
            if (prng_chance(&p, 80))
                (void)lost_times_scan_succeeds(&s.lt, now_of(&s), s.steady);
            const struct lost_time *l = &s.lt.lost;
            CHECK(l->from <= l->until && l->until <= now_of(&s), "round %d: lost time", round);
            CHECK(l->from_of_tasks <= l->until_of_tasks && l->until_of_tasks <= l->until,
                  "round %d: that of tasks", round);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_start_all_time_is_lost),
        cmocka_unit_test(scans_in_time_lose_nothing),
        cmocka_unit_test(an_outage_is_reported_once_and_again_if_it_was_longer),
        cmocka_unit_test(an_outage_lasts_until_the_answer),
        cmocka_unit_test(time_that_the_store_skips_is_lost),
        cmocka_unit_test(a_slow_store_moves_the_deadlines_of_tasks_a_few_times_only),
        cmocka_unit_test(scans_in_time_end_a_slow_time),
        cmocka_unit_test(any_scans_leave_it_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
