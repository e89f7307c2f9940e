/* Tests of calls that a server refuses as a whole: a token that was deleted or expired says
 * nothing about the results in the call, which are sent again; what the server cannot read is
 * replaced by an error. And of results for which an answer has no outcome. */

#include "base/test.h"

#include <intact/agent.h>
#include <pthread.h>

#include "libintact/fake.h"
#include "libintact/peer.h"
#include "json/json.h"

enum { REFUSALS = 12 };

static struct {
    struct fake fake;
    int status;
    unsigned idle;
    unsigned refused; /* calls with the result */
    bool given, told;
} s;

static bool brings_result(struct slice body)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *call = NULL;
    enum err err = json_parse(&a, body, &call, NULL);
    const struct json *results = err == ERR_OK ? json_get(call, "results") : NULL;

    return results && results->child;
}

/* One request, whose result is refused a dozen times and then accepted. */
static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    (void)f;
    if (strncmp(line, "GET", 3) == 0)
        return 404; /* it does not say who it is */
    if (brings_result(body)) {
        if (s.refused++ < REFUSALS)
            return s.status;
        s.told = true;
        intact_agent_stop();
        buf_str(ret, "{\"outcomes\":[{\"token\":\"t\",\"status\":\"accepted\"}]}");
    } else if (!s.given) {
        s.given = true;
        buf_str(ret,
                "{\"requests\":[{\"token\":\"t\",\"task\":\"o\",\"step\":\"s\",\"action\":\"x\","
                "\"direction\":\"forward\",\"attempt\":1,\"idempotency_key\":\"o/s\","
                "\"input\":null,\"complete_by\":\"2026-01-31T10:00:00.000Z\","
                "\"time_left_ms\":600000}]}");
    } else {
        if (++s.idle == 5) /* the agent has dropped it */
            intact_agent_stop();
        buf_str(ret, "{}");
    }
    return 200;
}

static void do_it(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, "1");
}

static void results_outlive_a_token_that_is_refused(void **state)
{
    static const int statuses[] = {401, 403};
    (void)state;

    peer_timing.refused_ms = 2;
    peer_timing.refused_max_ms = 5;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        char url[40];
        memset(&s, 0, sizeof s);
        s.status = statuses[i];
        s.fake.answer = answer;
        fake_open(&s.fake);
        fake_url(&s.fake, url);
        struct intact_agent *a = intact_agent_new("a");
        intact_agent_set_server(a, url);
        intact_agent_on(a, "x", INTACT_FORWARD, do_it, NULL);
        CHECK(intact_agent_run(a) == INTACT_AGENT_STOPPED, "it delivers and stops");
        intact_agent_free(a);
        fake_close(&s.fake);
        CHECK(s.told && s.refused == REFUSALS + 1, "after %u calls", s.refused);
    }
}

/* ---- results that the server cannot read ---- */

static struct {
    struct fake fake;
    bool given;
    unsigned outputs, errors; /* calls with one */
    bool takes_nothing;       /* it refuses errors, too */
    unsigned idle;
} u;

static bool has(struct slice body, const char *text)
{
    return memmem(body.ptr, body.len, text, strlen(text)) != NULL;
}

static int answer_unreadable(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    (void)f;
    if (strncmp(line, "GET", 3) == 0)
        return 404;
    if (has(body, "\"output\"")) {
        u.outputs++;
        return 422;
    }
    if (has(body, "\"unacceptable\"")) {
        u.errors++;
        if (u.takes_nothing)
            return 422;
        intact_agent_stop();
        buf_str(ret, "{\"outcomes\":[{\"token\":\"t\",\"status\":\"accepted\"}]}");
    } else if (!u.given) {
        u.given = true;
        buf_str(ret,
                "{\"requests\":[{\"token\":\"t\",\"task\":\"o\",\"step\":\"s\",\"action\":\"x\","
                "\"direction\":\"forward\",\"attempt\":1,\"idempotency_key\":\"o/s\","
                "\"input\":null,\"complete_by\":\"2026-01-31T10:00:00.000Z\","
                "\"time_left_ms\":600000}]}");
    } else {
        if (u.errors > 0 && !has(body, "\"t\"") && ++u.idle == 2)
            intact_agent_stop(); /* the agent holds it no more */
        buf_str(ret, "{}");
    }
    return 200;
}

