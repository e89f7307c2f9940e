/* Items of lists in the archive: every item that had ended is there before its task is deleted,
 * page by page, also after kills; a list with an item that cannot be read is kept. */

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

/* More than two pages of 256 items. */
enum { ITEMS = 600, PLACES = 100 };

static struct node node;
static const char *program;
static char config[100], archive[100];

static const char *const plain_flags[] = {"--log", "info", "--drain", "200ms", NULL};

static int start(void **state)
{
    int fd = -1;

    *state = node_open(&node, plain_flags);
    (void)snprintf(config, sizeof config, "%s/server.yaml", node.home);
    (void)snprintf(archive, sizeof archive, "%s/archive", node.home);
    fd = open(config, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0
              && dprintf(fd,
                         "intact_server: 1\narchive: {folder: %s}\nretention: [{workflow: lines, "
                         "keep: 1d}]\n",
                         archive)
                     > 0
              && close(fd) == 0,
          "%s", config);
    (void)define(&node, "lines",
                 "\"inputs\": {\"lines\": {\"type\": \"array\"}}, \"steps\": [{\"name\": \"pack\", "
                 "\"for_each\": \"${ .input.lines }\", \"max_items\": 10000, \"concurrency\": 100, "
                 "\"agent\": \"s\", \"action\": \"take\", \"retry\": {\"attempts\": 1}, \"input\": "
                 "{\"line\": \"${ .item }\"}, \"undo\": {\"action\": \"put-back\"}}]");
    return 0;
}

/* Lines 0 to count - 1. */
static void submit_lines(const char *id, int count)
{
    CLEANUP(buf_fini) struct buf lines = {0};
    REPLY r = {0};

    for (int i = 0; i < count; i++)
        buf_fmt(&lines, "%s%d", i ? "," : "", i);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"lines\", \"id\": \"%s\", \"input\": "
         "{\"lines\": [%s]}}",
         id, lines.ptr);
    EXPECT(&r, 201);
}

/* One call of the agent: takes and puts back whatever is asked, but for the line `bad`. */
static void serve_once(int bad)
{
    CLEANUP(buf_fini) struct buf results = {0};
    REPLY r = {0};
    char path[60];

    post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"i\", \"max\": %d, \"wait\": \"100ms\"}",
         PLACES);
    EXPECT(&r, 200);
    for (int i = 0; (void)snprintf(path, sizeof path, "requests.%d.token", i), at(&r, path); i++) {
        buf_fmt(&results, "%s{\"token\": \"%s\",", i ? "," : "", text_at(&r, path));
        (void)snprintf(path, sizeof path, "requests.%d.input.line", i);
        if (int_at(&r, path) == bad)
            buf_str(&results, "\"error\": {\"code\": \"none-left\", \"message\": \"none\", "
                              "\"retryable\": false, \"effect\": \"none\"}}");
        else
            buf_fmt(&results, "\"output\": {\n\"id\": %d}}", (int)int_at(&r, path));
    }
    if (results.len == 0)
        return;
    reply_fini(&r);
    post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"i\", \"max\": 0, \"results\": [%s]}",
         results.ptr);
    EXPECT(&r, 200);
}

static void process(const char *id, int count, int bad, const char *state)
{
    REPLY r = {0};

    submit_lines(id, count);
    for (int64_t until = steady_ms() + PATIENCE_MS; strcmp(text_at(&r, "state"), state) != 0;) {
        CHECK(steady_ms() < until, "task %s does not become %s", id, state);
        serve_once(bad);
        reply_fini(&r);
        get(&node, &r, "/v1/tasks/%s", id);
    }
}

/* While the server stands still. */
static void execute(const char *text)
{
    char path[100];
    sqlite3 *db = NULL;

    if (store_is_postgres()) {
        free(sql(&node, text));
        return;
    }
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s", path);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* All that is stored becomes old; the newest task of all stays. */
static void let_time_pass(void)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"lines\", \"id\": \"newest\", \"paused\": true, "
         "\"input\": {\"lines\": []}}");
    EXPECT(&r, 201);
    node_stop(&node);
    execute("UPDATE task SET submitted_at = submitted_at - 345600000, ended_at = ended_at - "
            "345600000 WHERE ended_at IS NOT NULL");
}

static void start_configured(void)
{
    node_start(&node, FLAGS("--log", "info", "--drain", "200ms", "--config", config));
}

static bool is_gone(const char *id)
{
    REPLY r = {0};

    get(&node, &r, "/v1/tasks/%s", id);
    return r.status == 410;
}

static void wait_until_gone(const char *id)
{
    for (int64_t until = steady_ms() + PATIENCE_MS; !is_gone(id); sleep_ms(20))
        CHECK(steady_ms() < until, "%s stays for ever", id);
}

