/*
 * Every call to the outside fails, the n-th for n from 0 on, until an operation meets no fault any
 * more, so that every error path has run. Each operation runs with a single fault and with an
 * outage to its end. Afterwards nothing half-done is visible, and the store works again.
 */

#include "fault_notices.h"
#include "store_world.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"

static const struct payload a_payload = {1, {"\"long\"", 6}};

static int64_t waiting_seq; /* of the submission that waits */

static struct submission_row a_submission(const char *id, int64_t refused_at)
{
    return (struct submission_row){.source = SLICE("sql"),
                                   .id = slice_of(id),
                                   .workflow = SLICE("order"),
                                   .input = SLICE("{}"),
                                   .submitted_at = 1,
                                   .refused_at = refused_at,
                                   .reason = refused_at ? SLICE("bad") : SLICE_NONE};
}

static void tell_submissions(struct world *w, struct buf *b)
{
    for (int i = 0; i < 2; i++) {
        const struct submission_query q = {.refused = i, .limit = 9};
        struct submission_page p;
        must(w->s->ops->submissions->list(w->s, &q, &w->a, &p, &w->e), w->e.text);
        for (size_t k = 0; k < p.count; k++)
            buf_fmt(b, "submission %.*s %d %.*s\n", SLICE_ARG(p.rows[k].id), i,
                    SLICE_ARG(p.rows[k].reason));
    }
}

/* One that waits, and one that was refused. */
static void furnish_submissions(struct world *w)
{
    const struct submission_row rows[] = {a_submission("s-1", 0), a_submission("s-2", 5)};
    const struct submission_query q = {.limit = 9};
    struct submission_page p;

    must(w->s->ops->submissions->put(w->s, rows, COUNT_OF(rows), &w->e), "submissions");
    must(w->s->ops->submissions->list(w->s, &q, &w->a, &p, &w->e), "submissions");
    waiting_seq = p.rows[0].seq;
}

/* What the operations are tried on. */
static void furnish(struct world *w)
{
    struct task_row row = a_row("claimable");

    row.payloads = &a_payload;
    row.payload_count = 1;
    must(insert_row(w, row), "claimable");
    row = a_row("old");
    row.waiting_for = SLICE("b");
    row.wake_at = 5;
    must(insert_row(w, row), "old");
    row = a_row("ended");
    row.state = TASK_PROCESSED;
    row.waiting_for = SLICE_NONE;
    row.ended_at = 2000;
    row.tags = SLICE("{\"k\":\"v\"}");
    row.payloads = &a_payload;
    row.payload_count = 1;
    must(insert_row(w, row), "ended");
    must(insert_row(w, a_row("newest")), "newest");
    int64_t version;
    bool is_new;
    must(w->s->ops->workflow_put(w->s, SLICE("order"), SLICE("A"), 1, NULL, &version, &is_new,
                                 &w->e),
         "workflow");
    struct token_row t = {.name = SLICE("admin"), .roles = SLICE("[\"admin\"]"), .admin = true};
    must(w->s->ops->token_put(w->s, &t, false, NULL, &w->e), "token");
    const struct agent_change c = {.name = SLICE("bank"), .text = SLICE("{}")};
    must(w->s->ops->agent_put(w->s, &c, NULL, &w->e), "agent");
    const struct overrun_count oc = {.task = SLICE("old"), .by = 1, .at = 5};
    must(w->s->ops->overrun_count(w->s, &oc, &w->e), "overrun");
    const struct alert_row al = {
        .id = SLICE("a-0"), .key = SLICE("k0"), .doc = SLICE("{}"), .opened_at = 5, .live = true};
    must(w->s->ops->alerts->put(w->s, &al, &w->e), "alert");
    furnish_submissions(w);
    furnish_notices(w);
}

static const struct audit an_audit = {
    .at = 1, .actor = {"ann", 3}, .verb = {"retry", 5}, .task = {"old", 3}, .reason = {"why", 3}};

