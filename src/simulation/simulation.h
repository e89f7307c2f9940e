#ifndef SIMULATION_SIMULATION_H
#define SIMULATION_SIMULATION_H

/*
 * What a simulation found out about a workflow: every end that its runs reached, with the shortest
 * story of each, and what is wrong with it. Text, JSON and pages are written from this alone.
 *
 * Findings are of two levels. WRONG: the exit status is 1. LOOK: it may be meant so.
 */

#include "base/map.h"
#include "simulation/rules.h"
#include "simulation/run.h"

/* clang-format off */
/*    name, word (for --allow), level, what it means */
#define FINDINGS(X)                                                                               \
    X(RULE, "rule", WRONG, "a rule is not kept")                                                  \
    X(PLAIN, "plain", WRONG, "without any fault it does not end as its test expects")             \
    X(ONE_FAULT, "one-fault", WRONG,                                                              \
      "one fault that passes by itself stops it in error")                                        \
    X(REFUSAL, "refusal", WRONG, "a refused request stops it in error")                           \
    X(SILENCE, "silence", WRONG, "a step that never gets an answer stops it in error")            \
    X(WAITS, "waits", WRONG, "it waits for ever for what may never come")                         \
    X(FIT, "fit", WRONG, "what a step may take does not fit into the task's complete_by")         \
    X(AFTER_PIVOT, "after-pivot", LOOK,                                                           \
      "a refused request after the pivot stops it in error")                                      \
    X(HOLDS, "holds", LOOK, "a refused request stops it in error, as its on_failure says")        \
    X(STAYS, "stays", LOOK, "it is compensated, and the effect of a step with undo: none stays")  \
    X(UNCLEAR, "unclear", LOOK,                                                                   \
      "what stays changed a member that is no number, and has no `undone`: it is not compared")   \
    X(GAP, "gap", LOOK, "it is processed without a step that has an undo")                        \
    X(UNREACHED, "unreached", LOOK, "no run reached a step")
/* clang-format on */

enum finding_kind {
#define X(name, word, level, text) FINDING_##name,
    FINDINGS(X)
#undef X
        FINDING_KINDS
};

enum finding_level { LEVEL_LOOK, LEVEL_WRONG };

const char *finding_word(enum finding_kind k);
const char *finding_text(enum finding_kind k);
enum finding_level finding_level(enum finding_kind k);

/* How a run came to what is told of it: a test of the file, and the faults. */
struct story {
    const struct test_case *test;
    struct fault_list faults;
    uint64_t seen_as; /* which run it was: of two stories of one length the earlier one counts */
    bool is_shortest; /* leaving out any one fault changes what it tells */
    /* Once it is told (simulation_tell): */
    struct slice *lines; /* "00:00:02  charge: attempt 1 ..." */
    size_t line_count;
    int64_t took_ms;
};

struct reached_end {
    struct run_end end;
    uint64_t count;
    int64_t longest_ms; /* without operators; 0: it has no time */
    struct story story;
    /* If it is in error, or waits: as `intact why` says it. */
    struct slice summary, moves;
};

struct finding {
    enum finding_kind kind;
    const struct rule *rule; /* FINDING_RULE */
    struct slice subject;    /* a step, or several; NONE */
    struct slice text;       /* a sentence */
    uint64_t count;          /* of runs */
    struct story story;      /* UNREACHED has none: its test is NULL */
    struct run_end end;
};

struct simulation {
    const struct suite *suite;
    struct rules *rules;
    struct coverage coverage;
    const struct test_case **tests;
    size_t test_count;
    uint64_t seed, runs;
    uint64_t visits;           /* of places, in all runs: what it costs */
    unsigned depth;            /* of an exhaustive search; 0: it was none */
    unsigned allowed;          /* bits by enum finding_kind: not reported */
    bool is_bare;              /* the test file was made from a definition, and has no places */
    struct reached_end **ends; /* those seen most often first, once it is over */
    size_t end_count, end_cap;
    struct map by_key; /* of the ends */
    struct finding *findings;
    size_t finding_count, finding_cap;
    struct story longest; /* the run that took longest to an end */
    int64_t longest_ms;
    /* The file is wrong, and nothing else is valid: */
    struct slice broken;
    uint32_t broken_at;             /* place in the file */
    const struct rule *broken_rule; /* which could not be evaluated; NULL: it was no rule */
    struct story broken_story;
    struct arena arena;
};

void simulation_open(struct simulation *v, const struct suite *s, struct rules *rules);
void simulation_close(struct simulation *v);

/* Takes in what one run found. */
void simulation_take(struct simulation *v, const struct run *r);

/* After the last run: what was never reached, shorter stories, and how they are told. */
void simulation_finish(struct simulation *v);

bool simulation_is_wrong(const struct simulation *v); /* some finding is */

/* simulation_text.c, simulation_json.c, simulation_html.c */
void simulation_write_text(const struct simulation *v, struct buf *b);
void simulation_write_json(const struct simulation *v, struct buf *b);
void simulation_write_html(const struct simulation *v, struct buf *b);

#endif
