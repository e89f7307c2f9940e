#ifndef DEFINITION_DEFINITION_H
#define DEFINITION_DEFINITION_H

/*
 * Workflow definitions: YAML or JSON text -> a compiled workflow, or all its mistakes at once.
 *
 * docs/definitions.md is the reference of the grammar. Strings in `input` may hold ${ expression };
 * see expression.h. A compiled definition is immutable and may be shared between threads.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "config/mistakes.h"
#include "config/source.h"
#include "core/task.h"
#include "definition/expression/expression.h"
#include "json/json.h"

enum definition_format {
    DEFINITION_GUESS = SOURCE_GUESS, /* a text that begins with "{" is JSON, any other is YAML */
    DEFINITION_JSON = SOURCE_JSON,
    DEFINITION_YAML = SOURCE_YAML, /* JSON is accepted too */
};

struct definition {
    struct workflow workflow;  /* templates points back to this struct */
    struct slice text;         /* as it was submitted */
    struct slice json;         /* the same as JSON; the text itself if that is JSON */
    struct slice source;       /* the text to which offsets refer: without a byte order mark */
    size_t name_at;            /* offset of the workflow's name */
    bool is_yaml;              /* false for a text that is JSON, whatever format was named */
    struct arena arena;        /* owns all memory of the definition */
    struct template *output;   /* NULL: none */
    struct template *lock_key; /* NULL: the workflow has no lock */
    struct step_templates {
        struct template *input;       /* NULL: the task's input */
        struct template *undo_input;  /* NULL: {input, output} of the step */
        struct expression *condition; /* `if`; NULL: always */
        struct template *wait_until;  /* of a wait for a moment: gives the moment ... */
        int64_t wait_plus_ms;         /* ... to which this is added */
        struct template *items;       /* of a step with for_each: gives the list */
        struct expression *until;     /* of a repeated step: whether an answer satisfies it */
        struct expression *match;     /* of a step that waits for a signal; NULL: any */
        struct template *question;    /* of a step in which people decide */
        size_t child_at;              /* of a step that starts a child: offset of its workflow */
    } * steps; /* after them the slots, as in the workflow. With for_each a step has its condition
                * and its list, and its slots have the rest */
    bool has_decisions; /* some step has an `if`, waits or is repeated: something of it is decided
                         * without an agent */
    bool has_waits;     /* for a time, a signal, people or a child */
    bool has_signals;   /* some step waits for a signal or for people */
    const struct slice *signals; /* names of all signals, of steps and of on_signal, each once */
    size_t signal_count;
    struct child_use { /* a workflow that its steps start: */
        struct slice workflow;
        uint64_t count;         /* the most children of it that one task has */
        struct slice unpivoted; /* the first step of them that is no pivot; NONE: all are */
    } * children;               /* each once, in the order of the steps that name it first */
    size_t child_count;
    bool has_pivot;       /* some step is one */
    bool needs_submitter; /* some step is not decided by the person who submitted the task */
    struct input_rule {
        struct slice name;
        enum json_type type; /* JSON_TRUE means boolean, JSON_NULL means any */
        bool integer;        /* JSON_NUMBER without a fraction */
        bool required;
        struct slice preset; /* `default`, or NONE */
    } * inputs;
    size_t input_count;
    bool has_inputs; /* `inputs` was given: the input is checked, and unknown names are mistakes */
};

/* Fails with ERR_PARSE (neither JSON nor YAML; there is no tree) or ERR_INVALID, with all mistakes.
 * Otherwise *ret is owned by the caller. In any case *warnings, which may be NULL, receives what is
 * allowed but probably unintended. Stored definitions are read back as DEFINITION_YAML, which
 * accepts every text that was accepted before. */
enum err definition_parse(struct slice text, enum definition_format format, struct definition **ret,
                          struct mistakes *m, struct mistakes *warnings) MUST_USE;

/* The workflow's name, even if the definition has mistakes. NONE: no name was found. It is
 * allocated in `a` and ends with a NUL. */
struct slice definition_name(struct slice text, enum definition_format format, struct arena *a);

void definition_free(struct definition *d); /* may be NULL */

/* The bytes of memory that it takes, in all. */
static inline size_t definition_size(const struct definition *d)
{
    return sizeof *d + d->arena.total;
}

static inline const struct definition *definition_of(const struct workflow *w)
{
    return w->templates;
}

/* Checks a task's input against `inputs` and adds defaults. *ret is the input to record (in `a`, or
 * the same slice). ERR_INVALID: *e names the input, what was found and what was expected. */
enum err definition_check_input(const struct definition *d, struct slice input, struct arena *a,
                                struct slice *ret, struct error *e) MUST_USE;

/* Writes the inputs as a JSON array of {name, type, required}, or null if the definition declares
 * none. Clients that cannot parse definitions use it. */
void definition_write_inputs(const struct definition *d, struct buf *b);

