#ifndef ALERTS_ALERTS_H
#define ALERTS_ALERTS_H

/*
 * Alerts for operators: which conditions hold, since when, and which sinks were notified.
 *
 * An alert is a group: a condition and its labels (task_error of one workflow, step and code), not
 * one failure. So an outage of one service is one alert, however many tasks it fails.
 *
 *     pending              `for` and group_wait have passed       open
 *     open                 somebody acknowledges it               acknowledged
 *     acknowledged         it came again after a quiet `repeat`   open
 *     open, acknowledged   it has ended, for resolve_after        resolved
 *     resolved             it came again soon                     open
 *
 * Each transition is a notice: opened, reminder, resolved. Notices are numbered within their alert,
 * and each sink has the number of the last one that it accepted. So neither a restart nor another
 * leader repeats any, and a failed sink is notified later. Reminders come after `repeat`, then
 * after twice as long, up to a day, and none after an acknowledgement. Where somebody must act on
 * each of a group (`each`), a later one is a reminder, too. A delivery includes all that
 * is due; deliveries in close succession are spaced further and further apart, up to pace_max_ms.
 *
 * An alert that flaps is resolved later each time.
 *
 * Bounded: CONDITION_GROUPS groups of a condition; further ones share one group, "others".
 *
 * Pure: time is passed in, and nothing here does I/O or logs. Not thread-safe.
 */

#include "alerts/conditions.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

enum {
    ALERT_LABELS = 3,
    ALERT_EXAMPLES = 5,
    ALERT_TEXT_SIZE =
        160, /* of a label's value, an example, a name, a reason: longer ones are cut */
    ALERT_ID_SIZE = 24,
    CONDITION_GROUPS = 50,
    ALERT_SINKS = 16,
    ALERTS_A_DELIVERY = 100,
};

/* The default maximum between deliveries in close succession to a sink. */
#define ALERT_PACE_MS INT64_C(300000)

struct alert_label {
    const char *name; /* static */
    char value[ALERT_TEXT_SIZE];
};

/* An observed condition. Several of one group in one look are added up. */
struct sighting {
    enum alert_condition condition;
    struct {
        const char *name;   /* static */
        struct slice value; /* NONE: the label is omitted */
    } labels[ALERT_LABELS];
    uint64_t count;              /* at least 1 */
    int64_t first_at, latest_at; /* 0: now */
    int64_t repeat_ms;           /* how often it is repeated, always; 0: as configured */
    bool each;                   /* a later one, or one more, is a notice, also if acknowledged */
    struct slice example;        /* a task's id, or NONE */
    struct slice story;          /* a description of the problem, or NONE */
};

enum notice_kind { NOTICE_NONE, NOTICE_OPENED, NOTICE_REMINDER, NOTICE_RESOLVED };
const char *notice_text(enum notice_kind k); /* "opened" */

struct alert {
    char id[ALERT_ID_SIZE]; /* from its group and the time it was opened; "": pending */
    enum alert_condition condition;
    struct alert_label labels[ALERT_LABELS];
    size_t label_count;
    struct slice key;            /* condition and labels, `condition{"name":"value"}`; owned */
    uint64_t count;              /* at present, as far as known */
    uint64_t total;              /* seen since it was opened, at least; never less than `count` */
    int64_t first_at, latest_at; /* of the counted events */
    char examples[ALERT_EXAMPLES][ALERT_TEXT_SIZE];
    size_t example_count;
    char story[ALERT_TEXT_SIZE];
    int64_t since;      /* it has held since then */
    int64_t over_since; /* it no longer holds since then; 0: it holds */
    int64_t opened_at, resolved_at;
    uint32_t times; /* how often it returned soon after it was resolved */
    int64_t acknowledged_at;
    char acknowledged_by[ALERT_TEXT_SIZE], acknowledged_why[ALERT_TEXT_SIZE];
    bool lifted; /* the acknowledgement must be removed from its row */
    /* notices: */
    uint32_t notice; /* number of the latest; 0: none */
    enum notice_kind kind;
    int64_t notice_at;
    uint32_t reminders; /* consecutive */
    int64_t repeat_ms;  /* of the latest sighting */
    uint32_t told[ALERT_SINKS];
    /* the row: */
    uint32_t stored_notice; /* the latest that is stored */
    bool dirty;             /* it differs from its row */
    int64_t stored_at;
    bool settled; /* no further transition follows */
    /* the current look: */
    uint64_t seen_count;
    int64_t seen_first_at;
    uint32_t seen_examples; /* BIT() of each one it saw */
    bool seen;
    bool each, later, noticed; /* later than all before it; it is a notice already */
};

/* A receiver of notices. */
struct alert_sink {
    char name[200];        /* unique, and stable over restarts */
    uint32_t conditions;   /* of BIT(enum alert_condition); 0: all */
    struct slice workflow; /* only alerts of that one; NONE: of all, and those without a workflow */
    int64_t resend_ms;     /* interval for repeating all open alerts; 0: notices only */
};

