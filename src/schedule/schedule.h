#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

/*
 * Schedules: YAML or JSON text -> a compiled schedule, or all its mistakes at once. A schedule says
 * at which moments a task of a workflow is submitted, and with which input.
 *
 * docs/schedules.md is the reference of the grammar. A compiled schedule is immutable.
 */

#include "base/arena.h"
#include "base/err.h"
#include "calendar/cron.h"
#include "config/config_reader.h"
#include "definition/expression/expression.h"

enum {
    SCHEDULE_TEXT_MAX = 64 << 10, /* bytes */
    SCHEDULE_MOMENTS_MAX = 1000,  /* of `at` */
};

enum schedule_kind { SCHEDULE_CRON, SCHEDULE_EVERY, SCHEDULE_AT };

/* What happens to a moment while the run of an earlier one is open. */
/* clang-format off */
#define OVERLAPS(X)       \
    X(SKIP,  "skip")      \
    X(ALLOW, "allow")     \
    X(WAIT,  "wait")      \
    X(UNDO,  "undo")
/* clang-format on */
enum overlap {
#define X(name, text) OVERLAP_##name,
    OVERLAPS(X)
#undef X
};
const char *overlap_text(enum overlap o);

struct schedule {
    struct slice name, workflow;
    enum schedule_kind kind;
    struct slice times; /* cron, every or at, as it was written, on one line */
    struct cron cron;   /* CRON */
    int64_t every_ms;   /* EVERY */
    int64_t *at;        /* AT: in their order, each once */
    size_t at_count;
    struct slice zone_name;
    struct zone *zone;
    struct template *input; /* NULL: none */
    enum overlap overlap;
    int64_t catch_up_ms, spread_ms;
    bool missed_all; /* all missed moments are caught up, not only the latest */
    int64_t priority;
    struct slice tags, reply_to; /* as in a submission: JSON, a target or JSON; or NONE */
    struct slice text;           /* as it was submitted */
    bool is_yaml;
    struct arena arena; /* owns all memory but that of the zone */
};

/* Fails with ERR_PARSE (neither JSON nor YAML) or ERR_INVALID, with all mistakes. Otherwise *ret is
 * owned by the caller. *warnings, which may be NULL, receives what is probably unintended. */
enum err schedule_parse(struct slice text, enum source_format format, struct schedule **ret,
                        struct mistakes *m, struct mistakes *warnings) MUST_USE;
void schedule_free(struct schedule *s); /* may be NULL */

/* Whether both fire at the same moments, at the same times. */
bool schedule_same_times(const struct schedule *a, const struct schedule *b);

/* ---- moments.c ---- */

/* The first moment after `after_at`, on a full second; -1: none. */
int64_t schedule_next(const struct schedule *s, int64_t after_at);

/* When a moment is due: later than the moment by a part of `spread` that depends on the name. */
int64_t schedule_due_at(const struct schedule *s, int64_t moment);

/* "2027-01-01T01:30:00Z", and the same with the offset of a zone: "2027-01-01T02:30:00+01:00". */
void moment_write(struct buf *b, int64_t moment);
void moment_write_local(struct buf *b, const struct zone *z, int64_t moment);

/* The input of the task of a moment: a JSON text in `a`, or NONE. `previous`: the moment that had a
 * task before it; 0: none. ERR_INVALID: an expression failed. */
enum err schedule_input(const struct schedule *s, int64_t moment, int64_t previous, struct arena *a,
                        struct slice *ret, struct error *e) MUST_USE;

#endif
