#ifndef SIM_SQL_H
#define SIM_SQL_H

/*
 * Applications that put submissions into the store by SQL, in transactions of their own, and the
 * part of a node that makes tasks of them. In one run of three.
 */

#include "scheduler/intake.h"
#include "sim/node.h"
#include "sim/subject.h"

void sql_begin(void);
void sql_begin_scene(bool wanted);
/* Does an application put that task in, and nobody else? For each that is to be submitted then. */
bool sql_submits(struct subject *t, int64_t at);
/* Now; `other`: of other content. */
void sql_put(struct subject *t, bool other);
/* One that can be no task. */
void sql_put_bad(void);

/* The node's; NULL: nobody wants any. */
struct intake *sql_intake(struct node *n);
bool sql_asked(const struct ask *a); /* was it by an intake? Then: */
void sql_answered(struct node *n, struct ask *a);

void sql_changed(void);                  /* what is stored may have changed: all is looked at */
void sql_became(const struct change *c); /* it is durable, and was shown */
bool sql_is_content(void);               /* no submission waits */
void sql_verb(bool drop);                /* an operator: of all that were refused */
uint32_t sql_refused(void);              /* how many there are */
void check_sql_end(void);

#endif
