/* Tests of each verb against a server with prepared answers (libintact/fake.h): what the verb
 * asks, prints and returns. cli.c is called in this process. tests/e2e has the verbs against real
 * servers. */

#include "base/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "libintact/fake.h"
#include "json/json.h"

static struct {
    struct fake fake;
    int status;
    const char *answers[4]; /* in order; the last one repeats */
    unsigned calls;
    char seen[2000]; /* all calls: "METHOD PATH|BODY\n" */
} s;

static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    size_t len = strlen(s.seen);
    size_t last = 0;
    (void)f;

    snprintf(s.seen + len, sizeof(s.seen) - len, "%s|%.*s\n", line, SLICE_ARG(body));
    while (last + 1 < COUNT_OF(s.answers) && s.answers[last + 1])
        last++;
    buf_str(ret, s.answers[s.calls < last ? s.calls : last]);
    s.calls++;
    return s.status;
}

static char out[8000], err[8000];

static void read_back(int fd, char text[8000])
{
    ssize_t n = pread(fd, text, 7999, 0);

    text[n > 0 ? n : 0] = 0;
    close(fd);
}

/* Runs the program and captures its output. */
static int run(const char *const *args)
{
    char program[] = "intact";
    char *argv[12] = {program};
    char names[2][40] = {"/tmp/intact-cli-out-XXXXXX", "/tmp/intact-cli-err-XXXXXX"};
    int argc = 1;
    int before[2] = {dup(1), dup(2)};
    int files[2] = {mkstemp(names[0]), mkstemp(names[1])};

    for (; args[argc - 1]; argc++)
        argv[argc] = strdup(args[argc - 1]);
    for (int i = 0; i < 2; i++) {
        unlink(names[i]);
        dup2(files[i], i + 1);
    }
    int status = cli_main(argc, argv);
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        dup2(before[i], i + 1);
        close(before[i]);
    }
    read_back(files[0], out);
    read_back(files[1], err);
    for (int i = 1; i < argc; i++)
        free(argv[i]);
    return status;
}

static const char processed[] = "{\"id\":\"o-1\",\"state\":\"processed\"}";
static const char compensated[] = "{\"id\":\"o-1\",\"state\":\"compensated\"}";
static const char pending[] = "{\"id\":\"o-1\",\"state\":\"pending\"}";
static const char record[] =
    "{\"id\":\"o-1\",\"workflow\":\"order\",\"version\":3,\"state\":\"error\","
    "\"error\":{\"code\":\"declined\",\"message\":\"no money\"},\"steps\":[{"
    "\"name\":\"charge\",\"state\":\"failed\",\"agent\":\"payment\","
    "\"action\":\"charge\",\"failure_count\":1,\"in_doubt\":true,\"error\":{"
    "\"code\":\"declined\"},\"attempts\":[{},{}]}]}";
static const char going_back[] =
    "{\"id\":\"o-1\",\"workflow\":\"order\",\"version\":3,\"state\":\"pending\","
    "\"direction\":\"undo\",\"paused_at\":\"2026-01-31T10:00:00.000Z\","
    "\"lock\":\"order/anna\",\"lock_since\":\"2026-01-31T09:00:00.000Z\",\"steps\":[{"
    "\"name\":\"charge\",\"state\":\"undoing\",\"agent\":\"payment\","
    "\"action\":\"charge\",\"failure_count\":1,\"in_doubt\":false,\"error\":null,\"attempts\":["
    "{\"attempt\":1,\"direction\":\"forward\"},{\"attempt\":40,\"direction\":\"forward\"},"
    "{\"attempt\":1,\"direction\":\"undo\"}]}]}";
static const char mistakes[] =
    "{\"title\":\"The definition has mistakes\",\"errors\":[{\"line\":4,"
    "\"column\":9,\"path\":\"steps[0]\",\"found\":\"5\",\"expected\":\"a "
    "name\"}]}";

