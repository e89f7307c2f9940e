#ifndef SIM_DISK_H
#define SIM_DISK_H

/*
 * A node's way to the state store: the memory store behind a layer that fails like disks and
 * databases do, and its queue. A transaction may fail with nothing stored, end with unknown outcome
 * (stored or not), stall for seconds, or refuse one of its changes; the connection may be cut.
 * Everything that becomes durable passes the checkers here.
 *
 * A job waits, or it ran and its `done` is pending. A crash finds jobs in both states.
 */

#include "store/job.h"

struct node;

enum { SLOW_MS = 20 }; /* a store whose transactions may take longer is not well */

struct disk {
    struct store store;       /* for the node */
    struct store_queue queue; /* for the node */
    struct node *node;
    struct link waiting, ran; /* of struct store_job, by its link */
    bool scheduled;           /* the next run is scheduled */
    bool stuck;               /* its node does not pass jobs on */
    bool dead;                /* the node has crashed: nothing is stored any more */
    uint64_t life;            /* events of an earlier life are void */
    uint64_t runs, dones;     /* jobs that ran, and jobs whose end the node has received */
    int64_t done_at;          /* of the last one that ran */
    int64_t trouble_at;       /* time of the last fault */
    int64_t stall_ms;         /* the next transaction stalls for that long; 0: by chance */
    int64_t cut_until;        /* no connection to the store until then */
    bool farewell;            /* the outcome of the last commit remains unknown */
    bool measure;             /* a new connection: measure the store's time */
};

extern struct store *inner; /* the state store itself */

void store_begin(bool shared);
void store_end(void);
void disk_begin(struct disk *d, struct node *n);

/* The node has crashed: some waiting jobs still reach the disk, none returns. Their memory is freed
 * by calling `done`, so the node must not react any more. */
void disk_crash(struct disk *d);
void disk_boot(struct disk *d);

void disk_cut(struct disk *d, int64_t ms);
void disk_stall(struct disk *d, int64_t ms); /* for scenes: the next transaction */

/* failover.c. The primary dies; after `ms` a standby takes over, with everything that was
 * acknowledged, and a clock that is `ahead_ms` ahead of the old one, or behind. */
void failover_begin(void);
void store_fails_over(int64_t ms, int64_t ahead_ms);
bool store_is_away(void);
int64_t store_back_at(void); /* its last outage; 0: none */

/* Records trouble on the node's way to the store until then. */
void disk_troubled(struct disk *d, int64_t until);

/* The node measures the store's time. */
void disk_measure(struct disk *d);

/* For the operations: whether this one fails. */
struct disk *disk_of(struct store *s);
bool disk_is_cut(const struct disk *d);
bool disk_read_fails(struct disk *d, struct error *e);

/* disk_sql.c */
extern const struct store_submission_ops disk_submissions_ops;
extern const struct store_notice_ops disk_notices_ops;

/* disk_items.c. For scenes: rows of items less than `below` that are to be undone cannot be
 * decoded; 0: all can. And how often a node read such rows since then. */
void disk_spoil_rows(uint32_t below);
uint32_t disk_spoilt_reads(void);
extern const struct store_item_ops disk_item_ops;

/* disk_schedules.c */
extern const struct store_schedule_ops disk_schedules_ops;

bool disk_is_idle(const struct disk *d);
bool disk_has_unheard(const struct disk *d); /* a job ran whose end the node has not received */

#endif
