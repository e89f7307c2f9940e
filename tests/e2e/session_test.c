/* Tests of signing in to the console: sessions by tokens and by codes, their ends, and what a
 * request with nothing but a cookie must have. console_test.c has the pages. */

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "browser_kit.h"
#include "sse.h"

static struct node node;

static int start(void **state)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* the server inherits it: writes beyond its limit fail */
    *state = node_open(&node, FLAGS("--log", "debug"));
    return 0;
}

/* To be freed. */
static char *make_code(const struct node *n)
{
    REPLY r = {0};

    post(n, &r, "/v1/session/codes", "{}");
    EXPECT(&r, 201);
    CHECK(time_at(&r, "expires_at") > now_ms(), "it lasts for a while");
    CHECK(time_at(&r, "expires_at") <= now_ms() + 60000, "for a minute");
    CHECK(head_has(&r, "Cache-Control: no-store\r\n"), "%.*s", SLICE_ARG(r.head));
    char *code = strdup(text_at(&r, "code"));
    CHECK(code && strlen(code) == 43, "%s", code);
    return code;
}

static void use_code(struct browser *b, struct reply *r, const char *code)
{
    char body[100];

    (void)snprintf(body, sizeof body, "{\"code\": \"%s\"}", code);
    browser_send(b, r, "POST", "/v1/session", "", body);
    if (r->status == 201)
        browser_take_cookie(b, r);
}

/* ---- signing in ---- */

static void a_token_is_exchanged_for_a_session(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tokens",
         "{\"name\": \"ann\", \"roles\": [\"operate\"], \"person\": \"ann@example.org\", "
         "\"groups\": [\"finance\"]}");
    EXPECT(&r, 201);
    (void)snprintf(token, sizeof token, "%s", text_at(&r, "token"));
    char line[100];
    struct browser b = {.node = &node};
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "name", "ann");
    EXPECT_TEXT(&r, "person", "ann@example.org");
    EXPECT_RAW(&r, "groups", "[\"finance\"]");
    EXPECT_RAW(&r, "roles", "[\"operate\"]");
    CHECK(time_at(&r, "expires_at") > now_ms() + 11 * 3600000, "for 12 hours");
    CHECK(time_at(&r, "expires_at") <= now_ms() + 12 * 3600000, "and no longer");
    CHECK(head_has(&r, "Cache-Control: no-store\r\n"), "%.*s", SLICE_ARG(r.head));
    char *cookie = reply_cookie(&r);
    CHECK(strncmp(cookie, "intact_session=", 15) == 0, "%s", cookie);
    CHECK(strcmp(cookie + 15 + 43, "; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200") == 0, "%s",
          cookie);
    browser_take_cookie(&b, &r);
    browser_send(&b, &r, "GET", "/v1/session", "", NULL);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "name", "ann");
    EXPECT_RAW(&r, "roles", "[\"operate\"]");
    CHECK(browser_status(&b, "GET", "/v1/tasks") == 200, "it may read");
    CHECK(browser_status(&b, "GET", "/v1/tokens") == 403, "it may not do what its token may not");
    free(cookie);
    char *kept = sql(&node, "SELECT count(*) FROM session WHERE instr(hex(hash), hex('intact')) "
                            "OR length(hash) <> 32");
    CHECK(strcmp(kept, "0") == 0, "more than the hash is stored");
    free(kept);
}

