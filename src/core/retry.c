/* The retry rules: whether a failed step is retried, and after which wait (retry.h). Pure; the
 * jitter is derived from a seed. failure.c applies the rules, the supervisor and reason.c only
 * predict with them. */

#include "core/retry.h"

static uint64_t mix(uint64_t z) /* splitmix64's finisher */
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* wait * factor^(failures - 1), at most max_wait. Stops multiplying at the cap, so that it never
 * overflows. */
static int64_t backoff(const struct retry_rule *r, uint32_t failures)
{
    int64_t wait = r->wait_ms;

    for (uint32_t i = 1; i < failures && wait < r->max_wait_ms; i++) {
        if (r->factor_milli == 1000 || wait == 0)
            break;
        if (__builtin_mul_overflow(wait, (int64_t)r->factor_milli, &wait))
            wait = INT64_MAX;
        wait /= 1000;
    }
    return min_i64(wait, max_i64(r->max_wait_ms, r->wait_ms));
}

/* A random wait in the upper half: spreads retries without changing the order of magnitude. */
static int64_t jittered(int64_t wait, uint64_t seed)
{
    int64_t half = wait / 2;

    return half == 0 ? wait : wait - half + (int64_t)(mix(seed) % (uint64_t)(half + 1));
}

bool retry_next(const struct retry_rule *r, const struct failure *f, int64_t now, int64_t *ret_at)
{
    ASSERT(f->count >= 1);
    ASSERT(r->attempts >= 1);
    uint64_t tries = (uint64_t)r->attempts + r->defers;

    if (!f->retryable || f->count >= tries)
        return false;
    int64_t wait = r->defer_ms;
    if (f->count < r->attempts) {
        wait = backoff(r, f->count);
        if (r->jitter)
            wait = jittered(wait, f->seed ^ f->count);
    }
    if (f->retry_after_ms > 0)
        wait = f->retry_after_ms;
    *ret_at = now + wait;
    return true;
}
