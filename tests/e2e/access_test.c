/* Tests of access: tokens, their lives, the admin's file, and what is logged of refusals.
 * access_routes_test.c has the routes, rotation_test.c expiry and rotation. */

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "kit.h"

static struct node node;
#define STEPS                                                                                  \
    "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": "  \
    "\"x\", \"undo\": {\"action\": \"y\"}}, {\"name\": \"b\", \"agent\": \"ag\", \"action\": " \
    "\"x\", \"undo\": \"none\"}]"

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "debug"));
    define(&node, "held", STEPS);
    return 0;
}

static int start_without_workflows(void **state)
{
    node_init(&node);
    *state = &node;
    return 0;
}

/* ---- headers ---- */

static int status_with(const char *headers, size_t len)
{
    REPLY r = {0};
    int fd = dial(&node);

    say(fd, SLICE("GET /v1/nodes HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"));
    say(fd, (struct slice){headers, len});
    say(fd, SLICE("\r\n"));
    hear(fd, &r);
    return r.status;
}

static int status_fmt(const char *fmt, ...) PRINTF(1, 2);
static int status_fmt(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    CHECK(len >= 0, "no memory");
    int status = status_with(text, (size_t)len);
    free(text);
    return status;
}

static void only_a_well_formed_header_lets_in(void **state)
{
    const char *t = node.token;
    static const char *const bad[] = {
        "Authorization: %s\r\n",
        "Authorization: Basic %s\r\n",
        "Authorization: Bearer: %s\r\n",
        "Authorization: Bearer%s\r\n",
        "Authorization: Bearer\t%s\r\n",
        "Authorization: Bearer %s,\r\n",
        "Authorization: Bearer %s=\r\n",
        "Authorization: Bearer \"%s\"\r\n",
        "Authorization: Bearer x%s\r\n",
        "Authorization: Bearer %s x\r\n",
        "Proxy-Authorization: Bearer %s\r\n",
        "X-Authorization: Bearer %s\r\n",
        "Cookie: token=%s\r\n",
        "Authorization: Bearer intact_\r\nX: %s\r\n",
        "Authorization: Bearer \r\nX: %s\r\n",
        "Authorization:\r\nX: %s\r\n",
        "Authorization: Bearer intact_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nX: %s\r\n",
    };
    (void)state;

    CHECK(status_fmt("Authorization: Bearer %s\r\n", t) == 200, "the plain one");
    CHECK(status_fmt("authorization: bearer   %s  \r\n", t) == 200, "cases and blanks");
    CHECK(status_fmt("AUTHORIZATION: BEARER %s\r\n", t) == 200, "cases");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char line[300];
        int len = snprintf(line, sizeof line, "X-First: 1\r\n");
        const char *at = strstr(bad[i], "%s");
        (void)snprintf(line + len, sizeof line - (size_t)len, "%.*s%s%s", (int)(at - bad[i]),
                       bad[i], t, at + 2);
        int status = status_with(line, strlen(line));
        CHECK(status == 401, "%s: %d", line, status);
    }
    CHECK(status_fmt("Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n", t, t) == 401,
          "twice the same");
    CHECK(status_fmt("Authorization: Bearer x\r\nAuthorization: Bearer %s\r\n", t) == 401, "two");
    CHECK(status_fmt("Authorization: Bearer %s\r\nauthorization: Basic x\r\n", t) == 401, "two");
}

