#ifndef OUTBOX_TELLING_H
#define OUTBOX_TELLING_H

/*
 * Which events a change of a task causes, and their messages. Pure: the task as of its last durable
 * change, and as it is now, always give the same messages. States in between were never durable,
 * and are not reported.
 *
 * A change by others (a claim, the supervisor's request) causes no event: only fields that the
 * scheduler alone writes are compared. So a reader of the row may assume that its state was
 * reported.
 */

#include "base/buf.h"
#include "core/task.h"
#include "outbox/reply_to.h"
#include "store/store.h"

/* A longer output is omitted from its message. */
enum { OUTPUT_TOLD_MAX = 64 * 1024 };

/* What was reported of a task, as far as it matters for later messages. */
struct told {
    bool any; /* it is stored: false until it was received */
    bool started, paused, closed;
    bool queues; /* it waits for its lock */
    enum task_state state;
    enum direction direction;
    struct told_step *steps; /* if messages report steps; otherwise NULL */
};

struct told_step {
    enum step_state state;
    enum direction direction;
    uint32_t tries;   /* of all its ended attempts: detects another end of the same kind */
    int64_t begun_at; /* when it began to wait; 0: it does not wait */
};

/* For the present durable state of the task. `a` must live as long. */
void told_of(const struct task *t, const struct reply *r, struct arena *a, struct told *ret);

/* A change that is about to be stored. */
struct telling {
    const struct workflow *workflow;
    const struct task *task; /* as it will be, including its output if it ends */
    uint64_t revision;       /* of the change */
    const struct reply *reply;
    struct slice source; /* of the CloudEvents: "/intact/..." */
    bool alert;          /* effects.alert: an operator is needed */
    int64_t now;
};

/* The messages in order; they and their texts are in `a`, except the source. NULL: none. `scratch`
 * is overwritten. */
const struct message *messages_of(const struct told *before, const struct telling *now,
                                  struct buf *scratch, struct arena *a, size_t *ret_count);

#endif
