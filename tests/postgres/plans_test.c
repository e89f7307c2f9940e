/*
 * Every statement reads only a few rows, however many tasks are stored: checked in the plans that
 * the database has executed, by auto_explain. With statistics, with none, and with those of a
 * formerly empty table; with custom and with generic plans.
 */

#include "base/test.h"

#include <stdlib.h>

#include "cluster.h"
#include "many.h"
#include "store/postgres/body.h"
#include "json/json.h"

enum {
    FINISHED = 60000,
    RESERVED = 30000,
    RESERVED_DUE = 1000,
    SEVERAL = 5000,
    CHILDREN = 2000,
    ITEMS = 1000
};

/* What the plans that came since the last look have done. */
struct seen {
    unsigned plans;
    double most; /* rows that one of their nodes looked at */
    char worst[200];
    char scanned[200]; /* a large table, from end to end; "": none */
};

struct world {
    struct store *s;
    struct seen seen;
    struct arena a;
    struct error e;
};

static double number(const struct json *j, const char *key)
{
    struct slice raw = json_get_raw(j, key);

    return raw.ptr ? strtod(raw.ptr, NULL) : 0;
}

static bool is_large(struct slice table)
{
    return slice_is(table, "task") || slice_is(table, "payload") || slice_is(table, "tag")
           || slice_is(table, "reserved") || slice_is(table, "wait") || slice_is(table, "item");
}

static void look_at(struct seen *s, const struct json *plan)
{
    struct slice type = json_get_text(plan, "Node Type");
    struct slice table = json_get_text(plan, "Relation Name");
    double loops = number(plan, "Actual Loops");
    double rows = (number(plan, "Actual Rows") + number(plan, "Rows Removed by Filter")
                   + number(plan, "Rows Removed by Index Recheck")
                   + number(plan, "Rows Removed by Join Filter"))
                  * loops;

    if (rows > s->most) {
        s->most = rows;
        (void)snprintf(s->worst, sizeof s->worst, "%.*s on %.*s by %.*s", SLICE_ARG(type),
                       SLICE_ARG(table), SLICE_ARG(json_get_text(plan, "Index Name")));
    }
    if (loops > 0 && is_large(table) && slice_is(type, "Seq Scan"))
        (void)snprintf(s->scanned, sizeof s->scanned, "%.*s", SLICE_ARG(table));
    const struct json *inner = json_get(plan, "Plans");
    for (const struct json *j = inner ? inner->child : NULL; j; j = j->next)
        look_at(s, j);
}

static void take_notice(void *arg, const PGresult *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *begin = text ? strchr(text, '{') : NULL;
    struct world *w = arg;
    struct json *j = NULL;

    if (!begin || !strstr(text, "plan:"))
        return;
    CHECK(json_parse(&a, slice_of(begin), &j, NULL) == ERR_OK, "%s", text);
    w->seen.plans++;
    look_at(&w->seen, json_get(j, "Plan"));
}

static void looked(struct world *w, const char *what, double most)
{
    CHECK(w->seen.plans > 0, "%s: the database tells of no plan", what);
    CHECK(!w->seen.scanned[0], "%s: all of %s", what, w->seen.scanned);
    CHECK(w->seen.most <= most, "%s: %.0f rows, %s", what, w->seen.most, w->seen.worst);
    w->seen = (struct seen){0};
}

static void open_with(struct world *w, const char *schema, const char *mode)
{
    char conninfo[600];

    (void)snprintf(conninfo, sizeof conninfo,
                   "%s options='-c session_preload_libraries=auto_explain "
                   "-c auto_explain.log_min_duration=0 -c auto_explain.log_analyze=on "
                   "-c auto_explain.log_timing=off -c auto_explain.log_format=json "
                   "-c auto_explain.log_level=notice -c client_min_messages=notice "
                   "-c plan_cache_mode=%s'",
                   cluster_conninfo(), mode);
    const struct postgres_options o = {.conninfo = conninfo, .schema = schema, .node = "n1"};
    enum err err = postgres_store_open(&o, &w->s, &w->e);
    CHECK(err == ERR_OK, "%s", w->e.text);
    (void)PQsetNoticeReceiver(postgres_store_of(w->s)->conn, take_notice, w);
}

static void must(enum err err, const struct world *w)
{
    CHECK(err == ERR_OK, "%s", w->e.text);
}

/* ---- the operations ---- */

