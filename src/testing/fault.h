#ifndef TESTING_FAULT_H
#define TESTING_FAULT_H

/*
 * What goes wrong in a run: a list of faults, each at a place that is named by what happens there,
 * not by its number in the run. So one can be left out without moving the others. The same list
 * gives the same run. `faults` of a test is such a list; `intact simulate` draws lists, shortens
 * them and writes them down.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

/* Where a fault can strike. */
enum fault_place {
    PLACE_REQUEST, /* the n-th request of a step, in that direction */
    PLACE_COMMIT,  /* the n-th transaction that changes tasks */
    PLACE_STOP,    /* the task stops in error for the n-th time */
    PLACE_SIGNAL,  /* the n-th signal of that name */
    PLACE_VOTE,    /* the n-th vote on that step */
};

/* What a fault means for the verdict on a workflow. */
enum fault_class {
    CLASS_TRANSIENT, /* it passes by itself: a lost message, a crash */
    CLASS_ANSWER,    /* a service or a person decides, or never answers */
    CLASS_HELP,      /* what an operator does */
    CLASS_OUTAGE,    /* longer than retries may last */
};

/* clang-format off */
/*    name, place, word, class, length (-1: it has none), may last */
#define FAULTS(X)                                                                     \
    X(REQUEST_LOST, REQUEST, "request lost", TRANSIENT, -1, true)                     \
    X(ANSWER_LOST, REQUEST, "answer lost", TRANSIENT, -1, true)                       \
    X(REFUSED, REQUEST, "refused", ANSWER, -1, false)                                 \
    X(FAILS, REQUEST, "fails", TRANSIENT, -1, true)                                   \
    X(FAILS_AFTER, REQUEST, "fails after effect", TRANSIENT, -1, false)               \
    X(SLOW, REQUEST, "slow", TRANSIENT, 5000, false)                                  \
    X(LATE, REQUEST, "late", TRANSIENT, 60000, true)                                  \
    X(ANSWER_LATE, REQUEST, "answer late", TRANSIENT, 60000, false)                   \
    X(TWICE, REQUEST, "request twice", TRANSIENT, 2000, false)                        \
    X(DOWN, REQUEST, "service down", OUTAGE, 7200000, false)                          \
    X(CANCELLED, REQUEST, "task cancelled", ANSWER, -1, false)                        \
    X(KILLED_BEFORE, COMMIT, "killed before", TRANSIENT, 2000, false)                 \
    X(KILLED_AFTER, COMMIT, "killed after", TRANSIENT, 2000, false)                   \
    X(CLOCK_AHEAD, COMMIT, "clock ahead", OUTAGE, 7200000, false)                     \
    X(CLOCK_BACK, COMMIT, "clock back", OUTAGE, 172800000, false)                     \
    X(NODE_KILLED_BEFORE, COMMIT, "node killed before", TRANSIENT, 10000, false)      \
    X(NODE_KILLED_AFTER, COMMIT, "node killed after", TRANSIENT, 10000, false)        \
    X(NODE_HANGS, COMMIT, "node hangs", TRANSIENT, 10000, false)                      \
    X(RETRIED, STOP, "retry", HELP, 600000, false)                                    \
    X(SKIPPED, STOP, "skip", HELP, 600000, false)                                     \
    X(UNDONE, STOP, "undo", HELP, 600000, false)                                      \
    X(SIGNAL_NEVER, SIGNAL, "never", ANSWER, -1, false)                               \
    X(SIGNAL_EARLY, SIGNAL, "early", TRANSIENT, -1, false)                            \
    X(SIGNAL_TWICE, SIGNAL, "twice", TRANSIENT, 1000, false)                          \
    X(SIGNAL_LATE, SIGNAL, "late", ANSWER, 2592000000, false)                         \
    X(VOTE_NEVER, VOTE, "never", ANSWER, -1, false)                                   \
    X(VOTE_AGAINST, VOTE, "against", ANSWER, -1, false)
/* clang-format on */

enum fault_kind {
    FAULT_NONE,
#define X(name, place, word, class, length, lasts) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_KINDS
};

struct fault_spec {
    enum fault_place place;
    const char *word;
    enum fault_class class;
    int64_t length_ms; /* unless the fault says otherwise; -1: it has none */
    bool may_last;
};

const struct fault_spec *fault_spec(enum fault_kind k);

struct fault_point {
    enum fault_place place;
    struct slice name; /* of the step or signal; NONE: of a commit or stop */
    bool is_undo;      /* of a request */
    uint32_t number;   /* from 1 */
    /* What the strike may depend on: */
    bool is_pivot, took; /* took: its effect took place already */
};

struct fault {
    enum fault_kind kind;
    struct slice name; /* as in its point */
    bool is_undo;
    uint32_t number;
    bool lasts;  /* all later requests of that step and direction, too */
    int64_t ms;  /* how late, how long: its spec's, unless given */
    uint32_t at; /* in a test file */
};

struct fault_list {
    struct fault *list;
    size_t count;
};

/* Whether it strikes one of two nodes: a run that has such a fault has two from its beginning. */
bool fault_is_of_nodes(enum fault_kind k);
bool faults_are_of_nodes(const struct fault_list *l); /* any of them */

/* Decides what strikes. False: nothing does. */
struct fault_source {
    void *arg;
    unsigned nodes; /* of the server: 1 (or 0), or 2 */
    bool (*strikes)(void *arg, const struct fault_point *p, struct fault *ret);
};

/* The fault of a list that strikes at a point, or lasts there; NULL: none. */
const struct fault *fault_at(const struct fault_list *l, const struct fault_point *p);

/* Whether such a fault can strike at such a point. */
bool fault_fits(const struct fault_spec *s, const struct fault_point *p);

/* One that strikes there, with the length of its kind. */
struct fault fault_make(enum fault_kind k, const struct fault_point *p);

bool fault_equal(const struct fault *a, const struct fault *b);

/* As an entry of `faults`: JSON, which is YAML too. */
void fault_write(struct buf *b, const struct fault *f);

/* For people: "the answer to request 2 of charge is lost". */
void fault_tell(struct buf *b, const struct fault *f);

#endif
