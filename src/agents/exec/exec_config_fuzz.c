/* Any text as a configuration: it has mistakes, each with its place and words, or it names agents
 * with actions that have something to run. */

#include <stdlib.h>

#include "agents/exec/exec_config.h"
#include "base/fuzz.h"

static void check_mistakes(const struct mistakes *m)
{
    for (size_t i = 0; i < m->count; i++) {
        ASSERT(m->list[i].line >= 1);
        ASSERT(m->list[i].column >= 1);
        ASSERT(m->list[i].found[0]);
        ASSERT(m->list[i].expected[0]);
    }
}

static void check_command(const struct exec_command *c)
{
    if (!c->argv)
        return;
    ASSERT(c->argv[0][0]);
    ASSERT(c->directory[0] == '/');
    ASSERT(c->output_max > 0);
    ASSERT(c->output_max <= EXEC_OUTPUT_MAX);
    ASSERT(c->variable_count <= EXEC_VARIABLES_MAX);
    for (size_t i = 0; i < c->variable_count; i++)
        ASSERT(c->variables[i].name.len > 0);
}

static void check_agent(const struct exec_agent_config *a)
{
    ASSERT(a->name.len > 0);
    ASSERT(a->places >= 1);
    ASSERT(a->action_count >= 1);
    for (size_t i = 0; i < a->action_count; i++) {
        ASSERT(a->actions[i].forward.argv || a->actions[i].undo.argv);
        check_command(&a->actions[i].forward);
        check_command(&a->actions[i].undo);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct mistakes *m = calloc(2, sizeof *m);

    ASSERT(m);
    struct exec_config *c =
        exec_config_read((struct slice){(const char *)bytes, len}, SOURCE_GUESS, m, m + 1);
    ASSERT((c != NULL) == (m->count == 0));
    check_mistakes(m);
    check_mistakes(m + 1);
    for (size_t i = 0; c && i < c->agent_count; i++)
        check_agent(&c->agents[i]);
    exec_config_free(c);
    free(m);
    return 0;
}
