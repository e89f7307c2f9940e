#ifndef SERVER_RUN_H
#define SERVER_RUN_H

/* What the files of this folder share: the node, and what drives it. */

#include "node/node.h"
#include "node/overrun.h"
#include "node/turns.h"

struct run {
    struct server sv; /* first: parts know it alone */
    struct turns turns;
    uv_signal_t sigterm, sigint;
    uv_signal_t sighup; /* if its data is set */
    uv_timer_t drain_timer;
    struct virtual_clock *clock; /* NULL: time is real */
    uv_timer_t watchdog;
    uv_poll_t input;        /* standard input, if its data is set */
    uv_signal_cb on_signal; /* drains; the second one ends the process */
    int64_t drain_left_ms;
    bool replaced;            /* the node is another process now: this one ends */
    size_t opened;            /* parts */
    uint64_t known;           /* the generation of the definitions that were read at the start */
    struct overruns overruns; /* as of the start */
    struct overrun_watch *overrun;
};

static inline struct run *run_of(struct server *sv)
{
    return CONTAINER_OF(sv, struct run, sv);
}

#endif
