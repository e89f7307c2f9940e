#ifndef TASKS_OVERRUNS_H
#define TASKS_OVERRUNS_H

/*
 * Tasks whose evaluations took far too long. A server that cannot stop such an evaluation counts it
 * in the store and exits. A task whose evaluation never ends would end one server after the other,
 * so after the second time it stops in error and is not evaluated again.
 *
 * The store has a row for each of these tasks; usually there are none. They are read at the start.
 * Where the store is shared, they are also read with tasks that are taken over from another node
 * and, while there are any, with each survey: a new submission has no row of its own to read.
 */

#include "base/map.h"
#include "store/store.h"

struct overruns {
    struct map map; /* by task */
};

void overruns_set(struct overruns *o, const struct overrun *list, size_t count); /* all of them */
void overruns_free(struct overruns *o);
bool overruns_any(const struct overruns *o);
bool overruns_has(const struct overruns *o, struct slice id);
bool overruns_too_often(const struct overruns *o, struct slice id); /* it is not evaluated again */
void overruns_forget(struct overruns *o, struct slice id);

#endif