static void tell_access(struct world *w, struct buf *b)
{
    const struct audit_query q = {.limit = 100};
    struct token_row *tokens;
    struct agent_row *agents;
    const struct alert_query aq = {.limit = 100};
    struct alert_page alerts;
    struct audit_page page;
    uint64_t generation;
    size_t count;

    must(w->s->ops->token_list(w->s, &w->a, &tokens, &count, &w->e), w->e.text);
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%.*s %d\n", SLICE_ARG(tokens[i].name), tokens[i].hash[0]);
    must(w->s->ops->agent_since(w->s, 0, &w->a, &agents, &count, &generation, &w->e), w->e.text);
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%.*s %.*s %.*s\n", SLICE_ARG(agents[i].name), SLICE_ARG(agents[i].settings),
                SLICE_ARG(agents[i].breaker));
    struct overrun *overruns;
    must(w->s->ops->overrun_list(w->s, &w->a, &overruns, &count, &w->e), w->e.text);
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%.*s %d\n", SLICE_ARG(overruns[i].task), (int)overruns[i].times);
    must(w->s->ops->alerts->list(w->s, &aq, &w->a, &alerts, &w->e), w->e.text);
    for (size_t i = 0; i < alerts.count; i++)
        buf_fmt(b, "%.*s %.*s %d %d\n", SLICE_ARG(alerts.rows[i].id), SLICE_ARG(alerts.rows[i].doc),
                (int)alerts.rows[i].resolved_at, (int)alerts.rows[i].acknowledged_at);
    must(w->s->ops->audit_list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    for (size_t i = 0; i < page.count; i++)
        buf_fmt(b, "%.*s %.*s\n", SLICE_ARG(page.entries[i].verb),
                SLICE_ARG(page.entries[i].reason));
}

/* Everything that the store holds, as a text. */
static void tell_all(struct world *w, struct buf *b)
{
    struct list_query q = {.limit = 100};
    struct row_page page;
    struct workflow_row *list;
    size_t count;

    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    for (size_t i = 0; i < page.count; i++) {
        struct task_row row = fetch(w, page.rows[i].id.ptr);
        rows_equal(&row, &row, "itself");
        buf_fmt(b, "%.*s %" PRIu64 " %s %.*s %.*s %.*s %zu\n", SLICE_ARG(row.id), row.revision,
                task_state_text(row.state), SLICE_ARG(row.locked_by), SLICE_ARG(row.doc),
                SLICE_ARG(row.waiting_for), row.payload_count);
    }
    must(w->s->ops->workflow_list(w->s, &w->a, &list, &count, &w->e), w->e.text);
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%.*s %" PRId64 " %.*s\n", SLICE_ARG(list[i].name), list[i].version,
                SLICE_ARG(list[i].text));
    tell_access(w, b);
    tell_submissions(w, b);
    tell_notices(w, b);
}

typedef enum err operation(struct world *w);

static enum err op_commit(struct world *w)
{
    struct change c[4] = {{.kind = CHANGE_INSERT, .row = a_row("new")},
                          {.kind = CHANGE_UPDATE, .row = a_row("old")},
                          {.kind = CHANGE_INSERT, .row = a_row("old")},
                          {.kind = CHANGE_REQUEST, .release = true, .row = a_row("claimable")}};
    struct claim claim = claim_of(w, CLAIM_AGENT, "b", 9, 3);
    struct batch b = {.changes = c, .change_count = 4, .claims = &claim, .claim_count = 1};
    static const enum err want[] = {ERR_OK, ERR_OK, ERR_CONFLICT, ERR_OK};

    c[0].row.tags = SLICE("{\"k\":\"v\"}");
    c[0].row.payloads = &a_payload;
    c[0].row.payload_count = 1;
    c[1].audits = c[2].audits = &an_audit;
    c[1].audit_count = c[2].audit_count = 1;
    c[1].row.revision = 2;
    c[1].row.state = TASK_PROCESSING;
    c[1].row.locked_by = SLICE("n1/1");
    c[3].row.revision = 2;
    c[3].row.waiting_for = SLICE("b");
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);
    for (size_t i = 0; i < 4; i++)
        CHECK(c[i].outcome == (err == ERR_OK ? want[i] : err), "outcome of change %zu", i);
    CHECK(claim.row_count == (err == ERR_OK), "rows of the claim");
    return err;
}

static enum err op_commit_submission(struct world *w)
{
    struct change c = {.kind = CHANGE_INSERT, .row = a_row("s-1"), .submission = waiting_seq};
    struct batch b = {.changes = &c, .change_count = 1};
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);

    CHECK(c.outcome == err, "outcome of the change");
    return err;
}

static enum err op_submissions_take(struct world *w)
{
    struct submission_take t = {.now = 1, .limit = 9, .bytes_max = 1000};
    enum err err = w->s->ops->submissions->take(w->s, &t, &w->a, &w->e);