static void look_at_reading(struct world *w)
{
    const struct store_ops *ops = w->s->ops;
    struct row_page page;
    struct task_row row;
    struct census c;

    must(ops->get(w->s, SLICE("done-30000"), &w->a, &row, &w->e), w);
    looked(w, "get", 2);
    must(ops->overdue(w->s, 1000, 0, 0, 10, &w->a, &page, &w->e), w);
    CHECK(page.count == 10 && page.more, "%zu overdue", page.count);
    looked(w, "overdue", 11);
    must(ops->requested(w->s, SLICE("n9/1"), 0, 5, &w->a, &page, &w->e), w);
    CHECK(page.count == 5 && page.more, "%zu requested", page.count);
    looked(w, "requested", 6);
    must(ops->counts->census(w->s, 1000, 100, &w->a, &c, &w->e), w);
    CHECK(c.tasks[TASK_PENDING] == 100 && c.tasks[TASK_COMPENSATED] == 20, "census");
    CHECK(c.overdue == 20 && c.agent_count == 3 && c.sleeping == 30, "census");
    looked(w, "census", 100);
}

/* What nodes ask for every second or so. */
static void look_at_polling(struct world *w)
{
    const struct store_ops *ops = w->s->ops;
    enum { IDS = 300 };
    static char ids[IDS][24];
    struct slice asked[IDS];
    struct glance glances[IDS];
    const struct slice agents[] = {SLICE("agent-1"), SLICE("agent-2"), SLICE("agent-3")};
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .leads = true,
                       .length_ms = 3000,
                       .agents = agents,
                       .agent_count = COUNT_OF(agents)};
    struct generations known;
    struct node_row *nodes;
    struct workflow_row *workflows;
    uint64_t generation;
    size_t count;

    for (size_t i = 0; i < IDS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "done-%zu", 1000 + 100 * i);
        asked[i] = slice_of(ids[i]);
    }
    must(ops->glance(w->s, asked, IDS, &w->a, glances, &w->e), w);
    CHECK(glances[0].revision == 9 && glances[IDS - 1].state == TASK_PROCESSED, "glances");
    looked(w, "glance at 300", IDS);
    for (int i = 0; i < 2; i++) { /* takes leases, then renews them */
        must(ops->nodes->survey(w->s, &v, &w->a, &w->e), w);
        CHECK(v.orphans && v.waiting[0] && !v.waiting[1] && v.wake_at == 900 && !v.requested,
              "survey");
        CHECK(!v.among[0] && !v.among[1] && v.among[2], "survey of those that wait for several");
        looked(w, "survey", 20);
    }
    must(ops->nodes->generations(w->s, &known, &w->e), w);
    looked(w, "generations", 2);
    must(ops->nodes->workflow_since(w->s, known.workflows, &w->a, &workflows, &count, &generation,
                                    &w->e),
         w);
    looked(w, "new workflows", 2);
    must(ops->nodes->list(w->s, ops->now(w->s), &w->a, &nodes, &count, &w->e), w);
    looked(w, "nodes", 10);
}

/* What a list has is read, and nothing of others. */
static void look_at_items(struct world *w)
{
    const struct store_item_ops *ops = w->s->ops->items;
    struct item_read r = {.task = SLICE("done-30001"),
                          .step = SLICE("pack"),
                          .generation = 1,
                          .from = 500,
                          .limit = 10,
                          .bytes_max = 1 << 20};
    struct item_outputs o = {.task = SLICE("done-30001"),
                             .step = SLICE("pack"),
                             .generation = 1,
                             .item_count = ITEMS,
                             .bytes_max = 1 << 20};

    must(ops->read(w->s, &r, &w->a, &w->e), w);
    CHECK(r.count == 10 && r.more && r.rows[0].number == 500, "%zu items", r.count);
    looked(w, "items", 50);
    r.order = ITEMS_DOWN;
    must(ops->read(w->s, &r, &w->a, &w->e), w);
    CHECK(r.count == 10 && r.more && r.rows[0].number == 499, "%zu items", r.count);
    looked(w, "items, the last first", 50);
    r.order = ITEMS_TO_UNDO;
    r.limit = 3;
    must(ops->read(w->s, &r, &w->a, &w->e), w);
    CHECK(r.count == 3 && r.more && r.rows[2].number == 200, "%zu items", r.count);
    looked(w, "items to undo", ITEMS); /* nearly always all of a list, or none */
    r.limit = 1;
    r.is_all = true; /* after a late result */
    must(ops->read(w->s, &r, &w->a, &w->e), w);
    CHECK(r.count == 1 && !r.more && r.rows[0].number == 400, "%zu items", r.count);
    looked(w, "the last item to undo", 110);
    must(ops->outputs(w->s, &o, &w->a, &w->e), w);
    CHECK(o.json.len == 2 * ITEMS + 1, "%zu bytes", o.json.len);
    looked(w, "outputs", ITEMS + 1);
}

