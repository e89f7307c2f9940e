/* Tests of the console's pages: how they are sent, to whom, and what keeps them from being used by
 * others. Sessions: session_test.c. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--host", "intact.example.org"));
    return 0;
}

/* ---- requests ---- */

#define HTML "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"

/* Sent without a token. */
static void fetch_as(struct reply *ret, const char *method, const char *path, const char *headers)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct buf heard = {0};
    int fd = dial(&node);

    buf_fmt(&b, "%s %s HTTP/1.1\r\n%s%sConnection: close\r\n\r\n", method, path,
            strstr(headers, "Host:") ? "" : "Host: localhost\r\n", headers);
    say(fd, buf_view(&b));
    hear_all(fd, &heard);
    reply_fini(ret);
    ret->raw = heard.ptr;
    const char *end = heard.len > 0 ? strstr(heard.ptr, "\r\n\r\n") : NULL;
    CHECK(end, "%s %s: no answer", method, path);
    size_t head = (size_t)(end - heard.ptr) + 4;
    ret->head = (struct slice){heard.ptr, head};
    ret->body = (struct slice){heard.ptr + head, heard.len - head};
    ret->status = status_heard(&heard, 0);
}

static void page(struct reply *ret, const char *path)
{
    fetch_as(ret, "GET", path, HTML);
}

static bool body_has(const struct reply *r, const char *text)
{
    return memmem(r->body.ptr, r->body.len, text, strlen(text)) != NULL;
}

/* The value of a field of the answer. To be freed. */
static char *field(const struct reply *r, const char *name)
{
    char line[80];

    (void)snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *at = memmem(r->head.ptr, r->head.len, line, strlen(line));
    CHECK(at, "no %s: %.*s", name, SLICE_ARG(r->head));
    at += strlen(line);
    char *value = strndup(at, strcspn(at, "\r"));
    CHECK(value, "no memory");
    return value;
}

/* The first asset with that ending that the page names. To be freed. */
static char *asset(const char *ending)
{
    REPLY r = {0};
    char *path = NULL;

    page(&r, "/");
    for (const char *at = r.body.ptr; !path && (at = strstr(at, "\"/assets/")); at++) {
        size_t len = strcspn(at + 1, "\"");
        if (len > strlen(ending)
            && memcmp(at + 1 + len - strlen(ending), ending, strlen(ending)) == 0)
            path = strndup(at + 1, len);
    }
    CHECK(path, "the page names no %s: %.*s", ending, SLICE_ARG(r.body));
    return path;
}

/* ---- pages ---- */

static void every_address_of_a_page_is_answered_with_the_document(void **state)
{
    static const char *const paths[] = {"/",
                                        "/tasks",
                                        "/tasks/order-1",
                                        "/tasks/a%2Fb",
                                        "/approvals",
                                        "/signin",
                                        "/workflows/trip",
                                        "/nowhere",
                                        "/tasks?state=error&workflow=trip",
                                        "/index.html"};
    REPLY first = {0};
    (void)state;

    page(&first, "/");
    EXPECT(&first, 200);
    CHECK(body_has(&first, "<!doctype html>"), "%.*s", SLICE_ARG(first.body));
    CHECK(head_has(&first, "Content-Type: text/html; charset=utf-8\r\n"), "%s", first.raw);
    CHECK(head_has(&first, "Cache-Control: no-cache\r\n"), "%s", first.raw);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        REPLY r = {0};
        page(&r, paths[i]);
        EXPECT(&r, 200);
        CHECK(slice_eq(r.body, first.body), "%s: another document", paths[i]);
    }
}

static void only_a_browser_that_wants_a_page_gets_one(void **state)
{
    static const struct {
        const char *method, *path, *headers;
        int status;
    } cases[] = {
        {"GET", "/", "", 401},
        {"GET", "/", "Accept: */*\r\n", 401},
        {"GET", "/", "Accept: application/json\r\n", 401},
        {"GET", "/", "Accept: text/html;q=0\r\n", 401},
        {"GET", "/", "Accept: text/html;q=0.000, */*\r\n", 401},
        {"GET", "/", "Accept: application/json, TEXT/HTML ;q=0.1\r\n", 200},
        {"POST", "/tasks", HTML "Content-Length: 0\r\n", 401},
        {"DELETE", "/", HTML, 401},
        {"GET", "/v1", HTML, 401},
        {"GET", "/v1/tasks", HTML, 401},
        {"GET", "/v1/nowhere", HTML, 401},
        {"GET", "/%76%31/tasks", HTML, 401},
        {"GET", "/metrics", HTML, 401},
        {"GET", "/healthz", HTML, 200},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fetch_as(&r, cases[i].method, cases[i].path, cases[i].headers);
        CHECK(r.status == cases[i].status, "%s %s %s: %d", cases[i].method, cases[i].path,
              cases[i].headers, r.status);
    }
    CHECK(!body_has(&r, "<!doctype html>"), "the API stays the API");
}