/* Whoever deletes the schedule did it, whichever way he was let in. */
static void what_a_session_does_is_in_the_audit_under_its_token(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    (void)define(&node, "some",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"x\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    submit(&node, "some", "t-1");
    make_token(&node, "operator", "\"operate\"", NULL, token);
    struct browser b = browser_signed_in(&node, token);
    browser_send(&b, &r, "POST", "/v1/tasks/t-1/pause", CONSOLE, "{\"reason\": \"lunch\"}");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/audit?limit=2");
    EXPECT_TEXT(&r, "entries.0.verb", "pause");
    EXPECT_TEXT(&r, "entries.0.actor", "operator");
    EXPECT_TEXT(&r, "entries.1.verb", "session.create");
    EXPECT_TEXT(&r, "entries.1.actor", "operator");
    CHECK(node_log_has(&node, "event=session_created"), "it is logged");
}

static void a_code_signs_in_once(void **state)
{
    struct browser first = {.node = &node};
    struct browser second = {.node = &node};
    REPLY r = {0};
    char *code = make_code(&node);
    (void)state;

    use_code(&first, &r, code);
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "name", "admin");
    CHECK(browser_status(&first, "GET", "/v1/tokens") == 200, "it is the admin's");
    use_code(&second, &r, code);
    expect_problem(&r, 401, "unauthenticated");
    CHECK(!head_has(&r, "Set-Cookie"), "%.*s", SLICE_ARG(r.head));
    CHECK(!node_log_has(&node, code), "the code is in the log");
    free(code);
}

static void node_write(const struct node *n, const char *statement)
{
    char path[100];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", n->data);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    CHECK(sqlite3_exec(db, statement, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* The times are moved, instead of waited for. The change of a token has both lists read again. */
static void a_code_lasts_for_a_minute_and_a_session_for_hours(void **state)
{
    struct browser b = {.node = &node};
    char token[64];
    REPLY r = {0};
    char *code = make_code(&node);
    (void)state;

    node_write(&node, "UPDATE session SET created_at = created_at - 60000, "
                      "expires_at = expires_at - 60000 WHERE is_code = 1");
    make_token(&node, "any-1", "\"read\"", NULL, token);
    use_code(&b, &r, code);
    expect_problem(&r, 401, "unauthenticated");
    free(code);

    b = browser_signed_in(&node, token);
    CHECK(browser_status(&b, "GET", "/v1/tasks") == 200, "signed in");
    node_write(&node, "UPDATE session SET created_at = created_at - 43200000, "
                      "expires_at = expires_at - 43200000 WHERE is_code = 0");
    make_token(&node, "any-2", "\"read\"", NULL, token);
    CHECK(browser_status(&b, "GET", "/v1/tasks") == 401, "after 12 hours");
    (void)browser_signed_in(&node, token);
    char *left = sql(&node, "SELECT count(*) FROM session WHERE expires_at < created_at + 1000 OR "
                            "expires_at <= (SELECT max(at) FROM audit)");
    CHECK(strcmp(left, "0") == 0, "what has expired is deleted: %s", left);
    free(left);
}

static void who_cannot_sign_in(void **state)
{
    static const struct {
        const char *headers, *body;
        int status;
    } cases[] = {
        {"", "{}", 401},
        {"", "{\"code\": \"\"}", 401},
        {"", "{\"code\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}", 401},
        {"", "{\"code\": 1}", 401},
        {"", "{\"token\": \"x\"}", 422},
        {"", "[]", 422},
        {"", "{", 400},
        {"Authorization: Bearer intact_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n", "{}", 401},
        {"Authorization: Basic YTpi\r\n", NULL, 401},
        {"Cookie: intact_session=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n", "{}", 401},
    };
    const struct browser b = {.node = &node};
    char token[64];
    char line[100];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        browser_send(&b, &r, "POST", "/v1/session", cases[i].headers, cases[i].body);
        CHECK(r.status == cases[i].status, "%s%s: %d: %.*s", cases[i].headers,
              cases[i].body ? cases[i].body : "", r.status, SLICE_ARG(r.body));
        CHECK(!head_has(&r, "Set-Cookie"), "%.*s", SLICE_ARG(r.head));
    }
    make_token(&node, "worker", "\"agent:a\"", NULL, token);
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    expect_problem(&r, 403, "forbidden");
    browser_send(&b, &r, "POST", "/v1/session/codes", line, NULL);
    expect_problem(&r, 403, "forbidden");
    make_token(&node, "workers", "\"agent:*\"", NULL, token);
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    expect_problem(&r, 403, "forbidden");
    CLEANUP(buf_fini) struct buf big = {0};
    buf_fmt(&big, "{\"code\": \"%08000d\"}", 1);
    browser_send(&b, &r, "POST", "/v1/session", "", big.ptr);
    CHECK(r.status == 413 || r.status == 401, "a large one: %d", r.status);
}

