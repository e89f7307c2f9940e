#ifndef WEBHOOK_WEBHOOK_H
#define WEBHOOK_WEBHOOK_H

/*
 * The channel that calls URLs: POST with a CloudEvent, signed by the Standard Webhooks
 * specification. docs/webhooks.md says what receivers see.
 *
 *     loop --- send ---> thread: one epoll over all targets --- HTTP ---> receivers
 *       ^                   |
 *       +----- uv_async ----+
 *
 * A thread of its own, since what libcurl answers by itself may take as long as the other side
 * likes: a watchdog breaks connections that cost too much (net/watchdog.h), and the loop never
 * notices. One in a process.
 */

#include <uv.h>

#include "outbox/channel.h"
#include "webhook/config.h"

/* `config` has to outlive it. NULL: *e says why; secrets are read here. */
struct channel *webhook_open(uv_loop_t *loop, const struct webhook_config *config, struct error *e);

/* Reads the secrets again; they hold for what is sent from now on. False: those that were there
 * stay, and each line of *ret_faults says what is wrong. The loop's thread. */
bool webhook_reload(struct channel *c, struct buf *ret_faults) MUST_USE;

#endif