static void pages_run_only_what_is_theirs_and_in_no_frame(void **state)
{
    static const char *const wanted[] = {
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action "
        "'self'; frame-ancestors 'none'\r\n",
        "X-Frame-Options: DENY\r\n",
        "X-Content-Type-Options: nosniff\r\n",
        "Cross-Origin-Opener-Policy: same-origin\r\n",
        "Cross-Origin-Resource-Policy: same-origin\r\n",
        "Referrer-Policy: same-origin\r\n",
    };
    char *script = asset(".js");
    const char *const paths[] = {"/", "/tasks", script};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++)
        for (size_t k = 0; k < COUNT_OF(wanted); k++) {
            REPLY r = {0};
            page(&r, paths[i]);
            CHECK(head_has(&r, wanted[k]), "%s lacks %s: %.*s", paths[i], wanted[k],
                  SLICE_ARG(r.head));
        }
    free(script);
    REPLY r = {0};
    page(&r, "/");
    CHECK(!body_has(&r, "<style") && !body_has(&r, " style=") && !body_has(&r, "<script>")
              && !body_has(&r, "://"),
          "inline, or foreign: %.*s", SLICE_ARG(r.body));
}

/* ---- assets ---- */

static void assets_are_kept_for_ever(void **state)
{
    char *paths[] = {asset(".js"), asset(".css")};
    static const char *const types[] = {"text/javascript; charset=utf-8",
                                        "text/css; charset=utf-8"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        fetch_as(&r, "GET", paths[i], "");
        EXPECT(&r, 200);
        char *type = field(&r, "Content-Type");
        CHECK(strcmp(type, types[i]) == 0, "%s", type);
        free(type);
        CHECK(head_has(&r, "Cache-Control: public, max-age=31536000, immutable\r\n"), "%s", r.raw);
        CHECK(r.body.len > 0, "empty");
        free(paths[i]);
    }
}

static void no_path_leads_out_of_the_assets(void **state)
{
    static const char *const paths[] = {
        "/assets/",
        "/assets/main.js",
        "/assets/nothing-00000000.js",
        "/assets/../index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/index.html",
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets//etc/passwd",
        "/assets/.",
        "/assets/index.html",
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        page(&r, paths[i]);
        CHECK(r.status == 404, "%s: %d", paths[i], r.status);
        CHECK(body_has(&r, "There is no such file"), "%s: %.*s", paths[i], SLICE_ARG(r.body));
        CHECK(!head_has(&r, "immutable"), "%s is kept", paths[i]);
    }
    page(&r, "/../../etc/passwd");
    CHECK(r.status == 200 && body_has(&r, "<!doctype html>"), "a page like any other");
}

/* ---- what the browser has already ---- */