static void asking_who_has_signed_in_is_no_refusal(void **state)
{
    const struct browser b = {.node = &node};
    REPLY r = {0};
    (void)state;

    browser_send(&b, &r, "GET", "/v1/session", "", NULL);
    expect_problem(&r, 401, "unauthenticated");
    CHECK(!node_log_has(&node, "method=GET path=/v1/session reason"), "it is logged");
    get(&node, &r, "/v1/session");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "name", "admin");
    EXPECT_RAW(&r, "roles", "[\"admin\"]");
}

/* ---- requests of pages ---- */

static void a_change_needs_what_other_sites_cannot_send(void **state)
{
    static const struct {
        const char *method, *path, *headers;
        int status;
        const char *type;
    } cases[] = {
        {"POST", "/v1/validate", "", 403, "no-console-header"},
        {"POST", "/v1/validate", "Intact-Console: 0\r\n", 403, "no-console-header"},
        {"POST", "/v1/validate", "Intact-Console:\r\n", 403, "no-console-header"},
        {"PUT", "/v1/workflows/x", "", 403, "no-console-header"},
        {"DELETE", "/v1/tokens/x", "", 403, "no-console-header"},
        {"DELETE", "/v1/session", "", 403, "no-console-header"},
        {"POST", "/v1/validate", CONSOLE "Origin: http://evil.example\r\n", 403, "foreign"},
        {"POST", "/v1/validate", CONSOLE "Origin: null\r\n", 403, "foreign"},
        {"POST", "/v1/validate", CONSOLE "Origin: http://127.0.0.1:1\r\n", 403, "foreign"},
        {"POST", "/v1/validate", CONSOLE "Sec-Fetch-Site: cross-site\r\n", 403, "foreign"},
        {"POST", "/v1/validate", CONSOLE "Sec-Fetch-Site: same-site\r\n", 403, "foreign"},
        {"GET", "/v1/tasks", "Sec-Fetch-Site: cross-site\r\n", 403, "foreign"},
        {"GET", "/v1/tasks", "Origin: http://evil.example\r\n", 403, "foreign"},
        {"GET", "/v1/tasks", "Sec-Fetch-Site: same-origin\r\n", 200, NULL},
        {"GET", "/v1/tasks", "", 200, NULL},
        {"POST", "/v1/validate", CONSOLE, 422, NULL},
        {"POST", "/v1/validate", CONSOLE "Sec-Fetch-Site: same-origin\r\n", 422, NULL},
        {"DELETE", "/v1/tokens/nobody", CONSOLE, 404, NULL},
    };
    struct browser b = browser_signed_in(&node, node.token);
    char origin[160];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool reads = strcmp(cases[i].method, "GET") == 0;
        browser_send(&b, &r, cases[i].method, cases[i].path, cases[i].headers, reads ? NULL : "{}");
        CHECK(r.status == cases[i].status, "%s %s %s: %d: %.*s", cases[i].method, cases[i].path,
              cases[i].headers, r.status, SLICE_ARG(r.body));
        if (cases[i].type)
            expect_problem(&r, cases[i].status, cases[i].type);
    }
    (void)snprintf(origin, sizeof origin, CONSOLE "Origin: http://127.0.0.1:%d\r\n", node.port);
    browser_send(&b, &r, "POST", "/v1/validate", origin, "{}");
    EXPECT(&r, 422);
    (void)snprintf(origin, sizeof origin, "Authorization: Bearer %s\r\n", node.token);
    browser_send(&b, &r, "POST", "/v1/validate", origin, "{}");
    EXPECT(&r, 422); /* a token is nothing that a browser adds */
    const struct browser other = {.node = &node};
    (void)snprintf(origin, sizeof origin,
                   "Origin: http://evil.example\r\nAuthorization: Bearer %s\r\n", node.token);
    browser_send(&other, &r, "POST", "/v1/session", origin, NULL);
    expect_problem(&r, 403, "foreign");
    CHECK(!head_has(&r, "Set-Cookie"), "%.*s", SLICE_ARG(r.head));
}

