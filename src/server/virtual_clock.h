#ifndef SERVER_VIRTUAL_CLOCK_H
#define SERVER_VIRTUAL_CLOCK_H

/* Moves the clock of a server whose time is virtual: see node/virtual_time.h. */

#include "server/run.h"

struct virtual_clock;

/* NULL: time is real. The loop runs, and the parts are not open yet. */
struct virtual_clock *virtual_clock_new(struct run *run);
void virtual_clock_close(struct virtual_clock *v); /* the parts hang up */
void virtual_clock_free(struct virtual_clock *v);  /* the loop has ended. NULL is allowed */
bool virtual_clock_is_busy(const struct virtual_clock *v);

/* After each turn of the parts, which want the next one at `at`. Returns when it is wanted. */
int64_t virtual_clock_turn(struct virtual_clock *v, int64_t at);

#endif
