/* Virtual time, the heap of occurrences, random draws, and the trace that tells the story of a
 * failure (world.h). Everything random in a run comes from here, or from the seed, so that a run
 * is repeatable byte for byte. No clock is read. */

#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/when.h"

enum { RING_LINES = 200, LINE_SIZE = 240, SECOND_MAX = 200000, ALL_MAX = 3000000 };

struct world world;
char *broken_rule;
size_t broken_rule_size;

/* The last events, for the story. */
static struct {
    char lines[RING_LINES][LINE_SIZE];
    uint64_t count;
} ring;

static void story(void)
{
    uint64_t from = ring.count > RING_LINES ? ring.count - RING_LINES : 0;

    for (uint64_t i = from; i < ring.count && !world.loud; i++)
        fprintf(stderr, "%s\n", ring.lines[i % RING_LINES]);
    fprintf(stderr, "seed %" PRIu64 ", act %d, %.3f s after its begin\n", world.seed,
            world.calm ? 2 : 1, (double)(world.now - INT64_C(1700000000000)) / 1000);
}

/* With a sanitizer, prints the story of a crash, too. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

void world_begin(uint64_t seed, bool loud)
{
    world = (struct world){.seed = seed, .now = INT64_C(1700000000000), .loud = loud};
    world.prng.state = hash_stable(&seed, sizeof seed); /* neighbours have nothing in common */
    world.digest = UINT64_C(0xcbf29ce484222325);
    ring.count = 0;
    assert_story = story;
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(story);
}

void world_end(void)
{
    agenda_fini(&world.agenda);
    arena_fini(&world.arena);
}

void later(int64_t delay_ms, happen_fn *happen, void *arg, uint64_t n)
{
    ASSERT(delay_ms >= 0);
    agenda_add(&world.agenda, world.now + delay_ms, happen, arg, n);
}

bool world_step(int64_t until)
{
    struct occurrence next;

    if (!agenda_take(&world.agenda, until, &next))
        return false;
    ASSERT(next.node.key >= world.now);
    if (next.node.key / MS_PER_S != world.now / MS_PER_S)
        world.second = world.occurrences;
    world.now = next.node.key;
    if (++world.occurrences - world.second > SECOND_MAX || world.occurrences > ALL_MAX)
        broken("the world comes to rest", "%" PRIu64 " occurrences", world.occurrences);
    next.happen(next.arg, next.n);
    return true;
}

bool chance(uint32_t per_mille)
{
    return prng_below(&world.prng, 1000) < per_mille;
}

uint32_t below(uint32_t bound)
{
    return prng_below(&world.prng, bound);
}

int64_t between(int64_t least, int64_t most)
{
    ASSERT(least <= most);
    return least + (int64_t)(prng_next(&world.prng) % (uint64_t)(most - least + 1));
}

int64_t spread(int64_t least, int64_t most)
{
    int64_t top = least > 0 ? least : 1;
    int decades = 0;

    ASSERT(least <= most);
    for (; top < most; top *= 4)
        decades++;
    top = least > 0 ? least : 1;
    for (uint32_t k = below((uint32_t)decades + 1); k > 0; k--)
        top *= 4;
    return between(least, min_i64(top, most));
}

struct slice text_of(const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ASSERT(len >= 0);
    ASSERT((size_t)len < sizeof text);
    return arena_copy(&world.arena, (struct slice){text, (size_t)len});
}

/* Returns the line in the ring. */
static __attribute__((format(printf, 1, 0))) const char *tell(const char *fmt, va_list args)
{
    char *line = ring.lines[ring.count++ % RING_LINES];
    int64_t ms = world.now - INT64_C(1700000000000);

    int at = snprintf(line, LINE_SIZE, "%6" PRId64 ".%03d ", ms / 1000, (int)(ms % 1000));
    ASSERT(at > 0);
    (void)vsnprintf(line + at, LINE_SIZE - (size_t)at, fmt, args); /* long ones are cut */
    if (world.loud)
        fprintf(stderr, "%s\n", line);
    return line;
}

void trace(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const char *line = tell(fmt, args);
    va_end(args);
    for (const char *p = line; *p; p++)
        world.digest = (world.digest ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
}

void remark(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)tell(fmt, args);
    va_end(args);
}

void broken(const char *rule, const char *fmt, ...)
{
    char text[600];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    story();
    fprintf(stderr, "broken: %s: %s\n", rule, text);
    if (broken_rule)
        (void)snprintf(broken_rule, broken_rule_size, "%s: %s", rule, text);
    fflush(stderr);
    _Exit(1);
}