static const struct {
    const char *args[10];
    int http;
    const char *answers[4];
    int exit;
    const char *seen, *out, *err; /* must be contained; NULL: anything */
} cases[] = {
    {{"submit", "order", "--input", "{\"a\": 1}", "--id", "o-1", "--priority", "7"},
     201,
     {pending},
     0,
     "POST /v1/tasks|{\"workflow\":\"order\",\"priority\":7,\"id\":\"o-1\",\"input\":{\"a\": 1}}\n",
     "o-1\n",
     ""},
    {{"submit", "order", "--tag", "k=v", "--tag", "l=", "--version", "2"},
     201,
     {pending},
     0,
     "POST "
     "/v1/"
     "tasks|{\"workflow\":\"order\",\"version\":2,\"tags\":{\"k\":\"v\",\"l\":\"\"},\"input\":{}}",
     "o-1\n",
     ""},
    {{"submit", "order", "--json"}, 201, {pending}, 0, NULL, pending, ""},
    {{"submit", "order", "--wait", "30s"},
     200,
     {pending, processed},
     0,
     "GET /v1/tasks/o-1?wait=30000ms|",
     "state       processed\n",
     ""},
    {{"submit", "order", "--wait", "30s"}, 200, {pending, compensated}, 1, NULL, "compensated", ""},
    {{"submit", "order", "--wait", "0s"}, 200, {pending}, 1, NULL, "pending", "has not ended yet"},
    {{"submit", "order"},
     409,
     {"{\"title\":\"conflict\",\"detail\":\"exists\"}"},
     1,
     NULL,
     "",
     "intact submit: exists"},
    {{"submit", "order"}, 503, {"{\"title\":\"busy\"}"}, 3, NULL, "", "busy"},
    {{"submit", "order", "--input", "{\"a\": }"},
     200,
     {pending},
     2,
     "",
     "",
     "not JSON: line 1, column 7"},
    {{"submit", "order", "--input", "@/nonexistent/file"},
     200,
     {pending},
     2,
     "",
     "",
     "/nonexistent/file: No such file"},
    {{"submit", "order", "--priority", "x"},
     200,
     {pending},
     2,
     "",
     "",
     "--priority is \"x\", expected a number"},
    {{"submit", "order", "--wait", "30"}, 200, {pending}, 2, "", "", "expected a duration"},
    {{"submit", "order", "--tag", "k"}, 200, {pending}, 2, "", "", "expected KEY=VALUE"},
    {{"submit"},
     200,
     {pending},
     2,
     "",
     "",
     "WORKFLOW is missing, or --file FILE; see intact submit --help"},
    {{"submit", "order", "-f", "x"}, 200, {pending}, 2, "", "", "x: No such file or directory"},
    {{"submit", "order", "-f", "x", "--id", "a"},
     200,
     {pending},
     2,
     "",
     "",
     "--id is of one task, and --file has many"},
    {{"submit", "-f", "x", "--tag", "a=b"},
     200,
     {pending},
     2,
     "",
     "",
     "--tag takes a WORKFLOW beside --file"},
    {{"submit", "o", "--run-id", "a"}, 200, {pending}, 2, "", "", "--run-id goes with --file only"},
    {{"submit", "-f", "x", "--run-id", "a b"},
     200,
     {pending},
     2,
     "",
     "",
     "--run-id is \"a b\", expected"},
    {{"submit", "--nonsense"},
     200,
     {pending},
     2,
     "",
     "",
     "intact submit: there is no flag --nonsense; see intact submit --help\n"},
    {{"submit", "--verison", "2"},
     200,
     {pending},
     2,
     "",
     "",
     "there is no flag --verison, did you mean --version?"},
    {{"submit", "--json=x"}, 200, {pending}, 2, "", "", "--json=x: this flag takes no value"},
    {{"submit", "o", "--input"}, 200, {pending}, 2, "", "", "--input needs a value"},
    {{"submit", "-x"}, 200, {pending}, 2, "", "", "there is no flag -x"},
    {{"list", "--color", "alwys"},
     200,
     {pending},
     2,
     "",
     "",
     "--color is \"alwys\", expected auto, always or never; did you mean always?"},
    {{"list", "--state", "error,proccessing"},
     200,
     {pending},
     2,
     "",
     "",
     "--state is \"proccessing\", expected pending"},
    {{"sumbit"},
     200,
     {pending},
     2,
     "",
     "",
     "intact: there is no verb \"sumbit\", did you mean \"submit\"?; see intact --help"},
    {{"worklfow", "list"}, 200, {pending}, 2, "", "", "did you mean \"workflow\"?"},
    {{"workflow", "lits"},
     200,
     {pending},
     2,
     "",
     "",
     "intact workflow: there is no verb \"lits\", did you mean \"list\"?"},
    {{"submit", "--help"}, 200, {pending}, 0, "", "usage: intact submit", ""},
    {{"submit", "-f", "/nonexistent/file"},
     200,
     {pending},
     2,
     "",
     "",
     "/nonexistent/file: No such file"},
    {{"get", "o-1"},
     200,
     {record},
     0,
     "GET /v1/tasks/o-1|",
     "task        o-1\nworkflow    order, version 3\nstate       error\nerror       declined: no "
     "money\n\n"
     "STEP    STATE   AGENT    ACTION  ATTEMPTS  FAILURES  IN DOUBT  ERROR\n"
     "charge  failed  payment  charge  2         1         yes       declined\n",
     ""},
    {{"get", "o-1", "--json"}, 200, {record}, 0, NULL, record, ""},
    {{"get", "o-1"}, 200, {going_back}, 0, NULL, "state       pending (undo), paused\n", ""},
    {{"get", "o-1"}, 200, {going_back}, 0, NULL, "lock        order/anna, held since ", ""},
    {{"get", "o-1"}, 200, {going_back}, 0, NULL, "charge  40+1      1 ", ""},
    {{"retry", "o-1", "--reason", "r", "--wait", "30s"},
     200,
     {"{\"id\":\"o-1\",\"state\":\"error\",\"direction\":\"forward\"}", pending, processed},
     0,
     "GET /v1/tasks/o-1|\nPOST /v1/tasks/o-1/retry|{\"reason\":\"r\"}\n"
     "GET /v1/tasks/o-1?wait=30000ms|",
     "state       processed\n",
     ""},
    {{"retry", "o-1", "--reason", "r", "--wait", "30s"},
     200,
     {"{\"id\":\"o-1\",\"state\":\"error\",\"direction\":\"forward\"}", pending, compensated},
     1,
     NULL,
     "compensated",
     ""},
    {{"retry", "o-1", "--reason", "r", "--wait", "30s"},
     200,
     {"{\"id\":\"o-1\",\"state\":\"error\",\"direction\":\"undo\"}", pending, compensated},
     0,
     NULL,
     "compensated",
     ""},
    {{"undo", "o-1", "--reason", "r", "--wait", "30s"},
     200,
     {pending, compensated},
     0,
     "POST /v1/tasks/o-1/undo|{\"reason\":\"r\"}\nGET /v1/tasks/o-1?wait=30000ms|",
     "compensated",
     ""},
    {{"undo", "o-1", "--reason", "r", "--wait", "30s"},
     200,
     {pending, processed},
     1,
     NULL,
     "processed",
     ""},
    {{"cancel", "o-1", "--reason", "r", "--wait", "0s"},
     200,
     {pending},
     1,
     NULL,
     "pending",
     "has not ended yet"},
    {{"retry", "--all", "--reason", "r", "--wait", "30s"},
     200,
     {pending},
     2,
     "",
     "",
     "--wait is of one task"},
    {{"retry", "o-1", "--reason", "r", "--wait", "soon"},
     200,
     {pending},
     2,
     "",
     "",
     "--wait is \"soon\", expected a duration"},
    {{"retry", "o-1", "--reason", "r", "--wait", "30s"},
     410,
     {"{\"title\":\"Gone\",\"detail\":\"task o-1 ended processed, and was deleted\"}"},
     1,
     "GET /v1/tasks/o-1|",
     "",
     "was deleted"},
    {{"get", "o-1", "--wait", "1s"},
     200,
     {processed},
     0,
     "GET /v1/tasks/o-1?wait=1000ms|",
     "processed",
     ""},
    {{"get", "o-1", "--wait", "1s"}, 200, {compensated}, 1, NULL, "compensated", ""},
    {{"get", "o-1"}, 404, {"{\"title\":\"not found\"}"}, 1, NULL, "", "not found"},
    {{"get", "o-1", "--wait", "1h"},
     410,
     {"{\"title\":\"Gone\",\"detail\":\"task o-1 ended processed, and was deleted\"}"},
     1,
     "GET /v1/tasks/o-1?wait=30000ms|",
     "",
     "task o-1 ended processed, and was deleted"},
    {{"get", "o-1"}, 200, {"<html>"}, 1, NULL, "", "does not answer like an Intact server"},
    {{"get"}, 200, {record}, 2, "", "", "TASK is missing; see intact get --help"},
    {{"list", "--state", "error", "--tag", "a b=c&d", "--limit", "2"},
     200,
     {"{\"tasks\":[{\"id\":\"a\",\"state\":\"error\",\"priority\":5},{\"id\":\"long-id\",\"state\":"
      "\"x\"}],\"next\":null}"},
     0,
     "GET /v1/tasks?state=error&limit=2&tag.a%20b=c%26d|",
     "a        -         error  5",
     ""},
    {{"list"},
     200,
     {"{\"tasks\":[{\"id\":\"a\",\"state\":\"pending\",\"direction\":\"undo\",\"priority\":5}],"
      "\"next\":null}"},
     0,
     NULL,
     "a   -         pending (undo)  5",
     ""},
    {{"list", "--all"},
     200,
     {"{\"tasks\":[],\"next\":\"17\"}", "{\"tasks\":[{\"id\":\"z\"}],\"next\":null}"},
     0,
     "GET /v1/tasks|\nGET /v1/tasks?cursor=17|\n",
     "\nz ",
     ""},
    {{"list"}, 200, {"{\"tasks\":[],\"next\":\"17\"}"}, 0, "GET /v1/tasks|\n", "ID  WORKFLOW", ""},
    {{"list", "x"},
     200,
     {pending},
     2,
     "",
     "",
     "\"x\" is one word too many; see intact list --help"},
    {{"workflow", "list"},
     200,
     {"{\"workflows\":[{\"name\":\"order\",\"version\":3,\"steps\":2}]}"},
     0,
     "GET /v1/workflows|",
     "WORKFLOW  VERSION  STEPS\norder     3        2\n",
     ""},
    {{"workflow", "get", "order"},
     200,
     {"{\"name\":\"order\",\"definition\":{\"intact\":1}}"},
     0,
     "GET /v1/workflows/order|",
     "{\"intact\":1}\n",
     ""},
    {{"workflow", "get", "order", "2"},
     404,
     {"{\"title\":\"not found\"}"},
     1,
     "GET /v1/workflows/order/versions/2|",
     "",
     "not found"},
    {{"workflow", "get", "a?b"}, 200, {pending}, 2, "", "", "is no name of a workflow"},
    {{"workflow", "drop", "order"},
     200,
     {pending},
     2,
     "",
     "",
     "there is no verb \"drop\"; see intact workflow --help"},
    {{"workflow", "put", "/nonexistent/file"},
     200,
     {pending},
     2,
     "",
     "",
     "/nonexistent/file: No such file"},
};

