/* Tests of GET /v1/tasks: pages without gap or overlap while tasks move, filters by state,
 * workflow, tags and times, and what is refused. kit.h has the server under test. */

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS(NULL));
    return 0;
}

static void pages_follow_each_other_without_gap_or_overlap(void **state)
{
    char cursor[60] = "";
    REPLY r = {0};
    int seen = 0;
    int pages = 0;
    (void)state;

    (void)define(&node, "listed",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"li\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    for (int i = 0; i < 23; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "page-%d", i);
        submit(&node, "listed", id);
    }
    do {
        get(&node, &r, "/v1/tasks?workflow=listed&limit=5%s", cursor);
        EXPECT(&r, 200);
        for (uint32_t i = 0; i < at(&r, "tasks")->count; i++) {
            char path[40];
            char id[20];
            (void)snprintf(path, sizeof path, "tasks.%u.id", i);
            (void)snprintf(id, sizeof id, "page-%d", 22 - seen++);
            EXPECT_TEXT(&r, path, id);
        }
        (void)snprintf(cursor, sizeof cursor, "&cursor=%s", text_at(&r, "next"));
        pages++;
    } while (*text_at(&r, "next"));
    EXPECT_RAW(&r, "next", "null");
    assert_int_equal(seen, 23);
    assert_int_equal(pages, 5);
}

static void listings_choose_by_state_and_workflow(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "chosen",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ch\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    submit(&node, "chosen", "chosen-1");
    serve_step(&node, "ch", "c1", "1");
    submit(&node, "chosen", "chosen-2");
    get(&node, &r, "/v1/tasks?workflow=chosen");
    assert_int_equal(at(&r, "tasks")->count, 2);
    get(&node, &r, "/v1/tasks?workflow=chosen&state=processed");
    assert_int_equal(at(&r, "tasks")->count, 1);
    EXPECT_TEXT(&r, "tasks.0.id", "chosen-1");
    get(&node, &r, "/v1/tasks?workflow=chosen&state=error");
    EXPECT_RAW(&r, "tasks", "[]");
    get(&node, &r, "/v1/tasks?workflow=nobody");
    EXPECT_RAW(&r, "tasks", "[]");
}

static void listings_refuse_what_they_do_not_know(void **state)
{
    static const struct {
        const char *query, *type;
    } cases[] = {
        {"state=open", "bad-state"},
        {"state=", "bad-state"},
        {"state=error,", "bad-state"},
        {"state=error,,pending", "bad-state"},
        {"state=error&state=pending", "repeated-parameter"},
        {"limit=5&limit=5", "repeated-parameter"},
        {"state=%ff", "bad-state"},
        {"tag.=x", "unknown-parameter"},
        {"tag=x", "unknown-parameter"},
        {"tag.a%20b=x", "bad-tags"},
        {"submitted_after=yesterday", "bad-time"},
        {"submitted_before=", "bad-time"},
        {"limit=0", "bad-limit"},
        {"limit=501", "bad-limit"},
        {"limit=-1", "bad-limit"},
        {"limit=5x", "bad-limit"},
        {"limit=", "bad-limit"},
        {"limit=99999999999999999999", "bad-limit"},
        {"cursor=x", "bad-cursor"},
        {"cursor=0", "bad-cursor"},
        {"cursor=", "bad-cursor"},
        {"stat=error", "unknown-parameter"},
        {"limit=5&wokflow=a", "unknown-parameter"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        get(&node, &r, "/v1/tasks?%s", cases[i].query);
        CHECK(r.status == 422, "%s: %d", cases[i].query, r.status);
        expect_problem(&r, 422, cases[i].type);
    }
    get(&node, &r, "/v1/tasks?cursor=1000000000");
    EXPECT(&r, 200);
}

static void submit_tagged(const char *id, const char *tags)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"tagged\", \"id\": \"%s\", \"tags\": %s}", id,
         tags);
    EXPECT(&r, 201);
}

/* The ids of one page with commas between. */
static void listed_are(const char *query, const char *expected)
{
    CLEANUP(buf_fini) struct buf ids = {0};
    REPLY r = {0};

    get(&node, &r, "/v1/tasks?%s", query);
    EXPECT(&r, 200);
    for (const struct json *j = at(&r, "tasks")->child; j; j = j->next)
        buf_fmt(&ids, "%s%.*s", ids.len ? "," : "", SLICE_ARG(json_get_text(j, "id")));
    CHECK(strcmp(ids.len ? ids.ptr : "", expected) == 0, "%s: %s, expected %s", query,
          ids.len ? ids.ptr : "", expected);
}

