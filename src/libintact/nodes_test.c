/* An agent and several nodes: which ones it finds and calls, and which get its places and
 * results. */

#include "base/test.h"

#include <intact/agent.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test_port.h"
#include "libintact/agent.h"
#include "libintact/fake.h"
#include "json/json.h"

enum { PLAYED_MAX = 4, TOLD_MAX = 4000, URL_SIZE = 60 };

/* A simulated node. The lock of `all` protects everything here. */
struct played {
    struct fake fake;
    char name[24], url[URL_SIZE]; /* as listed; "": no url */
    const char *roles;
    bool is_listed, is_alive, is_draining, is_up;
    bool is_gate;       /* it answers as a different node each time */
    const char *answer; /* to GET /v1/nodes, instead of the list */
    int status;         /* for the same; 0: 200 */
    unsigned to_give, given;
    unsigned asked;       /* calls for work */
    unsigned parked, max; /* parked calls, and what the latest one asks for */
    unsigned called_home, lists;
    char authorization[80];
};

static struct {
    pthread_mutex_t lock;
    struct played nodes[PLAYED_MAX];
    char told[TOLD_MAX][24]; /* tokens of received results */
    char teller[TOLD_MAX];   /* the index of the receiving node, as a digit */
    unsigned told_count;
    unsigned serial; /* of lists, for gates */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_uint runs, running, running_max;
static atomic_bool gate;
static char wrong_url[URL_SIZE];       /* set while no agent runs */
static atomic_bool is_wrong_connected; /* according to the log */

static void write_list(const struct played *me, struct buf *ret)
{
    const char *self = me->name;

    if (me->is_gate)
        self = all.nodes[1 + all.serial++ % 2].name;
    buf_fmt(ret, "{\"self\":\"%s\",\"nodes\":[", self);
    bool any = false;
    for (size_t i = 0; i < PLAYED_MAX; i++) {
        const struct played *c = &all.nodes[i];
        if (!c->is_listed)
            continue;
        buf_fmt(ret, "%s{\"node\":\"%s\",\"boot\":1,\"started_at\":\"x\",\"roles\":[%s],",
                any ? "," : "", c->name, c->roles);
        buf_fmt(ret, "\"alive\":%s,\"draining\":%s,\"url\":", c->is_alive ? "true" : "false",
                c->is_draining ? "true" : "false");
        buf_fmt(ret, c->url[0] ? "\"%s\"}" : "null%s}", c->url);
        any = true;
    }
    buf_str(ret, "]}");
}

static void take(size_t node, const struct json *results, struct buf *ret)
{
    json_key(ret, "outcomes");
    json_open(ret, '[');
    for (const struct json *j = results ? results->child : NULL; j; j = j->next) {
        struct slice token = json_get_text(j, "token");
        CHECK(all.told_count < TOLD_MAX, "too many results");
        snprintf(all.told[all.told_count], sizeof all.told[0], "%.*s", SLICE_ARG(token));
        all.teller[all.told_count++] = (char)('0' + node);
        json_open(ret, '{');
        json_member_text(ret, "token", token);
        json_member_text(ret, "status", SLICE("accepted"));
        json_close(ret, '}');
    }
    json_close(ret, ']');
}

static void give(struct played *c, int64_t max, struct buf *ret)
{
    json_key(ret, "requests");
    json_open(ret, '[');
    for (int64_t i = 0; i < max && c->to_give > 0; i++, c->to_give--) {
        json_open(ret, '{');
        buf_fmt(ret,
                "\"token\":\"%s-%u\",\"task\":\"t\",\"step\":\"s\",\"action\":\"x\","
                "\"direction\":\"forward\",\"attempt\":1,\"idempotency_key\":\"k\","
                "\"input\":1,\"time_left_ms\":600000",
                c->name, c->given++);
        json_close(ret, '}');
    }
    json_close(ret, ']');
}

/* The lock of a fake must be taken before that of `all`, so the latter is released here. */
static void pause_parked(struct fake *f)
{
    pthread_mutex_unlock(&all.lock);
    (void)fake_wait(f);
    pthread_mutex_lock(&all.lock);
}

static int work(struct played *c, const struct json *call, struct buf *ret)
{
    const struct json *results = json_get(call, "results");
    int64_t max = json_get_int(call, "max", 0);
    unsigned home = c->called_home;

    json_open(ret, '{');
    take((size_t)(c - all.nodes), results, ret);
    if (json_get_bool(call, "instead", false)) {
        c->called_home++;
        home++;
    }
    if (max > 0) {
        c->asked++;
        c->parked++;
        c->max = (unsigned)max;
        for (int waited = 0; !(results && results->child) && c->to_give == 0 && c->is_up
                             && home == c->called_home && waited < 600000;
             waited += 50)
            pause_parked(&c->fake);
        c->parked--;
    }
    give(c, max, ret);
    json_close(ret, '}');
    return c->is_up ? 200 : 0;
}

static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct played *c = CONTAINER_OF(f, struct played, fake);
    struct json *call = NULL;
    int status = 200;