static void begin(int status, const char *const answers[4])
{
    char url[40];

    memset(&s, 0, sizeof(s));
    s.fake.answer = answer;
    s.status = status;
    memcpy(s.answers, answers, sizeof(s.answers));
    fake_open(&s.fake);
    fake_url(&s.fake, url);
    setenv("INTACT_SERVER", url, 1);
}

static void each_verb_asks_shows_and_ends_as_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin(cases[i].http, cases[i].answers);
        int status = run(cases[i].args);
        fake_close(&s.fake);
        CHECK(status == cases[i].exit, "case %zu: exit %d\n%s%s", i, status, out, err);
        CHECK(!cases[i].seen || strstr(s.seen, cases[i].seen), "case %zu: asked %s", i, s.seen);
        CHECK(!cases[i].seen || cases[i].seen[0] || !s.seen[0], "case %zu: asked %s", i, s.seen);
        CHECK(!cases[i].out || strstr(out, cases[i].out), "case %zu: showed\n%s", i, out);
        CHECK(!cases[i].err || strstr(err, cases[i].err), "case %zu: said\n%s", i, err);
        CHECK(!cases[i].err || cases[i].err[0] || !err[0], "case %zu: said\n%s", i, err);
    }
}

static void a_server_that_is_not_there_is_exit_status_3(void **state)
{
    static const char *const answers[4] = {"{}"};
    static const char *const args[][4] = {{"get", "x"}, {"list"}, {"submit", "w"}};

    (void)state;
    begin(200, answers);
    fake_close(&s.fake);
    for (size_t i = 0; i < COUNT_OF(args); i++) {
        CHECK(run(args[i]) == 3, "%s", args[i][0]);
        CHECK(strstr(err, "Is the server running?"), "%s", err);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f, "%s", path);
    fputs(text, f);
    fclose(f);
}

