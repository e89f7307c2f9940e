#ifndef CORE_HISTORY_NODE_H
#define CORE_HISTORY_NODE_H

/*
 * One node of the search: a task's state, the observer's and the clock. Two nodes are equal if no
 * difference can matter later: times are relative to now, and all past times are equal.
 */

#include "core/history_seen.h"
#include "core/history_world.h"

struct budget {
    uint8_t late, not_sent, releases, acts, bad, again, spared, away, verbs, signals;
};

struct node {
    struct task t;
    struct step steps[WORLD_STEPS];
    struct attempt attempts[WORLD_STEPS][WORLD_ATTEMPTS];
    struct signal signals[WORLD_SIGNALS];
    struct vote votes[WORLD_VOTES];
    struct world world;
    struct budget left;
    uint8_t kids, told; /* moves of children; what a parent tells: as often as that */
    int64_t now;
};

void node_make(struct node *n, const struct graph *g, struct budget budget);
void node_copy(struct node *to, const struct node *from);

/* What the core can reach of it, byte by byte, as it is now; and whether it still is so. */
void node_image(struct node *to, const struct node *from);
bool node_is_as(const struct node *n, const struct node *image);

uint64_t node_key(const struct node *n);

#endif
