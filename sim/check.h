#ifndef SIM_CHECK_H
#define SIM_CHECK_H

/*
 * The rules. They check rows as they become durable (seen.h), the real effects of agents
 * (ledger.h), and what a node sends. They use neither the memory nor the code of what they check.
 *
 *   check_row.c      changes of a row: revisions, states, attempts
 *   check_cause.c    the first failure, and what an undo is sent of it
 *   check_start.c    when an attempt may begin: order, margins, waits, deadlines
 *   check_rounds.c   steps that are repeated: their rounds, and when they end
 *   check_waits.c    steps that wait: when they begin and are over
 *   check_signals.c  signals, and steps that wait for them
 *   check_items.c    items of steps with for_each, their rows, and the order of their undo
 *   check_families.c what tasks of a family tell each other, and what becomes of children
 *   check_item_children.c  the children of items: which keep their places, and which are stopped
 *   check_votes.c    votes, and steps in which people decide
 *   check_locks.c    who is at work beside others with the same key, and who waits
 *   check_world.c    effects in the world, and what an end means
 *   check_wire.c     what a node may send, and when
 *   check_time.c     nothing is given up too early, nothing overdue stays
 *   check_audit.c    the record of operators' changes
 *   check_lease.c    what nodes believe about their leases
 *   check_schedules.c  the moments of schedules (schedules.h)
 *   check_nodes.c    who may lead, take over and claim
 *   check_why.c      predictions about waiting tasks come true
 *   check_told.c     reports of changes; heartbeats change nothing
 *   check_clocks.c   what wakes a task, and what a pause moves
 *   check_limits.c   concurrency and rates
 *   check_health.c   ill instances only get trials
 *   check_breaker.c  whom a breaker holds back, and what is spared
 */

#include "scheduler/scheduler.h"
#include "sim/node.h"
#include "sim/subject.h"

enum { GRACE_MS = 10000, MARGIN_MS = 1000 };

/* The current row, after that many changes; `told`: the node will get the result of storing it. */
void check_row(const struct node *n, const struct task_row *row, uint64_t changes, bool told);
/* Whoever submits a task waits for its end, which may be shown without another read. */
bool check_is_awaited(void *arg, struct slice id);
void check_shown(const struct node *n, const struct task_end *end);
void check_conflict(const struct task_row *row); /* the row that was refused */

/* The time of the clock that is most ahead. */
int64_t latest_now(void);

void check_cause(const struct subject *t, const struct seen *old, const struct seen *new);
/* An undo attempt begins. */
void check_undo_begins(struct subject *t, uint32_t step, const struct seen *old,
                       const struct seen *new);
void check_undo_input(struct subject *t, uint32_t step, struct slice input);

/* After it was recorded; `old`: the previous state. */
void check_why(const struct node *n, struct subject *t, const struct task_row *row,
               const struct seen *old);

/* All entries of the task, newest first, after a change from `old` to `new`. */
void check_audit(struct subject *t, const struct audit_page *all, enum task_state old,
                 enum task_state new);
void check_verb_told(struct subject *t, const struct ask *a); /* the operator gets the answer */

void check_nodes_begin(void);
void check_lease(const struct node *n, const struct lease_try *want, const struct lease *got);
void check_left(const struct node *n); /* it has drained */
void check_leases_begin(void);
/* The store has just granted it; `want` has the store's time. The node may never get the answer. */
void check_given(const struct node *n, const struct lease_try *want, const struct lease *got);
/* For the job that runs now: the node gets the answer when that is done. */
void check_lease_told(const struct node *n, struct slice name, const struct lease *got);
void check_survey_told(const struct node *n, const struct survey *v);
void check_beliefs(const struct node *n);                        /* whenever it may have changed */
void check_not_after(const struct node *n, const struct ask *a); /* an operation asks */
/* A leader has written under it. */
void check_fence(const struct node *n, const struct fence *f);
void check_requests(const struct node *n, const struct batch *b);
void check_claims(const struct node *n, const struct batch *b); /* before the batch is recorded */
void check_starts(const struct node *n, const struct batch *b); /* after it was recorded */
void check_claim(const struct claim *c);                        /* before its rows are recorded */

void check_start(const struct subject *t, uint32_t step, const struct seen *old,
                 const struct seen *new, const struct seen_attempt *a);

void check_waits(const struct subject *t, uint32_t step, const struct seen *old,
                 const struct seen *new);

void check_rounds(const struct subject *t, uint32_t step, const struct seen *old,
                  const struct seen *new);

void check_signals(const struct subject *t, const struct seen *old, const struct seen *new);
void check_signal_step(const struct subject *t, uint32_t step, const struct seen *old,
                       const struct seen *new);
/* A sender was told that the signal with that key is durable. */
void check_signal_told(const struct subject *t, uint32_t key);
/* A submitter was told what became of the signals that its submission carried. */
void check_carried(const struct subject *t, const struct ask *a);
bool signal_fits(const struct flow_step *f, const struct seen_signal *s);

void check_votes(const struct subject *t, const struct seen *old, const struct seen *new);
void check_approval(const struct subject *t, uint32_t step, const struct seen *old,
                    const struct seen *new);
void check_allowed(const struct subject *t, const struct seen *old, const struct seen *new);
/* A person was told what became of that vote. */
void check_vote_told(const struct subject *t, const struct sent_vote *v, const struct ask *a);
/* It names a token that such a vote was cast with. */
bool check_vote_audited(const struct subject *t, const struct audit *a);
/* Enough agreed, or one rejects it. */
bool votes_decide_it(const struct subject *t, const struct seen *s, uint32_t step);

