#ifndef LIBINTACT_AGENT_KIT_H
#define LIBINTACT_AGENT_KIT_H

#include "base/prng.h"
#include "libintact/fake.h"
#include "json/json.h"

/*
 * A small model of the server for tests: it gives jobs to any caller, and gives them again if the
 * agent does not hold them, like the real server. Tests switch on faults.
 */
struct job {
    char token[24];
    const char *action;
    const char *direction;
    int64_t left_ms;
    int64_t heartbeat_ms; /* 0: none */
    const char *resume;   /* JSON; NULL: none */
    unsigned beats;       /* heartbeats received */
    enum { JOB_NEW, JOB_GIVEN, JOB_DONE } state;
    unsigned given, told; /* how often it was given, and how often its result came */
    char result[400];
};

enum {
    JOBS_MAX = 600,
    BRIEF_MS = 2000, /* jobs with no more time than this are not given again */
};

struct model {
    struct fake fake;
    struct job jobs[JOBS_MAX];
    size_t count;
    unsigned calls, fetches; /* all; those that asked for work */
    unsigned farewells;      /* main calls that asked for none */
    unsigned result_calls;   /* calls until the latest result had come */
    unsigned serial;         /* of the latest main call: older ones are no longer parked */
    unsigned lose_call, lose_answer, refuse; /* for this many of the next calls */
    int status;                              /* status of refused calls */
    const char *poison;                      /* a call with this token's result gets a 400 */
    const char *stop;                        /* token of a request that should stop */
    const char *outcome;                     /* of every result; NULL: the correct one */
    bool twice;                              /* every request occurs twice in the answer */
    unsigned delay_ms;                       /* delay of each answer */
    struct prng *storm;                      /* random faults */
    char last_holding[200];
    unsigned beat_calls;
    const char *beat_status; /* of every heartbeat; NULL: there are no outcomes */
    char last_beats[4000];
};

extern struct model m; /* protected by its fake's lock */

/* The fake server's calls for work and heartbeats. */
int answer_work(struct fake *f, const char *line, struct slice body, struct buf *ret);

/* Adds jobs, each with `left_ms` to its deadline. */
void add_jobs(size_t count, const char *action, const char *direction, int64_t left_ms);

/* Adds one job of a step that requires heartbeats. */
void add_long_job(const char *action, int64_t heartbeat_ms, const char *resume);

/* Waits until `count` jobs are done; the test's time limit ends it otherwise. */
void wait_done(size_t count);

/* Waits until a main call has reported one or the other as held. */
void wait_holding(const char *one, const char *other);

size_t take_results(const struct json *results, struct buf *ret); /* returns how many there were */

#endif