static void a_file_of_tasks_is_submitted_in_batches_and_its_lines_are_named(void **state)
{
    static const char *const answers[4] = {
        "{\"line\":1,\"status\":201,\"id\":\"a\"}\n{\"line\":2,\"status\":422,\"id\":null,"
        "\"problem\":{"
        "\"detail\":\"no input\"}}\n{\"line\":3,\"status\":200,\"id\":\"c\"}\n"};
    static const char *const args[] = {"submit",   "-f", "intact-cli-test.ndjson",
                                       "--run-id", "r",  NULL};

    (void)state;
    begin(200, answers);
    write_file(args[2], "{\"n\":1}\n\n  \n{\"n\":2}\n{\"n\":3}");
    CHECK(run(args) == 1, "one was refused");
    CHECK(strcmp(s.seen, "POST "
                         "/v1/"
                         "tasks|{\"id\":\"r-1\",\"n\":1}\n{\"id\":\"r-4\",\"n\":2}\n{\"id\":\"r-"
                         "5\",\"n\":3}\n\n")
              == 0,
          "%s", s.seen);
    CHECK(strcmp(out, "1 submitted, 1 existed already, 1 refused\n") == 0, "%s", out);
    CHECK(strcmp(err, "intact-cli-test.ndjson:4: no input (status 422)\n") == 0, "%s", err);

    FILE *f = fopen(args[2], "w");
    CHECK(f, "%s", args[2]);
    for (int i = 0; i < 1001; i++)
        fputs("{}\n", f);
    fclose(f);
    s.calls = 0;
    (void)run(args); /* stops at once: the server answers only three of 500 lines */
    CHECK(s.calls == 1 && strstr(err, "500 tasks submitted, 3 answered"), "%u: %s", s.calls, err);
    unlink(args[2]);
    fake_close(&s.fake);
}

