/* Tests of clients and agents whose servers belong to different installations, from the start or
 * since one was replaced: no task and no result may reach the other installation. */

#include "base/test.h"

#include <intact/agent.h>
#include <intact/client.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "libintact/fake.h"
#include "json/json.h"

#define ID_A "aaaaaaaa-0000-4000-8000-00000000000a"
#define ID_B "bbbbbbbb-0000-4000-8000-00000000000b"

enum { SERVERS = 3, URLS_SIZE = 200 };

struct played {
    struct fake fake;
    bool is_up;
    unsigned calls;   /* of clients, and of agents for work */
    unsigned results; /* received */
    bool to_give;     /* whether there is a request to give */
};

static struct played servers[SERVERS];
static atomic_bool gate;
static atomic_uint runs;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[8000];

static void take_results(struct played *p, const struct json *results, struct buf *ret)
{
    bool any = false;

    buf_str(ret, "\"outcomes\":[");
    for (const struct json *j = results ? results->child : NULL; j; j = j->next) {
        buf_fmt(ret, "%s{\"token\":\"%.*s\",\"status\":\"accepted\"}", any ? "," : "",
                SLICE_ARG(json_get_text(j, "token")));
        p->results++;
        any = true;
    }
    buf_str(ret, "]");
}

static int work(struct played *p, struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *call = NULL;
    enum err err = json_parse(&a, body, &call, NULL);
    int64_t max = json_get_int(call, "max", 0);

    CHECK(err == ERR_OK, "%.*s", SLICE_ARG(body));
    buf_str(ret, "{");
    take_results(p, json_get(call, "results"), ret);
    while (max > 0 && !p->to_give && p->results == 0)
        if (!fake_wait(&p->fake))
            return 0;
    if (max > 0 && p->to_give)
        buf_fmt(
            ret,
            ",\"requests\":[{\"token\":\"t-%zu\",\"task\":\"t\",\"step\":\"s\",\"action\":\"x\","
            "\"direction\":\"forward\",\"attempt\":1,\"idempotency_key\":\"k\",\"input\":1,"
            "\"time_left_ms\":600000}]",
            (size_t)(p - servers));
    p->to_give = p->to_give && max == 0;
    buf_str(ret, "}");
    return 200;
}

static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    struct played *p = CONTAINER_OF(f, struct played, fake);

    if (strcmp(line, "GET /healthz") == 0)
        return 200;
    if (strcmp(line, "GET /v1/nodes") == 0)
        return 404; /* makes an agent use the server as it is */
    p->calls++;
    if (strstr(line, "/work"))
        return work(p, body, ret);
    buf_str(ret, "{\"state\":\"processed\"}");
    return 200;
}

static void open_server(size_t i, const char *id)
{
    (void)snprintf(servers[i].fake.installation, sizeof servers[i].fake.installation, "%s", id);
    servers[i].fake.answer = answer;
    servers[i].is_up = true;
    fake_open(&servers[i].fake);
}

static void close_server(size_t i)
{
    if (servers[i].is_up)
        fake_close(&servers[i].fake);
    servers[i].is_up = false;
}

/* Ids of the servers; with "-" in front: not running yet, but with an address. */
static void begin(const char *const ids[SERVERS], char urls[URLS_SIZE])
{
    memset(servers, 0, sizeof servers);
    atomic_store(&gate, false);
    atomic_store(&runs, 0);
    log_text[0] = urls[0] = 0;
    for (size_t i = 0; i < SERVERS && ids[i]; i++) {
        char url[40];
        open_server(i, ids[i][0] == '-' ? ids[i] + 1 : ids[i]);
        fake_url(&servers[i].fake, url);
        (void)snprintf(urls + strlen(urls), URLS_SIZE - strlen(urls), "%s%s", i ? "," : "", url);
        if (ids[i][0] == '-')
            close_server(i);
    }
}

static void end_servers(void)
{
    for (size_t i = 0; i < SERVERS; i++)
        close_server(i);
}

static void names_both(const char *text)
{
    char a[40];
    char b[40];

    fake_url(&servers[0].fake, a);
    fake_url(&servers[1].fake, b);
    CHECK(strstr(text, ID_A) && strstr(text, ID_B), "both ids: %s", text);
    CHECK(strstr(text, a) && strstr(text, b), "both addresses: %s", text);
}

