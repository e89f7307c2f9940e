#ifndef DEFINITION_READER_H
#define DEFINITION_READER_H

/*
 * Reads the tree of a definition field by field and writes down every mistake on the way. It knows
 * a tree of struct json, and nothing of the syntax it was read from: `at` of a value and `key_at`
 * of a member say where they stand in the text, reader_string_offset knows the rest.
 */

#include "base/map.h"
#include "definition/definition.h"
#include "definition/node.h"

/* How one got to a value. */
struct path {
    const struct path *up;
    struct slice name; /* NONE: the index counts */
    size_t index;
};

/* What the expressions that are read now may look at. */
enum sight {
    SEES_ALL,    /* the task's output: all steps have ended */
    SEES_BEFORE, /* a step: what ends before it starts */
    SEES_UNDO,   /* an undo: all, but the outcome of some may not be known */
};

/* An expression of a step looks at another step, or at itself. */
struct look {
    uint16_t from, to;
    bool is_undo;              /* at an output, and makes nothing of it that could be null */
    const struct json *string; /* it is byte `at` of its text */
    size_t at;
    char path[80];
};

struct reader {
    struct definition *definition;
    struct arena *arena; /* of the definition */
    struct mistakes *mistakes;
    struct mistakes *warnings; /* NULL: nobody wants them */
    struct slice text;         /* what offsets count in */
    bool is_yaml;
    const struct json *steps; /* the array, for the names in it */
    struct map names;         /* of them, to their indexes: uint16_t */
    uint16_t step_count;
    uint16_t step; /* which one is read now */
    enum sight sight;
    struct look *looks;
    size_t look_count, look_cap;
};

/* One field of an object: `read` puts it at `offset` into the target. */
struct field {
    const char *name;
    void (*read)(struct reader *r, const struct json *j, const struct path *path, void *target);
    size_t offset;
    bool is_required;
};

void path_write(struct buf *b, const struct path *path);

/* Adds a mistake: at an offset of the text, or at a value, which then is what was found. */
void mistake_at(struct reader *r, const struct path *path, size_t offset, const char *found,
                const char *expected, ...) PRINTF(5, 6);
void mistake_in(struct reader *r, const struct path *path, const struct json *j,
                const char *expected, ...) PRINTF(4, 5);

/* The same for what is allowed, and hardly meant. */
void warn_at(struct reader *r, const struct path *path, size_t offset, struct slice found,
             const char *expected, ...) PRINTF(5, 6);

/* Where in the text the byte stands that is byte `at` of a string's value. */
size_t reader_string_offset(const struct reader *r, const struct json *string, size_t at);

/* Reads r->definition->text into a tree, and tells of all that no definition may have, whatever it
 * means: what is neither JSON nor YAML (ERR_PARSE), what we do not take of YAML, and keys that
 * stand twice. Sets r->text and r->is_yaml, and json and is_yaml of the definition. */
enum err read_source(struct reader *r, enum definition_format format, struct json **ret) MUST_USE;

/* Every member is read by its field; others are mistakes, names that are reserved are explained. */
void read_object(struct reader *r, const struct json *j, const struct path *path,
                 const struct field *fields, size_t count, void *target);

/* Of values. A mistake leaves *target as it was. */
void read_duration(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_length(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_name(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_action(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_bool(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_on_failure(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_node(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_condition(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_template(struct reader *r, const struct json *j, const struct path *path, void *target);
/* Of a string: an array of its parts, texts and values by turns; without expressions the string. */
void read_template_parts(struct reader *r, const struct json *j, const struct path *path,
                         void *target);

/* Is `text` but one letter from `name`? */
bool name_is_near(struct slice text, struct slice name);

/* Takes the names of all steps, so that they can be referred to before they are read. */
void reader_learn_names(struct reader *r, const struct json *steps);

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
