/* Links with which people decide, in the wrong hands: of persons who may not decide, forged, opened
 * by programs, sent by pages of others, with forms that are wrong or endless. */

#include "links_kit.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>

#define LINK_FORGED "no link of ours"

/* ---- in the wrong hands ---- */

static void who_may_not_decide_does_not_by_a_link(void **state)
{
    CLEANUP(buf_fini) struct buf id = {0};
    REPLY r = {0};
    char token[64];
    (void)state;

    buf_str(&id, asks_as(&ann, "other", "80"));
    makes(&ann, &r, id.ptr, "{}");
    expect_problem(&r, 403, "forbidden"); /* she submitted it */
    makes(&mailer, &r, id.ptr, "{\"person\": \"ann\"}");
    expect_problem(&r, 403, "forbidden");
    makes(&zoe, &r, id.ptr, "{}");
    expect_problem(&r, 404, "no-such-approval"); /* nobody asks her */
    makes(&mailer, &r, id.ptr, "{\"person\": \"zoe\"}");
    expect_problem(&r, 422, "bad-person");
    makes(&mailer, &r, id.ptr, "{\"person\": \"nobody\"}");
    expect_problem(&r, 422, "bad-person");
    makes(&mailer, &r, id.ptr, "{}"); /* it decides nothing itself */
    expect_problem(&r, 422, "bad-person");
    makes(&mailer, &r, id.ptr, "{\"person\": \"a b\"}");
    expect_problem(&r, 422, "bad-person");
    makes(&ann, &r, id.ptr, "{\"person\": \"bob@example.org\"}");
    expect_problem(&r, 403, "forbidden");
    makes(&mailer, &r, id.ptr, "{\"person\": \"ann\", \"for\": 1}");
    expect_problem(&r, 422, "unknown-member");
    /* who loses the right keeps links that are worth nothing */
    make_token(&node, "eve", "\"approve\"], \"groups\": [\"finance\"", NULL, token);
    char *of_eve = link_for(id.ptr, "eve");
    opens(&r, of_eve);
    expect_page(&r, 200, "Submitted by</dt><dd dir=\"auto\">ann");
    send_as(&node, &r, "DELETE", "/v1/tokens/eve", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    opens(&r, of_eve);
    expect_page(&r, 403, "You are not asked");
    CHECK(!body_has(&r, "Pay 80?"), "she learns nothing");
    sends(&r, of_eve, APPROVE);
    expect_page(&r, 403, "You are not asked");
    make_token(&node, "eve", "\"approve\"], \"groups\": [\"sales\"", NULL, token);
    sends(&r, of_eve, APPROVE);
    expect_page(&r, 403, "You are not asked");
    CHECK(agreed(id.ptr) == 0, "nobody decided");
    free(of_eve);
}

static void who_makes_links_sees_what_is_asked(void **state)
{
    const char *id = asks("two");
    REPLY r = {0};
    (void)state;

    get(&mailer, &r, "/v1/approvals?task=%s", id);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "approvals.0.task", id);
    get(&mailer, &r, "/v1/tasks/%s", id);
    expect_problem(&r, 403, "forbidden");
    char path[80];
    (void)snprintf(path, sizeof path, "/v1/approvals/%s/allow/approve", id);
    post(&mailer, &r, path, "{}");
    expect_problem(&r, 403, "forbidden");
    CHECK(agreed(id) == 0, "it decides nothing");
}

/* ---- forged ---- */

static void expect_forged(const char *path)
{
    REPLY r = {0};

    sends(&r, path, APPROVE);
    expect_page(&r, 404, LINK_FORGED);
    opens(&r, path);
    expect_page(&r, 404, LINK_FORGED);
}

/* Each character is changed, and each length is tried. */
static void changed_it_is_none(void **state)
{
    const char *id = asks("both");
    char *of_ann = link_for(id, "ann");
    size_t from = strlen("/v1/approvals/");
    size_t len = strlen(of_ann);
    REPLY r = {0};
    (void)state;

    for (size_t i = from; i < len; i++) {
        char was = of_ann[i];
        of_ann[i] = was == 'A' ? 'B' : 'A';
        expect_forged(of_ann);
        of_ann[i] = was;
    }
    for (size_t i = len - 1; i > from; i--) {
        char was = of_ann[i];
        of_ann[i] = 0;
        sends(&r, of_ann, APPROVE);
        expect_page(&r, 404, LINK_FORGED);
        of_ann[i] = was;
    }
    CHECK(agreed(id) == 0, "nothing was decided");
    opens(&r, of_ann);
    expect_page(&r, 200, "Pay 80?");
    free(of_ann);
}

