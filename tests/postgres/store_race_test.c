/*
 * Several processes on one database: each inserts, claims, changes and requests at random, in
 * batches of any order, and records the results. Afterwards these records must explain every row:
 * exactly one revision for each change that returned ERR_OK. With $INTACT_TEST_POOLER all
 * connections go through a pooler, which is killed as well.
 */

#include "base/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/prng.h"
#include "bouncer.h"
#include "cluster.h"
#include "store/postgres/body.h"
#include "store/postgres/postgres.h"

enum { WORKERS = 4, TASKS = 60, ROUNDS = 400, BATCH = 12 };

/* Shared by all: how often a task was changed with success. */
struct notes {
    unsigned changed[WORKERS][TASKS];
    unsigned unknown, conflicts, claimed;
};

struct worker {
    struct store *s;
    struct prng random;
    struct notes *notes;
    unsigned number;
    char owner[24];
    struct arena a;
    struct error e;
};

static unsigned pick(struct worker *w, unsigned n)
{
    return (unsigned)(prng_next(&w->random) % n);
}

static struct slice id_of(struct arena *a, unsigned task)
{
    char id[16];

    (void)snprintf(id, sizeof id, "t-%02u", task);
    return arena_copy(a, slice_of(id));
}

static unsigned task_of(struct slice id)
{
    return (unsigned)strtoul(id.ptr + 2, NULL, 10);
}

static struct task_row fresh_row(struct worker *w, unsigned task)
{
    return (struct task_row){
        .id = id_of(&w->a, task),
        .workflow = SLICE("order"),
        .version = 1,
        .revision = 1,
        .state = TASK_PENDING,
        .priority = 5,
        .waiting_for = pick(w, 2) ? SLICE("a") : SLICE("b"),
        .rank = pick(w, 100),
        .submitted_at = 1000,
        .wake_at = pick(w, 1000),
        .tags = SLICE("{\"k\":\"v\"}"),
        .doc = SLICE("{\"steps\":[]}"),
    };
}

/* A change of a task as it was read a moment ago; somebody else may have been faster. */
static bool change_of(struct worker *w, unsigned task, struct change *ret)
{
    struct task_row row;
    enum err err = w->s->ops->get(w->s, id_of(&w->a, task), &w->a, &row, &w->e);

    if (err == ERR_NOT_FOUND) {
        *ret = (struct change){.kind = CHANGE_INSERT, .row = fresh_row(w, task)};
        return true;
    }
    CHECK(err == ERR_OK, "%s", w->e.text);
    row.revision++;
    row.payloads = NULL;
    row.payload_count = 0;
    if (pick(w, 4) == 0) {
        *ret = (struct change){.kind = CHANGE_REQUEST, .release = pick(w, 2), .row = row};
        ret->row.request = SLICE("{}");
        ret->row.waiting_for = SLICE("a");
        return true;
    }
    row.state = TASK_PENDING;
    row.locked_by = SLICE_NONE;
    row.waiting_for = pick(w, 2) ? SLICE("a") : SLICE("b");
    row.wake_at = pick(w, 1000);
    *ret = (struct change){.kind = CHANGE_UPDATE, .wake_moved = pick(w, 2), .row = row};
    return true;
}

static void note(struct worker *w, const struct batch *b)
{
    for (size_t i = 0; i < b->change_count; i++) {
        const struct change *c = &b->changes[i];
        if (c->outcome == ERR_OK)
            w->notes->changed[w->number][task_of(c->row.id)]++;
        else
            CHECK(c->outcome == ERR_CONFLICT, "%s", err_text(c->outcome));
        if (c->outcome == ERR_CONFLICT)
            __atomic_add_fetch(&w->notes->conflicts, 1, __ATOMIC_RELAXED);
    }
    for (size_t i = 0; i < b->claim_count; i++)
        for (size_t k = 0; k < b->claims[i].row_count; k++) {
            w->notes->changed[w->number][task_of(b->claims[i].rows[k].id)]++;
            __atomic_add_fetch(&w->notes->claimed, 1, __ATOMIC_RELAXED);
        }
}

