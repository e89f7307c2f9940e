/* Links with which people decide in a browser, with a real server: what they show, that each
 * decides once, and until when; what the audit has of them, and what becomes of them when the
 * server is killed. */

#include "links_kit.h"

#include <sqlite3.h>
#include <stdlib.h>

/* ---- as it is meant ---- */

static void a_person_opens_it_and_decides(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    char *of_bob = link_for(id, "bob@example.org");
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 3; i++) { /* as often as anybody likes */
        opens(&r, of_ann);
        expect_page(&r, 200, "Pay 80?");
        CHECK(body_has(&r, "<form method=\"post\"") && body_has(&r, "0 of 2 agreed"), "%.*s",
              SLICE_ARG(r.body));
    }
    CHECK(agreed(id) == 0, "opening decides nothing");
    sends(&r, of_ann, "comment=within+the+budget%0D%0A%C3%BC&decision=approve");
    expect_page(&r, 200, "1 of 2 agreed");
    CHECK(agreed(id) == 1, "it counts");
    node_kill(&node); /* what was answered is stored, and links outlive the process */
    links_begin();
    CHECK(agreed(id) == 1, "it is there");
    opens(&r, of_bob);
    expect_page(&r, 200, "within the budget\n\xc3\xbc");
    sends(&r, of_bob, APPROVE);
    expect_page(&r, 200, "2 of 2 agreed");
    wait_for_state(&node, id, "processed");
    task_of(&node, &r, id);
    EXPECT_TEXT(&r, "steps.0.output.votes.0.by", "ann");
    EXPECT_TEXT(&r, "steps.0.output.votes.0.comment", "within the budget\n\xc3\xbc");
    EXPECT_TEXT(&r, "steps.0.output.votes.1.by", "bob@example.org");
    free(of_ann);
    free(of_bob);
}

static void the_audit_says_that_it_was_by_link(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    sends(&r, of_ann, APPROVE);
    EXPECT(&r, 200);
    sends(&r, of_ann, APPROVE);
    EXPECT(&r, 200);
    votes(&bob, id);
    get(&node, &r, "/v1/audit?task=%s", id);
    EXPECT_TEXT(&r, "entries.0.actor", "bob");
    CHECK(!at(&r, "entries.0.detail.link"), "with a token: %.*s", SLICE_ARG(r.body));
    EXPECT_TEXT(&r, "entries.1.verb", "approve");
    EXPECT_TEXT(&r, "entries.1.actor", "approval-link");
    EXPECT_TEXT(&r, "entries.1.detail.person", "ann");
    EXPECT_RAW(&r, "entries.1.detail.link", "true");
    EXPECT_TEXT(&r, "entries.1.address", "127.0.0.1");
    EXPECT_TEXT(&r, "entries.2.verb", "approval.link");
    EXPECT_TEXT(&r, "entries.2.actor", "mailer");
    EXPECT_TEXT(&r, "entries.2.step", "allow");
    CHECK(strstr(text_at(&r, "entries.2.reason"), "for ann, question 1, until 20"), "%.*s",
          SLICE_ARG(r.body));
    CHECK(!at(&r, "entries.3"), "each once: %.*s", SLICE_ARG(r.body));
    CHECK(!node_log_has(&node, of_ann + strlen("/v1/approvals/")), "no log has it");
    free(of_ann);
}

static void a_rejection_takes_a_comment(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    sends(&r, of_ann, "decision=reject&comment=");
    expect_page(&r, 422, "say why");
    sends(&r, of_ann, "decision=reject&comment=+%0D%0A%09+");
    expect_page(&r, 422, "say why");
    sends(&r, of_ann, "decision=reject");
    expect_page(&r, 422, "say why");
    CHECK(agreed(id) == 0, "nothing was decided");
    sends(&r, of_ann, "decision=reject&comment=+too+much+");
    expect_page(&r, 200, "You rejected");
    wait_for_state(&node, id, "compensated");
    task_of(&node, &r, id);
    EXPECT_TEXT(&r, "error.code", "rejected");
    EXPECT_TEXT(&r, "error.message", "too much");
    free(of_ann);
}

