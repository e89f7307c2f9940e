#ifndef CORE_TASK_H
#define CORE_TASK_H

/*
 * A task: one run of a workflow. This is the aggregate: it is stored in one row, by one fenced
 * change. The tables below are the state machines. decide.c makes every move and asserts it against
 * them. The texts of the edges are for people: docs/img is drawn from them.
 *
 * Memory: slices and arrays are borrowed; the loader of a task owns an arena for it. The core
 * allocates nothing: the caller provides room for further attempts (task_room). Times are
 * milliseconds UTC of the store's clock; 0 means "none".
 */

#include "core/workflow.h"

/* clang-format off */
/*    name          stored as        may go to, and when                                          */
#define TASK_STATES(X)                                                                            \
    X(PENDING,      "pending",       TO(PROCESSING, "claimed")                                    \
                                     | TO(COMPENSATING, "claimed, or undo begins")                \
                                     | TO(PROCESSED, "the rest is skipped, or supplied")          \
                                     | TO(COMPENSATED, "the operator skips what is left")         \
                                     | TO(ERROR, "held while it waited"))                         \
    X(PROCESSING,   "processing",    TO(PENDING, "released: nothing of it runs")                  \
                                     | TO(PROCESSED, "every step has ended")                      \
                                     | TO(COMPENSATING, "undo begins")                            \
                                     | TO(ERROR, "held, or a pivot stays in doubt"))              \
    X(PROCESSED,    "processed",     TO(COMPENSATING, "the operator undoes it"))                  \
    X(COMPENSATING, "compensating",  TO(PENDING, "released: nothing of it runs")                  \
                                     | TO(COMPENSATED, "nothing is left to undo, or to tell")     \
                                     | TO(ERROR, "an undo has no try, or no time, left"))         \
    X(COMPENSATED,  "compensated",   0)                                                           \
    X(ERROR,        "error",         TO(PROCESSING, "the operator retries, skips or supplies")    \
                                     | TO(COMPENSATING, "the operator undoes, or retries an undo"))

/*    name          stored as      may go to, and when                                            */
#define STEP_STATES(X)                                                                            \
    X(WAITING,      "waiting",     TO(RUNNING, "a place is free")                                 \
                                   | TO(SKIPPED, "its `if` is false, or the operator skips it")   \
                                   | TO(COMPLETED, "its wait has ended, its last round is done, " \
                                                   "or the operator supplies its output")         \
                                   | TO(FAILED, "its input cannot be evaluated, or not yet")      \
                                   | TO(UNDOING, "in doubt, and the task goes back")              \
                                   | TO(UNDONE, "the operator undid it, in doubt"))               \
    X(RUNNING,      "running",     TO(COMPLETED, "the agent says so")                             \
                                   | TO(WAITING, "another try, or its request was not sent")      \
                                   | TO(FAILED, "no try is left"))                                \
    X(COMPLETED,    "completed",   TO(UNDOING, "the task goes back")                              \
                                   | TO(WAITING, "the operator has it start anew")                \
                                   | TO(UNDONE, "the operator undid it")                          \
                                   | TO(FAILED, "the input of its undo cannot be evaluated"))     \
    X(FAILED,       "failed",      TO(WAITING, "the operator retries it")                         \
                                   | TO(COMPLETED, "the operator supplies its output")            \
                                   | TO(SKIPPED, "the operator skips it")                         \
                                   | TO(UNDOING, "in doubt and undone, or its undo retried")      \
                                   | TO(UNDONE, "the operator undid it"))                         \
    X(SKIPPED,      "skipped",     TO(UNDOING, "skipped in doubt, and the task goes back")        \
                                   | TO(WAITING, "the operator has it start anew")                \
                                   | TO(UNDONE, "the operator undid it")                          \
                                   | TO(FAILED, "the input of its undo cannot be evaluated"))     \
    X(UNDOING,      "undoing",     TO(UNDONE, "the agent says so, or the operator")               \
                                   | TO(FAILED, "its undo has no try left"))                      \
    X(UNDONE,       "undone",      0)

/*    name          stored as       the attempt ...                                               */
#define OUTCOMES(X)                                                                               \
    X(OPEN,         "open")         /* is the current one */                                      \
    X(COMPLETED,    "completed")    /* took effect, reported in time */                           \
    X(FAILED,       "failed")       /* answered with an error */                                  \
    X(TIMED_OUT,    "timed_out")    /* had no answer by its complete-by */                        \
    X(NOT_SENT,     "not_sent")     /* was never sent: no failure, no effect */                   \
    X(LATE,         "late")         /* was answered after it was given up */

