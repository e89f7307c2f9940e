/* Tests of the HTTP agent's pure parts: requests (form.c), the meaning of answers
 * (http_answer.c), the configuration (http_config.c) and secrets (http_secrets.c). No service is
 * called. */

#include "base/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/http/http_answer.h"
#include "agents/http/http_config.h"
#include "agents/http/http_secrets.h"
#include "base/when.h"

/* ---- requests ---- */

static enum err form_of(const char *json, struct arena *a, struct form *f, struct error *e)
{
    struct json *j = NULL;

    CHECK(json_parse(a, slice_of(json), &j, NULL) == ERR_OK, "%s", json);
    *e = (struct error){0};
    return form_read(j, a, f, e);
}

static void requests_are_read(void **state)
{
    static const struct {
        const char *json, *method, *path, *query, *body;
    } cases[] = {
        {"{\"path\": \"/a\"}", "POST", "/a", "", NULL},
        {"{\"path\": \"/a/%20b\", \"method\": \"GET\"}", "GET", "/a/%20b", "", NULL},
        {"{\"path\": [\"/a/\", \"b/c?d#e%\", \"/f\"]}", "POST", "/a/b%2Fc%3Fd%23e%25/f", "", NULL},
        {"{\"path\": [\"/a/\", 17, \"/\", true]}", "POST", "/a/17/true", "", NULL},
        {"{\"path\": [\"/\", \"\\u00fc \\n\"]}", "POST", "/%C3%BC%20%0A", "", NULL},
        {"{\"path\": \"/\\u00fc\"}", "POST", "/%C3%BC", "", NULL},
        {"{\"path\": [\"/\", \"...\"]}", "POST", "/...", "", NULL},
        {"{\"path\": \"/a\", \"query\": {\"q\": \"a&b=c\", \"n\": 1, \"x\": null, \"l\": [1, "
         "\"b\"]}}",
         "POST", "/a", "q=a%26b%3Dc&n=1&l=1&l=b", NULL},
        {"{\"path\": \"/a\", \"body\": {\"x\": [1, 2]}}", "POST", "/a", "", "{\"x\": [1, 2]}"},
        {"{\"path\": \"/a\", \"body\": null}", "POST", "/a", "", "null"},
        {"{\"path\": \"/a\", \"headers\": {\"content-type\": \"text/plain\"}, \"body\": \"x y\"}",
         "POST", "/a", "", "x y"},
        {"{\"path\": \"/a\", \"headers\": {\"Content-Type\": "
         "\"application/x-www-form-urlencoded\"}, "
         "\"body\": {\"a\": \"b c\", \"d\": 1}}",
         "POST", "/a", "", "a=b%20c&d=1"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct form f;
        struct error e;
        CHECK(form_of(cases[i].json, &a, &f, &e) == ERR_OK, "%s: %s", cases[i].json, e.text);
        CHECK(slice_is(f.method, cases[i].method), "%s", cases[i].json);
        CHECK(slice_is(f.path, cases[i].path), "%s: %.*s", cases[i].json, SLICE_ARG(f.path));
        CHECK(slice_is(f.query, cases[i].query), "%s: %.*s", cases[i].json, SLICE_ARG(f.query));
        CHECK(slice_eq(f.body, slice_of(cases[i].body)), "%s: %.*s", cases[i].json,
              SLICE_ARG(f.body));
    }
}

static void requests_that_cannot_be_sent(void **state)
{
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"null", "the input is null"},
        {"{}", "path: found nothing"},
        {"{\"path\": \"a\"}", "begins otherwise"},
        {"{\"path\": \"\"}", "begins otherwise"},
        {"{\"path\": []}", "begins otherwise"},
        {"{\"path\": 1}", "path: found 1"},
        {"{\"path\": \"/a b\"}", "without spaces"},
        {"{\"path\": \"/a?b\"}", "without spaces"},
        {"{\"path\": \"/a#b\"}", "without spaces"},
        {"{\"path\": \"/a\\\\b\"}", "without spaces"},
        {"{\"path\": \"/../b\"}", "\"..\" as a part"},
        {"{\"path\": \"/a/%2e%2E\"}", "\"..\" as a part"},
        {"{\"path\": \"/a/./b\"}", "as a part"},
        {"{\"path\": \"/a/..%2Fb\"}", "as a part"}, /* to servers that decode first */
        {"{\"path\": \"/a/..;x=1/b\"}", "as a part"},
        {"{\"path\": [\"/a/\", \"../../admin\", \"/f\"]}", "path[1]"},
        {"{\"path\": [\"/a/\", \"b/..\"]}", "path[1]"},
        {"{\"path\": [\"/a/\", \"b\\\\..\"]}", "path[1]"},
        {"{\"path\": [\"/a/\", \"b/..c/...\"]}", NULL},
        {"{\"path\": [\"/\", \"..\"]}", "path[1]"},
        {"{\"path\": [\"/\", \".\"]}", "path[1]"},
        {"{\"path\": [\"/\", \"\"]}", "path[1]"},
        {"{\"path\": [\"/\", null]}", "path[1]"},
        {"{\"path\": [\"/\", {}]}", "path[1]"},
        {"{\"path\": [\"/.\", \".x\"]}", NULL},
        {"{\"path\": [\"/.\", \"%\", \"/\"]}", NULL},
        {"{\"path\": [\"/.\", \"x\", \"/..\"]}", "as a part"},
        {"{\"path\": \"/\", \"method\": \"BREW\"}", "method: found \"BREW\""},
        {"{\"path\": \"/\", \"query\": []}", "query: found an array"},
        {"{\"path\": \"/\", \"query\": {\"a\": {}}}", "query.a"},
        {"{\"path\": \"/\", \"headers\": {\"Host\": \"x\"}}", "Host"},
        {"{\"path\": \"/\", \"headers\": {\"content-LENGTH\": \"1\"}}", "content-LENGTH"},
        {"{\"path\": \"/\", \"headers\": {\"Intact-Task\": \"1\"}}", "Intact-Task"},
        {"{\"path\": \"/\", \"headers\": {\"Idempotency-Key\": \"1\"}}", "Idempotency-Key"},
        {"{\"path\": \"/\", \"headers\": {\"a b\": \"1\"}}", "letters, digits"},
        {"{\"path\": \"/\", \"headers\": {\"a:\": \"1\"}}", "letters, digits"},
        {"{\"path\": \"/\", \"headers\": {\"\": \"1\"}}", "1 to 128"},
        {"{\"path\": \"/\", \"headers\": {\"a\": \"b\\r\\nc: d\"}}", "line break"},
        {"{\"path\": \"/\", \"headers\": {\"a\": \"b\\nc\"}}", "line break"},
        {"{\"path\": \"/\", \"headers\": {\"a\": \"\\u007f\"}}", "line break"},
        {"{\"path\": \"/\", \"headers\": {\"a\": []}}", "headers.a"},
        {"{\"path\": \"/\", \"permanent\": [99]}", "permanent"},
        {"{\"path\": \"/\", \"completed\": 200}", "completed"},
        {"{\"path\": \"/\", \"output\": {}}", "output"},
        {"{\"path\": \"/\", \"amount\": 3}", "\"amount\""},
        {"{\"path\": \"/\", \"headers\": {\"Content-Type\": \"text/csv\"}, \"body\": {}}", "body"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct form f;
        struct error e;
        enum err err = form_of(cases[i].json, &a, &f, &e);
        CHECK((err == ERR_OK) == (cases[i].part == NULL), "%s: %s", cases[i].json, e.text);
        CHECK(!cases[i].part || strstr(e.text, cases[i].part), "%s: %s", cases[i].json, e.text);
    }
}

