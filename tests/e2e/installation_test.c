/*
 * The installation's id: in every answer, after restarts, from backups and nodes. And two servers
 * of different installations that the command line is given as if they were one.
 */

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <intact/client.h>

#include "kit.h"

static struct node node;
static const char *program;
static char id[40];

static void read_id(const struct node *n, char ret[40])
{
    static const char name[] = "\r\nIntact-Installation: ";
    REPLY r = {0};

    get(n, &r, "/healthz");
    const char *at = strstr(r.raw, name);
    CHECK(at, "%s", r.raw);
    (void)snprintf(ret, 40, "%.36s", at + sizeof name - 1);
    CHECK(strspn(ret, "0123456789abcdef-") == 36, "%s", ret);
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "warn"));
    read_id(&node, id);
    return 0;
}

/* ---- answers ---- */

static void says(const char *request, const char *expected)
{
    CLEANUP(buf_fini) struct buf head = {0};
    REPLY r = {0};

    int fd = dial(&node);
    say(fd, slice_of(request));
    hear(fd, &r);
    buf_fmt(&head, "Intact-Installation: %s", id);
    CHECK(strncmp(r.raw, "HTTP/1.1 ", 9) == 0 && strncmp(r.raw + 9, expected, 3) == 0, "%s: %s",
          expected, r.raw);
    CHECK(strstr(r.raw, head.ptr), "%s: %s", request, r.raw);
}

static void every_answer_says_whose_it_is(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice bearer = authorization(&node);
    static const struct {
        const char *line, *fields, *status;
    } cases[] = {
        {"GET /v1/stats", "", "200"},
        {"HEAD /v1/stats", "Connection: close\r\n", "200"},
        {"GET /v1/nodes", "", "200"},
        {"GET /metrics", "", "200"},
        {"GET /v1/tasks/none", "", "404"},
        {"GET /none", "", "404"},
        {"DELETE /v1/tasks", "", "405"},
        {"GET /v1/tasks?limit=x", "", "422"},
        {"POST /v1/tasks", "Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{", "400"},
        {"POST /v1/tasks", "Content-Type: application/x-ndjson\r\nContent-Length: 3\r\n\r\n{}\n",
         "200"},
        {"POST /v1/tasks", "Transfer-Encoding: gzip\r\n", "501"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&b);
        buf_fmt(&b, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%.*s%s\r\n", cases[i].line,
                SLICE_ARG(bearer), cases[i].fields);
        says(b.ptr, cases[i].status);
    }
    says("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200");
    says("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200");
    says("GET /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "401");
    says("GET /v1/tasks HTTP/1.1\r\nHost: elsewhere\r\n\r\n", "403");
    says("no http\r\n\r\n", "400");
    says("GET /v1/tasks HTTP/3.0\r\n\r\n", "505");
    buf_clear(&b);
    buf_str(&b, "GET /");
    for (int i = 0; i < 9000; i++)
        buf_byte(&b, 'x');
    buf_str(&b, " HTTP/1.1\r\n\r\n");
    says(b.ptr, "414");
}

static void a_stream_says_it_too(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char head[600];
    size_t len = 0;
    (void)state;

    buf_fmt(&b, "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n%.*s\r\n",
            SLICE_ARG(authorization(&node)));
    int fd = dial(&node);
    say(fd, buf_view(&b));
    do {
        ssize_t n = read(fd, head + len, sizeof head - 1 - len);
        CHECK(n > 0, "%zd", n);
        len += (size_t)n;
        head[len] = 0;
    } while (!strstr(head, "\r\n\r\n"));
    CHECK(strstr(head, "text/event-stream") && strstr(head, id), "%s", head);
    record_heard(fd, (struct slice){head, len});
    (void)close(fd);
}

static void submit_for(struct reply *ret, const char *installation)
{
    static const char body[] = "{\"workflow\": \"w\", \"id\": \"x\", \"input\": {}}";
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n%.*sIntact-Installation: %s\r\n"
            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            SLICE_ARG(authorization(&node)), installation, strlen(body), body);
    int fd = dial(&node);
    say(fd, buf_view(&b));
    hear(fd, ret);
}

static void what_is_meant_for_another_one_is_refused(void **state)
{
    static const char *const others[] = {"00000000-0000-4000-8000-000000000000", "", "x"};
    REPLY r = {0};
    char capitals[40];
    (void)state;

    (void)define(&node, "w",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"g\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        submit_for(&r, others[i]);
        expect_problem(&r, 421, "another-installation");
        CHECK(strstr(text_at(&r, "detail"), id) && strstr(text_at(&r, "detail"), others[i]), "%s",
              text_at(&r, "detail"));
        CHECK(head_has(&r, id), "%s", r.raw);
    }
    get(&node, &r, "/v1/tasks/x");
    EXPECT(&r, 404);
    for (size_t i = 0; i < sizeof capitals; i++)
        capitals[i] = (char)(id[i] >= 'a' && id[i] <= 'f' ? id[i] - 32 : id[i]);
    submit_for(&r, capitals);
    EXPECT(&r, 201);
    submit_for(&r, id);
    EXPECT(&r, 200);
    get(&node, &r, "/v1/nodes");
    EXPECT_TEXT(&r, "installation", id);
}

