#ifndef STORE_ROW_H
#define STORE_ROW_H

/* What all bodies of the store hold against a row, and how they copy one. */

#include "store/store.h"

/* Can this change be stored at all? ERR_OK, ERR_INVALID, ERR_TOO_BIG. Asserts what is the
 * caller's promise: revisions that count from 1, changes that have an id. */
enum err row_check(const struct change *c) MUST_USE;

/* A copy of *row whose texts (not its payloads) lie in `a`. */
struct task_row row_copy(struct arena *a, const struct task_row *row);

/* Does the row belong to the listing, as far as state, workflow and time of submission go? */
bool list_wants(const struct list_query *q, enum task_state state, struct slice workflow,
                int64_t submitted_at);

/* The text's part before the slash, slash included: "n1/" of "n1/12". ASSERTs that it has one. */
struct slice owner_node(struct slice locked_by);
uint64_t owner_boot(struct slice locked_by); /* 12 of "n1/12"; 0 if that is not a number */

/* Bytewise, a shorter text before a longer one that begins with it: the order of SQLite's BINARY.
 */
int slice_order(struct slice a, struct slice b);

#endif
