#ifndef CORE_RETRY_H
#define CORE_RETRY_H

/*
 * The retry rules: when a failed step is tried again, if at all. One pure function serves the
 * owner of a task (for failures that an agent told) and the supervisor (for those nobody told).
 */

#include "core/workflow.h"

struct failure {
    uint32_t count; /* failures in this direction, this one included; at least 1 */
    bool retryable;
    int64_t retry_after_ms; /* the agent's own wish; 0: none */
    uint64_t seed;          /* of the jitter: the same failure waits equally long in a replay */
};

/* Is there another try, and not before when? */
bool retry_next(const struct retry_rule *r, const struct failure *f, int64_t now, int64_t *ret_at);

#endif
