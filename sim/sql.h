#ifndef SIM_SQL_H
#define SIM_SQL_H

/*
 * Applications that insert submissions by SQL in their own transactions, and the nodes' part that
 * makes tasks of them. In one run of three.
 */

#include "intake/intake.h"
#include "sim/node.h"
#include "sim/subject.h"

void sql_begin(void);
void sql_begin_scene(bool wanted);
/* Does only an application submit this task? Called for each task to be submitted. */
bool sql_submits(struct subject *t, int64_t at);
/* At once; `other`: with other content. */
void sql_put(struct subject *t, bool other);
/* Inserts an invalid submission. */
void sql_put_bad(void);

/* For a node; NULL: none in this run. */
struct intake *sql_intake(struct node *n);
bool sql_asked(const struct ask *a); /* was it asked by an intake? Then: */
void sql_answered(struct node *n, struct ask *a);

void sql_changed(void);                  /* the table may have changed: checks all rows */
void sql_became(const struct change *c); /* the change is durable and recorded */
bool sql_is_content(void);               /* no submission waits */
void sql_verb(bool drop);                /* an operator, for all refused ones */
uint32_t sql_refused(void);              /* their number */

/* A schedule has inserted that row for a run of it; the rows must be told in their order. */
void sql_has_run(struct subject *t, int64_t seq);
int64_t sql_last_seq(void);
bool sql_run_waits(const struct subject *t);
bool sql_run_was_refused(const struct subject *t); /* an operator may have it tried again */
void check_sql_end(void);

#endif