/* ---- answers ---- */

static void statuses_mean_what_they_should(void **state)
{
    static const struct {
        long status;
        const char *head;
        enum answer_kind kind;
    } cases[] = {
        {200, "", ANSWER_COMPLETED}, {201, "", ANSWER_COMPLETED},
        {202, "", ANSWER_COMPLETED}, {202, "Location: /x\r\n", ANSWER_WORKING},
        {204, "", ANSWER_COMPLETED}, {299, "", ANSWER_COMPLETED},
        {301, "", ANSWER_REDIRECT},  {304, "", ANSWER_REDIRECT},
        {400, "", ANSWER_RETRYABLE}, {404, "", ANSWER_RETRYABLE},
        {408, "", ANSWER_RETRYABLE}, {409, "", ANSWER_PERMANENT},
        {422, "", ANSWER_PERMANENT}, {425, "", ANSWER_WORKING},
        {429, "", ANSWER_RETRYABLE}, {500, "", ANSWER_RETRYABLE},
        {503, "", ANSWER_RETRYABLE}, {599, "", ANSWER_RETRYABLE},
    };
    struct statuses none[STATUS_LISTS] = {0};
    struct statuses first[STATUS_LISTS] = {0};
    struct statuses then[STATUS_LISTS] = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct http_answer answer = {.status = cases[i].status};
        answer_read_head(&answer, slice_of(cases[i].head), &a);
        CHECK(answer_kind(&answer, none, none) == cases[i].kind, "%ld", cases[i].status);
    }
    statuses_add(&first[STATUS_COMPLETED], 404);
    statuses_add(&then[STATUS_PERMANENT], 404);
    statuses_add(&then[STATUS_RETRYABLE], 409);
    statuses_add(&then[STATUS_ELSEWHERE], 202);
    struct http_answer answer = {.status = 404};
    CHECK(answer_kind(&answer, first, then) == ANSWER_COMPLETED, "the step's list is first");
    CHECK(answer_kind(&answer, none, then) == ANSWER_PERMANENT, "the service's list");
    answer.status = 409;
    CHECK(answer_kind(&answer, first, then) == ANSWER_RETRYABLE, "against what holds otherwise");
    answer.status = 202;
    CHECK(answer_kind(&answer, first, then) == ANSWER_ELSEWHERE, "elsewhere");
    CHECK(answer_denies_effect(404) && answer_denies_effect(499), "4xx");
    CHECK(!answer_denies_effect(408) && !answer_denies_effect(500) && !answer_denies_effect(302),
          "others");
}

