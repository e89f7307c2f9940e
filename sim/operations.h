#ifndef SIM_OPERATIONS_H
#define SIM_OPERATIONS_H

/*
 * Operations on many tasks: people who begin, stop and continue them, and the rules of what comes
 * of them. What they did is known from the audit, what they are told to have done from their rows.
 */

#include "sim/node.h"
#include "sim/subject.h"

void operations_begin(int64_t first_act_ms); /* of every third run */
void operations_begin_scene(bool wanted);
void operations_calm(void); /* all that were stopped go on */
bool operations_are_over(void);

/* For scenes: retries (or whatever) all tasks of these states. */
void operation_wanted(enum ask_kind kind, uint32_t states, int64_t rate);
void operation_halt(bool halt); /* the first one is stopped, or goes on */

struct runner *operations_runner(struct node *n); /* of a node that boots; may be NULL */
void operations_answered(struct node *n, struct ask *a);

void operations_seen(const struct subject *t); /* its row has changed */
/* Is it an entry of an operation? Then it is one that was allowed. */
bool operations_did(const struct subject *t, const struct audit *a, enum task_state old);
void check_operation(const struct operation_row *row); /* it is durable */
void check_operations_end(void);

/* Of the first one, for scenes. */
struct operation_told {
    bool over, stopped;
    uint64_t matched, done, refused, failed, gone;
};
struct operation_told the_operation(void);

#endif
