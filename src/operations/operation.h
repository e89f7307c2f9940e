#ifndef OPERATIONS_OPERATION_H
#define OPERATIONS_OPERATION_H

/*
 * An operation: one verb, applied to all tasks that match a filter, one after the other, newest
 * first.
 *
 * It works page by page. The tasks of the next page are stored before any of them is asked, in one
 * transaction with the results of the page before. So after a crash it is known which tasks may
 * have been asked already; for these the audit tells, whose reason contains the operation's id.
 * Each matching task is counted once: done, refused, failed or gone.
 *
 * Memory: an operation lies in the arena that it was read into.
 */

#include "operations/filter.h"
#include "scheduler/scheduler.h"

enum {
    OPERATION_PAGE_MAX = 64, /* tasks */
    OPERATION_REASONS = 12,  /* kinds of refusals that are counted separately */
    OPERATION_REASON_MAX = 200,
    OPERATION_RATE_MAX = 100000,
    OPERATION_ARGUMENTS_MAX = 68 << 10, /* bytes, as text: the data of a signal fit in */
};

/* clang-format off */
#define OPERATION_STATES(X)                                             \
    X(RUNNING, "running") /* a node works on it, or will soon */      \
    X(STOPPED, "stopped") /* by a person, who may resume it */       \
    X(DONE,    "done")    /* every matching task was counted */
/* clang-format on */

enum operation_state {
#define X(name, text) OPERATION_##name,
    OPERATION_STATES(X)
#undef X
};
const char *operation_state_text(enum operation_state s);

struct operation_refusals {
    struct slice reason;
    uint64_t count;
};

struct operation {
    struct slice id;
    int64_t seq;
    uint64_t revision; /* of the row */
    enum operation_state state;
    enum ask_kind kind;
    struct slice actor, reason;
    int64_t started_at, ended_at;
    struct slice filter_json, arguments_json;
    struct task_filter filter;
    struct slice step, input, output; /* arguments; NONE: not given */
    bool from;                        /* `step` is where to restart */
    struct signal signal;             /* ASK_SIGNAL: what each task is sent */
    bool by_admin;                    /* an admin began it: see operator_needs_admin() */
    int64_t limit;                    /* maximum number of tasks; 0: all */
    int64_t rate;                     /* maximum per second; 0: no limit */
    uint64_t matched;                 /* including those of `page` */
    uint64_t done, failed, gone;
    struct operation_refusals refused[OPERATION_REASONS];
    size_t refused_count;
    int64_t cursor; /* of the next page; 0: none was read yet */
    bool seen_all;  /* there is no next page */
    struct slice page[OPERATION_PAGE_MAX];
    size_t page_count;
};

/* False: there is no such verb, or it cannot be applied to many tasks. */
bool operation_kind_parse(struct slice text, enum ask_kind *ret);
#define OPERATION_VERBS \
    "retry, undo, skip, cancel, pause, resume, supply, resolve, correct, close, reopen or signal"

/* Reads a new operation: verb, filter, arguments, reason, limit, rate. All of it is copied into
 * `a`; ids, times and the signal's content are left to the caller. ERR_INVALID: *e has the error.
 */
enum err operation_read(struct arena *a, const struct json *j, struct operation *ret,
                        struct error *e) MUST_USE;

/* To a row and back. The row's doc points into `doc`, and is valid until more is appended. Each
 * operation that is read back sends a signal of its own, whose key is the operation's id: a task
 * that is asked twice is sent it once. */
void operation_encode(const struct operation *op, struct buf *doc, struct operation_row *ret);
enum err operation_decode(struct arena *a, const struct operation_row *row, struct operation *ret,
                          struct error *e) MUST_USE;

void operation_refused(struct operation *op, struct slice reason, struct arena *a);
/* The obstacle for a task, in words that are the same for all tasks. */
void operation_obstacle(struct buf *b, enum obstacle o, const struct task *t);
uint64_t operation_refused_count(const struct operation *op);

/* The reason in a task's audit: "operation ID: REASON". */
struct slice operation_audit_reason(const struct operation *op, struct arena *a);
/* Was it done by this operation? */
bool operation_did(const struct operation *op, const struct audit *a);

/* The number of tasks that the next page may have; 0: none, the limit is reached. */
size_t operation_page_size(const struct operation *op);

#endif