    CHECK(err != ERR_OK || (t.count == 1 && t.refused == 1), "the one that waits");
    return err;
}

static enum err op_submissions_settle(struct world *w)
{
    const struct submission_verdict v[] = {
        {.seq = waiting_seq, .refused_at = 5, .reason = SLICE("no")}, {.seq = 77}};

    return w->s->ops->submissions->settle(w->s, v, COUNT_OF(v), &w->e);
}

static enum err op_submissions_put(struct world *w)
{
    const struct submission_row rows[] = {a_submission("s-3", 5), a_submission("s-4", 0)};

    return w->s->ops->submissions->put(w->s, rows, COUNT_OF(rows), &w->e);
}

static enum err op_submissions_list(struct world *w)
{
    const struct submission_query q = {.refused = true, .limit = 9};
    struct submission_page p = {0};
    enum err err = w->s->ops->submissions->list(w->s, &q, &w->a, &p, &w->e);

    CHECK(err != ERR_OK || p.count == 1, "the one that was refused");
    return err;
}

static enum err op_submissions_verb(struct world *w)
{
    struct submission_verb v = {.audit = &an_audit};

    return w->s->ops->submissions->apply(w->s, &v, &w->e);
}

static enum err op_workflow_describe(struct world *w)
{
    const struct workflow_inputs is = {SLICE("order"), 1, SLICE("null")};

    return w->s->ops->submissions->describe(w->s, &is, 1, &w->e);
}

static enum err op_claim_boot(struct world *w)
{
    struct claim claim = claim_of(w, CLAIM_BOOT, NULL, 9, 3);
    struct batch b = {.claims = &claim, .claim_count = 1};

    return w->s->ops->commit(w->s, &b, &w->a, &w->e);
}

static enum err op_get(struct world *w)
{
    struct task_row row = {0};
    enum err err = w->s->ops->get(w->s, SLICE("claimable"), &w->a, &row, &w->e);

    CHECK(err == ERR_OK || !row.id.ptr, "out-parameters are left alone");
    return err;
}

static enum err op_overdue(struct world *w)
{
    struct row_page page = {.count = 77};
    enum err err = w->s->ops->overdue(w->s, 9, 0, 0, 9, &w->a, &page, &w->e);

    CHECK(page.count == (err == ERR_OK ? 1 : 77), "out-parameters are left alone");
    return err;
}

static enum err op_list(struct world *w)
{
    struct list_query q = {.limit = 1};
    struct row_page page;

    return w->s->ops->list(w->s, &q, &w->a, &page, &w->e);
}

static const struct retire_rule let_go = {.states = RETIRE_STATES, .ended_before = 5000};

static enum err op_retire(struct world *w)
{
    struct retired one = {.seq = 1, .revision = 1, .id = SLICE("ended")};
    bool gone = false;
    struct retire r = {.tasks = &one,
                       .task_count = 1,
                       .reserve_until = 9000,
                       .audit = &an_audit,
                       .gone = &gone,
                       .dealt_with = 77};
    struct fault_plan plan = fault_plan;
    struct task_row row;

    fault_plan = (struct fault_plan){0};
    if (w->s->ops->get(w->s, SLICE("ended"), &w->a, &row, &w->e) == ERR_OK) {
        one.seq = row.seq;
        one.revision = row.revision;
    }
    w->e = (struct error){0};
    fault_plan = plan;
    enum err err = w->s->ops->retention->retire(w->s, &r, &w->e);
    CHECK(r.dealt_with == (err == ERR_OK ? 1 : 77), "out-parameters are left alone");
    return err;
}

static enum err op_retire_look(struct world *w)
{
    struct retire_look l = {
        .rules = &let_go, .rule_count = 1, .scan_max = 9, .found_count = 77, .after_seq = 0};
    enum err err = w->s->ops->retention->look(w->s, &l, &w->a, &w->e);

    CHECK(l.found_count != 77 || err != ERR_OK, "out-parameters are left alone");
    return err;
}

static enum err op_reserved(struct world *w)
{
    struct reservation r = {.until = 77};
    enum err err = w->s->ops->retention->reserved(w->s, SLICE("nobody"), &w->a, &r, &w->e);

