/* Crowds of clients: unauthenticated ones, very many names, readers, and bodies that need more
 * memory than their size suggests. Nothing here depends on time: bytes, memory, and the order of
 * answers. */

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit.h"

static struct node node;

static void open_door(const char *const *flags)
{
    node_init(&node);
    node_start(&node, flags);
}

static void close_door(void)
{
    node_stop(&node);
    node_fini(&node);
}

static void served(void)
{
    REPLY r = {0};

    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
}

/* ---- strangers ---- */

/* Says only the head of a request with a large body, and hears what comes of it. */
static void say_head(const char *path, const char *authorization, struct buf *ret)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fd = dial(&node);

    buf_fmt(&b,
            "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            "%sContent-Length: 4000000\r\n\r\n{",
            path, authorization);
    say(fd, buf_view(&b));
    hear_all(fd, ret);
}

/* With the head is said who asks, and what for: nobody's body is waited for, or kept. */
static void strangers_are_answered_before_their_bodies(void **state)
{
    static const struct {
        const char *path, *authorization, *type;
        int status;
    } cases[] = {
        {"/v1/tasks", "", "unauthenticated", 401},
        {"/v1/tasks", "Authorization: Bearer intact_x\r\n", "unauthenticated", 401},
        {"/v1/agents/a/work", "", "unauthenticated", 401},
        {"/v1/validate", "", "unauthenticated", 401},
        {"/no/such/thing", "", "unauthenticated", 401},
        {"/v1/attempts/x", "", "unknown-attempt", 404},
        {"/v1/attempts/x~0~f1~AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA", "", "unknown-attempt", 404},
        {"/v1/attempts/x~0~f1~AAAAAAAAAAAAAAAAAAAAAA", "", "too-big", 413},
        {"/v1/tasks", "Origin: http://evil.example\r\n", "foreign", 403},
    };
    (void)state;

    open_door(FLAGS("--log", "warn", "--limit", "body-time=2s"));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf got = {0};
        say_head(cases[i].path, cases[i].authorization, &got);
        CHECK(status_heard(&got, 0) == cases[i].status, "%s: %s", cases[i].path, got.ptr);
        CHECK(strstr(got.ptr, cases[i].type), "%s: %s", cases[i].path, got.ptr);
        CHECK(status_heard(&got, 1) == 0, "%s: two answers: %s", cases[i].path, got.ptr);
    }
    CLEANUP(buf_fini) struct buf late = {0};
    CLEANUP(buf_fini) struct buf mine = {0};
    buf_slice(&mine, authorization(&node));
    say_head("/v1/tasks", mine.ptr, &late); /* the body of one who may is waited for */
    CHECK(status_heard(&late, 0) == 408, "%s", late.ptr);
    served();
    close_door();
}

/* The routes that anybody may use read no body: none is kept, whatever its length. */
static void who_is_asked_by_anybody_keeps_no_body(void **state)
{
    static const char *const paths[] = {"/healthz", "/readyz", "/healthz?verbose=1"};
    (void)state;

    open_door(FLAGS("--log", "warn", "--limit", "body-time=2s"));
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(buf_fini) struct buf got = {0};
        int fd = dial(&node);
        buf_fmt(&b, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000000\r\n\r\n{",
                paths[i]);
        say(fd, buf_view(&b));
        hear_all(fd, &got);
        CHECK(status_heard(&got, 0) == 200, "%s: %s", paths[i], got.ptr);
        CHECK(strstr(got.ptr, "Connection: close"), "%s: %s", paths[i], got.ptr);
        CHECK(status_heard(&got, 1) == 0, "%s: two answers: %s", paths[i], got.ptr);
    }
    served();
    close_door();
}

static int64_t metric(const char *name)
{
    REPLY r = {0};
    char line[80];

    get(&node, &r, "/metrics");
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = r.raw ? strstr(r.raw, line) : NULL;
    CHECK(at, "there is no %s", name);
    return strtoll(at + strlen(line), NULL, 10);
}

/* ---- places ---- */

