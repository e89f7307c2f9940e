#ifndef SERVER_PARTS_H
#define SERVER_PARTS_H

/* All parts of a node (node/part.h), one after the other. */

#include "node/part.h"

/* Opens them in their order, until one fails. *ret_opened: the number of those that are open, which
 * is what the others take. */
enum err parts_open(struct server *sv, size_t *ret_opened, struct error *e) MUST_USE;
int64_t parts_turn(struct server *sv); /* when the next turn is due; 0: when something happens */
void parts_drain(struct server *sv);
bool parts_are_drained(const struct server *sv);

bool parts_are_busy(const struct server *sv, size_t opened);
/* The last one first: */
void parts_hang_up(struct server *sv, size_t opened);
void parts_close(struct server *sv, size_t opened);
void parts_free(struct server *sv, size_t opened);

#endif