static void a_changed_or_endless_token_is_none(void **state)
{
    struct prng p = {11};
    char *longer = NULL;
    (void)state;

    for (size_t i = 0; i < 50; i++) {
        struct node n = as(&node, node.token);
        n.token[i] = n.token[i] == 'A' ? 'B' : 'A';
        CHECK(status_as(&n, "GET", "/v1/nodes") == 401, "%s", n.token);
        n.token[i] = 0;
        CHECK(status_as(&n, "GET", "/v1/nodes") == 401, "%s", n.token);
    }
    for (int size = 51; size < 16000; size *= 3) {
        CHECK(asprintf(&longer, "%0*d", size, 7) > 0, "no memory");
        CHECK(status_fmt("Authorization: Bearer %s\r\n", longer) == 401, "%d bytes", size);
        CHECK(status_fmt("Authorization: Bearer %s%s\r\n", node.token, longer) == 401, "%d", size);
        free(longer);
    }
    CHECK(asprintf(&longer, "%020000d", 7) > 0, "no memory");
    CHECK(status_fmt("Authorization: Bearer %s\r\n", longer) == 431, "more than a head may have");
    free(longer);
    for (int i = 0; i < 300; i++) {
        char line[200] = "Authorization: Bearer ";
        size_t len = strlen(line);
        for (size_t n = prng_below(&p, 100); n > 0; n--) {
            line[len] = (char)prng_next(&p);
            len += line[len] != '\r' && line[len] != '\n' && line[len] != 0;
        }
        memcpy(line + len, "\r\n", 2);
        int status = status_with(line, len + 2);
        CHECK(status == 401 || status == 400, "%d", status);
    }
    CHECK(status_as(&node, "GET", "/v1/nodes") == 200, "the right one still");
}

static void foreign_pages_are_refused_before_anything_else(void **state)
{
    (void)state;
    CHECK(status_fmt("Origin: http://evil.example\r\n") == 403, "no token");
    CHECK(status_fmt("Origin: http://evil.example\r\nAuthorization: Bearer %s\r\n", node.token)
              == 403,
          "even with one");
}

/* A client that guesses tokens, or has one without the needed role, is logged; but not each of
 * thousands. */
static void who_is_refused_is_logged(void **state)
{
    const struct node stranger = as(&node, "intact_guessed");
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 50; i++) {
        get(&stranger, &r, "/v1/tasks?workflow=%d", i);
        EXPECT(&r, 401);
        CHECK(head_has(&r, "\r\nX-Content-Type-Options: nosniff\r\n"), "%.*s", SLICE_ARG(r.head));
    }
    size_t lines = node_log_count(&node, "event=request_refused");
    CHECK(lines == 10, "%zu lines", lines);
    CHECK(node_log_has(&node, "event=request_refused status=401 address=127.0.0.1 method=GET "
                              "path=/v1/tasks reason="),
          "who, and what");
    CHECK(!node_log_has(&node, "intact_guessed"), "what was tried may be a secret with a typo");
}

/* A browser, say, that opens an address which is for programs. */
static void what_lets_in_by_the_path_is_not_written_down(void **state)
{
    static const char *const paths[] = {"/v1/signals/", "/v1/attempts/", "/v1/approvals/"};
    static const char *const ends[] = {"", "/", "?a=b"};
    const struct node stranger = as(&node, "");
    char want[80];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        for (size_t k = 0; k < COUNT_OF(ends); k++) {
            char path[80];
            (void)snprintf(path, sizeof path, "%so-1~x.lets-me-in%s", paths[i], ends[k]);
            send_as(&stranger, &r, "DELETE", path, NULL, SLICE_NONE);
            EXPECT(&r, 401);
        }
        (void)snprintf(want, sizeof want, "status=401 address=127.0.0.1 method=DELETE path=%s...",
                       paths[i]);
        CHECK(node_log_has(&node, want), "%s", want);
    }
    CHECK(!node_log_has(&node, "lets-me-in"), "it is in the log");
}

static void the_file_is_named_to_this_machine_alone(void **state)
{
    const struct node stranger = as(&node, "");
    char want[120];
    REPLY r = {0};
    (void)state;

    (void)snprintf(want, sizeof want, "\r\nIntact-Token-File: %s/admin-token\r\n", node.data);
    get(&stranger, &r, "/v1/tasks");
    CHECK(head_has(&r, want), "%.*s", SLICE_ARG(r.head));
    static const char *const passed_on[] = {"Forwarded: for=192.0.2.1", "Via: 1.1 proxy",
                                            "X-Forwarded-For: 192.0.2.1"};
    for (size_t i = 0; i < COUNT_OF(passed_on); i++) {
        int fd = dial(&node);
        say(fd, SLICE("GET /v1/nodes HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"));
        say(fd, slice_of(passed_on[i]));
        say(fd, SLICE("\r\n\r\n"));
        hear(fd, &r);
        EXPECT(&r, 401);
        CHECK(!head_has(&r, "Intact-Token-File"), "%.*s", SLICE_ARG(r.head));
    }
    get(&node, &r, "/v1/tasks");
    CHECK(!head_has(&r, "Intact-Token-File"), "nobody who is in has to be told");
}

