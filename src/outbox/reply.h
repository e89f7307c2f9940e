#ifndef OUTBOX_REPLY_H
#define OUTBOX_REPLY_H

/*
 * What a submission's `reply_to` asks for: where its messages go, and which of them. It is stored
 * as it was given: a target, or an object as its JSON text.
 */

#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"

/* clang-format off */
/*    name              stored as          told unless the submission says otherwise */
#define EVENTS(X)                                                                   \
    X(RECEIVED,         "received",        true)  /* the task is durable */         \
    X(STARTED,          "started",         true)  /* its first step began */        \
    X(PROGRESS,         "progress",        false) /* a step ended */                \
    X(PROCESSED,        "processed",       true)                                    \
    X(COMPENSATING,     "compensating",    true)  /* it goes back from now on */    \
    X(COMPENSATED,      "compensated",     true)                                    \
    X(ERROR,            "error",           true)                                    \
    X(NEEDS_OPERATOR,   "needs_operator",  true)  /* a person has to see to it */   \
    X(PAUSED,           "paused",          false)                                   \
    X(RESUMED,          "resumed",         false)                                   \
    X(CLOSED,           "closed",          true)
/* clang-format on */

enum event_type {
#define X(name, text, told) EVENT_TYPE_##name,
    EVENTS(X)
#undef X
        EVENT_TYPE_COUNT
};

const char *event_type_text(enum event_type t);

struct reply {
    struct slice to; /* NONE: nobody is told */
    uint32_t events; /* of (1 << enum event_type) */
};

/* Of what is stored; *ret points into `a` or the text. What cannot be read (it was checked once)
 * asks for nothing. */
void reply_read(struct slice reply_to, struct arena *a, struct reply *ret);

/* Of a submission, a string or an object. ERR_INVALID: *e says what is expected. What is to be
 * stored is j->text or j->raw: reply_text(). Whether there is a way to the target is not asked. */
enum err reply_check(const struct json *j, struct reply *ret, struct error *e) MUST_USE;
struct slice reply_text(const struct json *j);

#endif
