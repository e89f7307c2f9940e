#ifndef SIM_DISK_H
#define SIM_DISK_H

/*
 * The store of the simulated node: the memory store behind a body that fails as disks do, and the
 * queue that leads to it. A transaction may fail with nothing stored, end unknown (stored or not),
 * stall for seconds, or refuse one of its changes. Everything that becomes durable passes the
 * checkers here.
 *
 * A job is waiting, or it ran and its `done` is on its way. A crash finds jobs in both states.
 */

#include "store/job.h"

struct disk {
    struct store store;       /* what the node is given */
    struct store_queue queue; /* the same */
    struct store *inner;
    struct link waiting, ran; /* of struct store_job, by its link */
    bool scheduled;           /* the next run is an occurrence */
    bool dead;                /* the node has crashed: nothing is stored any more */
    uint64_t life;            /* occurrences of an earlier one are void */
    uint64_t runs, dones;     /* how many jobs ran, and of how many the node heard */
    int64_t done_at;          /* of the last one that ran */
    int64_t trouble_at;       /* the last moment at which something went wrong */
};

extern struct disk disk;

void disk_begin(void);
void disk_end(void);

/* The node has crashed: some of the jobs that wait still reach the disk, none comes back. Their
 * memory is given back by calling `done`, so the node must be deaf by now. */
void disk_crash(void);
void disk_boot(void);

bool disk_is_idle(void);
bool disk_has_unheard(void); /* something ran of which the node does not know yet */

#endif