static void what_is_no_link_is_refused(void **state)
{
    static const char *const paths[] = {
        "/v1/approvals/%FF%FE",
        "/v1/approvals/.",
        "/v1/approvals/a%2Fb%2Flink",
        "/v1/approvals/~~~~~",
        "/v1/approvals/AAAAAAAAAAAAAAAAAAAAAA",
        "/v1/approvals/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    };
    CLEANUP(buf_fini) struct buf longest = {0};
    const struct node stranger = as(&node, "");
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++)
        expect_forged(paths[i]);
    sends(&r, "/v1/approvals/%00", APPROVE);
    expect_problem(&r, 400, "malformed");
    buf_str(&longest, "/v1/approvals/");
    for (int i = 0; i < 4000; i++)
        buf_byte(&longest, 'A');
    expect_forged(longest.ptr);
    send_as(&stranger, &r, "DELETE", "/v1/approvals/~~~~~", NULL, SLICE_NONE);
    expect_problem(&r, 401, "unauthenticated");
    send_as(&stranger, &r, "OPTIONS", "/v1/approvals/~~~~~", NULL, SLICE_NONE);
    expect_problem(&r, 401, "unauthenticated");
    CHECK(!node_log_has(&node, "~~~~~"), "such paths are not logged");
}

/* The token of an attempt, the name of the next step: each is signed for what it is. */
static void a_token_of_something_else_is_none(void **state)
{
    CLEANUP(buf_fini) struct buf path = {0};
    REPLY r = {0};
    (void)state;

    (void)define(&node, "works",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    submit(&node, "works", "w-1");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    buf_fmt(&path, "/v1/approvals/%s", token);
    expect_forged(path.ptr);
    char *of_ann = link_for(asks("two"), "ann");
    buf_clear(&path);
    buf_fmt(&path, "/v1/attempts/%s", of_ann + strlen("/v1/approvals/"));
    post(&node, &r, path.ptr, "{\"output\": 1}");
    expect_problem(&r, 404, "unknown-attempt");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    free(of_ann);
}

/* ---- who sends it ---- */

static void pages_of_others_may_open_it_and_not_decide(void **state)
{
    static const char *const foreign[] = {
        HOST "Origin: https://evil.example\r\n",
        HOST "Origin: null\r\n",
        HOST "Origin: http://localhost:7421\r\n",
        HOST "Sec-Fetch-Site: cross-site\r\n",
        HOST "Sec-Fetch-Site: same-site\r\n",
        HOST "Origin: http://localhost:7420\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: evil.example\r\n",
    };
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        call(&r, "POST", of_ann, foreign[i], APPROVE);
        expect_problem(&r, 403, "foreign");
        call(&r, "GET", of_ann, foreign[i], NULL);
        if (strstr(foreign[i], "evil.example\r\n") == foreign[i] + strlen("Host: "))
            expect_problem(&r, 403, "foreign");
        else
            expect_page(&r, 200, "Pay 80?");
    }
    call(&r, "GET", "/v1/approvals", HOST "Sec-Fetch-Site: cross-site\r\n", NULL);
    expect_problem(&r, 403, "foreign"); /* that is no link */
    CHECK(agreed(id) == 0, "nobody decided");
    call(&r, "POST", of_ann,
         HOST "Origin: http://localhost:7420\r\nSec-Fetch-Site: same-origin\r\n", APPROVE);
    expect_page(&r, 200, "1 of 2 agreed");
    free(of_ann);
}

/* Mail scanners and browsers open links before people do. */
static void programs_that_look_decide_nothing(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    CLEANUP(buf_fini) struct buf path = {0};
    const struct node stranger = as(&node, "");
    REPLY r = {0};
    (void)state;

    send_as(&stranger, &r, "HEAD", of_ann, NULL, SLICE_NONE);
    EXPECT(&r, 200);
    call(&r, "GET", of_ann, HOST "Sec-Purpose: prefetch\r\nPurpose: prefetch\r\n", NULL);
    EXPECT(&r, 200);
    buf_fmt(&path, "%s?decision=approve&utm_source=mail", of_ann);
    opens(&r, path.ptr);
    expect_page(&r, 200, "Pay 80?");
    send_as(&stranger, &r, "GET", of_ann, FORM, SLICE(APPROVE));
    CHECK(r.status == 200 || r.status == 400, "%d", r.status);
    CHECK(agreed(id) == 0, "nothing was decided");
    free(of_ann);
}

/* ---- forms ---- */

