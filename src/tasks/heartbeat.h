#ifndef TASKS_HEARTBEAT_H
#define TASKS_HEARTBEAT_H

/* Heartbeats as they arrive (struct heartbeats), and what is kept of them (struct pulse). */

#include "base/arena.h"
#include "dispatch/token.h"

/* The outcome of a heartbeat, in the words of the protocol. */
#define BEAT_STATUSES(X)                                  \
    X(ACCEPTED, "accepted") /* for the current attempt */ \
    X(LATE, "late")         /* the attempt has ended */   \
    X(UNKNOWN, "unknown")   /* not ours, of another instance, or this node cannot tell now */

enum beat_status {
#define X(name, text) BEAT_##name,
    BEAT_STATUSES(X)
#undef X
        BEAT_STATUS_COUNT
};
const char *beat_status_text(enum beat_status st);

enum {
    HEARTBEATS_MAX = 1024,
    BEAT_PROGRESS_MAX = 2048,
    BEAT_MESSAGE_MAX = 256,
    RESUME_MAX = 2048 /* bytes of JSON */
};

/* A heartbeat of an open attempt. It only extends how long the step's `heartbeat` lets the attempt
 * be silent: see pulses.h, silence.h. */
struct heartbeat {
    struct slice token;
    struct slice progress;   /* JSON, or NONE */
    struct slice message;    /* text, or NONE */
    struct slice resume;     /* JSON for the next attempt; NONE: keeps the previous details */
    enum beat_status status; /* out */
    struct token of;         /* out, if accepted; points into `token` */
};

/* The heartbeats of one instance. All memory, including the answer, belongs to the caller. */
struct heartbeats {
    struct slice agent_name, instance_name;
    struct heartbeat *list;
    size_t count;
    struct arena *arena; /* for the answer: */
    struct slice *stop;  /* tokens of attempts to stop */
    size_t stop_count;
};

/* The latest heartbeat of an attempt. */
struct pulse {
    int64_t at;
    struct slice progress, message; /* or NONE */
    struct slice resume;            /* of this heartbeat or an earlier one, or NONE */
};

/* What is known of all open attempts of a task: as it was when it was asked for, and for any
 * thread.
 */
struct pulses {
    struct pulse_of {
        uint16_t step;
        struct item_ref item; /* of the step */
        enum direction direction;
        uint32_t attempt;
        struct pulse pulse;
    } * list;
    size_t count;
};

#endif
