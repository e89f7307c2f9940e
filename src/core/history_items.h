#ifndef CORE_HISTORY_ITEMS_H
#define CORE_HISTORY_ITEMS_H

/*
 * One node of the search of history_items_test.c: a task with one step with for_each, the rows of
 * its items at rest, and what an observer knows of each item. The observer shares no code with the
 * core.
 */

#include "core/core_test_kit.h"

enum { TALE_ITEMS = 3, TALE_UNITS = 8, TALE_ATTEMPTS = 10 };

/* What really happened to an item. */
struct tale_item {
    bool begun;
    bool failed;      /* the last that is known of it, going forward */
    bool done;        /* it took effect */
    bool by_hand;     /* an operator says so, or skipped it */
    uint16_t unknown; /* a bit for each forward attempt that may have taken effect */
    bool back;        /* its undo was requested, when it was in doubt at least */
    bool resolved;    /* an operator said that it did not take effect ... */
    bool excused;     /* ... which was found wrong when nothing of the step was undone any more */
    uint8_t undone;   /* how often */
    uint8_t running;  /* requests under way: at most one */
};

struct tale_row {
    bool is_there;
    struct step item;
    struct attempt attempts[TALE_ATTEMPTS];
};

/* How often each may still happen. */
struct tale_left {
    uint8_t faults; /* errors, silence, inputs that cannot be evaluated, requests not sent */
    uint8_t late;   /* late results */
    uint8_t acts;   /* verbs of operators */
};

struct tale {
    struct task t;
    struct step steps[TALE_UNITS];
    struct attempt attempts[TALE_UNITS][TALE_ATTEMPTS];
    struct items items;
    struct tale_row rows[TALE_ITEMS];
    struct tale_item seen[TALE_ITEMS];
    struct tale_left left;
    int64_t now;
};

/* The workflow of all tales, and its step with for_each. */
extern struct graph tale_graph;
extern uint16_t tale_step;

void tale_make(struct tale *n, const char *graph, struct tale_left left);
void tale_copy(struct tale *to, const struct tale *from);

/* Equal if no difference can matter later: times are relative to now. */
uint64_t tale_key(const struct tale *n);

/* Applies an event, checks that a refused one changes nothing, and tells the observer. False: it
 * was refused. */
bool tale_event(struct tale *n, const struct event *ev);

/* What came to rest is stored. False: there is nothing. */
bool tale_store(struct tale *n);
bool tale_has_unstored(const struct tale *n);

/* What the caller of the core does next: brings the row that the store finds first; NULL: none. */
const struct step *tale_row_to_bring(const struct tale *n);
int tale_free_slot(const struct tale *n);

/* Brings the row of an item at rest into a slot, for an event. -1: it has none, is in a slot, or no
 * slot is free. */
int tale_hold(struct tale *n, uint32_t item);

/* An event of a unit, with the number of its next, or its latest, attempt. */
struct event tale_event_at(const struct tale *n, enum event_kind kind, int unit);

/* The observer against the core. */
void tale_check(const struct tale *n);

/* What happened, for messages. */
const char *tale_story(void);
void tale_note(const char *what, int unit);
void tale_forget(void);

#endif