static void what_the_server_cannot_read_is_replaced_by_an_error(void **state)
{
    (void)state;
    peer_timing.refused_ms = 2;
    peer_timing.refused_max_ms = 5;
    for (int nothing = 0; nothing < 2; nothing++) {
        char url[40];
        memset(&u, 0, sizeof u);
        u.takes_nothing = nothing;
        u.fake.answer = answer_unreadable;
        fake_open(&u.fake);
        fake_url(&u.fake, url);
        struct intact_agent *a = intact_agent_new("a");
        intact_agent_set_server(a, url);
        intact_agent_on(a, "x", INTACT_FORWARD, do_it, NULL);
        CHECK(intact_agent_run(a) == INTACT_AGENT_STOPPED, "it stops, with nothing left");
        intact_agent_free(a);
        fake_close(&u.fake);
        CHECK(u.outputs == 3, "handed in %u times as it was", u.outputs);
        CHECK(u.errors == (nothing ? 3 : 1), "and %u times as an error", u.errors);
    }
}

/* ---- results whose record the server cannot read ---- */

enum { OTHERS = 20 };

static struct {
    struct fake fake;
    unsigned given, others;
    unsigned left_out; /* calls with the one that has no outcome */
} l;

static void give_request(struct buf *ret, const char *token)
{
    json_open(ret, '{');
    json_member_text(ret, "token", slice_of(token));
    buf_str(ret, ",\"task\":\"o\",\"step\":\"s\",\"action\":\"x\",\"direction\":\"forward\","
                 "\"attempt\":1,\"idempotency_key\":\"o/s\",\"input\":null,"
                 "\"complete_by\":\"2026-01-31T10:00:00.000Z\",\"time_left_ms\":600000");
    json_close(ret, '}');
}

static void take_results(struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *call = NULL;
    enum err err = json_parse(&a, body, &call, NULL);
    const struct json *results = err == ERR_OK ? json_get(call, "results") : NULL;
    bool any = false;

    for (const struct json *j = results ? results->child : NULL; j; j = j->next) {
        if (slice_is(json_get_text(j, "token"), "left")) {
            l.left_out++;
            continue;
        }
        l.others++;
        buf_fmt(ret, "%s{\"token\":\"%.*s\",\"status\":\"accepted\"}", any ? "," : "",
                SLICE_ARG(json_get_text(j, "token")));
        any = true;
    }
}

/* One request after the other. */
static int answer_leaving_out(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    char token[20];
    (void)f;

    if (strncmp(line, "GET", 3) == 0)
        return 404;
    buf_str(ret, "{\"outcomes\":[");
    take_results(body, ret);
    buf_str(ret, "],\"requests\":[");
    if (l.given <= OTHERS && l.given == l.others + (l.left_out > 0)) {
        (void)snprintf(token, sizeof token, "t%u", l.given);
        give_request(ret, l.given++ == 0 ? "left" : token);
    }
    buf_str(ret, "]}");
    if (l.others == OTHERS)
        intact_agent_stop();
    return 200;
}

/* It is sent again after longer and longer times, and keeps back nothing else. */
static void a_result_without_an_outcome_keeps_back_no_other(void **state)
{
    struct peer_timing usual = peer_timing;
    char url[40];
    (void)state;

    peer_timing.retry_ms = peer_timing.retry_max_ms = 60000;
    l.fake.answer = answer_leaving_out;
    fake_open(&l.fake);
    fake_url(&l.fake, url);
    struct intact_agent *a = intact_agent_new("a");
    intact_agent_set_server(a, url);
    intact_agent_set_stop_wait_ms(a, 1);
    intact_agent_on(a, "x", INTACT_FORWARD, do_it, NULL);
    CHECK(intact_agent_run(a) == INTACT_AGENT_UNDELIVERED, "one is left");
    intact_agent_free(a);
    fake_close(&l.fake);
    peer_timing = usual;
    CHECK(l.others == OTHERS && l.left_out == 1, "%u others, %u times", l.others, l.left_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_outlive_a_token_that_is_refused),
        cmocka_unit_test(what_the_server_cannot_read_is_replaced_by_an_error),
        cmocka_unit_test(a_result_without_an_outcome_keeps_back_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