static void one_round(struct worker *w)
{
    bool seen[TASKS] = {false};
    struct change changes[BATCH];
    size_t count = 0;
    struct claim claim = {.kind = CLAIM_AGENT,
                          .agent = pick(w, 2) ? SLICE("a") : SLICE("b"),
                          .locked_by = slice_of(w->owner),
                          .now = 5,
                          .limit = 1 + pick(w, 5)};
    struct batch b = {.changes = changes, .claims = &claim, .claim_count = pick(w, 2)};

    for (unsigned i = 0; i < BATCH; i++) {
        unsigned task = pick(w, TASKS);
        if (!seen[task] && change_of(w, task, &changes[count]))
            count++;
        seen[task] = true;
    }
    b.change_count = count;
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);
    CHECK(err == ERR_OK, "worker %u: %s", w->number, w->e.text); /* nor does anybody deadlock */
    note(w, &b);
    arena_fini(&w->a);
}

static int work(unsigned number, const char *conninfo, struct notes *notes)
{
    struct worker w = {.random = {number + 1}, .notes = notes, .number = number};
    char node[8];
    const struct postgres_options o = {.conninfo = conninfo, .schema = "intact_race", .node = node};

    (void)snprintf(node, sizeof node, "n%u", number);
    (void)snprintf(w.owner, sizeof w.owner, "n%u/1", number);
    enum err err = postgres_store_open(&o, &w.s, &w.e); /* all make the schema at once */
    CHECK(err == ERR_OK, "worker %u: %s", number, w.e.text);
    for (unsigned i = 0; i < ROUNDS; i++)
        one_round(&w);
    w.s->ops->close(w.s);
    return 0;
}

static void every_revision_is_somebodys(void **state)
{
    const char *conninfo = pooled_conninfo();
    struct notes *notes =
        mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct postgres_options o = {.conninfo = conninfo,
                                       .schema = "intact_race",
                                       .node = "judge"};
    struct arena a = {0};
    struct error e = {0};
    struct store *s;
    pid_t pids[WORKERS];

    (void)state;
    CHECK(notes != MAP_FAILED, "shared memory");
    for (unsigned i = 0; i < WORKERS; i++) {
        pids[i] = cluster_fork();
        if (pids[i] == 0)
            _exit(work(i, conninfo, notes));
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        int status = -1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0, "worker %u: %d", i, status);
    }
    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    for (unsigned t = 0; t < TASKS; t++) {
        struct task_row row;
        unsigned changed = 0;
        for (unsigned i = 0; i < WORKERS; i++)
            changed += notes->changed[i][t];
        CHECK(s->ops->get(s, id_of(&a, t), &a, &row, &e) == ERR_OK, "%s", e.text);
        CHECK(row.revision == changed, "task %u: revision %" PRIu64 ", %u changes", t, row.revision,
              changed);
    }
    CHECK(notes->conflicts > 0 && notes->claimed > 0, "%u conflicts, %u claimed", notes->conflicts,
          notes->claimed);
    s->ops->close(s);
    arena_fini(&a);
}

/* ---- deletion ---- */

enum { CHANGERS = 3, RETIRERS = 2, ENDED_AT = 1000 };

struct sums {
    unsigned inserted, changed, conflicts, deleted;
};

static void add(unsigned *n, uint64_t more)
{
    __atomic_add_fetch(n, (unsigned)more, __ATOMIC_SEQ_CST);
}

/* A task that ended long ago: inserted if it is not there, else tried again, ended again, or
 * changed by a late result. Each of its revisions has a payload of its own. */
