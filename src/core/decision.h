#ifndef CORE_DECISION_H
#define CORE_DECISION_H

/*
 * Internals of decide(), shared by decide.c (attempts and owners), failure.c, signal.c and
 * approve.c (what comes from outside), child.c (what comes from others of the family), items.c (the
 * items of lists), verbs.c (the operator's verbs) and settle.c (consequences for the task). No
 * other file includes it.
 */

#include "core/decide.h"
#include "core/retry.h"

/* The working set of one call of decide(). */
struct decision {
    const struct workflow *w;
    struct task *t;
    const struct event *ev;
    int64_t now;
    struct effects *fx;
    bool others; /* steps other than the event's may have changed */
};

/* ---- settle.c ---- */

/* These functions alone write a state. */
void task_move(struct task *t, enum task_state next);
void step_move(struct step *s, enum step_state next);

void note(struct fault_note *n, const char *code, const char *message);

/* The task's own time: while it is paused, the time at which the pause began. */
int64_t task_clock(const struct decision *d);

/* Ends a pause, if there is one: the clocks move by its length. */
void pause_over(struct decision *d);

/* The task leaves the state error: the time that it was there does not count for its waits by
 * length. */
void error_over(struct decision *d);

/* The step's compensation begins: attempts and failures are counted from zero. */
void begin_undo(struct step *s);

/* The whole task is undone from here on. */
void turn_back(struct decision *d);

/* Called after every event: finds whether the task has ended or turns to undo. */
void settle(struct decision *d);

/* ---- decide.c ---- */

void step_completes(struct decision *d, struct step *s);

/* ---- failure.c ---- */

/* One more failure of a step: leads to a retry, or the step has failed for good. */
void step_fails(struct decision *d, struct step *s, struct failure f);
void fail_for_good(struct decision *d, struct step *s);

/* The first failure decides how a task stops, and its error becomes that of the task. `step`: the
 * step that failed, or -1. */
void stop_for_failure(struct decision *d, enum on_failure on_failure, int step,
                      const struct fault_note *why);

/* ---- signal.c ---- */

enum answer signal_arrives(struct decision *d);
enum answer signal_drop(struct decision *d);
enum answer signal_is_late(struct decision *d);

/* The step's waiting ends with the output `otherwise`, or (NONE) with a failure. */
void end_waiting(struct decision *d, struct step *s, struct slice otherwise, struct fault_note why);

/* The step starts anew: what it took can be taken again. */
void signal_put_back(struct task *t, uint16_t step);

/* A step begins to wait: what is kept has arrived by now, whatever a clock that was ahead said of
 * it. Else a step would take it for late. */
void signals_came_by(struct decision *d);

/* A kept signal that has the task undone does so, unless the task stops, has stopped or is
 * paused: then it does once the task goes on. Called before settle(): a task that could be undone
 * must not end. */
void signals_undo(struct decision *d);

/* The same for a task that would end as processed. It may be paused: an attempt that ran when the
 * pause began was the last one. False: nothing asks for undo, or a pivot took effect. */
bool signals_undo_at_end(struct decision *d);

/* Called after settle(): those that are left come too late. */
void signals_cannot_undo(struct decision *d);

/* ---- approve.c ---- */

enum answer vote_arrives(struct decision *d);
enum answer votes_decide(struct decision *d);
enum answer votes_are_late(struct decision *d);

/* The step is not asked any more, or asks anew: nobody has voted. */
void votes_void(struct task *t, uint16_t step);

/* The task has another input: what was asked is asked anew. */
void approvals_ask_anew(struct decision *d);

/* ---- child.c ---- */

/* A step starts a child. */
void child_begins(struct decision *d, struct step *s);

/* A child that has not ended is told to stop. */
void child_stop(struct decision *d, struct step *s);

/* The child of a step tells what became of it. */
enum answer child_tells(struct decision *d);

/* The step's complete-by passed: its child is told to stop. */
enum answer child_is_late(struct decision *d);

/* Called whenever a task that goes back is settled: children that have not ended are told to stop,
 * and processed ones, when it is their turn, to be undone. */
void children_turn(struct decision *d);

/* Called whenever a task is settled that is to be undone, but for its pivots: the children among
 * them are told to stop. */
void pivot_children_stop(struct decision *d);

/* The task stops in error: if it does because of children, they are its error. */
void children_find_error(const struct decision *d);

/* The task is closed, or needed after all: so are those of its children that stopped in error. */
void children_close(struct decision *d);
void children_reopen(struct decision *d);

/* A parent tells the task something. */
enum answer parent_tells(struct decision *d);

/* A parent told the task to stop, which it does as soon as it can. Called before settle(): the task
 * may have gone on meanwhile. */
void parent_stops(struct decision *d);

/* ---- items.c ---- */

/* A step with for_each begins: the list is known. */
void items_begin(struct decision *d, struct step *s);

/* The next item takes the slot, which is free. */
void item_begins(struct decision *d, struct step *s);

/* An item at rest is brought into a free slot, to be undone there. */
enum answer item_comes_back(struct decision *d);

/* Called whenever a task is settled: what has ended comes to rest, and steps of which all items
 * have ended end. */
void items_settle(struct decision *d);

/* What the item in the slot counts for among those of its step (struct item_tally). After a change
 * of it alone the sums follow from what it counted for before. */
struct item_tally item_counts(const struct decision *d, uint16_t unit);
void item_changed(struct decision *d, uint16_t unit, const struct item_tally *before);

/* Before (-1) and after (1) an event of an item that is at rest. */
void item_recount(struct decision *d, int n);

/* For verbs of operators. False: there is no failed item at hand. */
bool items_retry(struct decision *d, uint16_t step);
bool item_retry(struct decision *d, uint16_t unit); /* false: it has no place */
void item_repaired(struct decision *d);
void items_leave(struct decision *d, uint16_t step);
void items_forget(struct decision *d, uint16_t step);
void slot_free(struct step *s);

/* ---- verbs.c ---- */

/* Handles an operator's event. */
enum answer verb_apply(struct decision *d);

/* Continues a task that had stopped in error: in its direction, or to undo as soon as no pivot
 * prevents that. The latter keeps the cause. */
void continue_stopped(struct decision *d);
void continue_to_undo(struct decision *d);

/* The task, which no pivot keeps from it, is to be undone, for the reason `why` if there is no
 * other. Its pause is over. */
void want_undo(struct decision *d, struct fault_note why);

/* A round that was answered has ended: the same answer would fail the step again. The next one has
 * all the time of the first. */
void renew_rounds(struct step *s);

/* A step waits for a signal, or people, anew; or it starts another child. */
void begin_anew(struct step *s);

/* The same for a processed task. Its pivots are clear. */
void undo_processed(struct decision *d, struct fault_note why);

/* A task in error is closed, or reopened. */
void task_close(struct decision *d, struct slice reason);
void task_reopen(struct decision *d);

#endif
