/* Counts open attempts in their lane, agent and instance, also while this node does not know their
 * tasks. The limits themselves are in dispatch/limiter.c; start.c asks before each attempt. */

#include "tasks/limits.h"

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
    struct link link; /* of its live task, or of tasks.lost */
    struct slice id;  /* of its task; stored behind this struct */
    struct lane *lane;
    uint16_t step;
    uint32_t item; /* in that slot */
    enum direction direction;
    uint32_t attempt;
    int64_t complete_by;
    int64_t check_at; /* in tasks.lost: when to check whether it has ended */
};

enum { CHECK_MS = 10000 };

void limits_open(struct tasks *ts, struct live_step *ls, struct lane *lane, struct instance *i)
{
    ASSERT(!ls->counted);
    ASSERT(!ls->queue_of);
    ASSERT(lane->agent == i->agent);
    ls->instance = i;
    ls->counted = lane;
    list_push(&i->sent, &ls->sent);
    if (i->open++ == 0)
        health_moved(&i->health, tasks_now(ts));
    lane_open(lane);
    ts->counts.open_attempts++;
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
    LIST_FOREACH (link, after, &l->active) {
        const struct live_step *ls = CONTAINER_OF(link, struct live_step, active);
        const struct attempt *a = step_open_attempt(&l->task.steps[ls->step]);
        if (!ls->counted || !a || !ls->counted->agent->limited)
            continue;
        struct counted *c = malloc(sizeof *c + l->id.len);
        ASSERT(c);
        memcpy((char *)(c + 1), l->id.ptr, l->id.len);
        *c = (struct counted){.id = {(char *)(c + 1), l->id.len},
                              .lane = ls->counted,
                              .step = ls->step,
                              .item = l->task.steps[ls->step].item,
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
        c->step < task_unit_count(&l->task) ? step_open_attempt(&l->task.steps[c->step]) : NULL;

    return a && !a->elsewhere && a->direction == c->direction && a->number == c->attempt
           && l->task.steps[c->step].item == c->item;
}

void limits_kept(struct tasks *ts, struct live *l)
{
    LIST_FOREACH (link, after, &l->counted) {
        struct counted *c = CONTAINER_OF(link, struct counted, link);
        if (live_is_ours(ts, l) || !l->task.locked_by.ptr || !is_still_open(l, c)) {
            counted_free(c);
            continue;
        }
        link_remove(&c->link);
        c->check_at = min_i64(tasks_now(ts) + CHECK_MS, c->complete_by);
        list_push(&ts->lost, &c->link);
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

void limits_forget_lost(struct tasks *ts)
{
    free_all(&ts->lost);
}

/* Reads the task's row; the attempt counts with its task until then. */
static void read_again(struct tasks *ts, struct counted *c)
{
    struct live *l = live_find(ts, c->id);

    if (!l && ts->counts.live < ts->live_max) {
        live_read(ts, c->id);
        l = live_find(ts, c->id);
    }
    c->check_at = min_i64(tasks_now(ts) + CHECK_MS, c->complete_by);
    if (!l)
        return; /* there is no room for it now */
    link_remove(&c->link);
    list_push(&l->counted, &c->link);
    if (l->loaded)
        limits_kept(ts, l);
}

void limits_expire(struct tasks *ts, int64_t now)
{
    LIST_FOREACH (link, after, &ts->lost) {
        struct counted *c = CONTAINER_OF(link, struct counted, link);
        if (c->complete_by <= now)
            counted_free(c);
        else if (c->check_at <= now)
            read_again(ts, c);
    }
}

int64_t limits_next(const struct tasks *ts)
{
    int64_t at = 0;

    for (struct link *l = ts->lost.next; l != &ts->lost; l = l->next) {
        const struct counted *c = CONTAINER_OF(l, struct counted, link);
        at = at ? min_i64(at, c->check_at) : c->check_at;
    }
    return at;
}