static void other_cookies_let_nobody_in(void **state)
{
    struct browser good = browser_signed_in(&node, node.token);
    char secret[60];
    char *code = make_code(&node);
    (void)snprintf(secret, sizeof secret, "%.43s", strchr(good.cookie, '=') + 1);
    const struct {
        const char *fmt; /* %s: the secret */
        int status;
    } cases[] = {
        {"Cookie: intact_session=%s\r\n", 200},
        {"Cookie: theme=dark; intact_session=%s; x=y\r\n", 200},
        {"Cookie: =;;a; intact_session=%s\r\n", 200},
        {"Cookie: Intact_session=%s\r\n", 401},
        {"Cookie: xintact_session=%s\r\n", 401},
        {"Cookie: __Host-intact_session=%s\r\n", 401},
        {"Cookie: intact_session=%s; intact_session=x\r\n", 401},
        {"Cookie: intact_session=x; intact_session=%s\r\n", 401},
        {"Cookie: intact_session=\"%s\"\r\n", 401},
        {"Cookie: intact_session=%sx\r\n", 401},
        {"Cookie: intact_session=%.42s\r\n", 401},
        {"Cookie: intact_session\r\n", 401},
        {"Cookie: intact_session=\r\n", 401},
        {"Cookie: a=b\r\nCookie: intact_session=%s\r\n", 401},
        {"Authorization: Bearer %s\r\n", 401},
        {"Authorization: Bearer intact_%s\r\n", 401},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct browser b = {.node = &node};
        char line[200];
        const char *at = strchr(cases[i].fmt, '%');
        REPLY r = {0};
        if (at)
            (void)snprintf(line, sizeof line, "%.*s%.*s%s", (int)(at - cases[i].fmt), cases[i].fmt,
                           at[1] == '.' ? 42 : 43, secret, strchr(at, 's') + 1);
        else
            (void)snprintf(line, sizeof line, "%s", cases[i].fmt);
        browser_send(&b, &r, "GET", "/v1/tasks", line, NULL);
        CHECK(r.status == cases[i].status, "%s: %d", line, r.status);
    }
    struct browser by_code = {.node = &node};
    (void)snprintf(by_code.cookie, sizeof by_code.cookie, "Cookie: intact_session=%s\r\n", code);
    CHECK(browser_status(&by_code, "GET", "/v1/tasks") == 401, "a code is no session");
    struct browser by_secret = {.node = &node};
    REPLY r = {0};
    use_code(&by_secret, &r, secret);
    EXPECT(&r, 401); /* a session is no code */
    browser_send(&good, &r, "POST", "/v1/session/codes", CONSOLE, "{}");
    expect_problem(&r, 403, "forbidden"); /* it would never end */
    CHECK(!node_log_has(&node, secret), "the secret is in the log");
    free(code);
}

/* ---- each route ---- */

static const struct {
    const char *method, *path;
    bool has_body, writes;
} routes[] = {
    {"POST", "/v1/session", true, true},    {"GET", "/v1/session", false, false},
    {"DELETE", "/v1/session", false, true}, {"POST", "/v1/session/codes", true, true},
    {"GET", "/v1/sessions", false, false},  {"DELETE", "/v1/sessions/nothing", false, true},
};