static void look_at_notices(struct world *w)
{
    enum { NOTICES = 30 };
    const struct store_notice_ops *ops = w->s->ops->notices;
    static struct notice_row rows[NOTICES];
    static struct notice_verdict gone[NOTICES];
    struct notice_read n = {.limit = 10, .bytes_max = 1 << 20};
    static struct slice tasks[NOTICES];
    int64_t told_at[NOTICES];
    static char ids[NOTICES][24];

    for (size_t i = 0; i < NOTICES; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "done-%zu", 1000 + 100 * i);
        tasks[i] = slice_of(ids[i]);
        rows[i] = (struct notice_row){.task = tasks[i],
                                      .sender = SLICE("sql"),
                                      .kind = NOTICE_SIGNAL,
                                      .at = 7,
                                      .body = SLICE("{}")};
    }
    must(ops->put(w->s, rows, NOTICES, &w->e), w);
    looked(w, "new notices", NOTICES);
    must(ops->read(w->s, &n, &w->a, &w->e), w);
    CHECK(n.count == 10 && n.more && n.rows[9].has_task, "%zu notices", n.count);
    looked(w, "notices", NOTICES);
    n.after_seq = n.rows[9].seq;
    n.limit = NOTICES;
    must(ops->read(w->s, &n, &w->a, &w->e), w);
    CHECK(n.count == NOTICES - 10 && !n.more, "%zu notices", n.count);
    looked(w, "further notices", NOTICES);
    must(ops->told(w->s, tasks, NOTICES, told_at, &w->e), w);
    CHECK(told_at[0] == 7 && told_at[NOTICES - 1] == 7, "told");
    looked(w, "when tasks were told", NOTICES);
    n.after_seq = 0;
    must(ops->read(w->s, &n, &w->a, &w->e), w);
    for (size_t i = 0; i < n.count; i++)
        gone[i].seq = n.rows[i].seq;
    must(ops->settle(w->s, gone, n.count, &w->e), w);
    looked(w, "settled notices", NOTICES);
}

static void look_at_audit(struct world *w)
{
    struct audit_query q = {.limit = 10};
    struct audit_page page;

    must(w->s->ops->audit_list(w->s, &q, &w->a, &page, &w->e), w);
    CHECK(page.count == 10 && page.more, "audit");
    looked(w, "the newest of the audit", 11);
    q.task = SLICE("done-700");
    must(w->s->ops->audit_list(w->s, &q, &w->a, &page, &w->e), w);
    CHECK(page.count == 1, "audit of a task");
    looked(w, "audit of a task", 11);
    q.task = SLICE("done-none");
    must(w->s->ops->audit_list(w->s, &q, &w->a, &page, &w->e), w);
    looked(w, "audit of no task", 11);
}

static void list(struct world *w, const char *what, const struct list_query *q, size_t count,
                 double most)
{
    struct row_page page;

    must(w->s->ops->list(w->s, q, &w->a, &page, &w->e), w);
    CHECK(page.count == count, "%s: %zu", what, page.count);
    looked(w, what, most);
}

