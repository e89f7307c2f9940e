#ifndef CORE_HISTORY_REASON_H
#define CORE_HISTORY_REASON_H

/*
 * Checks the reasons given for a state: there is at least one, each names what the task really
 * waits for and until when, and what it predicts happens. decide() is the reference.
 */

#include "core/history_node.h"

void history_check_reasons(const struct node *n);

#endif
