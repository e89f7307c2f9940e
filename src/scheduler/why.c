#include "scheduler/why.h"

#include "config/reader.h"
#include "scheduler/internal.h"
#include "store/row.h"

/* Whom the callbacks of the facts ask. */
struct witness {
    const struct scheduler *scheduler;
    const struct live *live; /* NULL: the task is in the store alone */
    struct slice task;
    int64_t now;
    struct arena *arena;
};

enum { WHO_MAX = 8 /* instances that are named */ };

static uint32_t open_of(const struct instance *in)
{
    uint32_t n = 0;

    for (const struct link *l = in->sent.next; l != &in->sent; l = l->next)
        n++;
    return n;
}

/* Where its places are taken: "i-1 (3), i-2 (1)". */
static void look_at_instances(const struct witness *y, const struct agent *a,
                              struct agent_view *ret)
{
    CLEANUP(buf_fini) struct buf who = {0};
    const struct instance *in = NULL;
    int named = 0;

    for (size_t k = 0; (in = map_next(&a->instances, &k));) {
        uint32_t open = open_of(in);
        int64_t seen_at = max_i64(in->seen_at, in->heartbeat_at);
        if (seen_at > ret->seen_at || !ret->seen.ptr) {
            ret->seen_at = seen_at;
            ret->seen = in->name;
        }
        ret->taken += open;
        if (open == 0 || ++named > WHO_MAX)
            continue;
        buf_fmt(&who, "%s%.*s (%u)", who.len ? ", " : "", SLICE_ARG(in->name), open);
    }
    if (named > WHO_MAX)
        buf_fmt(&who, " and %d more", named - WHO_MAX);
    ret->who = arena_copy(y->arena, buf_view(&who));
}

/* How many stand before it: in memory, by their place in the queue; those in the store were left
 * there because they come later, or are not known to us. */
static void look_at_queue(const struct witness *y, const struct agent *a, int step,
                          struct agent_view *ret)
{
    const struct live_step *ls = y->live && y->live->loaded ? &y->live->steps[step] : NULL;

    if (!ls || ls->queue_of != a) {
        ret->ahead = a->queue.len;
        ret->ahead_at_least = a->backlog;
        return;
    }
    for (size_t i = 0; i < a->queue.len; i++) {
        const struct heap_node *n = a->queue.nodes[i];
        ret->ahead += n->key < ls->want.key || (n->key == ls->want.key && n->seq < ls->want.seq);
    }
}

static struct slice name_like(const struct witness *y, struct slice name)
{
    const struct agent *a = NULL;

    for (size_t i = 0; (a = map_next(&y->scheduler->dispatch.agents, &i));)
        if (dispatch_is_connected(a, y->now) && !slice_eq(a->name, name)
            && name_is_near(name, a->name))
            return a->name;
    return SLICE_NONE;
}

static void see_agent(void *arg, int step, struct slice name, struct agent_view *ret)
{
    const struct witness *y = arg;
    const struct agent *a = map_get(&y->scheduler->dispatch.agents, name);

    *ret = (struct agent_view){0};
    if (a) {
        ret->connected = dispatch_is_connected(a, y->now);
        ret->free = !list_empty(&a->calls);
        ret->places = dispatch_places(a, y->now);
        ret->seen_at = a->seen_at;
        look_at_instances(y, a, ret);
        look_at_queue(y, a, step, ret);
    }
    if (!ret->connected)
        ret->alike = name_like(y, name);
}

static void see_attempt(void *arg, int step, const struct attempt *at, struct attempt_view *ret)
{
    const struct witness *y = arg;
    const struct pulse *p =
        scheduler_pulse(y->scheduler, y->task, (uint16_t)step, at->direction, at->number);
    const struct live_step *ls = y->live && y->live->loaded ? &y->live->steps[step] : NULL;

    *ret = (struct attempt_view){0};
    if (p)
        *ret = (struct attempt_view){.heartbeat_at = p->at,
                                     .progress = p->progress,
                                     .message = p->message,
                                     .seen_at = p->at};
    ret->silent_by = scheduler_silent_by(y->scheduler, y->task, (uint16_t)step);
    if (ls && ls->instance)
        ret->seen_at = max_i64(ls->instance->seen_at, ls->instance->heartbeat_at);
}

static enum owner owner_of(const struct scheduler *s, struct slice locked_by)
{
    if (!locked_by.ptr)
        return OWNER_NONE;
    if (slice_eq(locked_by, s->me))
        return OWNER_US;
    if (!slice_eq(owner_node(locked_by), owner_node(s->me)))
        return OWNER_OTHER;
    return owner_boot(locked_by) < s->config.boot ? OWNER_BEFORE_US : OWNER_OTHER;
}

void scheduler_facts(const struct scheduler *s, const struct task *t, const struct task_row *row,
                     struct arena *a, struct facts *ret)
{
    const struct live *l = map_get(&s->lives, t->id);
    struct witness *y = arena_alloc(a, sizeof *y);

    *y = (struct witness){s, l, t->id, scheduler_now(s), a};
    *ret = (struct facts){
        .now = y->now,
        .owner = owner_of(s, row->locked_by),
        .owner_name = row->locked_by,
        .waiting_for = row->waiting_for,
        .live = l != NULL,
        .draining = s->draining,
        .full = s->stats.live >= s->config.live_max,
        .agent = see_agent,
        .attempt = see_attempt,
        .arg = y,
    };
}
