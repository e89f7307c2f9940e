#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/client.h"
#include "cli/mistakes.h"
#include "cli/token_file.h"
#include "cli/verbs.h"
#include "exec_agent/exec_agent.h"

/* NULL: it has been said why. */
static struct exec_config *read_config(const char *file, struct buf *text)
{
    struct mistakes *errors = calloc(2, sizeof *errors);
    struct exec_config *c = NULL;

    ASSERT(errors);
    struct mistakes *warnings = errors + 1;
    if (client_read_file(file, text)) {
        c = exec_config_read(buf_view(text), (enum source_format)format_of_file(file), errors,
                             warnings);
        mistakes_print(file, "error", errors);
        mistakes_print(file, "warning", warnings);
    }
    free(errors);
    return c;
}

static void read_level(const struct invocation *in)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    for (size_t i = 0; given(in, "log") && i < COUNT_OF(names); i++)
        if (strcmp(given(in, "log"), names[i]) == 0)
            log_level_set((enum log_level)i);
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const char *file = given(in, "config");
    const char *token_file = given(in, "token-file");
    char token[128] = "";

    if (!file)
        return verb_misused(in, "--config FILE is missing: which commands are there?");
    if (token_file && !token_file_read(token_file, token, sizeof token))
        return CLI_USAGE;
    struct exec_config *c = read_config(file, &text);
    if (!c)
        return CLI_NOT_WELL;
    read_level(in);
    const struct exec_settings s = {.server = given(in, "server"),
                                    .token = token_file ? token : NULL,
                                    .ca = given(in, "ca"),
                                    .instance = given(in, "instance")};
    int status = CLI_OK;
    if (given(in, "check"))
        printf("%s: no mistakes\n", file);
    else
        status = (int)exec_agent_run(c, &s); /* 0 to 2, with the same meanings */
    exec_config_free(c);
    return status;
}

static const struct flag flags[] = {
    {.name = "config",
     .value = "FILE",
     .help = "the commands, YAML or JSON: see docs/exec-agent.md",
     .kind = WORD_FILE},
    {.name = "check", .help = "only say whether the file has mistakes, and which"},
    {.name = "server",
     .value = "URL",
     .help = "where Intact is; several with commas between",
     .initial = "INTACT_SERVER, then http://127.0.0.1:7420"},
    {.name = "token-file",
     .value = "FILE",
     .help = "file that holds a token with the roles of these agents, or agent:*",
     .initial = "INTACT_TOKEN, then none",
     .kind = WORD_FILE},
    {.name = "ca",
     .value = "FILE",
     .help = "certificates that an https server's is signed by",
     .initial = "INTACT_CA, then the system's",
     .kind = WORD_FILE},
    {.name = "instance",
     .value = "NAME",
     .help = "of this process, unlike that of all others, and the same after a restart: then the "
             "server knows at once what was lost",
     .initial = "that of the file, then HOST-PID"},
    {.name = "log",
     .value = "LEVEL",
     .help = "what is logged: debug, info, warn or error",
     .initial = "info",
     .kind = WORD_CHOICE,
     .choices = "debug info warn error"},
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
    .exits = "1 if the file has mistakes, or answers could not be handed in",
    .is_local = true,
    .run = run,
};
