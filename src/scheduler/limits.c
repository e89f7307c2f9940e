#include "scheduler/internal.h"

#include <stdlib.h>

/*
 * What is at work counts where the limits are: in its lane, its agent, its instance. A limit holds
 * through everything that makes us forget for a while what is at work:
 *
 *   - a task that is read again (after a conflict, say) counts as it did until its row is here;
 *   - after a start, after a claim of unknown outcome, and when another node has died, nothing
 *     begins that has a limit until all that is ours was found;
 *   - what another node took from us counts there now, but that node had its part of the limit in
 *     use: here it counts until its complete-by, when it must be over.
 */

/* An attempt that counts, but is not in its instance's list. */
struct counted {
    struct link link; /* of its live task, or of scheduler.lost */
    struct lane *lane;
    uint16_t step;
    enum direction direction;
    uint32_t attempt;
    int64_t complete_by;
};

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
    for (uint16_t i = 0; l->loaded && i < l->task.step_count; i++) {
        const struct live_step *ls = &l->steps[i];
        const struct attempt *a = step_open_attempt(&l->task.steps[i]);
        if (!ls->counted || !a || !ls->counted->agent->limited)
            continue;
        struct counted *c = malloc(sizeof *c);
        ASSERT(c);
        *c = (struct counted){.lane = ls->counted,
                              .step = i,
                              .direction = a->direction,
                              .attempt = a->number,
                              .complete_by = a->complete_by};
        list_push(&l->counted, &c->link);
        lane_open(c->lane);
    }
}

/* At work, that is: one that is elsewhere is nothing to a limit. */
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
        list_push(&s->lost, &c->link);
    }
}

void limits_forget(struct live *l)
{
    for (struct link *first = NULL; (first = list_first(&l->counted));)
        counted_free(CONTAINER_OF(first, struct counted, link));
}

void limits_expire(struct scheduler *s, int64_t now)
{
    LIST_FOREACH (link, after, &s->lost) {
        struct counted *c = CONTAINER_OF(link, struct counted, link);
        if (c->complete_by <= now)
            counted_free(c);
    }
}

int64_t limits_next(const struct scheduler *s)
{
    int64_t at = 0;

    for (struct link *l = s->lost.next; l != &s->lost; l = l->next) {
        const struct counted *c = CONTAINER_OF(l, struct counted, link);
        at = at ? min_i64(at, c->complete_by) : c->complete_by;
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
