#ifndef ALERTS_CONDITIONS_H
#define ALERTS_CONDITIONS_H

/*
 * The conditions of which operators are alerted. When one holds is decided by background/alerts.c
 * and its queries, and by watch.c for what is in memory. Thread-safe.
 */

#include "base/base.h"

/* clang-format off */
/*    name                 text                   for, ms  what it says to a person */
#define ALERT_CONDITIONS(X)                                                                     \
    X(TASK_ERROR,          "task_error",          0,     "tasks stopped in error")          \
    X(COMPENSATION_FAILED, "compensation_failed", 0,     "compensations failed")            \
    X(OVERDUE_NO_AGENT,    "overdue_no_agent",    60000, "steps wait, and no agent takes them")\
    X(BREAKER_OPEN,        "breaker_open",        60000, "a breaker stays open")            \
    X(STORE_TROUBLE,       "store_trouble",       0,     "the state store fails")           \
    X(STORE_AT_RISK,       "store_at_risk",       0,    "a crash may lose stored data")     \
    X(OUTBOX_TROUBLE,      "outbox_trouble",      60000, "status messages are not delivered")\
    X(SUBMISSION_REFUSED,  "submission_refused",  0,     "submissions were refused")        \
    X(OPERATION_FAILED,    "operation_failed",    0,     "an operation on many tasks failed")\
    X(SCHEDULE_GAP,        "schedule_gap",        0,     "moments of a schedule got no task")\
    X(RETENTION_TROUBLE,   "retention_trouble",   0,     "tasks are not archived or deleted")\
    X(TOKEN_EXPIRES,       "token_expires",       0,     "a token is about to expire")      \
    X(APPROVAL_WAITING,    "approval_waiting",    0,     "people are asked to decide")      \
    X(TEST,                "test",                0,     "this is a test alert")
/* clang-format on */

enum alert_condition {
#define X(name, text, wait, about) CONDITION_##name,
    ALERT_CONDITIONS(X)
#undef X
        CONDITION_COUNT
};

const char *condition_text(enum alert_condition c);
const char *condition_about(enum alert_condition c);
bool condition_parse(struct slice text, enum alert_condition *ret) MUST_USE;

/* For how long the condition has to hold before its alert opens. */
int64_t condition_wait_ms(enum alert_condition c);

#endif
