#ifndef STORE_POSTGRES_FAMILY_H
#define STORE_POSTGRES_FAMILY_H

/* Rows that a change inserts for others, as arrays: submissions, and what tasks tell each other.
 * The names of their parameters begin with b_ and t_. */

#include "store/postgres/columns.h"

struct submission_arrays {
    struct array source, key;
    SUBMISSION_COLUMNS(MEMBER, )
};
void submission_add(struct submission_arrays *k, const struct submission_row *row);
void submissions_bind(struct submission_arrays *k, struct query *q);
bool submission_is_storable(const struct submission_row *row);

/* All that a batch inserts so; `ord` is the number of the change. */
struct family_arrays {
    struct array t_ord, t_task, t_sender, t_kind, t_body;
    struct array b_ord;
    struct submission_arrays children;
};
void family_add(struct family_arrays *f, const struct change *c, int64_t ord);
/* The first with the names t_, the second with b_, which only some statements have. */
void tells_bind(struct family_arrays *f, struct query *q);
void children_bind(struct family_arrays *f, struct query *q);
bool family_is_storable(const struct change *c);

#endif
