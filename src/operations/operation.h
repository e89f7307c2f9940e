#ifndef OPERATIONS_OPERATION_H
#define OPERATIONS_OPERATION_H

/*
 * An operation: one of the operator's verbs, done to all tasks that a filter names, one after the
 * other, newest first.
 *
 * It works page by page. Which tasks are the next page is written down before any of them is asked,
 * in one transaction with what came of the page before. So whoever goes on after a crash knows what
 * may have been asked already: of these the audit tells, in whose reason the operation's id stands.
 * Each task that matched is counted once: done, refused, failed or gone.
 *
 * Memory: an operation lies in the arena that it was read into.
 */

#include "operations/filter.h"
#include "scheduler/scheduler.h"

enum {
    OPERATION_PAGE_MAX = 64, /* tasks */
    OPERATION_REASONS = 12,  /* kinds of refusals that are told apart */
    OPERATION_REASON_MAX = 200,
    OPERATION_RATE_MAX = 100000,
};

/* clang-format off */
#define OPERATION_STATES(X)                                             \
    X(RUNNING, "running") /* somebody works on it, or will soon */      \
    X(STOPPED, "stopped") /* by a person, who may let it go on */       \
    X(DONE,    "done")    /* every task that matched was counted */
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
    struct slice step, input, output; /* arguments; NONE: not said */
    bool from;                        /* `step` is where to start anew */
    int64_t limit;                    /* tasks that are asked, at most; 0: all */
    int64_t rate;                     /* a second, at most; 0: as many as do no harm */
    uint64_t matched;                 /* those of `page` among them */
    uint64_t done, failed, gone;
    struct operation_refusals refused[OPERATION_REASONS];
    size_t refused_count;
    int64_t cursor; /* of the next page; 0: none was looked for yet */
    bool seen_all;  /* there is no next page */
    struct slice page[OPERATION_PAGE_MAX];
    size_t page_count;
};

/* False: there is no such verb, or none that can be done to many. */
bool operation_kind_parse(struct slice text, enum ask_kind *ret);
#define OPERATION_VERBS \
    "retry, undo, skip, cancel, pause, resume, supply, resolve, correct, close or reopen"

/* What is said of a new one: verb, filter, arguments, reason, limit, rate. All of it is copied into
 * `a`, ids and times are left for the caller. ERR_INVALID: *e tells what is wrong. */
enum err operation_read(struct arena *a, const struct json *j, struct operation *ret,
                        struct error *e) MUST_USE;

/* To a row (its doc is appended to `doc`, and good until more is) and back. */
void operation_encode(const struct operation *op, struct buf *doc, struct operation_row *ret);
enum err operation_decode(struct arena *a, const struct operation_row *row, struct operation *ret,
                          struct error *e) MUST_USE;

void operation_refused(struct operation *op, struct slice reason, struct arena *a);
/* What stands in the way of a task, in words that are the same for all of them. */
void operation_obstacle(struct buf *b, enum obstacle o, const struct task *t);
uint64_t operation_refused_count(const struct operation *op);

/* What stands in the audit of a task: "operation ID: REASON". */
struct slice operation_audit_reason(const struct operation *op, struct arena *a);
/* Was it done by this operation? */
bool operation_did(const struct operation *op, const struct audit *a);

/* How many tasks the next page may have; 0: there is none, the limit is reached. */
size_t operation_page_size(const struct operation *op);

#endif