static void change_ended(struct worker *w, struct sums *sums)
{
    struct change c = {.kind = CHANGE_UPDATE};
    struct batch b = {.changes = &c, .change_count = 1};
    unsigned task = pick(w, TASKS);
    enum err err = w->s->ops->get(w->s, id_of(&w->a, task), &w->a, &c.row, &w->e);

    CHECK(err == ERR_OK || err == ERR_NOT_FOUND, "%s", w->e.text);
    if (err == ERR_NOT_FOUND)
        c = (struct change){.kind = CHANGE_INSERT, .row = fresh_row(w, task)};
    else
        c.row.revision++;
    bool ends = err == ERR_NOT_FOUND || pick(w, 3) > 0;
    struct payload payload = {(uint32_t)c.row.revision, SLICE("\"long\"")};
    c.row.payloads = &payload;
    c.row.payload_count = 1;
    c.row.state = ends ? TASK_PROCESSED : TASK_PENDING;
    c.row.ended_at = ends ? ENDED_AT : 0;
    c.row.waiting_for = ends ? SLICE_NONE : SLICE("a");
    err = w->s->ops->commit(w->s, &b, &w->a, &w->e);
    CHECK(err == ERR_OK && (c.outcome == ERR_OK || c.outcome == ERR_CONFLICT), "%s", w->e.text);
    add(c.outcome == ERR_CONFLICT ? &sums->conflicts
        : c.kind == CHANGE_INSERT ? &sums->inserted
                                  : &sums->changed,
        1);
    arena_fini(&w->a);
}

static void delete_ended(struct worker *w, struct sums *sums)
{
    const struct retire_rule rule = {.states = 1U << TASK_PROCESSED, .ended_before = ENDED_AT + 1};
    struct retire_look l = {.rules = &rule,
                            .rule_count = 1,
                            .scan_max = 1 + pick(w, TASKS),
                            .more = true};
    bool gone[TASKS + 1];

    while (l.more) {
        enum err err = w->s->ops->retention->look(w->s, &l, &w->a, &w->e);
        CHECK(err == ERR_OK, "%s", w->e.text);
        struct retire r = {.tasks = l.found, .task_count = l.found_count, .gone = gone};
        err = w->s->ops->retention->retire(w->s, &r, &w->e);
        CHECK(err == ERR_OK, "%s", w->e.text);
        for (size_t i = 0; i < l.found_count; i++)
            add(&sums->deleted, gone[i]);
        arena_fini(&w->a);
    }
}

static int race_with_deletion(unsigned number, const char *conninfo, struct sums *sums)
{
    struct worker w = {.random = {number + 1}, .number = number};
    char node[8];
    const struct postgres_options o = {.conninfo = conninfo, .schema = "intact_gone", .node = node};

    (void)snprintf(node, sizeof node, "n%u", number);
    CHECK(postgres_store_open(&o, &w.s, &w.e) == ERR_OK, "%s", w.e.text);
    for (unsigned i = 0; i < ROUNDS; i++)
        if (number < CHANGERS)
            for (unsigned k = 0; k < 4; k++)
                change_ended(&w, sums);
        else
            delete_ended(&w, sums);
    w.s->ops->close(w.s);
    return 0;
}

static void expect_none(PGconn *conn, const char *query)
{
    PGresult *r = PQexec(conn, query);

    CHECK(PQntuples(r) == 1, "%s", PQerrorMessage(conn));
    CHECK(strcmp(PQgetvalue(r, 0, 0), "0") == 0, "%s: %s", query, PQgetvalue(r, 0, 0));
    PQclear(r);
}

/* Either the deletion or the change wins: a task is there with all that is its own, or nothing
 * is. */
static void what_is_deleted_is_gone_as_a_whole(void **state)
{
    const char *conninfo = pooled_conninfo();
    struct sums *sums =
        mmap(NULL, sizeof *sums, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[CHANGERS + RETIRERS];
    char query[200];

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(pids); i++) {
        pids[i] = cluster_fork();
        if (pids[i] == 0)
            _exit(race_with_deletion(i, conninfo, sums));
    }
    for (unsigned i = 0; i < COUNT_OF(pids); i++) {
        int status = -1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0, "worker %u: %d", i, status);
    }
    CHECK(sums->deleted > 0 && sums->changed > 0, "%u deleted, %u changed", sums->deleted,
          sums->changed);
    PGconn *conn = PQconnectdb(cluster_conninfo());
    (void)snprintf(query, sizeof query, "SELECT count(*) - %u FROM intact_gone.task",
                   sums->inserted - sums->deleted);
    expect_none(conn, query);
    expect_none(conn, "SELECT count(*) FROM intact_gone.payload AS p WHERE NOT EXISTS "
                      "(SELECT 1 FROM intact_gone.task AS t WHERE t.seq = p.task)");
    expect_none(conn, "SELECT count(*) FROM intact_gone.tag AS g WHERE NOT EXISTS "
                      "(SELECT 1 FROM intact_gone.task AS t WHERE t.seq = g.task)");
    expect_none(conn, "SELECT count(*) FROM intact_gone.task AS t WHERE revision <> "
                      "(SELECT count(*) FROM intact_gone.payload AS p WHERE p.task = t.seq)");
    PQfinish(conn);
}

