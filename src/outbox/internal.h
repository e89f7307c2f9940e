#ifndef OUTBOX_INTERNAL_H
#define OUTBOX_INTERNAL_H

/* Shared by the files of the courier: jobs and turns are in courier.c, single targets in
 * target.c. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/heap.h"
#include "base/map.h"
#include "outbox/courier.h"

enum {
    GIVE_UP_MS = 3 * 86400000,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 300000,
    RETRY_AFTER_MAX_MS = 3600000,
    ENTRIES_MAX = 16384,
    BYTES_MAX = 32 << 20, /* of messages in memory, approximately */
    SHELF_FIRST = 4096,
    SHELF_MAX = 64 << 10, /* a larger message gets a block of its own */
    PAGE_MAX = 512,       /* messages of one reading */
    PAGE_BYTES = 1 << 20,
    TARGET_PAGE = 128,
    QUEUED_MAX = 4096,   /* of one target in memory, whatever room there is */
    BATCHES_MAX = 4,     /* concurrent ones of one target */
    BLOCKED_MAX = 64,    /* chains of one target; with more of them the target counts as failing */
    SETTLE_MAX = 4096,   /* in one transaction, which costs a sync */
    SETTLE_AT = 2048,    /* this many are settled at once ... */
    SETTLE_MS = 100,     /* ... fewer after this time ... */
    SETTLE_IDLE_MS = 20, /* ... or when nothing new has come for this time, and nothing is left */
    READ_GAP_MS = 10,    /* between two readings of new messages */
    TROUBLE_MS = 250,    /* after the store failed */
    TARGETS_PAGE = 256,
};

struct target;

/* A memory block for consecutive items of one target: there are many of them, and they are freed in
 * about the order of their allocation. */
struct shelf {
    size_t used, size, items;
    bool open; /* the target's current one: items are added to it */
};

/* The messages of one task for one target, in order. */
struct chain {
    struct slice task; /* stored behind the struct */
    struct target *target;
    struct link ready; /* in the target's list: its first item may be sent */
    struct link items;
    size_t under_way;      /* of its items, in one batch */
    int64_t due_at;        /* blocked until then: all of it is set aside; 0: not blocked */
    int64_t head_seq;      /* of a blocked one: its first message in the store */
    size_t asides;         /* of its items that are being set aside ... */
    int64_t aside_first;   /* ... the lowest number of them; later ones in the store ... */
    int64_t skipped_first; /* ... were skipped from here on; 0: none were */
};

struct item {
    struct delivery d; /* first */
    struct courier *outbox;
    struct chain *chain; /* NULL: it waits to be settled */
    struct link link;    /* in its chain, or in `settling` */
    int64_t seq, since;
    struct slice source, data; /* of one whose body is made when it is sent */
    uint64_t sequence;
    struct slice key; /* key in by_seq: the bytes of `seq` */
    bool aside;       /* the store has it as set aside */
    bool listed;      /* in by_seq: it could be read again */
    bool forgotten;   /* it is under way, and this node no longer leads */
    struct settlement end;
    struct shelf *shelf; /* the block with its memory */
};

struct target {
    struct slice name; /* stored behind the struct */
    struct courier *outbox;
    struct map chains;
    struct link ready;   /* of struct chain */
    struct link spares;  /* unused chains for reuse, by `ready` ... */
    size_t spare_count;  /* ... their number */
    struct shelf *shelf; /* the open one; NULL: none */
    size_t queued;       /* items that are neither under way nor settled */
    size_t batches;      /* under way */
    bool paused, probing;
    unsigned failures; /* consecutive */
    int64_t failing_since;
    bool behind;            /* messages without a due time may be set aside: new ones follow them */
    int64_t cursor;         /* the store is read from this number on */
    size_t asides;          /* of its items that are being set aside */
    size_t blocked;         /* chains */
    struct link hungry;     /* in the courier's list: it must be read */
    struct heap_node timer; /* when to check it: its pause ends, or a chain is due */
    char story[200];        /* of its last failure */
};

struct settle_job;
struct read_job;

struct courier {
    struct courier_config config;
    struct store_queue *store;
    struct courier_outside outside;
    struct prng random;
    struct courier_stats stats;
    struct map targets, by_seq;
    size_t item_count, bytes;
    struct link hungry;   /* of struct target */
    struct heap timers;   /* of struct target */
    struct link settling; /* of struct item */
    size_t settling_count;
    int64_t *delivered; /* messages to delete that need no item any more */
    size_t delivered_count, delivered_cap;
    int64_t settle_at; /* 0: nothing to settle */
    int64_t told_at;   /* when new ones last came */
    bool leading, stopped;
    struct fence fence; /* while it leads */
    char lease[64];
    bool catching_up;    /* messages that were new when it began to lead are read before those set
                          * aside */
    bool loading;        /* targets are being read: nothing else is read before all are known */
    struct slice loaded; /* the last of them; in `load_arena` */
    struct arena load_arena;
    bool news;                     /* there may be new messages */
    int64_t news_at;               /* not read before this time */
    int64_t seen_seq;              /* the highest number read */
    int64_t retry_at;              /* after a failure the store is not used before */
    struct settle_job *settle_job; /* in the store; NULL: none */
    struct read_job *read_job;
    struct link batches; /* under way */
    size_t under_way;
    bool fresh_was_last; /* the last reading was of new messages: a target is next */
};

int64_t courier_now(const struct courier *o);

/* courier.c */
struct item *item_new(struct target *t, const struct message *m);
struct item *item_of(const struct courier *o, int64_t seq); /* in memory; NULL: not there */
/* Takes an item out of its chain, so that its result is written. `story` may be NULL. */
void item_settle(struct item *it, enum settle_kind kind, int64_t retry_at, const char *story);
void item_forget(struct item *it); /* another node may have it by now */
void item_free(struct item *it);
void shelf_close(struct target *t); /* it is freed with the last of its items */

/* target.c */
struct target *target_get(struct courier *o, struct slice name); /* created if missing */
void target_free(struct target *t);
void target_forget_if_idle(struct target *t);                 /* *t may be freed */
void target_fresh(struct target *t, const struct message *m); /* just read */
void target_page(struct target *t, int64_t from, const struct message *list, size_t count,
                 bool more);                                  /* messages that were set aside for
                                                               * it */
void target_settled(struct target *t, const struct item *it); /* as it->end says */
void target_send(struct target *t);
void target_due(struct target *t);        /* its timer has fired */
void target_look_again(struct target *t); /* by an operator */
void target_hunger(struct target *t);
void target_orphan_all(struct courier *o);   /* drops running deliveries */
void target_drop_batches(struct courier *o); /* the channels are closed */
size_t target_room(const struct target *t);  /* how many of its messages fit into memory */

#endif