static void names_are_bounded(void **state)
{
    static const char *const kept[] = {"one", "two"};
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--limit", "instances=2", "--limit", "agents=2"));
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"%s\"}", kept[i]);
        EXPECT(&r, 200);
    }
    post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"three\"}");
    expect_problem(&r, 503, "busy");
    CHECK(strstr(text_at(&r, "detail"), "instances"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"two\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/agents/b/work", "{\"instance\": \"one\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/agents/c/work", "{\"instance\": \"one\"}");
    expect_problem(&r, 503, "busy");
    CHECK(strstr(text_at(&r, "detail"), "too many agents"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/agents/c");
    EXPECT(&r, 404);
    close_door();
}

/* Settings are stored for good. They keep no agent out, and have a bound of their own. */
static void settings_keep_no_agent_out(void **state)
{
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--limit", "agents=2"));
    for (int i = 0; i < 2; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "/v1/agents/set-%d", i);
        put(&node, &r, path, "{\"limits\": {\"concurrency\": 1}}");
        EXPECT(&r, 200);
    }
    post(&node, &r, "/v1/agents/new/work", "{\"instance\": \"one\"}");
    EXPECT(&r, 200);
    put(&node, &r, "/v1/agents/set-2", "{\"limits\": {\"concurrency\": 1}}");
    expect_problem(&r, 503, "busy");
    put(&node, &r, "/v1/agents/set-1", "{\"limits\": {\"concurrency\": 2}}");
    EXPECT(&r, 200);
    close_door();
}

/* However many want to see something, agents find a place. */
static void readers_leave_places_to_agents(void **state)
{
    enum { PLACES = 8, READERS = 6 };
    REPLY r = {0};
    int waiting[PLACES];
    (void)state;

    open_door(FLAGS("--limit", "waiting=8", "--drain", "100ms"));
    for (int i = 0; i < READERS; i++) {
        waiting[i] = ask(&node, "GET", "/v1/events", NULL, SLICE_NONE);
        struct pollfd p = {.fd = waiting[i], .events = POLLIN};
        CHECK(poll(&p, 1, PATIENCE_MS) == 1, "stream %d does not begin", i);
    }
    get(&node, &r, "/v1/events");
    expect_problem(&r, 503, "busy");
    get(&node, &r, "/v1/tasks/none?wait=1m");
    expect_problem(&r, 503, "busy");
    for (int i = READERS; i < PLACES; i++)
        waiting[i] = ask(&node, "POST", "/v1/agents/a/work", "application/json",
                         SLICE("{\"instance\": \"i\", \"wait\": \"5m\"}"));
    wait_for_parked(&node, PLACES - READERS);
    (void)close(waiting[0]); /* its place is free for another reader, when that is noticed */
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        get(&node, &r, "/v1/tasks/none?wait=1ms");
        CHECK(steady_ms() < until, "its place is not free");
    } while (r.status == 503);
    EXPECT(&r, 404);
    for (int i = 1; i < PLACES; i++)
        (void)close(waiting[i]);
    close_door();
}

/* Waits until it is answered, or begins to be. True: it was turned away. */
static bool is_turned_away(int fd)
{
    char head[13] = "";
    struct pollfd p = {.fd = fd, .events = POLLIN};

    CHECK(poll(&p, 1, PATIENCE_MS) == 1, "no answer");
    CHECK(recv(fd, head, 12, MSG_PEEK) == 12, "no status");
    return strcmp(head, "HTTP/1.1 503") == 0;
}

static int answered(const int *fds, int count)
{
    int n = 0;

    for (int i = 0; i < count; i++) {
        struct pollfd p = {.fd = fds[i], .events = POLLIN};
        n += poll(&p, 1, 0) == 1;
    }
    return n;
}

/* However many one token opens: another one finds a place, whether it came before or not. */
static void a_token_leaves_places_to_others(void **state)
{
    enum { MANY = 41 };
    char one[64], two[64], a[64], b[64];
    int fds[MANY];
    bool away = false;
    (void)state;

    open_door(FLAGS("--limit", "waiting=40", "--drain", "100ms"));
    make_token(&node, "one", "\"read\"", NULL, one);
    make_token(&node, "two", "\"read\"", NULL, two);
    make_token(&node, "a", "\"agent:a\"", NULL, a);
    make_token(&node, "b", "\"agent:b\"", NULL, b);
    const struct node reader = as(&node, one);
    const struct node other = as(&node, two);
    const struct node agent = as(&node, a);
    const struct node another = as(&node, b);
    for (int i = 0; i < MANY; i++) {
        fds[i] = ask(&reader, "GET", "/v1/events", NULL, SLICE_NONE);
        away |= is_turned_away(fds[i]);
    }
    CHECK(away, "it had all places");
    int stream = ask(&other, "GET", "/v1/events", NULL, SLICE_NONE);
    CHECK(!is_turned_away(stream), "the other one finds none");
    (void)close(stream);
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    WAIT_FOR(metric("intact_events_listeners{of=\"all\"}") == 0, "all streams have ended");
    for (int i = 0; i < MANY; i++)
        fds[i] = ask(&agent, "POST", "/v1/agents/a/work", "application/json",
                     SLICE("{\"instance\": \"i\", \"wait\": \"5m\"}"));
    /* A call that is being turned away has a place until its answer has left. */
    WAIT_FOR(metric("intact_parked_calls") + answered(fds, MANY) == MANY, "each has its answer");
    int call = ask(&another, "POST", "/v1/agents/b/work", "application/json",
                   SLICE("{\"instance\": \"i\", \"wait\": \"1ms\"}"));
    CHECK(!is_turned_away(call), "the other agent finds none");
    (void)close(call);
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    close_door();
}

