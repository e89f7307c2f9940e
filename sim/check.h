#ifndef SIM_CHECK_H
#define SIM_CHECK_H

/*
 * The rules. They look at rows as they become durable (seen.h), at what agents really did
 * (ledger.h), and at what leaves the node; never at the memory of what is judged, nor do they use
 * its code.
 *
 *   check_row.c    what a change may do to a row: revisions, states, attempts
 *   check_cause.c  the first failure, and who is told of it
 *   check_start.c  when an attempt may begin: order, margins, waits, deadlines
 *   check_world.c  what may happen in the world, and what an end must mean
 *   check_wire.c   what may leave the node, and when
 *   check_time.c   nothing is given up too early, nothing overdue is left lying
 *   check_audit.c  what is written down of what people did
 *   check_lease.c  what nodes believe of their leases
 *   check_nodes.c  who may lead, take over, and claim
 *   check_why.c    what is told of why a task waits comes true
 *   check_told.c   what is told of changes; that heartbeats change nothing
 *   check_clocks.c what wakes a task, and what a pause moves
 *   check_limits.c how much is at work at a time, and how fast it may begin
 *   check_health.c   instances that do badly get nothing but trials
 *   check_breaker.c  who is held back by a breaker, and what is spared
 */

#include "scheduler/scheduler.h"
#include "sim/node.h"
#include "sim/subject.h"

enum { GRACE_MS = 10000, MARGIN_MS = 1000 };

/* A row as it is now, after that many changes; `told`: the node will hear that it was stored. */
void check_row(const struct node *n, const struct task_row *row, uint64_t changes, bool told);
void check_conflict(const struct task_row *row); /* what was to be written */

/* What the clock that is most ahead may say. */
int64_t latest_now(void);

void check_cause(const struct subject *t, const struct seen *old, const struct seen *new);
/* An attempt to undo the step begins. */
void check_undo_begins(struct subject *t, uint32_t step, const struct seen *old,
                       const struct seen *new);
void check_undo_input(struct subject *t, uint32_t step, struct slice input);

/* After it was seen; `old`: as it was before. */
void check_why(const struct node *n, struct subject *t, const struct task_row *row,
               const struct seen *old);

/* All entries of the task, newest first, after a change that made `new` of `old`. */
void check_audit(struct subject *t, const struct audit_page *all, enum task_state old,
                 enum task_state new);
void check_verb_told(struct subject *t, const struct ask *a); /* the operator is answered */

void check_nodes_begin(void);
void check_lease(const struct node *n, const struct lease_try *want, const struct lease *got);
void check_left(const struct node *n); /* it has drained */
void check_leases_begin(void);
/* The store has just given it, `want` by its clock; the node may never hear of it. */
void check_given(const struct node *n, const struct lease_try *want, const struct lease *got);
/* In the job that runs now: the node hears who has it when that is done. */
void check_lease_told(const struct node *n, struct slice name, const struct lease *got);
void check_survey_told(const struct node *n, const struct survey *v);
void check_beliefs(const struct node *n); /* whenever it may have changed its mind */
void check_not_after(const struct node *n, const struct ask *a); /* an operation asks */
void check_requests(const struct node *n, const struct batch *b);
void check_claims(const struct node *n, const struct batch *b); /* before the batch is shown */
void check_starts(const struct node *n, const struct batch *b); /* after it was shown */
void check_claim(const struct claim *c);                        /* before its rows are shown */

void check_start(const struct subject *t, uint32_t step, const struct seen *old,
                 const struct seen *new, const struct seen_attempt *a);

void check_limits_begin(void);
void check_limits_changed(void);
void check_limits(void); /* after each batch was shown */
void check_limit_start(const struct subject *t, uint32_t step, const struct seen_attempt *a);

void check_health_begin(void);
void check_health_end(const struct subject *t, uint32_t step, const struct seen_attempt *a);
void check_health_start(const struct subject *t, uint32_t step, const struct seen_attempt *a);

void check_breakers_begin(void);
void check_breakers(const struct node *n); /* after each of its turns */
void check_breaker_start(const struct subject *t, uint32_t step, const struct seen_attempt *a);
/* May an attempt begin before its wait is over, because an outage is? */
bool check_hastened(const struct subject *t, uint32_t step, const struct seen_attempt *a,
                    const struct seen_step *before);
/* An attempt that ended as a failure; `tries_again`: and its step is not given up. */
void check_spared(const struct subject *t, uint32_t step, const struct seen_step *after,
                  const struct seen_attempt *a, bool tries_again);

void check_effect(const struct subject *t, uint32_t step);                /* about to happen */
void check_undo_effect(const struct subject *t, uint32_t step);           /* the same */
void check_undo_said(struct subject *t, uint32_t step, enum direction d); /* an agent says: done */
void check_end_of(const struct subject *t); /* processed or compensated */
void check_turn_back(const struct subject *t, const struct seen *new);
/* From now on, what is asked now and then is asked. */
void check_regularly(void);

/* Until all is done, but no later than `end`; then as long again as late effects, waits and results
 * of no use may take, and what only arrived then. */
void world_runs_out(int64_t end, int64_t after_ms);
bool world_is_done(void); /* everything that was begun has ended */
void check_world_end(void);
void check_drained(const struct node *n);
void check_bulk(const struct node *n); /* of operations' tasks: asked for their pace */
void check_owned(void);                /* asked now and then: what a node owns it also knows */

void check_answer(const struct node *n, const struct work *w, uint32_t max);
void check_unsent(const struct node *n,
                  const struct work *w); /* nobody was there any more to read the answer */
bool pivot_holds(const struct subject *t);
void check_asked(struct subject *t, const struct ask *a, uint64_t revision, bool other);
void check_ended(const struct node *n, struct slice id, enum task_state state);
void check_alert(const struct node *n, struct slice id);
void check_told(const struct node *n, uint64_t done); /* it has heard of that run of its disk */

void check_boot(const struct node *n);
void check_timeout(const struct subject *t, uint32_t step, const struct seen_attempt *a);
void check_silence(const struct subject *t, uint32_t step, const struct seen_attempt *a);
void check_result(const struct work_result *r); /* how it was answered */
void check_alarm(const struct subject *t, const struct seen *s);
void check_not_before(struct subject *t, const struct seen *old, const struct seen *new);
void check_verb_asked(struct subject *t); /* somebody asks for something now */
void check_deadline(const struct subject *t, const struct seen *old, const struct seen *new);
void check_idle(void);    /* asked now and then: does anybody who has a place go without work? */
void check_overdue(void); /* asked now and then in the second act */

void check_changed(const struct node *n, const struct task *told);
void check_tell(const struct node *n, struct subject *t); /* it will hear of its change */
void check_change_told(const struct node *n, const struct subject *t, uint64_t done);
void check_all_told(void); /* at the end */
void check_before_beat(const struct node *n);
void check_beat(const struct node *n, const struct heartbeats *call, const struct heartbeat *b);

/* For the story. */
void describe(const struct subject *t);

#endif