static void every_route_refuses_strangers_pages_and_wrong_bodies(void **state)
{
    static const struct {
        const char *type, *body;
        int status;
        const char *problem;
    } bodies[] = {
        {"text/plain", "{}", 415, "content-type"},
        {"application/json", "{\"a\":", 400, "not-json"},
        {"application/json", "[]", 422, "not-an-object"},
    };
    const struct node stranger = as(&node, "");
    const struct browser b = {.node = &node};
    char line[160];
    char packed[160];
    REPLY r = {0};
    (void)state;

    (void)snprintf(line, sizeof line,
                   "Origin: https://evil.example\r\nAuthorization: Bearer %s\r\n", node.token);
    (void)snprintf(packed, sizeof packed, "Content-Encoding: gzip\r\nAuthorization: Bearer %s\r\n",
                   node.token);
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        const char *type = routes[i].has_body ? "application/json" : NULL;
        browser_send(&b, &r, routes[i].method, routes[i].path, line,
                     routes[i].has_body ? "{}" : NULL);
        expect_problem(&r, 403, "foreign");
        send_as(&stranger, &r, routes[i].method, routes[i].path, type, SLICE("{}"));
        expect_problem(&r, 401, "unauthenticated");
        if (routes[i].has_body) {
            browser_send(&b, &r, routes[i].method, routes[i].path, packed, "{}");
            expect_problem(&r, 415, "content-encoding");
        }
        for (size_t k = 0; routes[i].has_body && k < COUNT_OF(bodies); k++) {
            send_as(&node, &r, routes[i].method, routes[i].path, bodies[k].type,
                    slice_of(bodies[k].body));
            expect_problem(&r, bodies[k].status, bodies[k].problem);
        }
    }
    get(&node, &r, "/v1/session?token=x");
    expect_problem(&r, 422, "unknown-parameter");
}

static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    CHECK(prlimit(node.pid, RLIMIT_FSIZE, &limit, NULL) == 0, "prlimit");
}

/* What cannot be stored did not happen: nobody is signed in, and nobody signed out. */
static void a_store_that_fails_changes_no_session(void **state)
{
    struct browser b = browser_signed_in(&node, node.token);
    char path[100];
    REPLY r = {0};
    (void)state;

    browser_send(&b, &r, "GET", "/v1/sessions", "", NULL);
    int64_t before = (int64_t)at(&r, "sessions")->count;
    (void)snprintf(path, sizeof path, "/v1/sessions/%s", text_at(&r, "sessions.0.id"));
    limit_files(1);
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        const char *where = strstr(routes[i].path, "nothing") ? path : routes[i].path;
        if (!routes[i].writes)
            continue;
        if (strcmp(routes[i].method, "POST") == 0)
            post(&node, &r, where, "{}");
        else
            browser_send(&b, &r, routes[i].method, where, CONSOLE, NULL);
        CHECK(r.status == 503, "%s %s: %d", routes[i].method, where, r.status);
        CHECK(!head_has(&r, "Set-Cookie"), "%.*s", SLICE_ARG(r.head));
    }
    limit_files(RLIM_INFINITY);
    wait_until_ready(&node);
    browser_send(&b, &r, "GET", "/v1/sessions", "", NULL);
    EXPECT(&r, 200);
    CHECK((int64_t)at(&r, "sessions")->count == before, "%.*s", SLICE_ARG(r.body));
}

/* ---- ends ---- */

static void a_session_ends_when_its_user_signs_out(void **state)
{
    struct browser b = browser_signed_in(&node, node.token);
    struct browser other = browser_signed_in(&node, node.token);
    REPLY r = {0};
    (void)state;

    browser_send(&b, &r, "DELETE", "/v1/session", CONSOLE, NULL);
    EXPECT(&r, 204);
    char *cookie = reply_cookie(&r);
    CHECK(strcmp(cookie, "intact_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0") == 0,
          "%s", cookie);
    free(cookie);
    CHECK(browser_status(&b, "GET", "/v1/session") == 401, "it goes on");
    CHECK(browser_status(&b, "DELETE", "/v1/session") == 401, "there is none");
    CHECK(browser_status(&other, "GET", "/v1/session") == 200, "that of another browser");
    send_as(&node, &r, "DELETE", "/v1/session", NULL, SLICE_NONE);
    expect_problem(&r, 404, "no-such-session");
}

