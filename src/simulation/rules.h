#ifndef SIMULATION_RULES_H
#define SIMULATION_RULES_H

/*
 * What has to be true in every run: expressions over .task, .world and .before. `always` is looked
 * at whenever the task or the world has changed, `at_end` when the task has ended or stopped.
 *
 * .before has the effects of steps with `undo: none` added: nothing undoes them.
 */

#include "testing/trial.h"

/* Unless the file or the command line has an at_end. */
#define RULE_DEFAULT "if .task.state == \"compensated\" then .world == .before else true end"

struct rule {
    const char *name; /* "always", "at_end 2" */
    bool is_always;
    bool is_default; /* RULE_DEFAULT, which is computed without the expression */
    struct slice text;
    struct expression *expression;
    uint32_t at; /* in the test file; UINT32_MAX: it is from the command line */
};

struct rules {
    struct rule *list;
    size_t count;
    bool any_always, any_own; /* own: an expression */
    bool has_default;
    struct arena arena;
};

/* Those of the file, and then those of the command line. */
void rules_open(struct rules *r, const struct suite *s);
/* ERR_INVALID: *ret_column and *e say where and why. */
enum err rules_add(struct rules *r, bool is_always, struct slice text, size_t *ret_column,
                   struct error *e) MUST_USE;
void rules_ready(struct rules *r); /* no more are added */
void rules_close(struct rules *r);

/* What a rule found. */
struct rule_verdict {
    const struct rule *rule; /* NULL: all are kept */
    bool is_broken;          /* it could not be evaluated: `text` says why */
    struct slice subject;    /* of the default rule: the members that differ; or NONE */
    struct slice text;       /* both in the trial's arena */
};

/* The first rule that is not kept. `task`: JSON of .task. */
struct rule_verdict rules_check(const struct rules *r, struct trial *t, struct slice task,
                                bool at_end);

/* What .task is. */
void rules_write_task(struct buf *b, const struct trial *t, const struct workflow *w,
                      const struct task *task);

#endif