static void a_form_is_sent_that_the_client_knows(void **state)
{
    static const struct {
        const char *accepted, *coding; /* NULL: as it is */
    } cases[] = {
        {"", NULL},
        {"Accept-Encoding: gzip\r\n", "gzip"},
        {"Accept-Encoding: deflate, GZIP;q=0.5\r\n", "gzip"},
        {"Accept-Encoding: gzip;q=0\r\n", NULL},
        {"Accept-Encoding: gzip;q=0.0, identity\r\n", NULL},
        {"Accept-Encoding: identity\r\n", NULL},
        {"Accept-Encoding: *\r\n", NULL},
        {"Accept-Encoding: xgzip, gzipx\r\n", NULL},
        {"Accept-Encoding: ,,;, ;q=1,\r\n", NULL},
    };
    char *script = asset(".js");
    char *tags[2] = {NULL, NULL};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fetch_as(&r, "GET", script, cases[i].accepted);
        EXPECT(&r, 200);
        bool is_gzip = head_has(&r, "Content-Encoding: gzip\r\n");
        CHECK(is_gzip == (cases[i].coding != NULL), "%s: %.*s", cases[i].accepted,
              SLICE_ARG(r.head));
        CHECK(is_gzip == (r.body.len > 2 && memcmp(r.body.ptr, "\x1f\x8b", 2) == 0), "%s",
              cases[i].accepted);
        CHECK(head_has(&r, "Vary: Accept-Encoding\r\n"), "%.*s", SLICE_ARG(r.head));
        free(tags[is_gzip]);
        tags[is_gzip] = field(&r, "ETag");
    }
    CHECK(strcmp(tags[0], tags[1]) != 0, "two forms have one tag: %s", tags[0]);
    fetch_as(&r, "GET", script, "Accept-Encoding: gzip, deflate, br\r\n");
    char *tag = field(&r, "ETag");
    bool is_br = head_has(&r, "Content-Encoding: br\r\n"); /* if the build had brotli */
    CHECK(is_br || head_has(&r, "Content-Encoding: gzip\r\n"), "%.*s", SLICE_ARG(r.head));
    CHECK(strstr(tag, is_br ? "-br\"" : "-gzip\""), "%s", tag);
    free(tag);
    fetch_as(&r, "GET", script, "Accept-Encoding: gzip, br;q=0\r\n");
    CHECK(head_has(&r, "Content-Encoding: gzip\r\n"), "%.*s", SLICE_ARG(r.head));
    free(tags[0]);
    free(tags[1]);
    free(script);
}

static void what_a_browser_has_is_not_sent_again(void **state)
{
    static const struct {
        const char *fmt; /* %s: the tag */
        int status;
    } cases[] = {
        {"If-None-Match: %s\r\n", 304},
        {"If-None-Match: W/%s\r\n", 304},
        {"If-None-Match: \"other\", %s\r\n", 304},
        {"If-None-Match: *\r\n", 304},
        {"If-None-Match: \"other\"\r\n", 200},
        {"If-None-Match: x%s\r\n", 200},
        {"If-None-Match: %sx\r\n", 200},
        {"If-None-Match: \"\r\n", 200},
        {"If-None-Match: \r\n", 200},
        {"Range: bytes=0-1\r\n", 200},
        {"Range: bytes=5-\r\nIf-Range: %s\r\n", 200},
    };
    REPLY whole = {0};
    REPLY r = {0};
    (void)state;

    page(&whole, "/");
    char *tag = field(&whole, "ETag");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf headers = {0};
        buf_str(&headers, HTML);
        const char *at = strstr(cases[i].fmt, "%s");
        if (at)
            buf_fmt(&headers, "%.*s%s%s", (int)(at - cases[i].fmt), cases[i].fmt, tag, at + 2);
        else
            buf_str(&headers, cases[i].fmt);
        fetch_as(&r, "GET", "/tasks", headers.ptr);
        CHECK(r.status == cases[i].status, "%s: %d", headers.ptr, r.status);
        CHECK(r.status == 304 ? r.body.len == 0 : slice_eq(r.body, whole.body), "%s", headers.ptr);
        char *again = field(&r, "ETag");
        CHECK(strcmp(again, tag) == 0, "%s", again);
        free(again);
    }
    fetch_as(&r, "HEAD", "/", HTML);
    EXPECT(&r, 200);
    CHECK(r.body.len == 0, "HEAD has no body");
    char *len = field(&r, "Content-Length");
    CHECK(strtoul(len, NULL, 10) == whole.body.len, "%s", len);
    free(len);
    free(tag);
}

/* ---- who opens it ---- */

