/*
 * Commits of another node between a statement's snapshot and its lock: a claim, a change, a
 * deletion, a fenced write and a submission each meet one, in the same order in every run (gate.h).
 * store_race_test finds the same by many random tries.
 */

#include "base/test.h"

#include "gate.h"

static const struct payload one = {1, {"\"one\"", 5}};
static const struct payload two = {2, {"\"two\"", 5}};

static struct task_row a_row(const char *id)
{
    return (struct task_row){.id = slice_of(id),
                             .workflow = SLICE("order"),
                             .version = 1,
                             .revision = 1,
                             .state = TASK_PENDING,
                             .waiting_for = SLICE("a"),
                             .rank = 5,
                             .submitted_at = 1000,
                             .tags = SLICE("{\"k\":\"v\"}"),
                             .doc = SLICE("{\"steps\":[]}")};
}

static enum err commit(struct store *s, void *arg, struct arena *a, struct error *e)
{
    return s->ops->commit(s, arg, a, e);
}

/* By the second node, which no gate keeps. */
static void must_put(struct gate *g, struct change c)
{
    struct batch b = {.changes = &c, .change_count = 1};
    enum err err = g->second->ops->commit(g->second, &b, &g->a, &g->e);

    CHECK(err == ERR_OK && c.outcome == ERR_OK, "%s: %s", err_text(c.outcome), g->e.text);
}

static struct task_row fetch(struct gate *g, const char *id)
{
    struct task_row row = {0};
    enum err err = g->second->ops->get(g->second, slice_of(id), &g->a, &row, &g->e);

    CHECK(err == ERR_OK, "%s: %s", id, g->e.text);
    return row;
}

static void expect(struct gate *g, const char *query, long n)
{
    long is = gate_number(g, query);

    CHECK(is == n, "%s: %ld, not %ld", query, is, n);
}

/* Soon, by the database's clock. */
#define SOON "(extract(epoch FROM clock_timestamp()) * 1000)::int8 + 30000"

/* ---- a claim against a change ---- */

/* A change that leaves it to be claimed as before, with a value that it had not. */
static void claim_meets_change(struct gate *g, struct claim claim, struct task_row row)
{
    struct batch b = {.claims = &claim, .claim_count = 1};
    const char *id = row.id.ptr;
    struct call call;

    must_put(g, (struct change){.kind = CHANGE_INSERT, .row = row});
    gate_close(g);
    call_begin(&call, g, g->first, commit, &b);
    CHECK(call_waits(&call), "%s: %s", id, call.e.text);
    row.revision = 2;
    row.payloads = &two;
    row.payload_count = 1;
    must_put(g, (struct change){.kind = CHANGE_UPDATE, .drops_waits = claim.among, .row = row});
    gate_open(g);
    CHECK(call_end(&call) == ERR_OK, "%s: %s", id, call.e.text);
    CHECK(claim.row_count == 0, "%s: revision %" PRIu64 " was taken with %zu values", id,
          claim.rows[0].revision, claim.rows[0].payload_count);
    arena_fini(&call.a);
    CHECK(fetch(g, id).revision == 2, "%s was changed", id);
    CHECK(commit(g->first, &b, &g->a, &g->e) == ERR_OK, "%s", g->e.text);
    CHECK(claim.row_count == 1 && claim.rows[0].payload_count == 1, "%s: %zu taken next", id,
          claim.row_count);
    CHECK(claim.rows[0].revision == 3, "%s: revision %" PRIu64, id, claim.rows[0].revision);
}

