#ifndef LIBINTACT_PULSE_H
#define LIBINTACT_PULSE_H

/*
 * Heartbeats that have a deadline, of steps that want them: who beats for handlers that do not,
 * what the server's acknowledgements change, and where to beat when a node does not know the
 * attempt or says nothing. All of it by the thread that drives the agent.
 *
 * A beat is acknowledged as of the moment at which its call was sent, so that the agent gives up
 * before the server does, never after it.
 */

#include "libintact/request.h"

struct intact_agent;

void pulse_tick(struct intact_agent *a, int64_t now); /* beats that are due by themselves */
int64_t pulse_wake_at(struct intact_agent *a);        /* when the next is; INT64_MAX: none */

/* The call with heartbeats of that node has ended. `outcomes` NULL: without an answer. */
void pulse_answered(struct peer *p, const struct json *outcomes);

/* How long the call with these heartbeats may take, lest it is too late for another node. */
int64_t pulse_within_ms(const struct peer *p, int64_t within_ms);

void pulse_forget(struct intact_agent *a, const struct peer *p); /* that node is gone */

#endif
