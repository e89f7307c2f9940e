#ifndef SUPERVISOR_GAPS_H
#define SUPERVISOR_GAPS_H

#include <stddef.h>
#include <stdint.h>

/* Times in which nobody could hand in anything, the oldest first, as far as one of them may still
 * put off what fell due in it or soon after it. */
enum { GAPS_MAX = 16 };

struct gaps {
    struct gap {
        int64_t from, until;
        int64_t since; /* `until` of the first one of those that were joined */
    } list[GAPS_MAX];
    size_t count;
};

/* Another gap, or more of the last one (the same `from`). Gaps whose grace was over when this one
 * began are dropped: what they put off was acted on by then, or has been put off once more. */
void gaps_add(struct gaps *g, int64_t from, int64_t until, int64_t grace_ms);

/* The last one turned out to be longer. */
void gaps_longer(struct gaps *g, int64_t until);

/* When the first one of them began. There has to be one. */
int64_t gaps_from(const struct gaps *g);

#endif