static void a_claim_takes_nothing_that_changed_under_its_hands(void **state)
{
    static const struct task_wait waits[] = {{{"a", 1}, 5}, {{"time", 4}, 5}};
    static const struct {
        const char *id, *waiting_for, *locked_by;
        enum claim_kind kind;
    } kinds[] = {
        {"agent", "a", NULL, CLAIM_AGENT},          {"time", "time", NULL, CLAIM_TIME},
        {"agent-among", ",a,b", NULL, CLAIM_AGENT}, {"time-among", ",b,time", NULL, CLAIM_TIME},
        {"boot", NULL, "n1/3", CLAIM_BOOT},         {"node", NULL, "n7/3", CLAIM_NODE},
    };

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct task_row row = a_row(kinds[i].id);
        bool among = kinds[i].waiting_for && kinds[i].waiting_for[0] == ',';
        struct claim claim = {.kind = kinds[i].kind,
                              .agent = kinds[i].kind == CLAIM_TIME ? WAITING_TIME : SLICE("a"),
                              .among = among,
                              .locked_by = SLICE("n1/9"),
                              .now = 50,
                              .limit = 5};
        row.waiting_for = kinds[i].waiting_for ? slice_of(kinds[i].waiting_for) : SLICE_NONE;
        row.locked_by = kinds[i].locked_by ? slice_of(kinds[i].locked_by) : SLICE_NONE;
        row.state = kinds[i].locked_by ? TASK_PROCESSING : TASK_PENDING;
        row.waits = among ? &waits[kinds[i].kind == CLAIM_TIME] : NULL;
        row.wait_count = among;
        claim_meets_change(*state, claim, row);
    }
}

/* The next one to take a lock is being changed, and waits for it afterwards as before. No other
 * change tells that the lock is to be looked at again. */
static void a_lock_is_looked_at_again_for_whom_somebody_changes(void **state)
{
    struct gate *g = *state;
    struct task_row row = a_row("queued");
    struct claim claim = {.kind = CLAIM_LOCK, .locked_by = SLICE("n1/9"), .now = 50, .limit = 5};
    struct batch b = {.claims = &claim, .claim_count = 1};

    row.lock = SLICE("w/k");
    row.lock_max = 1;
    row.waiting_for = SLICE(WAITING_LOCK "w/k");
    must_put(g, (struct change){.kind = CHANGE_INSERT, .row = row});
    gate_do(g, "BEGIN; SELECT * FROM task FOR UPDATE");
    CHECK(commit(g->first, &b, &g->a, &g->e) == ERR_OK, "%s", g->e.text);
    CHECK(claim.row_count == 0, "it is being changed");
    gate_do(g, "ROLLBACK");
    CHECK(commit(g->first, &b, &g->a, &g->e) == ERR_OK, "%s", g->e.text);
    CHECK(claim.row_count == 1 && claim.rows[0].lock_since == 50, "%zu take the lock",
          claim.row_count);
}

/* ---- a change against a change ---- */

static const struct audit done_by_ann = {.at = 7, .actor = {"ann", 3}, .verb = {"retry", 5}};
static const struct message told = {.name = {"2/x", 3},
                                    .target = {"t", 1},
                                    .body = {"{}", 2},
                                    .created_at = 7};

/* With all that can go with a change. */
static struct change loaded(enum change_kind kind, struct task_row row)
{
    row.payloads = &two;
    row.payload_count = 1;
    return (struct change){.kind = kind,
                           .row = row,
                           .audits = &done_by_ann,
                           .audit_count = 1,
                           .messages = &told,
                           .message_count = 1};
}

static void expect_extras(struct gate *g, long changes)
{
    expect(g, "SELECT count(*) FROM payload", changes);
    expect(g, "SELECT count(*) FROM audit", changes);
    expect(g, "SELECT count(*) FROM outbox", changes);
    expect(g, "SELECT count(*) FROM wait", 0);
}

/* Two changes in a batch. Somebody changes the row of one of them; that one comes too late, with
 * all that goes with it, and the other one is done with all of its own. */
