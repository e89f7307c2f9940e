#ifndef CORE_HISTORY_CHECK_H
#define CORE_HISTORY_CHECK_H

/*
 * Checks that hold after every event of every history and for every state reached: the core is
 * compared with an independent observer (history_world.h) and with the invariants of the design.
 * history_test.c explores all histories of small workflows; history_fuzz.c tries long ones of any
 * workflow.
 */

#include "core/history_node.h"

#ifndef HISTORY_MAX
    #define HISTORY_MAX 100 /* events and waits in one history */
#endif

#define HISTORY_PAUSE_MS INT64_C(7000)

/* The history being played, printed when a check fails. */
struct history {
    struct graph graph;
    const char *about;
    struct history_item {
        struct event ev;
        int64_t wait;     /* or this much time passed */
        const char *note; /* or this happened elsewhere */
        char name, key;   /* of its signal */
    } path[HISTORY_MAX];
    int depth;
    unsigned long events;
    bool task_edge_seen[6][6], step_edge_seen[7][7];
    /* Called after every change; may be NULL. */
    void (*changed)(const struct node *was, const struct node *is, const struct effects *fx);
};

extern struct history history;

/* The history so far, in the language of kit_play(). */
const char *history_story(void);
void history_print(void); /* to standard error */

/* Applies the event to *is, a fresh copy of *was, runs all checks and adds the event to the path.
 * Returns whether anything changed. */
bool history_event(const struct node *was, struct node *is, const struct event *ev);

void history_wait(int64_t ms); /* only adds it to the path */

/* Records in *is what its children are told by the event, and checks that, and what the task tells
 * its parent (history_told.c). Parts of history_event(). */
void history_tell(const struct node *was, struct node *is, const struct event *ev);
void history_check_told(const struct node *was, const struct node *is, const struct event *ev);

/* Adds to the path what happens elsewhere: "the child of a hears". Valid as long as the path. */
void history_note(const char *what, int step);

/* When something can happen that cannot happen now; 0: never. */
int64_t history_next_time(const struct node *n);
void history_later(int64_t *next, int64_t at, int64_t now); /* the earlier one that is to come */

/* Checks that the task ends from this state if agents only succeed from now on, or if running
 * attempts are never answered and only new ones succeed. */
void history_check_end(const struct node *from);

/* The signal that the event is about: its name, and its number as a key. Overwritten by the next
 * call. */
const struct signal *history_signal(char name, int number, bool other);

/* The vote of a person, as of kit_ballot(). Valid for as long as the program runs. */
const struct ballot *history_ballot(char person, bool agrees, uint32_t asking);

struct event history_event_at(enum event_kind kind, int step, const struct step *s);

#endif
