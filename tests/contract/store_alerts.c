/* The contract of every store for tasks that stopped in error, and for alerts. Each test names
 * one promise and runs on all stores (store_world.h); src/alerts has the rules of alerts. */

#include "store_world.h"

#include "base/buf.h"

static void insert_stopped(struct world *w, const char *id, int64_t ended_at, enum direction d,
                           const char *doc)
{
    struct task_row row = a_row(id);

    row.state = TASK_ERROR;
    row.direction = d;
    row.ended_at = ended_at;
    row.waiting_for = SLICE_NONE;
    row.doc = slice_of(doc);
    must(insert_row(w, row), id);
}

/* "id workflow step code message direction" of a page behind that place. */
static struct stopped_page stopped_are(struct world *w, int64_t ended_at, int64_t seq, size_t limit,
                                       const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct stopped_page page;

    must(w->s->ops->alerts->stopped(w->s, ended_at, seq, limit, &w->a, &page, &w->e), w->e.text);
    for (size_t i = 0; i < page.count; i++) {
        const struct stopped *t = &page.rows[i];
        buf_fmt(&b, "%.*s %.*s %.*s %.*s %.*s\n", SLICE_ARG(t->id),
                SLICE_ARG(t->step.ptr ? t->step : SLICE("-")),
                SLICE_ARG(t->code.ptr ? t->code : SLICE("-")),
                SLICE_ARG(t->message.ptr ? t->message : SLICE("-")),
                SLICE_ARG(t->undo ? SLICE("undo") : SLICE("forward")));
        CHECK(slice_is(t->workflow, "order"), "its workflow is %.*s", SLICE_ARG(t->workflow));
    }
    CHECK(slice_is(buf_view(&b), want), "stopped are\n%s, not\n%s", b.ptr ? b.ptr : "none\n", want);
    return page;
}

#define FAILED                                                                                \
    "{\"error\":{\"code\":\"declined\",\"message\":\"no money\"},\"steps\":[{\"name\":\"a\"," \
    "\"state\":\"completed\"},{\"name\":\"b\",\"state\":\"waiting\",\"error\":{\"code\":"     \
    "\"declined\"}},{\"name\":\"c\",\"state\":\"failed\",\"error\":{\"code\":\"declined\"}}]}"
/* What failed on the way there is not what failed on the way back. */
#define FAILED_UNDO                                                                    \
    "{\"error\":{\"code\":\"down\"},\"steps\":[{\"name\":\"a\",\"state\":\"failed\","  \
    "\"direction\":\"undo\",\"error\":{\"code\":\"down\"}},{\"name\":\"b\",\"state\":" \
    "\"failed\",\"error\":{\"code\":\"down\"}}]}"
#define NOTHING_SAID "{\"steps\":[{\"name\":\"a\",\"state\":\"failed\"}]}"

static void tasks_in_error_are_found_as_they_stopped(void **state)
{
    struct world *w = *state;

    insert_stopped(w, "late", 3000, DIRECTION_UNDO, FAILED_UNDO);
    insert_stopped(w, "early", 1000, DIRECTION_FORWARD, FAILED);
    must(insert_row(w, a_row("pending")), "pending");
    insert_stopped(w, "odd", 2000, DIRECTION_FORWARD, NOTHING_SAID);
    insert_stopped(w, "also", 2000, DIRECTION_FORWARD, FAILED);
    struct task_row done = a_row("done");
    done.state = TASK_PROCESSED;
    done.ended_at = 2500;
    done.waiting_for = SLICE_NONE;
    must(insert_row(w, done), "done");
    struct stopped_page all = stopped_are(w, 0, 0, 9,
                                          "early c declined no money forward\n"
                                          "odd - - - forward\n"
                                          "also c declined no money forward\n"
                                          "late a down - undo\n");
    CHECK(!all.more, "that is all");
    struct stopped_page first = stopped_are(w, 0, 0, 2,
                                            "early c declined no money forward\n"
                                            "odd - - - forward\n");
    CHECK(first.more && first.rows[1].ended_at == 2000, "there are more");
    (void)stopped_are(w, 2000, first.rows[1].seq, 1, "also c declined no money forward\n");
    (void)stopped_are(w, 3000, all.rows[3].seq, 1, "");
}