/* The effect of an attempt; the greater one wins when attempts are merged. */
#define EFFECTS(X)                                                                                \
    X(NONE,         "none")                                                                       \
    X(UNKNOWN,      "unknown")                                                                    \
    X(HAPPENED,     "happened")

#define DIRECTIONS(X)                                                                             \
    X(FORWARD,      "forward")                                                                    \
    X(UNDO,         "undo")

/* Why a forward task starts nothing more. */
#define STOPS(X)                                                                                  \
    X(NONE,         "none")                                                                       \
    X(UNDO,         "undo")         /* undo is wanted as soon as no pivot prevents it */          \
    X(HOLD,         "hold")         /* stops in error as soon as nothing runs */

/* What a task that is a child tells its parent, which is what the parent knows of it: child_told().
 * The parent's step waits while it is open, which all are but the first and the last two. */
#define CHILD_STATES(X)                                                                           \
    X(NONE,         "none")         /* there is none */                                           \
    X(RUNNING,      "running")      /* nothing is known but that it was started, or goes on */    \
    X(ERROR,        "error")        /* stopped in error, going forward */                         \
    X(STANDS,       "stands")       /* was told to stop, and cannot: its pivot took effect */     \
    X(TURNED,       "turned")       /* is being undone, so that it never ends as processed */     \
    X(STUCK,        "stuck")        /* stopped in error, and does not turn back by itself */      \
    X(PROCESSED,    "processed")                                                                  \
    X(COMPENSATED,  "compensated")

/* What a parent wants of a child. */
#define CHILD_WISHES(X)                                                                           \
    X(NONE,         "none")         /* nothing; or, after CLOSE: it is needed after all */        \
    X(STOP,         "stop")         /* to turn back, unless it has ended */                       \
    X(UNDO,         "undo")         /* it is processed, and is to be undone */                    \
    X(CLOSE,        "close")        /* if it is in error, nobody needs it any more */

/* The states of a slot: a unit for an item. */
#define SLOT_STATES(X)                                                                            \
    X(FREE,         "free")                                                                       \
    X(TAKEN,        "taken")        /* by an item at work */                                      \
    X(BACK,         "back")         /* by one that is to be undone */                             \
    X(RESTING,      "resting")      /* by one that has come to rest, but is not stored yet */

/* A signal that arrived. */
#define SIGNAL_STATES(X)                                                                          \
    X(KEPT,         "kept")         /* for the first step that waits for it */                    \
    X(TAKEN,        "taken")        /* by a step, or by the task, which it had undone */          \
    X(DROPPED,      "dropped")      /* by an operator */
/* clang-format on */

enum task_state {
#define X(name, text, to) TASK_##name,
    TASK_STATES(X)
#undef X
};

enum step_state {
#define X(name, text, to) STEP_##name,
    STEP_STATES(X)
#undef X
};

enum PACKED outcome {
#define X(name, text) OUTCOME_##name,
    OUTCOMES(X)
#undef X
};

enum PACKED effect {
#define X(name, text) EFFECT_##name,
    EFFECTS(X)
#undef X
};

enum direction {
#define X(name, text) DIRECTION_##name,
    DIRECTIONS(X)
#undef X
};

enum stop {
#define X(name, text) STOP_##name,
    STOPS(X)
#undef X
};

/* What submissions of newer tasks mean for one that waits for its lock. */
enum lock_mode {
    LOCK_WAITS,    /* nothing */
    LOCK_REPLACES, /* of those of its workflow that wait for the same lock, the newest stays */
    LOCK_REPLACED, /* a newer one waits instead: if it has not taken its lock, it is undone */
};

enum PACKED child_state {
#define X(name, text) CHILD_##name,
    CHILD_STATES(X)
#undef X
};

enum PACKED child_wish {
#define X(name, text) WISH_##name,
    CHILD_WISHES(X)
#undef X
};

enum PACKED slot_state {
#define X(name, text) SLOT_##name,
    SLOT_STATES(X)
#undef X
};

enum signal_state {
#define X(name, text) SIGNAL_##name,
    SIGNAL_STATES(X)
#undef X
};

