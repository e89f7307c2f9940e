#ifndef BACKGROUND_ALERT_SINKS_H
#define BACKGROUND_ALERT_SINKS_H

/*
 * The sinks of alerts: the log, webhooks (their channel), Alertmanager (its API, version 2) and
 * commands. A sink that waits for the outside has a thread of its own, so that one that hangs
 * blocks neither others nor the event loop. Each takes one delivery at a time, in order.
 */

#include <uv.h>

#include "alerts/alert_settings.h"
#include "outbox/channel.h"

struct alert_sinks;

/* On the loop's thread, later than it was sent. `story`: why it was not taken. */
typedef void alert_sink_done(void *arg, void *user, size_t sink, bool took, const char *story);

/* `settings` outlive it; `webhooks` may be NULL if none is configured; `source` is that of the
 * CloudEvents. NULL: *e says why. */
struct alert_sinks *alert_sinks_open(uv_loop_t *loop, const struct alerts_settings *settings,
                                     struct channel *webhooks, const char *source,
                                     alert_sink_done *done, void *arg, struct error *e);
void alert_sinks_send(struct alert_sinks *s, size_t sink, const struct alert *const *list,
                      size_t count, int64_t now, void *user);
/* Gives up what is under way: `done` is not called any more. Its handle closes with the loop; then
 * free it. */
void alert_sinks_close(struct alert_sinks *s);
void alert_sinks_free(struct alert_sinks *s); /* NULL is fine */

#endif
