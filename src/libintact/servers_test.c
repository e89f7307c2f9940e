/* Tests of a client with several servers (client_servers.c): which one is called next, what is
 * never repeated, and that a repeated submission is the same task. */

#include "base/test.h"

#include <intact/client.h>
#include <poll.h>
#include <stdlib.h>

#include "libintact/fake.h"
#include "json/json.h"

enum { SERVERS = 3 };

struct played {
    struct fake fake;
    int status; /* 0: disconnect */
    const char *answer;
    unsigned calls;
    char seen[400];
};

static struct played servers[SERVERS];

static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    struct played *p = CONTAINER_OF(f, struct played, fake);

    if (strcmp(line, "GET /healthz") == 0)
        return 200; /* an older server does not name its installation */
    p->calls++;
    (void)snprintf(p->seen, sizeof p->seen, "%s|%.*s", line, SLICE_ARG(body));
    buf_str(ret, p->answer);
    return p->status;
}

static struct intact_client *begin(void)
{
    char urls[SERVERS * 42] = "";

    memset(servers, 0, sizeof servers);
    for (size_t i = 0; i < SERVERS; i++) {
        char url[40];
        servers[i].fake.answer = answer;
        servers[i].status = 200;
        servers[i].answer = "{\"state\":\"processed\"}";
        fake_open(&servers[i].fake);
        fake_url(&servers[i].fake, url);
        (void)snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%s%s/", i ? "," : "", url);
    }
    struct intact_client *c = intact_client_new(urls, NULL);
    CHECK(c, "a client");
    return c;
}

static void end(struct intact_client *c)
{
    intact_client_free(c);
    for (size_t i = 0; i < SERVERS; i++)
        if (!servers[i].fake.closing)
            fake_close(&servers[i].fake);
}

static void calls_are(unsigned first, unsigned second, unsigned third)
{
    CHECK(servers[0].calls == first && servers[1].calls == second && servers[2].calls == third,
          "%u, %u and %u calls", servers[0].calls, servers[1].calls, servers[2].calls);
}

static void the_next_one_is_asked_and_stays_the_one(void **state)
{
    struct intact_client *c = begin();

    (void)state;
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    calls_are(1, 0, 0);
    fake_close(&servers[0].fake);
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    calls_are(1, 1, 0);
    servers[1].status = 503;
    servers[1].answer = "{\"title\":\"no\"}";
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    calls_are(1, 2, 2);
    servers[2].status = 404; /* an error is an answer, too */
    CHECK(intact_client_get(c, "x", 0) == INTACT_REFUSED, "%s", intact_client_error(c));
    calls_are(1, 2, 3);
    CHECK(strstr(intact_client_server(c), "http://127.0.0.1:"), "%s", intact_client_server(c));
    servers[2].status = 0;
    CHECK(intact_client_get(c, "x", 0) == INTACT_BUSY, "one is busy, the others are not there");
    CHECK(servers[1].calls == 3 && servers[2].calls > 3, "each was asked");
    end(c);
}

static void when_none_answers_that_is_said(void **state)
{
    struct intact_client *c = begin();

    (void)state;
    for (size_t i = 0; i < SERVERS; i++)
        fake_close(&servers[i].fake);
    CHECK(intact_client_get(c, "x", 0) == INTACT_UNREACHABLE, "status");
    CHECK(strstr(intact_client_error(c), "none could be reached"), "%s", intact_client_error(c));
    end(c);
}