static void it_stays_the_same_after_a_kill(void **state)
{
    char now[40];
    (void)state;

    node_kill(&node);
    node_start(&node, FLAGS("--log", "warn"));
    read_id(&node, now);
    CHECK(strcmp(id, now) == 0, "%s, then %s", id, now);
}

/* ---- the command line ---- */

/* What it says, to both outputs, is in `said`. */
static char said[4000];

PRINTF(2, 3)
static int intact(const char *environment, const char *fmt, ...)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char arguments[1000];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(arguments, sizeof arguments, fmt, ap);
    va_end(ap);
    buf_fmt(&b, "XDG_STATE_HOME=%s/state INTACT_TOKEN=%s %s %s %s 2>&1", node.home, node.token,
            environment, program, arguments);
    FILE *f = popen(b.ptr, "r"); /* NOLINT: words of our own */
    CHECK(f, "%s", b.ptr);
    said[fread(said, 1, sizeof said - 1, f)] = 0;
    return WEXITSTATUS(pclose(f));
}

/* A store of the same token, so that nothing but the installation differs. */
static void open_other(struct node *other, char other_id[40])
{
    char command[400];

    node_init(other);
    node_start(other, FLAGS("--log", "warn"));
    read_id(other, other_id);
    node_stop(other);
    (void)snprintf(command, sizeof command,
                   "sqlite3 %s/intact.db 'DELETE FROM token' && sqlite3 %s/intact.db "
                   "\"ATTACH '%s/intact.db' AS o; INSERT INTO token SELECT * FROM o.token\"",
                   other->data, other->data, node.data);
    CHECK(system(command) == 0, "%s", command); /* NOLINT: words of our own */
    node_start(other, FLAGS("--log", "warn"));
    memcpy(other->token, node.token, sizeof other->token);
    (void)define(other, "w",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"g\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
}

static bool has_task(const struct node *n, const char *task)
{
    REPLY r = {0};

    get(n, &r, "/v1/tasks/%s", task);
    return r.status == 200;
}

/* Nothing is remembered any more. */
static void forget(void)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/state/intact/installations", node.home);
    (void)unlink(path);
}

static void a_list_is_of_one_installation(void **state)
{
    struct node other;
    char other_id[40];
    char list[200];
    (void)state;

    if (store_is_postgres())
        skip(); /* its nodes share one token already, and one installation */
    open_other(&other, other_id);
    (void)snprintf(list, sizeof list, "INTACT_SERVER=http://127.0.0.1:%d,http://127.0.0.1:%d",
                   node.port, other.port);
    for (int i = 0; i < 2; i++) { /* both are there, and then what is remembered of the first */
        int end = intact(list, "submit w --id both%d", i);
        CHECK(i == 1 || (end == 1 && strstr(said, id) && strstr(said, other_id)), "%s", said);
        CHECK(i == 0 || end == 0, "%s", said);
        CHECK(!has_task(&other, "both0") && !has_task(&other, "both1"), "not at the other one");
    }
    node_kill(&node);
    CHECK(intact(list, "submit w --id x") == 1, "%s", said);
    CHECK(strstr(said, id) && strstr(said, other_id), "both ids: %s", said);
    CHECK(!has_task(&other, "x"), "the id is not accepted as a new task");
    CHECK(intact(list, "list") == 1, "nor is it asked: %s", said);
    CHECK(intact(list, "list --installation %s", id) == 1, "%s", said);
    CHECK(intact(list, "list --installation any") == 0, "%s", said);
    CHECK(intact(list, "list") == 1, "that was for once: %s", said);
    CHECK(intact(list, "list --installation %s", other_id) == 0, "%s", said);
    CHECK(intact(list, "list") == 0, "that stays: %s", said);
    CHECK(intact(list, "list --installation x") == 2, "%s", said);
    forget();
    CHECK(intact(list, "submit w --id y") == 0, "nothing is remembered: %s", said);
    forget();
    node_start(&node, FLAGS("--log", "warn"));
    char stated[300];
    (void)snprintf(stated, sizeof stated, "INTACT_INSTALLATION=%s %s", id, list);
    CHECK(intact(stated, "submit w --id stated") == 0 && has_task(&node, "stated"), "%s", said);
    node_kill(&node);
    CHECK(intact(stated, "submit w --id stated") == 1 && !has_task(&other, "stated"), "%s", said);
    node_start(&node, FLAGS("--log", "warn"));
    node_stop(&other);
    node_fini(&other);
}