    CHECK(r.until == 77, "out-parameters are left alone");
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err op_reserved_sweep(struct world *w)
{
    size_t count = 77;
    enum err err = w->s->ops->retention->sweep(w->s, 5000, 9, &count, &w->e);

    CHECK(err == ERR_OK || count == 77, "out-parameters are left alone");
    return err;
}

static enum err op_shrink(struct world *w)
{
    struct shrink k = {.budget_us = 1000};

    if (!w->s->ops->shrink) /* it does so by itself, or has no file */
        return op_overdue(w);
    return w->s->ops->shrink(w->s, &k, &w->e);
}

static enum err op_census(struct world *w)
{
    struct census c = {0};

    return w->s->ops->counts->census(w->s, 9, 9, &w->a, &c, &w->e);
}

static enum err op_owners(struct world *w)
{
    struct owners_part p = {.state = TASK_PENDING, .most = 9};

    return w->s->ops->counts->owners(w->s, &p, &w->a, &w->e);
}

static enum err op_workflow_put(struct world *w)
{
    int64_t version = -1;
    bool is_new;
    enum err err = w->s->ops->workflow_put(w->s, SLICE("order"), SLICE("B"), 1, &an_audit, &version,
                                           &is_new, &w->e);

    CHECK(version == (err == ERR_OK ? 2 : -1), "out-parameters are left alone");
    return err;
}

static enum err op_workflow_get(struct world *w)
{
    struct workflow_row row;

    return w->s->ops->workflow_get(w->s, SLICE("order"), 0, &w->a, &row, &w->e);
}

static enum err op_glance(struct world *w)
{
    const struct slice ids[] = {SLICE("old"), SLICE("none")};
    struct glance g[COUNT_OF(ids)];
    enum err err = w->s->ops->glance(w->s, ids, COUNT_OF(ids), &w->a, g, &w->e);

    CHECK(err != ERR_OK || (g[0].revision > 0 && g[1].revision == 0), "one of both is there");
    return err;
}

static enum err op_get_many(struct world *w)
{
    struct reading r[] = {{.id = SLICE("old")}, {.id = SLICE("none")}};

    if (!w->s->ops->get_many)
        return op_glance(w);
    enum err err = w->s->ops->get_many(w->s, r, COUNT_OF(r), &w->a, &w->e);
    CHECK(err != ERR_OK || (r[0].err == ERR_OK && r[1].err == ERR_NOT_FOUND), "one is there");
    return err;
}

static enum err op_workflow_list(struct world *w)
{
    struct workflow_row *rows;
    size_t count;

    return w->s->ops->workflow_list(w->s, &w->a, &rows, &count, &w->e);
}

static enum err op_workflow_since(struct world *w)
{
    struct workflow_row *rows = NULL;
    uint64_t generation = 0;
    size_t count = 0;

    if (!w->s->ops->nodes)
        return op_workflow_list(w);
    enum err err =
        w->s->ops->nodes->workflow_since(w->s, 0, &w->a, &rows, &count, &generation, &w->e);
    CHECK(err != ERR_OK || (count > 0 && generation > 0), "there is one");
    return err;
}

static enum err op_token_put(struct world *w)
{
    struct token_row t = {.name = SLICE("ci"), .roles = SLICE("[]"), .hash = {1}};

    return w->s->ops->token_put(w->s, &t, false, &an_audit, &w->e);
}

/* In the place of another one, which must not be lost. */
static enum err op_token_replace(struct world *w)
{
    struct token_row t = {.name = SLICE("admin"),
                          .roles = SLICE("[\"admin\"]"),
                          .admin = true,
                          .hash = {2}};

    return w->s->ops->token_put(w->s, &t, true, &an_audit, &w->e);
}

/* Once and no more: what it was is there until it is changed. */
static enum err op_token_change(struct world *w)
{
    struct token_row t = {.name = SLICE("admin"),
                          .roles = SLICE("[\"admin\"]"),
                          .admin = true,
                          .hash = {4},
                          .previous_hash = {0},
                          .previous_until = 5};
    unsigned char was[TOKEN_HASH_SIZE] = {0};

    enum err err = w->s->ops->token_change(w->s, &t, was, &an_audit, &w->e);
    memcpy(was, t.hash, sizeof was);
    return err == ERR_NOT_FOUND ? w->s->ops->token_change(w->s, &t, was, &an_audit, &w->e) : err;
}

static enum err op_token_delete(struct world *w)
{
    struct token_row t = {.name = SLICE("other"),
                          .roles = SLICE("[\"admin\"]"),
                          .admin = true,
                          .hash = {3}};
    struct fault_plan armed = fault_plan;

