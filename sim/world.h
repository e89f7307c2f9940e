#ifndef SIM_WORLD_H
#define SIM_WORLD_H

/*
 * The simulator's world: virtual time, one seed, and no other source of order. Everything that
 * happens is an occurrence in one heap, ordered by (at, seq); the same seed is the same run, to the
 * byte, whatever the compiler.
 *
 * A run has two acts. In the first, messages are lost, doubled and delayed, agents, node and store
 * fail; nothing wrong may happen (safety). In the second (`calm`) faults stop, and all that was
 * begun must come to an end in bounded time (liveness).
 */

#include "base/arena.h"
#include "base/heap.h"
#include "base/prng.h"

struct world {
    uint64_t seed;
    struct prng prng;
    int64_t now;
    int64_t ahead;   /* the store's clock is so far ahead of that */
    bool set_back;   /* it was set back */
    int64_t calm_at; /* when the second act begins */
    bool calm;
    bool loud;          /* print every event as it happens */
    struct arena arena; /* of the run: what occurrences point to lives as long as it */
    struct heap heap;
    uint64_t occurrences, second; /* second: how many there were before the present one */
    uint64_t digest;              /* of all that was traced */
};

extern struct world world;

/* The time of rows and deadlines. */
static inline int64_t store_now(void)
{
    return world.now + world.ahead;
}

void world_begin(uint64_t seed, bool loud);
void world_end(void);

/* `happen(arg, n)` will be called `delay_ms` from now. */
void later(int64_t delay_ms, void (*happen)(void *arg, uint64_t n), void *arg, uint64_t n);

/* The next occurrence happens. False: it lies behind `until`, or there is none. */
bool world_step(int64_t until);

/* Draws. Chances are per mille. `spread` favours short lengths: each order of magnitude counts the
 * same. */
bool chance(uint32_t per_mille);
uint32_t below(uint32_t bound);
int64_t between(int64_t least, int64_t most);
int64_t spread(int64_t least, int64_t most);

/* Text that lives as long as the run. */
struct slice text_of(const char *fmt, ...) PRINTF(1, 2);

/* An event, for the digest and for the story of a failure. */
void trace(const char *fmt, ...) PRINTF(1, 2);

/* The same, for the story alone: what may come or not without changing the run. */
void remark(const char *fmt, ...) PRINTF(1, 2);

/* Where a broken rule is also written, if anywhere. */
extern char *broken_rule;
extern size_t broken_rule_size;

/* A rule was broken: tells the story and ends the process. */
_Noreturn void broken(const char *rule, const char *fmt, ...) PRINTF(2, 3);

#endif
