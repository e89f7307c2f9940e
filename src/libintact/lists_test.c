/* Tests of how an agent reads lists of nodes (nodes.c), one after the other: names that change,
 * names that are none, and addresses with TLS. nodes_test.c has agents of several nodes. */

#include "base/test.h"

#include <intact/agent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "libintact/agent.h"
#include "libintact/fake.h"
#include "json/json.h"

static char logged[4000];

static void remember(void *arg, enum intact_log_level level, const char *line)
{
    size_t len = strlen(logged);
    (void)arg;
    (void)level;

    (void)snprintf(logged + len, sizeof logged - len, "%s;", line);
}

static struct intact_agent *begin(const char *seeds)
{
    struct intact_agent *a = intact_agent_new("a");

    logged[0] = 0;
    intact_agent_set_server(a, seeds);
    intact_agent_set_log(a, remember, NULL);
    a->reactor.multi = curl_multi_init();
    CHECK(a->reactor.multi && nodes_open(a), "%s", seeds);
    return a;
}

static void end(struct intact_agent *a)
{
    nodes_close(a);
    curl_multi_cleanup(a->reactor.multi);
    a->reactor.multi = NULL;
    intact_agent_free(a);
}

static void hear(struct peer *p, const char *text)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json *list = NULL;
    enum err err = json_parse(&arena, slice_of(text), &list, NULL);

    CHECK(err == ERR_OK, "%s", text);
    nodes_answered(p, list);
}

#define N2 "{\"node\":\"n2\",\"boot\":1,\"started_at\":\"x\",\"url\":\"http://two:1\"}"

/* Its old name is listed as alive until its lease expires; that does not make it a proxy. */
static void a_node_may_be_given_another_name(void **state)
{
    struct intact_agent *a = begin("http://s:1");

    (void)state;
    hear(a->peers[0], "{\"self\":\"n1\",\"nodes\":[{\"node\":\"n1\"}," N2 "]}");
    CHECK(a->peer_count == 2, "%zu peers", a->peer_count);
    hear(a->peers[1], "{\"self\":\"n2\",\"nodes\":[{\"node\":\"n1\"}," N2 "]}");
    CHECK(a->peers[0]->used && a->peers[1]->used, "both are there");
    hear(a->peers[0], "{\"self\":\"new\",\"nodes\":[{\"node\":\"new\"},"
                      "{\"node\":\"n1\"}," N2 "]}");
    CHECK(!a->peers[0]->used && a->peers[1]->used, "it looks like a proxy");
    hear(a->peers[0], "{\"self\":\"new\",\"nodes\":[{\"node\":\"new\"},"
                      "{\"node\":\"n1\",\"alive\":false}," N2 "]}");
    CHECK(a->peers[0]->used && a->peers[1]->used, "it was none");
    end(a);
}

/* Names appear in the log, so they must not look like log lines. */
static void names_are_names(void **state)
{
    static const char *const bad[] = {"n 2", "n2\\nevent=x", "n\\\"2", "", "n/2"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char text[200];
        struct intact_agent *a = begin("http://s:1");
        (void)snprintf(text, sizeof text,
                       "{\"self\":\"%s\",\"nodes\":[{\"node\":\"%s\",\"url\":\"http://x:1\"}]}",
                       bad[i], bad[i]);
        hear(a->peers[0], text);
        CHECK(a->peer_count == 1 && !logged[0], "%s: %s", bad[i], logged);
        CHECK(a->peers[0]->used && !a->peers[0]->self[0], "it does not say who it is");
        end(a);
    }
}

static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    (void)f;
    (void)body;
    if (strcmp(line, "GET /v1/nodes") == 0)
        buf_str(ret, "{\"self\":\"n1\",\"nodes\":[{\"node\":\"n1\"},"
                     "{\"node\":\"n2\",\"url\":\"https://127.0.0.1:1\"}]}");
    else
        buf_str(ret, "{}");
    return 200;
}

static void do_nothing(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, "1");
}

/* Everything for TLS is then set up in the middle of a turn. */
static void the_first_address_with_tls_may_come_by_a_list(void **state)
{
    struct fake f = {.answer = answer};
    sigset_t odd;
    sigset_t found;
    char url[40];

    (void)state;
    fake_open(&f);
    fake_url(&f, url);
    struct intact_agent *a = intact_agent_new("a");
    intact_agent_set_server(a, url);
    intact_agent_set_log(a, remember, NULL);
    intact_agent_on(a, "x", INTACT_ANY, do_nothing, NULL);
    sigemptyset(&odd);
    sigaddset(&odd, SIGUSR1);
    sigaddset(&odd, SIGWINCH);
    (void)pthread_sigmask(SIG_SETMASK, &odd, NULL);
    for (int more = 20; more > 0; more -= a->peer_count > 1) {
        struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};
        (void)poll(&p, 1, intact_agent_timeout_ms(a));
        CHECK(intact_agent_drive(a), "%s", logged);
        sigemptyset(&found);
        (void)pthread_sigmask(SIG_SETMASK, NULL, &found);
        for (int s = 1; s < 32; s++)
            CHECK(sigismember(&found, s) == sigismember(&odd, s), "signal %d", s);
    }
    sigemptyset(&odd);
    (void)pthread_sigmask(SIG_SETMASK, &odd, NULL);
    intact_agent_free(a);
    fake_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_may_be_given_another_name),
        cmocka_unit_test(names_are_names),
        cmocka_unit_test(the_first_address_with_tls_may_come_by_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