static void change_comes_too_late(struct gate *g, enum change_kind kind, bool waits, bool locks)
{
    static const struct task_wait before = {{"a", 1}, 5};
    static const struct task_wait wait = {{"b", 1}, 5};
    struct change c[2];
    struct batch b = {.changes = c, .change_count = 2};
    struct call call;

    gate_do(g, "DELETE FROM task; DELETE FROM payload; DELETE FROM outbox; DELETE FROM tag; DELETE "
               "FROM wait");
    postgres_store_of(g->first)->contended_until = locks ? INT64_MAX : 0;
    struct task_row late = a_row("late");
    if (waits) {
        late.waiting_for = SLICE(",a");
        late.waits = &before;
        late.wait_count = 1;
    }
    must_put(g, (struct change){.kind = CHANGE_INSERT, .row = late});
    must_put(g, (struct change){.kind = CHANGE_INSERT, .row = a_row("other")});
    long audits = gate_number(g, "SELECT count(*) FROM audit");
    c[0] = loaded(kind, a_row("late"));
    c[1] = loaded(kind, a_row("other"));
    c[0].row.revision = c[1].row.revision = 2;
    if (waits) {
        c[0].row.waiting_for = SLICE(",b");
        c[0].row.waits = &wait;
        c[0].row.wait_count = 1;
        c[0].drops_waits = true;
    }
    gate_do(g, "BEGIN; UPDATE task SET revision = 2 WHERE id = 'late'");
    call_begin(&call, g, g->first, commit, &b);
    CHECK(call_waits(&call), "change %u: %s", kind, call.e.text);
    gate_do(g, "COMMIT");
    CHECK(call_end(&call) == ERR_OK, "change %u: %s", kind, call.e.text);
    arena_fini(&call.a);
    CHECK(c[0].outcome == ERR_CONFLICT && c[1].outcome == ERR_OK, "change %u: %s, %s", kind,
          err_text(c[0].outcome), err_text(c[1].outcome));
    expect(g, "SELECT count(*) FROM payload", 1);
    expect(g,
           "SELECT count(*) FROM payload AS p JOIN task AS t ON p.task = t.seq "
           "WHERE t.id = 'other'",
           1);
    expect(g, "SELECT count(*) FROM audit", audits + 1);
    expect(g, "SELECT count(*) FROM outbox", 1);
    expect(g, "SELECT count(*) FROM outbox WHERE task = 'other'", 1);
    expect(g, "SELECT count(*) FROM wait", waits);
    expect(g, "SELECT count(*) FROM wait WHERE agent = 'a'", waits);
    CHECK(fetch(g, "late").revision == 2 && fetch(g, "other").revision == 2, "revisions");
}

static void a_change_that_comes_too_late_leaves_nothing(void **state)
{
    for (int locks = 0; locks < 2; locks++)
        for (int waits = 0; waits < 2; waits++) {
            change_comes_too_late(*state, CHANGE_UPDATE, waits, locks);
            change_comes_too_late(*state, CHANGE_REQUEST, waits, locks);
        }
}

/* The id is somebody else's by the time that the row could be inserted; or it is not, after all. */
static void of_two_insertions_one_is_done(void **state)
{
    struct gate *g = *state;

    for (int lost = 0; lost < 2; lost++) {
        struct change c = loaded(CHANGE_INSERT, a_row(lost ? "lost" : "won"));
        struct batch b = {.changes = &c, .change_count = 1};
        struct call call;
        gate_do(g, "BEGIN");
        gate_do(g, "INSERT INTO task (seq, id, workflow, version, revision, state, direction, "
                   "priority, rank, failure_count, submitted_at, doc) SELECT 1000 + count(*), "
                   "CASE count(*) WHEN 0 THEN 'won' ELSE 'lost' END, 'w', 1, 1, 'pending', "
                   "'forward', 5, 5, 0, 1000, '{}' FROM task");
        call_begin(&call, g, g->first, commit, &b);
        CHECK(call_waits(&call), "%s", call.e.text);
        gate_do(g, lost ? "COMMIT" : "ROLLBACK");
        CHECK(call_end(&call) == ERR_OK, "%s", call.e.text);
        arena_fini(&call.a);
        CHECK(c.outcome == (lost ? ERR_CONFLICT : ERR_OK), "%d: %s", lost, err_text(c.outcome));
        expect_extras(g, 1); /* of the first one */
        expect(g, "SELECT count(*) FROM tag", 1);
    }
}

/* ---- a fence against a lease ---- */

static void lease(struct gate *g, struct store *s, const char *name, const char *holder,
                  int64_t length_ms, struct lease *ret)
{
    const struct lease_try want = {.name = slice_of(name),
                                   .holder = slice_of(holder),
                                   .length_ms = length_ms};

    CHECK(s->ops->lease(s, &want, &g->a, ret, &g->e) == ERR_OK, "%s", g->e.text);
}

struct taking {
    struct lease_try want;
    struct lease got;
};

static enum err take(struct store *s, void *arg, struct arena *a, struct error *e)
{
    struct taking *t = arg;

    return s->ops->lease(s, &t->want, a, &t->got, e);
}

struct settling {
    struct settlement list[1];
    const struct fence *fence;
};

