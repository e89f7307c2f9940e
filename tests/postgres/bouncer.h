#ifndef TESTS_POSTGRES_BOUNCER_H
#define TESTS_POSTGRES_BOUNCER_H

#include <stdbool.h>

/*
 * PgBouncer in front of the tests' own database, with fewer connections than clients. It runs as
 * the database's user and listens on a socket beside the database's.
 */

/* "transaction", "session" or "statement". Returns when it answers. */
void bouncer_start(const char *pool_mode);
void bouncer_kill(void);

/* The conninfo for clients; the first call starts PgBouncer with transaction pooling. */
const char *bouncer_conninfo(void);

/* PgBouncer's if $INTACT_TEST_POOLER is set, otherwise the database's own. */
const char *pooled_conninfo(void);
bool is_pooled(void);

#endif