static void names_both(const char *text, const char *other_id)
{
    CHECK(strstr(text, id) && strstr(text, other_id), "both ids: %s", text);
}

/* The same task once more, by whoever worked with the first one: nobody begins it at the second. */
static void another_one_at_the_same_address_takes_nothing(void **state)
{
    struct node other;
    char other_id[40];
    char url[40];
    char list[200];
    char stated[200];
    (void)state;

    if (store_is_postgres())
        skip(); /* a server over the same database is a node of the same installation */
    (void)define(&node, "w",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"g\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    open_other(&other, other_id);
    node_stop(&other);
    forget();
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", node.port);
    (void)snprintf(list, sizeof list, "INTACT_SERVER=%s,http://127.0.0.1:%d", url, other.port);
    (void)snprintf(stated, sizeof stated, "INTACT_INSTALLATION=%s INTACT_SERVER=%s", id, url);
    struct intact_client *c = intact_client_new(url, node.token);
    static const char task[] = "{\"workflow\":\"w\",\"id\":\"same\",\"input\":{}}";
    CHECK(intact_client_submit(c, task, 0) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(intact(list, "submit w --id same --input {}") == 0, "%s", said);
    CHECK(intact(stated, "submit w --id same --input {}") == 0, "%s", said);

    node_kill(&node);
    other.port = node.port;
    node_start(&other, FLAGS("--log", "warn"));
    CHECK(intact_client_submit(c, task, 0) == INTACT_REFUSED, "by libintact");
    names_both(intact_client_error(c), other_id);
    CHECK(intact(list, "submit w --id same --input {}") == 1, "what is remembered of a list: %s",
          said);
    names_both(said, other_id);
    CHECK(intact(stated, "submit w --id same --input {}") == 1, "the stated id: %s", said);
    names_both(said, other_id);
    CHECK(!has_task(&other, "same"), "it was begun again");

    node_stop(&other);
    node_start(&node, FLAGS("--log", "warn"));
    CHECK(intact_client_submit(c, task, 0) == INTACT_OK, "%s", intact_client_error(c));
    intact_client_free(c);
    node_fini(&other);
}

static void one_server_is_taken_as_it_is(void **state)
{
    char server[60];
    char path[200];
    (void)state;

    forget();
    (void)snprintf(server, sizeof server, "INTACT_SERVER=http://127.0.0.1:%d", node.port);
    CHECK(intact(server, "node list") == 0 && strstr(said, id), "%s", said);
    (void)snprintf(path, sizeof path, "%s/state/intact/installations", node.home);
    CHECK(access(path, F_OK) != 0, "nothing is written for it");
}

/* ---- backup and restore ---- */

/* Gives the request of a task "copied" to an agent that sends no id; its token. */
static char *begin_attempt(struct node *n)
{
    REPLY r = {0};

    (void)define(n, "c",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"h\", \"action\": \"x\", "
                 "\"undo\": \"none\", \"complete_by\": \"1h\"}]");
    submit(n, "c", "copied");
    fetch(n, &r, "h", "h-1");
    return token_in(&r, 0);
}

/* The original's agent hands in its result here; the attempt is open for the copy's own agents. */
static void takes_no_result_of_the_original(struct node *copy, const char *token)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};

    hand_in(copy, "h", "h-1", token, "\"output\": \"of the original\"", "unknown");
    /* As after a restart of the agent: what it does not hold is sent again. */
    do {
        post(copy, &r, "/v1/agents/h/work",
             "{\"instance\": \"h-1\", \"max\": 1, \"wait\": \"10s\", \"holding\": []}");
        EXPECT(&r, 200);
    } while (!at(&r, "requests.0") && steady_ms() < until);
    char *own = token_in(&r, 0);
    CHECK(strcmp(own, token) != 0, "the token of the original: %s", own);
    hand_in(copy, "h", "h-1", own, "\"output\": \"of the copy\"", "accepted");
    free(own);
    wait_for_state(copy, "copied", "processed");
}