static enum err settle(struct store *s, void *arg, struct arena *a, struct error *e)
{
    const struct settling *t = arg;
    (void)a;

    return s->ops->outbox->settle(s, t->list, 1, t->fence, e);
}

static const struct fence led = {{"supervisor", 10}, 1};
static const struct alert_row an_alert = {.id = {"a-1", 3},
                                          .key = {"k", 1},
                                          .doc = {"{}", 2},
                                          .opened_at = 1000,
                                          .live = true,
                                          .fence = &led};

static enum err put_alert(struct store *s, void *arg, struct arena *a, struct error *e)
{
    (void)arg;
    (void)a;
    return s->ops->alerts->put(s, &an_alert, e);
}

/* A task to change and a message to settle; "n1/1" has led, and its lease has run out. */
static struct change has_led(struct gate *g, struct settling *ret)
{
    struct change c = {.kind = CHANGE_REQUEST, .row = a_row("x")};
    struct change first = {.kind = CHANGE_INSERT,
                           .row = a_row("x"),
                           .messages = &told,
                           .message_count = 1};
    struct lease l;

    must_put(g, first);
    lease(g, g->first, "supervisor", "n1/1", 0, &l);
    CHECK(l.epoch == 1, "epoch %" PRIu64, l.epoch);
    c.row.revision = 2;
    c.row.request = SLICE("{}");
    *ret = (struct settling){{{.seq = gate_number(g, "SELECT max(seq) FROM outbox"),
                               .kind = SETTLE_DELETE}},
                             &led};
    return c;
}

/* Somebody takes the lease, and is not yet known to have it: what is fenced waits for that. */
static void what_is_fenced_waits_for_whoever_takes_the_lease(void **state)
{
    struct gate *g = *state;
    struct settling s;
    struct change c = has_led(g, &s);
    struct claim claim = {.kind = CLAIM_AGENT,
                          .agent = SLICE("a"),
                          .locked_by = SLICE("n1/1"),
                          .limit = 1};
    struct batch b = {.changes = &c, .change_count = 1, .fence = &led};
    struct batch claims = {.claims = &claim, .claim_count = 1, .fence = &led};
    struct {
        enum err (*run)(struct store *, void *, struct arena *, struct error *);
        void *arg;
    } writes[] = {{commit, &b}, {settle, &s}, {commit, &claims}, {put_alert, NULL}};

    for (size_t i = 0; i < COUNT_OF(writes); i++) {
        struct call call;
        gate_do(g, "UPDATE lease SET epoch = 1, holder = 'n1/1'");
        gate_do(g, "BEGIN; UPDATE lease SET epoch = 2, holder = 'n2/1'");
        call_begin(&call, g, g->first, writes[i].run, writes[i].arg);
        CHECK(call_waits(&call), "write %zu", i);
        gate_do(g, "COMMIT");
        CHECK(call_end(&call) == ERR_CONFLICT, "write %zu: %s", i, err_text(call.err));
        arena_fini(&call.a);
        CHECK(fetch(g, "x").revision == 1, "write %zu", i);
        expect(g, "SELECT count(*) FROM outbox", 1);
        expect(g, "SELECT count(*) FROM alert", 0);
    }
    CHECK(c.outcome == ERR_CONFLICT && claim.row_count == 0, "outcomes");
}