static void a_session_ends_with_the_text_of_its_token(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "gone", "\"read\"", NULL, token);
    struct browser b = browser_signed_in(&node, token);
    const struct node gone = as(&node, token);
    char *code = make_code(&gone);
    struct browser by_code = {.node = &node};
    SSE s = {0};
    SSE_EVENT e = {0};
    sse_open(&gone, &s, "/v1/events", NULL);
    sse_head(&s);
    send_as(&node, &r, "DELETE", "/v1/tokens/gone", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    CHECK(browser_status(&b, "GET", "/v1/session") == 401, "it goes on");
    use_code(&by_code, &r, code);
    EXPECT(&r, 401);
    free(code);
    CHECK(!sse_next(&s, &e), "the stream goes on");
    make_token(&node, "gone", "\"admin\"", NULL, token);
    CHECK(browser_status(&b, "GET", "/v1/session") == 401, "another token of the name");

    make_token(&node, "turned", "\"read\"", NULL, token);
    b = browser_signed_in(&node, token);
    post(&node, &r, "/v1/tokens/turned/rotate", "{\"keep\": \"1h\"}");
    EXPECT(&r, 200);
    CHECK(browser_status(&b, "GET", "/v1/session") == 200, "the text before is still good");
    post(&node, &r, "/v1/tokens/turned/rotate", "{\"keep\": \"0s\"}");
    EXPECT(&r, 200);
    CHECK(browser_status(&b, "GET", "/v1/session") == 401, "it is no more");

    make_token(&node, "brief", "\"read\"", "2s", token);
    b = browser_signed_in(&node, token);
    WAIT_FOR(browser_status(&b, "GET", "/v1/session") == 401, "the token has expired");
}

static int64_t session_count(const struct reply *r)
{
    const struct json *list = at(r, "sessions");

    CHECK(list, "%.*s", SLICE_ARG(r->body));
    return (int64_t)list->count;
}

static void sessions_are_listed_and_ended(void **state)
{
    char ann[64];
    char bob[64];
    char path[100];
    REPLY r = {0};
    (void)state;

    make_token(&node, "list-ann", "\"read\"", NULL, ann);
    make_token(&node, "list-bob", "\"operate\"", NULL, bob);
    struct browser a = browser_signed_in(&node, ann);
    struct browser b = browser_signed_in(&node, bob);
    browser_send(&a, &r, "GET", "/v1/sessions", "", NULL);
    EXPECT(&r, 200);
    assert_int_equal(session_count(&r), 1);
    EXPECT_TEXT(&r, "sessions.0.token", "list-ann");
    EXPECT_TEXT(&r, "sessions.0.address", "127.0.0.1");
    EXPECT_RAW(&r, "sessions.0.current", "true");
    CHECK(time_at(&r, "sessions.0.expires_at") > now_ms(), "%.*s", SLICE_ARG(r.body));
    (void)snprintf(path, sizeof path, "/v1/sessions/%s", text_at(&r, "sessions.0.id"));
    browser_send(&b, &r, "DELETE", path, CONSOLE, NULL);
    expect_problem(&r, 404, "no-such-session"); /* nobody learns of those of others */
    CHECK(browser_status(&a, "GET", "/v1/session") == 200, "it was ended by another one");
    get(&node, &r, "/v1/sessions");
    CHECK(session_count(&r) >= 2, "the admin sees all: %.*s", SLICE_ARG(r.body));
    CHECK(!memmem(r.body.ptr, r.body.len, "\"code\"", 6), "%.*s", SLICE_ARG(r.body));
    send_as(&node, &r, "DELETE", path, NULL, SLICE_NONE);
    EXPECT(&r, 204);
    CHECK(!head_has(&r, "Set-Cookie"), "the admin's own is another one");
    CHECK(browser_status(&a, "GET", "/v1/session") == 401, "it goes on");
    send_as(&node, &r, "DELETE", path, NULL, SLICE_NONE);
    expect_problem(&r, 404, "no-such-session");
    browser_send(&b, &r, "GET", "/v1/sessions", "", NULL);
    (void)snprintf(path, sizeof path, "/v1/sessions/%s", text_at(&r, "sessions.0.id"));
    browser_send(&b, &r, "DELETE", path, CONSOLE, NULL);
    EXPECT(&r, 204);
    CHECK(head_has(&r, "Set-Cookie: intact_session=; "), "its own: %.*s", SLICE_ARG(r.head));
    get(&node, &r, "/v1/audit?limit=1");
    EXPECT_TEXT(&r, "entries.0.verb", "session.delete");
    EXPECT_TEXT(&r, "entries.0.actor", "list-bob");
}

