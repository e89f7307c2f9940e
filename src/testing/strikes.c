/* Lets faults strike in a run (fault.h): kills the server at a transaction, has operators help a
 * task that stopped, and knows which services are down. What becomes of requests is decided by
 * agent_player.c, of signals and votes by acts.c. */

#include "testing/strikes.h"

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

/* While its clock is set, a server is down for that long. */
#define CLOCK_DOWN_MS 2000

static void tell_death(struct trial *t, const struct fault *f, const char *when)
{
    CLEANUP(buf_fini) struct buf length = {0};

    duration_tell(&length, f->ms);
    if (f->kind == FAULT_CLOCK_AHEAD || f->kind == FAULT_CLOCK_BACK)
        timeline_add(&t->timeline, trial_now(t), "the server is killed %s, and its clock set %s %s",
                     when, length.ptr, f->kind == FAULT_CLOCK_AHEAD ? "ahead" : "back");
    else
        timeline_add(&t->timeline, trial_now(t), "the server is killed %s", when);
}

enum engine_fate strikes_commit(void *arg, struct engine_outage *ret)
{
    struct trial *t = arg;
    const struct fault_point p = {.place = PLACE_COMMIT, .number = ++t->commits};
    struct fault f;

    if (!strikes_at(t, &p, &f))
        return ENGINE_STORES;
    bool is_before = f.kind == FAULT_KILLED_BEFORE;
    tell_death(t, &f, is_before ? "before this is stored" : "after this was stored");
    *ret = (struct engine_outage){.down_ms = CLOCK_DOWN_MS};
    if (f.kind == FAULT_CLOCK_AHEAD)
        ret->clock_ms = f.ms;
    else if (f.kind == FAULT_CLOCK_BACK)
        ret->clock_ms = -f.ms;
    else
        ret->down_ms = f.ms;
    return is_before ? ENGINE_DIES_BEFORE : ENGINE_DIES_AFTER;
}

void strikes_started(void *arg)
{
    struct trial *t = arg;

    timeline_add(&t->timeline, trial_now(t), "the server starts again");
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