/* Whoever has passed the fence holds it until he is done. */
static void nobody_takes_the_lease_from_under_what_is_fenced(void **state)
{
    struct gate *g = *state;
    struct settling s;
    struct change c = has_led(g, &s);
    struct batch b = {.changes = &c, .change_count = 1, .fence = &led};

    static const char *const locks[] = {"task", "outbox", "alert"};
    struct {
        enum err (*run)(struct store *, void *, struct arena *, struct error *);
        void *arg;
    } writes[] = {{commit, &b}, {settle, &s}, {put_alert, NULL}};

    CHECK(put_alert(g->first, NULL, &g->a, &g->e) == ERR_OK, "%s", g->e.text);
    for (size_t i = 0; i < COUNT_OF(writes); i++) {
        char sql[80];
        struct taking t = {
            .want = {.name = SLICE("supervisor"), .holder = SLICE("n2/1"), .length_ms = 60000}};
        struct call write;
        struct call taker;
        gate_do(g, "UPDATE lease SET epoch = 1, holder = 'n1/1', until = 0");
        (void)snprintf(sql, sizeof sql, "BEGIN; SELECT * FROM %s FOR UPDATE", locks[i]);
        gate_do(g, sql);
        call_begin(&write, g, g->first, writes[i].run, writes[i].arg);
        CHECK(call_waits(&write), "%s: %s", locks[i], write.e.text);
        call_begin(&taker, g, g->second, take, &t);
        CHECK(call_waits(&taker), "%s: the lease was taken under its hands", locks[i]);
        gate_do(g, "COMMIT");
        CHECK(call_end(&write) == ERR_OK, "%s: %s", locks[i], write.e.text);
        CHECK(call_end(&taker) == ERR_OK, "%s: %s", locks[i], taker.e.text);
        CHECK(slice_is(t.got.holder, "n2/1") && t.got.epoch == 2, "epoch %" PRIu64, t.got.epoch);
        arena_fini(&write.a);
        arena_fini(&taker.a);
    }
    CHECK(c.outcome == ERR_OK && fetch(g, "x").revision == 2, "what was fenced is done");
    expect(g, "SELECT count(*) FROM outbox", 0);
}

/* ---- a lease against a lease ---- */

/* Whoever comes second reads whose it is; also if there was none before. */
static void of_two_who_take_a_lease_one_has_it(void **state)
{
    static const char *const taken[] = {
        "INSERT INTO lease (name, holder, epoch, until) VALUES ('new', 'n2/1', 1, " SOON ")",
        "UPDATE lease SET holder = 'n2/1', epoch = 2, until = " SOON " WHERE name = 'old'",
        "UPDATE lease SET until = " SOON " WHERE name = 'own'",
    };
    static const char *const names[] = {"new", "old", "own"};
    static const char *const said[] = {"n2/1 1", "n2/1 2", "n2/1 1"};
    struct gate *g = *state;
    struct lease l;

    lease(g, g->second, "old", "n1/1", 0, &l);
    lease(g, g->second, "own", "n2/1", 0, &l);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct taking t = {
            .want = {.name = slice_of(names[i]), .holder = SLICE("n1/2"), .length_ms = 60000}};
        struct call call;
        char text[80];
        gate_do(g, "BEGIN");
        gate_do(g, taken[i]);
        call_begin(&call, g, g->first, take, &t);
        CHECK(call_waits(&call), "%s", names[i]);
        gate_do(g, "COMMIT");
        CHECK(call_end(&call) == ERR_OK, "%s", call.e.text);
        (void)snprintf(text, sizeof text, "%.*s %" PRIu64, SLICE_ARG(t.got.holder), t.got.epoch);
        CHECK(strcmp(text, said[i]) == 0, "%s: %s, not %s", names[i], text, said[i]);
        arena_fini(&call.a);
    }
}

/* ---- what is changed by what its maker saw ---- */

static const struct agent_change seen = {
    .name = {"ag", 2}, .part = AGENT_SETTINGS, .text = {"2", 1}, .fenced = true, .was = {"1", 1}};

static struct operation_row an_operation(uint64_t revision)
{
    return (struct operation_row){.id = SLICE("o-1"),
                                  .revision = revision,
                                  .open = true,
                                  .state = SLICE("running"),
                                  .verb = SLICE("retry"),
                                  .actor = SLICE("ann"),
                                  .reason = SLICE("why"),
                                  .started_at = 5000,
                                  .doc = SLICE("{}")};
}

static enum err change_operation(struct store *s, void *arg, struct arena *a, struct error *e)
{
    const struct operation_row row = an_operation(2);
    (void)arg;
    (void)a;

    return s->ops->operations->put(s, &row, &done_by_ann, e);
}

static enum err change_agent(struct store *s, void *arg, struct arena *a, struct error *e)
{
    (void)arg;
    (void)a;
    return s->ops->agent_put(s, &seen, &done_by_ann, e);
}

static enum err acknowledge(struct store *s, void *arg, struct arena *a, struct error *e)
{
    (void)arg;
    (void)a;
    return s->ops->alerts->acknowledge(s, an_alert.id, &done_by_ann, e);
}

