/* The contract of every store for tokens, settings of agents, and the audit. Each test names one
 * promise and runs on all stores (store_world.h); store_contract.c has tasks. */

#include "store_world.h"

#include "base/buf.h"

static struct audit an_audit(const char *verb, const char *reason)
{
    return (struct audit){.at = 1769853600123,
                          .actor = SLICE("ann"),
                          .verb = slice_of(verb),
                          .reason = slice_of(reason),
                          .address = SLICE("192.0.2.7 for 203.0.113.9")};
}

static struct token_row a_token(const char *name, unsigned char hash, bool admin)
{
    struct token_row t = {.name = slice_of(name),
                          .roles = admin ? SLICE("[\"admin\"]") : SLICE("[\"submit\",\"agent:*\"]"),
                          .admin = admin,
                          .created_at = 1000 + hash};

    memset(t.hash, hash, sizeof t.hash);
    return t;
}

static enum err put_token(struct world *w, struct token_row t, bool replace)
{
    const struct audit audit = an_audit("token.create", NULL);

    return w->s->ops->token_put(w->s, &t, replace, &audit, &w->e);
}

static enum err delete_token(struct world *w, const char *name, int64_t now)
{
    const struct audit audit = an_audit("token.delete", name);

    return w->s->ops->token_delete(w->s, slice_of(name), now, &audit, &w->e);
}

static void tokens_are(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct token_row *rows = NULL;
    size_t count = 0;

    must(w->s->ops->token_list(w->s, &w->a, &rows, &count, &w->e), "list");
    for (size_t i = 0; i < count; i++)
        buf_fmt(&b, "%.*s %d%d %.*s %d %" PRId64 " %" PRId64 "\n", SLICE_ARG(rows[i].name),
                rows[i].hash[0], rows[i].hash[31], SLICE_ARG(rows[i].roles), rows[i].admin,
                rows[i].created_at, rows[i].expires_at);
    CHECK(slice_is(buf_view(&b), want), "tokens are\n%s", b.ptr ? b.ptr : "none");
}

/* "actor verb task/step reason", newest first; *ret_more if there are more. */
static void audit_is(struct world *w, struct audit_query q, const char *want, bool more)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct audit_page p;

    must(w->s->ops->audit_list(w->s, &q, &w->a, &p, &w->e), "audit");
    for (size_t i = 0; i < p.count; i++) {
        const struct audit *a = &p.entries[i];
        CHECK(a->at == 1769853600123, "at %" PRId64, a->at);
        buf_fmt(&b, "%.*s %.*s %.*s/%.*s %s%.*s\n", SLICE_ARG(a->actor), SLICE_ARG(a->verb),
                SLICE_ARG(a->task), SLICE_ARG(a->step), a->reason.ptr ? "" : "-",
                SLICE_ARG(a->reason));
        CHECK(slice_is(a->address, "192.0.2.7 for 203.0.113.9"), "address %.*s",
              SLICE_ARG(a->address));
        CHECK(i == 0 || p.seqs[i] < p.seqs[i - 1], "newest first");
    }
    CHECK(slice_is(buf_view(&b), want), "the audit is\n%s", b.ptr ? b.ptr : "empty");
    CHECK(p.more == more, "more");
}

static const struct audit_query all = {.limit = 100};

static void tokens_are_kept_by_name_and_hash(void **state)
{
    struct world *w = *state;
    struct token_row b = a_token("b", 2, false);

    tokens_are(w, "");
    b.expires_at = 77;
    must(put_token(w, b, false), "b");
    must(put_token(w, a_token("a", 1, true), false), "a");
    static const char both[] =
        "a 11 [\"admin\"] 1 1001 0\nb 22 [\"submit\",\"agent:*\"] 0 1002 77\n";
    tokens_are(w, both);
    CHECK(put_token(w, a_token("a", 3, false), false) == ERR_CONFLICT, "the name is taken");
    CHECK(put_token(w, a_token("c", 2, false), false) == ERR_CONFLICT, "the hash is taken");
    CHECK(put_token(w, a_token("a", 2, false), true) == ERR_CONFLICT, "by another name");
    tokens_are(w, both);
    world_restart(w);
    tokens_are(w, both);
    must(put_token(w, a_token("a", 9, true), true), "replaced");
    must(put_token(w, a_token("d", 4, false), true), "nothing to replace");
    must(delete_token(w, "b", 5), "deleted");
    CHECK(delete_token(w, "b", 5) == ERR_NOT_FOUND, "it is gone");
    tokens_are(w, "a 99 [\"admin\"] 1 1009 0\nd 44 [\"submit\",\"agent:*\"] 0 1004 0\n");
    must(put_token(w, a_token("b", 2, false), false), "the name and the hash are free again");
    audit_is(w, all,
             "ann token.create / -\nann token.delete / b\nann token.create / -\n"
             "ann token.create / -\nann token.create / -\nann token.create / -\n",
             false);
}