    pthread_mutex_lock(&all.lock);
    if (strcmp(line, "GET /v1/nodes") == 0) {
        c->lists++;
        (void)snprintf(c->authorization, sizeof c->authorization, "%s", f->authorization);
        status = c->status ? c->status : 200;
        if (c->answer)
            buf_str(ret, c->answer);
        else
            write_list(c, ret);
    } else {
        CHECK(strcmp(line, "POST /v1/agents/a/work") == 0, "%s", line);
        enum err err = json_parse(&a, body, &call, NULL);
        CHECK(err == ERR_OK, "%.*s", SLICE_ARG(body));
        status = work(c, call, ret);
    }
    pthread_mutex_unlock(&all.lock);
    return status;
}

/* ---- all nodes ---- */

static void open_node(size_t i)
{
    struct played *c = &all.nodes[i];

    pthread_mutex_lock(&all.lock); /* others may be listing it */
    c->is_up = c->is_alive = true;
    pthread_mutex_unlock(&all.lock);
    fake_open(&c->fake);
}

static void close_node(size_t i) /* like a kill */
{
    pthread_mutex_lock(&all.lock);
    all.nodes[i].is_up = false;
    pthread_mutex_unlock(&all.lock);
    fake_close(&all.nodes[i].fake);
}

/* All are listed under their addresses; tests change the rest. */
static void begin_nodes(size_t count)
{
    memset(all.nodes, 0, sizeof all.nodes);
    all.told_count = all.serial = 0;
    atomic_store(&runs, 0);
    atomic_store(&running, 0);
    atomic_store(&running_max, 0);
    atomic_store(&gate, true);
    for (size_t i = 0; i < count; i++) {
        struct played *c = &all.nodes[i];
        c->fake.answer = answer;
        c->is_listed = true;
        c->roles = "\"scheduler\",\"supervisor\"";
        (void)snprintf(c->name, sizeof c->name, "n%zu", i + 1);
        open_node(i);
        fake_url(&c->fake, c->url);
    }
}

static void end_nodes(void)
{
    for (size_t i = 0; i < PLAYED_MAX; i++)
        if (all.nodes[i].is_up)
            close_node(i);
}

/* The expected condition; the test's time limit ends a wait that never succeeds. */
#define WAIT_UNTIL(condition)            \
    for (bool done = false; !done;) {    \
        pthread_mutex_lock(&all.lock);   \
        done = (condition);              \
        pthread_mutex_unlock(&all.lock); \
        usleep(1000);                    \
    }

#define CHANGE(statement)                \
    do {                                 \
        pthread_mutex_lock(&all.lock);   \
        statement;                       \
        pthread_mutex_unlock(&all.lock); \
    } while (0)

/* While the nodes still answer. */
#define CHECK_NOW(condition, ...)        \
    do {                                 \
        pthread_mutex_lock(&all.lock);   \
        bool holds = (condition);        \
        pthread_mutex_unlock(&all.lock); \
        CHECK(holds, __VA_ARGS__);       \
    } while (0)

/* Until that many more lists were asked of a node. */
static void wait_lists(size_t node, unsigned more)
{
    unsigned before;

    CHANGE(before = all.nodes[node].lists);
    WAIT_UNTIL(all.nodes[node].lists >= before + more);
}

static unsigned told_by(const char *name)
{
    unsigned count = 0;
    size_t len = strlen(name);

    for (unsigned i = 0; i < all.told_count; i++)
        count += strncmp(all.told[i], name, len) == 0 && all.told[i][len] == '-';
    return count;
}

