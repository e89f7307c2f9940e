#ifndef DEFINITION_DEFINITION_H
#define DEFINITION_DEFINITION_H

/*
 * Workflow definitions: YAML or JSON text -> a compiled workflow, or all its mistakes at once.
 *
 * docs/definitions.md is the reference of the grammar. Strings in `input` may hold
 * ${ expression }; see expression.h. A compiled definition is immutable and may be shared between
 * threads.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "config/mistakes.h"
#include "config/source.h"
#include "core/task.h"
#include "definition/expression.h"
#include "json/json.h"

enum definition_format {
    DEFINITION_GUESS = SOURCE_GUESS, /* what begins with "{" is JSON, all else YAML */
    DEFINITION_JSON = SOURCE_JSON,
    DEFINITION_YAML = SOURCE_YAML, /* also what is JSON */
};

struct definition {
    struct workflow workflow; /* templates points back to this struct */
    struct slice text;        /* as it was given */
    struct slice json;        /* the same as JSON; of a text that is JSON: itself */
    bool is_yaml;             /* text that is JSON is not, whatever it was called */
    struct arena arena;       /* holds all of it */
    struct template *output;  /* NULL: none */
    struct step_templates {
        struct template *input;       /* NULL: the task's input */
        struct template *undo_input;  /* NULL: {input, output} of the step */
        struct expression *condition; /* `if`; NULL: always */
    } * steps;
    bool has_conditions; /* some step has one */
    struct input_rule {
        struct slice name;
        enum json_type type; /* JSON_TRUE stands for boolean, JSON_NULL for any */
        bool integer;        /* of JSON_NUMBER: no fraction */
        bool required;
        struct slice preset; /* `default`, or NONE */
    } * inputs;
    size_t input_count;
    bool has_inputs; /* `inputs` was given: the input is checked, unknown names are mistakes */
};

/* ERR_PARSE (neither JSON nor YAML, the tree is not known) or ERR_INVALID, with all mistakes;
 * otherwise *ret is the caller's. *warnings gets what is allowed and hardly meant, in any case; it
 * may be NULL. What was stored is read back as DEFINITION_YAML: it takes whatever was taken once.
 */
enum err definition_parse(struct slice text, enum definition_format format, struct definition **ret,
                          struct mistakes *m, struct mistakes *warnings) MUST_USE;

/* The name that stands in a definition, whatever mistakes it has otherwise; NONE: there is none to
 * find. It lies in `a` and is terminated by a NUL. */
struct slice definition_name(struct slice text, enum definition_format format, struct arena *a);

void definition_free(struct definition *d); /* NULL is fine */

static inline const struct definition *definition_of(const struct workflow *w)
{
    return w->templates;
}

/* Checks a task's input against `inputs` and adds defaults: *ret is the input as it is to be
 * recorded (in `a`, or the same slice). ERR_INVALID with a story that names the input, what was
 * found and expected. */
enum err definition_check_input(const struct definition *d, struct slice input, struct arena *a,
                                struct slice *ret, struct error *e) MUST_USE;

/* Its inputs, for those who cannot read definitions: a JSON array of {name, type, required}, or
 * null if it names none. */
void definition_write_inputs(const struct definition *d, struct buf *b);

/* What expressions see. Values are JSON texts; a step without output has NONE. */
struct scope {
    const struct definition *definition;
    struct slice input; /* of the task */
    /* {"id":..., "workflow":..., ...}, asked for if somebody looks at it; NULL: it is {} */
    struct slice (*task)(void *arg, struct arena *a);
    struct slice (*step_input)(void *arg, int step); /* NONE: null */
    struct slice (*step_output)(void *arg, int step);
    enum step_state (*step_state)(void *arg, int step); /* NULL: its state is null */
    /* Of its failure going forward; without a code, or NULL: null. */
    struct fault_note (*step_error)(void *arg, int step);
    void *arg;
    uint64_t *spent; /* goes up by the steps that were spent; NULL: nobody wants to know */
};

/* Each evaluates into `a`. ERR_INVALID: the expression failed; the story says which one, where and
 * why. */
enum err definition_step_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e) MUST_USE;
enum err definition_undo_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e) MUST_USE;
enum err definition_condition(const struct scope *s, int step, struct arena *a, bool *ret,
                              struct error *e) MUST_USE;
enum err definition_output(const struct scope *s, struct arena *a, struct slice *ret,
                           struct error *e) MUST_USE; /* NONE if the definition names none */

#endif
