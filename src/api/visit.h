#ifndef API_VISIT_H
#define API_VISIT_H

/*
 * A visit to some of many streams: to as many as fit into a slice of the event loop's time
 * (fair.h). The others have their turn in the next rounds of the loop. Event loop only.
 */

#include <stdbool.h>
#include <stdint.h>

struct server;

struct visit {
    uint64_t end_ns; /* uv_hrtime */
    unsigned left;   /* streams at most */
};

/* How often each stream is told that the server is there. With sanitizers, a test may set it by
 * INTACT_FAULT_PULSE_MS. */
int64_t visit_pulse_ms(void);

struct visit visit_begin(void);
bool visit_goes_on(struct visit *v); /* ask it before each stream */

/* A stream is visited. Builds with sanitizers, with INTACT_FAULT_VISITS=N in the environment, have
 * visits of N streams, count the streams of a round, and assert that these are few. */
void visit_counts(const struct server *sv);

#endif
