/* The dispatch work of one attempt, repeated: lanes, limits, health and breaker without the
 * scheduler. bench/routing.c measures its time, bench/instructions/outside.c its instructions. */

#include "attempts.h"

#include "dispatch/dispatch.h"

enum { LANES = 8 };

static struct slice action_of(int n)
{
    static const char *const names[LANES] = {"charge", "refund", "hold",  "release",
                                             "book",   "cancel", "print", "tell"};

    return slice_of(names[n]);
}

static void set(struct dispatch *d, struct agent *a, bool limited)
{
    static struct action_limit actions[LANES];

    a->settings = settings_default();
    if (limited) {
        a->settings.limit = (struct limit){1000, 1000000, 1000};
        for (int i = 0; i < LANES; i++)
            actions[i] = (struct action_limit){action_of(i), {100, 1000000, 1000}};
        a->settings.actions = actions;
        a->settings.action_count = LANES;
    } else {
        a->settings.breaker.off = true;
    }
    dispatch_limit(d, a, 0);
}

void attempts_run(bool limited, long rounds)
{
    struct dispatch d;
    struct heap_node want = {0};

    dispatch_init(&d, (struct share){1, 0}, 0);
    struct agent *a = dispatch_agent(&d, SLICE("payment"));
    struct work *w = work_new();
    w->agent_name = SLICE("payment");
    w->instance_name = SLICE("payment-1");
    w->max = 1000;
    set(&d, a, limited);
    dispatch_park(&d, w, 1);
    for (long i = 0; i < rounds; i++) {
        int64_t now = 1000 + i / 1000;
        lane_push(&d, dispatch_lane(a, action_of((int)(i % LANES))), &want, i);
        struct lane *l = breaker_room(&a->breaker, &a->settings.breaker) > 0
                             ? dispatch_next_lane(&d, a, now)
                             : NULL;
        struct work *call = l ? dispatch_next_call(&d, a, now) : NULL;
        ASSERT(call == w);
        lane_remove(l, &want);
        lane_open(l);
        lane_begin(l, now);
        health_begun(&w->instance->health, now);
        uint32_t trial = breaker_start(&a->breaker, &a->settings.breaker, now);
        lane_close(l);
        health_ended(&w->instance->health, &a->ends, true, now);
        (void)breaker_ended(&a->breaker, &a->settings.breaker, END_GOOD, now, now, (uint64_t)i);
        breaker_trial_over(&a->breaker, trial);
    }
    dispatch_unpark(w, 1);
    work_free(w);
    dispatch_fini(&d);
}
