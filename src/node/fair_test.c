/* Tests of fair.c over a real loop: fair shares of the loop's time among tokens, when their calls
 * take time, rest, or go away. */

#include "base/test.h"
#include "node/fair.h"
#include "node/node.h"

enum { CALLS_MAX = 64 };

#define US UINT64_C(1000)

static struct {
    struct server server;
    uv_loop_t loop;
    struct fair *fair;
    struct fair_share a, b;
    uint64_t took_ns; /* by a call of A */
    struct http_request *served[CALLS_MAX];
    size_t count;
} t;

static struct fair_share *share_of(const struct http_request *r)
{
    return r->account;
}

static void spin(uint64_t ns)
{
    uint64_t end = uv_hrtime() + ns;

    while (uv_hrtime() < end)
        ;
}

static void serve(struct server *sv, struct http_request *r)
{
    uint64_t began = uv_hrtime();

    assert_ptr_equal(sv, &t.server);
    spin(share_of(r) == &t.a ? t.took_ns : 0);
    assert_true(t.count < CALLS_MAX);
    t.served[t.count++] = r;
    uint64_t now = uv_hrtime();
    fair_charge(t.fair, share_of(r), now, now - began);
}

static void arrives(struct http_request *r, struct fair_share *s)
{
    *r = (struct http_request){.account = s};
    if (!fair_holds(t.fair, s, r))
        serve(&t.server, r);
}

static void goes_away(struct http_request *r)
{
    struct exchange *x = r->user;

    assert_non_null(x);
    exchange_untie(x);
    x->gone(x);
}

static void on_check(uv_check_t *c)
{
    (void)c;
    fair_turn(t.fair);
}

static uv_check_t check;

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    assert_int_equal(uv_loop_init(&t.loop), 0);
    assert_int_equal(uv_check_init(&t.loop, &check), 0);
    assert_int_equal(uv_check_start(&check, on_check), 0);
    uv_unref((uv_handle_t *)&check);
    t.fair = fair_new(&t.server, &t.loop, serve);
    t.took_ns = 200 * US;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fair_close(t.fair);
    uv_close((uv_handle_t *)&check, NULL);
    (void)uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&t.loop), 0);
    fair_free(t.fair);
    return 0;
}

static void go_on_until_quiet(void)
{
    while (fair_waiting(t.fair) > 0)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
}

static size_t place_of(const struct http_request *r)
{
    size_t i = 0;

    while (i < t.count && t.served[i] != r)
        i++;
    return i;
}

static void alone_nobody_waits(void **state)
{
    struct http_request r[20];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(r); i++)
        arrives(&r[i], &t.a);
    assert_int_equal(t.count, COUNT_OF(r));
    assert_int_equal(fair_waiting(t.fair), 0);
}

static void a_crowd_does_not_keep_others_waiting(void **state)
{
    struct http_request r[20];
    struct http_request first;
    struct http_request other;
    (void)state;

    arrives(&first, &t.b);
    for (size_t i = 0; i < COUNT_OF(r); i++)
        arrives(&r[i], &t.a);
    assert_true(t.count <= 1 + 3); /* three of 200 us fill the slice of 500 us */
    assert_true(fair_waiting(t.fair) >= 17);
    arrives(&other, &t.b);
    assert_true(place_of(&other) <= 4);
    go_on_until_quiet();
    assert_int_equal(t.count, 22);
    for (size_t i = 1; i < COUNT_OF(r); i++)
        assert_true(place_of(&r[i - 1]) < place_of(&r[i]));
}

/* Each round serves a slice of both, whoever came first. */
static void two_crowds_take_turns(void **state)
{
    struct http_request r[20];
    struct http_request s[20];
    (void)state;

    arrives(&s[0], &t.b);
    for (size_t i = 0; i < COUNT_OF(r); i++)
        arrives(&r[i], &t.a);
    spin(0);
    t.b.spent_ns = 1000 * US; /* it has had its share of this round */
    for (size_t i = 1; i < COUNT_OF(s); i++)
        arrives(&s[i], &t.b);
    assert_true(fair_waiting(t.fair) >= 17 + 19);
    go_on_until_quiet();
    assert_int_equal(t.count, 40);
    assert_true(place_of(&s[19]) < place_of(&r[19]));
}

/* The first call takes six slices; then the token rests, and is served when the rest is over. */
static void long_calls_are_followed_by_a_rest(void **state)
{
    struct http_request r[2];
    struct http_request other[2];
    (void)state;

    t.took_ns = 3000 * US;
    arrives(&other[0], &t.b);
    arrives(&r[0], &t.a);
    uint64_t ended = uv_hrtime();
    assert_true(t.a.rests_until_ns > ended);
    arrives(&r[1], &t.a);
    arrives(&other[1], &t.b);
    assert_int_equal(fair_waiting(t.fair), 1);
    assert_ptr_equal(t.served[2], &other[1]);
    uint64_t rests_until = t.a.rests_until_ns;
    t.took_ns = 0;
    go_on_until_quiet();
    assert_ptr_equal(t.served[3], &r[1]);
    assert_true(uv_hrtime() >= rests_until);
}

/* While it rests others alone are served, for longer than it takes to count as alone. */
static void who_rests_is_not_alone(void **state)
{
    struct http_request r[2];
    struct http_request other;
    (void)state;

    t.took_ns = 3000 * US;
    arrives(&other, &t.b);
    arrives(&r[0], &t.a);
    t.a.rests_until_ns = uv_hrtime() + 2000000 * US;
    uint64_t rests_until = t.a.rests_until_ns;
    arrives(&r[1], &t.a);
    assert_int_equal(fair_waiting(t.fair), 1);
    t.took_ns = 0;
    while (fair_waiting(t.fair) > 0) {
        arrives(&other, &t.b);
        t.count = t.count > 3 ? 3 : t.count;
        (void)uv_run(&t.loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    assert_true(uv_hrtime() >= rests_until);
}

/* What came with A's call may take long: others who call meanwhile are there all the same. */
static void who_called_long_ago_is_alone_only_without_others(void **state)
{
    (void)state;
    assert_true(fair_is_alone(t.fair, &t.a));
    fair_charge(t.fair, &t.b, uv_hrtime(), 0);
    fair_charge(t.fair, &t.b, uv_hrtime(), 0);
    assert_true(fair_is_alone(t.fair, &t.b));
    assert_false(fair_is_alone(t.fair, &t.a));
}

static void clients_that_go_are_not_served(void **state)
{
    struct http_request r[10];
    struct http_request other;
    (void)state;

    arrives(&other, &t.b);
    for (size_t i = 0; i < COUNT_OF(r); i++)
        arrives(&r[i], &t.a);
    size_t held = fair_waiting(t.fair);
    assert_true(held >= 2);
    goes_away(&r[9]);
    goes_away(&r[8]);
    assert_int_equal(fair_waiting(t.fair), held - 2);
    go_on_until_quiet();
    assert_int_equal(t.count, 1 + 8);
    assert_int_equal(place_of(&r[9]), t.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alone_nobody_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_crowd_does_not_keep_others_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_crowds_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_calls_are_followed_by_a_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_rests_is_not_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_called_long_ago_is_alone_only_without_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(clients_that_go_are_not_served, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