static enum intact_status submit(struct intact_client *c)
{
    return intact_client_submit(c, "{\"workflow\":\"w\",\"id\":\"x\",\"input\":{}}", 0);
}

/* ---- clients ---- */

static void two_installations_are_noticed_while_both_are_there(void **state)
{
    const char *const ids[SERVERS] = {ID_A, ID_B};
    char urls[URLS_SIZE];

    (void)state;
    begin(ids, urls);
    struct intact_client *c = intact_client_new(urls, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(submit(c) == INTACT_REFUSED, "%s", intact_client_error(c));
        names_both(intact_client_error(c));
    }
    CHECK(servers[0].calls == 0 && servers[1].calls == 0, "nothing was done");
    intact_client_free(c);
    end_servers();
}

static void a_task_is_not_begun_again_in_another_installation(void **state)
{
    const char *const ids[SERVERS] = {ID_A, "-" ID_B};
    char urls[URLS_SIZE];

    (void)state;
    begin(ids, urls);
    struct intact_client *c = intact_client_new(urls, NULL);
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(strcmp(intact_client_installation(c), ID_A) == 0, "%s", intact_client_installation(c));
    close_server(0);
    open_server(1, ID_B);
    CHECK(submit(c) == INTACT_REFUSED, "%s", intact_client_error(c));
    names_both(intact_client_error(c));
    CHECK(servers[1].calls == 0 && servers[1].fake.misdirected == 1, "it did nothing");
    CHECK(intact_client_wait(c, "x", 600000) == INTACT_REFUSED, "nor is it waited for");
    open_server(0, ID_A);
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(servers[0].calls == 2 && servers[1].calls == 0, "%u", servers[0].calls);
    intact_client_free(c);
    end_servers();
}

static void a_server_that_was_replaced_is_another_one(void **state)
{
    const char *const ids[SERVERS] = {ID_A};
    char urls[URLS_SIZE];

    (void)state;
    begin(ids, urls);
    struct intact_client *c = intact_client_new(urls, NULL);
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    close_server(0);
    open_server(0, ID_B);
    CHECK(submit(c) == INTACT_REFUSED, "refused");
    CHECK(strstr(intact_client_error(c), "restart this program"), "%s", intact_client_error(c));
    CHECK(strstr(intact_client_error(c), ID_B " now"), "%s", intact_client_error(c));
    intact_client_free(c);
    c = intact_client_new(urls, NULL);
    CHECK(submit(c) == INTACT_OK, "a new one knows nothing of it: %s", intact_client_error(c));
    intact_client_free(c);
    end_servers();
}

static void others_of_the_same_installation_take_the_call(void **state)
{
    const char *const ids[SERVERS] = {ID_A, ("-" ID_B), ID_A};
    char urls[URLS_SIZE];

    (void)state;
    begin(ids, urls);
    struct intact_client *c = intact_client_new(urls, NULL);
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    close_server(0);
    open_server(1, ID_B);
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(servers[1].calls == 0 && servers[2].calls == 1, "by the third");
    intact_client_free(c);
    end_servers();
}

static void the_installation_can_be_stated(void **state)
{
    const char *const ids[SERVERS] = {ID_A, ID_B};
    char urls[URLS_SIZE];

    (void)state;
    begin(ids, urls);
    struct intact_client *c = intact_client_new(urls, NULL);
    intact_client_set_installation(c, "BBBBBBBB-0000-4000-8000-00000000000B");
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(servers[0].calls == 0 && servers[1].calls == 1, "by the one that was meant");
    close_server(1);
    CHECK(submit(c) == INTACT_REFUSED, "refused");
    CHECK(strstr(intact_client_error(c), ID_B " was expected"), "%s", intact_client_error(c));
    CHECK(servers[0].calls == 0, "it did nothing");
    intact_client_set_installation(c, "no-id");
    CHECK(submit(c) == INTACT_REFUSED && strstr(intact_client_error(c), "\"no-id\""), "%s",
          intact_client_error(c));
    intact_client_set_installation(c, "any");
    CHECK(submit(c) == INTACT_OK, "%s", intact_client_error(c));
    intact_client_free(c);
    (void)setenv("INTACT_INSTALLATION", ID_B, 1);
    c = intact_client_new(urls, NULL);
    CHECK(submit(c) == INTACT_REFUSED, "the environment says so");
    intact_client_free(c);
    (void)unsetenv("INTACT_INSTALLATION");
    end_servers();
}