static void one_token_has_not_too_many_of_them(void **state)
{
    char token[64];
    struct browser first;
    struct browser last;
    REPLY r = {0};
    (void)state;

    make_token(&node, "busy", "\"read\"", NULL, token);
    first = browser_signed_in(&node, token);
    for (int i = 0; i < 20; i++)
        last = browser_signed_in(&node, token);
    CHECK(browser_status(&first, "GET", "/v1/session") == 401, "the oldest one ends");
    CHECK(browser_status(&last, "GET", "/v1/session") == 200, "the newest one");
    browser_send(&last, &r, "GET", "/v1/sessions", "", NULL);
    assert_int_equal(session_count(&r), 20);
}

static void streams_are_for_sessions_too(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "watcher", "\"read\"", NULL, token);
    struct browser b = browser_signed_in(&node, token);
    CLEANUP(buf_fini) struct buf out = {0};
    CLEANUP(buf_fini) struct buf heard = {0};
    int fd = dial(&node);
    buf_fmt(&out, "GET /v1/events HTTP/1.0\r\nHost: 127.0.0.1\r\n%s\r\n", b.cookie);
    say(fd, buf_view(&out));
    let_read(&node);
    browser_send(&b, &r, "DELETE", "/v1/session", CONSOLE, NULL);
    EXPECT(&r, 204);
    hear_all(fd, &heard); /* it has an end */
    CHECK(status_heard(&heard, 0) == 200, "%s", heard.ptr);
}

static void sessions_survive_a_restart(void **state)
{
    struct browser b = browser_signed_in(&node, node.token);
    char *code = make_code(&node);
    struct browser by_code = {.node = &node};
    REPLY r = {0};
    (void)state;

    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    CHECK(browser_status(&b, "GET", "/v1/tokens") == 200, "it has ended");
    use_code(&by_code, &r, code);
    EXPECT(&r, 201);
    free(code);
}