/* A change is made to the token that its maker has seen, and to no other of the name. */
static void a_token_is_changed_by_who_has_seen_it(void **state)
{
    struct world *w = *state;
    struct token_row t = a_token("a", 1, false);
    const struct audit audit = an_audit("token.rotate", "a");
    unsigned char was[TOKEN_HASH_SIZE];
    struct token_row *rows = NULL;
    size_t count = 0;

    must(put_token(w, t, false), "a");
    memcpy(was, t.hash, sizeof was);
    memset(t.hash, 7, sizeof t.hash);
    memset(t.previous_hash, 1, sizeof t.previous_hash);
    t.previous_until = 5000;
    t.expires_at = 9000;
    t.limits = SLICE("{\"calls\":5}");
    t.person = SLICE("ann");
    t.groups = SLICE("[\"finance\"]");
    must(w->s->ops->token_change(w->s, &t, was, &audit, &w->e), "changed");
    CHECK(w->s->ops->token_change(w->s, &t, was, &audit, &w->e) == ERR_NOT_FOUND, "seen too early");
    t.name = SLICE("b");
    CHECK(w->s->ops->token_change(w->s, &t, t.hash, &audit, &w->e) == ERR_NOT_FOUND, "no such one");
    world_restart(w);
    tokens_are(w, "a 77 [\"submit\",\"agent:*\"] 0 1001 9000\n");
    must(w->s->ops->token_list(w->s, &w->a, &rows, &count, &w->e), "list");
    CHECK(memcmp(rows[0].previous_hash, was, sizeof was) == 0 && rows[0].previous_until == 5000,
          "the text before");
    CHECK(slice_is(rows[0].limits, "{\"calls\":5}"), "%.*s", SLICE_ARG(rows[0].limits));
    CHECK(slice_is(rows[0].person, "ann") && slice_is(rows[0].groups, "[\"finance\"]"), "%.*s %.*s",
          SLICE_ARG(rows[0].person), SLICE_ARG(rows[0].groups));
    audit_is(w, all, "ann token.rotate / a\nann token.create / -\n", false);
}

/* Whatever was written before it. */
static void a_token_that_was_not_rotated_has_no_hash_before(void **state)
{
    static const unsigned char nothing[TOKEN_HASH_SIZE];
    struct world *w = *state;
    const struct audit audit = an_audit("token.create", NULL);
    struct token_row rotated = a_token("a", 1, false);
    struct token_row fresh = a_token("b", 2, false);
    struct token_row *rows = NULL;
    size_t count = 0;

    memset(rotated.previous_hash, 8, sizeof rotated.previous_hash);
    rotated.previous_until = 5000;
    must(w->s->ops->token_put(w->s, &rotated, false, &audit, &w->e), "one that was");
    must(w->s->ops->token_put(w->s, &fresh, false, &audit, &w->e), "one that was not");
    must(w->s->ops->token_list(w->s, &w->a, &rows, &count, &w->e), "list");
    CHECK(count == 2 && rows[0].previous_until == 5000 && rows[1].previous_until == 0, "until");
    CHECK(memcmp(rows[1].previous_hash, nothing, sizeof nothing) == 0, "that of another token");
}

static void the_last_admin_stays(void **state)
{
    struct world *w = *state;
    struct token_row temporary = a_token("temporary", 2, true);

    temporary.expires_at = 500;
    must(put_token(w, a_token("a", 1, true), false), "a");
    must(put_token(w, a_token("s", 3, false), false), "s");
    CHECK(delete_token(w, "a", 100) == ERR_CONFLICT, "the only one");
    must(put_token(w, temporary, false), "another one, for a time");
    CHECK(delete_token(w, "a", 500) == ERR_CONFLICT, "which is over");
    CHECK(delete_token(w, "nobody", 500) == ERR_NOT_FOUND, "nobody");
    must(delete_token(w, "a", 499), "which is not over");
    CHECK(delete_token(w, "temporary", 499) == ERR_CONFLICT, "now it is the only one");
    must(delete_token(w, "s", 499), "no admin's");
    must(put_token(w, a_token("a", 1, true), false), "a");
    must(delete_token(w, "temporary", 900), "out of time");
    tokens_are(w, "a 11 [\"admin\"] 1 1001 0\n");
}

