/* The ledger: records effects in a SQLite file in the transaction of the effect. See
 * <intact/ledger.h>. */
#include <intact/ledger.h>

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "libintact/request.h"
#include "libintact/sqlite_commit.h"
#include "libintact/wire.h"

/* clang-format off */
#define STATEMENTS(X)                                                                           \
    X(BEGIN,    "BEGIN IMMEDIATE")                                                              \
    X(COMMIT,   "COMMIT")                                                                       \
    X(ROLLBACK, "ROLLBACK")                                                                     \
    X(FIND,     "SELECT outcome, output FROM effect WHERE idempotency_key = ?1")                \
    X(RECORD,   "INSERT INTO effect(idempotency_key, task, step, action, direction, outcome,"   \
                " output, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
/* clang-format on */

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS effect("
    " idempotency_key TEXT NOT NULL PRIMARY KEY, task TEXT NOT NULL, step TEXT NOT NULL,"
    " action TEXT NOT NULL, direction TEXT NOT NULL CHECK (direction IN ('forward', 'undo')),"
    " outcome TEXT NOT NULL CHECK (outcome IN ('done', 'barred', 'nothing')),"
    " output TEXT, at INTEGER NOT NULL) WITHOUT ROWID;";

enum statement {
#define X(name, sql) ST_##name,
    STATEMENTS(X)
#undef X
        ST_COUNT
};

static const char *const sql[] = {
#define X(name, text) [ST_##name] = (text),
    STATEMENTS(X)
#undef X
};

struct intact_ledger {
    pthread_mutex_t lock;  /* held from begin to commit or rollback */
    struct wire_held held; /* SIGXFSZ of the thread that holds the lock */
    sqlite3 *db;
    sqlite3_stmt *statements[ST_COUNT];
};

struct finding {
    bool found;
    struct buf outcome, output;
};

static void finding_fini(struct finding *f)
{
    buf_fini(&f->outcome);
    buf_fini(&f->output);
}

/* A write beyond RLIMIT_FSIZE raises a signal that kills the process. It must fail like one on a
 * full disk instead, whatever the program does with that signal elsewhere. */
static void enter(struct intact_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    wire_hold(&l->held, SIGXFSZ);
}

static void leave(struct intact_ledger *l)
{
    wire_release(&l->held);
    pthread_mutex_unlock(&l->lock);
}

/* Runs a statement that returns no rows. */
static bool run(struct intact_ledger *l, enum statement which)
{
    sqlite3_stmt *st = l->statements[which];
    int rc = sqlite3_step(st);

    (void)sqlite3_reset(st); /* reports the error of the step again */
    return rc == SQLITE_DONE;
}

static void add_column(struct buf *b, sqlite3_stmt *st, int column)
{
    const void *text = sqlite3_column_text(st, column);

    if (text)
        buf_add(b, text, (size_t)sqlite3_column_bytes(st, column));
}

static bool find(struct intact_ledger *l, const char *key, struct finding *f)
{
    sqlite3_stmt *st = l->statements[ST_FIND];

    if (sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC) != SQLITE_OK)
        return false;
    int rc = sqlite3_step(st);
    f->found = rc == SQLITE_ROW;
    if (f->found) {
        add_column(&f->outcome, st, 0);
        add_column(&f->output, st, 1);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

static bool record(struct intact_ledger *l, const struct intact_request *r,
                   enum intact_direction direction, const char *outcome, const char *output)
{
    sqlite3_stmt *st = l->statements[ST_RECORD];
    bool undo = direction == INTACT_UNDO;
    bool own = direction == r->direction;
    const char *key = own ? r->idempotency_key : r->forward_key;
    bool ok = true;

    ok &= sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_text(st, 2, r->task, -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_text(st, 3, r->step, -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_text(st, 4, own ? r->action : "", -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_text(st, 5, undo ? "undo" : "forward", -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_text(st, 6, outcome, -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_text(st, 7, output, -1, SQLITE_STATIC) == SQLITE_OK;
    ok &= sqlite3_bind_int64(st, 8, clock_wall_ms()) == SQLITE_OK;
    return run(l, ST_RECORD) && ok;
}

static int open_db(struct intact_ledger *l, const char *path)
{
    int rc =
        sqlite3_open_v2(path, &l->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(l->db, 5000);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(l->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", NULL,
                          NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(l->db, SCHEMA, NULL, NULL, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < ST_COUNT; i++)
        rc = sqlite3_prepare_v3(l->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &l->statements[i],
                                NULL);
    return rc;
}

struct intact_ledger *intact_ledger_open(const char *path, char *why, size_t why_size)
{
    struct intact_ledger *l = calloc(1, sizeof(*l));
    int rc = SQLITE_NOMEM;

    if (l) {
        pthread_mutex_init(&l->lock, NULL);
        enter(l);
        rc = open_db(l, path);
        leave(l);
    }
    if (rc == SQLITE_OK)
        return l;
    if (why_size > 0)
        snprintf(why, why_size, "cannot open the ledger %s: %s", path,
                 l && l->db ? sqlite3_errmsg(l->db) : sqlite3_errstr(rc));
    intact_ledger_close(l);
    return NULL;
}

void intact_ledger_close(struct intact_ledger *l)
{
    if (!l)
        return;
    enter(l);
    for (size_t i = 0; i < ST_COUNT; i++)
        (void)sqlite3_finalize(l->statements[i]); /* repeats an old error, if any */
    (void)sqlite3_close(l->db);
    leave(l);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct sqlite3 *intact_ledger_db(struct intact_ledger *l)
{
    return l->db;
}

static void answer_trouble(struct intact_request *r, enum intact_error_flags effect)
{
    intact_answer_error(r, "ledger", "the agent's ledger cannot be written",
                        INTACT_RETRYABLE | (unsigned)effect);
}

static void end_without_effect(struct intact_ledger *l)
{
    if (!sqlite3_get_autocommit(l->db)) /* some errors have rolled back already */
        (void)run(l, ST_ROLLBACK);      /* a failed rollback cannot be handled */
    leave(l);
}

void intact_ledger_rollback(struct intact_ledger *l)
{
    end_without_effect(l);
}

static enum intact_error_flags effect_of_failure(const struct intact_ledger *l)
{
    return sqlite_commit_had_no_effect(l->db) ? INTACT_EFFECT_NONE : INTACT_EFFECT_UNKNOWN;
}

bool intact_ledger_commit(struct intact_ledger *l, struct intact_request *r,
                          const char *output_json)
{
    const char *output = output_json ? output_json : "null";

    /* After the deadline nobody expects this effect any more. */
    if (intact_request_time_left_ms(r) == 0) {
        end_without_effect(l);
        intact_answer_nothing(r);
        return false;
    }
    /* If a full disk rolled back the handler's SQL, a record now would have no effect to it. */
    if (sqlite3_get_autocommit(l->db) || !record(l, r, r->direction, "done", output)) {
        end_without_effect(l);
        answer_trouble(r, INTACT_EFFECT_NONE);
        return false;
    }
    if (!run(l, ST_COMMIT)) {
        enum intact_error_flags effect = effect_of_failure(l);
        end_without_effect(l);
        answer_trouble(r, effect);
        return false;
    }
    leave(l);
    return true;
}

/* An undo that came before its forward request, or instead of it. */
static void leave_tombstone(struct intact_ledger *l, struct intact_request *r, bool barred_already)
{
    bool ok = barred_already || record(l, r, INTACT_FORWARD, "barred", NULL);

    ok = ok && record(l, r, INTACT_UNDO, "nothing", "null");
    if (!ok || !run(l, ST_COMMIT)) {
        enum intact_error_flags effect = ok ? effect_of_failure(l) : INTACT_EFFECT_NONE;
        end_without_effect(l);
        answer_trouble(r, effect);
        return;
    }
    leave(l);
    intact_answer(r, "null");
}

/* The effect happened and was undone. A server that was restored to a time before the undo asks
 * again; reporting the step as done would be wrong. */
static bool is_undone(struct intact_ledger *l, const struct intact_request *r, bool *ret)
{
    CLEANUP(finding_fini) struct finding undo = {0};
    CLEANUP(buf_fini) struct buf key = {0};

    *ret = false;
    if (r->direction == INTACT_UNDO)
        return true;
    buf_fmt(&key, "%s/undo", r->idempotency_key);
    bool ok = find(l, key.ptr, &undo);
    *ret = undo.found && slice_is(buf_view(&undo.outcome), "done");
    return ok;
}

static void answer_undone(struct intact_request *r, const char *message)
{
    intact_answer_error(r, "undone", message, INTACT_EFFECT_NONE);
}

static void answer_recorded(struct intact_ledger *l, struct intact_request *r, struct finding *own,
                            bool undone)
{
    end_without_effect(l);
    if (slice_is(buf_view(&own->outcome), "barred"))
        answer_undone(r, "this step was undone before it took effect");
    else if (undone)
        answer_undone(r, "this step took effect and was undone");
    else
        intact_answer(r, own->output.len ? own->output.ptr : "null");
}

bool intact_ledger_begin(struct intact_ledger *l, struct intact_request *r)
{
    CLEANUP(finding_fini) struct finding own = {0};
    CLEANUP(finding_fini) struct finding forward = {0};
    bool undone = false;

    enter(l);
    if (!run(l, ST_BEGIN) || !find(l, r->idempotency_key, &own) || !is_undone(l, r, &undone)
        || (r->direction == INTACT_UNDO && !find(l, r->forward_key, &forward))) {
        end_without_effect(l);
        answer_trouble(r, INTACT_EFFECT_NONE);
        return false;
    }
    if (own.found) {
        answer_recorded(l, r, &own, undone);
        return false;
    }
    if (r->direction == INTACT_FORWARD || slice_is(buf_view(&forward.outcome), "done"))
        return true;
    leave_tombstone(l, r, forward.found);
    return false;
}
