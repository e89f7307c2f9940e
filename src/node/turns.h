#ifndef NODE_TURNS_H
#define NODE_TURNS_H

/*
 * When the loop takes its turns: after each round of arrivals, and when something is due by itself.
 * Between two turns there is always a round of arrivals, also if the second one is due at once: a
 * timer of no length would not do, libuv looks at these again before it looks at anything else.
 */

#include <stdint.h>
#include <uv.h>

struct turns {
    uv_check_t check;
    uv_timer_t timer;
    uv_idle_t soon; /* is at work: the loop does not wait for arrivals */
    int64_t at;     /* of the timer; 0: it is not set */
    void (*take)(void *arg);
    void *arg;
};

void turns_begin(struct turns *t, uv_loop_t *loop, void (*take)(void *arg), void *arg);
/* The next one is due at `at` (0: not by itself), by the clock of `now`. To be said in each turn.
 */
void turns_next(struct turns *t, int64_t at, int64_t now);
void turns_close(struct turns *t);

#endif
