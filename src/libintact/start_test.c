/* Tests of a client's calls that do not block (client_start.c): any number shares a few
 * connections and one descriptor, and cancelled ones report nothing. client_test.c has blocking
 * calls. */

#include "base/test.h"

#include <intact/client.h>
#include <poll.h>
#include <stdlib.h>

#include "libintact/fake.h"

static struct {
    struct fake fake;
    int status;        /* 0: disconnect */
    const char *token; /* 401 to all that have another one; NULL: none is required */
    bool hold;         /* delays every answer */
    unsigned calls;
    size_t done, by_status[INTACT_UNREACHABLE + 1];
    unsigned finds;
} s;

/* Echoes the request. */
static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    s.calls++;
    pthread_cond_broadcast(&f->changed);
    while (s.hold)
        if (!fake_wait(f))
            return 0;
    buf_fmt(ret, "%s|%.*s", line, SLICE_ARG(body));
    if (s.token && strcmp(f->authorization, s.token) != 0)
        return 401;
    return s.status;
}

static struct intact_client *begin(int status)
{
    char url[40];

    memset(&s, 0, sizeof(s));
    s.fake.answer = answer;
    s.status = status;
    fake_open(&s.fake);
    fake_url(&s.fake, url);
    return intact_client_new(url, NULL);
}

static void count(const struct intact_reply *r, void *arg)
{
    const char *expected = arg;

    s.done++;
    s.by_status[intact_reply_status(r)]++;
    if (expected && intact_reply_status(r) == INTACT_OK)
        CHECK(strcmp(intact_reply_body(r), expected) == 0, "%s", intact_reply_body(r));
}

static bool turn(struct intact_client *c)
{
    struct pollfd p = {.fd = intact_client_fd(c), .events = POLLIN};

    CHECK(p.fd >= 0, "it has a descriptor");
    (void)poll(&p, 1, intact_client_timeout_ms(c));
    return intact_client_drive(c) > 0;
}

static void end(struct intact_client *c)
{
    intact_client_free(c);
    fake_close(&s.fake);
}

static void any_number_of_calls_share_a_few_connections(void **state)
{
    enum { CALLS = 500 };
    struct intact_client *c = begin(200);
    static char expected[CALLS][60];

    (void)state;
    intact_client_set_connections(c, 7);
    for (int i = 0; i < CALLS; i++) {
        char body[20];
        (void)snprintf(body, sizeof(body), "{\"n\":%d}", i);
        (void)snprintf(expected[i], sizeof(expected[i]), "POST /v1/tasks?wait=5ms|%s", body);
        CHECK(intact_client_start_submit(c, body, 5, count, expected[i]), "start");
        memset(body, 0, sizeof(body)); /* it was copied */
    }
    CHECK(s.calls == 0, "nothing moves but when it is driven");
    while (turn(c))
        continue;
    CHECK(s.done == CALLS && s.by_status[INTACT_OK] == CALLS, "%zu, %zu", s.done,
          s.by_status[INTACT_OK]);
    CHECK(s.fake.connection_count <= 7, "%zu connections", s.fake.connection_count);
    char get[] = "GET /v1/tasks/a%2Fb|";
    char delete[] = "DELETE /v1/x|";
    CHECK(intact_client_start_get(c, "a/b", 0, count, get), "start");
    CHECK(intact_client_start(c, "DELETE", "/v1/x", NULL, NULL, 0, 0, count, delete), "start");
    while (turn(c))
        continue;
    CHECK(s.by_status[INTACT_OK] == CALLS + 2, "%zu", s.by_status[INTACT_OK]);
    end(c);
}

/* The descriptor alone signals it, whatever timeout the loop used. */
static void a_call_that_is_started_makes_the_descriptor_readable(void **state)
{
    struct intact_client *c = begin(200);
    struct pollfd p = {.fd = intact_client_fd(c), .events = POLLIN};

    (void)state;
    CHECK(intact_client_timeout_ms(c) == -1, "there is nothing to wait for");
    CHECK(poll(&p, 1, 0) == 0, "nothing is to be done");
    CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    CHECK(poll(&p, 1, 60000) == 1, "it is readable");
    CHECK(intact_client_timeout_ms(c) == 0, "at once");
    while (turn(c))
        continue;
    CHECK(s.done == 1, "%zu", s.done);
    end(c);
}