/* Neither for want of names nor of places. */
static void results_are_never_turned_away(void **state)
{
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--limit", "instances=1", "--limit", "agents=1"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"a\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    submit(&node, "one", "t");
    fetch(&node, &r, "a", "i");
    char *token = token_in(&r, 0);
    post(&node, &r, "/v1/agents/a/work",
         "{\"instance\": \"another\", \"max\": 1, \"wait\": \"5m\", \"results\": "
         "[{\"token\": \"made-up\", \"output\": 1}]}");
    expect_problem(&r, 503, "busy");
    hand_in(&node, "a", "another", token, "\"output\": 1", "accepted");
    wait_for_state(&node, "t", "processed");
    free(token);
    close_door();
}

/* ---- bodies ---- */

/* What a sanitizer keeps beside each byte of the server. */
#if defined(__SANITIZE_THREAD__)
enum { SHADOW = 4 };
#else
enum { SHADOW = 1 };
#endif

/* The most that the server ever had resident. */
static int64_t peak_kb(void)
{
    char path[40];
    char line[200];
    int64_t kb = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)node.pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtoll(line + 6, NULL, 10);
    (void)fclose(f);
    CHECK(kb > 0, "no VmHWM");
    return kb;
}

/* So that nobody waits for them, whatever they say and whatever becomes of them. */
static void large_bodies_are_parsed_beside_the_loop(void **state)
{
    static const struct {
        const char *path, *type, *begin, *end;
        int64_t parts;
        int status;
    } cases[] = {
        {"/v1/tasks", "application/json", "{\"workflow\": \"one\", \"input\": [0", "]}", 2, 201},
        {"/v1/tasks", "application/json", "{\"workflow\": \"none\", \"input\": [0", "]}", 1, 422},
        {"/v1/tasks", "application/json", "{\"workflow\": \"one\", \"input\": [0", "],}", 1, 400},
        {"/v1/tasks", "application/x-ndjson", "{\"workflow\": \"one\", \"input\": [0", "]}\n", 2,
         200},
        {"/v1/agents/a/work", "application/json", "{\"instance\": \"i\", \"holding\": [0", "]}", 1,
         422},
        {"/v1/agents/a/heartbeats", "application/json", "{\"instance\": \"i\", \"beats\": [0", "]}",
         1, 422},
        {"/v1/tasks/t/correct", "application/json", "{\"input\": [0", "]}", 1, 422},
        {"/v1/attempts/x~0~f1~AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA", "application/json",
         "{\"output\": [0", "]}", 0, 404},
    };
    (void)state;

    open_door(FLAGS("--log", "warn"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        CLEANUP(buf_fini) struct buf body = {0};
        REPLY r = {0};
        int64_t before = metric("intact_aside_total{of=\"bodies\"}");
        buf_str(&body, cases[k].begin);
        for (int i = 0; i < 100000; i++)
            buf_add(&body, ",0", 2);
        buf_str(&body, cases[k].end);
        send_as(&node, &r, "POST", cases[k].path, cases[k].type, buf_view(&body));
        CHECK(r.status == cases[k].status, "%zu: %d %.*s", k, r.status, SLICE_ARG(r.body));
        int64_t parts = metric("intact_aside_total{of=\"bodies\"}") - before;
        CHECK(parts == cases[k].parts, "%zu: %" PRId64 " parts", k, parts);
    }
    submit(&node, "one", "small");
    CHECK(metric("intact_aside_total{of=\"bodies\"}") == 9, "a small one, too");
    CHECK(metric("intact_aside_waiting{of=\"bodies\"}") == 0, "something is left");
    close_door();
}

/* "[0,0,...]": many values in a short text. */
static void write_zeros(struct buf *b, size_t count)
{
    buf_byte(b, '[');
    for (size_t i = 0; i < count; i++)
        buf_str(b, i ? ",0" : "0");
    buf_byte(b, ']');
}

/* Announces a large body, and sends none of it. */
static int announce(const char *path)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fd = dial(&node);

    buf_fmt(&b, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n", path);
    buf_slice(&b, authorization(&node));
    buf_str(&b, "Content-Length: 2000000\r\n\r\n");
    say(fd, buf_view(&b));
    return fd;
}

/* A body that there will be no place for is refused by its head; one that is announced has its
 * place until its client goes. */
static void a_body_without_a_place_does_not_come(void **state)
{
    static const char *const paths[] = {"/v1/tasks", "/v1/agents/a/work", "/v1/workflows",
                                        "/v1/validate"};
    CLEANUP(buf_fini) struct buf body = {0};
    (void)state;

    write_zeros(&body, 100000);
    open_door(FLAGS("--log", "warn", "--limit", "memory=8MiB")); /* of 16 MiB a token has 4 */
    for (size_t k = 0; k < COUNT_OF(paths); k++) {
        REPLY refused = {0};
        REPLY r = {0};
        int first = announce(paths[k]);
        int second = announce(paths[k]);
        served();
        hear(announce(paths[k]), &refused);
        expect_problem(&refused, 503, "busy");
        send_as(&node, &r, "POST", paths[k], "application/json", buf_view(&body));
        expect_problem(&r, 503, "busy");
        (void)close(first);
        for (int i = 0; i < 1000 && r.status == 503; i++) {
            reply_fini(&r);
            send_as(&node, &r, "POST", paths[k], "application/json", buf_view(&body));
        }
        CHECK(r.status == 422 || r.status == 400, "%s: %d %.*s", paths[k], r.status,
              SLICE_ARG(r.body));
        (void)close(second);
    }
    close_door();
}

/* Many listen to one large task, and take nothing for a while: what there is no room for is told
 * later, and nobody is cut off. */
static void streams_of_a_large_task_find_room(void **state)
{
    enum { STREAMS = 6, SIZE = 12 << 20 };
    CLEANUP(buf_fini) struct buf body = {0};
    int fds[STREAMS];
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--limit", "body=16MiB", "--limit", "memory=32MiB"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    buf_str(&body, "{\"workflow\": \"one\", \"id\": \"large\", \"input\": \"");
    for (int i = 0; i < SIZE / 64; i++)
        buf_str(&body, "0123456789012345678901234567890123456789012345678901234567890123");
    buf_str(&body, "\"}");
    send_as(&node, &r, "POST", "/v1/tasks", "application/json", buf_view(&body));
    EXPECT(&r, 201);
    post(&node, &r, "/v1/tasks/large/cancel", "{\"reason\": \"test\"}");
    wait_for_state(&node, "large", "compensated");
    for (int i = 0; i < STREAMS; i++) {
        fds[i] = ask(&node, "GET", "/v1/tasks/large/events", NULL, SLICE_NONE);
        struct pollfd p = {.fd = fds[i], .events = POLLIN};
        CHECK(poll(&p, 1, PATIENCE_MS) == 1, "stream %d does not begin", i);
    }
    for (int i = 0; i < STREAMS; i++) {
        CLEANUP(buf_fini) struct buf got = {0};
        hear_all(fds[i], &got);
        CHECK(got.len > SIZE && strcmp(got.ptr + got.len - 5, "0\r\n\r\n") == 0,
              "stream %d was cut off after %zu bytes", i, got.len);
    }
    close_door();
}

/* What the limits allow is all that it takes, as hostile.md says, whatever the body holds. */
static void trees_count_as_memory(void **state)
{
    enum { NUMBERS = 16 << 20, FORMULA_KB = (128 + 400) << 10 };
    static const char *const paths[] = {"/v1/tasks", "/v1/agents/a/work"};
    static const char *const begins[] = {"{\"workflow\": \"one\", \"input\": [0",
                                         "{\"instance\": \"i\", \"holding\": [0"};
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--limit", "body=64MiB", "--limit", "memory=128MiB"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    for (size_t k = 0; k < COUNT_OF(paths); k++) {
        CLEANUP(buf_fini) struct buf body = {0};
        buf_str(&body, begins[k]);
        for (int i = 0; i < NUMBERS; i++)
            buf_add(&body, ",0", 2);
        buf_str(&body, "]}");
        send_as(&node, &r, "POST", paths[k], "application/json", buf_view(&body));
        expect_problem(&r, 413, "too-big");
    }
    CHECK(peak_kb() < SHADOW * FORMULA_KB, "%" PRId64 " kB", peak_kb());
    submit(&node, "one", "small");
    close_door();
}

