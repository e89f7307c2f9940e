#ifndef TESTING_STRIKES_H
#define TESTING_STRIKES_H

/* Faults that strike a run: trial.h has their source. */

#include "testing/trial.h"

/* Whether a fault strikes there. */
bool strikes_at(struct trial *t, const struct fault_point *p, struct fault *ret);

/* For a source whose `arg` is a struct fault_list. */
bool strikes_from_list(void *arg, const struct fault_point *p, struct fault *ret);

/* For the engine; arg: struct trial. */
enum engine_fate strikes_commit(void *arg, struct slice node, struct engine_outage *ret);
void strikes_lives(void *arg, enum engine_life what, struct slice node);

/* All requests to that agent fail for so long. `agent` lives as long as the trial. */
void strikes_put_down(struct trial *t, struct slice agent, int64_t ms);
bool strikes_is_down(const struct trial *t, struct slice agent);

/* The task stopped in error. `failed`: its first step that failed, or NONE; it lives as long as
 * the trial. */
void strikes_help(struct trial *t, struct slice failed, bool is_undo);

#endif