static void count(const struct intact_reply *r, void *arg)
{
    size_t *by_status = arg;

    by_status[intact_reply_status(r)]++;
    if (intact_reply_status(r) == INTACT_REFUSED)
        names_both(intact_reply_error(r));
}

static void drive_five(struct intact_client *c, size_t *by_status)
{
    memset(by_status, 0, (INTACT_UNREACHABLE + 1) * sizeof *by_status);
    for (int i = 0; i < 5; i++)
        CHECK(intact_client_start_submit(c, "{\"workflow\":\"w\",\"input\":{}}", 0, count,
                                         by_status),
              "start");
    while (intact_client_drive(c) > 0) {
        struct pollfd p = {.fd = intact_client_fd(c), .events = POLLIN};
        (void)poll(&p, 1, intact_client_timeout_ms(c));
    }
}

static void calls_that_do_not_block_are_refused_too(void **state)
{
    const char *const ids[SERVERS] = {ID_A, ID_B};
    char urls[URLS_SIZE];
    size_t by_status[INTACT_UNREACHABLE + 1];

    (void)state;
    begin(ids, urls);
    struct intact_client *c = intact_client_new(urls, NULL);
    drive_five(c, by_status);
    CHECK(by_status[INTACT_REFUSED] == 5, "two installations");
    CHECK(servers[0].calls == 0 && servers[1].calls == 0, "nothing was done");
    close_server(1);
    drive_five(c, by_status);
    CHECK(by_status[INTACT_OK] == 5 && servers[0].calls == 5, "by the first");
    close_server(0);
    open_server(1, ID_B);
    drive_five(c, by_status);
    CHECK(by_status[INTACT_REFUSED] == 5 && servers[1].calls == 0, "not by the second");
    intact_client_free(c);
    end_servers();
}

/* ---- agents ---- */

struct run {
    struct intact_agent *agent;
    pthread_t thread;
    enum intact_agent_result result;
};

static void at_gate(struct intact_request *r, void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    while (!atomic_load(&gate))
        usleep(500);
    intact_answer(r, "true");
}

static void keep_log(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    pthread_mutex_lock(&log_lock);
    size_t len = strlen(log_text);
    (void)snprintf(log_text + len, sizeof log_text - len, "%s\n", line);
    pthread_mutex_unlock(&log_lock);
}

static bool is_logged(const char *text)
{
    pthread_mutex_lock(&log_lock);
    bool found = strstr(log_text, text);
    pthread_mutex_unlock(&log_lock);
    return found;
}

static void *run_agent(void *arg)
{
    struct run *r = arg;

    r->result = intact_agent_run(r->agent);
    return NULL;
}

static void start(struct run *r, const char *urls, bool discovery, const char *id)
{
    r->agent = intact_agent_new("a");
    intact_agent_on(r->agent, "x", INTACT_ANY, at_gate, NULL);
    intact_agent_set_server(r->agent, urls);
    intact_agent_set_discovery(r->agent, discovery);
    intact_agent_set_installation(r->agent, id);
    intact_agent_set_instance(r->agent, "a-1");
    intact_agent_set_stop_wait_ms(r->agent, 100000);
    intact_agent_set_log(r->agent, keep_log, NULL);
    pthread_create(&r->thread, NULL, run_agent, r);
}

static void end(struct run *r, enum intact_agent_result expected)
{
    intact_agent_stop_one(r->agent);
    pthread_join(r->thread, NULL);
    CHECK(r->result == expected, "ended %d: %s", (int)r->result, log_text);
    intact_agent_free(r->agent);
    end_servers();
}

/* The test's time limit ends a wait that never succeeds. */
#define WAIT_UNTIL(i, condition)                     \
    for (bool done = false; !done; usleep(1000)) {   \
        pthread_mutex_lock(&servers[i].fake.lock);   \
        done = (condition);                          \
        pthread_mutex_unlock(&servers[i].fake.lock); \
    }