static void forms_that_are_wrong_decide_nothing(void **state)
{
    static const char *const forms[] = {
        "",
        "comment=x",
        "decision=",
        "decision=maybe",
        "decision=approve%00",
        "decision=approve&decision=reject",
        "decision=approve&comment=a&comment=b",
        "decision=approve&comment=%00",
        "decision=approve&comment=%1B%5B2J",
        "decision=approve&comment=%FF",
        "decision=approve&comment=%C3",
        "decision=approve&comment=%ED%A0%80",
        "decision=approve&comment=%",
        "decision=approve&comment=%4",
        "decision=approve&comment=%zz",
        "decision=approve&person=bob",
        "decision=approve&&",
        "=approve",
        "decision=APPROVE",
        "{\"decision\": \"approve\"}",
    };
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    const struct node stranger = as(&node, "");
    CLEANUP(buf_fini) struct buf comment = {0};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        sends(&r, of_ann, forms[i]);
        EXPECT(&r, 422);
        expect_page(&r, 422, "form");
    }
    send_as(&stranger, &r, "POST", of_ann, "application/json", SLICE("{\"decision\": 1}"));
    expect_page(&r, 415, "Expected a form");
    send_as(&stranger, &r, "POST", of_ann, "text/plain", SLICE(APPROVE));
    expect_page(&r, 415, "Expected a form");
    send_as(&stranger, &r, "POST", of_ann, "multipart/form-data", SLICE(APPROVE));
    expect_page(&r, 415, "Expected a form");
    call(&r, "POST", of_ann, HOST "Content-Encoding: gzip\r\n", APPROVE);
    expect_page(&r, 415, "Expected a form");
    buf_str(&comment, "decision=approve&comment=");
    for (int i = 0; i < 1001; i++)
        buf_byte(&comment, 'x');
    sends(&r, of_ann, comment.ptr);
    expect_page(&r, 422, "1001 bytes");
    CHECK(agreed(id) == 0, "nothing was decided");
    comment.ptr[comment.len - 1] = 0; /* as long as it may be */
    sends(&r, of_ann, comment.ptr);
    expect_page(&r, 200, "1 of 2 agreed");
    free(of_ann);
}

/* Whether the body comes with its head or after it, announced, or in chunks. */
static void giant_forms_are_not_read(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    buf_str(&b, "decision=approve&comment=");
    while (b.len < (16 << 10) + 1)
        buf_byte(&b, 'x');
    sends(&r, of_ann, b.ptr);
    EXPECT(&r, 413);
    buf_clear(&b);
    buf_fmt(&b,
            "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: " FORM
            "\r\nContent-Length: 900000\r\n\r\n",
            of_ann);
    int fd = dial(&node);
    say(fd, buf_view(&b)); /* nothing follows */
    hear(fd, &r);
    expect_page(&r, 413, "too much");
    buf_clear(&b);
    buf_fmt(&b,
            "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: " FORM
            "\r\nTransfer-Encoding: chunked\r\n\r\n",
            of_ann);
    fd = dial(&node);
    say(fd, buf_view(&b));
    sleep_ms(20);
    for (int i = 0; i < 5; i++) {
        buf_clear(&b);
        buf_fmt(&b, "1000\r\n%04096d\r\n", 0);
        say(fd, buf_view(&b));
    }
    hear(fd, &r);
    EXPECT(&r, 413);
    /* a stranger without a link is answered before any body */
    buf_clear(&b);
    buf_str(&b, "POST /v1/approvals/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA HTTP/1.1\r\nHost: localhost\r\n"
                "Connection: close\r\nContent-Type: " FORM "\r\nContent-Length: 30\r\n\r\n");
    fd = dial(&node);
    say(fd, buf_view(&b));
    hear(fd, &r);
    expect_page(&r, 404, LINK_FORGED);
    CHECK(agreed(id) == 0, "nothing was decided");
    free(of_ann);
}

/* ---- what is shown ---- */

static void what_is_shown_is_escaped(void **state)
{
    CLEANUP(buf_fini) struct buf id = {0};
    REPLY r = {0};
    (void)state;

    buf_str(&id, asks_as(&node, "two",
                         "\"</blockquote><script>alert(1)</script> & \\\"'\\u0001\\u0007\""));
    char *of_ann = link_for(id.ptr, "ann");
    char *of_bob = link_for(id.ptr, "bob@example.org");
    sends(&r, of_bob, "decision=approve&comment=%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E%22%27");
    EXPECT(&r, 200);
    opens(&r, of_ann);
    expect_page(&r, 200,
                "Pay &lt;/blockquote&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; "
                "&quot;&#39;\xef\xbf\xbd\xef\xbf\xbd?");
    CHECK(body_has(&r, "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;"), "%.*s", SLICE_ARG(r.body));
    CHECK(!body_has(&r, "<img"), "%.*s", SLICE_ARG(r.body));
    CHECK(body_has(&r, "<dd dir=\"auto\">bob@example.org, 20"), "who agreed: %.*s",
          SLICE_ARG(r.body));
    free(of_ann);
    free(of_bob);
}

