#ifndef WEBHOOK_WEBHOOK_H
#define WEBHOOK_WEBHOOK_H

/*
 * The channel that calls URLs: POST with a CloudEvent, signed by the Standard Webhooks
 * specification. docs/webhooks.md describes what receivers get.
 *
 *     loop --- send ---> thread: one epoll over all targets --- HTTP ---> receivers
 *       ^                   |
 *       +----- uv_async ----+
 *
 * It has a thread of its own, because libcurl may be kept busy by what it answers itself: a
 * watchdog closes connections that cost too much (net/watchdog.h), and the loop is not affected.
 * One per process.
 */

#include <uv.h>

#include "outbox/channel.h"
#include "webhook/webhook_config.h"

/* `config` must outlive it. NULL: *e says why; the secrets are loaded here. */
struct channel *webhook_open(uv_loop_t *loop, const struct webhook_config *config, struct error *e);

/* Reloads the secrets, for requests sent from now on. False: the previous ones stay, and each line
 * of *ret_faults describes a problem. The loop's thread. */
bool webhook_reload(struct channel *c, struct buf *ret_faults) MUST_USE;

#endif
