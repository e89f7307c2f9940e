#ifndef CORE_HISTORY_CASES_H
#define CORE_HISTORY_CASES_H

/*
 * Which of its cases a search explores, and how far, as the environment says:
 *
 *   HISTORY=brief           prints the size of each case; ...
 *   HISTORY=full            ... and the budgets are the larger ones, for a long run
 *   HISTORY_CASE=3          only the third case
 *   HISTORY_STATES=1000000  at most so many states of each case: the others are left out, and the
 *                           line of the case says so
 */

#include "base/base.h"

struct history_cases {
    bool full, told;
    size_t only;       /* 0: all */
    size_t states_max; /* of each; SIZE_MAX: all */
    bool cut_off;      /* of the current case, some were left out */
};

struct history_cases history_cases(void);

bool history_has_case(const struct history_cases *h, size_t index); /* from 0 */

/* Prints the size of the case, if asked for. */
void history_tell(const struct history_cases *h, size_t index, const char *graph, bool is_slow,
                  size_t states, unsigned long events);

#endif