    fault_plan = (struct fault_plan){0};
    must(w->s->ops->token_put(w->s, &t, true, NULL, &w->e), "another admin");
    fault_plan = armed;
    enum err err = w->s->ops->token_delete(w->s, SLICE("other"), 5, &an_audit, &w->e);
    armed = fault_plan;
    fault_plan = (struct fault_plan){0};
    if (err != ERR_OK && err != ERR_UNKNOWN) /* as it was before this operation */
        must(w->s->ops->token_delete(w->s, SLICE("other"), 5, NULL, &w->e), "it is still there");
    fault_plan = armed;
    return err;
}

static enum err op_token_list(struct world *w)
{
    struct token_row *rows;
    size_t count;

    return w->s->ops->token_list(w->s, &w->a, &rows, &count, &w->e);
}

static enum err op_agent_put(struct world *w)
{
    const struct agent_change c = {.name = SLICE("bank"),
                                   .part = AGENT_BREAKER,
                                   .text = SLICE("{\"state\":\"open\"}")};

    return w->s->ops->agent_put(w->s, &c, &an_audit, &w->e);
}

static enum err op_overrun_count(struct world *w)
{
    const struct overrun_count c = {.task = SLICE("old"), .by = 1, .at = 7};

    return w->s->ops->overrun_count(w->s, &c, &w->e);
}

static enum err op_overrun_back(struct world *w)
{
    const struct overrun_count c = {.task = SLICE("old"), .by = -1, .at = 7};

    return w->s->ops->overrun_count(w->s, &c, &w->e);
}

static enum err op_overrun_list(struct world *w)
{
    struct overrun *list = NULL;
    size_t count = 77;
    enum err err = w->s->ops->overrun_list(w->s, &w->a, &list, &count, &w->e);

    CHECK(err == ERR_OK ? count == 1 : count == 77, "out-parameters are left alone");
    return err;
}

static enum err op_alert_put(struct world *w)
{
    const struct alert_row row = {
        .id = SLICE("a-1"), .key = SLICE("k"), .doc = SLICE("{}"), .opened_at = 7, .live = true};

    return w->s->ops->alerts->put(w->s, &row, &w->e);
}

static enum err op_alert_over(struct world *w)
{
    const struct alert_row row = {.id = SLICE("a-0"),
                                  .key = SLICE("k0"),
                                  .doc = SLICE("{\"n\":2}"),
                                  .opened_at = 7,
                                  .resolved_at = 8,
                                  .lift = true};

    return w->s->ops->alerts->put(w->s, &row, &w->e);
}

static enum err op_alert_acknowledge(struct world *w)
{
    return w->s->ops->alerts->acknowledge(w->s, SLICE("a-0"), &an_audit, &w->e);
}

static enum err op_alert_list(struct world *w)
{
    const struct alert_query q = {.live = true, .limit = 9};
    struct alert_page page = {0};
    enum err err = w->s->ops->alerts->list(w->s, &q, &w->a, &page, &w->e);

    CHECK(err != ERR_OK || page.count == 1, "alerts");
    return err;
}

static enum err op_stopped(struct world *w)
{
    struct stopped_page page = {0};
    enum err err = w->s->ops->alerts->stopped(w->s, 0, 0, 9, &w->a, &page, &w->e);

    CHECK(err != ERR_OK || page.count == 0, "none stopped");
    return err;
}

static enum err op_agent_since(struct world *w)
{
    struct agent_row *rows = NULL;
    uint64_t generation = 77;
    size_t count = 0;
    enum err err = w->s->ops->agent_since(w->s, 0, &w->a, &rows, &count, &generation, &w->e);

    CHECK(err == ERR_OK ? count == 1 : generation == 77, "out-parameters are left alone");
    return err;
}

static enum err op_generations(struct world *w)
{
    struct generations g = {0};

    if (!w->s->ops->nodes)
        return op_token_list(w);
    enum err err = w->s->ops->nodes->generations(w->s, &g, &w->e);
    CHECK(err == ERR_OK ? g.tokens > 0 : g.tokens == 0, "out-parameters are left alone");
    return err;
}

static enum err op_audit_list(struct world *w)
{
    const struct audit_query q = {.limit = 9};
    struct audit_page page = {.count = 77};
    enum err err = w->s->ops->audit_list(w->s, &q, &w->a, &page, &w->e);

