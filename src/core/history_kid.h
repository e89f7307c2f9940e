#ifndef CORE_HISTORY_KID_H
#define CORE_HISTORY_KID_H

/*
 * The child of a step or of an item, as observers of histories see it.
 */

#include "core/task.h"

enum { KID_MOVES = 8, KID_WISHES = 6 };

enum kid_phase { KID_NONE, KID_RUNS, KID_STOPPED, KID_DONE, KID_UNDONE };

/* The present child of a step, as it really is; what it tells follows from that. It does not know
 * what the parent has heard, so it is enough that each word is heard when it is told; but what the
 * parent wants comes late. */
struct world_kid {
    uint32_t number;
    enum kid_phase phase;
    bool back;   /* it is being undone, or was */
    bool stands; /* its pivot took effect */
    bool doubt;  /* it stopped while its pivot was in doubt */
    bool closed;
    enum child_wish heard; /* STOP and UNDO stay */
    enum child_wish sent;  /* what it was told last */
    uint8_t coming_count;
    uint8_t coming[KID_WISHES]; /* what it was told and has not heard, the oldest first */
};

/* What a child in that state tells its parent. */
enum child_state kid_tells(const struct world_kid *k);

/* How the child may be after its next move; or after it heard what it was told first. Returns how
 * many. `pivot`: its step is one. */
size_t kid_moves(const struct world_kid *k, bool pivot, struct world_kid ret[KID_MOVES]);
size_t kid_hears(const struct world_kid *k, bool pivot, struct world_kid ret[KID_MOVES]);

/* An operator repaired a child that stopped: it goes on. False: that is not possible. */
bool kid_repair(struct world_kid *k);

/* A step has another child, or another wish, than before: the child will hear of it. */
void kid_is_told(struct world_kid *k, const struct child *before, const struct child *is);

#endif