static void every_result_came_once(void)
{
    for (unsigned i = 0; i < all.told_count; i++)
        for (unsigned j = 0; j < i; j++)
            CHECK(strcmp(all.told[i], all.told[j]) != 0, "%s came twice", all.told[i]);
}

/* ---- the agent ---- */

struct run {
    struct intact_agent *agent;
    pthread_t thread;
    enum intact_agent_result result;
};

static void at_gate(struct intact_request *r, void *arg)
{
    (void)arg;
    unsigned now = atomic_fetch_add(&running, 1) + 1;
    for (unsigned most = atomic_load(&running_max); now > most;)
        if (atomic_compare_exchange_weak(&running_max, &most, now))
            break;
    while (!atomic_load(&gate))
        usleep(500);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&runs, 1);
    intact_answer(r, "true");
}

static void no_log(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    const char *server = strstr(line, "event=connected server=");
    size_t len = strlen(wrong_url);
    if (server && len > 0 && strncmp(strstr(server, "http"), wrong_url, len) == 0)
        atomic_store(&is_wrong_connected, true);
    if (getenv("VERBOSE"))
        fprintf(stderr, "%d %s\n", (int)level, line);
}

static void *run_agent(void *arg)
{
    struct run *r = arg;

    r->result = intact_agent_run(r->agent);
    return NULL;
}

static struct intact_agent *new_agent(const char *urls, unsigned places)
{
    struct intact_agent *a = intact_agent_new("a");

    intact_agent_on(a, "x", INTACT_ANY, at_gate, NULL);
    intact_agent_set_server(a, urls);
    intact_agent_set_token(a, "secret");
    intact_agent_set_instance(a, "a-1");
    intact_agent_set_concurrency(a, places);
    intact_agent_set_stop_wait_ms(a, 100000);
    intact_agent_set_log(a, no_log, NULL);
    return a;
}

static void start(struct run *r, const char *urls, unsigned places)
{
    r->agent = new_agent(urls, places);
    pthread_create(&r->thread, NULL, run_agent, r);
}

static void end(struct run *r)
{
    intact_agent_stop_one(r->agent);
    pthread_join(r->thread, NULL);
    CHECK(r->result == INTACT_AGENT_STOPPED, "ended %d", (int)r->result);
    intact_agent_free(r->agent);
    end_nodes();
}

/* ---- tests ---- */

static void one_address_is_enough_to_find_all(void **state)
{
    struct run r;
    char seed[URL_SIZE];

    (void)state;
    begin_nodes(3);
    (void)snprintf(seed, sizeof seed, "http://localhost:%d/", all.nodes[0].fake.port);
    start(&r, seed, 6);
    for (size_t i = 0; i < 3; i++)
        WAIT_UNTIL(all.nodes[i].parked > 0);
    for (size_t i = 0; i < 3; i++)
        CHANGE(all.nodes[i].to_give = 40);
    WAIT_UNTIL(told_by("n1") == 40 && told_by("n2") == 40 && told_by("n3") == 40);
    WAIT_UNTIL(all.nodes[0].lists > 3);
    for (size_t i = 0; i < 3; i++)
        WAIT_UNTIL(all.nodes[i].parked == 1); /* the first one under one address only */
    for (size_t i = 0; i < 3; i++)
        CHECK_NOW(strcmp(all.nodes[i].authorization, "Bearer secret") == 0, "node %zu", i);
    for (unsigned i = 0; i < all.told_count; i++)
        CHECK_NOW(all.teller[i] == all.told[i][1] - 1, "%s was told to %c", all.told[i],
                  all.teller[i]);
    end(&r);
    every_result_came_once();
    CHECK(atomic_load(&running_max) <= 6, "%u at a time", atomic_load(&running_max));
}

static void a_node_may_fill_all_places(void **state)
{
    struct run r;

    (void)state;
    for (unsigned places = 1; places <= 16; places *= 4) {
        begin_nodes(3);
        atomic_store(&gate, false);
        start(&r, all.nodes[0].url, places);
        for (size_t i = 0; i < 3; i++)
            WAIT_UNTIL(all.nodes[i].parked > 0);
        CHANGE(all.nodes[1].to_give = 100);
        while (atomic_load(&running) < places)
            usleep(1000);
        atomic_store(&gate, true);
        WAIT_UNTIL(told_by("n2") == 100);
        end(&r);
        CHECK(atomic_load(&running_max) == places, "%u of %u", atomic_load(&running_max), places);
        every_result_came_once();
    }
}

