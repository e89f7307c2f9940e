#ifndef TESTS_BARRIER_ORDERS_H
#define TESTS_BARRIER_ORDERS_H

/*
 * Runs every order in which a few sessions, each with a request for the same step, can begin, ask
 * the barrier, take effect, record and end; on real connections, one statement at a time. When a
 * session has to wait for another, the others go on. Each result is compared with a model that
 * knows no database: one record with a lock, and the effects that were committed.
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
    void *own; /* owned by the body */
};

enum progress {
    IS_DONE,
    WAITS,   /* for another session: it will be done later */
    REFUSED, /* because of another session; it may be retried later */
};

/* A database. Each function is called by one thread. */
struct body {
    const char *name;
    bool snapshots; /* a transaction does not see what was committed after its begin */
    bool readers_hold_off_commits;
    bool asking_holds;    /* a session that has asked blocks all others, whatever the verdict */
    bool begin_is_waited; /* begin is refused while another session holds the lock */
    bool may_refuse;      /* any statement may fail with AGAIN (serializable) */

    /* Prepares a new step without a record, or one whose forward is done; returns its key. */
    void (*reset)(bool done, char ret_key[OUTPUT_SIZE]);
    enum progress (*begin)(struct session *s);
    enum progress (*ask)(struct session *s);
    bool (*effect)(struct session *s);
    bool (*record)(struct session *s);
    bool (*end)(struct session *s, enum ending how); /* false: not committed */
    /* Waits until each waiting session is done or certainly blocked. Returns one bit for each that
     * is now done. */
    unsigned (*settle)(void);
    /* Reads the recorded outcome ("" if none), the outputs, and the numbers of effects. */
    void (*look)(char outcome[OUTPUT_SIZE], char output[OUTPUT_SIZE], char undo_output[OUTPUT_SIZE],
                 int *forward, int *undo);
};

struct orders {
    const struct body *body;
    unsigned count;                                 /* of sessions */
    enum intact_direction directions[SESSIONS_MAX]; /* equal ones are adjacent */
    bool done_before;                               /* the forward was done earlier */
    bool fine;                                      /* effect, record and end are separate steps */
    unsigned tries;                                 /* how often an unanswered session retries */
    bool crashes;                                   /* besides commit and rollback */
    unsigned runs, waits, refusals;                 /* results */
    unsigned verdicts[INTACT_BARRIER_FAILED + 1];
};

void orders_play(struct orders *o);

#endif