static void a_link_may_open_a_page_and_no_page_may_use_it(void **state)
{
    static const struct {
        const char *path, *headers; /* path NULL: a script */
        int status;
    } cases[] = {
        {"/tasks/x", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n", 200},
        {"/tasks/x", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Dest: document\r\n", 200},
        {"/tasks/x", "Sec-Fetch-Site: none\r\nSec-Fetch-Dest: document\r\n", 200},
        {"/tasks/x", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: iframe\r\n", 403},
        {"/tasks/x", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: empty\r\n", 403},
        {"/tasks/x", "Host: evil.example\r\n", 403},
        {"/tasks/x", "Host: intact.example.org\r\n", 200},
        {"/v1/tasks", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n", 403},
        {NULL, "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: script\r\n", 403},
        {NULL, "Origin: http://evil.example\r\n", 403},
        {NULL, "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n", 403},
        {NULL, "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Dest: script\r\n", 200},
    };
    char *script = asset(".js");
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf headers = {0};
        buf_fmt(&headers, HTML "%s", cases[i].headers);
        fetch_as(&r, "GET", cases[i].path ? cases[i].path : script, headers.ptr);
        CHECK(r.status == cases[i].status, "%s %s: %d", cases[i].path, cases[i].headers, r.status);
    }
    free(script);
}

#define LIKE_TOKEN "intact_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ"

static void a_token_in_an_address_is_refused_and_not_written_down(void **state)
{
    static const struct {
        const char *before, *after;
    } paths[] = {
        {"/?token=", ""},
        {"/tasks?state=error&access_token=", ""},
        {"/tasks/", ""},
        {"/assets/", ""},
        {"/", ""},
        {"/v1/tasks?token=", ""},
        {"/v1/tasks?ids=a,", ",b"},
        {"/v1/tasks?token=Bearer%20", ""},
        {"/v1/tasks/", ""},
        {"/v1/", "/x"},
        {"/metrics?", "=1"},
    };
    const char *secret = node.token + strlen("intact_");
    char path[400], hidden[200];
    REPLY r = {0};
    (void)state;

    (void)snprintf(hidden, sizeof hidden, "%%69ntact%%5f%s", secret);
    for (size_t i = 0; i < 2 * COUNT_OF(paths); i++) {
        (void)snprintf(path, sizeof path, "%s%s%s", paths[i / 2].before,
                       i % 2 ? hidden : node.token, paths[i / 2].after);
        page(&r, path);
        CHECK(r.status == 400 && body_has(&r, "token-in-address"), "%s: %d", path, r.status);
        CHECK(!body_has(&r, secret), "%.*s", SLICE_ARG(r.body));
    }
    const struct node with = as(&node, node.token);
    get(&with, &r, "/v1/tasks/%s", node.token);
    expect_problem(&r, 400, "token-in-address");
    (void)snprintf(path, sizeof path, "/v1/session?code=%s", node.token);
    fetch_as(&r, "POST", path, "Content-Length: 0\r\n");
    EXPECT(&r, 400);
    fetch_as(&r, "GET", "/v1/tasks", "");
    EXPECT(&r, 401);
    CHECK(node_log_has(&node, "event=request_refused"), "refusals are logged");
    CHECK(!node_log_has(&node, secret), "with the token");
}

static void an_id_that_looks_like_a_token_is_an_id(void **state)
{
    static const char *const pages[] = {"/tasks/" LIKE_TOKEN, "/tasks/intact_order-1",
                                        "/tasks/" LIKE_TOKEN "a", "/tasks/my-" LIKE_TOKEN};
    const struct node with = as(&node, node.token);
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        page(&r, pages[i]);
        CHECK(r.status == 200, "%s: %d", pages[i], r.status);
    }
    get(&with, &r, "/v1/tasks/%s", LIKE_TOKEN);
    EXPECT(&r, 404);
    get(&with, &r, "/v1/tasks?ids=%s", LIKE_TOKEN);
    EXPECT(&r, 200);
}

static void it_can_be_left_out(void **state)
{
    REPLY r = {0};
    (void)state;

    node_stop(&node);
    node_start(&node, FLAGS("--no-console"));
    page(&r, "/");
    EXPECT(&r, 401);
    page(&r, "/assets/x");
    EXPECT(&r, 401);
    get(&node, &r, "/");
    expect_problem(&r, 404, "no-route");
    post(&node, &r, "/v1/session/codes", "{}");
    expect_problem(&r, 404, "no-console");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_of_a_page_is_answered_with_the_document),
        cmocka_unit_test(only_a_browser_that_wants_a_page_gets_one),
        cmocka_unit_test(pages_run_only_what_is_theirs_and_in_no_frame),
        cmocka_unit_test(assets_are_kept_for_ever),
        cmocka_unit_test(no_path_leads_out_of_the_assets),
        cmocka_unit_test(a_form_is_sent_that_the_client_knows),
        cmocka_unit_test(what_a_browser_has_is_not_sent_again),
        cmocka_unit_test(a_link_may_open_a_page_and_no_page_may_use_it),
        cmocka_unit_test(a_token_in_an_address_is_refused_and_not_written_down),
        cmocka_unit_test(an_id_that_looks_like_a_token_is_an_id),
        cmocka_unit_test(it_can_be_left_out),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