/* The first node is silent: a timeout must lead to the next one. */
static void silence_is_looked_at_in_time(void **state)
{
    const struct peer_timing before = peer_timing;
    char seeds[2 * URL_SIZE];

    (void)state;
    begin_nodes(2);
    (void)snprintf(seeds, sizeof seeds, "%s,%s", all.nodes[0].url, all.nodes[1].url);
    struct intact_agent *a = new_agent(seeds, 1);
    peer_timing.idle_ms = 900;
    peer_timing.poll_ms = peer_timing.refresh_ms = 60000;
    while (intact_agent_drive(a)
           && (!a->peers[0]->used || !a->peers[1]->used
               || a->peers[0]->main.busy == a->peers[1]->main.busy))
        usleep(500);
    int ms = intact_agent_timeout_ms(a);
    CHECK(ms <= 900, "it is looked at in %d ms", ms);
    while (!a->peers[0]->main.busy || !a->peers[1]->main.busy) {
        struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};
        (void)poll(&p, 1, intact_agent_timeout_ms(a));
        (void)intact_agent_drive(a);
    }
    peer_timing = before;
    intact_agent_free(a);
    end_nodes();
}

/* A parked call must not ask for places that others have filled. */
static void a_call_that_asks_for_too_much_comes_home(void **state)
{
    struct run r;

    (void)state;
    begin_nodes(2);
    atomic_store(&gate, false);
    start(&r, all.nodes[0].url, 2);
    WAIT_UNTIL(all.nodes[0].parked > 0 && all.nodes[1].parked > 0);
    CHANGE(all.nodes[0].to_give = 2);
    while (atomic_load(&running) < 2)
        usleep(1000);
    WAIT_UNTIL(all.nodes[1].parked == 0);
    CHANGE(all.nodes[1].to_give = 3);
    usleep(50000); /* it may ask, but for no more than there is */
    CHECK_NOW(all.nodes[1].given == 0, "%u were given", all.nodes[1].given);
    atomic_store(&gate, true);
    WAIT_UNTIL(told_by("n2") == 3 && told_by("n1") == 2);
    end(&r);
    CHECK(atomic_load(&running_max) == 2, "%u at a time", atomic_load(&running_max));
}

static void an_answer_goes_to_another_node_when_its_own_is_gone(void **state)
{
    struct run r;

    (void)state;
    begin_nodes(3);
    atomic_store(&gate, false);
    start(&r, all.nodes[0].url, 4);
    for (size_t i = 0; i < 3; i++)
        WAIT_UNTIL(all.nodes[i].parked > 0);
    CHANGE(all.nodes[0].to_give = 2);
    CHANGE(all.nodes[2].to_give = 2);
    while (atomic_load(&running) < 4)
        usleep(1000);
    close_node(2);
    close_node(0); /* the seed */
    CHANGE(all.nodes[0].is_alive = all.nodes[2].is_alive = false);
    atomic_store(&gate, true);
    WAIT_UNTIL(all.told_count == 4);
    for (unsigned i = 0; i < 4; i++)
        CHECK_NOW(all.teller[i] == '1', "%s was told to %c", all.told[i], all.teller[i]);
    CHANGE(all.nodes[1].to_give = 20); /* and work continues */
    WAIT_UNTIL(told_by("n2") == 20);
    end(&r);
    every_result_came_once();
}

/* A hanging node silently accepts no results either. */
static void an_answer_goes_to_another_node_when_its_own_hangs(void **state)
{
    struct run r;

    (void)state;
    begin_nodes(2);
    atomic_store(&gate, false);
    start(&r, all.nodes[0].url, 2);
    WAIT_UNTIL(all.nodes[0].parked > 0 && all.nodes[1].parked > 0);
    CHANGE(all.nodes[1].to_give = 2);
    while (atomic_load(&running) < 2)
        usleep(1000);
    pthread_mutex_lock(&all.nodes[1].fake.lock); /* it reads nothing more */
    atomic_store(&gate, true);
    WAIT_UNTIL(told_by("n2") == 2);
    CHECK_NOW(all.teller[0] == '0' && all.teller[1] == '0', "%.2s", all.teller);
    pthread_mutex_unlock(&all.nodes[1].fake.lock);
    WAIT_UNTIL(all.nodes[1].parked > 0); /* it has recovered */
    end(&r);
}