__attribute__((noinline)) static void look_at_listings(struct world *w)
{
    const struct tag tag = {SLICE("customer"), SLICE("c-7")};
    const struct tag nobody = {SLICE("customer"), SLICE("c-none")};

    list(w, "the newest", &(struct list_query){.limit = 10}, 10, 44);
    list(w, "further down", &(struct list_query){.limit = 10, .before_seq = 30000}, 10, 44);
    list(w, "of a state", &(struct list_query){.limit = 10, .states = 1U << TASK_ERROR}, 10, 44);
    list(w, "of a workflow", &(struct list_query){.limit = 10, .workflow = SLICE("order-3")}, 10,
         44);
    list(w, "with a tag", &(struct list_query){.limit = 10, .tags = &tag, .tag_count = 1}, 10, 100);
    list(w, "with a tag that nobody has",
         &(struct list_query){.limit = 10, .tags = &nobody, .tag_count = 1}, 0, 44);
    list(w, "children of a task", &(struct list_query){.limit = 10, .parent = SLICE("done-7")}, 10,
         44);
    list(w, "children of a task without any",
         &(struct list_query){.limit = 10, .parent = SLICE("undone-7")}, 0, 10);
    list(w, "a family", &(struct list_query){.limit = 10, .root = SLICE("done-7")}, 10, 44);
    list(w, "a family that there is not",
         &(struct list_query){.limit = 10, .root = SLICE("undone-7")}, 0, 10);
    /* all are of about that time, and none fits: it goes on to its limit, and no further */
    list(w, "of a time", &(struct list_query){.limit = 10, .submitted_before = 1, .scan_max = 500},
         0, 500);
    list(w, "of a state and a workflow",
         &(struct list_query){.limit = 10,
                              .states = 1U << TASK_ERROR,
                              .workflow = SLICE("order-3")},
         2, 44);
}

enum { FILTER_SCAN = 200 };

/* Whatever a filter asks for, and however little fits: a page of an operation is bounded. */
static void look_at_filters(struct world *w)
{
    const struct slice ids[] = {SLICE("done-30000"), SLICE("done-40000"), SLICE("nobody")};
    const struct list_place step = {.step = SLICE("no-such-step")};
    const struct list_place place = {SLICE("order-3"), 1, SLICE("no-such-step")};
    const uint32_t open = 1U << TASK_PENDING | 1U << TASK_PROCESSING | 1U << TASK_ERROR;
    const struct {
        const char *what;
        struct list_query q;
    } filters[] = {
        {"by error", {.states = 1U << TASK_ERROR, .error = SLICE("declined")}},
        {"by error, of all", {.error = SLICE("declined")}},
        {"by version", {.version = 77}},
        {"by version of a workflow", {.version = 77, .workflow = SLICE("order-3")}},
        {"by step", {.states = open, .places = &step, .place_count = 1}},
        {"by step of a workflow", {.states = open, .places = &place, .place_count = 1}},
        {"by agent", {.states = open, .agent = SLICE("agent-2")}},
        {"by end", {.ended_before = 1}},
        {"by end of a state", {.states = 1U << TASK_PROCESSED, .ended_after = INT64_MAX}},
        {"paused", {.paused = LIST_ONLY}},
        {"closed", {.states = 1U << TASK_ERROR, .closed = LIST_ONLY}},
        {"by what few ids begin with", {.id_prefix = SLICE("done-3000"), .version = 77}},
        {"by what many ids begin with", {.id_prefix = SLICE("done-"), .version = 77}},
        {"by ids and what none of them is", {.ids = ids, .id_count = 3, .version = 77}},
    };

    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        struct list_query q = filters[i].q;
        struct row_page page;
        q.limit = 64;
        q.scan_max = FILTER_SCAN;
        must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), w);
        CHECK(page.count == 0 || q.states == open, "%s: %zu", filters[i].what, page.count);
        looked(w, filters[i].what, 2 * FILTER_SCAN);
    }
    list(w, "by ids", &(struct list_query){.limit = 64, .ids = ids, .id_count = 3}, 2, 10);
}

static void claim(struct world *w, const char *what, struct claim c, size_t count, double most)
{
    struct batch b = {.claims = &c, .claim_count = 1};

    c.locked_by = SLICE("n1/1");
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w);
    CHECK(c.row_count == count, "%s: %zu", what, c.row_count);
    looked(w, what, most);
}

static void look_at_claims(struct world *w)
{
    claim(w, "claim for an agent",
          (struct claim){.kind = CLAIM_AGENT, .agent = SLICE("agent-1"), .limit = 10}, 10, 60);
    claim(w, "claim for nobody",
          (struct claim){.kind = CLAIM_AGENT, .agent = SLICE("agent-2"), .limit = 10}, 0, 10);
    claim(w, "claim of sleepers",
          (struct claim){.kind = CLAIM_TIME, .agent = WAITING_TIME, .now = INT64_MAX, .limit = 2},
          2, 20);
    claim(w, "claim of an older boot", (struct claim){.kind = CLAIM_BOOT, .limit = 10}, 0, 20);
    claim(w, "claim of a node that is gone",
          (struct claim){.kind = CLAIM_NODE, .now = 5, .limit = 3}, 3, 60);
    claim(
        w, "claim for one of several",
        (struct claim){.kind = CLAIM_AGENT, .agent = SLICE("agent-3"), .among = true, .limit = 10},
        10, 60);
    claim(w, "claim of those that sleep beside agents, of which there are none",
          (struct claim){.kind = CLAIM_TIME,
                         .agent = WAITING_TIME,
                         .among = true,
                         .now = INT64_MAX,
                         .limit = 2},
          0, 10);
}