struct alerts_config {
    int64_t group_wait_ms, repeat_ms, resolve_after_ms; /* 0: 5 s, 1 h, 5 min */
    int64_t pace_max_ms;                                /* 0: ALERT_PACE_MS */
    int64_t for_ms[CONDITION_COUNT];                    /* -1: default */
    const struct alert_sink *sinks;                     /* must outlive the alerts */
    size_t sink_count;
};

struct alerts_config alerts_config_default(void);
int64_t alerts_for_ms(const struct alerts_config *c, enum alert_condition condition);

struct alerts;

struct alerts *alerts_new(const struct alerts_config *c);
void alerts_free(struct alerts *a);  /* NULL is allowed */
void alerts_clear(struct alerts *a); /* forgets everything; sinks keep their backoff */

/* A complete look at some conditions (bits): begin, see, end. What was not seen no longer holds.
 * Looks at the same condition must not overlap. */
void alerts_look_begin(struct alerts *a, uint32_t conditions);
void alerts_see(struct alerts *a, const struct sighting *s, int64_t now);
void alerts_look_end(struct alerts *a, uint32_t conditions, int64_t now);
/* Adds one event to what has been counted. Between looks, or in one that has passed it. */
void alerts_add(struct alerts *a, const struct sighting *s, int64_t now);

/* Makes the transitions that are due. Returns the time of the next one without an event; 0:
 * none. */
int64_t alerts_turn(struct alerts *a, int64_t now);

/* What to send to a sink now, at most ALERTS_A_DELIVERY; 0: nothing, or a delivery is running, or
 * one failed just now. `stored_only`: what is not stored waits. alerts_told must follow. *ret_next:
 * when to ask again without an event; 0: not needed. */
size_t alerts_tell(struct alerts *a, size_t sink, bool stored_only, int64_t now,
                   const struct alert *ret[ALERTS_A_DELIVERY], int64_t *ret_next);
/* The result of the delivery. A failed sink is retried after 1 s, twice as long each time, up to 5
 * min. `story`: the reason of the failure. */
void alerts_told(struct alerts *a, size_t sink, bool took, const char *story, int64_t now);

struct sink_state {
    uint64_t delivered, failed; /* deliveries */
    uint32_t failing;           /* consecutive */
    int64_t last_at, next_at;   /* last successful delivery; next attempt */
    char story[200];            /* of the last failure */
    bool busy;
};
const struct sink_state *alerts_sink(const struct alerts *a, size_t sink);

/* ERR_NOT_FOUND; ERR_CONFLICT: it is resolved. Repeating it changes nothing. */
enum err alerts_acknowledge(struct alerts *a, struct slice id, int64_t at, struct slice by,
                            struct slice why);

/* for (size_t i = 0; (al = alerts_next(a, &i));) unordered. Pending alerts have no id. */
struct alert *alerts_next(const struct alerts *a, size_t *i);
struct alert *alerts_find(const struct alerts *a, struct slice id);        /* NULL: none */
struct alert *alerts_find_group(const struct alerts *a, struct slice key); /* NULL: none */
size_t alerts_open(const struct alerts *a, enum alert_condition c); /* open or acknowledged */

/* The alert whose row must be written next; NULL: none. Changes of counts alone are written
 * rarely. */
struct alert *alerts_unwritten(struct alerts *a, int64_t now);
/* Its row is being written in the present state ... */
void alert_writing(struct alert *al);
/* ... and was, with that notice; or the write failed. */
void alert_written(struct alert *al, uint32_t notice, bool lifted, int64_t now);
void alert_not_written(struct alert *al);
/* The contents of the row besides its columns: JSON. */
void alert_write(const struct alerts *a, const struct alert *al, struct buf *b);

/* Loads a row. ERR_INVALID: it cannot be read, and is skipped. */
struct alert_stored {
    struct slice id, key, doc;
    int64_t opened_at, resolved_at, acknowledged_at; /* 0: no */
    struct slice acknowledged_by, acknowledged_why;
};
enum err alerts_load(struct alerts *a, const struct alert_stored *row, int64_t now);

/* For people and sinks: one alert as JSON, in the form of the API. */
void alert_render(const struct alert *al, struct buf *b);
/* The same for a row; `state`: only if it is in that state (NONE: any). False: it is not, or the
 * row cannot be read; nothing was written. */
bool alert_render_row(const struct alert_stored *row, struct slice state, struct buf *b);
/* The same for a reader of this one task: without the description, other examples, counts and
 * people's comments. */
bool alert_render_for_task(const struct alert_stored *row, struct slice task, struct buf *b);
const char *alert_state(const struct alert *al); /* "open", "acknowledged", "resolved" */
/* "tasks stopped in error: workflow order, step charge, code declined (17)" */
void alert_sentence(const struct alert *al, struct buf *b);

#endif