static void tags_narrow_a_listing(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "tagged",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"tg\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    submit_tagged("g-1", "{\"city\": \"Bonn\", \"shop\": \"1\"}");
    submit_tagged("g-2", "{\"city\": \"K\xc3\xb6ln & Bonn=1\"}");
    submit_tagged("g-3", "{\"city\": \"Bonn\", \"shop\": \"2\"}");
    submit_tagged("g-4", "{}");
    listed_are("tag.city=Bonn", "g-3,g-1");
    listed_are("tag.city=Bonn&tag.shop=1", "g-1");
    listed_are("tag.shop=1&tag.city=Bonn", "g-1");
    listed_are("tag.city=K%C3%B6ln%20%26%20Bonn%3D1", "g-2");
    listed_are("tag.city=bonn", "");
    listed_are("tag.city=", "");
    listed_are("tag.nobody=x", "");
    listed_are("tag.city=Bonn&tag.city=Bonn", "g-3,g-1");
    listed_are("tag.city=Bonn&state=pending,error&workflow=tagged", "g-3,g-1");
    listed_are("tag.city=Bonn&state=processed", "");
    listed_are("id_prefix=g-", "g-4,g-3,g-2,g-1");
    listed_are("id_prefix=g-&tag.city=Bonn", "g-3,g-1");
    listed_are("id_prefix=g-&ids=g-2,mv-1", "g-2");
    listed_are("id_prefix=g&workflow=nobody", "");
    get(&node, &r, "/v1/tasks?tag.shop=1");
    EXPECT_TEXT(&r, "tasks.0.tags.city", "Bonn");
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM tag"), 5);
}

static void times_narrow_a_listing(void **state)
{
    REPLY r = {0};
    char query[200];
    char third[40];
    (void)state;

    task_of(&node, &r, "g-3");
    (void)snprintf(third, sizeof third, "%s", text_at(&r, "submitted_at"));
    (void)snprintf(query, sizeof query, "workflow=tagged&tag.shop=2&submitted_after=%s", third);
    listed_are(query, "g-3");
    (void)snprintf(query, sizeof query, "workflow=tagged&tag.shop=2&submitted_before=%s", third);
    listed_are(query, "");
    listed_are("workflow=tagged&submitted_after=2199-01-01T00:00:00Z", "");
    listed_are("workflow=tagged&submitted_before=2020-01-01T00:00:00Z", "");
    listed_are("workflow=tagged&submitted_after=2020-01-01T00:00:00%2B02:00", "g-4,g-3,g-2,g-1");
}

/* A task that changes between two pages is shown once, where it stands. */
static void pages_stay_right_while_tasks_move(void **state)
{
    char cursor[60] = "";
    REPLY r = {0};
    int seen = 0;
    (void)state;

    (void)define(&node, "moving",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"mv\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    for (int i = 0; i < 20; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "mv-%d", i);
        submit(&node, "moving", id);
    }
    do {
        get(&node, &r, "/v1/tasks?workflow=moving&limit=3%s", cursor);
        EXPECT(&r, 200);
        for (uint32_t i = 0; i < at(&r, "tasks")->count; i++) {
            char path[40];
            char id[20];
            (void)snprintf(path, sizeof path, "tasks.%u.id", i);
            (void)snprintf(id, sizeof id, "mv-%d", 19 - seen++);
            EXPECT_TEXT(&r, path, id);
        }
        (void)snprintf(cursor, sizeof cursor, "&cursor=%s", text_at(&r, "next"));
        bool more = *text_at(&r, "next");
        serve_step(&node, "mv", "m1", "1"); /* pending tasks become processed */
        serve_step(&node, "mv", "m1", "1");
        if (!more)
            break;
    } while (true);
    assert_int_equal(seen, 20);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_follow_each_other_without_gap_or_overlap),
        cmocka_unit_test(listings_choose_by_state_and_workflow),
        cmocka_unit_test(listings_refuse_what_they_do_not_know),
        cmocka_unit_test(tags_narrow_a_listing),
        cmocka_unit_test(times_narrow_a_listing),
        cmocka_unit_test(pages_stay_right_while_tasks_move),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
