#ifndef TESTS_POSTGRES_GATE_H
#define TESTS_POSTGRES_GATE_H

/*
 * Two nodes on one database, in an order that the test chooses.
 *
 * The first node's statements wait at a gate: a policy of table task that waits for an advisory
 * lock, so after the statement's snapshot and before its first row lock. The second node and plain
 * SQL pass without a gate. Waiting sessions are visible in pg_stat_activity, so nothing here
 * depends on time.
 */

#include <pthread.h>

#include <libpq-fe.h>

#include "store/postgres/body.h"

struct gate {
    struct store *first, *second;
    PGconn *hand;  /* plain SQL, the superuser's, in the schema of the stores */
    PGconn *watch; /* closes the gate, and checks which sessions wait */
    struct arena a;
    struct error e;
};

/* Creates both stores over an empty schema of their own; a cmocka setup and teardown. */
int gate_setup(void **state);
int gate_teardown(void **state);

void gate_do(struct gate *g, const char *sql); /* plain SQL */
long gate_number(struct gate *g, const char *query);
void gate_close(struct gate *g); /* from now on, statements of the first node stop there */
void gate_open(struct gate *g);

/* A call into a store that runs beside the test. */
struct call {
    struct gate *g;
    struct store *s;
    enum err (*run)(struct store *s, void *arg, struct arena *a, struct error *e);
    void *arg;
    enum err err;
    struct arena a;
    struct error e;
    pthread_t thread;
    int done; /* atomic */
};

void call_begin(struct call *c, struct gate *g, struct store *s,
                enum err (*run)(struct store *, void *, struct arena *, struct error *), void *arg);
/* Returns when the call waits for a lock or is done; whether it waits. */
bool call_waits(struct call *c);
enum err call_end(struct call *c); /* the caller ends its arena */

#endif
