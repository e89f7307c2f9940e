#ifndef DEFINITION_EXPRESSION_MACHINE_H
#define DEFINITION_EXPRESSION_MACHINE_H

/*
 * One evaluation of an expression. Each node of the tree yields any number of values. Each value is
 * passed to a sink before the next one is computed, and the rest of the expression runs inside the
 * sink. jq works the same way, which gives the same order of values and errors. Every node is
 * active at most once, so the number of nodes bounds the stack.
 *
 * An evaluation pays in steps and in bytes of memory. It fails when it exceeds a limit, and no `?`
 * catches that. Nothing else limits it, so a second evaluation has the same result or failure.
 *
 * Every operation pays before it works, so that no step costs more than MACHINE_WORK_MAX, whatever
 * the expression. Small operations cost a part of a step, see machine_pay.
 *
 * Memory pays by itself: 64 bytes allocated by an evaluation may cost as much as a step. A failure
 * that a `?` catches costs nothing, because its message is not written. A failure that is not
 * caught ends the evaluation.
 */

/* clang-format off */
/*
 * Costs, in parts of a step (PARTS_PER_STEP):
 *
 *     a node evaluated, a member of a container visited   8
 *     a value passed through `?`, `//` or limit           1
 *     two values compared                                 8; of different types 1
 *     two names compared, to sort them                    1
 *     a member looked up                                  1 for each member before it
 *     a part of a string made, a member of an object set  1, 2
 *     a text copied, compared, cut                        1 for 8 bytes
 *     the characters of a text counted                    1 for 32 bytes
 *     a text searched                                     1 for 2 bytes, and for 8 bytes of the
 *                                                         pattern; 1 for 8 bytes if the pattern has
 *                                                         1 or 2; if it has more than 256, 1 for 4
 *                                                         bytes of both, because memmem reads such
 *                                                         a pattern several times
 *     the last of some members found                      2 for each
 *     a recorded value skipped                            1 for a bracket, 2 for a text; 1 for 16
 *                                                         bytes, in a text for 128
 *     a recorded value needed                             8, a member beside it 9 or more; 1 for
 *                                                         8 bytes; if it has members or escapes,
 *                                                         as JSON that is read
 *     a value written as JSON                             4, its name 3; 1 for 8 bytes, 2 for an
 *                                                         escape
 *     JSON read                                           128; 1 for 2 bytes, 4 for a value
 *     two decimals compared                               8, and 1 for 2 bytes
 *     a decimal converted to a double                     2; with more than 15 digits 18, and 1 for
 *                                                         2 bytes
 *     a double converted to a decimal                     16; 48 for each precision tried, 96 if it
 *                                                         is far from 1
 */
/* clang-format on */

enum {
    PARTS_PER_STEP = 8,
    /* The most basic blocks that run for each step, or for each 64 bytes of memory. effort_test.c
     * counts them. */
    MACHINE_WORK_MAX = 128,
};

#include "definition/expression/expression.h"
#include "definition/expression/node.h"

enum flow {
    FLOW_ON,
    FLOW_FAIL, /* machine.what has the message */
    FLOW_STOP, /* enough values: unwinds to machine.stop */
};

/* The remaining budget of one expression, or of several that share it. */
struct budget {
    size_t bytes;
    uint32_t steps;
    bool is_one; /* of a single expression, and of reading the values for it */
};

struct machine {
    struct arena *arena;
    size_t bytes_left;
    size_t parts_left; /* of steps */
    bool is_short_of_steps,
        is_short_of_bytes; /* other expressions spent some of the steps, or bytes */
    bool is_one;           /* but they belong to the same expression */
    bool is_fatal;         /* a limit was exceeded */
    bool is_caught;        /* a `?` catches a failure here, so no message is needed */
    const void *stop;      /* identifies the sink that unwinds */
    size_t at;             /* offset of the node that failed */
    bool has_at;
    char what[200];
};

struct sink {
    enum flow (*fn)(struct machine *m, struct sink *self, const struct json *value);
};

enum flow node_eval(struct machine *m, const struct node *n, const struct json *in,
                    struct sink *out) MUST_USE;

/* As expression_eval, within a budget, from which the cost is subtracted. */
enum err machine_run(const struct expression *x, const struct json *root, struct arena *a,
                     struct budget *budget, const struct json **ret, struct error *e) MUST_USE;

/* An evaluation within a budget; machine_end subtracts its cost. */
struct machine machine_begin(struct arena *a, const struct budget *budget);
void machine_end(const struct machine *m, struct budget *budget);

/* Records the message, unless the failure is caught. Returns FLOW_FAIL. */
enum flow machine_fail(struct machine *m, const char *fmt, ...) PRINTF(2, 3);
/* The same; no `?` catches it. */
enum flow machine_fail_for_good(struct machine *m, const char *fmt, ...) PRINTF(2, 3);

/* Fails for good because no steps are left; returns false. */
bool machine_is_spent(struct machine *m);

/* False: there are fewer parts of steps (steps, bytes) left. */
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

/* Parts charged for one pass over a text. */
static inline size_t text_parts(size_t len)
{
    return len / 8;
}

/* The same for a search: the worst case of glibc's memmem, which has three algorithms. */
static inline size_t search_parts(struct slice text, size_t part_len)
{
    if (part_len > 256)
        return (text.len + part_len) / 4;
    return text.len / (part_len <= 2 ? 8 : 2);
}

#endif
