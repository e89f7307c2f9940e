#ifndef CORE_HISTORY_CHECK_H
#define CORE_HISTORY_CHECK_H

/*
 * What must hold of every event of every history, and of every state that was reached. The core is
 * compared with the world (history_world.h) and held against the invariants of the design. Used by
 * history_test.c, which goes through all histories of small workflows, and by history_fuzz.c, which
 * tries long ones of any workflows.
 */

#include "core/history_node.h"

#ifndef HISTORY_MAX
    #define HISTORY_MAX 100 /* events and waits in one history */
#endif

#define HISTORY_PAUSE_MS INT64_C(7000)

/* The history that is being played: told when a check fails. */
struct history {
    struct graph graph;
    const char *about;
    struct deed {
        struct event ev;
        int64_t wait; /* or this time passed */
    } path[HISTORY_MAX];
    int depth;
    unsigned long events;
    bool task_edge_seen[6][6], step_edge_seen[7][7];
    /* Whoever wants to hear of every change; NULL: nobody. */
    void (*changed)(const struct node *was, const struct node *is, const struct effects *fx);
};

extern struct history history;

/* So far, in the language of kit_play(). */
const char *history_story(void);
void history_tell(void); /* to standard error */

/* Makes the event happen in *is, a fresh copy of *was, and checks all that holds of every event;
 * adds it to the path. Has anything changed? */
bool history_event(const struct node *was, struct node *is, const struct event *ev);

void history_wait(int64_t ms); /* only adds it to the path */

/* When the next thing can happen that cannot happen now; 0: never. */
int64_t history_next_time(const struct node *n);

/* From this state on, the task finds an end if only agents succeed from now on; or if what runs is
 * never heard of again, and only what starts anew succeeds. */
void history_check_end(const struct node *from);

struct event history_event_at(enum event_kind kind, int step, const struct step *s);

#endif
