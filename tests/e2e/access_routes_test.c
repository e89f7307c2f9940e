/* Tests of access to routes: every route of the server's own table (api/routes.c), and which
 * roles may use it. A new route must be added here. access_test.c has tokens. */

#include "kit.h"

static struct node node;
static const char *routes_path; /* src/api/routes.c */
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

enum who {
    NONE = 1,
    SUBMIT = 2,
    READ = 4,
    OPERATE = 8,
    AG = 16,    /* agent:ag */
    OTHER = 32, /* agent:other */
    AGENTS = 64,
    ADMIN = 128,
    SUBMIT_TO = 256, /* submit:held */
    READ_SOME = 512, /* read:he* */
    DEFINE = 1024,
    REPAIR = 2048,
    APPROVE = 4096,
    LINK = 8192,
    APPROVERS = APPROVE | ADMIN,
    WORKERS = AG | AGENTS | ADMIN,
    OWNERS = SUBMIT | SUBMIT_TO | OPERATE | ADMIN,
    REPAIRERS = REPAIR | OPERATE | ADMIN,
    DEFINERS = DEFINE | OPERATE | ADMIN,
    READERS = READ | REPAIR | OPERATE | ADMIN,
    LISTERS = READERS | READ_SOME,
    SEERS = OWNERS | LISTERS,
    KNOWERS = SEERS | DEFINE,
    PEOPLE = KNOWERS | APPROVE | LINK,
    BEARERS = KNOWERS | AG | OTHER | AGENTS | APPROVE | LINK,
};

static const struct {
    const char *roles;
    enum who who;
} holders[] = {
    {NULL, NONE},
    {"\"submit\"", SUBMIT},
    {"\"submit:held\"", SUBMIT_TO},
    {"\"read\"", READ},
    {"\"read:he*\"", READ_SOME},
    {"\"define\"", DEFINE},
    {"\"repair\"", REPAIR},
    {"\"operate\"", OPERATE},
    {"\"define\", \"repair\"", DEFINE | REPAIR},
    {"\"agent:ag\"", AG},
    {"\"agent:other\"", OTHER},
    {"\"agent:*\"", AGENTS},
    {"\"approve\"", APPROVE},
    {"\"link\"", LINK},
    {"\"admin\"", ADMIN},
    {"\"submit\", \"agent:ag\"", SUBMIT | AG},
};

