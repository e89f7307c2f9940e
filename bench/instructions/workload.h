#ifndef INSTRUCTIONS_WORKLOAD_H
#define INSTRUCTIONS_WORKLOAD_H

/*
 * Fixed workloads whose instructions are counted: by callgrind, which says the same each time and
 * on every machine, however busy. A workload prepares what it needs, warms up, and brackets what
 * is to be counted; there may be several such brackets in it, each with a name and a unit.
 *
 * Nothing but the work itself may stand between begin and end, and it has to be the same at each
 * run: no chance, no times that matter, one thread at a time.
 */

#include "base/base.h"
#include "base/err.h"

struct workload {
    const char *name;
    const char *unit; /* "a task of 3 steps": what one of `rounds` is */
    long rounds;      /* so many are counted, unless the caller says otherwise */
    /* In an empty folder. `arg` is the table's. */
    void (*run)(const struct workload *w, long rounds);
    /* What `run` finds in its folder: made by another process, whose instructions nobody counts,
     * and which is so faster by far. NULL: nothing. */
    void (*make)(const struct workload *w);
    long arg;
    const char *text;
};

extern const struct workload workloads_text[], workloads_task[], workloads_kept[],
    workloads_outside[], workloads_server[]; /* each ends with one without a name */

/* From here on instructions are counted ... */
void count_begin(void);
/* ... to here. `what` (may be NULL) is put behind the name of the workload. Several brackets of one
 * name in one run are added up, with their units. */
void count_end(const struct workload *w, const char *what, long units);

/* Ends the process with that story unless `err` is ERR_OK. */
void must(enum err err, const struct error *e);
void must_be(bool ok, const char *what);

/* What figures are quoted with unless something else is said: some 300 bytes of JSON. */
extern const char payload_in[], payload_out[];

#endif