/* A definition that takes long to read, without its last byte; answer it by finish_large. */
static int begin_large(const char *path, const char *type, size_t size, struct buf *ret)
{
    CLEANUP(buf_fini) struct buf head = {0};
    int fd = dial(&node);

    buf_str(ret, "intact: 1\nworkflow: large\nsteps: [0");
    while (ret->len < size - 1)
        buf_add(ret, ",0", 2);
    buf_str(ret, "]");
    buf_fmt(&head, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n", path, type);
    buf_slice(&head, authorization(&node));
    buf_fmt(&head, "Content-Length: %zu\r\nConnection: close\r\n\r\n", ret->len);
    say(fd, buf_view(&head));
    say(fd, (struct slice){ret->ptr, ret->len - 1});
    return fd;
}

/* While it is read others are answered: those who ask after it hear before it does. */
static void a_large_definition_holds_up_nobody(void **state)
{
    static const char *const paths[] = {"/v1/validate", "/v1/workflows"};
    (void)state;

    open_door(FLAGS("--log", "warn"));
    for (size_t k = 0; k < COUNT_OF(paths); k++) {
        CLEANUP(buf_fini) struct buf text = {0};
        REPLY r = {0};
        int fd = begin_large(paths[k], "application/yaml", 2000000, &text);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        served(); /* it has all but the last byte by now, or reads it soon */
        say(fd, SLICE("]"));
        for (int i = 0; i < 3; i++)
            served();
        CHECK(poll(&p, 1, 0) == 0, "%s was answered before those who asked later", paths[k]);
        hear(fd, &r);
        expect_problem(&r, 422, "bad-definition");
    }
    close_door();
}

static void a_definition_has_a_size(void **state)
{
    CLEANUP(buf_fini) struct buf text = {0};
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--log", "warn"));
    int fd = begin_large("/v1/validate", "application/yaml", (2 << 20) + 2, &text);
    say(fd, SLICE("]"));
    hear(fd, &r);
    expect_problem(&r, 413, "too-big");
    close_door();
}

static void post_zeros(struct reply *r, const char *path, const char *name, size_t count)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text,
            "{\"intact\": 1, \"workflow\": \"%s\", \"steps\": [{\"name\": \"s\", \"agent\": \"a\", "
            "\"action\": \"x\", \"undo\": \"none\", \"input\": ",
            name);
    write_zeros(&text, count);
    buf_str(&text, "}]}");
    send_as(&node, r, "POST", path, "application/json", buf_view(&text));
}

