#ifndef TESTS_BARRIER_ORDERS_H
#define TESTS_BARRIER_ORDERS_H

/*
 * Every order in which a few sessions, each with a request about the same step, can begin, ask the
 * barrier, take effect, record and end; on real connections, a statement at a time. A session may
 * have to wait for another: then the others go on. What comes of it is held against a model that
 * knows no database: one record with a lock, and what was really committed.
 */

#include <intact/barrier.h>

#include "base/base.h"

enum { SESSIONS_MAX = 3, OUTPUT_SIZE = 32 };

enum ending { END_COMMIT, END_ROLLBACK, END_CRASH };

/* One transaction of one session. */
struct session {
    unsigned number;
    enum intact_direction direction;
    struct intact_barrier *b;
    char output[OUTPUT_SIZE];
    void *own; /* the body's */
};

enum progress {
    IS_DONE,
    WAITS,   /* for another session: it will be done later */
    REFUSED, /* somebody is in the way; it may be tried later */
};

/* A database. Each function is called by one thread. */
struct body {
    const char *name;
    bool snapshots; /* a transaction does not see what was committed after its begin */
    bool readers_hold_off_commits;
    bool asking_holds;    /* whoever has asked holds off everybody else, whatever the verdict */
    bool begin_is_waited; /* begin is refused while another one holds */
    bool may_refuse;      /* any statement may fail with AGAIN (serializable) */

    /* A new step, of which nothing is on record, or a forward that was done; its key. */
    void (*reset)(bool done, char ret_key[OUTPUT_SIZE]);
    enum progress (*begin)(struct session *s);
    enum progress (*ask)(struct session *s);
    bool (*effect)(struct session *s);
    bool (*record)(struct session *s);
    bool (*end)(struct session *s, enum ending how); /* false: it was not committed */
    /* Looks after those that wait; returns when each of them is done, or really waits. A bit each
     * for those that are done now. */
    unsigned (*settle)(void);
    /* What is there: the outcome on record ("" if none), outputs, effects of forward and undo. */
    void (*look)(char outcome[OUTPUT_SIZE], char output[OUTPUT_SIZE], char undo_output[OUTPUT_SIZE],
                 int *forward, int *undo);
};

struct orders {
    const struct body *body;
    unsigned count;                                 /* of sessions */
    enum intact_direction directions[SESSIONS_MAX]; /* equal ones side by side */
    bool done_before;                               /* the forward was done in the past */
    bool fine;                                      /* effect, record and end are steps apart */
    unsigned tries;                 /* how often each comes again that was not answered */
    bool crashes;                   /* besides commit and rollback */
    unsigned runs, waits, refusals; /* what came of it */
    unsigned verdicts[INTACT_BARRIER_FAILED + 1];
};

void orders_play(struct orders *o);

#endif
