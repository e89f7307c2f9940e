#ifndef TASKS_TASKS_H
#define TASKS_TASKS_H

/*
 * The tasks in this node's memory, as bookkeeping: what is loaded, which commands, queues, places
 * and times belong to it. Events are applied by the rules of core/ (live_decide); nothing here
 * chooses what comes next, touches the store or calls the scheduler. scheduler/ does so, turn by
 * turn. The states of a live task:
 *
 *   loading    its row is being read; commands gather in its inbox
 *   loaded     commands are decided at once, and make it dirty
 *   dirty      it has a change for the next batch
 *   in flight  its change is at the store. Nothing of it may be decided, because the state
 *              to decide on is unknown; commands gather in its inbox
 *
 * A step is in one place: in its lane's queue (it waits for a place), or in its instance's `sent`
 * (its attempt is open), or nowhere.
 *
 * Each file has a header of its own: live.h, task_inbox.h, queue.h, calls.h, limits.h, pulses.h,
 * silence.h, breakers.h, counts.h, overruns.h, effort.h, family.h.
 */

#include "core/decide.h"
#include "definition/definition.h"
#include "definition/registry.h"
#include "dispatch/dispatch.h"
#include "outbox/telling.h"
#include "store/codec/codec.h"
#include "tasks/ask.h"
#include "tasks/clock.h"
#include "tasks/counts.h"
#include "tasks/effort.h"
#include "tasks/heartbeat.h"
#include "tasks/overruns.h"

/* A task that sleeps longer than this is released to the store. */
#define NAP_MS INT64_C(2000)

/* One level of priority is worth this much waiting, so that nothing starves. */
#define AGING_MS INT64_C(60000)

enum { DELETED_OWNER_MAX = 128 }; /* bytes of a token's name that are kept of a deleted task */

enum command_kind { COMMAND_RESULT, COMMAND_ASK, COMMAND_EVENT };

/* Something to be done to one task. */
struct command {
    struct link link;
    enum command_kind kind;
    struct event event;
    struct item_ref item; /* RESULT, EVENT: of the event's step, which becomes its slot */
    struct work *work;    /* RESULT */
    struct work_result *result;
    struct ask *ask;     /* ASK */
    enum answer answer;  /* of the last evaluation */
    struct slice detail; /* ASK: for the audit; in the task's arena */
    bool owned;          /* on the heap; freed when it is done */
    bool overtook;  /* it arrived while its task was being read, so that read may miss changes that
                       other nodes made before it arrived */
    bool row_read;  /* a submission: its row was read and does not exist */
    bool task_read; /* it is for an item at rest: the row of its task was read after it arrived */
    bool unread;    /* ... and the row of that item cannot be read */
};

/* The end of an attempt, not durable yet. */
struct attempt_end {
    bool any, bad;
    enum direction direction;
    int64_t began_at, ended_at;
};

/* An attempt that its instance handed over elsewhere; it stays open. Not durable yet. */
struct handed_over {
    struct slice instance; /* NONE: there is no such attempt */
    enum direction direction;
    int64_t began_at;
};

/* The part of a step that is kept in memory only. */
struct live_step {
    struct link active;    /* in its task's list */
    struct heap_node want; /* in its lane's queue */
    struct lane *queue_of;
    int64_t free_at;  /* of a slot that is ready: when it became so; 0: it is not */
    bool bulk;        /* it is counted as bulk in that queue */
    struct link sent; /* in its instance's list while its attempt is open */
    struct instance *instance;
    struct lane *counted; /* the lane whose limit counts the open attempt */
    struct link assigned; /* in the list of the call that will carry it */
    struct work *work;
    struct live *live;
    uint64_t seen; /* the last call in which the instance reported to hold it */
    uint16_t step;
    bool pending;   /* its start is not durable yet; its call waits for that */
    bool delivered; /* a response with it was sent, or (after a restart) may have been sent */
    bool stop;      /* its agent must stop it */
    bool stop_sent; /* a response with the stop was sent */
    bool retryable, wished; /* of the last error; wished: its agent named a retry time */
    struct agent *tries;    /* the agent of the trial: the step may have changed direction since */
    uint32_t trial;         /* the breaker epoch if the attempt is a trial; 0: it is not */
    struct attempt_end end; /* since the last commit */
    struct handed_over handed_over;  /* since the last commit */
    uint8_t completed[2], failed[2]; /* attempts by direction, since the last commit */
    bool elsewhere;                  /* its attempt is open, but no instance has it */
    bool holds;                      /* its `if` evaluated to true on the current state */
    uint16_t signals_seen; /* so many of the task's signals are not what it waits for, or taken */
    int64_t signals_until; /* its complete-by with the grace time that it got; 0: none */
    struct slice token;    /* of an attempt, as sent to its instance: ... */
    enum direction token_direction;
    uint32_t token_attempt;   /* ... this attempt; no token: none was sent */
    uint32_t token_item;      /* of a slot: ... of this item */
    bool last_call;           /* it is silent for too long, but a heartbeat may be on its way ... */
    struct heap_node silence; /* ... when to check it: in `silences` */
    int64_t silent_by;        /* silent for too long from then on; 0: no limit (silence.c) */
};

