#ifndef TESTING_SUITE_H
#define TESTING_SUITE_H

/*
 * A test file of a workflow: YAML or JSON text -> its tests, or all its mistakes at once.
 *
 * docs/testing.md is the reference of the grammar. A suite is immutable; all its memory is in its
 * arena.
 */

#include "config/mistakes.h"
#include "config/source.h"
#include "definition/registry.h"
#include "testing/fault.h"

struct template;
struct expression;

/* ---- what an action does ---- */

/* A member of the world, and its new value. */
struct world_change {
    struct slice name;
    struct expression *value; /* NULL: `constant` */
    struct slice constant;    /* JSON */
    uint32_t at;              /* offset in the text */
};

struct effect_spec {
    bool is_given;
    struct world_change *list;
    size_t count;
    uint32_t at;
};

/* What a service promises. */
enum promise {
    PROMISE_DEFAULT, /* as the first answer says, or else kept */
    PROMISE_KEPT,
    PROMISE_BROKEN,
};

enum played_kind {
    PLAYED_COMPLETED,
    PLAYED_REFUSED, /* an error for good */
    PLAYED_FAILED,  /* an error that is retried */
    PLAYED_SILENT,  /* no answer */
};

/* One answer of an action. */
struct played_answer {
    enum played_kind kind;
    struct expression *condition; /* NULL: it is the next attempt's; else of each for which it is
                                     true */
    struct template *output;      /* NULL: null */
    struct slice code, message;   /* of an error */
    enum effect effect;           /* that the error names */
    int64_t retry_after_ms;
    bool takes_effect;       /* of an error or a silent one: the world changes nevertheless */
    int64_t takes_ms;        /* -1: as the action's first answer says */
    int64_t times;           /* so many attempts get it */
    enum promise idempotent; /* one key takes effect once */
    enum promise barrier;    /* nothing takes effect after its undo */
    struct effect_spec does, undone;
    uint32_t at;
};

/* An action of an agent, an HTTP step of one (AGENT.STEP), or all that an agent does (AGENT). */
struct play {
    struct slice key;
    struct played_answer *answers;
    size_t count;
    uint32_t at; /* of its key */
};

struct plays {
    struct play *list;
    size_t count;
};

/* ---- what happens to a task from outside ---- */

enum act_kind { ACT_VERB, ACT_SIGNAL, ACT_VOTE };

struct act {
    enum act_kind kind;
    int64_t after_ms;    /* the submission */
    int verb;            /* enum ask_kind of a verb */
    struct slice step;   /* of a verb or a vote; NONE: the whole task */
    struct slice name;   /* of a signal; the person of a vote */
    struct slice data;   /* JSON of a signal; output or input of a verb; or NONE */
    struct slice reason; /* of a verb; comment of a vote */
    bool agrees;
    struct slice *groups; /* of the person; NULL: those that the step asks */
    size_t group_count;
    const char *what; /* "operator", "signals", "approvals" */
    uint32_t at;
};

/* ---- what is expected ---- */

/* One part of what is expected. */
struct expected {
    bool is_given;
    bool is_asked; /* "?": it is to be filled in */
    const struct json *json;
};

/* Whether a value is "?". A member of `world` and of `steps` may be, too. */
static inline bool json_is_asked(const struct json *j)
{
    return j->type == JSON_STRING && slice_is(j->text, "?");
}

struct test_case {
    const char *name;
    uint32_t at;
    const struct json *json;       /* all of it, as it was read */
    struct slice input;            /* JSON; NONE: null */
    struct slice world;            /* members that differ from the suite's, or NONE */
    const struct json *world_json; /* the same */
    struct slice submitter;        /* a person */
    int64_t start_at;              /* when it is submitted */
    struct plays agents;           /* that differ from the suite's */
    struct act *acts;
    size_t act_count;
    struct fault_list faults;
    struct expected state, error, world_after, order, within, output, steps;
    enum task_state state_word;
    int64_t within_ms;
    bool world_is_before;        /* world: .before */
    struct template *world_tree; /* what the world is to be */
    struct template *output_tree;
};

/* What has to be true in a simulation. */
struct suite_rules {
    struct suite_rule {
        struct expression *expression;
        struct slice text;
        uint32_t at;
    } * list;
    size_t count;
};

struct suite {
    const char *file;
    struct slice text; /* to which offsets refer */
    bool is_yaml;
    const struct json *root; /* all of it, as it was read */
    /* The files of the definitions, relative to this one: first that of the tests, then those of
     * its children. */
    struct suite_source {
        const char *name;
        uint32_t at;
    } workflow, *also;
    size_t also_count;
    struct slice world; /* JSON object */
    const struct json *world_json;
    struct plays agents;
    struct suite_rules always, at_end;
    struct test_case *tests;
    size_t test_count;
    /* What suite_bind() adds: */
    struct registry workflows;
    const struct definition *definition;
    struct arena arena;
};

enum {
    SUITE_TEXT_MAX = 1 << 20,
    SUITE_TESTS_MAX = 1000,
    SUITE_ANSWERS_MAX = 1000, /* of one action */
    SUITE_ACTS_MAX = 200,     /* of one kind and test */
};

/* Reads a test file, without its definitions. Fails with ERR_PARSE or ERR_INVALID, with all
 * mistakes. Otherwise *ret is owned by the caller. */
enum err suite_parse(struct slice text, enum source_format format, const char *file,
                     struct suite **ret, struct mistakes *m) MUST_USE;

/* Takes the definitions, that of the tests first, and checks the tests against them: names of
 * steps, actions and signals, and how effects are undone. */
enum err suite_bind(struct suite *s, struct definition *const *list, size_t count,
                    struct mistakes *m) MUST_USE;

void suite_free(struct suite *s); /* may be NULL */

/* The line and column of an offset in its text. */
void suite_place(const struct suite *s, uint32_t at, uint32_t *ret_line, uint32_t *ret_column);

/* The play of that key; NULL: there is none. */
const struct play *plays_find(const struct plays *p, struct slice key);

#endif
