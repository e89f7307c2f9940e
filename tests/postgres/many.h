#ifndef TESTS_POSTGRES_MANY_H
#define TESTS_POSTGRES_MANY_H

/* A store with very many tasks, created by the database itself. */

#include <stdint.h>

/* Fills the schema, which a store created and closed before, with that many finished tasks and some
 * unfinished ones: 300 wait for "agent-1", 30 sleep, 50 are locked by "n9/1" of which 20 are
 * overdue at 1000 and 10 have a request, 20 stopped in error, 20 were compensated. Finished ones
 * have a tag "customer" with 1000 values, and every tenth a payload. `analyze`: with statistics. */
void many_make(const char *conninfo, const char *schema, int64_t finished, int analyze);

#endif