static enum err drop_dead(struct store *s, void *arg, struct arena *a, struct error *e)
{
    struct outbox_verb v = {.drop = true, .limit = 9, .now = 7, .audit = &done_by_ann};
    (void)arg;
    (void)a;

    enum err err = s->ops->outbox->apply(s, &v, e);
    return err == ERR_OK && v.count == 0 ? ERR_CONFLICT : err;
}

/* Somebody else was faster, and it is not as it was seen: nothing is done, and nothing is written
 * into the audit. */
static void what_was_changed_since_it_was_seen_stays(void **state)
{
    static const struct {
        const char *meanwhile, *unchanged;
        enum err (*run)(struct store *, void *, struct arena *, struct error *);
    } changes[] = {
        {"UPDATE operation SET revision = 2, actor = 'bob'",
         "SELECT count(*) FROM operation WHERE actor = 'bob'", change_operation},
        {"UPDATE generation SET number = number + 1 WHERE name = 'agent'; "
         "UPDATE agent SET settings = '3'",
         "SELECT count(*) FROM agent WHERE settings = '3'", change_agent},
        {"UPDATE alert SET resolved_at = 5000",
         "SELECT count(*) FROM alert WHERE acknowledged_at IS NULL", acknowledge},
        {"UPDATE outbox_aside SET state = 'waiting'", "SELECT count(*) FROM outbox_aside",
         drop_dead},
    };
    struct gate *g = *state;
    const struct operation_row operation = an_operation(1);
    struct agent_change agent = seen;
    struct alert_row alert = an_alert;
    struct settling s;

    (void)has_led(g, &s);
    s.list[0].kind = SETTLE_DEAD;
    s.fence = NULL;
    agent.fenced = false;
    agent.text = SLICE("1");
    alert.fence = NULL;
    CHECK(g->second->ops->operations->put(g->second, &operation, NULL, &g->e) == ERR_OK
              && g->second->ops->agent_put(g->second, &agent, NULL, &g->e) == ERR_OK
              && g->second->ops->alerts->put(g->second, &alert, &g->e) == ERR_OK
              && settle(g->second, &s, &g->a, &g->e) == ERR_OK,
          "%s", g->e.text);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct call call;
        gate_do(g, "BEGIN");
        gate_do(g, changes[i].meanwhile);
        call_begin(&call, g, g->first, changes[i].run, NULL);
        CHECK(call_waits(&call), "%s: %s", changes[i].meanwhile, call.e.text);
        gate_do(g, "COMMIT");
        CHECK(call_end(&call) == ERR_CONFLICT, "%s: %s", changes[i].meanwhile, err_text(call.err));
        arena_fini(&call.a);
        expect(g, changes[i].unchanged, 1);
        expect(g, "SELECT count(*) FROM audit", 0);
    }
}

/* ---- a deletion against a change, and against a submission ---- */

struct deleting {
    struct retired task;
    struct retire retire;
    bool gone;
};

static enum err retire(struct store *s, void *arg, struct arena *a, struct error *e)
{
    struct deleting *d = arg;
    (void)a;

    d->retire.tasks = &d->task;
    d->retire.task_count = 1;
    d->retire.gone = &d->gone;
    return s->ops->retention->retire(s, &d->retire, e);
}

static struct task_row insert_ended(struct gate *g, const char *id)
{
    struct task_row row = a_row(id);

    row.state = TASK_PROCESSED;
    row.ended_at = 2000;
    row.waiting_for = SLICE_NONE;
    row.payloads = &one;
    row.payload_count = 1;
    must_put(g, (struct change){.kind = CHANGE_INSERT, .row = row});
    return row;
}

static struct deleting deleting_of(struct gate *g, const char *id)
{
    struct task_row row = fetch(g, id);

    return (struct deleting){
        .task = {.seq = row.seq, .revision = row.revision, .id = row.id, .workflow = row.workflow},
        .retire = {.reserve_until = INT64_MAX}};
}

