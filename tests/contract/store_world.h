#ifndef TESTS_STORE_WORLD_H
#define TESTS_STORE_WORLD_H

/*
 * A store to test: any body, new for each test, in a folder that is removed with it. Tests are
 * listed once and run on all bodies:
 *
 *     const struct CMUnitTest tests[] = {ON_ALL(a_stale_revision_changes_nothing), ...};
 *
 * With $INTACT_TEST_POOLER the database is used through a pooler.
 */

#include "base/test.h"

#include "base/fault.h"
#include "store/memory/memory.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

struct world {
    struct store *s;
    bool sqlite, postgres;
    char dir[64]; /* SQLite's folder, removed at the end; PostgreSQL's schema */
    int64_t now;  /* the test's clock, for a body without one */
    struct arena a;
    struct error e;
};

int world_setup_memory(void **state);
int world_setup_sqlite(void **state);
int world_setup_postgres(void **state);
int world_teardown(void **state);

#define ON_SQLITE(f)                                                \
    {                                                               \
        #f " (sqlite)", f, world_setup_sqlite, world_teardown, NULL \
    }
#define ON_MEMORY(f)                                                \
    {                                                               \
        #f " (memory)", f, world_setup_memory, world_teardown, NULL \
    }
#define ON_POSTGRES(f)                                                  \
    {                                                                   \
        #f " (postgres)", f, world_setup_postgres, world_teardown, NULL \
    }
#define ON_ALL(f) ON_MEMORY(f), ON_SQLITE(f), ON_POSTGRES(f)

/* Restarts the node: the file is closed and opened, memory keeps its content. */
void world_restart(struct world *w);

/* PostgreSQL: waits until the server has ended the connections that the store dropped. A statement
 * sent on them may still be executed after the store has reported an unknown outcome. */
void world_settle(struct world *w);

/* Executes SQL outside the store, in PostgreSQL's schema. */
void postgres_do(struct world *w, const char *sql);

/* A pending task that waits for agent "a". */
struct task_row a_row(const char *id);

/* Commits one change as a batch of its own; returns its outcome. */
enum err put_change(struct world *w, struct change c);
enum err insert_row(struct world *w, struct task_row row);
enum err update_row(struct world *w, struct task_row row);
void must(enum err outcome, const char *what);

struct task_row fetch(struct world *w, const char *id); /* fails the test if it does not exist */
bool exists(struct world *w, const char *id);

/* Commits a claim as a batch of its own, for "n1/BOOT" with the store's boot. */
struct claim claim_of(struct world *w, enum claim_kind kind, const char *agent, size_t limit,
                      int64_t now);
void claim_commit(struct world *w, struct claim *c);

/* A task at that rank that waits for the agent, or for "time". */
void insert_ranked(struct world *w, const char *id, const char *waiting_for, int64_t rank);

/* Checks that the claim took these tasks in that order; `more`: others were left. */
void claimed(const struct claim *c, const char *const *ids, size_t count, bool more);

/* Fails the test unless the rows are equal, payloads included. */
void rows_equal(const struct task_row *x, const struct task_row *y, const char *what);

#endif