/* The batch again, and each of them tells one, and has a child. */
static void tell_each_other(struct world *w, struct batch *b)
{
    static struct notice_row tells[10];
    static struct submission_row children[10];
    static unsigned number;
    static char keys[10][24];

    for (size_t i = 0; i < b->change_count; i++) {
        struct change *c = &b->changes[i];
        (void)snprintf(keys[i], sizeof keys[i], "c-%u", number++);
        tells[i] = (struct notice_row){.task = SLICE("done-1"),
                                       .sender = c->row.id,
                                       .kind = NOTICE_CHILD,
                                       .body = SLICE("{}")};
        children[i] = (struct submission_row){.source = CHILD_SOURCE,
                                              .key = slice_of(keys[i]),
                                              .submitted_at = 1};
        c->row.revision++;
        c->tells = &tells[i];
        c->children = &children[i];
        c->tell_count = c->child_count = 1;
    }
    for (int i = 0; i < 2; i++) {
        must(w->s->ops->commit(w->s, b, &w->a, &w->e), w);
        for (size_t k = 0; k < b->change_count; k++)
            CHECK(b->changes[k].outcome == (i ? ERR_CONFLICT : ERR_OK), "change %zu", k);
        looked(w, "update of ten that tell others", 200);
    }
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].tell_count = b->changes[i].child_count = 0;
}

/* The batch again, and items of each came to rest. */
static void bring_items_to_rest(struct world *w, struct batch *b)
{
    const struct item_row item = {.step = SLICE("pack"),
                                  .number = 7,
                                  .state = STEP_COMPLETED,
                                  .doc = SLICE("{\"output\":7}")};
    static const uint32_t dropped[] = {1, 2, 7};

    for (size_t i = 0; i < b->change_count; i++) {
        b->changes[i].row.revision++;
        b->changes[i].row.items = &item;
        b->changes[i].row.item_count = 1;
        b->changes[i].row.dropped_payloads = dropped;
        b->changes[i].row.dropped_payload_count = COUNT_OF(dropped);
    }
    for (int i = 0; i < 2; i++) {
        must(w->s->ops->commit(w->s, b, &w->a, &w->e), w);
        for (size_t k = 0; k < b->change_count; k++)
            CHECK(b->changes[k].outcome == (i ? ERR_CONFLICT : ERR_OK), "change %zu", k);
        looked(w, "update of ten with items", 200);
    }
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].row.item_count = b->changes[i].row.dropped_payload_count = 0;
}

/* A batch of ten: each row is looked up, locked and changed. */
__attribute__((noinline)) static void look_at_changes(struct world *w)
{
    struct change changes[10];
    struct batch b = {.changes = changes, .change_count = COUNT_OF(changes)};
    char ids[10][40];

    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        (void)snprintf(ids[i], sizeof ids[i], "done-%zu", 40000 + i);
        struct task_row row;
        must(w->s->ops->get(w->s, slice_of(ids[i]), &w->a, &row, &w->e), w);
        row.revision++;
        changes[i] = (struct change){.kind = CHANGE_UPDATE, .row = row};
        changes[i].row.payloads = NULL;
        changes[i].row.payload_count = 0;
    }
    w->seen = (struct seen){0};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w);
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        CHECK(changes[i].outcome == ERR_OK, "change %zu", i);
    looked(w, "update of ten", 200);
    tell_each_other(w, &b);
    bring_items_to_rest(w, &b);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        static unsigned fresh;
        (void)snprintf(ids[i], sizeof ids[i], "new-%u", fresh++);
        changes[i].kind = CHANGE_INSERT;
        changes[i].row.id = slice_of(ids[i]);
        changes[i].row.revision = 1;
    }
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w);
    looked(w, "insert of ten", 200);
}

