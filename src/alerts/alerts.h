#ifndef ALERTS_ALERTS_H
#define ALERTS_ALERTS_H

/*
 * What a person is told of: which conditions hold, since when, and who has been told.
 *
 * An alert is a group: a condition and its labels (task_error of one workflow, step and code), not
 * one failure. So an outage of one service is one alert, however many tasks it fails.
 *
 *               `for` and group_wait are over              over for resolve_after
 *     (pending) ----------------------------->  open  -----------------------------> resolved
 *                                              |    ^                                   |
 *                             somebody says so |    | came again after a quiet          | came
 * again v    | `repeat`                          v soon: open acknowledged
 *
 * Each of these is a notice: opened, reminder, resolved. A notice is numbered within its alert, and
 * each sink knows the number of the last one that it took; so neither a restart nor another leader
 * repeats any, and a sink that fails is told later. Reminders come after `repeat`, then after twice
 * as long, up to a day, and none once it was acknowledged. A delivery takes all that is due with
 * it, and deliveries that follow each other closely come further and further apart, up to
 * pace_max_ms.
 *
 * An alert that comes and goes is resolved later each time.
 *
 * Bounded: CONDITION_GROUPS groups of a condition; what comes beyond that is one more group,
 * "others".
 *
 * Pure: time is handed in, and nothing here does I/O or logs. Not thread-safe.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

/* clang-format off */
/*    name                 text                   for, ms  what it says to a person */
#define ALERT_CONDITIONS(X)                                                                     \
    X(TASK_ERROR,          "task_error",          0,     "tasks stopped in error")          \
    X(COMPENSATION_FAILED, "compensation_failed", 0,     "compensations failed")            \
    X(OVERDUE_NO_AGENT,    "overdue_no_agent",    60000, "steps wait, and no agent takes them")\
    X(BREAKER_OPEN,        "breaker_open",        60000, "a breaker stays open")            \
    X(STORE_TROUBLE,       "store_trouble",       0,     "the state store fails")           \
    X(STORE_AT_RISK,       "store_at_risk",       0,    "a crash may lose stored data")     \
    X(OUTBOX_TROUBLE,      "outbox_trouble",      60000, "status messages are not delivered")\
    X(SUBMISSION_REFUSED,  "submission_refused",  0,     "submissions were refused")        \
    X(OPERATION_FAILED,    "operation_failed",    0,     "an operation on many tasks failed")\
    X(RETENTION_TROUBLE,   "retention_trouble",   0,     "tasks are not archived or deleted")\
    X(TOKEN_EXPIRES,       "token_expires",       0,     "a token is about to expire")      \
    X(TEST,                "test",                0,     "this is a test alert")
/* clang-format on */

enum alert_condition {
#define X(name, text, wait, about) CONDITION_##name,
    ALERT_CONDITIONS(X)
#undef X
        CONDITION_COUNT
};

const char *condition_text(enum alert_condition c);
const char *condition_about(enum alert_condition c);
bool condition_parse(struct slice text, enum alert_condition *ret) MUST_USE;

enum {
    ALERT_LABELS = 3,
    ALERT_EXAMPLES = 5,
    ALERT_TEXT_SIZE =
        160, /* of a label's value, an example, a name, a reason: what is longer is cut */
    ALERT_ID_SIZE = 24,
    CONDITION_GROUPS = 50,
    ALERT_SINKS = 16,
    ALERTS_A_DELIVERY = 100,
};

/* Deliveries to a sink that follow each other closely are at most so far apart, by default. */
#define ALERT_PACE_MS INT64_C(300000)

struct alert_label {
    const char *name; /* of ours, it stays */
    char value[ALERT_TEXT_SIZE];
};

/* A condition as somebody sees it. Several of one group in one look add up. */
struct sighting {
    enum alert_condition condition;
    struct {
        const char *name;   /* of ours, it stays */
        struct slice value; /* NONE: the label is left out */
    } labels[ALERT_LABELS];
    uint64_t count;              /* at least 1 */
    int64_t first_at, latest_at; /* 0: now */
    struct slice example;        /* a task's id, or NONE */
    struct slice story;          /* what is wrong, in words; or NONE */
};

enum notice_kind { NOTICE_NONE, NOTICE_OPENED, NOTICE_REMINDER, NOTICE_RESOLVED };
const char *notice_text(enum notice_kind k); /* "opened" */

struct alert {
    char id[ALERT_ID_SIZE]; /* from its group and the time at which it was opened; "": pending */
    enum alert_condition condition;
    struct alert_label labels[ALERT_LABELS];
    size_t label_count;
    struct slice key;            /* condition and labels, `condition{"name":"value"}`; its own */
    uint64_t count;              /* now, as far as is known */
    uint64_t total;              /* seen since it was opened, at least: never less than `count` */
    int64_t first_at, latest_at; /* of what it counts */
    char examples[ALERT_EXAMPLES][ALERT_TEXT_SIZE];
    size_t example_count;
    char story[ALERT_TEXT_SIZE];
    int64_t since;      /* it holds, without a pause */
    int64_t over_since; /* it holds no more; 0: it does */
    int64_t opened_at, resolved_at;
    uint32_t times; /* that it came again soon after it was resolved */
    int64_t acknowledged_at;
    char acknowledged_by[ALERT_TEXT_SIZE], acknowledged_why[ALERT_TEXT_SIZE];
    bool lifted; /* the acknowledgement of its row is to go */
    /* notices */
    uint32_t notice; /* the number of the latest; 0: none yet */
    enum notice_kind kind;
    int64_t notice_at;
    uint32_t reminders; /* in a row */
    uint32_t told[ALERT_SINKS];
    /* the row */
    uint32_t stored_notice; /* of the latest that is on record */
    bool dirty;             /* it differs from its row */
    int64_t stored_at;
    bool settled; /* nothing more will come of it */
    /* of the look that goes on */
    uint64_t seen_count;
    int64_t seen_first_at;
    uint32_t seen_examples; /* BIT() of each of them that it met */
    bool seen;
};

