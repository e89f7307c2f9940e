/*
 * Wakes the event loop for its turns: after each round of arrivals, and when something is due. It
 * knows nothing of what a turn does (server/parts.c).
 */

#include "node/turns.h"

#include "base/base.h"

static void checked(uv_check_t *c)
{
    const struct turns *t = c->data;

    t->take(t->arg);
}

static void go_round(uv_idle_t *i)
{
    (void)i; /* the turn is taken behind the arrivals */
}

static void timer_fired(uv_timer_t *timer)
{
    struct turns *t = timer->data;

    t->at = 0;
    (void)uv_idle_start(&t->soon, go_round);
}

void turns_begin(struct turns *t, uv_loop_t *loop, void (*take)(void *arg), void *arg)
{
    t->take = take;
    t->arg = arg;
    int rc = uv_check_init(loop, &t->check) | uv_timer_init(loop, &t->timer)
             | uv_idle_init(loop, &t->soon);
    t->check.data = t->timer.data = t->soon.data = t;
    rc |= uv_check_start(&t->check, checked);
    ASSERT(rc == 0);
}

void turns_next(struct turns *t, int64_t at, int64_t now)
{
    if (at != 0 && at <= now) {
        (void)uv_idle_start(&t->soon, go_round);
        return;
    }
    (void)uv_idle_stop(&t->soon);
    if (at == t->at)
        return;
    t->at = at;
    if (at == 0) {
        (void)uv_timer_stop(&t->timer);
        return;
    }
    uv_update_time(t->timer.loop);
    (void)uv_timer_start(&t->timer, timer_fired, (uint64_t)(at - now), 0);
}

static void close_one(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

void turns_close(struct turns *t)
{
    close_one((uv_handle_t *)&t->check);
    close_one((uv_handle_t *)&t->timer);
    close_one((uv_handle_t *)&t->soon);
}