static void what_people_did_is_stored_with_its_change(void **state)
{
    struct world *w = *state;
    struct audit done[2] = {an_audit("skip", "tired"), an_audit("retry", "of \"it\"\n")};
    struct change c = {.kind = CHANGE_INSERT, .row = a_row("x"), .audits = done, .audit_count = 2};

    done[0].task = done[1].task = SLICE("x");
    done[0].step = SLICE("charge");
    must(put_change(w, c), "insert");
    CHECK(put_change(w, c) == ERR_CONFLICT, "again");
    static const char two[] = "ann retry x/ of \"it\"\n\nann skip x/charge tired\n";
    audit_is(w, all, two, false);

    c.kind = CHANGE_UPDATE;
    c.row.revision = 3;
    CHECK(put_change(w, c) == ERR_CONFLICT, "a stale revision");
    c.row.revision = 2;
    c.row.doc = SLICE_NONE;
    CHECK(put_change(w, c) == ERR_INVALID, "a row that cannot be stored");
    c.row.doc = SLICE("{}");
    done[1].actor = SLICE_NONE;
    CHECK(put_change(w, c) == ERR_INVALID, "nobody did it");
    CHECK(fetch(w, "x").revision == 1, "then it was not done");
    audit_is(w, all, two, false);

    c.audits = &done[0];
    c.audit_count = 1;
    must(put_change(w, c), "update");
    c.kind = CHANGE_REQUEST;
    c.row.revision = 3;
    c.row.request = SLICE("{}");
    must(put_change(w, c), "request");
    world_restart(w);
    audit_is(w, all,
             "ann skip x/charge tired\nann skip x/charge tired\nann retry x/ of \"it\"\n\n"
             "ann skip x/charge tired\n",
             false);
}

static void a_payload_that_is_refused_leaves_no_audit(void **state)
{
    struct world *w = *state;
    const struct payload twice[] = {{1, SLICE("1")}, {1, SLICE("2")}};
    const struct audit done = an_audit("retry", "x");
    struct change c = {.kind = CHANGE_INSERT, .row = a_row("x"), .audits = &done, .audit_count = 1};

    c.row.payloads = twice;
    c.row.payload_count = 2;
    CHECK(put_change(w, c) == ERR_INVALID, "the same number twice");
    CHECK(!exists(w, "x"), "no task");
    audit_is(w, all, "", false);
}

static void the_audit_comes_in_pages_newest_first(void **state)
{
    struct world *w = *state;
    char text[3][16];

    for (int i = 0; i < 9; i++) {
        struct audit done = an_audit("retry", NULL);
        (void)snprintf(text[0], sizeof text[0], "%d", i);
        (void)snprintf(text[1], sizeof text[1], "t%d", i);
        (void)snprintf(text[2], sizeof text[2], "t%d", i % 3);
        done.reason = slice_of(text[0]);
        done.task = slice_of(text[2]);
        struct change c = {.kind = CHANGE_INSERT,
                           .row = a_row(text[1]),
                           .audits = &done,
                           .audit_count = 1};
        must(put_change(w, c), "insert");
    }
    audit_is(w, (struct audit_query){.limit = 2}, "ann retry t2/ 8\nann retry t1/ 7\n", true);
    struct audit_page p;
    const struct audit_query first = {.limit = 2};
    must(w->s->ops->audit_list(w->s, &first, &w->a, &p, &w->e), "first");
    audit_is(w, (struct audit_query){.limit = 2, .before_seq = p.seqs[1]},
             "ann retry t0/ 6\nann retry t2/ 5\n", true);
    audit_is(w, (struct audit_query){.limit = 3, .task = SLICE("t1")},
             "ann retry t1/ 7\nann retry t1/ 4\nann retry t1/ 1\n", false);
    audit_is(w, (struct audit_query){.limit = 1, .task = SLICE("t1"), .before_seq = p.seqs[1]},
             "ann retry t1/ 4\n", true);
    audit_is(w, (struct audit_query){.limit = 9, .task = SLICE("nobody")}, "", false);
    audit_is(w, (struct audit_query){.limit = 9, .before_seq = 1}, "", false);
}

static void entries_are(const struct audit_page *p, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < p->count; i++)
        buf_fmt(&b, "%.*s/%.*s ", SLICE_ARG(p->entries[i].task), SLICE_ARG(p->entries[i].reason));
    CHECK(slice_is(buf_view(&b), want), "the entries are %s", b.ptr ? b.ptr : "none");
}