/* What the server serves, and whom. Its own table, as `pattern`, may lack the last ones. */
static const struct {
    const char *method, *pattern, *path;
    unsigned may;
} routes[] = {
    {"GET", "healthz", "/healthz", NONE | BEARERS},
    {"GET", "readyz", "/readyz", NONE | BEARERS},
    {"GET", "metrics", "/metrics", READERS},
    {"GET", "v1/tasks", "/v1/tasks", LISTERS},
    {"GET", "v1/agents", "/v1/agents", READERS},
    {"GET", "v1/agents/*", "/v1/agents/ag", READERS},
    {"PUT", "v1/agents/*", "/v1/agents/ag", DEFINERS | REPAIR},
    {"DELETE", "v1/agents/*", "/v1/agents/ag", DEFINERS | REPAIR},
    {"POST", "v1/agents/*/breaker", "/v1/agents/ag/breaker", REPAIRERS},
    {"GET", "v1/stats", "/v1/stats", READERS},
    {"GET", "v1/audit", "/v1/audit", REPAIRERS},
    {"GET", "v1/submissions", "/v1/submissions", READERS},
    {"POST", "v1/submissions/retry", "/v1/submissions/retry", REPAIRERS},
    {"POST", "v1/submissions/drop", "/v1/submissions/drop", REPAIRERS},
    {"POST", "v1/submissions/refused", "/v1/submissions/refused", SUBMIT | OPERATE | ADMIN},
    {"GET", "v1/tasks/*", "/v1/tasks/x", SEERS},
    {"POST", "v1/tasks", "/v1/tasks", OWNERS},
    {"POST", "v1/tasks/*/retry", "/v1/tasks/x/retry", REPAIRERS},
    {"POST", "v1/tasks/*/skip", "/v1/tasks/x/skip", REPAIRERS},
    {"POST", "v1/tasks/*/undo", "/v1/tasks/x/undo", REPAIRERS},
    {"POST", "v1/tasks/*/pause", "/v1/tasks/x/pause", REPAIRERS},
    {"POST", "v1/tasks/*/resume", "/v1/tasks/x/resume", REPAIRERS},
    {"POST", "v1/tasks/*/correct", "/v1/tasks/x/correct", REPAIRERS},
    {"POST", "v1/tasks/*/supply", "/v1/tasks/x/supply", REPAIRERS},
    {"POST", "v1/tasks/*/resolve", "/v1/tasks/x/resolve", REPAIRERS},
    {"POST", "v1/tasks/*/close", "/v1/tasks/x/close", REPAIRERS},
    {"POST", "v1/tasks/*/reopen", "/v1/tasks/x/reopen", REPAIRERS},
    {"GET", "v1/approvals", "/v1/approvals", READERS | APPROVE | LINK},
    {"POST", "v1/approvals/*/*/approve", "/v1/approvals/x/y/approve", APPROVERS},
    {"POST", "v1/approvals/*/*/reject", "/v1/approvals/x/y/reject", APPROVERS},
    {"POST", "v1/approvals/*/*/link", "/v1/approvals/x/y/link", APPROVERS | LINK},
    {"GET", "v1/approvals/*", "/v1/approvals/x", NONE | BEARERS},
    {"POST", "v1/approvals/*", "/v1/approvals/x", NONE | BEARERS},
    {"POST", "v1/operations", "/v1/operations", REPAIRERS},
    {"GET", "v1/operations", "/v1/operations", READERS},
    {"GET", "v1/operations/*", "/v1/operations/x", READERS},
    {"POST", "v1/operations/*/stop", "/v1/operations/x/stop", REPAIRERS},
    {"POST", "v1/operations/*/continue", "/v1/operations/x/continue", REPAIRERS},
    {"PUT", "v1/schedules/*", "/v1/schedules/x", DEFINERS},
    {"GET", "v1/schedules", "/v1/schedules", READERS | DEFINERS},
    {"GET", "v1/schedules/*", "/v1/schedules/x", READERS | DEFINERS},
    {"GET", "v1/schedules/*/versions/*", "/v1/schedules/x/versions/1", READERS | DEFINERS},
    {"GET", "v1/schedules/*/next", "/v1/schedules/x/next", READERS | DEFINERS},
    {"DELETE", "v1/schedules/*", "/v1/schedules/x", DEFINERS},
    {"POST", "v1/schedules/*/pause", "/v1/schedules/x/pause", REPAIRERS},
    {"POST", "v1/schedules/*/resume", "/v1/schedules/x/resume", REPAIRERS},
    {"POST", "v1/schedules/*/run", "/v1/schedules/x/run", REPAIRERS},
    {"POST", "v1/schedules/*/backfill", "/v1/schedules/x/backfill", REPAIRERS},
    {"GET", "v1/alerts", "/v1/alerts", READERS},
    {"GET", "v1/locks", "/v1/locks", READERS},
    {"POST", "v1/alerts/*/acknowledge", "/v1/alerts/x/acknowledge", REPAIRERS},
    {"POST", "v1/alerts/test", "/v1/alerts/test", REPAIRERS},
    {"GET", "v1/outbox", "/v1/outbox", READERS},
    {"GET", "v1/targets", "/v1/targets", READERS},
    {"POST", "v1/outbox/retry", "/v1/outbox/retry", REPAIRERS},
    {"POST", "v1/outbox/drop", "/v1/outbox/drop", REPAIRERS},
    {"GET", "v1/workflows", "/v1/workflows", KNOWERS},
    {"GET", "v1/workflows/*", "/v1/workflows/held", KNOWERS},
    {"GET", "v1/workflows/*/versions/*", "/v1/workflows/held/versions/1", KNOWERS},
    {"POST", "v1/validate", "/v1/validate", KNOWERS},
    {"PUT", "v1/workflows/*", "/v1/workflows/held", DEFINERS},
    {"POST", "v1/workflows", "/v1/workflows", DEFINERS},
    {"POST", "v1/agents/*/work", "/v1/agents/ag/work", WORKERS},
    {"POST", "v1/agents/*/work", "/v1/agents/%61g/work", WORKERS},
    {"GET", "v1/nodes", "/v1/nodes", BEARERS},
    {"POST", "v1/backup", "/v1/backup", ADMIN},
    {"POST", "v1/retire", "/v1/retire", ADMIN},
    {"GET", "v1/tokens", "/v1/tokens", ADMIN},
    {"POST", "v1/tokens", "/v1/tokens", ADMIN},
    {"POST", "v1/tokens/*/rotate", "/v1/tokens/nobody/rotate", ADMIN},
    {"PUT", "v1/tokens/*", "/v1/tokens/nobody", ADMIN},
    {"DELETE", "v1/tokens/*", "/v1/tokens/nobody", ADMIN},
    {"GET", "v1/overview", "/v1/overview", READERS},
    {"GET", "v1/clock", "/v1/clock", ADMIN},
    {"POST", "v1/clock/advance", "/v1/clock/advance", ADMIN},
    {"POST", "v1/session", "/v1/session", PEOPLE},
    {"GET", "v1/session", "/v1/session", BEARERS},
    {"DELETE", "v1/session", "/v1/session", BEARERS},
    {"POST", "v1/session/codes", "/v1/session/codes", PEOPLE},
    {"GET", "v1/sessions", "/v1/sessions", BEARERS},
    {"DELETE", "v1/sessions/*", "/v1/sessions/x", BEARERS},
    {"GET", "v1/tasks/*/events", "/v1/tasks/x/events", SEERS},
    {"GET", "v1/tasks/*/why", "/v1/tasks/x/why", SEERS},
    {"POST", "v1/tasks/*/cancel", "/v1/tasks/x/cancel", OWNERS | REPAIR},
    {"GET", "v1/tasks/*/items", "/v1/tasks/x/items?step=a", SEERS},
    {"GET", "v1/tasks/*/signals", "/v1/tasks/x/signals", SEERS},
    {"POST", "v1/tasks/*/signals/*", "/v1/tasks/x/signals/paid", OWNERS | REPAIR},
    {"POST", "v1/tasks/*/signals/*/drop", "/v1/tasks/x/signals/paid/drop", REPAIRERS},
    {"POST", "v1/signals", "/v1/signals", REPAIRERS},
    {"POST", "v1/signals/*", "/v1/signals/x", NONE | BEARERS},
    {"POST", "v1/agents/*/heartbeats", "/v1/agents/ag/heartbeats", WORKERS},
    {"POST", "v1/attempts/*", "/v1/attempts/x", NONE | BEARERS},
};