static void one_that_goes_on_is_none_of_them(void **state)
{
    struct world *w = *state;

    insert_stopped(w, "x", 1000, DIRECTION_FORWARD, FAILED);
    struct task_row row = fetch(w, "x");
    row.revision++;
    row.state = TASK_PENDING;
    row.ended_at = 0;
    row.waiting_for = SLICE("a");
    must(update_row(w, row), "retry");
    (void)stopped_are(w, 0, 0, 9, "");
    row.revision++;
    row.state = TASK_ERROR;
    row.ended_at = 5000;
    row.waiting_for = SLICE_NONE;
    must(update_row(w, row), "again");
    (void)stopped_are(w, 1000, INT64_MAX, 9, "x c declined no money forward\n");
    row.revision++;
    row.closed_at = 6000;
    must(update_row(w, row), "closed");
    (void)stopped_are(w, 0, 0, 9, "");
}

/* ---- families ---- */

#define STEPS(code, steps) "{\"error\":{\"code\":\"" code "\"},\"steps\":[" steps "]}"
#define CHILD_STEP(name, state, child)          \
    "{\"name\":\"" name "\",\"state\":\"" state \
    "\",\"error\":{\"code\":\"child\"},\"child\":{\"number\":2,\"state\":\"" child "\"}}"
#define FAILED_STEP(code, more) \
    "{\"name\":\"b\",\"state\":\"failed\",\"error\":{\"code\":\"" code "\"}" more "}"

static void insert_child(struct world *w, const char *id, const char *parent, const char *step,
                         enum task_state state, int64_t closed_at, const char *asked)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct task_row row = a_row(id);

    buf_fmt(&doc, "{\"parent\":{\"step\":\"%s\",\"number\":2%s%s%s},\"steps\":[]}", step,
            *asked ? ",\"asked\":\"" : "", asked, *asked ? "\"" : "");
    row.state = state;
    row.parent = row.root = slice_of(parent);
    row.ended_at = task_state_is_end(state) || state == TASK_ERROR ? 500 : 0;
    row.closed_at = closed_at;
    row.waiting_for = SLICE_NONE;
    row.doc = buf_view(&doc);
    must(insert_row(w, row), id);
}

/* Whether only children hold up that task, which stopped later than those. */
static void is_of_child(struct world *w, const char *id, bool want)
{
    struct stopped_page page;

    must(w->s->ops->alerts->stopped(w->s, 999, INT64_MAX, 9, &w->a, &page, &w->e), w->e.text);
    for (size_t i = 0; i < page.count; i++)
        if (slice_is(page.rows[i].id, id)) {
            CHECK(page.rows[i].of_child == want, "%s: %d", id, page.rows[i].of_child);
            return;
        }
    CHECK(false, "%s did not stop", id);
}

static void what_only_children_hold_up_is_known(void **state)
{
    struct world *w = *state;

    insert_stopped(w, "p", 1000, DIRECTION_FORWARD,
                   STEPS("child", CHILD_STEP("a", "waiting", "error")));
    insert_child(w, "p@a:2", "p", "a", TASK_ERROR, 0, "");
    is_of_child(w, "p", true);
    insert_stopped(w, "back", 1000, DIRECTION_UNDO,
                   STEPS("child", CHILD_STEP("a", "undoing", "stuck") "," CHILD_STEP("b", "waiting",
                                                                                     "stuck")));
    insert_child(w, "back@a:2", "back", "a", TASK_ERROR, 0, "undo");
    insert_child(w, "back@b:2", "back", "b", TASK_ERROR, 0, "stop");
    is_of_child(w, "back", true);
    insert_stopped(w, "pivot", 1000, DIRECTION_FORWARD,
                   STEPS("pivot", CHILD_STEP("a", "waiting", "stuck") "," FAILED_STEP("full", "")));
    insert_child(w, "pivot@a:2", "pivot", "a", TASK_ERROR, 0, "stop");
    is_of_child(w, "pivot", true);
    /* It went on, and was not heard yet. */
    insert_stopped(w, "soon", 1000, DIRECTION_FORWARD,
                   STEPS("child", CHILD_STEP("a", "waiting", "error")));
    insert_child(w, "soon@a:2", "soon", "a", TASK_PROCESSED, 0, "");
    is_of_child(w, "soon", true);
}

