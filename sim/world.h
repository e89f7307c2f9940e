#ifndef SIM_WORLD_H
#define SIM_WORLD_H

/*
 * The simulator's world: virtual time, one seed, and no other source of order. Everything is an
 * occurrence in one heap, ordered by (at, seq); the same seed gives the same run, byte for byte,
 * with any compiler.
 *
 * A run has two acts. In the first, messages are lost, duplicated and delayed; agents, nodes and
 * the store fail; no rule may be broken (safety). In the second (`calm`) faults stop, and
 * everything begun must end in bounded time (liveness).
 */

#include "base/arena.h"
#include "base/prng.h"
#include "virtual/agenda.h"

struct world {
    uint64_t seed;
    struct prng prng;
    int64_t now;
    int64_t ahead;   /* how far the store's clock is ahead */
    bool set_back;   /* it was set back */
    int64_t calm_at; /* start of the second act */
    bool calm;
    bool loud;          /* print every event as it happens */
    struct arena arena; /* of the run: occurrences may point into it */
    struct agenda agenda;
    uint64_t occurrences, second; /* second: their number at the start of this second */
    uint64_t digest;              /* of all traces */
};

extern struct world world;

/* The time of rows and deadlines. */
static inline int64_t store_now(void)
{
    return world.now + world.ahead;
}

void world_begin(uint64_t seed, bool loud);
void world_end(void);

/* Calls `happen(arg, n)` after `delay_ms`. */
void later(int64_t delay_ms, happen_fn *happen, void *arg, uint64_t n);

/* Runs the next occurrence. False: it is after `until`, or there is none. */
bool world_step(int64_t until);

/* Random draws. Chances are per mille. `spread` favours short lengths: each order of magnitude is
 * equally likely. */
bool chance(uint32_t per_mille);
uint32_t below(uint32_t bound);
int64_t between(int64_t least, int64_t most);
int64_t spread(int64_t least, int64_t most);

/* Text that lives as long as the run. */
struct slice text_of(const char *fmt, ...) PRINTF(1, 2);

/* Records an event for the digest and the story. */
void trace(const char *fmt, ...) PRINTF(1, 2);

/* The same for the story only: for events that do not change the run. */
void remark(const char *fmt, ...) PRINTF(1, 2);

/* Where a broken rule is also stored, or NULL. */
extern char *broken_rule;
extern size_t broken_rule_size;

/* A rule was broken: prints the story and ends the process. */
_Noreturn void broken(const char *rule, const char *fmt, ...) PRINTF(2, 3);

#endif