/* The stored form of each, and back (false: unknown word). */
const char *task_state_text(enum task_state s);
const char *step_state_text(enum step_state s);
const char *outcome_text(enum outcome o);
const char *effect_text(enum effect e);
const char *direction_text(enum direction d);
const char *stop_text(enum stop s);
const char *signal_state_text(enum signal_state s);
const char *child_state_text(enum child_state s);
const char *child_wish_text(enum child_wish w);
bool task_state_parse(struct slice text, enum task_state *ret) MUST_USE;
bool step_state_parse(struct slice text, enum step_state *ret) MUST_USE;
bool outcome_parse(struct slice text, enum outcome *ret) MUST_USE;
bool effect_parse(struct slice text, enum effect *ret) MUST_USE;
bool direction_parse(struct slice text, enum direction *ret) MUST_USE;
bool stop_parse(struct slice text, enum stop *ret) MUST_USE;
bool signal_state_parse(struct slice text, enum signal_state *ret) MUST_USE;
bool child_state_parse(struct slice text, enum child_state *ret) MUST_USE;
bool child_wish_parse(struct slice text, enum child_wish *ret) MUST_USE;

/* Whether the table has that edge. */
bool task_state_can(enum task_state from, enum task_state to);
bool step_state_can(enum step_state from, enum step_state to);

/* A JSON value, as text. A long one is stored in the payload table: `payload` is then the number of
 * its row (from 1 within the task; 0: it is in the task's document). */
struct value {
    struct slice json; /* NONE: there is no value, which is not the same as null */
    uint32_t payload;
};

/* The payload of the output of a step with for_each. It is the array of the outputs of its items,
 * which has no row: whoever reads it puts it together from theirs. */
#define ITEMS_OUTPUT UINT32_MAX

/* A failure, as the agent or the server describes it. `code` is NONE if there is none. */
struct fault_note {
    struct slice code, message;
};

/* This many failures of a step in one direction may be spared (not counted). That is enough for an
 * outage of hours, and bounds a step that fails by itself. */
enum { SPARED_MAX = 200 };

/* Why a task starts nothing more going forward, or is undone. */
struct cause {
    struct fault_note error; /* code NONE: there is no cause */
    int step;                /* the step that failed; -1: the task as a whole */
};

struct attempt {
    uint32_t number; /* from 1, in its direction */
    enum direction direction;
    enum outcome outcome;
    enum effect effect; /* UNKNOWN while it is open */
    int64_t started_at, ended_at, complete_by;
    uint32_t resent;     /* how often it was sent again because its instance had lost it */
    uint32_t tries;      /* calls that the agent made to its service; 0: not reported */
    bool elsewhere;      /* its instance is done with it: the holder of its token ends it */
    bool spared;         /* it failed in an outage of its agent's service and does not count */
    uint32_t generation; /* of its idempotency key: see struct step */
    uint32_t round;      /* of a repeated step, which selects its key as well; else 0 */
    struct slice instance;
    struct value output; /* of a late result only; otherwise the step has it */
    struct fault_note error;
};

/* The child of a step, as far as its parent knows. A step that starts anew has another one. */
struct child {
    uint32_t
        number; /* of the present one, from 1: the number of those that were started. 0: none */
    enum child_state state; /* NONE: none was started since the step began anew */
    enum child_wish wish;   /* what it was last told */
};

/* The list of a step with for_each, in parts that never change. Part n has the items from n times
 * ITEMS_OF_PART on, as a JSON array. */
struct item_list {
    uint32_t count; /* of items */
    uint16_t part_count;
    struct value *parts;
};

enum { ITEMS_OF_PART = 32 };

/*
 * The items of a step with for_each, as sums of those that are at rest. Each of them lies in a row
 * of its own. Those that have not begun are at rest, too, but have no row yet.
 *
 * L3: a change reads and writes few items, however many there are.
 */