static void what_must_not_happen_twice_is_not_repeated(void **state)
{
    static const struct {
        int status;
        const char *answer;
        enum intact_status result;
        unsigned seconds;
    } cases[] = {
        {0, "", INTACT_UNREACHABLE, 0}, /* it may have been executed */
        {503, "{\"type\":\"urn:intact:problem:store\"}", INTACT_BUSY, 0},
        {503, "", INTACT_BUSY, 0},
        {500, "", INTACT_BUSY, 0},
        {503, "{\"type\":\"urn:intact:problem:draining\"}", INTACT_OK, 1}, /* it was not executed */
        {503, "{\"type\":\"urn:intact:problem:not-a-scheduler\"}", INTACT_OK, 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct intact_client *c = begin();
        servers[0].status = cases[i].status;
        servers[0].answer = cases[i].answer;
        enum intact_status s =
            intact_client_call(c, "POST", "/v1/tasks/x/retry", "application/json", "{}", 2);
        CHECK(s == cases[i].result, "case %zu: %d %s", i, (int)s, intact_client_error(c));
        calls_are(1, cases[i].seconds, 0);
        end(c);
    }
    struct intact_client *c = begin();
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    servers[0].status = 0; /* nor over the connection that is kept now */
    CHECK(intact_client_call(c, "POST", "/v1/tasks/x/retry", "application/json", "{}", 2)
              == INTACT_UNREACHABLE,
          "it may have been done");
    calls_are(2, 0, 0);
    fake_close(&servers[0].fake); /* it cannot have received anything */
    CHECK(intact_client_call(c, "POST", "/v1/tasks/x/retry", "application/json", "{}", 2)
              == INTACT_OK,
          "%s", intact_client_error(c));
    calls_are(2, 1, 0);
    end(c);
}

static void a_submission_is_the_same_one_at_the_next_server(void **state)
{
    static const char *const tasks[] = {
        "{\"workflow\": \"w\", \"input\": {\"id\": 3}}",
        " {} ",
        "{\"workflow\": \"w\", \"id\": \"mine\"}",
        "no json",
        "[{\"a\": 1}]",
    };
    struct intact_client *c = begin();
    char first[400];

    (void)state;
    servers[0].status = 0;
    for (size_t i = 0; i < COUNT_OF(tasks); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct json *j = NULL;
        intact_client_free(c);
        for (size_t k = 0; k < SERVERS; k++)
            fake_close(&servers[k].fake);
        c = begin();
        servers[0].status = 0;
        CHECK(intact_client_submit(c, tasks[i], 0) == INTACT_OK, "%s", intact_client_error(c));
        calls_are(1, 1, 0);
        CHECK(strcmp(servers[0].seen, servers[1].seen) == 0, "%s, then %s", servers[0].seen,
              servers[1].seen);
        (void)snprintf(first, sizeof first, "%s", strchr(servers[1].seen, '|') + 1);
        if (i >= 2) {
            CHECK(strcmp(first, tasks[i]) == 0, "%s", first);
            continue;
        }
        enum err err = json_parse(&a, slice_of(first), &j, NULL);
        struct slice id = json_get_text(j, "id");
        CHECK(err == ERR_OK && id.len == 36 && id.ptr[14] == '7', "%s", first);
    }
    end(c);
}

static void every_line_of_many_has_an_id(void **state)
{
    struct intact_client *c = begin();
    static const char lines[] = "{\"workflow\":\"w\"}\n\n{\"id\":\"b\"}\nbad\n{\"workflow\":\"v\"}";
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    (void)state;
    servers[0].status = 503;
    CHECK(intact_client_submit_many(c, lines, strlen(lines)) == INTACT_OK, "many");
    CHECK(strcmp(servers[0].seen, servers[1].seen) == 0, "%s", servers[1].seen);
    char *text = strchr(servers[1].seen, '|') + 1;
    char *middle = strstr(text, "\n\n{\"id\":\"b\"}\nbad\n");
    CHECK(middle, "%s", text);
    enum err err = json_parse(&a, (struct slice){text, (size_t)(middle - text)}, &j, NULL);
    CHECK(err == ERR_OK && json_get_text(j, "id").len == 36, "%s", text);
    err = json_parse(&a, slice_of(strstr(middle, "bad\n") + 4), &j, NULL);
    CHECK(err == ERR_OK && json_get_text(j, "id").len == 36, "%s", text);
    end(c);
}

/* As servers match them. */
static void many_may_come_under_other_spellings(void **state)
{
    static const char lines[] = "{\"workflow\":\"w\"}\n{\"workflow\":\"v\"}";
    static const char *const types[] = {"application/x-ndjson; charset=utf-8",
                                        "Application/X-NDJSON", " application/x-ndjson;"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct intact_client *c = begin();
        servers[0].status = 0; /* it may have executed them */
        CHECK(intact_client_call(c, "POST", "/v1/tasks", types[i], lines, strlen(lines))
                  == INTACT_OK,
              "%s", types[i]);
        const char *first = strstr(servers[1].seen, "\"id\":");
        CHECK(first && strstr(first + 1, "\"id\":"), "%s: %s", types[i], servers[1].seen);
        CHECK(strcmp(servers[0].seen, servers[1].seen) == 0, "%s", servers[1].seen);
        end(c);
    }
}

static char *find(void *arg, const struct intact_client *c)
{
    char text[80];
    (void)arg;

    (void)snprintf(text, sizeof text, "of-%s", intact_client_server(c));
    return strdup(text);
}

static void was_shown(size_t i, const char *expected)
{
    CHECK(strcmp(servers[i].fake.authorization, expected) == 0, "%zu was shown \"%s\"", i,
          servers[i].fake.authorization);
}

/* The token was found for one of them; another may be any machine. */
static void a_token_that_was_found_goes_to_no_other_server(void **state)
{
    struct intact_client *c = begin();
    char own[2][60];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char url[40];
        fake_url(&servers[i].fake, url);
        (void)snprintf(own[i], sizeof own[i], "Bearer of-%s", url);
    }
    intact_client_set_find_token(c, find, NULL);
    servers[0].status = servers[1].status = 401;
    CHECK(intact_client_get(c, "x", 0) == INTACT_REFUSED, "%s", intact_client_error(c));
    was_shown(0, own[0]);
    servers[0].status = 503;
    servers[1].status = 200;
    CHECK(intact_client_get(c, "x", 0) == INTACT_OK, "%s", intact_client_error(c));
    calls_are(3, 1, 0);
    was_shown(1, "");
    servers[1].status = 401;
    CHECK(intact_client_get(c, "x", 0) == INTACT_REFUSED, "%s", intact_client_error(c));
    was_shown(1, own[1]);
    end(c);
}

