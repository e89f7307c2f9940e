#ifndef TESTS_POSTGRES_BOUNCER_H
#define TESTS_POSTGRES_BOUNCER_H

#include <stdbool.h>

/*
 * PgBouncer in front of the tests' own database, with fewer connections than it has clients. It
 * runs as the database's user and listens on a socket beside that one's.
 */

/* "transaction", "session" or "statement". Returns when it answers. */
void bouncer_start(const char *pool_mode);
void bouncer_kill(void);

/* What a client connects with; started at the first call, for transaction pooling. */
const char *bouncer_conninfo(void);

/* The bouncer's if $INTACT_TEST_POOLER is set, or else the database's own. */
const char *pooled_conninfo(void);
bool is_pooled(void);

#endif