/* Somebody has it undone after the deletion saw it, and before it locked it. */
static void what_was_changed_under_its_hands_is_not_deleted(void **state)
{
    struct gate *g = *state;
    struct task_row row = insert_ended(g, "x");
    struct deleting d = deleting_of(g, "x");
    struct call call;

    gate_close(g);
    call_begin(&call, g, g->first, retire, &d);
    CHECK(call_waits(&call), "%s", call.e.text);
    row.revision = 2;
    row.payloads = &two;
    must_put(g, (struct change){.kind = CHANGE_UPDATE, .row = row}); /* a late result, say */
    gate_open(g);
    CHECK(call_end(&call) == ERR_OK && !d.gone, "%d: %s", d.gone, call.e.text);
    CHECK(fetch(g, "x").payload_count == 2, "with all that it has");
    expect(g, "SELECT count(*) FROM tag", 1);
    expect(g, "SELECT count(*) FROM reserved", 0);
}

/* Whoever has the row may change it yet, so nobody waits for him. */
static void what_somebody_has_locked_is_not_deleted(void **state)
{
    struct gate *g = *state;
    struct call call;

    (void)insert_ended(g, "x");
    struct deleting d = deleting_of(g, "x");
    gate_do(g, "BEGIN; SELECT * FROM task FOR UPDATE");
    call_begin(&call, g, g->first, retire, &d);
    CHECK(!call_waits(&call), "it waits");
    gate_do(g, "COMMIT");
    CHECK(call_end(&call) == ERR_OK && !d.gone, "%d: %s", d.gone, call.e.text);
    expect(g, "SELECT count(*) FROM task", 1);
    expect(g, "SELECT count(*) FROM reserved", 0);
}

/* Each has a statement of its own in sql.c. */
enum way { BY_CALL, WAITING_FOR_TWO, BY_ROW, TELLING, WAYS };

static void submit_by(struct gate *g, enum way way, struct change *c)
{
    static const struct task_wait wait = {{"a", 1}, 5};
    static const struct notice_row tell = {.task = {"z", 1},
                                           .sender = {"x", 1},
                                           .kind = {"child", 5},
                                           .body = {"{}", 2}};
    char sql[120];

    c->row.submitted_at = 5000;
    if (way == WAITING_FOR_TWO) {
        c->row.waiting_for = SLICE(",a,b");
        c->row.waits = &wait;
        c->row.wait_count = 1;
    }
    if (way == BY_ROW) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO submission (source, id, workflow, submitted_at) "
                       "VALUES ('sql', '%.*s', 'order', 5000)",
                       SLICE_ARG(c->row.id));
        gate_do(g, sql);
        c->submission = gate_number(g, "SELECT max(seq) FROM submission");
    }
    if (way == TELLING) {
        c->tells = &tell;
        c->tell_count = 1;
    }
}

/* The task is deleted, its id about to be reserved, when somebody submits that id: he comes too
 * late, and what else is in his batch is done once. If the deletion ends otherwise, the task that
 * was there is there. */
static void submission_meets_deletion(struct gate *g, bool deleted, enum way way)
{
    struct change c[] = {loaded(CHANGE_INSERT, a_row("x")), loaded(CHANGE_INSERT, a_row("y"))};
    struct batch b = {.changes = c, .change_count = 2};
    struct call deletion;
    struct call submission;

    gate_do(g, "DELETE FROM task; DELETE FROM payload; DELETE FROM outbox; DELETE FROM reserved; "
               "DELETE FROM tag; DELETE FROM wait; DELETE FROM notice; DELETE FROM submission");
    long audits = gate_number(g, "SELECT count(*) FROM audit");
    (void)insert_ended(g, "x");
    struct deleting d = deleting_of(g, "x");
    submit_by(g, way, &c[0]);
    submit_by(g, way, &c[1]);
    /* Its reservation has to wait for this one, and the row is deleted by then. */
    gate_do(g, "BEGIN; INSERT INTO reserved (id, workflow, version, state, until) "
               "VALUES ('x', 'w', 1, 'processed', 0)");
    call_begin(&deletion, g, g->first, retire, &d);
    CHECK(call_waits(&deletion), "%s", deletion.e.text);
    call_begin(&submission, g, g->second, commit, &b);
    CHECK(call_waits(&submission), "%u: %s", way, submission.e.text);
    if (!deleted)
        gate_do(g, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'first' "
                   "AND wait_event_type = 'Lock'");
    else
        gate_do(g, "ROLLBACK");
    enum err err = call_end(&deletion);
    CHECK((err == ERR_OK) == deleted && d.gone == deleted, "%s", deletion.e.text);
    CHECK(call_end(&submission) == ERR_OK, "%s", submission.e.text);
    CHECK(c[0].outcome == ERR_CONFLICT && c[1].outcome == ERR_OK, "%u: %s, %s", way,
          err_text(c[0].outcome), err_text(c[1].outcome));
    if (!deleted)
        gate_do(g, "ROLLBACK");
    arena_fini(&deletion.a);
    arena_fini(&submission.a);
    expect(g, "SELECT count(*) FROM task WHERE id = 'x'", !deleted);
    expect(g, "SELECT count(*) FROM reserved WHERE id = 'x'", deleted);
    expect(g, "SELECT count(*) FROM task WHERE id = 'y'", 1);
    expect(g, "SELECT count(*) FROM payload", deleted ? 1 : 2);
    expect(g, "SELECT count(*) FROM outbox", 1);
    expect(g, "SELECT count(*) FROM audit", audits + 1);
    expect(g, "SELECT count(*) FROM wait", way == WAITING_FOR_TWO);
    expect(g, "SELECT count(*) FROM submission", way == BY_ROW);
    expect(g, "SELECT count(*) FROM notice", way == TELLING);
}

