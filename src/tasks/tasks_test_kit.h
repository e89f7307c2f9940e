#ifndef TASKS_TASKS_TEST_KIT_H
#define TASKS_TASKS_TEST_KIT_H

/* Shared by the tests of the tasks in memory: the lower floor alone, without a scheduler, a store
 * or an agent. Time stands until a test moves it. */

#include "base/test.h"

#include "tasks/tasks.h"

struct floor {
    struct tasks ts;
    struct registry registry;
    int64_t now;
    uint32_t instances; /* whose names were made */
};

/* `steps`: the array of a definition in JSON; its agent is "ag" everywhere. */
void floor_begin(struct floor *f, const char *steps);
void floor_end(struct floor *f);

/* A loaded task of this node, all of whose steps are ready, or wait for others. */
struct live *floor_task(struct floor *f, const char *id, int priority);

/* An attempt of the step begins at this instance, for a call with one place, and was sent. */
struct live_step *floor_start(struct floor *f, struct live *l, uint16_t step, const char *instance);

/* A parked call of the instance. */
struct work *floor_call(struct floor *f, const char *instance, uint32_t places);
void floor_answer(struct floor *f, struct work *w); /* it is answered, and gone */

/* The number of commands in its inbox; the first one is of this kind. */
size_t floor_posted(const struct live *l, enum event_kind *ret_first);
void floor_discard_posted(struct live *l);

#endif