/* Definitions stay in memory, and are read again at each start. */
static void what_definitions_take_is_bounded(void **state)
{
    enum { MANY = 120000, TOO_MANY = 1000000 }; /* some 11 MiB, and 90 MiB */
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--log", "warn", "--limit", "memory=8MiB")); /* 16 MiB for definitions */
    post_zeros(&r, "/v1/validate", "huge", TOO_MANY);
    expect_problem(&r, 413, "too-big");
    post_zeros(&r, "/v1/workflows", "first", MANY);
    EXPECT(&r, 201);
    post_zeros(&r, "/v1/workflows", "second", MANY);
    expect_problem(&r, 413, "too-big");
    CHECK(strstr(text_at(&r, "detail"), "the definitions"), "%.*s", SLICE_ARG(r.body));
    post_zeros(&r, "/v1/workflows", "first", MANY); /* it is there */
    EXPECT(&r, 200);
    close_door();
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_answered_before_their_bodies),
        cmocka_unit_test(who_is_asked_by_anybody_keeps_no_body),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(settings_keep_no_agent_out),
        cmocka_unit_test(readers_leave_places_to_agents),
        cmocka_unit_test(a_token_leaves_places_to_others),
        cmocka_unit_test(results_are_never_turned_away),
        cmocka_unit_test(large_bodies_are_parsed_beside_the_loop),
        cmocka_unit_test(a_body_without_a_place_does_not_come),
        cmocka_unit_test(streams_of_a_large_task_find_room),
        cmocka_unit_test(trees_count_as_memory),
        cmocka_unit_test(a_large_definition_holds_up_nobody),
        cmocka_unit_test(a_definition_has_a_size),
        cmocka_unit_test(what_definitions_take_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