/* The answer to a challenge, in `ret`; "" if there is none. For clients see token_file.sh. */
static void challenge(const char *text, char ret[65])
{
    static const char field[] = "\r\nIntact-Token-Proof: ";
    REPLY r = {0};
    int fd = dial(&node);

    say(fd, SLICE("GET /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                  "Intact-Challenge: "));
    say(fd, slice_of(text));
    say(fd, SLICE("\r\n\r\n"));
    hear(fd, &r);
    EXPECT(&r, 401);
    const char *found = memmem(r.head.ptr, r.head.len, field, strlen(field));
    (void)snprintf(ret, 65, "%.64s", found ? found + strlen(field) : "");
}

static void a_challenge_is_answered_with_a_proof(void **state)
{
    static const char one[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const char other[] = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char first[65];
    char again[65];
    char second[65];
    (void)state;

    challenge(one, first);
    challenge(one, again);
    challenge(other, second);
    CHECK(strspn(first, "0123456789abcdef") == 64, "no proof: %s", first);
    assert_string_equal(first, again);
    assert_string_not_equal(first, second);
    CHECK(!node_log_has(&node, "event=request_refused"), "nobody was refused");
    challenge("0123", first);
    assert_string_equal(first, "");
    CHECK(node_log_has(&node, "event=request_refused"), "that is no challenge");
}

/* ---- the life of a token ---- */

static void tokens_that_are_wrong_are_refused(void **state)
{
    static const struct {
        const char *body, *type, *says;
    } cases[] = {
        {"{}", "bad-token", "name must be"},
        {"{\"name\": 5, \"roles\": [\"read\"]}", "bad-token", "name must be"},
        {"{\"name\": \"\", \"roles\": [\"read\"]}", "bad-token", "name must be"},
        {"{\"name\": \"a b\", \"roles\": [\"read\"]}", "bad-token", "name must be"},
        {"{\"name\": \"open\", \"roles\": [\"read\"]}", "bad-token", "\"open\""},
        {"{\"name\": \"server\", \"roles\": [\"read\"]}", "bad-token", "\"server\""},
        {"{\"name\": \"amqp\", \"roles\": [\"read\"]}", "bad-token", "\"amqp\""},
        {"{\"name\": \"sql\", \"roles\": [\"read\"]}", "bad-token", "\"sql\""},
        {"{\"name\": \"signal-url\", \"roles\": [\"read\"]}", "bad-token", "\"signal-url\""},
        {"{\"name\": \"approval-link\", \"roles\": [\"read\"]}", "bad-token", "\"approval-link\""},
        {"{\"name\": \"helper\", \"roles\": [\"read\"]}", "bad-token", "\"helper\""},
        {"{\"name\": \"schedule\", \"roles\": [\"read\"]}", "bad-token", "\"schedule\""},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"person\": \"schedule\"}", "bad-token",
         "\"schedule\""},
        {"{\"name\": \"w\"}", "bad-token", "roles must be"},
        {"{\"name\": \"w\", \"roles\": \"read\"}", "bad-token", "roles must be"},
        {"{\"name\": \"w\", \"roles\": []}", "bad-token", "roles must be"},
        {"{\"name\": \"w\", \"roles\": [\"write\"]}", "bad-token", "roles has \"write\""},
        {"{\"name\": \"w\", \"roles\": [\"read\", 1]}", "bad-token", "roles has 1"},
        {"{\"name\": \"w\", \"roles\": [\"agent:\"]}", "bad-token", "roles has \"agent:\""},
        {"{\"name\": \"w\", \"roles\": [\"agent:a/b\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"agent:**\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"READ\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"submit:\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"submit:a*b\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"read:**\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"read:a/b\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"repair:a\"]}", "bad-token", "roles has"},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"expires_in\": 5}", "bad-token", "duration"},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"expires_in\": \"0s\"}", "bad-token",
         "duration"},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"expires_in\": \"Never\"}", "bad-token",
         "duration"},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"expires_in\": \"-1s\"}", "bad-token",
         "duration"},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"expires\": \"1s\"}", "unknown-member",
         "\"expires\""},
        {"{\"name\": \"w\", \"roles\": [\"read\"], \"token\": \"intact_mine\"}", "unknown-member",
         "\"token\""},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/tokens", "%s", cases[i].body);
        expect_problem(&r, 422, cases[i].type);
        CHECK(strstr(text_at(&r, "detail"), cases[i].says), "%s: %s", cases[i].body,
              text_at(&r, "detail"));
    }
    char name[66];
    memset(name, 'n', sizeof name);
    name[65] = 0;
    post(&node, &r, "/v1/tokens", "{\"name\": \"%s\", \"roles\": [\"read\"]}", name);
    expect_problem(&r, 422, "bad-token");
    post(&node, &r, "/v1/tokens", "{\"name\": \"%s\", \"roles\": [\"read\"]}", name + 1);
    EXPECT(&r, 201);
    get(&node, &r, "/v1/tokens");
    EXPECT_TEXT(&r, "tokens.0.name", "admin");
    EXPECT_TEXT(&r, "tokens.1.name", name + 1);
    CHECK(!at(&r, "tokens.2"), "none of the others");
    CHECK(!at(&r, "tokens.0.token"), "no text is shown again");
}