static void what_needs_help_itself_is_known(void **state)
{
    struct world *w = *state;

    /* An agent's error, and that of a child that was undone. */
    insert_stopped(w, "agent", 1000, DIRECTION_FORWARD,
                   STEPS("child",
                         CHILD_STEP("a", "waiting", "error") "," FAILED_STEP("child", "")));
    is_of_child(w, "agent", false);
    insert_stopped(w, "gone", 1000, DIRECTION_FORWARD,
                   STEPS("child", CHILD_STEP("a", "waiting", "error") "," FAILED_STEP(
                                      "declined", ",\"child\":{\"number\":1,\"state\":"
                                                  "\"compensated\"}")));
    is_of_child(w, "gone", false);
    insert_stopped(w, "alone", 1000, DIRECTION_FORWARD, STEPS("child", FAILED_STEP("child", "")));
    is_of_child(w, "alone", false);
    /* Another code: what the child says is not what stopped the task. */
    insert_stopped(w, "other", 1000, DIRECTION_FORWARD,
                   STEPS("down", CHILD_STEP("a", "waiting", "error") "," FAILED_STEP("down", "")));
    is_of_child(w, "other", false);
    insert_stopped(w, "odd", 1000, DIRECTION_FORWARD, NOTHING_SAID);
    is_of_child(w, "odd", false);
    /* It was told that the child goes on, and stays. */
    insert_stopped(w, "stays", 1000, DIRECTION_FORWARD,
                   STEPS("child", CHILD_STEP("a", "waiting", "running")));
    is_of_child(w, "stays", false);
}

static void a_child_without_an_alert_stands_for_nobody(void **state)
{
    struct world *w = *state;

    insert_stopped(w, "closed", 1000, DIRECTION_FORWARD,
                   STEPS("child", CHILD_STEP("a", "waiting", "error") "," CHILD_STEP("b", "waiting",
                                                                                     "error")));
    insert_child(w, "closed@a:2", "closed", "a", TASK_ERROR, 0, "");
    insert_child(w, "closed@b:2", "closed", "b", TASK_ERROR, 600, "close");
    is_of_child(w, "closed", false);
    insert_stopped(w, "kept", 1000, DIRECTION_UNDO,
                   STEPS("child", CHILD_STEP("a", "undoing", "stuck")));
    insert_child(w, "kept@a:2", "kept", "a", TASK_PROCESSED, 0, "undo");
    is_of_child(w, "kept", false);
    /* What is not waited for any more may be closed: another child, and another step. */
    insert_stopped(w, "else", 1000, DIRECTION_FORWARD,
                   STEPS("child", CHILD_STEP("a", "waiting", "error") "," CHILD_STEP("b", "skipped",
                                                                                     "error")));
    insert_child(w, "else@a:2", "else", "a", TASK_ERROR, 0, "");
    insert_child(w, "else@b:2", "else", "b", TASK_ERROR, 600, "close");
    insert_child(w, "else@c:2", "else", "c", TASK_ERROR, 600, "close");
    insert_child(w, "stranger@a:2", "stranger", "a", TASK_ERROR, 600, "close");
    is_of_child(w, "else", true);
}

/* ---- alerts ---- */

static struct alert_row an_alert(const char *id, const char *key)
{
    return (struct alert_row){.id = slice_of(id),
                              .key = slice_of(key),
                              .doc = SLICE("{\"count\":1}"),
                              .opened_at = 1000,
                              .live = true};
}

static enum err put(struct world *w, struct alert_row row)
{
    return w->s->ops->alerts->put(w->s, &row, &w->e);
}

static struct alert_page alerts_are(struct world *w, struct alert_query q, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct alert_page page;

    q.limit = q.limit ? q.limit : 9;
    must(w->s->ops->alerts->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    for (size_t i = 0; i < page.count; i++) {
        const struct alert_row *r = &page.rows[i];
        buf_fmt(&b, "%.*s %.*s %.*s %d %d %d %.*s %.*s %d\n", SLICE_ARG(r->id), SLICE_ARG(r->key),
                SLICE_ARG(r->doc), (int)r->opened_at, (int)r->resolved_at, (int)r->acknowledged_at,
                SLICE_ARG(r->acknowledged_by.ptr ? r->acknowledged_by : SLICE("-")),
                SLICE_ARG(r->acknowledged_why.ptr ? r->acknowledged_why : SLICE("-")), r->live);
    }
    CHECK(slice_is(buf_view(&b), want), "alerts are\n%s, not\n%s", b.ptr ? b.ptr : "none\n", want);
    return page;
}

static void a_deposed_leader_writes_no_alert(void **state)
{
    struct world *w = *state;
    const struct lease_try want = {.name = SLICE(SUPERVISOR_LEASE),
                                   .holder = SLICE("n1/1"),
                                   .now = 100,
                                   .length_ms = 100};
    struct lease l;

    must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), w->e.text);
    struct fence fence = {SLICE(SUPERVISOR_LEASE), l.epoch};
    struct alert_row row = an_alert("a-1", "k");
    row.fence = &fence;
    must(put(w, row), "its own epoch");
    fence.epoch++;
    row.doc = SLICE("{\"count\":2}");
    CHECK(put(w, row) == ERR_CONFLICT, "another epoch");
    CHECK(strstr(w->e.text, "another epoch"), "%s", w->e.text);
    row.live = false;
    row.resolved_at = 2000;
    CHECK(put(w, row) == ERR_CONFLICT, "nor that it is over");
    (void)alerts_are(w, (struct alert_query){.live = true}, "a-1 k {\"count\":1} 1000 0 0 - - 1\n");
}