static void nodes_come_and_go(void **state)
{
    struct run r;

    (void)state;
    begin_nodes(4);
    all.nodes[2].is_listed = false;
    all.nodes[3].roles = "\"supervisor\"";
    start(&r, all.nodes[0].url, 4);
    WAIT_UNTIL(all.nodes[0].parked > 0 && all.nodes[1].parked > 0);
    CHECK_NOW(all.nodes[2].lists == 0, "it is not known");
    CHANGE(all.nodes[2].is_listed = true; all.nodes[2].to_give = 10);
    WAIT_UNTIL(told_by("n3") == 10);
    CHANGE(all.nodes[1].is_draining = true);
    WAIT_UNTIL(all.nodes[1].parked == 0);
    CHANGE(all.nodes[0].is_alive = false); /* listed so: it has lost its lease */
    WAIT_UNTIL(all.nodes[0].parked == 0);
    CHANGE(all.nodes[0].is_alive = true; all.nodes[1].is_draining = false);
    CHANGE(all.nodes[0].to_give = all.nodes[1].to_give = 10);
    WAIT_UNTIL(told_by("n1") == 10 && told_by("n2") == 10);
    CHECK_NOW(all.nodes[3].asked == 0, "a supervisor alone has no work");
    end(&r);
    every_result_came_once();
}

static void all_may_be_gone_for_a_while(void **state)
{
    struct run r;
    char seeds[2 * URL_SIZE];

    (void)state;
    begin_nodes(3);
    atomic_store(&gate, false);
    (void)snprintf(seeds, sizeof seeds, "%s,%s", all.nodes[0].url, all.nodes[1].url);
    start(&r, seeds, 3);
    for (size_t i = 0; i < 3; i++)
        WAIT_UNTIL(all.nodes[i].parked > 0);
    CHANGE(all.nodes[2].to_give = 3);
    while (atomic_load(&running) < 3)
        usleep(1000);
    for (size_t i = 0; i < 3; i++)
        close_node(i);
    atomic_store(&gate, true);
    usleep(50000);
    open_node(1); /* one of them is enough to send the results */
    WAIT_UNTIL(told_by("n3") == 3);
    open_node(2);
    open_node(0);
    for (size_t i = 0; i < 3; i++)
        CHANGE(all.nodes[i].to_give = 10);
    WAIT_UNTIL(told_by("n1") == 10 && told_by("n2") == 10 && told_by("n3") == 13);
    end(&r);
    every_result_came_once();
}

/* One has the address of another, one an address without a server, one none. */
static void wrong_addresses_hurt_nobody_else(void **state)
{
    struct run r;
    char seed[URL_SIZE];

    (void)state;
    begin_nodes(4);
    (void)snprintf(seed, sizeof seed, "%s", all.nodes[0].url);
    (void)snprintf(all.nodes[1].url, URL_SIZE, "http://localhost:%d", all.nodes[3].fake.port);
    (void)snprintf(all.nodes[2].url, URL_SIZE, "http://127.0.0.1:%d", test_port());
    (void)snprintf(wrong_url, sizeof wrong_url, "%s", all.nodes[1].url);
    start(&r, seed, 4);
    CHANGE(all.nodes[0].to_give = all.nodes[3].to_give = 50);
    WAIT_UNTIL(told_by("n1") == 50 && told_by("n4") == 50);
    wait_lists(0, 4);
    WAIT_UNTIL(all.nodes[3].parked == 1);
    CHANGE(all.nodes[1].url[0] = 0);
    CHANGE(fake_url(&all.nodes[2].fake, all.nodes[2].url)); /* corrected */
    CHANGE(all.nodes[2].to_give = 5);
    WAIT_UNTIL(told_by("n3") == 5);
    end(&r);
    CHECK(all.nodes[1].asked == 0, "n2 has no address");
    CHECK(!atomic_load(&is_wrong_connected), "n2 is said to be at %s", wrong_url);
    wrong_url[0] = 0;
}