static void a_wait_goes_on_at_another_server(void **state)
{
    struct intact_client *c = begin();

    (void)state;
    servers[0].answer = "{\"state\":\"processing\"}";
    CHECK(intact_client_wait(c, "x", 0) == INTACT_TIMEOUT, "it has not ended");
    fake_close(&servers[0].fake);
    servers[1].status = 503;
    CHECK(intact_client_wait(c, "x", 60000) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(servers[2].calls == 1, "%u calls", servers[2].calls);
    end(c);
}

static struct {
    unsigned done, ok;
} calls;

static void count(const struct intact_reply *r, void *arg)
{
    (void)arg;
    calls.done++;
    calls.ok += intact_reply_status(r) == INTACT_OK;
}

static void drive_until(struct intact_client *c, unsigned done)
{
    struct pollfd p = {.fd = intact_client_fd(c), .events = POLLIN};

    while (calls.done < done) {
        (void)poll(&p, 1, intact_client_timeout_ms(c));
        (void)intact_client_drive(c);
    }
}

static void calls_that_do_not_block_go_on_in_the_same_way(void **state)
{
    struct intact_client *c = begin();

    (void)state;
    memset(&calls, 0, sizeof calls);
    fake_close(&servers[0].fake);
    servers[1].status = 503;
    for (unsigned i = 0; i < 100; i++)
        CHECK(intact_client_start_submit(c, "{\"workflow\":\"w\"}", 0, count, NULL), "start");
    drive_until(c, 100);
    CHECK(calls.ok == 100 && servers[2].calls == 100, "%u, %u", calls.ok, servers[2].calls);
    CHECK(strstr(servers[2].seen, "{\"id\":\""), "%s", servers[2].seen);
    servers[2].status = 0;
    CHECK(intact_client_start(c, "POST", "/v1/tasks/x/undo", NULL, "{}", 2, 0, count, NULL), "x");
    drive_until(c, 101);
    CHECK(calls.ok == 100, "it may have been done");
    CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    drive_until(c, 102);
    CHECK(calls.ok == 100, "none is left");
    servers[1].status = 200;
    CHECK(intact_client_start_get(c, "x", 0, count, NULL), "start");
    drive_until(c, 103);
    CHECK(calls.ok == 101, "one is back");
    end(c);
}

int main(void)
{
    unsetenv("INTACT_TOKEN"); /* set by whoever runs the tests */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_one_is_asked_and_stays_the_one),
        cmocka_unit_test(when_none_answers_that_is_said),
        cmocka_unit_test(what_must_not_happen_twice_is_not_repeated),
        cmocka_unit_test(a_submission_is_the_same_one_at_the_next_server),
        cmocka_unit_test(every_line_of_many_has_an_id),
        cmocka_unit_test(many_may_come_under_other_spellings),
        cmocka_unit_test(a_token_that_was_found_goes_to_no_other_server),
        cmocka_unit_test(a_wait_goes_on_at_another_server),
        cmocka_unit_test(calls_that_do_not_block_go_on_in_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
