#include "scheduler/internal.h"

#include <stdlib.h>

/*
 * Open attempts count in their lane, agent and instance, where the limits are. A limit holds even
 * while this node does not know all its open attempts:
 *
 *   - a task that is read again (after a conflict, for example) counts as before until its row is
 *     here;
 *   - after a start, after a claim of unknown outcome, and when another node has died, nothing with
 *     a limit starts until all open attempts of this node are found;
 *   - an attempt that another node took over counts there, but that node had its share of the limit
 *     in use. So it counts here, too, until it has ended: that is checked now and then, and it ends
 *     at its complete-by at the latest.
 */

/* An attempt that counts, but is not in its instance's list. */
struct counted {
    struct link link; /* of its live task, or of scheduler.lost */
    struct slice id;  /* of its task; stored behind this struct */
    struct lane *lane;
    uint16_t step;
    enum direction direction;
    uint32_t attempt;
    int64_t complete_by;
    int64_t look_at; /* in scheduler.lost: when to check whether it has ended */
};

enum { LOOK_MS = 10000 };

void limits_open(struct scheduler *s, struct live_step *ls, struct lane *lane, struct instance *i)
{
    ASSERT(!ls->counted);
    ls->instance = i;
    ls->counted = lane;
    list_push(&i->sent, &ls->sent);
    if (i->open++ == 0)
        health_moved(&i->health, scheduler_now(s));
    lane_open(lane);
    s->stats.open_attempts++;
}

void limits_close(struct live_step *ls)
{
    if (!ls->counted)
        return;
    ASSERT(ls->instance->open > 0);
    link_remove(&ls->sent);
    ls->instance->open--;
    lane_close(ls->counted);
    ls->counted = NULL;
}

static void counted_free(struct counted *c)
{
    link_remove(&c->link);
    lane_close(c->lane);
    free(c);
}

void limits_keep(struct live *l)
{
    LIST_FOREACH (link, after, &l->astir) {
        const struct live_step *ls = CONTAINER_OF(link, struct live_step, astir);
        const struct attempt *a = step_open_attempt(&l->task.steps[ls->step]);
        if (!ls->counted || !a || !ls->counted->agent->limited)
            continue;
        struct counted *c = malloc(sizeof *c + l->id.len);
        ASSERT(c);
        memcpy((char *)(c + 1), l->id.ptr, l->id.len);
        *c = (struct counted){.id = {(char *)(c + 1), l->id.len},
                              .lane = ls->counted,
                              .step = ls->step,
                              .direction = a->direction,
                              .attempt = a->number,
                              .complete_by = a->complete_by};
        list_push(&l->counted, &c->link);
        lane_open(c->lane);
    }
}

/* An attempt that is elsewhere does not count against a limit. */
static bool is_still_open(const struct live *l, const struct counted *c)
{
    const struct attempt *a =
        c->step < l->task.step_count ? step_open_attempt(&l->task.steps[c->step]) : NULL;

    return a && !a->elsewhere && a->direction == c->direction && a->number == c->attempt;
}

void limits_kept(struct scheduler *s, struct live *l)
{
    LIST_FOREACH (link, after, &l->counted) {
        struct counted *c = CONTAINER_OF(link, struct counted, link);
        if (live_is_ours(s, l) || !l->task.locked_by.ptr || !is_still_open(l, c)) {
            counted_free(c);
            continue;
        }
        link_remove(&c->link);
        c->look_at = min_i64(scheduler_now(s) + LOOK_MS, c->complete_by);
        list_push(&s->lost, &c->link);
    }
}

static void free_all(struct link *list)
{
    for (struct link *first = NULL; (first = list_first(list));)
        counted_free(CONTAINER_OF(first, struct counted, link));
}

void limits_forget(struct live *l)
{
    free_all(&l->counted);
}

void limits_forget_lost(struct scheduler *s)
{
    free_all(&s->lost);
}

/* Reads the task's row; the attempt counts with its task until then. */
static void look(struct scheduler *s, struct counted *c)
{
    struct live *l = live_find(s, c->id);

    if (!l && s->stats.live < s->config.live_max) {
        live_read(s, c->id);
        l = live_find(s, c->id);
    }
    c->look_at = min_i64(scheduler_now(s) + LOOK_MS, c->complete_by);
    if (!l)
        return; /* there is no room for it now */
    link_remove(&c->link);
    list_push(&l->counted, &c->link);
    if (l->loaded)
        limits_kept(s, l);
}

void limits_expire(struct scheduler *s, int64_t now)
{
    LIST_FOREACH (link, after, &s->lost) {
        struct counted *c = CONTAINER_OF(link, struct counted, link);
        if (c->complete_by <= now)
            counted_free(c);
        else if (c->look_at <= now)
            look(s, c);
    }
}

int64_t limits_next(const struct scheduler *s)
{
    int64_t at = 0;

    for (struct link *l = s->lost.next; l != &s->lost; l = l->next) {
        const struct counted *c = CONTAINER_OF(l, struct counted, link);
        at = at ? min_i64(at, c->look_at) : c->look_at;
    }
    return at;
}

void limits_look(struct scheduler *s)
{
    if (s->uncounted && !s->taking_over && !s->reclaiming && !s->looking && !s->job
        && list_empty(&s->loads) && list_empty(&s->puzzled))
        s->uncounted = false;
}

bool limits_may_start(const struct scheduler *s, const struct agent *a)
{
    bool full = s->stats.live >= 2 * s->config.live_max; /* nothing is taken over */

    return !a->limited || ((full || !s->uncounted) && (!s->config.shared || shared_may_claim(s)));
}

void limits_share(struct scheduler *s, const struct survey *v)
{
    dispatch_share(&s->dispatch, (struct share){v->schedulers, v->schedulers_before},
                   scheduler_now(s));
}