static void a_definition_with_mistakes_is_told_as_compilers_do(void **state)
{
    static const char *const answers[4] = {mistakes};
    static const char *const right[4] = {
        "{\"name\":\"order\",\"version\":4,\"warnings\":[{\"line\":2,\"column\":1,\"path\":\"a\","
        "\"found\":\"b\",\"expected\":\"c\"}]}"};
    static const char *const put[] = {"workflow", "put", "intact-cli-test.def", NULL};

    (void)state;
    begin(422, answers);
    write_file(put[2], "{\"intact\":1,\"workflow\":\"order\"}");
    CHECK(run(put) == 1, "put");
    CHECK(strcmp(err, "intact-cli-test.def:4:9: error: steps[0]: found 5, expected a name\n") == 0,
          "%s", err);
    fake_close(&s.fake);

    begin(201, right);
    CHECK(run(put) == 0, "put");
    CHECK(strcmp(out, "order, version 4\n") == 0, "%s", out);
    CHECK(strcmp(err, "intact-cli-test.def:2:1: warning: a: found b, expected c\n") == 0, "%s",
          err);
    write_file(put[2], "# yaml\nintact: 1\nworkflow: 'order'  # the name\n");
    CHECK(run(put) == 0, "put");
    CHECK(strstr(s.seen, "PUT /v1/workflows/order|# yaml"), "%s", s.seen);
    unsigned calls = s.calls;
    write_file(put[2], "{\"intact\":1, }");
    CHECK(run(put) == 1, "put");
    CHECK(strstr(err, "intact-cli-test.def:1:14: error: found \"}\""), "%s", err);
    write_file(put[2], "intact: 1\nworkflow: a/b\n");
    CHECK(run(put) == 1, "put");
    CHECK(strstr(err, "intact-cli-test.def:2:11: error: workflow: found \"a/b\""), "%s", err);
    CHECK(s.calls == calls, "without a name there is nothing to ask a server");
    unlink(put[2]);
    fake_close(&s.fake);
}

