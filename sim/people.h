#ifndef SIM_PEOPLE_H
#define SIM_PEOPLE_H

/*
 * Those who submit tasks, and submit them again when the answer does not come; and operators, who
 * retry, skip and undo, at bad moments too, and react to alerts.
 */

#include "scheduler/scheduler.h"
#include "sim/flow.h"
#include "sim/node.h"
#include "sim/subject.h"

void people_begin(uint32_t tasks, int64_t first_act_ms, uint32_t flow_count,
                  const struct flow *flows);

/* For scenes: tasks of one flow, which nobody submits by himself. What is wanted then is wanted
 * until it is answered; `at` is the node that is asked, or ANY_NODE. */
enum { ANY_NODE = -1 };
void people_begin_scene(uint32_t tasks, const struct flow *f);
void people_want(struct subject *t, enum ask_kind kind, int step, int at);
/* The same: that it starts anew from that step on. */
void people_want_from(struct subject *t, int step);
/* The same: undo, if it has not ended meanwhile. */
void people_want_undo_of_work(struct subject *t);

/* Once a second, when all is calm. */
void people_look(void);

void people_answered(const struct node *n, struct ask *a); /* outside's ask_answer */
void people_alerted(struct slice id);
void people_hear_of_end(struct slice id, enum task_state state);
bool people_are_content(void);             /* nobody is about to submit anything */
void people_cut_off(const struct node *n); /* it is gone: nobody answers what was asked of it */

#endif