/* "may" of a route is not known here: a line for it is missing above. */
static bool is_listed(const char *method, const char *pattern)
{
    for (size_t i = 0; i < COUNT_OF(routes); i++)
        if (strcmp(routes[i].method, method) == 0 && strcmp(routes[i].pattern, pattern) == 0)
            return true;
    return strcmp(pattern, "v1/events") == 0; /* never ends: tested with the other streams */
}

/* The routes of the server's own table. */
static bool is_served(const char *method, const char *pattern)
{
    FILE *f = fopen(routes_path, "r");
    char line[200];
    char m[16];
    char p[100];
    bool served = false;

    CHECK(f, "%s", routes_path);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, " {\"%15[A-Z]\", \"%99[^\"]\",", m, p) != 2)
            continue;
        CHECK(is_listed(m, p), "%s %s: who may use it?", m, p);
        served |= strcmp(m, method) == 0 && strcmp(p, pattern) == 0;
    }
    (void)fclose(f);
    return served;
}

static void one_route(size_t i, const struct node *n, enum who who)
{
    const char *method = routes[i].method;
    bool may = routes[i].may & who;

    int status = status_as(n, method, routes[i].path);
    bool in = status != 401 && status != 403;
    CHECK(in == may, "%s %s by %d: %d", method, routes[i].path, (int)who, status);
    CHECK(in || status == (who == NONE ? 401 : 403), "%s %s: %d", method, routes[i].path, status);
    if (strcmp(method, "GET") == 0)
        CHECK(status_as(n, "HEAD", routes[i].path) == status, "HEAD %s by %d is not as GET",
              routes[i].path, (int)who);
}

static void every_route_is_for_its_roles_alone(void **state)
{
    struct node n[COUNT_OF(holders)];
    (void)state;

    submit(&node, "held", "x");
    for (size_t h = 0; h < COUNT_OF(holders); h++) {
        char name[20];
        char token[64] = "";
        (void)snprintf(name, sizeof name, "holder-%zu", h);
        if (holders[h].roles)
            make_token(&node, name, holders[h].roles, NULL, token);
        n[h] = as(&node, token);
    }
    for (size_t i = 0; i < COUNT_OF(routes); i++)
        for (size_t h = 0; h < COUNT_OF(holders); h++)
            if (is_served(routes[i].method, routes[i].pattern))
                one_route(i, &n[h], holders[h].who);
}

static void strangers_do_not_learn_what_is_there(void **state)
{
    const struct node stranger = as(&node, "");
    REPLY r = {0};
    (void)state;

    CHECK(status_as(&stranger, "GET", "/nowhere") == 401, "no such route");
    CHECK(status_as(&stranger, "DELETE", "/v1/tasks") == 401, "no such method");
    CHECK(status_as(&stranger, "POST", "/healthz") == 401, "nor there");
    CHECK(status_as(&node, "GET", "/nowhere") == 404, "the admin does");
    CHECK(status_as(&node, "DELETE", "/v1/tasks") == 405, "the admin does");
    /* the role is looked at before the body */
    char token[64];
    make_token(&node, "reader", "\"read\"", NULL, token);
    const struct node reader = as(&node, token);
    CHECK(status_as(&reader, "DELETE", "/v1/tasks") == 405, "who may look learns the methods");
    send_as(&reader, &r, "POST", "/v1/tasks", "text/plain", SLICE("garbage"));
    expect_problem(&r, 403, "forbidden");
    CHECK(strstr(text_at(&r, "detail"), "\"reader\" may not do this: it requires the role submit, "
                                        "operate or admin"),
          "%s", text_at(&r, "detail"));
    send_as(&reader, &r, "POST", "/v1/agents/ag/work", "text/plain", SLICE("garbage"));
    CHECK(strstr(text_at(&r, "detail"), "it requires the role agent:ag or admin"), "%s",
          text_at(&r, "detail"));
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    CHECK(argc > 2, "usage: %s INTACT src/api/routes.c", argv[0]);
    routes_path = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_route_is_for_its_roles_alone, start, node_end),
        cmocka_unit_test_setup_teardown(strangers_do_not_learn_what_is_there, start, node_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