static void a_node_without_address_is_called_by_its_seed(void **state)
{
    struct run r;
    char seeds[3 * URL_SIZE];

    (void)state;
    begin_nodes(3);
    (void)snprintf(seeds, sizeof seeds, "%s,http://localhost:%d/,%s", all.nodes[0].url,
                   all.nodes[0].fake.port, all.nodes[1].url);
    for (size_t i = 0; i < 3; i++)
        all.nodes[i].url[0] = 0;
    start(&r, seeds, 4);
    CHANGE(all.nodes[0].to_give = all.nodes[1].to_give = 20);
    WAIT_UNTIL(told_by("n1") == 20 && told_by("n2") == 20);
    wait_lists(1, 3);
    WAIT_UNTIL(all.nodes[0].parked == 1 && all.nodes[1].parked == 1);
    CHECK_NOW(all.nodes[2].asked == 0, "nobody knows how to reach it");
    end(&r);
}

/* The last of them acts as a proxy before the others. */
static void a_gate_is_left_for_the_nodes_behind_it(void **state)
{
    struct run r;

    (void)state;
    begin_nodes(4);
    all.nodes[3].is_listed = false;
    all.nodes[3].is_gate = true;
    start(&r, all.nodes[3].url, 4);
    for (size_t i = 0; i < 3; i++)
        WAIT_UNTIL(all.nodes[i].parked == 1);
    WAIT_UNTIL(all.nodes[3].parked == 0);
    CHANGE(all.nodes[0].url[0] = all.nodes[1].url[0] = all.nodes[2].url[0] = 0);
    WAIT_UNTIL(all.nodes[3].parked == 1); /* there is no other way now */
    CHANGE(all.nodes[3].to_give = 5);
    WAIT_UNTIL(told_by("n4") == 5);
    end(&r);
}

static void whoever_does_not_say_who_he_is_is_called_as_he_is(void **state)
{
    static const struct {
        int status;
        const char *answer;
    } cases[] = {{404, "{}"},
                 {403, "{\"title\":\"no\"}"},
                 {500, ""},
                 {200, "<html>"},
                 {200, "[]"},
                 {200, "{}"},
                 {200, "{\"nodes\":[]}"},
                 {200, "{\"self\":{},\"nodes\":[{},3,{\"node\":[]},{\"url\":\"http://x\"}]}"},
                 {200, "{\"self\":\"n1\",\"nodes\":{\"node\":\"n1\"}}"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct run r;
        char seeds[2 * URL_SIZE];
        begin_nodes(2);
        (void)snprintf(seeds, sizeof seeds, "%s,%s", all.nodes[0].url, all.nodes[1].url);
        for (size_t c = 0; c < 2; c++) {
            all.nodes[c].status = cases[i].status;
            all.nodes[c].answer = cases[i].answer;
            all.nodes[c].to_give = 5;
        }
        if (i == COUNT_OF(cases) - 1)
            all.nodes[1].answer = NULL;
        start(&r, seeds, 2);
        WAIT_UNTIL(told_by("n1") == 5 && told_by("n2") == 5);
        end(&r);
    }
}

static void without_discovery_nobody_is_asked_for_others(void **state)
{
    struct run r = {.agent = NULL};
    char seeds[2 * URL_SIZE];

    (void)state;
    begin_nodes(3);
    (void)snprintf(seeds, sizeof seeds, "%s,%s", all.nodes[0].url, all.nodes[1].url);
    r.agent = new_agent(seeds, 2);
    intact_agent_set_discovery(r.agent, false);
    pthread_create(&r.thread, NULL, run_agent, &r);
    CHANGE(all.nodes[0].to_give = all.nodes[1].to_give = 30);
    WAIT_UNTIL(told_by("n1") == 30 && told_by("n2") == 30);
    close_node(0);
    CHANGE(all.nodes[1].to_give = 30);
    WAIT_UNTIL(told_by("n2") == 60);
    open_node(0);
    CHANGE(all.nodes[0].to_give = 30);
    WAIT_UNTIL(told_by("n1") == 60);
    end(&r);
    for (size_t i = 0; i < 2; i++)
        CHECK_NOW(all.nodes[i].lists == 1, "node %zu was asked once, where it belongs", i);
    CHECK_NOW(all.nodes[2].asked == 0 && all.nodes[2].lists == 0, "it was not given");
}

static void write_long_list(int self, int nobody, struct buf *ret)
{
    buf_fmt(ret, "{\"self\":\"n%d\",\"nodes\":[", self);
    for (int i = 0; i < 100; i++)
        buf_fmt(ret, "{\"node\":\"m%d\",\"url\":\"http://127.0.0.%d:%d\"},", i, i + 2, nobody);
    buf_fmt(ret, "{\"node\":\"n1\",\"url\":\"%s\"},{\"node\":\"n2\",\"url\":\"%s\"}]}",
            all.nodes[0].url, all.nodes[1].url);
}

/* A hundred nodes, most of them unreachable. */
static void a_long_list_is_no_burden(void **state)
{
    CLEANUP(buf_fini) struct buf one = {0};
    CLEANUP(buf_fini) struct buf two = {0};
    struct run r;
    int nobody = test_port();

    (void)state;
    begin_nodes(2);
    write_long_list(1, nobody, &one);
    write_long_list(2, nobody, &two);
    all.nodes[0].answer = one.ptr;
    all.nodes[1].answer = two.ptr;
    start(&r, all.nodes[0].url, 4);
    CHANGE(all.nodes[0].to_give = all.nodes[1].to_give = 100);
    WAIT_UNTIL(told_by("n1") == 100 && told_by("n2") == 100);
    end(&r);
}

static void hear(struct intact_agent *a, const char *text)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json *list = NULL;
    enum err err = json_parse(&arena, slice_of(text), &list, NULL);

    CHECK(err == ERR_OK, "%s", text);
    nodes_answered(a->peers[0], list);
}

