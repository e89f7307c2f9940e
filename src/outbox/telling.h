#ifndef OUTBOX_TELLING_H
#define OUTBOX_TELLING_H

/*
 * Which events a change of a task brings, and the messages that tell of them. Pure: the task as it
 * was when its last change became durable, and as it is now, give the same messages always. What is
 * between two changes was never durable, and nobody hears of it.
 *
 * A change by others (a claim, the supervisor's request) brings no event: what is compared is what
 * only the scheduler writes. So whoever reads a row may take it for what was told.
 */

#include "base/buf.h"
#include "core/task.h"
#include "outbox/reply.h"
#include "store/store.h"

/* A longer output is left out of its message. */
enum { OUTPUT_TOLD_MAX = 64 * 1024 };

/* What was told of a task, as far as it matters for what comes. */
struct told {
    bool any; /* it is stored: false until it was received */
    bool started, paused, closed;
    enum task_state state;
    enum direction direction;
    struct told_step *steps; /* where something is told of steps; otherwise NULL */
};

struct told_step {
    enum step_state state;
    enum direction direction;
    uint32_t tries; /* of all its attempts that ended: another one may end it in the same way */
};

/* As the task is now, which is durable. `a` lives as long. */
void told_of(const struct task *t, const struct reply *r, struct arena *a, struct told *ret);

/* Of a change that is about to be stored. */
struct telling {
    const struct workflow *workflow;
    const struct task *task; /* as it will be; its output, if it ends, is there */
    uint64_t revision;       /* that it will have */
    const struct reply *reply;
    struct slice source; /* of the CloudEvents: "/intact/..." */
    bool alert;          /* effects.alert: a person is needed */
    int64_t now;
};

/* The messages, in their order; in `a`, with their texts, but for the source. NULL: none. `scratch`
 * is written over. */
const struct message *messages_of(const struct told *before, const struct telling *now,
                                  struct buf *scratch, struct arena *a, size_t *ret_count);

#endif
