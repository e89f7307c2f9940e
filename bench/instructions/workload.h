#ifndef INSTRUCTIONS_WORKLOAD_H
#define INSTRUCTIONS_WORKLOAD_H

/*
 * Fixed workloads for counting instructions with callgrind, which gives the same counts each time
 * and on every machine, however busy. A workload prepares its data, warms up, and brackets the code
 * to count; it may have several brackets, each with a name and a unit.
 *
 * Between begin and end there may be only the measured work, the same in each run: no randomness,
 * no dependence on time, one thread at a time.
 */

#include "base/base.h"
#include "base/err.h"

struct workload {
    const char *name;
    const char *unit; /* one round, such as "a task of 3 steps" */
    long rounds;      /* the default number of rounds */
    /* Runs in an empty folder. `arg` is the table's. */
    void (*run)(const struct workload *w, long rounds);
    /* Prepares the folder of `run`, in another process without counting, which is much faster.
     * NULL: nothing to prepare. */
    void (*make)(const struct workload *w);
    long arg;
    const char *text;
};

extern const struct workload workloads_text[], workloads_task[], workloads_kept[],
    workloads_outside[], workloads_server[]; /* each ends with an entry without a name */

/* Counting starts here ... */
void count_begin(void);
/* ... and stops here. `what` (may be NULL) is appended to the workload's name. Brackets with the
 * same name in one run are added up, with their units. */
void count_end(const struct workload *w, const char *what, long units);

/* Prints the error and ends the process unless `err` is ERR_OK. */
void must(enum err err, const struct error *e);
void must_be(bool ok, const char *what);

/* The payload of all published figures: about 300 bytes of JSON. */
extern const char payload_in[], payload_out[];

#endif