static void a_restored_one_is_the_same_unless_it_is_told_otherwise(void **state)
{
    char server[60];
    struct node copy;
    char now[40];
    (void)state;

    if (store_is_postgres())
        skip(); /* pg_dump does it */
    char *token = begin_attempt(&node);
    (void)snprintf(server, sizeof server, "INTACT_SERVER=http://127.0.0.1:%d", node.port);
    CHECK(intact(server, "backup %s/b.db", node.home) == 0, "%s", said);
    for (int is_new = 0; is_new < 2; is_new++) {
        node_init(&copy);
        CHECK(intact("", "restore %s/b.db --data %s %s", node.home, copy.data,
                     is_new ? "--new-installation" : "")
                  == 0,
              "%s", said);
        node_start(&copy, FLAGS("--log", "warn"));
        read_id(&copy, now);
        CHECK((strcmp(id, now) != 0) == is_new, "%s, then %s", id, now);
        if (is_new)
            takes_no_result_of_the_original(&copy, token);
        else
            hand_in(&copy, "h", "h-1", token, "\"output\": 1", "accepted");
        node_stop(&copy);
        node_fini(&copy);
    }
    hand_in(&node, "h", "h-1", token, "\"output\": 1", "accepted");
    free(token);
}

/* As docs/postgresql.md has it. */
static void renew_postgres(struct node *copy)
{
    free(sql(copy, "DELETE FROM meta WHERE name IN ('installation', 'secret')"));
    node_kill(copy);
}

/* As docs/backup.md has it. */
static void renew_sqlite(struct node *copy)
{
    char command[300];

    node_stop(copy);
    (void)snprintf(command, sizeof command,
                   "sqlite3 %s/intact.db \"DELETE FROM meta WHERE name = 'installation'; "
                   "UPDATE meta SET value = randomblob(32) WHERE name = 'secret'\"",
                   copy->data);
    CHECK(system(command) == 0, "%s", command); /* NOLINT: words of our own */
}

static void a_copy_by_hand_gets_its_own_id_and_key(void **state)
{
    struct node copy;
    char first[40];
    char again[40];
    (void)state;

    for (int is_postgres = store_is_postgres(); is_postgres < 2; is_postgres++) {
        if (is_postgres)
            nodes_init(&copy, 1);
        else
            node_init(&copy);
        nodes_start(&copy, 1, FLAGS("--log", "warn"));
        read_id(&copy, first);
        char *token = begin_attempt(&copy);
        if (is_postgres)
            renew_postgres(&copy);
        else
            renew_sqlite(&copy);
        node_start(&copy, FLAGS("--log", "warn"));
        read_id(&copy, again);
        CHECK(strcmp(first, again) != 0, "%s", first);
        takes_no_result_of_the_original(&copy, token);
        free(token);
        node_stop(&copy);
        node_fini(&copy);
    }
}

/* ---- nodes ---- */

static void expect_one(const struct node *nodes, size_t count, char ret[40])
{
    read_id(&nodes[0], ret);
    for (size_t i = 1; i < count; i++) {
        char other[40];
        read_id(&nodes[i], other);
        CHECK(strcmp(ret, other) == 0, "%s and %s", ret, other);
    }
}

/* Also on a database from before there were such ids, beside a node that runs meanwhile. */
static void nodes_that_start_at_once_agree(void **state)
{
    struct node nodes[4];
    char first[40];
    char again[40];
    (void)state;

    nodes_init(nodes, COUNT_OF(nodes));
    nodes_start(nodes, COUNT_OF(nodes), FLAGS("--log", "warn"));
    expect_one(nodes, COUNT_OF(nodes), first);
    CHECK(strcmp(first, id) != 0, "another store has another one");
    for (size_t i = 1; i < COUNT_OF(nodes); i++)
        node_stop(&nodes[i]);
    free(sql(&nodes[0], "DELETE FROM meta WHERE name = 'installation'"));
    for (size_t i = 1; i < COUNT_OF(nodes); i++)
        node_begin(&nodes[i], FLAGS("--log", "info"));
    for (size_t i = 1; i < COUNT_OF(nodes); i++)
        WAIT_FOR(node_log_has(&nodes[i], "event=started"), "it listens");
    expect_one(nodes + 1, COUNT_OF(nodes) - 1, again);
    CHECK(strcmp(first, again) != 0, "it was made anew");
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        node_stop(&nodes[i]);
        node_fini(&nodes[i]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_says_whose_it_is),
        cmocka_unit_test(a_stream_says_it_too),
        cmocka_unit_test(what_is_meant_for_another_one_is_refused),
        cmocka_unit_test(it_stays_the_same_after_a_kill),
        cmocka_unit_test(a_list_is_of_one_installation),
        cmocka_unit_test(another_one_at_the_same_address_takes_nothing),
        cmocka_unit_test(one_server_is_taken_as_it_is),
        cmocka_unit_test(a_restored_one_is_the_same_unless_it_is_told_otherwise),
        cmocka_unit_test(a_copy_by_hand_gets_its_own_id_and_key),
        cmocka_unit_test(nodes_that_start_at_once_agree),
    };

    kit_program(argc, argv);
    program = argv[1];
    return cmocka_run_group_tests(tests, start, node_end);
}