static void look_at_retiring(struct world *w)
{
    const struct retire_rule rule = {.states = 1U << TASK_PROCESSED,
                                     .ended_before = FINISHED / 2 + 10};
    struct retire_look l = {.rules = &rule, .rule_count = 1, .scan_max = 50, .after_seq = 100};
    bool gone[50];
    struct reservation kept;
    size_t swept = 0;

    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w);
    CHECK(l.found_count > 0, "something is there");
    looked(w, "look for what is to be deleted", 50);
    struct retire r = {.tasks = l.found,
                       .task_count = l.found_count,
                       .gone = gone,
                       .reserve_until = INT64_C(1) << 50};
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w);
    CHECK(gone[0], "something was deleted");
    looked(w, "deleting", 200);
    must(w->s->ops->retention->reserved(w->s, l.found[0].id, &w->a, &kept, &w->e), w);
    looked(w, "a reserved id", 2);
    must(w->s->ops->retention->sweep(w->s, 1, 100, &swept, &w->e), w);
    CHECK(swept == 0, "%zu are free", swept);
    looked(w, "forgetting reserved ids, of which none is due", 2);
    must(w->s->ops->retention->sweep(w->s, RESERVED_DUE, 100, &swept, &w->e), w);
    CHECK(swept == 100, "%zu are free", swept);
    looked(w, "forgetting reserved ids", 200);
    l.workflow = l.found[0].workflow;
    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w);
    looked(w, "look through one workflow", 60);
}

static void look_at_all(const char *schema, const char *mode)
{
    struct world w = {0};

    print_message("%s, %s\n", schema, mode);
    open_with(&w, schema, mode);
    w.seen = (struct seen){0};
    look_at_reading(&w);
    look_at_polling(&w);
    look_at_notices(&w);
    look_at_items(&w);
    look_at_audit(&w);
    look_at_listings(&w);
    look_at_filters(&w);
    look_at_claims(&w);
    look_at_changes(&w);
    look_at_retiring(&w);
    w.s->ops->close(w.s);
    arena_fini(&w.a);
}

static void run(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);

    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s: %s", sql, PQerrorMessage(conn));
    PQclear(r);
}

/* Ids of tasks that were deleted: each is free at another time. */
static void reserve(const char *schema, bool analyze)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    char sql[300];

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.reserved (id, content, workflow, version, state, ended_at, "
                   "until) SELECT 'gone-' || i, 'x', 'order-1', 1, 'processed', i, i + 500 FROM "
                   "generate_series(1, %d) AS i",
                   schema, RESERVED);
    run(conn, sql);
    (void)snprintf(sql, sizeof sql, "ANALYZE %s.reserved", schema);
    if (analyze)
        run(conn, sql);
    PQfinish(conn);
}

/* Tasks that wait for two agents. */
static void wait_for_several(const char *schema, bool analyze)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    char sql[800];

    (void)
        snprintf(sql, sizeof sql,
                 "INSERT INTO %s.task (id, workflow, version, submitted_at, revision, state, "
                 "direction, priority, waiting_for, rank, failure_count, doc) SELECT 'two-' || i, "
                 "'order-1', 1, i, 9, 'pending', 'forward', 5, ',agent-3,agent-4', i, 0, "
                 "'{\"steps\":[]}' FROM generate_series(1, %d) AS i",
                 schema, SEVERAL);
    run(conn, sql);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.wait (agent, rank, task) SELECT a.name, t.rank, t.seq FROM "
                   "%s.task AS t, (VALUES ('agent-3'), ('agent-4')) AS a(name) "
                   "WHERE t.waiting_for = ',agent-3,agent-4'",
                   schema, schema);
    run(conn, sql);
    (void)snprintf(sql, sizeof sql, "ANALYZE %s.wait", schema);
    if (analyze)
        run(conn, sql);
    PQfinish(conn);
}

/* Each of some tasks has children, and is with others the root of a family. */
static void have_families(const char *schema, bool analyze)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    char sql[800];

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.task (id, workflow, version, submitted_at, revision, state, "
                   "direction, priority, rank, failure_count, ended_at, doc, parent, root) "
                   "SELECT 'child-' || i, 'order-1', 1, i, 9, 'processed', 'forward', 5, i, 0, i, "
                   "'{\"steps\":[]}', 'done-' || i %% 100, 'done-' || i %% 50 "
                   "FROM generate_series(1, %d) AS i",
                   schema, CHILDREN);
    run(conn, sql);
    (void)snprintf(sql, sizeof sql, "ANALYZE %s.task", schema);
    if (analyze)
        run(conn, sql);
    PQfinish(conn);
}