    CHECK(page.count == (err == ERR_OK ? 0 : 77), "out-parameters are left alone");
    return err;
}

/* As long as it takes, with steps as short as they can be. */
static enum err backup_all(struct world *w)
{
    struct backup_step b = {.fd = -1};
    enum err err = ERR_OK;

    while (err == ERR_OK && b.fd < 0)
        err = w->s->ops->backup->step(w->s, &b, &w->e);
    if (err == ERR_OK)
        (void)close(b.fd);
    return err;
}

static enum err op_backup(struct world *w)
{
    char part[sizeof w->dir + 16];
    enum err err = w->s->ops->backup->begin(w->s, NULL, &w->e);

    if (err == ERR_OK)
        err = backup_all(w);
    (void)snprintf(part, sizeof part, "%s/backup.part", w->dir);
    CHECK(access(part, F_OK) != 0, "nothing of it is left");
    return err;
}

static enum err op_backup_begin(struct world *w)
{
    enum err err = w->s->ops->backup->begin(w->s, &an_audit, &w->e);

    if (err == ERR_OK)
        w->s->ops->backup->end(w->s);
    return err;
}

/* SQLite opens its connections again after a failure: its ways out are taken as well. */
static enum err op_after_failure(struct world *w)
{
    struct fault_plan armed = fault_plan;