/* ---- once, and until the end ---- */

static void it_decides_once(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    sends(&r, of_ann, APPROVE);
    expect_page(&r, 200, "You approved");
    sends(&r, of_ann, "decision=approve&comment=again"); /* a page that is loaded again */
    expect_page(&r, 200, "1 of 2 agreed");
    sends(&r, of_ann, REJECT);
    expect_page(&r, 409, "You have decided already");
    opens(&r, of_ann);
    expect_page(&r, 200, "You approved this");
    CHECK(!body_has(&r, "<form"), "nothing is left to do");
    CHECK(agreed(id) == 1, "once");
    makes(&mailer, &r, id, "{\"person\": \"ann\"}");
    expect_problem(&r, 409, "conflict");
    free(of_ann);
}

static void it_ends_with_the_step(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "cleo", "\"approve\"], \"groups\": [\"finance\"", NULL, token);
    struct node cleo = as(&node, token);
    votes(&bob, id);
    votes(&cleo, id);
    wait_for_state(&node, id, "processed");
    opens(&r, of_ann);
    expect_page(&r, 410, "not asked any more");
    sends(&r, of_ann, APPROVE);
    expect_page(&r, 410, "not asked any more");
    makes(&mailer, &r, id, "{\"person\": \"ann\"}");
    expect_problem(&r, 409, "conflict");
    free(of_ann);
}

static void it_ends_while_the_task_goes_on(void **state)
{
    const char *id = asks("both");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tokens",
         "{\"name\": \"dan\", \"roles\": [\"approve\"], \"groups\": "
         "[\"finance\"]}");
    EXPECT(&r, 201);
    struct node dan = as(&node, text_at(&r, "token"));
    votes(&bob, id);
    votes(&dan, id);
    opens(&r, of_ann);
    expect_page(&r, 410, "This is decided");
    sends(&r, of_ann, APPROVE);
    expect_page(&r, 410, "This is decided");
    free(of_ann);
}

static void it_ends_when_nobody_decided_in_time(void **state)
{
    const char *id = asks("hurry");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    wait_for_state(&node, id, "error");
    sends(&r, of_ann, APPROVE);
    EXPECT(&r, 410);
    opens(&r, of_ann);
    EXPECT(&r, 410);
    free(of_ann);
}

static void corrects(const char *id, const char *input)
{
    REPLY r = {0};
    char path[80];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/correct", id);
    post(&node, &r, path, "{\"input\": %s, \"reason\": \"a slip\"}", input);
    EXPECT(&r, 200);
}

static bool asks_about(const char *id, const char *question)
{
    REPLY r = {0};

    get(&ann, &r, "/v1/approvals?task=%s", id);
    return strcmp(text_at(&r, "approvals.0.question"), question) == 0;
}

static void what_is_asked_anew_takes_a_new_link(void **state)
{
    const char *id = asks("two");
    char *first = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    corrects(id, "90");
    WAIT_FOR(asks_about(id, "Pay 90?"), "it is asked anew");
    opens(&r, first);
    expect_page(&r, 410, "asked anew");
    CHECK(!body_has(&r, "Pay 90?"), "it is not that question");
    sends(&r, first, APPROVE);
    expect_page(&r, 410, "asked anew");
    CHECK(agreed(id) == 0, "it does not count");
    char *second = link_for(id, "ann");
    opens(&r, second);
    expect_page(&r, 200, "Pay 90?");
    sends(&r, second, APPROVE);
    expect_page(&r, 200, "1 of 2 agreed");
    free(first);
    free(second);
}

