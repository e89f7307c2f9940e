#ifndef SIM_RECEIVERS_H
#define SIM_RECEIVERS_H

/*
 * Receivers of tasks' messages: they are down, slow, answer late, and lose answers after accepting
 * messages. They draw from their own random source, and not in every run: the rest of a run is
 * unaffected.
 *
 * What they must receive is derived from rows as they become durable, without code of what is
 * checked: every event at least once, in order per task, nothing that is not durable, and the same
 * words under the same id.
 */

#include "outbox/courier.h"
#include "sim/subject.h"

struct node;

void receivers_begin(void); /* when the tasks are known */
void receivers_calm(void);
bool receivers_are_on(void);
struct slice receivers_reply_to(const struct subject *t);
struct channel *receivers_channel(struct node *n); /* for a starting process */
struct courier_config receivers_config(bool shared);
void receivers_row(struct subject *t, const struct seen *old, const struct seen *new);
bool receivers_are_content(void); /* everything expected was received */
void check_all_received(void);

#endif
