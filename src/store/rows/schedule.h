#ifndef STORE_ROWS_SCHEDULE_H
#define STORE_ROWS_SCHEDULE_H

/* Schedules: when tasks are submitted. */

#include "store/rows/submission.h"

/* A row of the table `schedule`. Every change names the revision on which it was decided; so no
 * moment is decided twice. */
struct schedule_row {
    int64_t seq; /* given by the store, never twice */
    struct slice name;
    uint64_t revision; /* 1 at insertion */
    int64_t version;   /* of its text, from 1 */
    struct slice workflow, text;
    struct slice author; /* who stored this version */
    struct slice person; /* whose token that was: schedule_person() */
    int64_t stored_at;   /* when */
    int64_t paused_at;   /* 0: it is not paused */
    int64_t next_at;     /* when it is due; 0: not by time */
    int64_t last_at;     /* the last moment that was decided */
    int64_t waiting_at;  /* a moment that waits for the end of the run; 0: none */
    struct slice run;    /* the id of the open run; NONE: none. It may have ended */
    bool waits;          /* it is due when the run has ended */
    int64_t gap_at;      /* when a moment last got no task; 0: never */
    struct slice doc;    /* JSON, into which the store does not look */
    bool run_is_open;    /* out: `run` waits to become a task, or is one that has not ended */
};

/* The columns of the table `schedule` behind its seq and name. What X, S and the types are:
 * rows/task.h. */
/* clang-format off */
#define SCHEDULE_COLUMNS(X, S) \
    X(revision,   number) S    \
    X(version,    number) S    \
    X(workflow,   text)   S    \
    X(text,       text)   S    \
    X(author,     text)   S    \
    X(stored_at,  number) S    \
    X(paused_at,  time)   S    \
    X(next_at,    time)   S    \
    X(last_at,    number) S    \
    X(waiting_at, time)   S    \
    X(run,        text)   S    \
    X(waits,      flag)   S    \
    X(gap_at,     time)   S    \
    X(doc,        text)   S    \
    X(person,     text)
/* clang-format on */

/* The source of its submissions in the table `submission`; their key is the id of the task. */
#define SCHEDULE_SOURCE "schedule"

struct schedule_change {
    struct schedule_row row; /* revision 1: it is inserted; else the stored one is one less */
    bool new_version;        /* its text is kept as that version */
    const struct submission_row *submissions; /* inserted with it; those of a known key are not */
    size_t submission_count;
    const struct audit *audit; /* may be NULL */
    bool done;                 /* out: false: it has another revision, or its name exists */
};

struct schedule_query {
    struct slice name;       /* NONE: any */
    struct slice after_name; /* in the order of names, those after it; NONE: from the first */
    int64_t gaps_since;      /* those with a gap noted then or later; 0: any */
    size_t limit;
};

struct schedule_page {
    struct schedule_row *rows;
    size_t count;
    bool more;
};

/* What is due: by time, or because the run for which it waits has ended. */
struct schedule_look {
    int64_t now;
    size_t limit;              /* of each kind */
    bool waiting;              /* those that wait for a run are looked at, too */
    struct schedule_row *rows; /* out: each once */
    size_t count;
    bool more;           /* out: there may be more of them */
    int64_t next_at;     /* out: when the next one of the others is due; 0: none is */
    uint64_t wait_count; /* out: how many wait for a run, at most SCHEDULES_COUNTED */
};

enum { SCHEDULES_COUNTED = 10000 };

struct schedule_version_row {
    struct slice name;
    int64_t version;
    struct slice text, author;
    int64_t stored_at;
};

/* clang-format off */
#define SCHEDULE_VERSION_COLUMNS(X, S) \
    X(name,      text)   S             \
    X(version,   number) S             \
    X(text,      text)   S             \
    X(author,    text)   S             \
    X(stored_at, number)
/* clang-format on */

#endif