static void an_id_that_is_being_deleted_is_not_submitted_again(void **state)
{
    for (enum way way = BY_CALL; way < WAYS; way++)
        submission_meets_deletion(*state, true, way);
}

static void an_id_that_is_not_deleted_after_all_is_in_use(void **state)
{
    for (enum way way = BY_CALL; way < WAYS; way++)
        submission_meets_deletion(*state, false, way);
}

/* ---- a submission against whoever drops or refuses it ---- */

static void a_submission_that_goes_under_its_hands_is_no_task(void **state)
{
    static const char *const goes[] = {
        "DELETE FROM submission",
        "UPDATE submission SET refused_at = 5, reason = 'why'",
    };
    struct gate *g = *state;

    for (size_t i = 0; i < COUNT_OF(goes); i++) {
        struct change c = loaded(CHANGE_INSERT, a_row(i ? "refused" : "dropped"));
        struct batch b = {.changes = &c, .change_count = 1};
        struct call call;
        gate_do(g, "INSERT INTO submission (source, id, workflow, submitted_at) "
                   "VALUES ('sql', 'x', 'order', 1000)");
        c.submission = gate_number(g, "SELECT max(seq) FROM submission");
        gate_do(g, "BEGIN");
        gate_do(g, goes[i]);
        call_begin(&call, g, g->first, commit, &b);
        CHECK(call_waits(&call), "%s", call.e.text);
        gate_do(g, "COMMIT");
        CHECK(call_end(&call) == ERR_OK, "%s", call.e.text);
        arena_fini(&call.a);
        CHECK(c.outcome == ERR_BUSY, "%s: %s", goes[i], err_text(c.outcome));
        expect(g, "SELECT count(*) FROM task", 0);
        expect(g, "SELECT count(*) FROM submission", (long)i);
        expect_extras(g, 0);
    }
}

#define AT_GATE(f) cmocka_unit_test_setup_teardown(f, gate_setup, gate_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_GATE(a_claim_takes_nothing_that_changed_under_its_hands),
        AT_GATE(a_lock_is_looked_at_again_for_whom_somebody_changes),
        AT_GATE(a_change_that_comes_too_late_leaves_nothing),
        AT_GATE(of_two_insertions_one_is_done),
        AT_GATE(what_is_fenced_waits_for_whoever_takes_the_lease),
        AT_GATE(nobody_takes_the_lease_from_under_what_is_fenced),
        AT_GATE(of_two_who_take_a_lease_one_has_it),
        AT_GATE(what_was_changed_since_it_was_seen_stays),
        AT_GATE(what_was_changed_under_its_hands_is_not_deleted),
        AT_GATE(what_somebody_has_locked_is_not_deleted),
        AT_GATE(an_id_that_is_being_deleted_is_not_submitted_again),
        AT_GATE(an_id_that_is_not_deleted_after_all_is_in_use),
        AT_GATE(a_submission_that_goes_under_its_hands_is_no_task),
    };
    return cmocka_run_group_tests_name("store in PostgreSQL, between two moments", tests, NULL,
                                       NULL);
}