static void retry_after_is_read(void **state)
{
    static const int64_t now = INT64_C(1769853600000); /* 2026-01-31T10:00:00Z */
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"0", 0},
                 {"120", 120000},
                 {"86399", MS_PER_D - 1000},
                 {"86401", MS_PER_D},
                 {"999999999999", MS_PER_D},
                 {"Sun, 01 Feb 2026 10:00:01 GMT", MS_PER_D},
                 {"Fri, 31 Dec 9999 23:59:59 GMT", MS_PER_D},
                 {"Sat, 31 Jan 2026 10:00:10 GMT", 10000},
                 {"Saturday, 31-Jan-26 10:00:10 GMT", 10000},
                 {"Sat Jan 31 10:00:10 2026", 10000},
                 {"Sat, 31 Jan 2026 09:00:00 GMT", 0},
                 {"", -1},
                 {"soon", -1},
                 {"-5", -1},
                 {"1.5", -1},
                 {"10s", -1},
                 {"9999999999999999999999999999999999999999999999999999999999999999", -1}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(answer_retry_after(slice_of(cases[i].text), now) == cases[i].ms, "%s: %" PRId64,
              cases[i].text, answer_retry_after(slice_of(cases[i].text), now));
    CHECK(answer_retry_after(SLICE_NONE, now) == -1, "none");
}

static void heads_are_read(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct http_answer answer = {.status = 200};
    (void)state;

    answer_read_head(
        &answer,
        SLICE("HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-A:  b \r\n"
              "x-a: c\r\nno colon\r\n: nameless\r\nBad: \xff\r\nControl: \x01\r\nLast: 1"),
        &a);
    CHECK(slice_is(answer_header(&answer, "x-a"), "b, c"), "joined");
    CHECK(slice_is(answer_header(&answer, "last"), "1"), "without an end");
    CHECK(!answer_header(&answer, "x-early").ptr, "of an earlier head");
    CHECK(!answer_header(&answer, "bad").ptr && !answer_header(&answer, "control").ptr, "unsound");
    size_t count = 0;
    for (const struct header *h = answer.headers; h; h = h->next)
        count++;
    CHECK(count == 2, "%zu", count);
}

static void quotes_are_one_sound_line(void **state)
{
    static const char bad[] = "a\r\n\t b\x01\xff\xc3(\xe2\x82\xac"
                              "c\x7f";
    (void)state;

    for (size_t max = 0; max < sizeof bad + 3; max++) {
        CLEANUP(buf_fini) struct buf b = {0};
        answer_quote(&b, slice_of(bad), max);
        for (size_t i = 0; i < b.len; i++)
            CHECK((unsigned char)b.ptr[i] >= ' ' && b.ptr[i] != 0x7f, "%zu", max);
        if (max >= sizeof bad)
            CHECK(slice_is(buf_view(&b), "a b ?"
                                         "?(\xe2\x82\xac"
                                         "c "),
                  "%s", b.ptr);
    }
}

/* ---- configuration ---- */

static struct http_config *config_of(const char *text, struct mistakes *m)
{
    struct http_config *c = NULL;

