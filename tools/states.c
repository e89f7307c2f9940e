/*
 * Prints a state machine of src/core/task.h for Graphviz: its states, its edges, and when each of
 * them is taken, all of it out of the tables. Moves of a step that only the operator makes are left
 * out. See tools/diagrams.
 *
 *     states task | step
 */

#include <stdio.h>
#include <string.h>

#include "core/task.h"

enum { LABEL_WIDTH = 18 };

/* A task's moves by the operator are drawn apart from those that happen by themselves. */
static const char dashed[] = ", style=dashed, color=\"#57606a\", fontcolor=\"#57606a\"";

/* In lines, with blanks that keep it off its line. */
static void print_wrapped(const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > 0 && column + 1 + word > LABEL_WIDTH) {
            fputs(" \\n", stdout);
            column = 0;
        }
        printf(" %.*s", (int)word, text);
        column += word + 1;
        text += word;
        text += strspn(text, " ");
    }
}

static bool is_by_operator(const char *when)
{
    return strncmp(when, "the operator", strlen("the operator")) == 0;
}

static uint32_t edge(const char *from, const char *to, const char *when)
{
    printf("    %s -> %s [label=\"", from, to);
    print_wrapped(when);
    printf(" \"%s];\n", is_by_operator(when) ? dashed : "");
    return 0;
}

/* A step has so many moves by the operator alone that they would hide the others. */
static uint32_t step_edge(const char *from, const char *to, const char *when)
{
    return is_by_operator(when) ? 0 : edge(from, to, when);
}

static void node(const char *name, const char *fill, bool is_end)
{
    printf("    %s [fillcolor=\"%s\"%s];\n", name, fill, is_end ? ", peripheries=2" : "");
}

static void head(const char *what)
{
    printf("digraph %s {\n"
           "    bgcolor=\"white\"; pad=0.2; nodesep=0.45; ranksep=0.55;\n"
           "    fontname=\"Helvetica,Arial,sans-serif\";\n"
           "    node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica,Arial,sans-serif\","
           " fontsize=14, margin=\"0.2,0.1\", color=\"#24292f\", fontcolor=\"#24292f\"];\n"
           "    edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, color=\"#24292f\","
           " fontcolor=\"#24292f\"];\n",
           what);
}

/* clang-format off */
static const char *const task_fills[] = {
    [TASK_PENDING] = "#f6f8fa", [TASK_PROCESSING] = "#cfeef5", [TASK_PROCESSED] = "#c6efce",
    [TASK_COMPENSATING] = "#cfeef5", [TASK_COMPENSATED] = "#fff1b8", [TASK_ERROR] = "#ffd1cc",
};

static const char *const step_fills[] = {
    [STEP_WAITING] = "#f6f8fa", [STEP_RUNNING] = "#cfeef5", [STEP_COMPLETED] = "#c6efce",
    [STEP_FAILED] = "#ffd1cc", [STEP_SKIPPED] = "#e8e8e8", [STEP_UNDOING] = "#cfeef5",
    [STEP_UNDONE] = "#fff1b8",
};
/* clang-format on */

static void print_task(void)
{
    const char *from;
    uint32_t sum = 0;

    head("task");
#define X(name, text, to) node(text, task_fills[TASK_##name], task_state_is_end(TASK_##name));
    TASK_STATES(X)
#undef X
#define TO(name, when) edge(from, task_state_text(TASK_##name), when)
#define X(name, text, to) \
    from = text;          \
    sum |= (to);
    TASK_STATES(X)
#undef X
#undef TO
    ASSERT(sum == 0 && from);
    puts("}");
}

static void print_step(void)
{
    const char *from;
    uint32_t sum = 0;

    head("step");
#define X(name, text, to) node(text, step_fills[STEP_##name], false);
    STEP_STATES(X)
#undef X
#define TO(name, when) step_edge(from, step_state_text(STEP_##name), when)
#define X(name, text, to) \
    from = text;          \
    sum |= (to);
    STEP_STATES(X)
#undef X
#undef TO
    ASSERT(sum == 0 && from);
    puts("}");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "task") == 0) {
        print_task();
    } else if (argc == 2 && strcmp(argv[1], "step") == 0) {
        print_step();
    } else {
        fputs("usage: states task|step\n", stderr);
        return 2;
    }
    return 0;
}