/* ---- inserts that meet changes ---- */

static struct store *open_crossed(const char *node)
{
    const struct postgres_options o = {.conninfo = pooled_conninfo(),
                                       .schema = "intact_crossed",
                                       .node = node};
    struct error e = {0};
    struct store *s;

    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    return s;
}

static struct task_row crossed_row(const char *id, uint64_t revision)
{
    return (struct task_row){.id = slice_of(id),
                             .workflow = SLICE("order"),
                             .version = 1,
                             .revision = revision,
                             .state = TASK_PENDING,
                             .waiting_for = SLICE("a"),
                             .submitted_at = 1000,
                             .doc = SLICE("{\"steps\":[]}")};
}

/* Those changes in one batch. Returns whether that met a deadlock, which the store gets over. */
static int commit_crossed(const char *node, struct change *changes, size_t count)
{
    struct store *s = open_crossed(node);
    struct batch b = {.changes = changes, .change_count = count};
    struct arena a = {0};
    struct error e = {0};

    CHECK(s->ops->commit(s, &b, &a, &e) == ERR_OK, "%s", e.text);
    int contended = postgres_store_of(s)->contended_until != 0;
    s->ops->close(s);
    arena_fini(&a);
    return contended;
}

static pid_t commit_beside(const char *node, struct change *changes, size_t count)
{
    pid_t pid = cluster_fork();

    if (pid == 0)
        _exit(commit_crossed(node, changes, count));
    return pid;
}

static void wait_until(PGconn *conn, const char *number, const char *query)
{
    bool there = false;

    while (!there) { /* the test's own timeout ends it */
        PGresult *r = PQexec(conn, query);
        CHECK(PQntuples(r) == 1, "%s", PQerrorMessage(conn));
        there = strcmp(PQgetvalue(r, 0, 0), number) == 0;
        PQclear(r);
        (void)usleep(1000);
    }
}

/* One batch changes what is there, is held up, and inserts a task; another one inserts that task
 * too, and then meets what the first one has changed. */
static void an_insert_never_waits_crosswise_for_a_change(void **state)
{
    static const char waiting[] = "SELECT count(*) FROM pg_stat_activity "
                                  "WHERE wait_event_type = 'Lock' AND application_name = 'intact'";
    struct change old[] = {{.row = crossed_row("b", 1)}, {.row = crossed_row("z", 1)}};
    struct change first[] = {{.kind = CHANGE_UPDATE, .row = crossed_row("b", 2)},
                             {.kind = CHANGE_UPDATE, .row = crossed_row("z", 2)},
                             {.row = crossed_row("a", 1)}};
    struct change second[] = {{.row = crossed_row("a", 1)}, {.row = crossed_row("b", 1)}};
    PGconn *gate = PQconnectdb(cluster_conninfo());
    int status[2] = {-1, -1};

    (void)state;
    (void)commit_crossed("judge", old, COUNT_OF(old));
    PQclear(PQexec(gate, "BEGIN"));
    PQclear(PQexec(gate, "SELECT 1 FROM intact_crossed.task WHERE id = 'z' FOR UPDATE"));
    PGconn *eye = PQconnectdb(cluster_conninfo());
    pid_t one = commit_beside("n1", first, COUNT_OF(first));
    wait_until(eye, "1", waiting);
    pid_t other = commit_beside("n2", second, COUNT_OF(second));
    wait_until(eye, "2", waiting);
    PQfinish(gate);
    CHECK(waitpid(one, &status[0], 0) == one && waitpid(other, &status[1], 0) == other, "ended");
    CHECK(status[0] == 0 && status[1] == 0, "a deadlock: %d, %d", status[0], status[1]);
    wait_until(eye, "5",
               "SELECT sum(revision) FROM intact_crossed.task"); /* a once, b and z twice */
    PQfinish(eye);
}

