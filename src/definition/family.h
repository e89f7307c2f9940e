#ifndef DEFINITION_FAMILY_H
#define DEFINITION_FAMILY_H

/*
 * The family of a task: all workflows that its steps of KIND_TASK, and those of their children, can
 * start. Which version of each is fixed when the task at the root is submitted, so that a family is
 * of one piece however long it takes, and so that what cannot end well does not begin.
 */

#include "definition/definition.h"

enum {
    FAMILY_LEVELS_MAX = 8,      /* the root's included */
    FAMILY_TASKS_MAX = 100000,  /* summed over all steps, besides the root */
    FAMILY_WORKFLOWS_MAX = 100, /* besides the root's: each of its tasks has all their versions */
    FAMILY_PATH_SIZE = 100,     /* of a mistake, with its NUL ... */
    FAMILY_EXPECTED_SIZE = 240, /* ... and of what was expected */
    /* Steps that are looked at for the warnings about one definition, of workflows below a root one
     * for each workflow that they start: some milliseconds of the event loop, however many
     * workflows are stored. */
    FAMILY_LOOKS_MAX = 50000,
};

/* Where definitions come from. */
struct family_source {
    /* The newest version of a workflow; NULL: there is none. */
    const struct definition *(*newest)(void *arg, struct slice workflow);
    void *arg;
    bool has_submitter; /* the person who submits it is known */
};

enum family_wrong {
    FAMILY_UNKNOWN,  /* there is no such workflow */
    FAMILY_CYCLE,    /* a workflow starts itself, perhaps by others */
    FAMILY_TOO_DEEP, /* more than FAMILY_LEVELS_MAX */
    FAMILY_TOO_MANY, /* more than FAMILY_TASKS_MAX or FAMILY_WORKFLOWS_MAX */
    FAMILY_PIVOT,    /* a step that is no pivot starts a workflow with one */
    FAMILY_LOCK,     /* a child would need a lock */
    FAMILY_SUBMITTER /* a child is to be decided by others than the submitter, who is not known */
};

/* "found PATH, expected EXPECTED" */
struct family_fault {
    enum family_wrong what;
    uint16_t step;                       /* of the root */
    char path[FAMILY_PATH_SIZE];         /* "order -> ship-one -> label" */
    char expected[FAMILY_EXPECTED_SIZE]; /* "children without a cycle" */
};

/* The family of a task of that definition as a JSON object, {"ship-one": 3, "label": 1}, in `a`;
 * NONE: it starts no children. ERR_INVALID: *fault is the first thing that is wrong. What concerns
 * the root alone, as its own lock, is not looked at. */
enum err family_resolve(const struct definition *root, const struct family_source *source,
                        struct arena *a, struct slice *ret, struct family_fault *fault) MUST_USE;

/* Adds what is wrong with the family to the warnings about its definition, for each step that
 * starts a child: a workflow may be stored before those of its children. Subtracts the steps that
 * it looks at from *looks, and ends when none are left: submissions are checked in any case. */
void family_warn(const struct definition *root, const struct family_source *source, size_t *looks,
                 struct mistakes *warnings);

/* Adds a warning for each workflow that could start children so far and could not with this one as
 * the newest of its name: found among `stored`, the newest versions of `count` workflows, as far
 * as the looks last. */
void family_warn_parents(const struct definition *newer, const struct family_source *source,
                         const struct definition *const *stored, size_t count, size_t *looks,
                         struct mistakes *warnings);

/* The version of a workflow in a family; 0: it is not in it. */
int64_t family_version(struct slice family, struct slice workflow);

#endif