/* The token is sent where a list says, but not in clear text if the list came by TLS. */
static void which_addresses_are_called(void **state)
{
    static const struct {
        const char *seed, *url;
        bool is_called;
    } cases[] = {
        {"http://s:1", "http://x:1", true},       {"http://s:1", "https://x:1/", true},
        {"https://s:1", "https://x:1", true},     {"https://s:1", "http://x:1", false},
        {"http://s:1", "ftp://x:1", false},       {"http://s:1", "http://u@x:1", false},
        {"http://s:1", "http://x:1/path", false}, {"http://s:1", "http://x:1?q", false},
        {"http://s:1", "http://x:100000", false}, {"http://s:1", "x:1", false},
        {"http://s:1", "http://[::1]:1", true},   {"http://s:1", "", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[300];
        struct intact_agent *a = new_agent(cases[i].seed, 1);
        a->reactor.multi = curl_multi_init();
        bool ok = nodes_open(a);
        CHECK(ok, "%s", cases[i].seed);
        (void)snprintf(text, sizeof text,
                       "{\"self\":\"n1\",\"nodes\":[{\"node\":\"n1\"},{\"node\":\"n2\","
                       "\"url\":\"%s\"}]}",
                       cases[i].url);
        hear(a, text);
        CHECK((a->peer_count == 2) == cases[i].is_called, "%s of %s", cases[i].url, cases[i].seed);
        nodes_close(a);
        curl_multi_cleanup(a->reactor.multi);
        a->reactor.multi = NULL;
        intact_agent_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_is_enough_to_find_all),
        cmocka_unit_test(a_node_may_fill_all_places),
        cmocka_unit_test(silence_is_looked_at_in_time),
        cmocka_unit_test(a_call_that_asks_for_too_much_comes_home),
        cmocka_unit_test(an_answer_goes_to_another_node_when_its_own_is_gone),
        cmocka_unit_test(an_answer_goes_to_another_node_when_its_own_hangs),
        cmocka_unit_test(nodes_come_and_go),
        cmocka_unit_test(all_may_be_gone_for_a_while),
        cmocka_unit_test(wrong_addresses_hurt_nobody_else),
        cmocka_unit_test(a_node_without_address_is_called_by_its_seed),
        cmocka_unit_test(a_gate_is_left_for_the_nodes_behind_it),
        cmocka_unit_test(whoever_does_not_say_who_he_is_is_called_as_he_is),
        cmocka_unit_test(without_discovery_nobody_is_asked_for_others),
        cmocka_unit_test(a_long_list_is_no_burden),
        cmocka_unit_test(which_addresses_are_called),
    };

    peer_timing.retry_ms = 5;
    peer_timing.retry_max_ms = 50;
    peer_timing.refused_ms = 20;
    peer_timing.refused_max_ms = 100;
    peer_timing.poll_ms = 20;
    peer_timing.hand_in_ms = 200;
    peer_timing.refresh_ms = 200;
    peer_timing.lost_ms = 50;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
