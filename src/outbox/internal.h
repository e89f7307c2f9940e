#ifndef OUTBOX_INTERNAL_H
#define OUTBOX_INTERNAL_H

/* What the files of the delivery share: courier.c has jobs and turns, target.c one target. */

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
    ITEMS_MAX = 16384,
    BYTES_MAX = 32 << 20, /* of messages in memory, about */
    SHELF_FIRST = 4096,
    SHELF_MAX = 64 << 10, /* one message alone may have more */
    PAGE_MAX = 512,       /* messages of one reading */
    PAGE_BYTES = 1 << 20,
    TARGET_PAGE = 128,
    QUEUED_MAX = 4096,   /* of one target in memory, however much room there is */
    BATCHES_MAX = 4,     /* of one target under way */
    BLOCKED_MAX = 64,    /* chains of one target; with more of them it is the target that fails */
    SETTLE_MAX = 4096,   /* in one transaction, which is a sync of the disk */
    SETTLE_AT = 2048,    /* so many do not wait for more ... */
    SETTLE_MS = 100,     /* ... others do, for so long ... */
    SETTLE_IDLE_MS = 20, /* ... or until nothing new has come for so long, and nothing is left */
    READ_GAP_MS = 10,    /* between two readings of what is new */
    TROUBLE_MS = 250,    /* after the store failed */
    TARGETS_PAGE = 256,
};

struct target;

/* Memory of items of one target that came one after the other: there are many of them, and they go
 * together as they came. */
struct shelf {
    size_t used, size, items;
    bool open; /* the target's: more are put there */
};

/* The messages of one task for one target, in order. */
struct chain {
    struct slice task; /* lies behind it */
    struct target *target;
    struct link ready; /* in the target's list: the first of its items may go */
    struct link items;
    size_t under_way;      /* of its items, in one batch */
    int64_t due_at;        /* blocked until then: all of it is set aside; 0: it is not */
    int64_t head_seq;      /* of a blocked one: its first, in the store */
    size_t asides;         /* of its items that are being set aside ... */
    int64_t aside_first;   /* ... the least of them; what is behind it in the store ... */
    int64_t skipped_first; /* ... was left alone from there on; 0: nothing was */
};

struct item {
    struct delivery d; /* first */
    struct courier *outbox;
    struct chain *chain; /* NULL: it waits to be settled */
    struct link link;    /* in its chain, or in `settling` */
    int64_t seq, since;
    struct slice source, data; /* of one whose body is made when it is sent */
    uint64_t sequence;
    struct slice key; /* of by_seq: the bytes of `seq` */
    bool aside;       /* where the store has it */
    bool listed;      /* in by_seq: it might be read once more */
    bool forgotten;   /* it is under way, and this node does not lead any more */
    struct settlement end;
    struct shelf *shelf; /* all of it lies there */
};

struct target {
    struct slice name; /* lies behind it */
    struct courier *outbox;
    struct map chains;
    struct link ready;   /* of struct chain */
    struct link spares;  /* chains that are used again, by `ready` ... */
    size_t spare_count;  /* ... so many */
    struct shelf *shelf; /* the open one; NULL: none is */
    size_t queued;       /* items that are neither under way nor settled */
    size_t batches;      /* under way */
    bool paused, probing;
    unsigned failures; /* one after the other */
    int64_t failing_since;
    bool behind;        /* some may be set aside that do not wait for a moment: new ones follow */
    int64_t cursor;     /* in the store it is read from there on */
    size_t asides;      /* of its items that are being set aside */
    size_t blocked;     /* chains */
    struct link hungry; /* in the outbox's list: it is to be read */
    struct heap_node timer; /* when it is looked at: the pause is over, or a chain is due */
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
    int64_t *delivered; /* what is to be deleted, and needs no item any more */
    size_t delivered_count, delivered_cap;
    int64_t settle_at; /* 0: there is nothing to be settled */
    int64_t told_at;   /* when new ones came last */
    bool leading, stopped;
    struct fence fence; /* while it leads */
    char lease[64];
    bool catching_up;    /* what was new when it began to lead is read before what was set aside */
    bool loading;        /* targets are being read: nothing else is before all are known */
    struct slice loaded; /* the last of them; in `load_arena` */
    struct arena load_arena;
    bool news;                     /* there may be new messages */
    int64_t news_at;               /* they are not read before */
    int64_t seen_seq;              /* the newest that was read */
    int64_t retry_at;              /* after trouble the store is asked nothing before */
    struct settle_job *settle_job; /* with the store; NULL: none is */
    struct read_job *read_job;
    struct link batches; /* under way */
    size_t under_way;
    bool fresh_was_last; /* of readings: then it is the turn of a target */
};

int64_t courier_now(const struct courier *o);

/* courier.c */
struct item *item_new(struct target *t, const struct message *m);
struct item *item_of(const struct courier *o, int64_t seq); /* in memory; NULL: it is not */
/* What became of it is to be written; it is in no chain any more, and ours no more. `story` may be
 * NULL. */
void item_settle(struct item *it, enum settle_kind kind, int64_t retry_at, const char *story);
void item_forget(struct item *it); /* somebody else may have it by now */
void item_free(struct item *it);
void shelf_close(struct target *t); /* it is freed with the last of its items */

/* target.c */
struct target *target_get(struct courier *o, struct slice name); /* made if there is none */
void target_free(struct target *t);
void target_forget_if_idle(struct target *t);                 /* *t may be gone */
void target_fresh(struct target *t, const struct message *m); /* read just now */
void target_page(struct target *t, int64_t from, const struct message *list, size_t count,
                 bool more);                                  /* what was set aside for it */
void target_settled(struct target *t, const struct item *it); /* as it->end says */
void target_send(struct target *t);
void target_due(struct target *t);        /* its timer is over */
void target_look_again(struct target *t); /* by hand */
void target_hunger(struct target *t);
void target_orphan_all(struct courier *o);   /* what is under way is nobody's */
void target_drop_batches(struct courier *o); /* the channels are closed */
size_t target_room(const struct target *t);  /* for so many of its messages in memory */

#endif
