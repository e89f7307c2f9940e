/* Lets faults strike in a run (fault.h): kills the server at a transaction, has operators help a
 * task that stopped, and knows which services are down. What becomes of requests is decided by
 * agent_player.c, of signals and votes by acts.c. */

#include "testing/strikes.h"

#include <stdio.h>

#include "base/when.h"
#include "tasks/ask.h"

/* A time in which all requests to an agent fail. */
struct outage {
    struct slice agent;
    int64_t until;
    struct outage *next;
};

bool strikes_at(struct trial *t, const struct fault_point *p, struct fault *ret)
{
    return t->faults && t->faults->strikes(t->faults->arg, p, ret);
}

bool strikes_from_list(void *arg, const struct fault_point *p, struct fault *ret)
{
    const struct fault *f = fault_at(arg, p);

    if (!f || !fault_fits(fault_spec(f->kind), p))
        return false;
    *ret = *f;
    return true;
}

/* ---- the server ---- */

enum { NAME_SIZE = 24 };

/* While its clock is set, a server is down for that long. */
#define CLOCK_DOWN_MS 2000

/* "the server", or "node n1" of two. */
static const char *name_of(const struct trial *t, struct slice node, char ret[NAME_SIZE])
{
    (void)snprintf(ret, NAME_SIZE, "node %.*s", SLICE_ARG(node));
    return t->has_nodes ? ret : "the server";
}

static bool sets_clock(const struct fault *f)
{
    return f->kind == FAULT_CLOCK_AHEAD || f->kind == FAULT_CLOCK_BACK;
}

static enum engine_fate fate_of(const struct fault *f)
{
    if (f->kind == FAULT_NODE_HANGS)
        return ENGINE_HANGS_AFTER;
    bool is_before = f->kind == FAULT_KILLED_BEFORE || f->kind == FAULT_NODE_KILLED_BEFORE;
    return is_before ? ENGINE_DIES_BEFORE : ENGINE_DIES_AFTER;
}

static void tell_death(struct trial *t, const struct fault *f, struct slice node)
{
    char name[NAME_SIZE];
    const char *who = name_of(t, node, name);
    const char *when =
        fate_of(f) == ENGINE_DIES_BEFORE ? "before this is stored" : "after this was stored";
    CLEANUP(buf_fini) struct buf length = {0};

    duration_tell(&length, f->ms);
    if (sets_clock(f))
        timeline_add(&t->timeline, trial_now(t), "%s is killed %s, and its clock set %s %s", who,
                     when, length.ptr, f->kind == FAULT_CLOCK_AHEAD ? "ahead" : "back");
    else
        timeline_add(&t->timeline, trial_now(t), "%s %s %s", who,
                     f->kind == FAULT_NODE_HANGS ? "hangs" : "is killed", when);
}

enum engine_fate strikes_commit(void *arg, struct slice node, struct engine_outage *ret)
{
    struct trial *t = arg;
    const struct fault_point p = {.place = PLACE_COMMIT, .number = ++t->commits};
    struct fault f;

    if (!strikes_at(t, &p, &f))
        return ENGINE_STORES;
    tell_death(t, &f, node);
    *ret = (struct engine_outage){.down_ms = sets_clock(&f) ? CLOCK_DOWN_MS : f.ms};
    if (sets_clock(&f))
        ret->clock_ms = f.kind == FAULT_CLOCK_AHEAD ? f.ms : -f.ms;
    return fate_of(&f);
}

void strikes_lives(void *arg, enum engine_life what, struct slice node)
{
    static const char *const words[] = {
        [ENGINE_STARTS] = "starts again",
        [ENGINE_WAKES] = "goes on, with what it knew",
        [ENGINE_TAKES_OVER] = "takes over what the other node had in work",
    };
    struct trial *t = arg;
    char name[NAME_SIZE];

    timeline_add(&t->timeline, trial_now(t), "%s %s", name_of(t, node, name), words[what]);
    engine_look(t->engine, TRIAL_ID);
}

/* ---- services ---- */

void strikes_put_down(struct trial *t, struct slice agent, int64_t ms)
{
    struct outage *o = arena_alloc(&t->arena, sizeof *o);

    *o = (struct outage){agent, trial_now(t) + ms, t->outages};
    t->outages = o;
}

bool strikes_is_down(const struct trial *t, struct slice agent)
{
    for (const struct outage *o = t->outages; o; o = o->next)
        if (slice_eq(o->agent, agent) && trial_now(t) < o->until)
            return true;
    return false;
}

/* ---- operators ---- */

/* Whoever skips an undo has done it by hand. */
static void undo_by_hand(struct trial *t, struct slice name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (!world_undo_by_hand(&t->world, name))
        return;
    world_write(&t->world, &b);
    timeline_add(&t->timeline, trial_now(t), "the operator undoes %.*s by hand: the world is %.*s",
                 SLICE_ARG(name), SLICE_ARG(timeline_short(&t->arena, buf_view(&b))));
}

void strikes_help(struct trial *t, struct slice failed, bool is_undo)
{
    const struct fault_point p = {.place = PLACE_STOP, .number = ++t->stops};
    struct act a = {.kind = ACT_VERB, .what = "operator", .reason = SLICE("test")};
    struct fault f;

    if (!strikes_at(t, &p, &f))
        return;
    a.verb = f.kind == FAULT_RETRIED ? ASK_RETRY : f.kind == FAULT_SKIPPED ? ASK_SKIP : ASK_UNDO;
    if (f.kind == FAULT_SKIPPED) {
        if (!failed.ptr)
            return;
        a.step = failed;
        if (is_undo)
            undo_by_hand(t, failed);
    }
    acts_add(t, &a, trial_now(t) + f.ms);
}