/* Behind the item that was evaluated last, in its part of the list: most items are evaluated one
 * after the other, and a part is as long as its items. */
struct item_mark {
    const char *part;  /* the text of that part; NULL: none was evaluated */
    uint32_t next;     /* the next item of the part, ... */
    struct slice rest; /* ... and the text from there on */
};

/* The values that expressions can refer to. Values are JSON texts; a step without output has
 * NONE. `step` is a unit: a step, or the slot of an item (core/workflow.h). */
struct scope {
    const struct definition *definition;
    struct slice input; /* of the task */
    /* {"id":..., "workflow":..., ...}; called only if an expression refers to it. NULL: {} */
    struct slice (*task)(void *arg, struct arena *a);
    /* To which a signal of that name can be sent. NONE, or if NULL: null. */
    struct slice (*signal_url)(void *arg, struct slice name, struct arena *a);
    struct slice (*step_input)(void *arg, int step); /* NONE: null */
    /* Empty: the outputs of the items of a step with for_each are too long to be evaluated. */
    struct slice (*step_output)(void *arg, int step);
    enum step_state (*step_state)(void *arg, int step); /* NULL: its state is null */
    /* The step's forward failure. Without a code, or if NULL: null. */
    struct fault_note (*step_error)(void *arg, int step);
    /* The round that a repeated step is in, from 1; NULL: 1. */
    uint32_t (*step_round)(void *arg, int step);
    /* A step with for_each, and its slots, as they are in the task. A free slot stands for the item
     * that begins next. The part of the list that has the item is in memory. NULL: there are none.
     */
    const struct step *(*unit)(void *arg, int step);
    /* The first errors of a step with for_each, as a JSON array. NONE, or if NULL: null. */
    struct slice (*item_errors)(void *arg, int step);
    /* Where the list of that step was left; kept as long as its parts. NULL: nowhere. */
    struct item_mark *(*item_mark)(void *arg, int step);
    void *arg;
    uint64_t *spent; /* incremented by the evaluation steps spent; may be NULL */
};

/* What an expression needs of a step with for_each that may not be in memory: the array of its
 * outputs (if that is ITEMS_OUTPUT), and its first errors. The caller has to fetch them before it
 * evaluates. */
struct items_needed {
    bool output, errors;
};

/* What the expressions of a unit in that direction need of `each`, a step with for_each; of unit
 * -1, those of the task's output. */
struct items_needed definition_needs_items(const struct definition *d, int step,
                                           enum direction direction, uint16_t each);

/* Whether the expressions of a slot in that direction need its item, and so the part of the list
 * that has it. */
bool definition_needs_item(const struct definition *d, int slot, enum direction direction);

/* Each evaluates into `a`. ERR_INVALID: an expression failed; *e says which one, where and why. */
enum err definition_step_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e) MUST_USE;
enum err definition_undo_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e) MUST_USE;
enum err definition_condition(const struct scope *s, int step, struct arena *a, bool *ret,
                              struct error *e) MUST_USE;
/* The list of a step with for_each, in parts. An object is the list of its entries, as of
 * to_entries. *ret_code is that of the failure: "expression", or "list" if there is none, or if it
 * has more than max_items items or LIST_SIZE_MAX bytes. */
enum { LIST_SIZE_MAX = 4 << 20 };
enum err definition_items(const struct scope *s, int step, struct arena *a, struct item_list *ret,
                          const char **ret_code, struct error *e) MUST_USE;
/* The moment that a wait without a length waits for; before 1970 it is 1. */
enum err definition_wait_until(const struct scope *s, int step, struct arena *a, int64_t *ret_at,
                               struct error *e) MUST_USE;
/* Whether the output of a repeated step satisfies it; fails if that is neither true nor false. */
enum err definition_until(const struct scope *s, int step, struct arena *a, bool *ret,
                          struct error *e) MUST_USE;
/* Whether a signal of that name, with that value, is what the step waits for. An expression that
 * fails says no. */
bool definition_match(const struct scope *s, int step, struct slice name, struct slice data,
                      struct arena *a);
/* What the key of the lock is for a task of that input, as a text ("NAME/KEY"). ERR_INVALID: *e
 * says what it is instead of a text, a number or a boolean of 1 to LOCK_KEY_MAX bytes. */
enum { LOCK_KEY_MAX = 256 };
enum err definition_lock(const struct scope *s, struct arena *a, struct slice *ret,
                         struct error *e) MUST_USE;
/* The question of a step in which people decide, as a JSON string; fails if it is no text, or
 * longer than QUESTION_MAX bytes. */
enum { QUESTION_MAX = 2000 }; /* listings read no payloads */
enum err definition_question(const struct scope *s, int step, struct arena *a, struct slice *ret,
                             struct error *e) MUST_USE;
enum err definition_output(const struct scope *s, struct arena *a, struct slice *ret,
                           struct error *e) MUST_USE; /* NONE if the definition has no `output` */

#endif
