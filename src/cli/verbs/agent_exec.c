/* `intact agent exec`: reads a configuration, and runs the agent that executes commands
 * (agents/exec) in this process. agent_program.c has what it shares with the other built-in
 * agents. */

#include <stdlib.h>

#include "agents/exec/exec_agent.h"
#include "cli/client/mistakes.h"
#include "cli/verbs.h"
#include "cli/verbs/agent_program.h"

static void *parse_exec(const char *file, struct slice text)
{
    struct mistakes *errors = calloc(2, sizeof *errors);

    ASSERT(errors);
    struct exec_config *c =
        exec_config_read(text, (enum source_format)format_of_file(file), errors, errors + 1);
    mistakes_print(file, "error", errors);
    mistakes_print(file, "warning", errors + 1);
    free(errors);
    return c;
}

static int run_exec(const void *config, const struct agent_start *start)
{
    const struct exec_settings s = {.server = start->server,
                                    .token = start->token,
                                    .ca = start->ca,
                                    .instance = start->instance};

    return (int)exec_agent_run(config, &s); /* 0 to 2, with the same meanings */
}

static void free_exec(void *config)
{
    exec_config_free(config);
}

static int run(struct invocation *in)
{
    static const struct agent_program program = {"which commands are there?", parse_exec, run_exec,
                                                 free_exec};

    return agent_program_run(in, &program);
}

static const struct flag flags[] = {
    AGENT_PROGRAM_FLAGS("commands, YAML or JSON: see docs/exec-agent.md",
                        "the name in the file, then HOST-PID"),
    {0},
};

const struct verb verb_agent_exec = {
    .noun = "agent",
    .name = "exec",
    .summary = "run local commands as steps",
    .about = "Executes steps whose actions have a command in the configuration. A "
             "command reads the request as JSON on standard input and writes its "
             "output; its exit status is the outcome.\n\nSIGTERM ends it after "
             "running commands, for stop_wait at most; a second one ends them at "
             "once.",
    .flags = flags,
    .examples = {{"intact agent exec --config commands.yaml", "run the configured commands"},
                 {"intact agent exec --config commands.yaml --check", "check the file only"}},
    .exits = AGENT_PROGRAM_EXITS,
    .is_local = true,
    .run = run,
};
