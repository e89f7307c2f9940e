#ifndef SIMULATION_CREW_H
#define SIMULATION_CREW_H

/*
 * Threads that play runs. The runs of a flow are taken in the order in which they were asked for,
 * by the thread that asked for them; so what is found does not depend on the number of threads.
 *
 * A flow may begin another one while it takes a run. A crew belongs to one thread.
 */

#include "simulation/run.h"

enum { JOB_FAULTS_MAX = 10 };

/* A run to be played. `config.faults` and `config.draw` may point into the job. */
struct crew_job {
    struct run_config config;
    struct fault list[JOB_FAULTS_MAX];
    struct fault_list faults;
    struct draw draw;
    /* When it is taken: */
    struct run run;
    struct coverage coverage; /* of this run alone */
    /* For the crew alone: */
    struct link link;
    enum { JOB_WAITS, JOB_BEGUN, JOB_PLAYED } state;
};

struct flow {
    void *arg;
    /* The next run: fills in the job, which is zeroed. False: there are no more. It is called ahead
     * of `take`, and must not depend on what was taken. */
    bool (*next)(void *arg, struct crew_job *j);
    /* False: there are enough. What was played beyond that is forgotten. */
    bool (*take)(void *arg, struct crew_job *j);
};

struct crew;

struct crew *crew_new(unsigned threads); /* 1: runs are played by the thread that takes them */
void crew_free(struct crew *c);
void crew_play(struct crew *c, const struct flow *f);

#endif
