/*
 * A visit ends with its slice. A test cannot rely on time: with INTACT_FAULT_VISITS it sets how
 * many streams a visit has, and visit_counts finds loops that do not end with their visits.
 */

#include "api/visit.h"

#include <limits.h>
#include <stdlib.h>
#include <uv.h>

#include "node/fair.h"
#include "node/node.h"

enum {
    IN_ROUND = 5, /* visits, each for another reason */
    PULSE_MS = 15000,
};

/* Never in what is installed. */
static unsigned streams_max(void)
{
#ifdef INTACT_FAULTS
    const char *max = getenv("INTACT_FAULT_VISITS");
    if (max)
        return (unsigned)strtoul(max, NULL, 10);
#endif
    return UINT_MAX;
}

int64_t visit_pulse_ms(void)
{
#ifdef INTACT_FAULTS
    const char *ms = getenv("INTACT_FAULT_PULSE_MS");
    if (ms)
        return strtol(ms, NULL, 10);
#endif
    return PULSE_MS;
}

struct visit visit_begin(void)
{
    return (struct visit){uv_hrtime() + FAIR_SLICE_NS, streams_max()};
}

bool visit_goes_on(struct visit *v)
{
    if (v->left == 0 || uv_hrtime() >= v->end_ns)
        return false;
    v->left--;
    return true;
}

void visit_counts(const struct server *sv)
{
#ifdef INTACT_FAULTS
    static uint64_t round;
    static unsigned streams;

    streams = round == fair_round(sv->fair) ? streams + 1 : 1;
    round = fair_round(sv->fair);
    ASSERT(streams / IN_ROUND <= streams_max());
#else
    (void)sv;
#endif
}
