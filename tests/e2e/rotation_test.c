/* Tests of the lifetime of tokens: expiry, rotation with two valid texts for a while, and the
 * warnings. access_test.c has tokens in general. */

#include <sqlite3.h>
#include <sys/stat.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "debug"));
    return 0;
}

static int status_to(const char *token)
{
    const struct node n = as(&node, token);
    REPLY r = {0};

    get(&n, &r, "/v1/nodes");
    return r.status;
}

static void rotate(const char *name, const char *body, char ret[64])
{
    REPLY r = {0};

    post(&node, &r, "/v1/tokens/shop/rotate", "%s", body);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "name", name);
    CHECK(head_has(&r, "\r\nCache-Control: no-store\r\n"), "%.*s", SLICE_ARG(r.head));
    (void)snprintf(ret, 64, "%s", text_at(&r, "token"));
}

static void both_texts_are_good_for_a_while(void **state)
{
    char text[4][64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "shop", "\"submit\"", "30d", text[0]);
    rotate("shop", "{}", text[1]);
    CHECK(strcmp(text[0], text[1]) != 0, "a new one");
    CHECK(status_to(text[0]) == 200 && status_to(text[1]) == 200, "both");
    get(&node, &r, "/v1/tokens");
    EXPECT_TEXT(&r, "tokens.1.name", "shop");
    CHECK(time_at(&r, "tokens.1.expires_at") - time_at(&r, "tokens.1.created_at")
              == INT64_C(30) * 86400000,
          "for as long as it was made for");
    CHECK(time_at(&r, "tokens.1.previous_until") - time_at(&r, "tokens.1.created_at") == 3600000,
          "an hour");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    CHECK(status_to(text[0]) == 200 && status_to(text[1]) == 200, "after a kill");
    rotate("shop", "{\"keep\": \"10m\", \"expires_in\": \"never\"}", text[2]);
    CHECK(status_to(text[0]) == 401, "the one before the last");
    CHECK(status_to(text[1]) == 200 && status_to(text[2]) == 200, "both");
    rotate("shop", "{\"keep\": \"0s\"}", text[3]);
    CHECK(status_to(text[2]) == 401 && status_to(text[3]) == 200, "at once");
    get(&node, &r, "/v1/tokens");
    EXPECT_RAW(&r, "tokens.1.expires_at", "null");
    EXPECT_RAW(&r, "tokens.1.previous_until", "null");
    get(&node, &r, "/v1/audit?limit=1");
    EXPECT_TEXT(&r, "entries.0.verb", "token.rotate");
    EXPECT_TEXT(&r, "entries.0.reason", "shop");
    rotate("shop", "{}", text[0]);
    send_as(&node, &r, "DELETE", "/v1/tokens/shop", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    CHECK(status_to(text[3]) == 401 && status_to(text[0]) == 401, "a deleted one has no text");
}

static void the_text_before_ends(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char before[64];
    char now[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "shop", "\"submit\"", NULL, before);
    rotate("shop", "{\"keep\": \"300ms\"}", now);
    while (status_to(before) != 401) {
        CHECK(steady_ms() < until, "it does not end");
        sleep_ms(20);
    }
    const struct node old = as(&node, before);
    get(&old, &r, "/v1/nodes");
    CHECK(strstr(text_at(&r, "detail"), "rotated"), "%s", text_at(&r, "detail"));
    CHECK(status_to(now) == 200, "the new one");
}

static void what_is_wrong_is_refused(void **state)
{
    static const char *const wrong[] = {"{\"keep\": \"31d\"}", "{\"keep\": 5}",
                                        "{\"keep\": \"-1s\"}", "{\"expires_in\": \"always\"}",
                                        "{\"expires_in\": \"0s\"}"};
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "shop", "\"submit\"", NULL, token);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        post(&node, &r, "/v1/tokens/shop/rotate", "%s", wrong[i]);
        expect_problem(&r, 422, "bad-token");
    }
    post(&node, &r, "/v1/tokens/shop/rotate", "{\"for\": \"1h\"}");
    expect_problem(&r, 422, "unknown-member");
    post(&node, &r, "/v1/tokens/nobody/rotate", "{}");
    expect_problem(&r, 404, "no-such-token");
    CHECK(status_to(token) == 200, "nothing was changed");
}

