#ifndef SIM_DISK_H
#define SIM_DISK_H

/*
 * A node's way to the state store: the memory store behind a body that fails as disks and databases
 * do, and the queue that leads to it. A transaction may fail with nothing stored, end unknown
 * (stored or not), stall for seconds, or refuse one of its changes; the way may be cut. Everything
 * that becomes durable passes the checkers here.
 *
 * A job is waiting, or it ran and its `done` is on its way. A crash finds jobs in both states.
 */

#include "store/job.h"

struct node;

enum { SLOW_MS = 20 }; /* a store whose transactions may take longer is not well */

struct disk {
    struct store store;       /* what the node is given */
    struct store_queue queue; /* the same */
    struct node *node;
    struct link waiting, ran; /* of struct store_job, by its link */
    bool scheduled;           /* the next run is an occurrence */
    bool stuck;               /* its node never came to hand over what comes now */
    bool dead;                /* the node has crashed: nothing is stored any more */
    uint64_t life;            /* occurrences of an earlier one are void */
    uint64_t runs, dones;     /* how many jobs ran, and of how many the node heard */
    int64_t done_at;          /* of the last one that ran */
    int64_t trouble_at;       /* the last moment at which something went wrong */
    int64_t cut_until;        /* no way to the store until then */
    bool farewell;            /* what it was asked last nobody knows the end of */
    bool measure;             /* the connection is new: what time is it there? */
};

extern struct store *inner; /* the state store itself */

void store_begin(bool shared);
void store_end(void);
void disk_begin(struct disk *d, struct node *n);

/* The node has crashed: some of the jobs that wait still reach the disk, none comes back. Their
 * memory is given back by calling `done`, so the node must be deaf by now. */
void disk_crash(struct disk *d);
void disk_boot(struct disk *d);

void disk_cut(struct disk *d, int64_t ms);

/* failover.c. The primary dies; after `ms` a standby takes its place, which has all that was
 * acknowledged, and a clock that is ahead of the old one by `ahead_ms`, or behind. */
void failover_begin(void);
void store_fails_over(int64_t ms, int64_t ahead_ms);
bool store_is_away(void);
int64_t store_back_at(void); /* the last time it was away; 0: it never was */

/* What went wrong with the node's way to the store lasts until then, if not longer. */
void disk_troubled(struct disk *d, int64_t until);

/* The node measures what time it is there. */
void disk_measure(struct disk *d);

bool disk_is_idle(const struct disk *d);
bool disk_has_unheard(const struct disk *d); /* something ran of which the node does not know yet */

#endif
