/* `intact agent exec`: the agent that runs commands. */

#include <stdlib.h>

#include "cli/agent_program.h"
#include "cli/mistakes.h"
#include "cli/verbs.h"
#include "exec_agent/exec_agent.h"

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
    AGENT_PROGRAM_FLAGS("the commands, YAML or JSON: see docs/exec-agent.md",
                        "that of the file, then HOST-PID"),
    {0},
};

const struct verb verb_agent_exec = {
    .noun = "agent",
    .name = "exec",
    .summary = "run commands of this machine as steps",
    .about = "Does the steps of workflows whose actions its configuration names a command for, and "
             "runs nothing else. A command reads the request on standard input, as JSON, and "
             "writes its output; its exit status says how it went. It is ended, with all that it "
             "started, when its time is over.\n\n"
             "SIGTERM ends the agent: no more is begun, and commands at work may end within "
             "stop_wait; a second one ends them at once.",
    .flags = flags,
    .examples = {{"intact agent exec --config commands.yaml", "run the commands of that file"},
                 {"intact agent exec --config commands.yaml --check", "is the file right?"}},
    .exits = AGENT_PROGRAM_EXITS,
    .is_local = true,
    .run = run,
};