static void a_token_is_good_for_90_days_if_nothing_is_said(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tokens", "{\"name\": \"a\", \"roles\": [\"read\"]}");
    CHECK(time_at(&r, "expires_at") - time_at(&r, "created_at") == INT64_C(90) * 86400000, "%s",
          r.body.ptr);
    post(&node, &r, "/v1/tokens",
         "{\"name\": \"b\", \"roles\": [\"read\"], \"expires_in\": \"never\"}");
    EXPECT_RAW(&r, "expires_at", "null");
    get(&node, &r, "/v1/tokens");
    EXPECT_TEXT(&r, "tokens.0.name", "a");
    EXPECT_TEXT(&r, "tokens.1.name", "admin");
    EXPECT_RAW(&r, "tokens.1.expires_at", "null");
}

static void made_so(const char *name, int days_ago, int days_left)
{
    char path[120];
    sqlite3 *db = NULL;
    char sql[200];

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    (void)snprintf(sql, sizeof sql,
                   "UPDATE token SET created_at = %" PRId64 ", expires_at = %" PRId64
                   " WHERE name = '%s'",
                   now_ms() - days_ago * INT64_C(86400000),
                   now_ms() + days_left * INT64_C(86400000), name);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

static void a_person_is_told_before_a_token_ends(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "soon", "\"read\"", NULL, token);
    make_token(&node, "later", "\"read\"", NULL, token);
    make_token(&node, "brief", "\"read\"", NULL, token);
    node_stop(&node);
    made_so("soon", 77, 13);
    made_so("later", 75, 15);
    made_so("brief", 1, 13);
    node_start(&node, FLAGS("--log", "debug"));
    do {
        CHECK(steady_ms() < until, "nobody is told: %s", r.body.ptr);
        sleep_ms(200);
        get(&node, &r, "/v1/alerts");
    } while (!at(&r, "alerts.0"));
    EXPECT_TEXT(&r, "alerts.0.condition", "token_expires");
    EXPECT_TEXT(&r, "alerts.0.labels.token", "soon");
    CHECK(!at(&r, "alerts.1"), "%s", r.body.ptr);
}

static void write_file(const char *name, const char *token)
{
    char path[160];

    (void)snprintf(path, sizeof path, "%s/%s", node.data, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fprintf(f, "%s\n", token) > 0 && fclose(f) == 0 && chmod(path, 0600) == 0, "%s",
          path);
}

static void the_file_holds(const char *token)
{
    node_read_token(&node);
    CHECK(strcmp(node.token, token) == 0, "another text is in the file");
}

/* A client that has only the file is not locked out, even if the rotation was interrupted after its
 * commit. */
static void the_file_of_the_admin_follows(void **state)
{
    const struct node before = node;
    char after[64];
    char other[64];
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tokens/admin/rotate", "{\"expires_in\": \"2h\"}");
    expect_problem(&r, 409, "last-admin");
    the_file_holds(before.token);
    make_token(&node, "brief", "\"admin\"", "1h", other);
    post(&node, &r, "/v1/tokens/admin/rotate", "{\"expires_in\": \"2h\"}");
    expect_problem(&r, 409, "last-admin");
    post(&node, &r, "/v1/tokens/brief/rotate", "{\"expires_in\": \"2h\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tokens/admin/rotate", "{\"keep\": \"0s\"}");
    EXPECT(&r, 200);
    (void)snprintf(after, sizeof after, "%s", text_at(&r, "token"));
    the_file_holds(after);
    CHECK(status_to(before.token) == 401, "the text before is good no more");
    make_token(&node, "shop", "\"submit\"", NULL, other);
    post(&node, &r, "/v1/tokens/shop/rotate", "{}");
    EXPECT(&r, 200);
    the_file_holds(after);
    node_stop(&node);
    write_file("admin-token.new", after);
    write_file("admin-token", before.token);
    node_start(&node, FLAGS("--log", "debug"));
    the_file_holds(after);
    CHECK(status_to(after) == 200, "it is good");
    node_stop(&node);
    write_file("admin-token.new", before.token);
    node_start(&node, FLAGS("--log", "debug"));
    the_file_holds(after);
}

#define ON(f) cmocka_unit_test_setup_teardown(f, start, node_end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        ON(the_file_of_the_admin_follows),
        ON(both_texts_are_good_for_a_while),
        ON(the_text_before_ends),
        ON(what_is_wrong_is_refused),
        ON(a_token_is_good_for_90_days_if_nothing_is_said),
        ON(a_person_is_told_before_a_token_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