static void alerts_are_kept(void **state)
{
    struct world *w = *state;
    struct alert_row a = an_alert("a-1", "task_error{}");
    const struct alert_query all = {.limit = 9};
    const struct alert_query live = {.live = true};

    (void)alerts_are(w, all, "");
    must(put(w, a), "one");
    must(put(w, an_alert("a-2", "breaker_open{}")), "two");
    CHECK(put(w, an_alert("a-3", "task_error{}")) == ERR_CONFLICT, "one of a group is live");
    a.doc = SLICE("{\"count\":2}");
    must(put(w, a), "again");
    world_restart(w);
    struct alert_page page = alerts_are(w, all,
                                        "a-2 breaker_open{} {\"count\":1} 1000 0 0 - - 1\n"
                                        "a-1 task_error{} {\"count\":2} 1000 0 0 - - 1\n");
    a.resolved_at = 2000;
    a.live = false;
    must(put(w, a), "resolved");
    (void)alerts_are(w, live, "a-2 breaker_open{} {\"count\":1} 1000 0 0 - - 1\n");
    must(put(w, an_alert("a-3", "task_error{}")), "the next one of its group");
    (void)alerts_are(w, (struct alert_query){.before_seq = page.rows[0].seq, .limit = 1},
                     "a-1 task_error{} {\"count\":2} 1000 2000 0 - - 0\n");
    CHECK(alerts_are(w, (struct alert_query){.limit = 1},
                     "a-3 task_error{} {\"count\":1} 1000 0 0 - - 1\n")
              .more,
          "there are more");
}

static enum err acknowledge(struct world *w, const char *id, const char *by, int64_t at)
{
    const struct audit audit = {.at = at,
                                .actor = slice_of(by),
                                .verb = SLICE("alert.acknowledge"),
                                .reason = SLICE("called them")};

    return w->s->ops->alerts->acknowledge(w->s, slice_of(id), &audit, &w->e);
}

static void acknowledging_is_on_record_and_stays(void **state)
{
    struct world *w = *state;
    struct alert_row a = an_alert("a-1", "task_error{}");
    const struct alert_query all = {0};
    const struct audit_query audits = {.limit = 9};
    struct audit_page page;

    must(put(w, a), "one");
    CHECK(acknowledge(w, "a-9", "ann", 5) == ERR_NOT_FOUND, "there is none: %s", w->e.text);
    must(acknowledge(w, "a-1", "ann", 1500), w->e.text);
    must(acknowledge(w, "a-1", "bob", 1600), "once more changes nothing");
    a.doc = SLICE("{\"count\":7}");
    must(put(w, a), "by who leads");
    (void)alerts_are(w, all, "a-1 task_error{} {\"count\":7} 1000 0 1500 ann called them 1\n");
    must(w->s->ops->audit_list(w->s, &audits, &w->a, &page, &w->e), "audit");
    CHECK(page.count == 1 && slice_is(page.entries[0].verb, "alert.acknowledge")
              && slice_is(page.entries[0].actor, "ann") && page.entries[0].at == 1500,
          "%zu entries", page.count);
    a.lift = true;
    must(put(w, a), "it is lifted");
    (void)alerts_are(w, all, "a-1 task_error{} {\"count\":7} 1000 0 0 - - 1\n");
    must(acknowledge(w, "a-1", "bob", 1700), "and may come again");
    a.lift = false;
    a.resolved_at = 2000;
    must(put(w, a), "resolved");
    CHECK(acknowledge(w, "a-1", "bob", 2100) == ERR_CONFLICT, "too late: %s", w->e.text);
    (void)alerts_are(w, all, "a-1 task_error{} {\"count\":7} 1000 2000 1700 bob called them 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(tasks_in_error_are_found_as_they_stopped),
        ON_ALL(one_that_goes_on_is_none_of_them),
        ON_ALL(what_only_children_hold_up_is_known),
        ON_ALL(what_needs_help_itself_is_known),
        ON_ALL(a_child_without_an_alert_stands_for_nobody),
        ON_ALL(alerts_are_kept),
        ON_ALL(a_deposed_leader_writes_no_alert),
        ON_ALL(acknowledging_is_on_record_and_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