    fault_plan = (struct fault_plan){.fire = 1};
    CHECK(op_get(w) != ERR_OK, "a failure to recover from");
    fault_plan = armed;
    return op_commit(w);
}

/* Runs `op` with the n-th call failing; says whether there was such a call. */
static bool one_fault(struct world *w, operation *op, uint32_t n, uint32_t fire)
{
    CLEANUP(buf_fini) struct buf before = {0};
    CLEANUP(buf_fini) struct buf after = {0};

    furnish(w);
    tell_all(w, &before);
    fault_plan = (struct fault_plan){.skip = n, .fire = fire};
    enum err err = op(w);
    bool fired = fault_plan.fired > 0;
    fault_plan = (struct fault_plan){0};

    CHECK(fired || err == ERR_OK, "call %u: %s", n, w->e.text);
    CHECK(err == ERR_OK || err_is_transient(err), "call %u: %s", n, err_text(err));
    if (fired)
        world_settle(w);
    tell_all(w, &after);
    bool same = slice_eq(buf_view(&before), buf_view(&after));
    CHECK(err == ERR_OK || err == ERR_UNKNOWN || same, "call %u left something behind:\n%s", n,
          after.ptr);
    if (!same)
        return fired; /* it is done: the answer was lost, if anything */
    CHECK(op(w) == ERR_OK, "call %u: afterwards: %s", n, w->e.text);
    must(insert_row(w, a_row("afterwards")), "afterwards");
    return fired;
}

/* Places that fail: each, or every second one, those that fail once and those that fail for good by
 * turns. */
static uint32_t stride = 2;

static void loop(operation *op, int (*setup)(void **), const char *what)
{
    static const uint32_t fires[] = {1, UINT32_MAX};

    for (uint32_t i = 0; i < COUNT_OF(fires); i++) {
        bool fired = true;
        uint32_t n;
        for (n = stride > 1 ? i : 0; fired; n += stride) {
            void *world;
            CHECK(n < 200, "%s never ends", what);
            (void)setup(&world);
            fired = one_fault(world, op, n, fires[i]);
            (void)world_teardown(&world);
        }
        CHECK(n > 1, "%s met %u places that can fail", what, n - 1);
    }
}

static void no_failure_leaves_anything_half_done(int (*setup)(void **))
{
    static const struct {
        operation *op;
        const char *what;
    } operations[] = {
        {op_commit, "commit"},
        {op_claim_boot, "claim of a boot"},
        {op_get, "get"},
        {op_glance, "glance"},
        {op_get_many, "get_many"},
        {op_generations, "generations"},
        {op_overdue, "overdue"},
        {op_list, "list"},
        {op_retire, "retire"},
        {op_retire_look, "look for what may be deleted"},
        {op_reserved, "look for a reserved id"},
        {op_reserved_sweep, "forgetting of reserved ids"},
        {op_shrink, "shrinking"},
        {op_workflow_put, "workflow_put"},
        {op_workflow_get, "workflow_get"},
        {op_workflow_list, "workflow_list"},
        {op_workflow_since, "workflow_since"},
        {op_token_put, "token_put"},
        {op_token_change, "token_change"},
        {op_token_replace, "token_put in another's place"},
        {op_token_delete, "token_delete"},
        {op_token_list, "token_list"},
        {op_audit_list, "audit_list"},
        {op_agent_put, "agent_put"},
        {op_agent_since, "agent_since"},
        {op_overrun_count, "overrun_count"},
        {op_overrun_back, "overrun_back"},
        {op_overrun_list, "overrun_list"},
        {op_alert_put, "alert_put"},
        {op_alert_over, "alert_put of what is over"},
        {op_alert_acknowledge, "alert_acknowledge"},
        {op_alert_list, "alert_list"},
        {op_stopped, "stopped"},
        {op_commit_submission, "commit of a submission"},
        NOTICE_OPERATIONS{op_submissions_take, "submissions_take"},
        {op_submissions_settle, "submissions_settle"},
        {op_submissions_put, "submissions_put"},
        {op_submissions_list, "submissions_list"},
        {op_submissions_verb, "submissions_verb"},
        {op_workflow_describe, "workflow_describe"},
    };
    for (size_t i = 0; i < COUNT_OF(operations); i++)
        loop(operations[i].op, setup, operations[i].what);
}

static void no_failure_in_memory(void **state)
{
    (void)state;
    no_failure_leaves_anything_half_done(world_setup_memory);
}

static void no_failure_over_sqlite(void **state)
{
    (void)state;
    no_failure_leaves_anything_half_done(world_setup_sqlite);
    loop(op_after_failure, world_setup_sqlite, "commit after a failure");
    loop(op_census, world_setup_sqlite, "census");
    loop(op_owners, world_setup_sqlite, "owners");
    loop(op_backup, world_setup_sqlite, "backup");
    loop(op_backup_begin, world_setup_sqlite, "begin of a backup");
}

static void no_failure_over_postgres(void **state)
{
    (void)state;
    no_failure_leaves_anything_half_done(world_setup_postgres);
    loop(op_after_failure, world_setup_postgres, "commit after a failure");
    loop(op_census, world_setup_postgres, "census");
    loop(op_owners, world_setup_postgres, "owners");
}

/* A start that fails can be tried again, and counts as one start only if it succeeded. */
static void a_start_that_failed_leaves_a_folder_that_can_be_started(void **state)
{
    struct world *w = *state;
    struct error e;

    for (unsigned kind = 0; kind < 4; kind++) { /* of a new folder or an old one */
        bool fired = true;
        for (uint32_t n = stride > 1 ? kind / 2 : 0; fired; n += stride) {
            CHECK(n < 200, "never ends");
            char dir[sizeof w->dir + 16];
            (void)snprintf(dir, sizeof dir, "%s/%u-%u", w->dir, kind, kind % 2 ? n : 0);
            struct store *s = NULL;
            fault_plan = (struct fault_plan){.skip = n, .fire = kind / 2 ? 1 : UINT32_MAX};
            enum err err = sqlite_store_open(dir, &s, &e);
            fired = fault_plan.fired > 0;
            fault_plan = (struct fault_plan){0};
            CHECK((err == ERR_OK) == (s != NULL), "a store or an error");
            CHECK(fired || err == ERR_OK, "call %u: %s", n, e.text);
            if (s)
                s->ops->close(s);
            CHECK(sqlite_store_open(dir, &s, &e) == ERR_OK, "call %u: %s", n, e.text);
            s->ops->close(s);
        }
    }
}

/* Usage: store_fault [every|postgres]. Both try every place. */
int main(int argc, char **argv)
{
    const struct CMUnitTest files[] = {
        cmocka_unit_test(no_failure_in_memory),
        cmocka_unit_test(no_failure_over_sqlite),
        ON_SQLITE(a_start_that_failed_leaves_a_folder_that_can_be_started),
    };
    const struct CMUnitTest database[] = {
        cmocka_unit_test(no_failure_over_postgres),
    };
    if (argc > 1)
        stride = 1;
    if (argc > 1 && strcmp(argv[1], "postgres") == 0) /* apart: it takes the longest */
        return cmocka_run_group_tests_name("store faults, PostgreSQL", database, NULL, NULL);
    return cmocka_run_group_tests_name("store faults", files, NULL, NULL);
}
