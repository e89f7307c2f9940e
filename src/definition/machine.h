#ifndef DEFINITION_MACHINE_H
#define DEFINITION_MACHINE_H

/*
 * One evaluation of an expression. A node of the tree gives any number of values, each of which is
 * handed to a sink before the next one is made; what comes behind in the expression happens inside
 * the sink. That is how jq does it too, and gives the same order of values and errors. Every node
 * is active at most once, so that the stack is bounded by the number of nodes.
 *
 * Each node and each member looked at costs a step, each byte made counts: whoever exceeds a limit
 * fails, and no `?` catches that.
 */

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
};

struct machine {
    struct arena *arena;
    size_t bytes_left;
    uint32_t steps_left;
    bool is_late, is_fat; /* others have spent of the steps, or bytes, that are left */
    bool is_fatal;        /* a limit was exceeded */
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

/* Says why it failed; FLOW_FAIL. */
enum flow machine_fail(struct machine *m, const char *fmt, ...) PRINTF(2, 3);

/* False if there are not so many steps (bytes) left. */
bool machine_spend(struct machine *m, size_t steps) MUST_USE;
bool machine_claim(struct machine *m, size_t bytes) MUST_USE;

#endif