/* What others of its family were told of a task. */
struct family_told {
    enum child_state state; /* its parent, if it has one */
    int64_t paused_at;      /* its children */
    struct child *children; /* of each unit; NULL: none starts one */
};

/* What was read of the items at rest of a step with for_each. */
struct live_items {
    uint32_t generation; /* of the list that this is of */
    struct step *rows;   /* to be brought back, the greatest number first ... */
    size_t count, next;  /* ... from `next` on */
    bool enough; /* no others are read before they are used: they have many bytes, or the next ones
                  * cannot be read */
    uint32_t below;   /* `undo_below` when they were read, or the last one was brought back */
    int64_t retry_at; /* they could not be read, and are not read before */
    bool reads_rows, reads_outputs, reads_errors; /* wanted */
    bool reads_rest;                              /* the same: for a command, ... */
    uint32_t rest_from;                           /* ... from this item on */
    bool outputs_too_big;                         /* more than an expression may see */
    struct slice errors; /* the first ones, as expressions see them; NONE: not known */
    bool asked;          /* it is known what expressions need ... */
    struct items_needed needs;
    struct item_mark mark; /* of the list */
};

struct live {
    struct slice id;    /* `id_text` */
    struct arena arena; /* of the loaded state */
    const struct definition *definition;
    struct task task;
    struct live_step *steps;
    /* The steps that wait for a place, have an attempt, or had one since the last commit: so a
     * change of a long task does not walk through all its steps. */
    struct link active;
    struct encoded *encoded; /* the stored form of its steps; NULL if there are few */
    struct effects fx;       /* of the decisions since the last commit */
    struct link inbox, applied;
    struct link pulses; /* the latest heartbeat of each open attempt (pulses.h) */
    uint64_t reported;  /* the last revision that was reported, or need not be */
    struct reply reply; /* where messages go, and what was already sent */
    struct told messages;
    struct family_told family;
    struct live_items *items; /* of each step; NULL: none has for_each */
    struct link item_link;    /* items are to be read */
    bool awaits_items;        /* the same, or they are being read, ... */
    int64_t items_at;         /* ... or it is tried again then; 0: no */
    struct link dirty_link, load_link, inbox_link;
    struct link undecided; /* conditions remain for the next turn */
    struct link counted;   /* open attempts that count while its row is being read (limits.c) */
    struct heap_node nap;  /* the next time at which a step wants a place */
    int64_t row_wake_at;   /* as in the row */
    int64_t row_seq;       /* its number; 0: unknown */
    uint16_t ended[2][ATTEMPT_ENDS]; /* attempts since the last commit */
    int64_t row_lock_since;          /* as in the row */
    bool row_queues;                 /* the row waits for its lock */
    bool has_waits;                  /* the row waits for several agents */
    int64_t bulk_at; /* when it was last part of a bulk operation; 0: never since it was loaded */
    int64_t bulk_stored; /* the durable value: a failed bulk operation does not cost the task its
                            rank */
    bool loaded, fresh, in_flight, reload;
    bool erred;           /* the durable state is error */
    int64_t submission;   /* while it is fresh: the row that it comes from; 0: none */
    int64_t notice_stays; /* the last notice for which it had no room; 0: there is none */
    bool resend_wanted; /* while it was in flight, an instance called that had lost an attempt of it
                         */
    bool outcome_unknown;      /* the outcome of its last commit is unknown */
    bool found;                /* it was claimed meanwhile: its row must be reported */
    unsigned definition_reads; /* the number of reads of definitions that did not find its own */
    /* of a stub: the deleted task that had this id; until 0: none */
    struct {
        struct content content;
        char sha256[CONTENT_SHA256_LEN]; /* its text, if it has one */
        char owner_text[DELETED_OWNER_MAX];
        struct slice owner; /* NONE: nobody's; one that is too long is cut */
        int64_t version, ended_at, until;
        enum task_state state;
    } deleted;
    char id_text[];
};