static void an_agent_of_two_installations_ends(void **state)
{
    const char *const ids[SERVERS] = {ID_A, ID_B};
    char urls[URLS_SIZE];
    struct run r;

    (void)state;
    for (int discovery = 0; discovery < 2; discovery++) {
        begin(ids, urls);
        start(&r, urls, discovery, NULL);
        pthread_join(r.thread, NULL);
        CHECK(r.result == INTACT_AGENT_FAILED, "ended %d", (int)r.result);
        CHECK(is_logged("event=servers_of_two_installations"), "%s", log_text);
        names_both(log_text);
        CHECK(servers[0].calls == 0 && servers[1].calls == 0, "nothing was asked for");
        intact_agent_free(r.agent);
        end_servers();
    }
}

/* The second server starts after the first one, which gave the work, has stopped. */
static void results_stay_in_their_installation(void **state)
{
    const char *const ids[SERVERS] = {ID_A, "-" ID_B};
    char urls[URLS_SIZE];
    struct run r;

    (void)state;
    for (int discovery = 0; discovery < 2; discovery++) {
        begin(ids, urls);
        servers[0].to_give = true;
        start(&r, urls, discovery, NULL);
        WAIT_UNTIL(0, atomic_load(&runs) == 1);
        close_server(0);
        servers[1].to_give = true;
        open_server(1, ID_B);
        atomic_store(&gate, true);
        WAIT_UNTIL(1, servers[1].fake.misdirected > 0);
        WAIT_UNTIL(1, is_logged("event=another_installation"));
        open_server(0, ID_A);
        WAIT_UNTIL(0, servers[0].results == 1);
        CHECK(servers[1].calls == 0 && servers[1].results == 0, "nothing went there");
        CHECK(atomic_load(&runs) == 1, "nor came from there");
        names_both(log_text);
        end(&r, INTACT_AGENT_STOPPED);
    }
}

static void a_replaced_server_gets_no_results(void **state)
{
    const char *const ids[SERVERS] = {ID_A};
    char urls[URLS_SIZE];
    struct run r;

    (void)state;
    begin(ids, urls);
    servers[0].to_give = true;
    start(&r, urls, true, NULL);
    WAIT_UNTIL(0, atomic_load(&runs) == 1);
    close_server(0);
    unsigned calls = servers[0].calls;
    open_server(0, ID_B);
    atomic_store(&gate, true);
    WAIT_UNTIL(0, servers[0].fake.misdirected > 1);
    CHECK(servers[0].calls == calls && servers[0].results == 0, "it got nothing");
    CHECK(is_logged("restart this program"), "%s", log_text);
    close_server(0);
    open_server(0, ID_A); /* unchanged: the result is still held */
    WAIT_UNTIL(0, servers[0].results == 1);
    end(&r, INTACT_AGENT_STOPPED);
}

static void an_agent_works_for_the_stated_installation(void **state)
{
    const char *const ids[SERVERS] = {ID_A, ID_B};
    char urls[URLS_SIZE];
    struct run r;

    (void)state;
    begin(ids, urls);
    servers[0].to_give = servers[1].to_give = true;
    atomic_store(&gate, true);
    start(&r, urls, true, ID_B);
    WAIT_UNTIL(1, servers[1].results == 1);
    CHECK(servers[0].calls == 0, "the other one was not asked for work");
    end(&r, INTACT_AGENT_STOPPED);
    begin(ids, urls);
    start(&r, urls, true, "no-id");
    pthread_join(r.thread, NULL);
    CHECK(r.result == INTACT_AGENT_FAILED && is_logged("\"no-id\""), "%s", log_text);
    intact_agent_free(r.agent);
    end_servers();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_installations_are_noticed_while_both_are_there),
        cmocka_unit_test(a_task_is_not_begun_again_in_another_installation),
        cmocka_unit_test(a_server_that_was_replaced_is_another_one),
        cmocka_unit_test(others_of_the_same_installation_take_the_call),
        cmocka_unit_test(the_installation_can_be_stated),
        cmocka_unit_test(calls_that_do_not_block_are_refused_too),
        cmocka_unit_test(an_agent_of_two_installations_ends),
        cmocka_unit_test(results_stay_in_their_installation),
        cmocka_unit_test(a_replaced_server_gets_no_results),
        cmocka_unit_test(an_agent_works_for_the_stated_installation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
