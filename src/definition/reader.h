#ifndef DEFINITION_READER_H
#define DEFINITION_READER_H

/* What reading a definition adds to config/reader.h: what its fields mean, and what is known of its
 * steps meanwhile. */

#include "base/map.h"
#include "config/config_reader.h"
#include "definition/definition.h"
#include "definition/node.h"

/* What the expressions that are read now may look at. */
enum sight {
    SEES_ALL,     /* the task's output: all steps have ended */
    SEES_BEFORE,  /* a step: what ends before it starts */
    SEES_UNDO,    /* an undo: all, but the outcome of some may not be known */
    SEES_ON_UNDO, /* a step of on_undo: the same of all others, and those of on_undo before it */
    SIGHTS,       /* how many there are */
};

/* An expression of a step looks at another step, or at itself. */
struct look {
    uint16_t from, to;
    bool is_undo; /* at an output, when all has ended, and makes nothing of it that could be null */
    const struct json *string; /* it is byte `at` of its text */
    size_t at;
    char path[80];
};

struct shape;

/* The subject of the reader. */
struct reading {
    struct definition *definition;
    const struct json *steps, *on_undo; /* the arrays, for the names in them */
    struct map names;                   /* of them, to their indexes: uint16_t */
    uint16_t step_count;                /* of both; those of on_undo come last ... */
    uint16_t main_count;                /* ... and before them so many */
    uint16_t step;                      /* which one is read now */
    enum sight sight;
    const struct shape *scopes[SIGHTS]; /* by sight; NULL: not asked for yet */
    struct look *looks;
    size_t look_count, look_cap;
};

static inline struct reading *reading_of(const struct reader *r)
{
    return r->subject;
}

extern const struct reserved definition_reserved[];
extern const size_t definition_reserved_count;

/* Of values. A mistake leaves *target as it was. */
void read_on_failure(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_condition(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_template(struct reader *r, const struct json *j, const struct path *path, void *target);
/* Of a string: an array of its parts, texts and values by turns; without expressions the string. */
void read_template_parts(struct reader *r, const struct json *j, const struct path *path,
                         void *target);

/* What is wrong with an expression, as its parser says it. */
void mistake_of_expression(struct reader *r, const struct path *path, size_t offset,
                           const char *what);

/* Takes the names of all steps, so that they can be referred to before they are read. */
void reader_learn_names(struct reader *r);

static inline bool reads_on_undo(const struct reader *r, uint16_t step)
{
    return step >= reading_of(r)->main_count;
}

/* The step as it is written. */
const struct json *reader_step(const struct reader *r, uint16_t step);

/* Where it is written: `list` has room for what stands before it. */
struct path reader_step_path(const struct reader *r, uint16_t step, struct path *list);

/* The index of the step of that name, as it is written in the text, or -1. */
int reader_step_index(const struct reader *r, struct slice name);

/* The name of a step that `text` is but one letter from, or NONE. */
struct slice reader_step_near(const struct reader *r, struct slice text);

/* Of other files. */
void read_retry(struct reader *r, const struct json *j, const struct path *path, void *target);
extern const struct retry_rule retry_default;
/* Could all tries of the rule be made within `limit_ms` (0: no limit)? */
void check_schedule(struct reader *r, const struct json *j, const struct path *path,
                    const struct retry_rule *rule, int64_t limit_ms, const char *limit);
void read_inputs(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Fills in before, after and order from the `after` of each step (NULL: the one written before it).
 */
void read_graph(struct reader *r, struct workflow_step *steps, const struct json *const *after);

#endif