static void a_token_lives_until_it_is_deleted(void **state)
{
    char token[64];
    char again[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "ci", "\"submit\", \"agent:ag\", \"submit\"", "30d", token);
    const struct node ci = as(&node, token);
    CHECK(status_as(&ci, "GET", "/v1/nodes") == 200, "at once");
    get(&node, &r, "/v1/tokens");
    EXPECT_RAW(&r, "tokens.1.roles", "[\"submit\",\"agent:ag\"]");
    CHECK(time_at(&r, "tokens.1.expires_at") - time_at(&r, "tokens.1.created_at")
              == INT64_C(30) * 86400000,
          "30 days");
    CHECK(time_at(&r, "tokens.0.expires_at") == 0, "the admin's does not expire");
    post(&node, &r, "/v1/tokens", "{\"name\": \"ci\", \"roles\": [\"read\"]}");
    expect_problem(&r, 409, "token-exists");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    CHECK(status_as(&ci, "GET", "/v1/nodes") == 200, "and after a kill");
    send_as(&node, &r, "DELETE", "/v1/tokens/ci", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    CHECK(r.body.len == 0, "no body");
    CHECK(status_as(&ci, "GET", "/v1/nodes") == 401, "deleted");
    send_as(&node, &r, "DELETE", "/v1/tokens/ci", NULL, SLICE_NONE);
    expect_problem(&r, 404, "no-such-token");
    send_as(&node, &r, "DELETE", "/v1/tokens/%20", NULL, SLICE_NONE);
    expect_problem(&r, 404, "no-such-token");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    CHECK(status_as(&ci, "GET", "/v1/nodes") == 401, "for ever");
    make_token(&node, "ci", "\"submit\"", NULL, again);
    CHECK(strcmp(token, again) != 0, "another one");
    CHECK(status_as(&ci, "GET", "/v1/nodes") == 401, "of the same name");
}

static void a_token_expires(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "brief", "\"read\"", "300ms", token);
    const struct node brief = as(&node, token);
    while (status_as(&brief, "GET", "/v1/nodes") != 401) {
        CHECK(steady_ms() < until, "it does not expire");
        sleep_ms(20);
    }
    get(&brief, &r, "/v1/nodes");
    CHECK(strstr(text_at(&r, "detail"), "expired"), "%s", text_at(&r, "detail"));
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    CHECK(status_as(&brief, "GET", "/v1/nodes") == 401, "after a restart");
}

