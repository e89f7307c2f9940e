#ifndef DEFINITION_MACHINE_H
#define DEFINITION_MACHINE_H

/*
 * One evaluation of an expression. A node of the tree gives any number of values, each of which is
 * handed to a sink before the next one is made; what comes behind in the expression happens inside
 * the sink. That is how jq does it too, and gives the same order of values and errors. Every node
 * is active at most once, so that the stack is bounded by the number of nodes.
 *
 * An evaluation pays in steps and in bytes of memory. It fails when it exceeds a limit, and no `?`
 * catches that. The limits alone decide: a second evaluation gives the same result or failure.
 *
 * Every operation pays before it works, so that a step costs no more than MACHINE_WORK_MAX, however
 * an expression is written. Small things cost a part of a step: machine_pay counts these.
 *
 * Memory pays by itself: 64 bytes that an evaluation makes may cost as much as a step. A failure
 * that a `?` catches costs nothing, since its words are not made; one that is not caught ends the
 * evaluation.
 */

/* clang-format off */
/*
 * What is paid, in parts of which PARTS_PER_STEP are a step:
 *
 *     a node evaluated, a member of a container visited   8
 *     a value handed through `?`, `//` or limit           1
 *     two values compared                                 8; of different types 1
 *     two names compared, to sort them                    1
 *     a member looked up                                  1 for each that stands before it
 *     a part of a string made, a member of an object set  1, 2
 *     a text copied, compared, cut                        1 for 8 bytes
 *     the characters of a text counted                    1 for 32 bytes
 *     a text searched                                     1 for 2 bytes, and for 8 of what is
 *                                                         sought; if that has 1 or 2, for 8 bytes;
 *                                                         if it has more than 256, for 4
 *     a recorded value passed over                        1 for a bracket, 2 for a text; 1 for 16
 *                                                         bytes, in a text for 128
 *     a recorded value that is looked at                  8, a member beside it 9 and more; 1 for
 *                                                         8 bytes; if it has members or escapes,
 *                                                         as JSON that is read
 *     a value written as JSON                             4, its name 3; 1 for 8 bytes, 2 for an
 *                                                         escape
 *     JSON read                                           128; 1 for 2 bytes, 4 for a value
 *     two decimals compared                               8, and 1 for 2 bytes
 *     a decimal made a double                             2; with more than 15 digits 18, and 1 for
 *                                                         2 bytes
 *     a double made a decimal                             16; 48 for each precision tried, 96 if it
 *                                                         is far from 1
 */
/* clang-format on */

enum {
    PARTS_PER_STEP = 8,
    /* Basic blocks that run for each step, or for each 64 bytes of memory, at most. effort_test.c
     * counts them. */
    MACHINE_WORK_MAX = 128,
};

#include "definition/expression.h"
#include "definition/node.h"

enum flow {
    FLOW_ON,
    FLOW_FAIL, /* machine.what says why */
    FLOW_STOP, /* somebody has enough: unwind to machine.stop */
};

/* What may be spent, by one expression or by several that share it. */
struct budget {
    size_t bytes;
    uint32_t steps;
    bool is_one; /* it is that of one expression, and of what is read for it */
};

struct machine {
    struct arena *arena;
    size_t bytes_left;
    size_t parts_left;    /* of steps */
    bool is_late, is_fat; /* others have spent of the steps, or bytes, that are left */
    bool is_one;          /* but they belong to the same expression */
    bool is_fatal;        /* a limit was exceeded */
    bool is_caught;       /* a failure here is caught by a `?`: nobody reads why */
    const void *stop;     /* who unwinds */
    size_t at;            /* offset of the node that failed */
    bool has_at;
    char what[200];
};

struct sink {
    enum flow (*fn)(struct machine *m, struct sink *self, const struct json *value);
};

enum flow node_eval(struct machine *m, const struct node *n, const struct json *in,
                    struct sink *out) MUST_USE;

/* As expression_eval, within what is left of a budget: it goes down by what was spent. */
enum err machine_run(const struct expression *x, const struct json *root, struct arena *a,
                     struct budget *budget, const struct json **ret, struct error *e) MUST_USE;

/* An evaluation within what is left of a budget; machine_end takes from it what was spent. */
struct machine machine_begin(struct arena *a, const struct budget *budget);
void machine_end(const struct machine *m, struct budget *budget);

/* Says why it failed, unless that is caught; FLOW_FAIL. */
enum flow machine_fail(struct machine *m, const char *fmt, ...) PRINTF(2, 3);
/* No `?` catches it. */
enum flow machine_fail_for_good(struct machine *m, const char *fmt, ...) PRINTF(2, 3);

bool machine_is_spent(struct machine *m); /* fails for good, as there are no steps left; false */

/* False if there are not so many parts of steps (steps, bytes) left. */
static inline MUST_USE bool machine_pay(struct machine *m, size_t parts)
{
    if (m->is_fatal || parts > m->parts_left)
        return machine_is_spent(m);
    m->parts_left -= parts;
    return true;
}

static inline MUST_USE bool machine_spend(struct machine *m, size_t steps)
{
    return machine_pay(m, steps * PARTS_PER_STEP);
}

bool machine_claim(struct machine *m, size_t bytes) MUST_USE;

/* Parts of what it takes to go through a text. */
static inline size_t text_parts(size_t len)
{
    return len / 8;
}

/* The same to look for a part in it: each byte as glibc's memmem takes at worst, which has three
 * ways to do it. */
static inline size_t search_parts(struct slice text, size_t part_len)
{
    size_t bytes = part_len <= 2 ? 8 : part_len <= 256 ? 2 : 4;

    return text.len / bytes;
}

#endif
