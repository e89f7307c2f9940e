/* Tries within one attempt, for handlers: how many, how far apart, and sleeps that end when the
 * request is to stop (see <intact/agent.h>). On the handler's thread; the outbox's lock guards
 * the stop. */

#include <time.h>

#include "base/clock.h"
#include "base/prng.h"
#include "libintact/agent_outbox.h"
#include "libintact/wire.h"

enum {
    TRIES_MAX = 1000000, /* the highest number reported */
    LOOK_MS = 1000,      /* limits the delay after a suspend */
    WAIT_MAX_MS = 24 * 3600 * 1000,
};

static int64_t within(int64_t ms, int64_t least)
{
    return min_i64(max_i64(ms, least), WAIT_MAX_MS);
}

int64_t intact_retry_wait_ms(unsigned tries, unsigned tries_max, int64_t wait_ms,
                             int64_t max_wait_ms, int64_t left_ms, uint64_t chance)
{
    int64_t most = within(max_wait_ms, 1);
    int64_t wait = min_i64(within(wait_ms, 1), most);

    if (tries_max > 0 && tries >= tries_max)
        return -1;
    for (unsigned i = 1; i < tries && wait < most; i++)
        wait = min_i64(wait * 2, most);
    /* The upper half: spreads the retries of requests that failed together. */
    wait -= (int64_t)(chance % ((uint64_t)wait / 2 + 1));
    return wait < left_ms ? wait : -1;
}

unsigned intact_request_try(struct intact_request *r)
{
    unsigned tries = atomic_load(&r->tries);

    if (tries < TRIES_MAX)
        atomic_store(&r->tries, ++tries);
    r->tried_at = clock_boot_ms();
    return tries;
}

/* Must differ between requests and between processes. */
static uint64_t chance_of(const struct intact_request *r, unsigned tries)
{
    struct prng p = {clock_seed() ^ ((uint64_t)(uintptr_t)r << 8) ^ tries};

    return prng_next(&p);
}

int64_t intact_request_retry_ms(struct intact_request *r, int64_t after_ms)
{
    const struct retry_rule *rule = &r->rule;
    unsigned told = atomic_load(&r->tries);
    unsigned tries = told > 0 ? told : 1;
    int64_t took = r->tried_at > 0 ? clock_boot_ms() - r->tried_at : 0;
    int64_t left = intact_request_time_left_ms(r) - took;

    if (intact_request_should_stop(r))
        return -1;
    int64_t wait = intact_retry_wait_ms(tries, rule->tries_max, rule->wait_ms, rule->max_wait_ms,
                                        left, chance_of(r, tries));
    if (wait >= 0 && after_ms > wait)
        wait = after_ms < left ? after_ms : -1;
    return wait;
}

bool intact_request_retry(struct intact_request *r, int64_t after_ms)
{
    int64_t wait = intact_request_retry_ms(r, after_ms);

    return wait >= 0 && intact_request_sleep(r, wait);
}

void intact_request_set_retry(struct intact_request *r, unsigned tries_max, int64_t wait_ms,
                              int64_t max_wait_ms)
{
    r->rule = (struct retry_rule){tries_max, within(wait_ms, 1), within(max_wait_ms, 1)};
}

/* Waits for a stop, or that long. The outbox is locked. */
static void doze(struct outbox *o, int64_t ms)
{
    const struct timespec t = clock_in_ms(CLOCK_MONOTONIC, ms);

    (void)pthread_cond_timedwait(&o->told, &o->lock, &t); /* the caller checks why it ended */
}

bool intact_request_sleep(struct intact_request *r, int64_t ms)
{
    struct outbox *o = r->outbox;
    int64_t until = clock_boot_ms() + max_i64(min_i64(ms, INT64_MAX / 2), 0);

    pthread_mutex_lock(&o->lock);
    while (!intact_request_should_stop(r)) {
        int64_t now = clock_boot_ms();
        if (now >= until)
            break;
        doze(o, min_i64(LOOK_MS, max_i64(min_i64(until, request_stop_at(r)) - now, 1)));
    }
    pthread_mutex_unlock(&o->lock);
    return !intact_request_should_stop(r);
}
