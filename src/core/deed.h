#ifndef CORE_DEED_H
#define CORE_DEED_H

/*
 * The inside of decide(): what decide.c (what happens to attempts and owners), hands.c (the
 * operator's verbs) and settle.c (what comes of it for the task) share. Nobody else includes it.
 */

#include "core/decide.h"

/* What one call of decide() works on. */
struct deed {
    const struct workflow *w;
    struct task *t;
    const struct event *ev;
    int64_t now;
    struct effects *fx;
};

/* ---- settle.c ---- */

/* The only places that write a state. */
void task_move(struct task *t, enum task_state next);
void step_move(struct step *s, enum step_state next);

void note(struct fault_note *n, const char *code, const char *message);

/* What time it is for the task itself: while it is paused, the moment at which that began. */
int64_t task_clock(const struct deed *d);

/* It is paused no more, if it was: its clocks move by as long as that took. */
void pause_over(struct deed *d);

/* The step's compensation begins: it counts its attempts and failures anew. */
void begin_undo(struct step *s);

/* The whole task goes back from here on. */
void turn_back(struct deed *d);

/* After every event: has the task reached an end, or a turn? */
void settle(struct deed *d);

/* ---- hands.c ---- */

/* The event is a person's. */
enum answer operator_acts(struct deed *d);

#endif
