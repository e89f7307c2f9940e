#ifndef DEFINITION_READER_DEFINITION_READER_H
#define DEFINITION_READER_DEFINITION_READER_H

/* Extends config/config_reader.h for definitions: readers of their fields, and what is known of the
 * steps while they are read. */

#include "base/map.h"
#include "config/config_reader.h"
#include "definition/definition.h"
#include "definition/expression/node.h"

/* The steps that the expressions being read may refer to. */
enum visible {
    VISIBLE_ALL,     /* the task's output: all steps */
    VISIBLE_BEFORE,  /* a step: its predecessors */
    VISIBLE_UNDO,    /* an undo: all steps, but some outcomes may be unknown */
    VISIBLE_ON_UNDO, /* a step of on_undo: all steps of `steps`, likewise, and its predecessors in
                     on_undo */
    VISIBLE_MATCH,   /* the match of a step: its predecessors, and the signal */
    VISIBLE_KINDS,   /* number of values */
};

/* What the expressions being read see of the rounds of their own step. */
enum seen_of_rounds {
    ROUNDS_NONE,   /* nothing: it is not repeated */
    ROUNDS_NUMBER, /* .round */
    ROUNDS_ANSWER, /* .round and .output, the answer of the round: `until` */
    SEEN_OF_ROUNDS_KINDS,
};

/* What they see of the items of their own step. */
enum seen_of_items {
    ITEM_NONE,   /* nothing: it has no for_each */
    ITEM_BARRED, /* nothing, because they are evaluated once for all items: that is a mistake */
    ITEM_SEEN,   /* .item and .index */
    ITEM_UNDONE, /* and .output, that of the item: the undo */
    SEEN_OF_ITEMS_KINDS,
};

/* A reference from an expression of a step to a step. */
struct step_use {
    uint16_t from, to;
    bool is_undo;              /* to an output that may be unknown then, without a case for null */
    const struct json *string; /* the expression is at byte `at` of its text */
    size_t at;
    char path[80];
};

struct shape;

/* What is known of the definition being read. */
struct reading {
    struct definition *definition;
    const struct json *steps, *on_undo; /* the arrays, for the names of steps */
    const struct json *on_signal;       /* its keys are names of signals; NULL: none */
    struct map names;                   /* step names to indexes: uint16_t */
    uint16_t step_count;                /* of both arrays; those of on_undo come last ... */
    uint16_t main_count;                /* ... after this many of `steps` */
    const bool *is_each;                /* of each step: it has `for_each` */
    bool has_each;                      /* some step has */
    uint16_t step;                      /* the one being read */
    uint32_t people;                    /* have to agree, in all steps up to that one */
    uint32_t items_at_work;             /* at most, of the same steps */
    enum visible visible;
    enum seen_of_rounds rounds;
    enum seen_of_items items;
    /* By the three above; NULL: not made yet. */
    const struct shape *scopes[VISIBLE_KINDS][SEEN_OF_ROUNDS_KINDS][SEEN_OF_ITEMS_KINDS];
    struct step_use *uses;
    size_t use_count, use_cap;
};

static inline struct reading *reading_of(const struct reader *r)
{
    return r->subject;
}

extern const struct reserved definition_reserved[];
extern const size_t definition_reserved_count;

/* Readers of values. After a mistake *target is unchanged. */
void read_on_failure(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_condition(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_template(struct reader *r, const struct json *j, const struct path *path, void *target);
/* Reads a string into an array that alternates texts and values; without expressions into the
 * string itself. */
void read_template_parts(struct reader *r, const struct json *j, const struct path *path,
                         void *target);

/* Reports a mistake in an expression, in the words of its parser. */
void mistake_of_expression(struct reader *r, const struct path *path, size_t offset,
                           const char *what);

/* Registers the names of all steps, so that expressions can refer to steps that are read later. */
void reader_learn_names(struct reader *r);

static inline bool reads_on_undo(const struct reader *r, uint16_t step)
{
    return step >= reading_of(r)->main_count;
}

/* The step's JSON. */
const struct json *reader_step(const struct reader *r, uint16_t step);

/* Its path; `list` holds the part before it. */
struct path reader_step_path(const struct reader *r, uint16_t step, struct path *list);

/* The index of the step with that name, or -1. */
int reader_step_index(const struct reader *r, struct slice name);

/* The name of a step that differs from `text` in one letter, or NONE. */
struct slice reader_step_near(const struct reader *r, struct slice text);

/* ---- retry.c, inputs.c, graph.c ---- */
void read_retry(struct reader *r, const struct json *j, const struct path *path, void *target);
/* A number from 1; target: uint32_t, thousandths. */
void read_growth(struct reader *r, const struct json *j, const struct path *path, void *target);
extern const struct retry_rule retry_default;
/* Reports a mistake if the attempts of the rule do not fit into `limit_ms` (0: no limit). */
void check_schedule(struct reader *r, const struct json *j, const struct path *path,
                    const struct retry_rule *rule, int64_t limit_ms, const char *limit);
void read_inputs(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Fills in before, after and order from the `after` of each step (NULL: its predecessor is the step
 * written before it). */
void read_graph(struct reader *r, struct workflow_step *steps, const struct json *const *after);

#endif