/* Also those of before, and of this change; not those of another task. */
static void a_change_brings_what_people_did_to_its_task(void **state)
{
    struct world *w = *state;
    struct audit early = an_audit("approval.link", "0");
    struct audit done = an_audit("retry", "1");
    struct change c[3] = {{.kind = CHANGE_INSERT, .row = a_row("x"), .shows_operations = true},
                          {.kind = CHANGE_INSERT, .row = a_row("y"), .shows_operations = true},
                          {.kind = CHANGE_INSERT, .row = a_row("z")}};
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};

    early.task = done.task = SLICE("x");
    must(w->s->ops->audit_put(w->s, &early, &w->e), "put");
    c[0].audits = &done;
    c[0].audit_count = 1;
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "commit");
    entries_are(&c[0].operations, "x/1 x/0 ");
    entries_are(&c[1].operations, "");
    for (int i = 2; i < TASK_OPERATIONS_MAX + 9; i++)
        must(w->s->ops->audit_put(w->s, &early, &w->e), "put");
    c[0].kind = CHANGE_UPDATE;
    c[0].row.revision = 2;
    b.change_count = 1;
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "commit");
    CHECK(c[0].outcome == ERR_OK, "%s", err_text(c[0].outcome));
    CHECK(c[0].operations.count == TASK_OPERATIONS_MAX, "%zu entries", c[0].operations.count);
    CHECK(slice_is(c[0].operations.entries[0].reason, "1"), "the newest first");
}

/* As `get` and `audit_list` read them, as far as there is room; the first one always. */
static void records_are_read_together(void **state)
{
    struct world *w = *state;
    static const char *const ids[] = {"r1", "none", "r2", "r1"};
    struct task_record list[COUNT_OF(ids)];
    struct audit done = an_audit("retry", "1");
    struct task_row row;

    if (!w->s->ops->records)
        return; /* nothing is saved by it */
    must(put_change(w, (struct change){.kind = CHANGE_INSERT, .row = a_row("r1")}), "r1");
    must(put_change(w, (struct change){.kind = CHANGE_INSERT, .row = a_row("r2")}), "r2");
    done.task = SLICE("r2");
    must(w->s->ops->audit_put(w->s, &done, &w->e), "put");
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        list[i] = (struct task_record){.id = slice_of(ids[i]), .arena = &w->a};
    for (size_t bytes = SIZE_MAX / 2;; bytes = 1) {
        must(w->s->ops->records(w->s, list, COUNT_OF(ids), bytes, &w->e), "records");
        CHECK(list[0].err == ERR_OK && list[1].err == ERR_NOT_FOUND, "%s, %s",
              err_text(list[0].err), err_text(list[1].err));
        CHECK(!list[0].left && !list[1].left, "the first one is always read");
        CHECK(slice_is(list[0].row.id, "r1") && list[0].operations.count == 0, "r1");
        CHECK(list[2].left == (bytes == 1) && list[3].left == (bytes == 1), "room for %zu", bytes);
        if (bytes == 1)
            break;
        entries_are(&list[2].operations, "r2/1 ");
        must(w->s->ops->get(w->s, SLICE("r2"), &w->a, &row, &w->e), "get");
        CHECK(slice_eq(row.doc, list[2].row.doc) && row.seq == list[2].row.seq, "r2");
        CHECK(slice_is(list[3].row.id, "r1"), "the same twice");
    }
}

static void an_entry_of_the_audit_may_stand_alone(void **state)
{
    struct world *w = *state;
    struct audit done = an_audit("approval.link", "for bob");

    done.task = SLICE("x");
    done.step = SLICE("allow");
    must(w->s->ops->audit_put(w->s, &done, &w->e), "put");
    must(w->s->ops->audit_put(w->s, &done, &w->e), "once more");
    world_restart(w);
    audit_is(w, (struct audit_query){.limit = 9, .task = SLICE("x")},
             "ann approval.link x/allow for bob\nann approval.link x/allow for bob\n", false);
}

static void a_definition_is_stored_with_who_did_it(void **state)
{
    struct world *w = *state;
    const struct audit done = an_audit("workflow.put", NULL);
    int64_t version;
    bool is_new;

    for (int i = 0; i < 2; i++)
        must(w->s->ops->workflow_put(w->s, SLICE("order"), SLICE("A"), 1, &done, &version, &is_new,
                                     &w->e),
             "put");
    must(w->s->ops->workflow_put(w->s, SLICE("order"), SLICE("B"), 1, &done, &version, &is_new,
                                 &w->e),
         "put");
    audit_is(w, all, "ann workflow.put / order, version 2\nann workflow.put / order, version 1\n",
             false);
}

static enum err say(struct world *w, struct agent_change c)
{
    struct audit audit = an_audit("agent.set", NULL);