struct items {
    struct item_list list;
    uint32_t begun;                              /* those before this one have begun */
    uint32_t completed, failed, skipped, undone; /* at rest, by their state */
    uint32_t effects;                            /* of them: they took effect, ... */
    uint32_t doubts;                             /* ... or are in doubt ... */
    uint32_t to_undo;                            /* ... and would have to be undone */
    uint32_t contradicted;                       /* of them: took effect after an operator had
                                                  * resolved them, and are not undone */
    uint32_t child_base;                         /* their children are numbered from there on */
    uint32_t undo_below;                         /* those from here on need no undo any more, or
                                                  * are at work. It is one more than the last item
                                                  * when the undo begins */
    /* The same of those in slots, kept up to date by each change: see items_tally(). */
    struct item_tally {
        uint32_t used;    /* slots with an item that is not at rest */
        uint32_t at_work; /* they keep a place: forward, those that have not failed */
        uint32_t open;    /* they have a current attempt */
        uint32_t failed;  /* forward */
        uint32_t effects, doubts, to_undo, contradicted;
        uint32_t telling;  /* they run, or are in doubt and will be tried again */
        uint32_t stuck;    /* their undo failed for good, or their child stopped on its way back */
        uint32_t children; /* theirs that have not ended, ... */
        uint32_t running;  /* ... that go on, ... */
        uint32_t unturned; /* ... that may end as processed, ... */
        uint32_t standing; /* ... and that cannot turn back */
        uint32_t ahead;    /* they have not come to rest and are not stuck, or need an undo and are
                            * not stored yet: nothing is brought back before they are */
        uint32_t free;     /* slots without an item */
    } tally;
};

struct step {
    enum step_state state;
    enum direction direction;   /* of its latest attempts: UNDO once its compensation began */
    enum slot_state slot;       /* FREE for what is no slot */
    bool supplied;              /* an operator said that it took effect, and with which output */
    bool corrected;             /* of a repeated step: an operator's input holds for all rounds */
    enum effect dropped_effect; /* see dropped_count */
    uint32_t attempt;           /* number of the latest attempt in that direction; 0: none */
    uint32_t failure_count;     /* in that direction */
    uint32_t spared_count;      /* failures in that direction that did not count ... */
    uint32_t round;             /* of a repeated step: the present one, from 1; 0: none began yet */
    int64_t spared_at;          /* ... and the time of the latest; 0: none */
    int64_t begun_at;     /* when it began to wait (for a time, a signal, people or a child); 0:
                           * not yet. Always 0 for a call */
    int64_t wait_until;   /* earliest time of the next attempt; 0: at once. For a wait that has
                           * begun, its end; for a signal or people, 0 */
    int64_t round_at;     /* when the present round began; 0: it has not */
    int64_t repeat_until; /* a round that begins then or later is the last; 0: no round began */
    int64_t complete_by;  /* of a step that waits for a signal, people or a child: until when;
                           * 0: without limit, or that moment was handled */
    struct value input, output, undo_input; /* evaluated once (in each round, if it varies),
                                             * recorded at the first start. The output of a repeated
                                             * step is its last answer, also if it goes on. The
                                             * input of an approval is its question, as asked;
                                             * of a step with a child, the child's input */
    struct fault_note error;                /* of the latest failure */
    struct slice resume;      /* JSON: resume details from an attempt in this direction, or NONE */
    struct attempt *attempts; /* oldest first; an open one is always the last */
    uint16_t attempt_count, attempt_cap;
    /* Selects the idempotency key of its attempts: 0: TASK/STEP, 1: TASK/STEP~2, 2: TASK/STEP~3.
     * One key denotes one request: another input for the step increments it. In round 2 of a
     * repeated step it is TASK/STEP@2, TASK/STEP~2@2. Of an approval: how often it was asked
     * anew, so that no vote counts for another question. */
    uint32_t generation;
    struct child child;  /* of KIND_TASK */
    struct items *items; /* of KIND_EACH; else NULL */
    uint32_t item;       /* of a slot: which item has it, from 0 */
    /* An operator said that forward attempts up to this one had no effect: those with unknown
     * effect leave no doubt. Their records do not change. 0: not resolved. */
    uint32_t resolved;
    uint32_t dropped_count;   /* attempts that are no longer kept; what they may have done going
                               * forward is dropped_effect ... */
    uint32_t dropped_attempt; /* ... the number of the latest of unknown effect ... */
    int64_t dropped_until;    /* ... and the latest complete-by of those in doubt */
};

/* A signal: a value under a name, sent to the task from outside. Its key names it for the life of
 * the task: the same key again is the same signal. */
struct signal {
    struct slice key, name;
    struct value data;    /* NONE once it was dropped */
    struct slice content; /* identifies the data */
    int64_t at;           /* when it arrived */
    enum signal_state state;
    int step; /* TAKEN: by which step; -1: by the task itself, or not taken */
};

