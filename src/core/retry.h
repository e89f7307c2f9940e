#ifndef CORE_RETRY_H
#define CORE_RETRY_H

/*
 * The retry rules: whether and when a failed step is retried. failure.c applies them to each one
 * that is not spared; supervisor/ and reason.c only predict with them.
 */

#include "core/workflow.h"

struct failure {
    uint32_t count; /* failures in this direction, this one included; at least 1 */
    bool retryable;
    int64_t retry_after_ms; /* the wait that the agent asked for; 0: none */
    uint64_t seed;          /* of the jitter: a replay of the same failure waits equally long */
};

/* Whether there is a retry, and the earliest time for it. */
bool retry_next(const struct retry_rule *r, const struct failure *f, int64_t now, int64_t *ret_at);

#endif
