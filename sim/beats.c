/* Sends heartbeats beside the simulation: lost, late, duplicated and forged ones (beats.h). They
 * come from a random source of their own and are not part of the digest, because they must change
 * nothing; check_told.c checks that. */

#include "sim/beats.h"

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

enum { BEATS_OF_ONE = 5, NEXT_MS = 8000, LATE_MS = 60000 };

static struct prng prng;
static bool on;

/* A heartbeat in transit: self-contained, because its gig may be gone. */
struct sent_beat {
    struct slice token, instance;
    uint32_t service;
};

void beats_begin(bool wanted)
{
    on = wanted;
    prng = (struct prng){.state = hash_stable(&world.seed, sizeof world.seed) ^ 0xbea7};
}

static bool sometimes(uint32_t per_mille)
{
    return prng_below(&prng, 1000) < per_mille;
}

static int64_t some_ms(uint32_t most)
{
    return 1 + prng_below(&prng, most);
}

static void arrives(void *arg, uint64_t ignored)
{
    struct sent_beat *b = arg;
    struct arena a = {0};
    struct node *n = node_named(prng_below(&prng, nodes.names));
    (void)ignored;

    if (!n || !node_is_up(n) || !node_is_awake(n) || !node_hears(n))
        return; /* lost */
    struct heartbeat beat = {.token = b->token};
    struct heartbeats call = {.agent_name = text_of("a%u", b->service),
                              .instance_name = b->instance,
                              .list = &beat,
                              .count = 1,
                              .arena = &a};
    if (sometimes(500))
        beat.progress = SLICE("{\"done\": 1}");
    if (sometimes(500))
        beat.message = SLICE("half way");
    check_before_beat(n);
    scheduler_heartbeats(n->scheduler, &call);
    check_beat(n, &call, &beat);
    arena_fini(&a);
}

/* Like an attacker or a bug would: correct except for the MAC. */
static struct slice forged(struct slice token)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, token);
    b.ptr[b.len - 1 - prng_below(&prng, 8)] ^= 1;
    return arena_copy(&world.arena, buf_view(&b));
}

static void send(const struct gig *g)
{
    struct sent_beat *b = arena_alloc(&world.arena, sizeof *b);

    *b = (struct sent_beat){.token = g->token,
                            .instance = arena_copy(&world.arena, slice_of(g->worker->name)),
                            .service = g->worker->service};
    if (sometimes(50))
        b->token = forged(g->token);
    if (sometimes(50))
        b->instance = SLICE("somebody-else");
    for (int copies = sometimes(100) ? 2 : 1; copies > 0; copies--)
        if (!sometimes(100))
            later(sometimes(200) ? some_ms(LATE_MS) : some_ms(4), arrives, b, 0);
}

/* Some go on after the worker is dead or has answered. */
static void beats(void *arg, uint64_t left)
{
    const struct gig *g = arg;

    if (g->dead && !sometimes(300))
        return;
    send(g);
    if (left > 1)
        later(some_ms(sometimes(500) ? 50 : NEXT_MS), beats, arg, left - 1);
}

void beats_follow(struct gig *g)
{
    if (!on)
        return;
    uint64_t count = 1 + prng_below(&prng, BEATS_OF_ONE);
    later(some_ms(20), beats, g, count);
}
