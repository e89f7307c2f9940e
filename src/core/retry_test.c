/* Tests of the retry rules of retry.c: waits and their caps, jitter, deferred attempts, and the
 * wait for which an agent asks. decide_test.c tests what follows from them. */

#include "core/core_test_kit.h"

#include "base/every.h"

#define NOW INT64_C(1000000)

/* clang-format off */
static const struct retry_rule plain = {.attempts = 5, .factor_milli = 2000, .wait_ms = 1000,
                                        .max_wait_ms = 60000};
static const struct retry_rule deferring = {.attempts = 2, .factor_milli = 2000, .wait_ms = 1000,
                                            .max_wait_ms = 60000, .defers = 2, .defer_ms = 900000};
static const struct retry_rule capped = {.attempts = 100, .factor_milli = 3000, .wait_ms = 500,
                                         .max_wait_ms = 4000};
static const struct retry_rule fractional = {.attempts = 9, .factor_milli = 1500, .wait_ms = 1000,
                                             .max_wait_ms = 60000};
static const struct retry_rule once = {.attempts = 1, .factor_milli = 2000, .wait_ms = 1000,
                                       .max_wait_ms = 60000};
static const struct retry_rule unlimited = {.attempts = 9, .factor_milli = 2000, .max_wait_ms = 60000};
static const struct retry_rule constant = {.attempts = 9, .factor_milli = 1000, .wait_ms = 700,
                                           .max_wait_ms = 60000};
static const struct retry_rule inverted = {.attempts = 9, .factor_milli = 2000, .wait_ms = 9000,
                                           .max_wait_ms = 1000};
static const struct retry_rule endless = {.attempts = UINT32_MAX, .factor_milli = 2000,
                                          .wait_ms = 1000, .max_wait_ms = 60000,
                                          .defers = UINT32_MAX, .defer_ms = 5};
static const struct retry_rule steep = {.attempts = 9, .factor_milli = UINT32_MAX,
                                        .wait_ms = 400000000000, .max_wait_ms = 864000000000};

static const struct retry_case {
    const char *what;
    const struct retry_rule *rule;
    uint32_t count;
    bool retryable;
    int64_t retry_after_ms;
    int64_t wait_ms; /* -1: no retry */
} cases[] = {
    {"the first wait is `wait`",                        &plain,      1, true,  0,    1000},
    {"the second grows by the factor",                  &plain,      2, true,  0,    2000},
    {"so does the third",                               &plain,      3, true,  0,    4000},
    {"and the fourth",                                  &plain,      4, true,  0,    8000},
    {"after the last attempt there is none",            &plain,      5, true,  0,    -1},
    {"nor later",                                       &plain,      6, true,  0,    -1},
    {"what is not retryable is not retried",            &plain,      1, false, 0,    -1},
    {"even if it names a delay",                        &plain,      1, false, 5000, -1},
    {"an agent's delay replaces the wait",              &plain,      3, true,  50,   50},
    {"however long",                                    &plain,      1, true,  9999999, 9999999},
    {"but gives no further try",                        &plain,      5, true,  50,   -1},
    {"a delay below zero is none",                      &plain,      1, true,  -7,   1000},
    {"a single attempt is not retried",                 &once,       1, true,  0,    -1},
    {"quick tries come before deferred ones",           &deferring,  1, true,  0,    1000},
    {"the first deferred try",                          &deferring,  2, true,  0,    900000},
    {"the second deferred try waits as long",           &deferring,  3, true,  0,    900000},
    {"then there is none",                              &deferring,  4, true,  0,    -1},
    {"an agent's delay replaces a deferral",            &deferring,  2, true,  30,   30},
    {"a wait below the cap",                            &capped,     2, true,  0,    1500},
    {"one above it is cut to it",                       &capped,     3, true,  0,    4000},
    {"and stays there",                                 &capped,    99, true,  0,    4000},
    {"a factor may have decimals",                      &fractional, 3, true,  0,    2250},
    {"no wait stays none",                              &unlimited,      8, true,  0,    0},
    {"factor 1 stays as it is",                         &constant,   8, true,  0,    700},
    {"`wait` holds even above `max_wait`",              &inverted,   3, true,  0,    9000},
    {"ever so many failures do not overflow",           &endless, 4000000000, true, 0, 60000},
    {"ever so many tries do not overflow",              &endless, UINT32_MAX, true, 0, 5},
    {"ever so steep a factor does not overflow",        &steep,      8, true,  0,    864000000000},
};
/* clang-format on */