/* After the change was recorded; `old`: the previous state. */
void check_locks(const struct subject *t, const struct seen *old);
void check_locks_batch(void); /* after each batch was recorded */
void check_locks_idle(void);  /* periodic: nobody waits while there is room */
bool lock_was_replaced(const struct seen *s);
/* It waits for a lock that tasks hold which have stopped in error. */
bool lock_holds_up(const struct subject *t);

/* Steps with for_each: see items.h. */
struct token;
void check_items(struct subject *t, const struct task_row *row, const struct seen *old,
                 const struct seen *new);
void check_item_request(const struct node *n, const struct work *w, const struct work_request *r,
                        const struct token *k);
void check_item_result(const struct work_result *r, const struct token *k);
/* A step that refers to a list is asked for. */
void check_outputs_told(const struct subject *t, uint32_t step, struct slice input);
void check_item_undo_effect(const struct subject *t, uint32_t unit);
void check_items_end(const struct subject *t, uint32_t step); /* processed or compensated */
void check_items_at_rest(void);                               /* at the end */

/* See family.h. */
void check_families_begin(void);
void check_child_started(struct subject *t, const struct submission_row *row);
/* A step that starts a child, or an item. */
void check_child_unit(const struct subject *t, uint32_t unit, const struct seen_step *before,
                      const struct seen_step *after, const struct seen *old,
                      const struct seen *new);
void check_item_children(const struct subject *t, uint32_t step); /* of all its items at work */
/* Their failures end the step, and the task is to be undone then. */
bool items_stop_children(const struct subject *t, uint32_t step);
const struct subject *child_latest(const struct subject *t, uint32_t unit); /* NULL: none */
void check_family_row(struct subject *t, const struct seen *old);
void check_word(struct subject *to, const struct notice_row *row); /* it was inserted */
void check_families_batch(void);                                /* after each batch was recorded */
void check_pivot_child(const struct subject *t, uint32_t unit); /* which turns back */
void check_family_end(const struct subject *t);                 /* processed or compensated */
/* What the children of the step did is gone, as far as it has to. */
bool check_children_gone(const struct subject *t, uint32_t step);
void check_families(void); /* periodic */
void check_families_end(void);

void check_limits_begin(void);
void check_limits_changed(void);
void check_limits(void); /* after each batch was recorded */
void check_limit_start(const struct subject *t, uint32_t step, const struct seen_attempt *a);

void check_health_begin(void);
void check_health_end(const struct subject *t, uint32_t step, const struct seen_attempt *a);
void check_health_start(const struct subject *t, uint32_t step, const struct seen_attempt *a);

void check_breakers_begin(void);
void check_breakers(const struct node *n); /* after each of its turns */
void check_breaker_start(const struct subject *t, uint32_t step, const struct seen_attempt *a);
/* May an attempt begin before its wait is over because an outage ended? */
bool check_hastened(const struct subject *t, uint32_t step, const struct seen_attempt *a,
                    const struct seen_step *before);
/* An attempt ended as a failure; `tries_again`: its step is not given up. */
void check_spared(const struct subject *t, uint32_t step, const struct seen_step *after,
                  const struct seen_attempt *a, bool tries_again);

/* For steps and items (items.h). */
void check_effect(struct subject *t, uint32_t unit);                      /* about to happen */
void check_undo_effect(struct subject *t, uint32_t unit);                 /* likewise */
void check_undo_said(struct subject *t, uint32_t step, enum direction d); /* reported as done */
void check_end_of(const struct subject *t); /* processed or compensated */
void check_turn_back(const struct subject *t, const struct seen *new);
/* Starts the periodic checks. */
void check_regularly(void);

/* Runs until all is done, until `end` at the latest; then for as long again as late effects, waits
 * and useless results may take. */
void world_runs_out(int64_t end, int64_t after_ms);
bool world_is_done(void); /* everything has ended */
void check_world_end(void);
void check_drained(const struct node *n);
void check_bulk(const struct node *n); /* the pace of operations' tasks */
void check_owned(void);                /* periodic: a node knows what it owns */

void check_answer(const struct node *n, const struct work *w, uint32_t max);
void check_unsent(const struct node *n, const struct work *w); /* the client was gone */
bool pivot_holds(const struct subject *t);
void check_asked(struct subject *t, const struct ask *a, uint64_t revision, bool other);
void check_ended(const struct node *n, struct slice id, enum task_state state);
void check_alert(const struct node *n, struct slice id);
void check_told(const struct node *n, uint64_t done); /* it has that run of its disk */

void check_boot(const struct node *n);
void check_timeout(const struct subject *t, uint32_t step, const struct seen_attempt *a);
void check_silence(const struct subject *t, uint32_t step, const struct seen_attempt *a);
void check_result(const struct work_result *r); /* its status */
void check_alarm(const struct subject *t, const struct seen *s);
void check_not_before(struct subject *t, const struct seen *old, const struct seen *new);
void check_verb_asked(struct subject *t); /* an operator asks now */
/* May the change that ends its pause hold another one? Asked before its audit is read. */
bool check_paused_again(const struct subject *t);
void check_deadline(const struct subject *t, const struct seen *old, const struct seen *new);
void check_idle_begin(void);
void check_idle(void);    /* periodic: no free place without work */
void check_overdue(void); /* periodic in the second act */

void check_changed(const struct node *n, const struct task *told);
void check_tell(const struct node *n, struct subject *t); /* it will learn of its change */
void check_change_told(const struct node *n, const struct subject *t, uint64_t done);
void check_all_told(void); /* at the end */
void check_before_beat(const struct node *n);
void check_beat(const struct node *n, const struct heartbeats *call, const struct heartbeat *b);

/* Prints the task for the story. */
void describe(const struct subject *t);

#endif
