#ifndef STORE_ROW_H
#define STORE_ROW_H

/* What all bodies of the store hold against a row, and how they copy one. */

#include "store/store.h"

/* Can this change be stored at all? ERR_OK, ERR_INVALID, ERR_TOO_BIG. Asserts what is the
 * caller's promise: revisions that count from 1, changes that have an id. */
enum err row_check(const struct change *c) MUST_USE;

/* A copy of *row whose texts (not its payloads) lie in `a`. */
struct task_row row_copy(struct arena *a, const struct task_row *row);

/* Does the row belong to the listing, as far as its columns go (which is all but the tags)? */
bool list_wants(const struct list_query *q, const struct task_row *row);
/* Is a task in that state, which ended then (0: it did not), to be deleted? */
bool retire_wants(const struct retire *r, enum task_state state, int64_t ended_at, bool locked);
/* Was a task submitted too late to have ended by then? So were all behind it. */
bool retire_is_past(const struct retire *r, int64_t submitted_at);

/* "time" is no agent: takes it out of the list. */
void census_take_sleeping(struct census *c);
struct audit audit_copy(struct arena *a, const struct audit *audit);
/* The reason of a definition that was stored: "order, version 3". */
struct slice audit_workflow_reason(struct arena *a, struct slice name, int64_t version);

/* The text's part before the slash, slash included: "n1/" of "n1/12". ASSERTs that it has one. */
struct slice owner_node(struct slice locked_by);
uint64_t owner_boot(struct slice locked_by); /* 12 of "n1/12"; 0 if that is not a number */

#endif
