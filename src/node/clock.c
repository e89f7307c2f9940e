/*
 * The times of a node. All that expires goes by the store's time; waiting goes by the steady clock.
 * The wall clock is read at the start, and afterwards only to log how far it is off.
 */

#include "node/clock.h"

#include "base/clock.h"
#include "base/log.h"
#include "node/node.h"
#include "node/virtual_time.h"

enum {
    CLOCK_LOOK_MS = 1000,
    CLOCK_JUMP_MS = 5000,
    CLOCK_BEHIND_MS = 1000,     /* is logged */
    CLOCK_BELIEVE_MS = 86400000 /* of a past that lies so far ahead nothing is believed */
};

int64_t wall_now_ms(void)
{
    return clock_wall_ms();
}

int64_t server_steady(void *arg)
{
    (void)arg;
    return clock_boot_ms();
}

/* The store's time. A store without one goes by the wall time of the start, continued by the steady
 * clock: nothing expires because the wall clock was set. */
int64_t server_now(void *arg)
{
    const struct server *sv = arg;

    struct store *st = sv->config.store;

    if (st->ops->now)
        return st->ops->now(st);
    return server_steady(NULL) + sv->clock.wall_minus_steady_ms;
}

int64_t server_now_elapsing(void *arg)
{
    const struct server *sv = arg;

    if (!sv->config.virtual_time)
        return server_now(arg);
    return server_steady(NULL) + sv->clock.wall_minus_steady_ms
           + atomic_load(&sv->config.virtual_time->jumped_ms);
}

int64_t server_of_elapsing(struct server *sv, int64_t at)
{
    if (at == 0 || !sv->config.virtual_time)
        return at;
    return at - server_now_elapsing(sv) + server_now(sv);
}

int64_t server_turn_now(const struct server *sv)
{
    if (sv->config.virtual_time)
        return atomic_load(&sv->config.virtual_time->now_ms);
    return (int64_t)uv_now(&sv->loop) + sv->clock.wall_minus_steady_ms;
}

int64_t server_now_at_least(struct server *sv)
{
    if (sv->config.virtual_time)
        return server_now(sv);
    return min_i64(server_now(sv), wall_now_ms());
}

/* Where our time begins. If the wall clock was set back since the server last ran, it goes on from
 * where it stood then: what is stored would otherwise not be due for just as long. Further ahead
 * than a day it must have been wrong then, and not now. */
static int64_t time_at_start(const struct server *sv)
{
    struct store *st = sv->config.store;
    int64_t wall = sv->config.virtual_time ? server_now((void *)(uintptr_t)sv) : wall_now_ms();
    int64_t used_until = st->ops->used_until(st);
    int64_t behind = used_until - wall;
    bool believed = behind <= CLOCK_BELIEVE_MS;

    if (behind >= CLOCK_BEHIND_MS)
        log_line(LOG_WARN, "event=clock_behind ms=%" PRId64 " going_by=%s", behind,
                 believed ? "store" : "clock");
    return believed ? max_i64(wall, used_until) : wall;
}

void clock_start(struct server *sv)
{
    struct node_clock *c = &sv->clock;

    c->wall_minus_steady_ms = time_at_start(sv) - server_steady(NULL);
    c->logged_off_ms = min_i64(0, wall_now_ms() - server_steady(NULL) - c->wall_minus_steady_ms);
}

/* The wall clock is read only to log a jump, for readers of the log who compare it with others, and
 * of times in the API. A clock that drifts is logged whenever it has drifted this far. */
void clock_check(struct server *sv)
{
    int64_t steady = server_steady(NULL);

    if (steady < sv->clock.check_at || sv->config.virtual_time)
        return;
    sv->clock.check_at = steady + CLOCK_LOOK_MS;
    int64_t off = wall_now_ms() - steady - sv->clock.wall_minus_steady_ms;
    int64_t jump = off - sv->clock.logged_off_ms;
    if (jump >= -CLOCK_JUMP_MS && jump <= CLOCK_JUMP_MS)
        return;
    sv->clock.logged_off_ms = off;
    log_line(LOG_WARN, "event=clock_jump ms=%" PRId64 " off_ms=%" PRId64, jump, off);
}
