#ifndef CORE_HISTORY_REASON_H
#define CORE_HISTORY_REASON_H

/*
 * What is said of a state must be so: there is a reason, what it waits for is what it waits for,
 * until that very moment, and what it says comes then is what comes. decide() is asked.
 */

#include "core/history_node.h"

void history_check_reasons(const struct node *n);

#endif