/* ---- a database that dies ---- */

struct counts {
    unsigned done, unknown, failed;
};

/* Raises the revision of one task for as long as it lives. */
static void raise_for_ever(struct store *s, struct counts *counts)
{
    struct arena a = {0};
    struct error e = {0};

    for (;;) {
        struct task_row row;
        if (s->ops->get(s, SLICE("x"), &a, &row, &e) == ERR_OK) {
            struct change c = {.kind = CHANGE_UPDATE, .row = row};
            struct batch b = {.changes = &c, .change_count = 1};
            c.row.revision++;
            c.row.payload_count = 0;
            enum err err = s->ops->commit(s, &b, &a, &e);
            CHECK(err == ERR_OK || err_is_transient(err), "%s", e.text);
            CHECK(err != ERR_OK || c.outcome == ERR_OK, "nobody else changes it");
            unsigned *n = err == ERR_OK        ? &counts->done
                          : err == ERR_UNKNOWN ? &counts->unknown
                                               : &counts->failed;
            __atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
        } else {
            (void)usleep(1000); /* the next try of the store comes when it comes */
        }
        arena_fini(&a);
    }
}

static void wait_above(const unsigned *n, unsigned least)
{
    while (__atomic_load_n(n, __ATOMIC_SEQ_CST) <= least)
        (void)usleep(1000); /* the test's own timeout ends it */
}

static void nothing_acknowledged_is_lost_when_the_database_is_killed(void **state)
{
    const struct postgres_options o = {.conninfo = pooled_conninfo(),
                                       .schema = "intact_kill",
                                       .node = "n1"};
    struct counts *counts =
        mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct arena a = {0};
    struct error e = {0};
    struct task_row row = {
        .id = SLICE("x"), .workflow = SLICE("w"), .version = 1, .revision = 1, .doc = SLICE("{}")};
    struct change c = {.kind = CHANGE_INSERT, .row = row};
    struct batch b = {.changes = &c, .change_count = 1};
    struct store *s;

    (void)state;
    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    CHECK(s->ops->commit(s, &b, &a, &e) == ERR_OK, "%s", e.text);
    s->ops->close(s);
    pid_t pid = cluster_fork();
    if (pid == 0) {
        CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
        raise_for_ever(s, counts);
    }
    for (unsigned i = 0; i < 8; i++) {
        wait_above(&counts->done, __atomic_load_n(&counts->done, __ATOMIC_SEQ_CST) + i);
        if (is_pooled() && i % 2) {
            bouncer_kill();
            bouncer_start("transaction");
        } else {
            cluster_kill();
            cluster_start();
        }
    }
    wait_above(&counts->done, __atomic_load_n(&counts->done, __ATOMIC_SEQ_CST));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "the worker");
    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    CHECK(s->ops->get(s, SLICE("x"), &a, &row, &e) == ERR_OK, "%s", e.text);
    unsigned most = 1 + counts->done + counts->unknown + 1; /* one was killed with the worker */
    CHECK(row.revision > counts->done && row.revision <= most,
          "revision %" PRIu64 ", %u acknowledged, %u unknown", row.revision, counts->done,
          counts->unknown);
    s->ops->close(s);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_when_the_database_is_killed),
        cmocka_unit_test(an_insert_never_waits_crosswise_for_a_change),
        cmocka_unit_test(every_revision_is_somebodys),
        cmocka_unit_test(what_is_deleted_is_gone_as_a_whole),
    };
    return cmocka_run_group_tests_name("store in PostgreSQL, shared", tests, NULL, NULL);
}
