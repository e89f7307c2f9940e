#ifndef SIM_OPERATIONS_H
#define SIM_OPERATIONS_H

/*
 * Operations on many tasks: people who start, stop and resume them, and the rules for their
 * results. What they did is known from the audit; what they report, from their rows.
 */

#include "sim/node.h"
#include "sim/subject.h"

void operations_begin(int64_t first_act_ms); /* in every third run */
void operations_begin_scene(bool wanted);
void operations_calm(void); /* stopped ones are resumed */
bool operations_are_over(void);

/* For scenes: applies the verb to all tasks in these states. */
void operation_wanted(enum ask_kind kind, uint32_t states, int64_t rate);
void operation_halt(bool halt); /* stops or resumes the first one */

struct runner *operations_runner(struct node *n); /* for a booting node; may be NULL */
void operations_answered(struct node *n, struct ask *a);

void operations_seen(const struct subject *t); /* its row has changed */
/* Is it an entry of an operation? Then checks that it was allowed. */
bool operations_did(const struct subject *t, const struct audit *a, enum task_state old);
void check_operation(const struct operation_row *row); /* the row is durable */
void check_operations_end(void);

/* The first operation's row, for scenes. */
struct operation_told {
    bool over, stopped;
    uint64_t matched, done, refused, failed, gone;
};
struct operation_told the_operation(void);

#endif