static void the_last_admin_cannot_lock_everybody_out(void **state)
{
    char token[64];
    struct reply r[2] = {{0}, {0}};
    (void)state;

    send_as(&node, &r[0], "DELETE", "/v1/tokens/admin", NULL, SLICE_NONE);
    expect_problem(&r[0], 409, "last-admin");
    for (int i = 0; i < 20; i++) { /* two who delete each other at the same moment */
        make_token(&node, "second", "\"admin\"", NULL, token);
        const struct node second = as(&node, token);
        int a = ask(&node, "DELETE", "/v1/tokens/second", NULL, SLICE_NONE);
        int b = ask(&second, "DELETE", "/v1/tokens/admin", NULL, SLICE_NONE);
        hear(a, &r[0]);
        hear(b, &r[1]);
        bool first = status_as(&node, "GET", "/v1/tokens") == 200;
        bool other = status_as(&second, "GET", "/v1/tokens") == 200;
        CHECK(first != other, "one is left: %d and %d", r[0].status, r[1].status);
        if (other) {
            (void)snprintf(node.token, sizeof node.token, "%s", token);
            make_token(&node, "admin", "\"admin\"", NULL, token);
            send_as(&node, &r[0], "DELETE", "/v1/tokens/second", NULL, SLICE_NONE);
            EXPECT(&r[0], 204);
            (void)snprintf(node.token, sizeof node.token, "%s", token);
        }
    }
    reply_fini(&r[0]);
    reply_fini(&r[1]);
}

/* ---- the admin's file ---- */

static void file_is_good(void)
{
    char path[100];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/admin-token", node.data);
    CHECK(lstat(path, &st) == 0 && S_ISREG(st.st_mode), "%s", path);
    CHECK((st.st_mode & 07777) == 0600, "mode %o", (unsigned)st.st_mode);
    CHECK(st.st_size == 51, "a token and a newline: %ld", (long)st.st_size);
    CHECK(strlen(node.token) == 50, "\"%s\"", node.token);
    CHECK(status_as(&node, "GET", "/v1/tokens") == 200, "it lets in");
}

static void a_lost_file_gets_the_admin_a_new_token(void **state)
{
    char path[100];
    char other[64];
    REPLY r = {0};
    (void)state;

    if (store_is_postgres())
        skip(); /* such nodes make one token between them: see nodes_test.c */
    node_start(&node, FLAGS("--log", "info"));
    file_is_good();
    make_token(&node, "other", "\"admin\"", NULL, other);
    const struct node old = as(&node, node.token);
    node_stop(&node);
    (void)snprintf(path, sizeof path, "%s/admin-token", node.data);
    CHECK(unlink(path) == 0, "removed");
    node_start(&node, FLAGS("--log", "info"));
    file_is_good();
    CHECK(strcmp(old.token, node.token) != 0, "a new one");
    CHECK(status_as(&old, "GET", "/v1/nodes") == 401, "the old one is out");
    const struct node second = as(&node, other);
    CHECK(status_as(&second, "GET", "/v1/tokens") == 200, "others stay");
    get(&node, &r, "/v1/audit");
    EXPECT_TEXT(&r, "entries.0.actor", "server");
    EXPECT_TEXT(&r, "entries.0.verb", "token.create");
    node_stop(&node);
    node_start(&node, FLAGS("--log", "info"));
    file_is_good();
    CHECK(node_log_has(&node, "event=admin_token_made"), "it is told");
    CHECK(!node_log_has(&node, "event=admin_token_useless"), "nothing is wrong");
}

static void a_file_that_is_useless_is_told_of_and_left_alone(void **state)
{
    static const char *const texts[] = {"", "not a token\n",
                                        "intact_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"};
    char path[100];
    (void)state;

    node_start(&node, FLAGS("--log", "info"));
    node_stop(&node);
    (void)snprintf(path, sizeof path, "%s/admin-token", node.data);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(texts[i], f) >= 0 && fclose(f) == 0, "written");
        (void)unlink(node.log);
        node_start(&node, FLAGS("--log", "info"));
        CHECK(node_log_has(&node, "event=admin_token_useless"), "\"%s\"", texts[i]);
        CHECK(status_as(&node, "GET", "/v1/nodes") == 401, "it lets nobody in");
        node_stop(&node);
    }
}

/* Wherever a kill strikes, above all between store and file, the next start puts it right. */
static void a_kill_while_the_token_is_made_is_no_harm(void **state)
{
    struct prng p = {(uint64_t)now_ms()};
    char data[80];
    char temporary[120];
    (void)state;

    if (store_is_postgres())
        skip(); /* the same */
    (void)snprintf(data, sizeof data, "%s", node.data);
    for (int i = 0; i < 25; i++) {
        (void)snprintf(node.data, sizeof node.data, "%.60s-%d", data, i);
        node_begin(&node, FLAGS("--log", "info"));
        sleep_ms((int)prng_below(&p, 60));
        node_kill(&node);
        node_start(&node, FLAGS("--log", "info"));
        file_is_good();
        (void)snprintf(temporary, sizeof temporary, "%s/admin-token.new", node.data);
        CHECK(access(temporary, F_OK) != 0, "nothing is left over");
        node_stop(&node);
    }
    (void)snprintf(node.data, sizeof node.data, "%s", data);
}

