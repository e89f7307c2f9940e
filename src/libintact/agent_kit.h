#ifndef LIBINTACT_AGENT_KIT_H
#define LIBINTACT_AGENT_KIT_H

#include "base/prng.h"
#include "libintact/fake.h"
#include "json/json.h"

/*
 * The other side of the protocol, small: jobs are given to whoever asks, and given again if the
 * agent does not hold them, as the real server does. Faults are switched on by the tests.
 */
struct job {
    char token[24];
    const char *action;
    const char *direction;
    int64_t left_ms;
    int64_t heartbeat_ms; /* 0: none */
    const char *resume;   /* JSON; NULL: none */
    unsigned beats;       /* that came */
    enum { JOB_NEW, JOB_GIVEN, JOB_DONE } state;
    unsigned given, told; /* how often it went out, how often its result came in */
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
    unsigned farewells;      /* main calls that wanted none */
    unsigned result_calls;   /* calls until the latest result had come in */
    unsigned serial;         /* of the latest main call: an older one is no longer parked */
    unsigned lose_call, lose_answer, refuse; /* how many of the next calls */
    int status;                              /* with which calls are refused */
    const char *poison;                      /* a call with this token's result gets a 400 */
    const char *stop;                        /* token that is to stop */
    const char *outcome;                     /* of every result; NULL: as it should be */
    bool twice;                              /* every request stands in the answer twice */
    unsigned delay_ms;                       /* how long each answer is on its way */
    struct prng *storm;                      /* faults at random */
    char last_holding[200];
    unsigned beat_calls;
    const char *beat_status; /* of every beat; NULL: there are no outcomes */
    char last_beats[4000];
};

extern struct model m; /* under its fake's lock */

/* Of the fake server: calls for work and heartbeats. */
int answer_work(struct fake *f, const char *line, struct slice body, struct buf *ret);

/* More jobs to give, each with `left_ms` to its deadline. */
void add_jobs(size_t count, const char *action, const char *direction, int64_t left_ms);

/* The same, one, of a step that wants heartbeats. */
void add_long_job(const char *action, int64_t heartbeat_ms, const char *resume);

/* Waits until `count` jobs are done; for ever, if they never are: the test's time limit ends it. */
void wait_done(size_t count);

/* Waits until a main call has said that it holds one or the other. */
void wait_holding(const char *one, const char *other);

size_t take_results(const struct json *results, struct buf *ret); /* how many there were */

#endif