enum {
    SIGNAL_DATA_MAX = 64 << 10,  /* the value of one, as text */
    SIGNALS_KEPT_MAX = 20,       /* of one name, not taken yet */
    SIGNALS_MAX = 1000,          /* of one task, with those that were taken or dropped */
    SIGNALS_BYTES_MAX = 4 << 20, /* the values of one task's, but for dropped ones */
};

/* What a person said to the present question of an approval. Votes on earlier questions are not
 * kept. */
struct vote {
    struct slice person;
    struct slice comment; /* NONE: none was given */
    int64_t at;
    int step;
    bool agrees; /* false: the person rejects it */
};

/* Identifies the content of a submission, to recognize a repeated one. */
struct content {
    uint64_t hash;       /* 64 bits, not collision-resistant; 0: unknown */
    struct slice sha256; /* base64url; NONE: created, or last written, by an older version */
};

enum { CONTENT_SHA256_LEN = 43 };

/* Compares the SHA-256 if both have one, else the hash. */
bool content_is_same(const struct content *a, const struct content *b);

struct task {
    struct slice id;
    struct slice locked_by; /* "node/boot", or NONE */
    uint64_t revision;      /* of the row; incremented by every change */
    enum task_state state;
    enum direction direction;
    enum stop stop;
    int priority;             /* 0 to 9, higher first */
    bool deadline_passed;     /* complete_by was handled; that happens once */
    int64_t complete_by;      /* of the task, going forward */
    int64_t undo_complete_by; /* set when undo begins */
    int64_t not_before;
    int64_t submitted_at, started_at, ended_at;
    /* Since when nothing of it starts and its clocks (complete_by, not_before, wait_until) are
     * stopped; 0: not paused. During a pause the clocks are read as of its start; afterwards they
     * move by its length. Attempts are not paused: their complete_by stays. */
    int64_t paused_at;
    int64_t closed_at; /* it is in error, and an operator closed it; 0: not closed */
    struct slice closed_reason;
    uint32_t failure_count; /* of all steps, ever */
    uint32_t payload_count; /* numbers given out in the payload table */
    struct content content; /* of the submission, to tell "the same again" */
    struct value input, output;
    struct fault_note error; /* why it stopped */
    /* The first failure. Later ones, also of compensations, do not replace it. There is none while
     * the task goes forward; continuing a stopped task forward clears it. */
    struct cause cause;
    struct slice reply_to;
    struct slice tags;      /* JSON object, or NONE */
    struct slice owner;     /* name of the token it was submitted with; NONE: none */
    struct slice submitter; /* the person of that token; NONE: of the same name as the token */
    struct slice trace;     /* the W3C traceparent of its submission, or NONE */
    struct slice lock;      /* "NAME/KEY" of its lock; NONE: it needs none. Fixed at submission */
    int64_t lock_since;     /* when it took that lock; 0: it does not hold it, and nothing starts */
    enum lock_mode lock_mode;
    /* Set for a child; otherwise NONE and 0. */
    struct slice parent;      /* the id of its parent, ... */
    struct slice root;        /* ... and of the task at the root of the family */
    struct slice parent_step; /* the name of the step that started it ... */
    uint32_t parent_number;   /* ... as its child of this number */
    enum child_wish asked;    /* what its parent last told it; NONE: nothing */
    /* JSON object: the version of each workflow that steps of KIND_TASK can reach from here, fixed
     * when the root was submitted. NONE: none can be reached. */
    struct slice family;
    struct step *steps; /* after them the slots, as in the workflow */
    uint16_t step_count, slot_count;
    uint16_t signal_count, signal_cap;
    struct signal *signals; /* in the order of their arrival */
    uint16_t vote_count, vote_cap;
    struct vote *votes; /* likewise */
};

/* Processed or compensated. The only later event is an operator's undo of a processed task. */
bool task_state_is_end(enum task_state s);
bool step_is_open(const struct step *s);                 /* has a current attempt */
struct attempt *step_open_attempt(const struct step *s); /* NULL if there is none */
struct attempt *step_find_attempt(const struct step *s, enum direction d, uint32_t number);

/* Whether it needs a lock that it does not hold. Then nothing of it may start or be decided. */
static inline bool task_lacks_lock(const struct task *t)
{
    return t->lock.ptr && t->lock_since == 0;
}

