#ifndef SIM_NOTICES_H
#define SIM_NOTICES_H

/*
 * Applications that insert signals by SQL in their own transactions, and the nodes' part that takes
 * them. In half of the runs with signals.
 */

#include "intake/notices.h"
#include "sim/node.h"
#include "sim/subject.h"

void sql_signals_begin(bool may, bool families);
/* Is that signal inserted by SQL, instead of sent? Called once for each. */
bool sql_signals_sends(struct subject *t, uint32_t number, int64_t delay);

/* For a node; NULL: none in this run. */
struct notices *sql_signals_reader(struct node *n);
bool sql_signals_asked(const struct ask *a); /* was it asked by a reader? Then: */
void sql_signals_answered(struct node *n, struct ask *a);

void sql_signals_changed(void);     /* tasks or the table may have changed: checks all rows */
bool sql_signals_are_decided(void); /* no notice waits */
void check_sql_signals_end(void);

#endif