struct tasks {
    struct slice me; /* "node/boot": the owner of this node's tasks */
    struct registry *workflows;
    struct clock clock;
    int64_t frozen_now; /* the time for the current turn; 0: ask the clock */
    size_t live_max;    /* tasks in memory beyond which none is read for its limits */
    int64_t grace_ms;   /* after a time without contact, no attempt ends for silence before */
    struct map lives;
    struct link dirty, loads, inboxes; /* of struct live */
    struct link undecided;             /* of struct live: conditions remain to be decided */
    struct link item_reads;            /* of struct live: rows of their items are to be read */
    struct link awaiting_definition;   /* of struct live, by load_link: their definitions ... */
    struct registry_wait definitions;  /* ... are being read */
    struct heap naps;                  /* of struct live */
    struct dispatch dispatch;          /* agents, instances, lanes */
    struct link shut, unsaved;         /* of struct agent (breakers.c) */
    bool agents_stale, agents_known;   /* agents must be read; were read once */
    uint64_t agents_generation;        /* the generation that was read */
    struct heap waits;                 /* of struct work: end of the wait */
    struct link answerable;            /* of struct work, by `turn`: closed and settled */
    struct heap silences;              /* of struct live_step: attempts with a limit on silence */
    int64_t silences_seen_at;          /* when `silences` was last checked */
    struct link lost;     /* open attempts of tasks that other nodes took over, until their
                             complete-by at the latest (limits.c) */
    struct effort effort; /* of this turn */
    struct overruns overruns;
    struct task_counts counts;
};

struct tasks_config {
    struct slice me; /* must outlive the tasks, like all that is named here */
    bool alone;      /* no other node shares limits */
    size_t live_max;
    int64_t grace_ms;
    uint64_t turn_steps; /* 0: the default */
};

void tasks_init(struct tasks *ts, const struct tasks_config *c, struct registry *workflows,
                const struct clock *clock);
void tasks_fini(struct tasks *ts); /* no task is left, and no call */

static inline int64_t tasks_now(const struct tasks *ts)
{
    return ts->frozen_now ? ts->frozen_now : ts->clock.now(ts->clock.arg);
}

/* Freezes the time until it is released: a turn asks for it some hundred times. */
void tasks_freeze_now(struct tasks *ts);
void tasks_release_now(struct tasks *ts);

/* Which item is in the slot; none, if the unit is a step. */
static inline struct item_ref live_item(const struct live *l, uint16_t unit)
{
    const struct workflow *w = &l->definition->workflow;

    if (!unit_is_slot(w, unit))
        return (struct item_ref){0};
    return (struct item_ref){
        .any = true,
        .generation = l->task.steps[unit_step(w, unit)].generation,
        .number = l->task.steps[unit].item,
    };
}

/* The unit of that item of the step; -1: it is in no slot. */
int live_slot(const struct live *l, int step, const struct item_ref *item);

/* The unit of that step, or of that item of it; -1: there is no such step, or the item is in no
 * slot. */
static inline int live_unit(const struct live *l, int step, const struct item_ref *item)
{
    if (step < 0 || step >= l->task.step_count)
        return -1;
    return item->any ? live_slot(l, step, item) : step;
}

/* The same by the name of a step, or of an item of its present list: "pack.3". */
int live_unit_named(const struct live *l, struct slice name);

/* Splits "pack.3". False: it does not end in a number. */
bool item_name_split(struct slice name, struct slice *ret_step, uint32_t *ret_item);

/* Whether a step with for_each has such an item in its present list, by its name alone. */
bool live_item_named(const struct live *l, struct slice name, struct item_ref *ret, int *ret_step);

/* The same for a token, which then has the unit instead of the step. */
static inline bool live_find_attempt_of(const struct live *l, struct token *t)
{
    int unit = live_unit(l, t->step, &t->item);

    if (unit >= 0)
        t->step = (uint16_t)unit;
    return unit >= 0;
}

struct live *live_find(const struct tasks *ts, struct slice id);
struct live *live_stub(struct tasks *ts, struct slice id); /* new, loading */
void live_read(struct tasks *ts, struct slice id);         /* the same, and starts a read */
bool live_is_ours(const struct tasks *ts, const struct live *l);

/* The name of a unit: that of the step, or of the item, "pack.3", in `a`. */
struct slice live_unit_name(const struct live *l, uint16_t unit, struct arena *a);

/* The name of an item: "pack.3", in `a`. */
struct slice item_name(struct slice step, uint32_t item, struct arena *a);

/* Adds the step to the active ones of its task. */
static inline void live_activate(struct live_step *ls)
{
    if (!link_is_in(&ls->active))
        list_push(&ls->live->active, &ls->active);
}

/* The earlier of two times; 0: never. */
static inline int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

#endif