/* Standard output of `intact archive` with these words, and its exit status. */
static int run(struct buf *ret, const char *words)
{
    char command[500];
    char piece[4096];
    size_t n = 0;

    buf_clear(ret);
    (void)snprintf(command, sizeof command, "%s archive %s --folder %s", program, words, archive);
    FILE *f = popen(command, "re");
    CHECK(f, "%s", command);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_add(ret, piece, n);
    int status = pclose(f);
    buf_byte(ret, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int line_count(const char *text, const char *part)
{
    int count = 0;

    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        count += memmem(line, strcspn(line, "\n"), part, strlen(part)) != NULL;
    return count;
}

/* All items of the list, one a line, by their numbers. */
static void expect_items(const char *id, int count)
{
    CLEANUP(buf_fini) struct buf out = {0};
    char words[60];
    int n = 0;

    (void)snprintf(words, sizeof words, "get %s --items", id);
    CHECK(run(&out, words) == 0, "%s", id);
    for (const char *line = out.ptr; *line; line = strchr(line, '\n') + 1, n++) {
        char name[60];
        (void)snprintf(name, sizeof name, "{\"name\":\"pack.%d\",\"item\":%d,", n, n);
        CHECK(strncmp(line, name, strlen(name)) == 0, "item %d: %.200s", n, line);
    }
    CHECK(n == count, "%d of %d items", n, count);
}

static void all_items_are_archived(void **state)
{
    CLEANUP(buf_fini) struct buf out = {0};
    CLEANUP(buf_fini) struct buf items = {0};
    REPLY before = {0};
    (void)state;

    process("done", ITEMS, -1, "processed");
    process("back", ITEMS, ITEMS - 1, "compensated");
    process("small", 1, -1, "processed");
    get(&node, &before, "/v1/tasks/done");
    let_time_pass();
    start_configured();
    wait_until_gone("small");
    CHECK(is_gone("done") && is_gone("back"), "they are older");
    CHECK(sql_int(&node, "SELECT count(*) FROM item") == 0, "the items went with them");
    expect_items("done", ITEMS);
    expect_items("back", ITEMS);
    expect_items("small", 1);
    CHECK(run(&items, "get back --items") == 0, "back");
    CHECK(line_count(items.ptr, "\"state\":\"undone\"") == ITEMS - 1, "each but one was undone");
    CHECK(line_count(items.ptr, "\"code\":\"none-left\"") == 1, "and that says why it failed");
    CHECK(run(&out, "get done") == 0, "done");
    const char *steps = strstr(out.ptr, "\"steps\":");
    const char *were = strstr(before.body.ptr, "\"steps\":");
    CHECK(steps && were && strncmp(steps, were, strlen(were)) == 0, "%s\n%s", were, out.ptr);
    CHECK(run(&out, "cat") == 0 && line_count(out.ptr, "") == 3, "records: %.2000s", out.ptr);
    CHECK(run(&out, "cat --items") == 0 && line_count(out.ptr, "{\"items_of\":\"done\"") == 3
              && line_count(out.ptr, "{\"items_of\":") == 7,
          "pages");
    CHECK(run(&out, "get newest --items 2>/dev/null") == 1, "it is not there");
    node_stop(&node);
}

/* An operator had the step start anew: both lists are kept. */
static void all_lists_of_a_step_are_archived(void **state)
{
    CLEANUP(buf_fini) struct buf out = {0};
    (void)state;

    process("lists", 3, -1, "processed");
    let_time_pass();
    execute("INSERT INTO item SELECT task, step, generation + 1, number, state, in_doubt, "
            "needs_undo, doc FROM item");
    execute(store_is_postgres() ? "UPDATE task SET doc = replace(doc::text, '\"name\":\"pack\",', "
                                  "'\"name\":\"pack\",\"key_generation\":2,')"
                                : "UPDATE task SET doc = replace(doc, '\"name\":\"pack\",', "
                                  "'\"name\":\"pack\",\"key_generation\":2,')");
    start_configured();
    wait_until_gone("lists");
    CHECK(run(&out, "cat --items") == 0
              && line_count(out.ptr, "\"key_generation\":2,\"items\"") == 1
              && line_count(out.ptr, "{\"items_of\":\"lists\"") == 2,
          "%s", out.ptr);
    node_stop(&node);
}

/* Whatever is written when the server is killed: a task that is not in the store is in the archive
 * with all its items, once. */
static void a_kill_loses_no_item(void **state)
{
    enum { TASKS = 6 };
    char id[20];
    (void)state;

    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(id, sizeof id, "k-%d", i);
        process(id, ITEMS, -1, "processed");
    }
    let_time_pass();
    for (int i = 0; i < 12; i++) {
        start_configured();
        sleep_ms(i * 7);
        node_kill(&node);
    }
    start_configured();
    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(id, sizeof id, "k-%d", i);
        wait_until_gone(id);
        expect_items(id, ITEMS);
    }
    node_stop(&node);
}

static void a_list_that_cannot_be_read_is_kept(void **state)
{
    CLEANUP(buf_fini) struct buf out = {0};
    (void)state;

    process("bad", ITEMS, -1, "processed");
    process("good", 2, -1, "processed");
    let_time_pass();
    execute("UPDATE item SET doc = '{\"state\": \"completed\"}' WHERE number = 400");
    start_configured();
    wait_until_gone("good");
    CHECK(!is_gone("bad"), "it is still there");
    CHECK(node_log_has(&node, "event=task_not_archived task=bad"), "and the log says why");
    CHECK(node_log_has(&node, "item 400 of step pack"), "with its item");
    CHECK(run(&out, "get bad 2>/dev/null") == 1, "nor is it in the archive");
    expect_items("good", 2);
    node_stop(&node);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, node_end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    program = argv[1];
    const struct CMUnitTest tests[] = {
        TEST(all_items_are_archived),
        TEST(all_lists_of_a_step_are_archived),
        TEST(a_kill_loses_no_item),
        TEST(a_list_that_cannot_be_read_is_kept),
    };
    return cmocka_run_group_tests_name("archive-items", tests, NULL, NULL);
}
