#ifndef LIBINTACT_PULSE_H
#define LIBINTACT_PULSE_H

/*
 * Heartbeats with a deadline, for steps that require them: sent on behalf of handlers that do not,
 * acknowledged by the server, and sent to another node if one does not know the attempt or does not
 * answer. All on the thread that drives the agent.
 *
 * An acknowledgement counts from when its call was sent, so the agent gives up before the server
 * does, never after.
 */

#include "libintact/request.h"

struct intact_agent;

void pulse_tick(struct intact_agent *a, int64_t now); /* sends heartbeats that are due */
int64_t pulse_wake_at(struct intact_agent *a);        /* when the next is due; INT64_MAX: never */

/* Handles the end of a call with heartbeats to that node. `outcomes` NULL: no answer. */
void pulse_answered(struct peer *p, const struct json *outcomes);

/* The time limit of the call with these heartbeats, which leaves time for another node. */
int64_t pulse_within_ms(const struct peer *p, int64_t within_ms);

void pulse_forget(struct intact_agent *a, const struct peer *p); /* that node is gone */

#endif