    enum err err = http_config_parse(slice_of(text), SOURCE_GUESS, &c, m);
    CHECK((err == ERR_OK) == (c != NULL) && (err == ERR_OK) == (m->count == 0), "%s", text);
    return c;
}

static void a_whole_configuration(void **state)
{
    static struct mistakes m;
    (void)state;

    struct http_config *c =
        config_of("intact_http: 1\n"
                  "places: 7\n"
                  "private: [10.0.0.0/8]\n"
                  "secrets:\n"
                  "  key: {file: /run/key}\n"
                  "  other: {env: OTHER}\n"
                  "services:\n"
                  "  payment:\n"
                  "    url: https://api.example.org/v1//\n"
                  "    headers: {authorization: 'Bearer ${ secret.key }'}\n"
                  "    query: {k: '${secret.other}'}\n"
                  "    tls: {ca: ca.pem, cert: c.pem, key: k.pem}\n"
                  "    proxy: http://proxy:3128\n"
                  "    http2: false\n"
                  "    places: 9\n"
                  "    connections: 8\n"
                  "    redirects: 2\n"
                  "    connect_timeout: 2s\n"
                  "    timeout: 10s\n"
                  "    retry: {attempts: 5, wait: 1s, factor: 1.5, max_wait: 3s}\n"
                  "    max_answer: 64KiB\n"
                  "    permanent: [404]\n"
                  "    private: [127.0.0.1]\n"
                  "    actions:\n"
                  "      charge: {path: '/a/${ .input.b }', output: .body.id}\n"
                  "  mail: {url: 'http://10.1.2.3:25'}\n",
                  &m);
    CHECK(c && c->service_count == 2, "%zu mistakes: %s: %s, expected %s", m.count, m.list[0].path,
          m.list[0].found, m.list[0].expected);
    const struct service_config *s = c->services;
    CHECK(slice_is(s->url, "https://api.example.org/v1"), "%.*s", SLICE_ARG(s->url));
    CHECK(slice_is(s->origin, "https://api.example.org:443"), "%.*s", SLICE_ARG(s->origin));
    CHECK(s->places == 9 && s->connections == 8 && s->redirects == 2 && !s->net.http2, "numbers");
    CHECK(s->net.connect_timeout_ms == 2000 && s->timeout_ms == 10000, "times");
    CHECK(s->retry.attempts == 5 && s->retry.factor_milli == 1500 && s->retry.max_wait_ms == 3000,
          "retry");
    CHECK(s->net.answer_max == 65536 && s->net.networks.count == 2 && s->actions, "others");
    CHECK(s->next->places == 7 && s->next->net.networks.count == 1 && s->next->net.http2,
          "the second");
    http_config_free(c);
}