static void nothing_tells_a_token(void **state)
{
    static const char *const files[] = {"data/intact.db", "data/intact.db-wal", "data/lock", "log"};
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "secret", "\"submit\"", NULL, token);
    const struct node secret = as(&node, token);
    CHECK(status_as(&secret, "GET", "/v1/tokens") == 403, "refused");
    send_as(&secret, &r, "GET", "/v1/nodes", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char command[300];
        (void)snprintf(command, sizeof command, "! grep -qaF -e %s -e %s %s/%s", token, node.token,
                       node.home, files[i]);
        CHECK(system(command) == 0, "a token stands in %s", files[i]);
    }
}

static void an_open_server_asks_for_nothing(void **state)
{
    char path[100];
    REPLY r = {0};
    (void)state;

    node_start(&node, FLAGS("--open"));
    CHECK(!node.token[0], "no token");
    (void)snprintf(path, sizeof path, "%s/admin-token", node.data);
    CHECK(access(path, F_OK) != 0, "no file");
    define(&node, "held", STEPS);
    submit(&node, "held", "x");
    CHECK(status_fmt("Authorization: Bearer x\r\nAuthorization: y\r\n") == 200, "whatever it says");
    get(&node, &r, "/v1/tasks/x/why");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/audit");
    EXPECT_TEXT(&r, "entries.0.actor", "open");
    EXPECT_TEXT(&r, "entries.0.verb", "workflow.put");
    EXPECT_TEXT(&r, "entries.0.reason", "held, version 1");
    CHECK(status_fmt("Origin: http://evil.example\r\n") == 403, "but not pages");
}

/* The work goes to who is still to be trusted, and without a failure. */
static void a_parked_call_gets_no_work_for_a_deleted_token(void **state)
{
    const struct slice call = SLICE("{\"instance\": \"i\", \"wait\": \"5m\"}");
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "thief", "\"agent:ag\"", NULL, token);
    const struct node thief = as(&node, token);
    int parked = ask(&thief, "POST", "/v1/agents/ag/work", "application/json", call);
    wait_for_parked(&node, 1);
    send_as(&node, &r, "DELETE", "/v1/tokens/thief", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    submit(&node, "held", "held-1");
    hear(parked, &r);
    expect_problem(&r, 401, "unauthenticated");
    fetch(&node, &r, "ag", "honest");
    EXPECT_TEXT(&r, "requests.0.task", "held-1");
    get(&node, &r, "/v1/tasks/held-1");
    EXPECT_RAW(&r, "failure_count", "0");
    EXPECT_RAW(&r, "steps.0.failure_count", "0");
}

#define ON(f)     cmocka_unit_test_setup_teardown(f, start, node_end)
#define BEFORE(f) cmocka_unit_test_setup_teardown(f, start_without_workflows, node_end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        ON(only_a_well_formed_header_lets_in),
        ON(a_changed_or_endless_token_is_none),
        ON(foreign_pages_are_refused_before_anything_else),
        ON(who_is_refused_is_logged),
        ON(what_lets_in_by_the_path_is_not_written_down),
        ON(the_file_is_named_to_this_machine_alone),
        ON(a_challenge_is_answered_with_a_proof),
        ON(tokens_that_are_wrong_are_refused),
        ON(a_token_lives_until_it_is_deleted),
        ON(a_token_expires),
        ON(a_parked_call_gets_no_work_for_a_deleted_token),
        ON(the_last_admin_cannot_lock_everybody_out),
        BEFORE(a_lost_file_gets_the_admin_a_new_token),
        BEFORE(a_file_that_is_useless_is_told_of_and_left_alone),
        BEFORE(a_kill_while_the_token_is_made_is_no_harm),
        ON(nothing_tells_a_token),
        BEFORE(an_open_server_asks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