/* Many at once, of one person: one vote. */
static void a_crowd_with_one_link_is_one_person(void **state)
{
    enum { MANY = 20 };
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    const struct node stranger = as(&node, "");
    int fds[MANY];
    int approved = 0;
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < MANY; i++)
        fds[i] = ask(&stranger, "POST", of_ann, FORM, i % 2 ? SLICE(REJECT) : SLICE(APPROVE));
    for (int i = 0; i < MANY; i++) {
        hear(fds[i], &r);
        CHECK(r.status == 200 || r.status == 409 || r.status == 410, "%d", r.status);
        approved += r.status == 200 && i % 2 == 0;
        CHECK(r.status != 200 || (approved > 0) == (i % 2 == 0), "both count");
    }
    get(&node, &r, "/v1/audit?task=%s", id);
    EXPECT_TEXT(&r, "entries.1.verb", "approval.link");
    CHECK(!at(&r, "entries.2"), "one decision: %.*s", SLICE_ARG(r.body));
    free(of_ann);
}

/* ---- a store in trouble ---- */

static void limit_files(rlim_t size)
{
    const struct rlimit limit = {size, RLIM_INFINITY};

    CHECK(prlimit(node.pid, RLIMIT_FSIZE, &limit, NULL) == 0, "it is our own");
}

static void sends_until(struct reply *r, const char *path, int status)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (sends(r, path, APPROVE); r->status != status; sends(r, path, APPROVE)) {
        CHECK(steady_ms() < until, "%d: %.*s", r->status, SLICE_ARG(r->body));
        sleep_ms(20);
    }
}

static void opens_until(struct reply *r, const char *path, int status)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (opens(r, path); r->status != status; opens(r, path)) {
        CHECK(steady_ms() < until, "%d: %.*s", r->status, SLICE_ARG(r->body));
        sleep_ms(20);
    }
}

static void what_cannot_be_stored_is_not_decided(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    if (store_is_postgres()) {
        free(of_ann);
        return; /* its trouble is that of SQLite: there is an answer that it was not stored */
    }
    limit_files(1);
    sends_until(&r, of_ann, 503);
    expect_page(&r, 503, "Repeat it");
    CHECK(head_has(&r, "Retry-After: 1"), "%.*s", SLICE_ARG(r.head));
    opens_until(&r, of_ann, 503);
    expect_problem(&r, 503, "io");
    limit_files(RLIM_INFINITY);
    wait_until_ready(&node);
    CHECK(agreed(id) == 0, "it was not");
    sends(&r, of_ann, APPROVE);
    expect_page(&r, 200, "1 of 2 agreed");
    free(of_ann);
}

static void a_task_that_cannot_be_read_is_not_shown(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    char query[100];
    char path[120];
    sqlite3 *db = NULL;
    REPLY r = {0};
    (void)state;

    if (!store_is_postgres()) {
        (void)snprintf(query, sizeof query, "UPDATE task SET doc = '{}' WHERE id = '%s'", id);
        (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
        CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
        (void)sqlite3_busy_timeout(db, PATIENCE_MS);
        CHECK(sqlite3_exec(db, query, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
        (void)sqlite3_close(db);
        opens(&r, of_ann);
        expect_page(&r, 503, "cannot read the task");
    }
    free(of_ann);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_not_decide_does_not_by_a_link),
        cmocka_unit_test(who_makes_links_sees_what_is_asked),
        cmocka_unit_test(changed_it_is_none),
        cmocka_unit_test(what_is_no_link_is_refused),
        cmocka_unit_test(a_token_of_something_else_is_none),
        cmocka_unit_test(pages_of_others_may_open_it_and_not_decide),
        cmocka_unit_test(programs_that_look_decide_nothing),
        cmocka_unit_test(forms_that_are_wrong_decide_nothing),
        cmocka_unit_test(giant_forms_are_not_read),
        cmocka_unit_test(what_is_shown_is_escaped),
        cmocka_unit_test(a_crowd_with_one_link_is_one_person),
        cmocka_unit_test(what_cannot_be_stored_is_not_decided),
        cmocka_unit_test(a_task_that_cannot_be_read_is_not_shown),
    };
    (void)signal(SIGXFSZ, SIG_IGN); /* the server inherits it: writes beyond its limit fail */
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, links_start, node_end);
}