static void every_mistake_in_one_go(void **state)
{
    static const struct {
        const char *text, *path, *part;
    } cases[] = {
        {"[]", "", "an object"},
        {"{}", "intact_http", "a key"},
        {"intact_http: 2\nservices: {a: {url: 'https://x.org'}}", "intact_http", "1, the version"},
        {"intact_http: 1\nservices: {}", "services", "1 to 1000"},
        {"intact_http: 1\nservices: {A: {url: 'https://x.org'}}", "services.A", "a name"},
        {"intact_http: 1\nservices: {a: {}}", "services.a.url", "a key"},
        {"intact_http: 1\nservices: {a: {url: x.org}}", "services.a.url", "a URL"},
        {"intact_http: 1\nservices: {a: {url: 'file:///etc'}}", "services.a.url", "a URL"},
        {"intact_http: 1\nservices: {a: {url: 'https://u:p@x.org'}}", "services.a.url", "a secret"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org/?a'}}", "services.a.url", "query"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org/../a'}}", "services.a.url", "a path"},
        {"intact_http: 1\nservices: {a: {url: 'http://127.0.0.1'}}", "services.a.url", "private"},
        {"intact_http: 1\nservices: {a: {url: 'http://localhost:1'}}", "services.a.url", "private"},
        {"intact_http: 1\nservices: {a: {url: 'http://[::1]:1'}}", "services.a.url", "private"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', header: {}}}", "services.a.header",
         "did you mean \"headers\""},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', headers: {Host: y}}}",
         "services.a.headers.Host", "does not set"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', headers: {x: '${ secret.k }'}}}",
         "services.a.headers.x", "in secrets"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', headers: {x: '${ .input }'}}}",
         "services.a.headers.x", "no task"},
        {"intact_http: 1\nsecrets: {k: abc}\nservices: {a: {url: 'https://x.org'}}", "secrets.k",
         "which name its place"},
        {"intact_http: 1\nsecrets: {k: {}}\nservices: {a: {url: 'https://x.org'}}", "secrets.k",
         "either"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', proxy: 'http://u:p@y'}}",
         "services.a.proxy", "without a password"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', tls: {cert: x}}}", "services.a.tls",
         "beside each other"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', places: 0}}", "services.a.places",
         "from 1 to 1000"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', max_answer: 1GiB}}",
         "services.a.max_answer", "at most 64MiB"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', retry: {wait: 0s}}}",
         "services.a.retry.wait", "longer than 0"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', private: [x]}}",
         "services.a.private[0]", "a network"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', completed: [404], permanent: "
         "[404]}}",
         "services.a.permanent", "is also in completed"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', actions: {x: {}}}}",
         "services.a.actions.x.path", "a key"},
        {"intact_http: 1\nservices: {a: {url: 'https://x.org', actions: {x: {path: '/${ . '}}}}",
         "services.a.actions.x.path", ""},
    };
    static struct mistakes m;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool found = false;
        struct http_config *c = config_of(cases[i].text, &m);
        CHECK(!c, "%s", cases[i].text);
        for (size_t k = 0; k < m.count; k++)
            found |= strcmp(m.list[k].path, cases[i].path) == 0
                     && (strstr(m.list[k].expected, cases[i].part)
                         || strstr(m.list[k].found, cases[i].part));
        CHECK(found, "%s: %s: found %s, expected %s", cases[i].text, m.list[0].path,
              m.list[0].found, m.list[0].expected);
    }
    CHECK(!config_of("intact_http: 3\nplaces: x\nservices:\n  a: {url: x, http2: 1}\n  B: {}\n",
                     &m),
          "five mistakes");
    CHECK(m.count == 6, "%zu", m.count);
    CHECK(m.list[0].line == 1 && m.list[1].line == 2 && m.list[5].line == 5, "in their places");
}

/* ---- secrets ---- */

/* Escaped as by PHP, and as by Python. */
static void secrets_of_any_text_are_hidden_in_much_of_it(void **state)
{
    enum { TIMES = 1 << 20 };
    CLEANUP(buf_fini) struct buf faults = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    static struct mistakes m;
    (void)state;

    setenv("HTTP_AGENT_TEST", "a/\xc3\xbc\xf0\x9f\x98\x80\\", 1);
    struct http_config *c = config_of("{\"intact_http\": 1, \"secrets\": {\"k\": {\"env\": "
                                      "\"HTTP_AGENT_TEST\"}}, \"services\": {\"a\": {\"url\": "
                                      "\"https://x.org\"}}}",
                                      &m);
    struct secrets *s = secrets_load(c, &faults);
    CHECK(s, "%s", faults.ptr);
    buf_str(&b,
            "a\\/\\u00fc\\ud83d\\uDE00\\\\|a%2F%c3%bc%F0%9f%98%80%5c|a/\xc3\xbc\xf0\x9f\x98\x80\\");
    secrets_hide(s, &b);
    CHECK(slice_is(buf_view(&b), "***|***|***"), "%s", b.ptr);
    /* An answer full of near-matches must not take quadratic time. */
    buf_clear(&b);
    for (int i = 0; i < TIMES; i++)
        buf_str(&b, "a/\xc3\xbc\xf0\x9f\x98\x80\\%%%");
    secrets_hide(s, &b);
    CHECK(b.len == (size_t)TIMES * 6, "%zu", b.len);
    secrets_free(s);
    unsetenv("HTTP_AGENT_TEST");
    http_config_free(c);
}