/* Some tasks have a long list, and a second one after an operator had them start anew. Many have
 * one item. */
static void have_items(const char *schema, bool analyze)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    char sql[800];

    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO %s.item (task, step, generation, number, state, in_doubt, "
        "needs_undo, doc) SELECT t.seq, 'pack', g, i, 'completed', false, i %% 100 = 0, "
        "'{\"output\":1}' FROM %s.task AS t, generate_series(0, 1) AS g, "
        "generate_series(0, %d) AS i WHERE t.id IN ('done-30000', 'done-30001', 'done-30002')",
        schema, schema, ITEMS - 1);
    run(conn, sql);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %s.item (task, step, generation, number, state, in_doubt, "
                   "needs_undo, doc) SELECT t.seq, 'pack', 0, 0, 'failed', false, false, '{}' "
                   "FROM %s.task AS t WHERE t.id LIKE 'done-2%%'",
                   schema, schema);
    run(conn, sql);
    (void)snprintf(sql, sizeof sql, "ANALYZE %s.item", schema);
    if (analyze)
        run(conn, sql);
    PQfinish(conn);
}

/* A schema of its own, with or without statistics of the full tables. */
static void furnish(const char *schema, bool analyze_empty, bool analyze_full)
{
    const struct postgres_options o = {.conninfo = cluster_conninfo(),
                                       .schema = schema,
                                       .node = "n1"};
    struct store *s = NULL;
    struct error e = {0};
    char sql[200];

    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    s->ops->close(s);
    if (analyze_empty) {
        PGconn *conn = PQconnectdb(cluster_conninfo());
        (void)snprintf(sql, sizeof sql, "ANALYZE %s.task, %s.tag, %s.payload, %s.reserved", schema,
                       schema, schema, schema);
        run(conn, sql);
        PQfinish(conn);
    }
    many_make(cluster_conninfo(), schema, FINISHED, analyze_full);
    wait_for_several(schema, analyze_full);
    have_families(schema, analyze_full);
    have_items(schema, analyze_full);
    reserve(schema, analyze_full);
}

static void no_statement_looks_at_what_it_need_not(void **state)
{
    static const char *const modes[] = {"force_custom_plan", "force_generic_plan"};
    static const char *const tables[] = {"analyzed", "never_analyzed", "analyzed_when_empty"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(tables) * COUNT_OF(modes); i++) {
        char schema[60];
        (void)snprintf(schema, sizeof schema, "%s_%zu", tables[i / 2], i % 2);
        furnish(schema, i / 2 == 2, i / 2 == 0);
        look_at_all(schema, modes[i % 2]);
    }
}

/* All that wait, wait for one agent: by the statistics, any row may be the first that fits. */
static void the_queue_of_one_agent_is_not_read_for_others(void **state)
{
    const struct slice agents[] = {SLICE("agent-1"), SLICE("agent-2"), SLICE("agent-9")};
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .leads = true,
                       .length_ms = 3000,
                       .agents = agents,
                       .agent_count = COUNT_OF(agents)};
    static const char *const modes[] = {"force_custom_plan", "force_generic_plan"};
    PGconn *conn = PQconnectdb(cluster_conninfo());
    (void)state;

    furnish("queue", false, false);
    run(conn, "DELETE FROM queue.task WHERE state <> 'processed'");
    run(conn, "UPDATE queue.task SET state = 'pending', waiting_for = 'agent-9', ended_at = NULL, "
              "doc = '{\"steps\":[]}'");
    run(conn, "VACUUM (FULL, ANALYZE) queue.task"); /* many rows in a page: reading on is cheap */
    PQfinish(conn);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct world w = {0};
        open_with(&w, "queue", modes[i]);
        w.seen = (struct seen){0};
        must(w.s->ops->nodes->survey(w.s, &v, &w.a, &w.e), &w);
        CHECK(!v.waiting[0] && !v.waiting[1] && v.waiting[2], "survey");
        looked(&w, "survey beside a long queue", 20);
        w.s->ops->close(w.s);
        arena_fini(&w.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_statement_looks_at_what_it_need_not),
                                       cmocka_unit_test(
                                           the_queue_of_one_agent_is_not_read_for_others)};

    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