static void retries_follow_their_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct retry_case *c = &cases[i];
        struct failure f = {c->count, c->retryable, c->retry_after_ms, 1};
        int64_t at = -1;
        bool again = retry_next(c->rule, &f, NOW, &at);
        CHECK(again == (c->wait_ms >= 0), "%s", c->what);
        CHECK(at == (again ? NOW + c->wait_ms : -1), "%s: at %" PRId64, c->what, at);
    }
}

static void a_step_has_as_many_tries_as_its_rule_says(void **state)
{
    struct every e = {0};
    (void)state;
    while (every_next(&e)) {
        struct retry_rule r = {.attempts = every_pick(&e, 5) + 1,
                               .factor_milli = 1000,
                               .max_wait_ms = 10,
                               .defers = every_pick(&e, 4),
                               .jitter = every_pick(&e, 2) == 1};
        struct failure f = {.retryable = true};
        int64_t at = 0;
        for (f.count = 1; retry_next(&r, &f, NOW, &at); f.count++)
            CHECK(f.count < 100, "it ends");
        CHECK(f.count == r.attempts + r.defers, "%u and %u gave %u", r.attempts, r.defers, f.count);
    }
}

static void jitter_stays_in_the_upper_half_and_reaches_both_ends(void **state)
{
    struct retry_rule r = plain;
    int64_t least = INT64_MAX;
    int64_t most = 0;
    (void)state;
    r.jitter = true;
    r.wait_ms = 101;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct failure f = {.count = 1, .retryable = true, .seed = seed};
        int64_t at = 0;
        CHECK(retry_next(&r, &f, NOW, &at), "another try");
        least = min_i64(least, at - NOW);
        most = max_i64(most, at - NOW);
    }
    CHECK(least == 51 && most == 101, "from %" PRId64 " to %" PRId64, least, most);
}

static void jitter_leaves_tiny_waits_and_delays_of_agents_alone(void **state)
{
    struct retry_rule r = deferring;
    (void)state;
    r.jitter = true;
    for (uint64_t seed = 0; seed < 100; seed++)
        for (int64_t wait = 0; wait < 2; wait++) {
            struct failure f = {.count = 1, .retryable = true, .seed = seed};
            int64_t at = 0;
            r.wait_ms = wait;
            CHECK(retry_next(&r, &f, NOW, &at) && at == NOW + wait, "wait %" PRId64, wait);
            f.retry_after_ms = 777;
            CHECK(retry_next(&r, &f, NOW, &at) && at == NOW + 777, "an agent's own delay");
            f.retry_after_ms = 0;
            f.count = 2;
            CHECK(retry_next(&r, &f, NOW, &at) && at == NOW + r.defer_ms, "a deferral");
        }
}

static void the_same_failure_waits_equally_long(void **state)
{
    struct retry_rule r = plain;
    unsigned differ = 0;
    (void)state;
    r.jitter = true;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct failure f = {.count = 3, .retryable = true, .seed = seed};
        int64_t a = 0;
        int64_t b = 0;
        int64_t c = 0;
        CHECK(retry_next(&r, &f, NOW, &a) && retry_next(&r, &f, NOW, &b) && a == b, "again");
        f.seed = seed + 1;
        CHECK(retry_next(&r, &f, NOW, &c), "another step");
        differ += a != c;
    }
    CHECK(differ > 190, "only %u of 200 seeds differ from their neighbour", differ);
    differ = 0;
    r.factor_milli = 1000;
    for (uint64_t seed = 0; seed < 200; seed++) {
        int64_t a = 0;
        int64_t b = 0;
        CHECK(retry_next(&r, &(struct failure){1, true, 0, seed}, NOW, &a), "first");
        CHECK(retry_next(&r, &(struct failure){2, true, 0, seed}, NOW, &b), "second");
        differ += a != b;
    }
    CHECK(differ > 190, "only %u of 200 second waits differ from the first", differ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_follow_their_rule),
        cmocka_unit_test(a_step_has_as_many_tries_as_its_rule_says),
        cmocka_unit_test(jitter_stays_in_the_upper_half_and_reaches_both_ends),
        cmocka_unit_test(jitter_leaves_tiny_waits_and_delays_of_agents_alone),
        cmocka_unit_test(the_same_failure_waits_equally_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
