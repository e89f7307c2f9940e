#ifndef SUPERVISOR_GAPS_H
#define SUPERVISOR_GAPS_H

#include <stddef.h>
#include <stdint.h>

/* Times in which no result could arrive, oldest first. A gap is kept as long as it may postpone
 * what was due in it or soon after it. */
enum { GAPS_MAX = 16 };

struct gaps {
    struct gap {
        int64_t from, until;
        int64_t since; /* `until` of the first of the joined gaps */
    } list[GAPS_MAX];
    size_t count;
};

/* Adds a gap, or extends the last one (the same `from`). Gaps whose grace time was over when this
 * one began are dropped: what they postponed was acted on by then, or was postponed again. */
void gaps_add(struct gaps *g, int64_t from, int64_t until, int64_t grace_ms);

/* The last gap turned out to be longer. */
void gaps_longer(struct gaps *g, int64_t until);

/* When the first gap began. There must be one. */
int64_t gaps_from(const struct gaps *g);

#endif