static void refusals_and_losses_are_told_as_such(void **state)
{
    struct intact_client *c = begin(404);

    (void)state;
    CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    while (turn(c))
        continue;
    s.status = 503;
    CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    while (turn(c))
        continue;
    fake_close(&s.fake);
    CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    while (turn(c))
        continue;
    CHECK(s.by_status[INTACT_REFUSED] == 1 && s.by_status[INTACT_BUSY] == 1
              && s.by_status[INTACT_UNREACHABLE] == 1,
          "%zu, %zu, %zu", s.by_status[INTACT_REFUSED], s.by_status[INTACT_BUSY],
          s.by_status[INTACT_UNREACHABLE]);
    CHECK(!intact_client_start(c, NULL, "/", NULL, NULL, 0, 0, count, NULL), "no method");
    CHECK(!intact_client_start(c, "GET", NULL, NULL, NULL, 0, 0, count, NULL), "no path");
    CHECK(!intact_client_start(c, "GET", "/", NULL, NULL, 0, 0, NULL, NULL), "no function");
    CHECK(!intact_client_start_get(c, NULL, 0, count, NULL), "no task");
    CHECK(!intact_client_start_submit(c, NULL, 0, count, NULL), "no task");
    intact_client_free(c);
}

struct chain {
    struct intact_client *client;
    struct intact_call *own, *other;
    int left;
};

/* Starts the next one, cancels those that must not be reported, and makes a blocking call. */
static void go_on(const struct intact_reply *r, void *arg)
{
    struct chain *chain = arg;

    count(r, NULL);
    intact_client_cancel(chain->client, chain->own); /* this one: without effect */
    intact_client_cancel(chain->client, chain->other);
    chain->other = NULL;
    CHECK(intact_client_drive(chain->client) == 0, "only counted");
    CHECK(intact_client_get(chain->client, "y", 0) == INTACT_OK, "a blocking call");
    CHECK(strcmp(intact_reply_body(r), "GET /v1/tasks/x|") == 0, "%s", intact_reply_body(r));
    if (--chain->left > 0)
        chain->own = intact_client_start_get(chain->client, "x", 0, go_on, chain);
}

static void their_functions_may_use_the_client(void **state)
{
    struct intact_client *c = begin(200);
    struct chain chain = {.client = c, .left = 5};

    (void)state;
    intact_client_set_connections(c, 1);
    chain.own = intact_client_start_get(c, "x", 0, go_on, &chain);
    chain.other = intact_client_start_get(c, "never", 0, go_on, &chain); /* queued */
    while (turn(c))
        continue;
    CHECK(s.done == 5, "%zu", s.done);
    end(c);
}

static void what_is_cancelled_is_not_told(void **state)
{
    struct intact_client *c = begin(200);
    struct intact_call *calls[4];

    (void)state;
    s.hold = true;
    intact_client_set_connections(c, 2);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        calls[i] = intact_client_start_get(c, "x", 0, count, NULL);
    for (unsigned on_the_way = 0; on_the_way < 2;) {
        (void)intact_client_drive(c);
        pthread_mutex_lock(&s.fake.lock);
        on_the_way = s.calls;
        pthread_mutex_unlock(&s.fake.lock);
    }
    intact_client_cancel(c, calls[0]); /* running */
    intact_client_cancel(c, calls[3]); /* waiting */
    intact_client_cancel(c, NULL);
    pthread_mutex_lock(&s.fake.lock);
    s.hold = false;
    pthread_mutex_unlock(&s.fake.lock);
    while (turn(c))
        continue;
    CHECK(s.done == 2, "%zu", s.done);
    pthread_mutex_lock(&s.fake.lock);
    s.hold = true;
    pthread_mutex_unlock(&s.fake.lock);
    for (int i = 0; i < 3; i++)
        CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    (void)intact_client_drive(c);
    end(c); /* with running calls */
    CHECK(s.done == 2, "%zu: nobody is told", s.done);
}

static char *find_token(void *arg, const struct intact_client *c)
{
    (void)arg;
    s.finds++;
    CHECK(intact_client_http_status(c) == 401, "%d", intact_client_http_status(c));
    return strdup("found");
}

static void a_token_is_looked_for_once_and_sent_over_new_connections(void **state)
{
    struct intact_client *c = begin(200);

    (void)state;
    s.token = "Bearer found";
    intact_client_set_find_token(c, find_token, NULL);
    intact_client_set_connections(c, 4);
    for (int i = 0; i < 20; i++)
        CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    while (turn(c))
        continue;
    CHECK(s.by_status[INTACT_OK] == 20, "%zu", s.by_status[INTACT_OK]);
    CHECK(s.finds == 1, "%u", s.finds);
    pthread_mutex_lock(&s.fake.lock);
    size_t before = s.fake.connection_count;
    pthread_mutex_unlock(&s.fake.lock);
    for (int i = 0; i < 8; i++) { /* connections are kept again */
        CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
        while (turn(c))
            continue;
    }
    CHECK(s.fake.connection_count <= before + 1, "%zu after %zu", s.fake.connection_count, before);
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_calls_share_a_few_connections),
        cmocka_unit_test(a_call_that_is_started_makes_the_descriptor_readable),
        cmocka_unit_test(refusals_and_losses_are_told_as_such),
        cmocka_unit_test(their_functions_may_use_the_client),
        cmocka_unit_test(what_is_cancelled_is_not_told),
        cmocka_unit_test(a_token_is_looked_for_once_and_sent_over_new_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