static void secrets_are_filled_in_and_hidden(void **state)
{
    CLEANUP(buf_fini) struct buf faults = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    static struct mistakes m;
    static const char *const escaped[] = {"pass%22word",
                                          "***",
                                          "a=%70ass%22wor%64&b",
                                          "a=***&b",
                                          "\\u0070ass\\u0022word\\n",
                                          "***\\n",
                                          "pass%2",
                                          "pass%2",
                                          "\\pass\\",
                                          "\\pass\\",
                                          "pass%22%22word%",
                                          "pass%22%22word%",
                                          "passpass\"word\\\\",
                                          "pass***\\\\",
                                          "%%pass\"wordpass\"word",
                                          "%%******",
                                          "pass\\u00",
                                          "pass\\u00"};
    (void)state;

    setenv("HTTP_AGENT_TEST", "pass\"word", 1);
    struct http_config *c = config_of("{\"intact_http\": 1, \"secrets\": {\"k\": {\"env\": "
                                      "\"HTTP_AGENT_TEST\"}}, \"services\": {\"a\": {\"url\": "
                                      "\"https://x.org\"}}}",
                                      &m);
    struct secrets *s = secrets_load(c, &faults);
    CHECK(s, "%s", faults.ptr);
    secrets_fill(s, SLICE("a ${ secret.k } ${secret.k}b $ ${ x"), &b);
    CHECK(slice_is(buf_view(&b), "a pass\"word pass\"wordb $ ${ x"), "%s", b.ptr);
    buf_str(&b, "|pass\\\"word|pass\"wor");
    secrets_hide(s, &b);
    CHECK(slice_is(buf_view(&b), "a *** ***b $ ${ x|***|pass\"wor"), "%s", b.ptr);
    for (size_t i = 0; i < COUNT_OF(escaped); i += 2) {
        buf_clear(&b);
        buf_str(&b, escaped[i]);
        secrets_hide(s, &b);
        CHECK(slice_is(buf_view(&b), escaped[i + 1]), "%s: %s", escaped[i], b.ptr);
    }
    setenv("HTTP_AGENT_TEST", "another", 1);
    for (int turn = 0; turn < 2; turn++) { /* the previous secrets are kept once */
        struct secrets *fresh = secrets_load(c, &faults);
        CHECK(fresh, "%s", faults.ptr);
        secrets_replace(&s, fresh);
        buf_clear(&b);
        buf_str(&b, "pass\"word another");
        secrets_hide(s, &b);
        CHECK(slice_is(buf_view(&b), turn == 0 ? "*** ***" : "pass\"word ***"), "%s", b.ptr);
    }
    secrets_free(s);
    setenv("HTTP_AGENT_TEST", "two\nlines", 1);
    CHECK(!secrets_load(c, &faults) && strstr(faults.ptr, "one line"), "%s", faults.ptr);
    CHECK(!strstr(faults.ptr, "two"), "it is told: %s", faults.ptr);
    unsetenv("HTTP_AGENT_TEST");
    CHECK(!secrets_load(c, &faults) && strstr(faults.ptr, "not set"), "%s", faults.ptr);
    http_config_free(c);
}

static const char *fault_of(const char *path)
{
    const struct secret_place place = {.file = path};
    char *text = NULL;
    size_t len = 0;
    const char *fault = secret_place_load(&place, &text, &len);

    secret_wipe(text, len);
    return fault ? fault : "none";
}

static void secrets_are_in_regular_files(void **state)
{
    char folder[] = "/tmp/intact-secret-XXXXXX";
    (void)state;

    CHECK(mkdtemp(folder) && chdir(folder) == 0, "%s", folder);
    FILE *f = fopen("plain", "we");
    CHECK(f && fputs("pw\n", f) >= 0 && fclose(f) == 0, "plain");
    CHECK(mkfifo("pipe", 0600) == 0, "pipe"); /* no writer: opening it must not block */
    CHECK(symlink("plain", "link") == 0 && symlink("pipe", "piped") == 0, "links");
    static const struct {
        const char *path, *fault;
    } cases[] = {{"plain", "none"},          {"link", "none"},       {"pipe", "not a regular"},
                 {"piped", "not a regular"}, {".", "not a regular"}, {"/dev/null", "not a regular"},
                 {"gone", "No such file"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(strstr(fault_of(cases[i].path), cases[i].fault), "%s: %s", cases[i].path,
              fault_of(cases[i].path));
    CHECK(unlink("plain") == 0 && unlink("pipe") == 0 && unlink("link") == 0 && unlink("piped") == 0
              && rmdir(folder) == 0,
          "%s", folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(requests_that_cannot_be_sent),
        cmocka_unit_test(statuses_mean_what_they_should),
        cmocka_unit_test(retry_after_is_read),
        cmocka_unit_test(heads_are_read),
        cmocka_unit_test(quotes_are_one_sound_line),
        cmocka_unit_test(a_whole_configuration),
        cmocka_unit_test(secrets_are_in_regular_files),
        cmocka_unit_test(every_mistake_in_one_go),
        cmocka_unit_test(secrets_are_filled_in_and_hidden),
        cmocka_unit_test(secrets_of_any_text_are_hidden_in_much_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