/* Whom to tell. */
struct alert_sink {
    char name[200];        /* unique; the same after a restart */
    uint32_t conditions;   /* of BIT(enum alert_condition); 0: all */
    struct slice workflow; /* alerts of that one only; NONE: of all, and those of none */
    int64_t resend_ms;     /* it wants to hear of all that is open, so often; 0: notices only */
};

struct alerts_config {
    int64_t group_wait_ms, repeat_ms, resolve_after_ms; /* 0: 5 s, 1 h, 5 min */
    int64_t pace_max_ms;                                /* 0: ALERT_PACE_MS */
    int64_t for_ms[CONDITION_COUNT];                    /* -1: default */
    const struct alert_sink *sinks;                     /* outlive the alerts */
    size_t sink_count;
};

struct alerts_config alerts_config_default(void);
int64_t alerts_for_ms(const struct alerts_config *c, enum alert_condition condition);

struct alerts;

struct alerts *alerts_new(const struct alerts_config *c);
void alerts_free(struct alerts *a);  /* NULL is fine */
void alerts_clear(struct alerts *a); /* nothing is known any more; sinks keep their backoff */

/* A look at all there is of some conditions (bits): begin, see, end. What was not seen holds no
 * more. Looks at the same condition do not overlap. */
void alerts_look_begin(struct alerts *a, uint32_t conditions);
void alerts_see(struct alerts *a, const struct sighting *s, int64_t now);
void alerts_look_end(struct alerts *a, uint32_t conditions, int64_t now);
/* One more of what has been counted already. Between looks, or in one that has gone past it. */
void alerts_add(struct alerts *a, const struct sighting *s, int64_t now);

/* Decides which notices there are. Returns the next moment at which time alone brings one; 0: none.
 */
int64_t alerts_turn(struct alerts *a, int64_t now);

/* What a sink is to be told now, at most ALERTS_A_DELIVERY; 0: nothing, or it is being told, or it
 * failed just now. `stored_only`: what is not on record waits. alerts_told has to follow.
 * *ret_next: when to ask again by time alone; 0: no matter. */
size_t alerts_tell(struct alerts *a, size_t sink, bool stored_only, int64_t now,
                   const struct alert *ret[ALERTS_A_DELIVERY], int64_t *ret_next);
/* What became of it. A sink that failed is asked again after 1 s, twice as long each time, up to 5
 * min. `story`: why it failed. */
void alerts_told(struct alerts *a, size_t sink, bool took, const char *story, int64_t now);

struct sink_state {
    uint64_t delivered, failed; /* deliveries */
    uint32_t failing;           /* in a row */
    int64_t last_at, next_at;   /* took the last one; is asked again */
    char story[200];            /* of the last failure */
    bool busy;
};
const struct sink_state *alerts_sink(const struct alerts *a, size_t sink);

/* ERR_NOT_FOUND; ERR_CONFLICT: it is resolved. Once more changes nothing. */
enum err alerts_acknowledge(struct alerts *a, struct slice id, int64_t at, struct slice by,
                            struct slice why);

/* for (size_t i = 0; (al = alerts_next(a, &i));) in no order. Those pending have no id. */
struct alert *alerts_next(const struct alerts *a, size_t *i);
struct alert *alerts_find(const struct alerts *a, struct slice id);        /* NULL: none */
struct alert *alerts_find_group(const struct alerts *a, struct slice key); /* NULL: none */
size_t alerts_open(const struct alerts *a, enum alert_condition c); /* open or acknowledged */

/* Which alert's row is to be written next; NULL: none has to be. Counts alone are written seldom.
 */
struct alert *alerts_unwritten(struct alerts *a, int64_t now);
/* Its row is being written as it is now ... */
void alert_writing(struct alert *al);
/* ... and was, with that notice; or not. */
void alert_written(struct alert *al, uint32_t notice, bool lifted, int64_t now);
void alert_not_written(struct alert *al);
/* What the row says besides its columns: JSON. */
void alert_write(const struct alerts *a, const struct alert *al, struct buf *b);

/* A row that was read. ERR_INVALID: it is none of ours; it is left out. */
struct alert_stored {
    struct slice id, key, doc;
    int64_t opened_at, resolved_at, acknowledged_at; /* 0: not */
    struct slice acknowledged_by, acknowledged_why;
};
enum err alerts_load(struct alerts *a, const struct alert_stored *row, int64_t now);

/* For people and sinks: one alert as JSON, as the API has it. */
void alert_render(const struct alert *al, struct buf *b);
/* The same of its row; `state`: only if it is in that one (NONE: any). False: it is not, or the row
 * cannot be read; nothing was written. */
bool alert_render_row(const struct alert_stored *row, struct slice state, struct buf *b);
/* The same for a reader of this one task: without the story, the other examples, how many there
 * are, and what people said of it. */
bool alert_render_for_task(const struct alert_stored *row, struct slice task, struct buf *b);
const char *alert_state(const struct alert *al); /* "open", "acknowledged", "resolved" */
/* "tasks stopped in error: workflow order, step charge, code declined (17)" */
void alert_sentence(const struct alert *al, struct buf *b);

#endif