/* Steps and slots. */
static inline uint16_t task_unit_count(const struct task *t)
{
    return (uint16_t)(t->step_count + t->slot_count);
}

/* What a child tells its parent. It tells it whenever this changes. */
enum child_state child_told(const struct workflow *w, const struct task *t);

/* Whether its end is still to come. */
static inline bool child_is_open(const struct child *c)
{
    return c->state != CHILD_NONE && c->state != CHILD_PROCESSED && c->state != CHILD_COMPENSATED;
}

/* Whether it stopped in error, on whichever way. */
static inline bool child_has_stopped(const struct child *c)
{
    return c->state == CHILD_ERROR || c->state == CHILD_STUCK;
}

/* Whether something of it goes on. A processed one may not have heard yet that it is to be undone.
 */
static inline bool child_runs(const struct child *c)
{
    return (child_is_open(c) && !child_has_stopped(c))
           || (c->state == CHILD_PROCESSED && c->wish == WISH_UNDO);
}

/* The same for a step, and the children of its items. */
static inline bool step_has_open_child(const struct step *s)
{
    return child_is_open(&s->child) || (s->items && s->items->tally.children > 0);
}
/* Whether children of items at rest stopped in error and were left, if no item took effect: they
 * would have to be undone. */
static inline bool items_left_children(const struct step *s)
{
    return s->items && s->items->to_undo > 0;
}

static inline bool step_child_runs(const struct step *s)
{
    return child_runs(&s->child) || (s->items && s->items->tally.running > 0);
}

/* Whether the step waits for what its child will tell. */
static inline bool step_awaits_child(const struct workflow_step *ws, const struct step *s)
{
    return ws->kind == KIND_TASK
           && (child_is_open(&s->child)
               || (s->child.state == CHILD_PROCESSED && s->child.wish == WISH_UNDO));
}

/* The cause. For a processed task, which has none: the error of the first step in the order of the
 * graph whose failure was allowed. Code NONE: nothing failed. */
struct cause task_first_failure(const struct workflow *w, const struct task *t);

/* The signal with that key; NULL: none arrived. */
struct signal *task_find_signal(const struct task *t, struct slice key);

/* Whether a step takes signals of that name, and whether such a signal has the task undone. */
bool step_takes_signal(const struct workflow_step *ws, struct slice name);
bool signal_undoes(const struct workflow *w, struct slice name);

/* The person who submitted the task; NONE: nobody knows. */
static inline struct slice task_submitter(const struct task *t)
{
    return t->submitter.ptr ? t->submitter : t->owner;
}

/* The step's last forward error, whatever its compensation did. Code NONE: it completed, or nothing
 * failed yet. */
struct fault_note step_forward_error(const struct step *s);

/* Whether it has begun to wait (for a time, a signal, people or a child), and still does. */
static inline bool step_has_begun(const struct step *s)
{
    return s->state == STEP_WAITING && s->begun_at != 0;
}

/* Whether the present round of a repeated step was answered, and it is still to be found whether
 * that satisfies it (EVENT_UNTIL). */
bool step_is_answered(const struct step *s);

/* Whether it waits for its next round, however soon that begins. */
static inline bool step_is_between_rounds(const struct step *s)
{
    return s->state == STEP_WAITING && s->round != 0 && s->round_at == 0;
}

/* Some forward attempt has unknown effect, none completed, and it was not resolved. */
bool step_in_doubt(const struct step *s);

/* A forward attempt took effect, in time or late, or its child is processed: certain, not in
 * doubt. */
bool step_has_effect(const struct step *s);

/* All of its attempts were resolved, and no result contradicts that. */
bool step_is_resolved(const struct step *s);

/* An attempt took effect according to a result that came after it was resolved. */
bool step_resolve_is_contradicted(const struct step *s);

/* Whether it was requested under its present key. */
bool step_was_tried(const struct step *s);

/* Until when an abandoned attempt may still run: one in doubt, or another delivery of a request
 * that was sent again (0: none). */
int64_t step_doubt_until(const struct step *s);

/* Whether every field fits its state, and everything fits the workflow. Asserted before a write,
 * tested after a read. */
bool task_valid(const struct workflow *w, const struct task *t);

/* The same for one step and its direct predecessors. */
bool task_step_valid(const struct workflow *w, const struct task *t, uint16_t step);

#endif
