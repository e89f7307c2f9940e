#ifndef SIM_PEOPLE_H
#define SIM_PEOPLE_H

/*
 * Submitters, who repeat a submission without an answer; and operators, who retry, skip and undo,
 * at bad times too, and react to alerts.
 */

#include "scheduler/scheduler.h"
#include "sim/flow.h"
#include "sim/node.h"
#include "sim/subject.h"

void people_begin(uint32_t tasks, int64_t first_act_ms, uint32_t flow_count,
                  const struct flow *flows);

/* For scenes: tasks of one workflow, submitted only on demand. A wish is repeated until it is
 * answered; `at` is the node to ask, or ANY_NODE. */
enum { ANY_NODE = -1 };
void people_begin_scene(uint32_t tasks, const struct flow *f);
void people_want(struct subject *t, enum ask_kind kind, int step, int at);
/* The same: a restart from that step on. */
void people_want_from(struct subject *t, int step);
/* The same: it says of an item, without a look, that it took no effect. */
void people_resolve_rashly(struct subject *t, uint32_t unit);
/* The same: an undo, unless the task has ended meanwhile. */
void people_want_undo_of_work(struct subject *t);

/* A person votes, until it is answered; bounded by SENT_VOTES_MAX. */
void people_vote(struct subject *t, const struct sent_vote *v, int64_t delay);

/* Once a second in calm times. */
void people_look(void);

void people_answered(const struct node *n, struct ask *a); /* outside's ask_answer */
void people_alerted(struct slice id);
void people_hear_of_end(struct slice id, enum task_state state);
bool people_are_content(void);             /* no submission is pending */
bool people_are_silent(void);              /* no ask is at a node */
void people_cut_off(const struct node *n); /* the node is gone: its asks get no answer */

#endif