    audit.reason = c.name;
    return w->s->ops->agent_put(w->s, &c, &audit, &w->e);
}

/* "name settings breaker" of those after that generation; up to which that is all. */
static uint64_t agents_are(struct world *w, uint64_t after, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct agent_row *rows = NULL;
    uint64_t generation = 77;
    size_t count = 77;

    must(w->s->ops->agent_since(w->s, after, &w->a, &rows, &count, &generation, &w->e), "agents");
    for (size_t i = 0; i < count; i++)
        buf_fmt(&b, "%.*s %s%.*s %s%.*s\n", SLICE_ARG(rows[i].name),
                rows[i].settings.ptr ? "" : "-", SLICE_ARG(rows[i].settings),
                rows[i].breaker.ptr ? "" : "-", SLICE_ARG(rows[i].breaker));
    CHECK(slice_is(buf_view(&b), want), "after %" PRIu64 " agents are\n%s", after,
          b.ptr ? b.ptr : "none");
    return generation;
}

static void what_is_said_of_agents_is_kept(void **state)
{
    struct world *w = *state;
    struct agent_change b = {.name = SLICE("b"), .part = AGENT_BREAKER, .text = SLICE("{\"x\":1}")};
    struct agent_change a = {.name = SLICE("a"), .text = SLICE("{}")};

    CHECK(agents_are(w, 0, "") == 0, "nothing was said");
    must(say(w, b), "b");
    must(say(w, a), "a");
    uint64_t two = agents_are(w, 0, "a {} -\nb - {\"x\":1}\n");
    b.part = AGENT_SETTINGS;
    b.text = SLICE("{\"y\":2}");
    must(say(w, b), "b");
    uint64_t three = agents_are(w, 0, "a {} -\nb {\"y\":2} {\"x\":1}\n");
    CHECK(w->s->shared ? three > two && two > 0 : three == 0, "generations");
    if (w->s->shared) {
        CHECK(agents_are(w, two, "b {\"y\":2} {\"x\":1}\n") == three, "one is news");
        CHECK(agents_are(w, three, "") == three, "nothing is");
    }
    world_restart(w);
    (void)agents_are(w, 0, "a {} -\nb {\"y\":2} {\"x\":1}\n");
    b.text = SLICE_NONE;
    must(say(w, b), "taken back");
    (void)agents_are(w, 0, "a {} -\nb - {\"x\":1}\n");
    audit_is(w, all, "ann agent.set / b\nann agent.set / b\nann agent.set / a\nann agent.set / b\n",
             false);
}

/* Two who write at once: the one that did not know of the other does nothing. */
static void a_breaker_is_written_by_who_knows_it(void **state)
{
    struct world *w = *state;
    struct agent_change c = {.name = SLICE("a"),
                             .part = AGENT_BREAKER,
                             .text = SLICE("1"),
                             .fenced = true};

    must(say(w, c), "nothing is said of it, as it thinks");
    c.text = SLICE("2");
    CHECK(say(w, c) == ERR_CONFLICT, "something is");
    (void)agents_are(w, 0, "a - 1\n");
    c.was = SLICE("1");
    must(say(w, c), "it knows");
    CHECK(say(w, c) == ERR_CONFLICT, "no more");
    c.was = SLICE("2");
    c.text = SLICE_NONE;
    must(say(w, c), "taken back");
    c.part = AGENT_SETTINGS;
    c.was = SLICE_NONE;
    c.text = SLICE("{}");
    must(say(w, c), "the parts are fenced each by itself");
    (void)agents_are(w, 0, "a {} -\n");
    audit_is(w, all, "ann agent.set / a\nann agent.set / a\nann agent.set / a\nann agent.set / a\n",
             false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_is_said_of_agents_is_kept),
        ON_ALL(a_breaker_is_written_by_who_knows_it),
        ON_ALL(tokens_are_kept_by_name_and_hash),
        ON_ALL(a_token_is_changed_by_who_has_seen_it),
        ON_ALL(a_token_that_was_not_rotated_has_no_hash_before),
        ON_ALL(the_last_admin_stays),
        ON_ALL(what_people_did_is_stored_with_its_change),
        ON_ALL(a_payload_that_is_refused_leaves_no_audit),
        ON_ALL(the_audit_comes_in_pages_newest_first),
        ON_ALL(a_change_brings_what_people_did_to_its_task),
        ON_ALL(records_are_read_together),
        ON_ALL(an_entry_of_the_audit_may_stand_alone),
        ON_ALL(a_definition_is_stored_with_who_did_it),
    };
    return cmocka_run_group_tests_name("store contract: access", tests, NULL, NULL);
}
