#ifndef SIM_RECEIVERS_H
#define SIM_RECEIVERS_H

/*
 * Those who are told what becomes of their tasks: they are down, slow, answer late, and lose
 * answers after they took what was sent. They draw from a source of their own, and not in every
 * run: what else happens in a run is the same without them.
 *
 * What they have to hear is found from rows as they become durable, with no code of what is judged:
 * every event once at least, in order for each task, nothing that is not durable, and the same
 * words under the same id.
 */

#include "outbox/courier.h"
#include "sim/subject.h"

struct node;

void receivers_begin(void); /* when the tasks are known */
void receivers_calm(void);
bool receivers_are_on(void);
struct slice receivers_reply_to(const struct subject *t);
struct channel *receivers_channel(struct node *n); /* of a process that begins */
struct courier_config receivers_config(bool shared);
void receivers_row(struct subject *t, const struct seen *old, const struct seen *new);
bool receivers_are_content(void); /* all that is to be heard was */
void check_all_received(void);

#endif