static void behind_a_proxy_the_cookie_goes_through_tls_alone(void **state)
{
    struct browser b = {.node = &node};
    char line[300];
    REPLY r = {0};
    (void)state;

    node_stop(&node);
    node_start(&node, FLAGS("--behind-proxy", "--host", "intact.example.org"));
    (void)snprintf(line, sizeof line,
                   "Origin: https://127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n", node.port,
                   node.token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    EXPECT(&r, 201);
    char *cookie = reply_cookie(&r);
    CHECK(strncmp(cookie, "__Host-intact_session=", 22) == 0, "%s", cookie);
    CHECK(strstr(cookie, "; Path=/; HttpOnly; SameSite=Strict; ") && strstr(cookie, "; Secure"),
          "%s", cookie);
    free(cookie);
    browser_take_cookie(&b, &r);
    CHECK(browser_status(&b, "GET", "/v1/session") == 200, "it is taken");
    (void)snprintf(line, sizeof line, "X-Forwarded-Proto: https\r\nAuthorization: Bearer %s\r\n",
                   node.token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    cookie = reply_cookie(&r);
    CHECK(strncmp(cookie, "__Host-", 7) == 0, "%s", cookie);
    free(cookie);
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", node.token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    cookie = reply_cookie(&r);
    CHECK(strncmp(cookie, "intact_session=", 15) == 0, "%s", cookie);
    free(cookie);
}

static void without_tokens_nobody_signs_in(void **state)
{
    const struct browser b = {.node = &node};
    REPLY r = {0};
    (void)state;

    node_stop(&node);
    node_start(&node, FLAGS("--open"));
    node.token[0] = 0;
    static const char *const calls[][2] = {{"GET", "/v1/session"},
                                           {"POST", "/v1/session"},
                                           {"POST", "/v1/session/codes"}};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        browser_send(&b, &r, calls[i][0], calls[i][1], "", NULL);
        EXPECT(&r, 200);
        EXPECT_RAW(&r, "open", "true");
        EXPECT_RAW(&r, "roles", "[\"admin\"]");
        EXPECT_TEXT(&r, "name", "open");
        CHECK(!head_has(&r, "Set-Cookie"), "%.*s", SLICE_ARG(r.head));
    }
    browser_send(&b, &r, "GET", "/v1/sessions", "", NULL);
    EXPECT(&r, 200);
}

/* ---- several nodes ---- */

static void sessions_are_those_of_all_nodes(void **state)
{
    struct node nodes[2];
    REPLY r = {0};
    (void)state;

    nodes_init(nodes, 2);
    nodes_start(nodes, 2, FLAGS("--log", "warn", "--scan-every", "100ms"));
    struct browser here = browser_signed_in(&nodes[0], nodes[0].token);
    struct browser there = here;
    there.node = &nodes[1];
    CHECK(browser_status(&there, "GET", "/v1/tokens") == 200, "the other node does not know it");
    char *code = make_code(&nodes[0]);
    struct browser by_code = {.node = &nodes[1]};
    use_code(&by_code, &r, code);
    EXPECT(&r, 201);
    by_code.node = &nodes[0];
    CHECK(browser_status(&by_code, "GET", "/v1/session") == 200, "the first node does not know it");
    use_code(&by_code, &r, code);
    EXPECT(&r, 401);
    free(code);
    CHECK(browser_status(&there, "DELETE", "/v1/session") == 204, "ended at the other node");
    WAIT_FOR(browser_status(&here, "GET", "/v1/session") == 401, "the first node knows it");
    for (size_t i = 0; i < 2; i++) {
        node_stop(&nodes[i]);
        node_fini(&nodes[i]);
    }
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_exchanged_for_a_session),
        cmocka_unit_test(what_a_session_does_is_in_the_audit_under_its_token),
        cmocka_unit_test(a_code_signs_in_once),
        cmocka_unit_test(a_code_lasts_for_a_minute_and_a_session_for_hours),
        cmocka_unit_test(who_cannot_sign_in),
        cmocka_unit_test(asking_who_has_signed_in_is_no_refusal),
        cmocka_unit_test(a_change_needs_what_other_sites_cannot_send),
        cmocka_unit_test(other_cookies_let_nobody_in),
        cmocka_unit_test(every_route_refuses_strangers_pages_and_wrong_bodies),
        cmocka_unit_test(a_store_that_fails_changes_no_session),
        cmocka_unit_test(a_session_ends_when_its_user_signs_out),
        cmocka_unit_test(a_session_ends_with_the_text_of_its_token),
        cmocka_unit_test(sessions_are_listed_and_ended),
        cmocka_unit_test(one_token_has_not_too_many_of_them),
        cmocka_unit_test(streams_are_for_sessions_too),
        cmocka_unit_test(sessions_survive_a_restart),
        cmocka_unit_test(behind_a_proxy_the_cookie_goes_through_tls_alone),
        cmocka_unit_test(without_tokens_nobody_signs_in),
        cmocka_unit_test(sessions_are_those_of_all_nodes),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