static void it_expires(void **state)
{
    static const char *const wrong[] = {"\"0s\"", "\"-1s\"", "\"91d\"", "\"soon\"", "7"};
    const char *id = asks("two");
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char body[60];
        (void)snprintf(body, sizeof body, "{\"expires_in\": %s}", wrong[i]);
        makes(&ann, &r, id, body);
        expect_problem(&r, 422, "bad-expiry");
    }
    makes(&ann, &r, id, "{\"expires_in\": \"90d\"}");
    EXPECT(&r, 200);
    makes(&ann, &r, id, "{\"expires_in\": \"1ms\"}");
    EXPECT(&r, 200);
    char *path = strdup(strstr(text_at(&r, "url"), "/v1/"));
    sleep_ms(5);
    sends(&r, path, APPROVE);
    expect_page(&r, 410, "has expired");
    opens(&r, path);
    expect_page(&r, 410, "has expired");
    CHECK(agreed(id) == 0, "nothing was decided");
    free(path);
}

/* Without what reserves its id. */
static void delete_task(const char *id)
{
    char query[80];
    char path[120];
    sqlite3 *db = NULL;

    (void)snprintf(query, sizeof query, "DELETE FROM task WHERE id = '%s'", id);
    if (store_is_postgres()) {
        free(sql(&node, query));
        return;
    }
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    CHECK(sqlite3_exec(db, query, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* Also if its id is given again, and the same is asked. */
static void of_a_deleted_task_it_is_void(void **state)
{
    const char *id = asks("two");
    char *of_ann = link_for(id, "ann");
    REPLY r = {0};
    (void)state;

    sends(&r, of_ann, REJECT);
    EXPECT(&r, 200);
    wait_for_state(&node, id, "compensated");
    delete_task(id);
    opens(&r, of_ann);
    expect_page(&r, 410, "was deleted");
    sends(&r, of_ann, APPROVE);
    expect_page(&r, 410, "was deleted");
    links_ids--; /* the same once more */
    CHECK(strcmp(asks("two"), id) == 0, "%s", id);
    opens(&r, of_ann);
    expect_page(&r, 410, "not asked any more");
    sends(&r, of_ann, APPROVE);
    expect_page(&r, 410, "not asked any more");
    CHECK(agreed(id) == 0, "it does not count");
    makes(&mailer, &r, "nothing", "{\"person\": \"ann\"}");
    expect_problem(&r, 404, "no-such-approval");
    free(of_ann);
}

/* ---- names ---- */

static void names_of_links_are_no_tokens(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tokens", "{\"name\": \"approval-link\", \"roles\": [\"approve\"]}");
    expect_problem(&r, 422, "bad-token");
    post(&node, &r, "/v1/tokens",
         "{\"name\": \"x\", \"person\": \"approval-link\", \"roles\": [\"approve\"]}");
    expect_problem(&r, 422, "bad-token");
}

static void the_outside_has_an_address_of_its_own(void **state)
{
    REPLY r = {0};
    const char *id = asks("two");
    (void)state;

    node_kill(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms", "--public-url",
                            "https://intact.example.org:8443"));
    makes(&ann, &r, id, "{}");
    EXPECT(&r, 200);
    const char *url = text_at(&r, "url");
    static const char origin[] = "https://intact.example.org:8443";
    CHECK(strncmp(url, origin, strlen(origin)) == 0, "%s", url);
    CLEANUP(buf_fini) struct buf path = {0};
    buf_str(&path, url + strlen(origin));
    call(&r, "GET", path.ptr, "Host: intact.example.org:8443\r\nSec-Fetch-Site: cross-site\r\n",
         NULL);
    expect_page(&r, 200, "Pay 80?");
    node_kill(&node);
    links_begin();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_opens_it_and_decides),
        cmocka_unit_test(the_audit_says_that_it_was_by_link),
        cmocka_unit_test(a_rejection_takes_a_comment),
        cmocka_unit_test(it_decides_once),
        cmocka_unit_test(it_ends_with_the_step),
        cmocka_unit_test(it_ends_while_the_task_goes_on),
        cmocka_unit_test(it_ends_when_nobody_decided_in_time),
        cmocka_unit_test(what_is_asked_anew_takes_a_new_link),
        cmocka_unit_test(it_expires),
        cmocka_unit_test(of_a_deleted_task_it_is_void),
        cmocka_unit_test(names_of_links_are_no_tokens),
        cmocka_unit_test(the_outside_has_an_address_of_its_own),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, links_start, node_end);
}
