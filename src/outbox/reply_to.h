#ifndef OUTBOX_REPLY_TO_H
#define OUTBOX_REPLY_TO_H

/*
 * The `reply_to` of a submission: where its messages go, and which ones. It is stored as it was
 * given: a target, or the JSON text of an object.
 */

#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"

/* clang-format off */
/*    name              stored as          sent by default */
#define EVENTS(X)                                                                   \
    X(RECEIVED,         "received",        true)  /* the task is durable */         \
    X(STARTED,          "started",         true)  /* its first step began */        \
    X(PROGRESS,         "progress",        false) /* a step ended */                \
    X(WAITING,          "waiting",         false) /* a step began to wait */        \
    X(PROCESSED,        "processed",       true)                                    \
    X(COMPENSATING,     "compensating",    true)  /* it is undone from now on */    \
    X(COMPENSATED,      "compensated",     true)                                    \
    X(ERROR,            "error",           true)                                    \
    X(NEEDS_OPERATOR,   "needs_operator",  true)  /* an operator is needed */       \
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
    struct slice to; /* NONE: no messages */
    uint32_t events; /* bits (1 << enum event_type) */
};

/* Parses a stored one; *ret points into `a` or the text. An unreadable one (it was checked once)
 * requests nothing. */
void reply_read(struct slice reply_to, struct arena *a, struct reply *ret);

/* Checks a submission's one, a string or an object. ERR_INVALID: *e says what is expected.
 * reply_text() is what to store: j->text or j->raw. Does not check that a channel accepts the
 * target. */
enum err reply_check(const struct json *j, struct reply *ret, struct error *e) MUST_USE;
struct slice reply_text(const struct json *j);

#endif