static void a_stored_definition_is_shown_as_it_was_written(void **state)
{
    static const char *const yaml[4] = {"{\"name\":\"w\",\"version\":1,\"steps\":1,\"format\":"
                                        "\"yaml\",\"text\":\"# mine\\nintact: 1\\n\"}"};
    static const char *const json[4] = {"{\"name\":\"w\",\"version\":1,\"steps\":1,\"format\":"
                                        "\"json\",\"definition\":{\"intact\" : 1}}"};
    static const char *const show[] = {"workflow", "get", "w", "1", NULL};

    (void)state;
    begin(200, yaml);
    CHECK(run(show) == 0, "%s", err);
    CHECK(strcmp(out, "# mine\nintact: 1\n") == 0, "%s", out);
    fake_close(&s.fake);
    begin(200, json);
    CHECK(run(show) == 0, "%s", err);
    CHECK(strcmp(out, "{\"intact\" : 1}\n") == 0, "%s", out);
    fake_close(&s.fake);
}

static const char good_yaml[] = "intact: 1\nworkflow: w\nsteps:\n"
                                "  - {name: a, agent: x, action: y, undo: none}\n";

static void definitions_are_validated_without_a_server(void **state)
{
    const char *const one[] = {"validate", "intact-cli-test.yml", NULL};
    const char *const two[] = {"validate", one[1], "intact-cli-test.json", NULL};
    const char *const json[] = {"validate", "--json", one[1], two[2], NULL};
    const char *const strict[] = {"validate", "--warnings-are-errors", one[1], NULL};
    const char *const absent[] = {"validate", "intact-cli-test.none", one[1], NULL};
    const char *const none[] = {"validate", NULL};
    const char *const odd[] = {"validate", "--server", "x", one[1], NULL};
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    (void)state;
    setenv("INTACT_SERVER", "http://127.0.0.1:1", 1);
    write_file(one[1], good_yaml);
    write_file(two[2], "{\"intact\":1,\n\"workflow\":\"w\",\n\"stepps\":[]}");
    CHECK(run(one) == 0, "%s", err);
    CHECK(strcmp(out, "intact-cli-test.yml: no mistakes\n") == 0 && !*err, "%s%s", out, err);
    CHECK(run(two) == 1, "one of two");
    CHECK(strcmp(err, "intact-cli-test.json:1:1: error: steps: found nothing, expected a key "
                      "\"steps\"\nintact-cli-test.json:3:1: error: stepps: found key "
                      "\"stepps\": did you mean \"steps\"?\n")
              == 0,
          "%s", err);
    CHECK(run(json) == 1, "json");
    CHECK(json_parse(&a, slice_of(out), &j, NULL) == ERR_OK, "%s", out);
    const struct json *files = json_get(j, "files");
    CHECK(files && files->count == 2, "%s", out);
    CHECK(json_get(files->child, "errors")->count == 0, "%s", out);
    CHECK(json_get(files->child->next, "errors")->count == 2, "%s", out);
    CHECK(slice_is(json_get_raw(files->child->next, "was_read"), "true"), "%s", out);
    CHECK(run(absent) == 2, "a file that is not there");
    CHECK(strstr(err, "No such file") && strstr(out, "no mistakes"), "%s%s", out, err);
    CHECK(run(none) == 2 && strstr(err, "FILE is missing"), "%s", err);
    CHECK(run(odd) == 2 && strstr(err, "no flag --server"), "%s", err);

    write_file(one[1], "intact: 1\nworkflow: w\nsteps:\n"
                       "  - {name: a, agent: x, action: y, undo: none, if: \"true\"}\n");
    CHECK(run(one) == 0 && !*out, "%s", out);
    CHECK(strcmp(err, "intact-cli-test.yml:4:52: warning: steps[0].if: found \"true\", "
                      "expected a condition that depends on something\n")
              == 0,
          "%s", err);
    CHECK(run(strict) == 1, "warnings count");
    unlink(one[1]);
    unlink(two[2]);
    unsetenv("INTACT_SERVER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verb_asks_shows_and_ends_as_it_should),
        cmocka_unit_test(a_server_that_is_not_there_is_exit_status_3),
        cmocka_unit_test(a_file_of_tasks_is_submitted_in_batches_and_its_lines_are_named),
        cmocka_unit_test(a_definition_with_mistakes_is_told_as_compilers_do),
        cmocka_unit_test(a_stored_definition_is_shown_as_it_was_written),
        cmocka_unit_test(definitions_are_validated_without_a_server),
    };

    char folder[] = "/tmp/intact-cli-test.XXXXXX"; /* two builds can be tested at the same time */
    int failed = 1;

    unsetenv("INTACT_TOKEN");
    if (mkdtemp(folder) && chdir(folder) == 0) {
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)rmdir(folder);
    }
    return failed;
}
