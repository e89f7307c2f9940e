#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/agent_config.h"
#include "cli/client.h"
#include "cli/mistakes.h"
#include "cli/token_file.h"
#include "cli/verbs.h"
#include "http_agent/run.h"

struct http_config *http_config_of(const char *file)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct mistakes *m = calloc(1, sizeof *m);
    struct http_config *c = NULL;

    ASSERT(m);
    if (client_read_file(file, &text)
        && http_config_parse(buf_view(&text), (enum source_format)format_of_file(file), &c, m)
               != ERR_OK)
        mistakes_print(file, "error", m);
    free(m);
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
    const char *file = given(in, "config");
    const char *token_file = given(in, "token-file");
    char token[128] = "";

    if (!file)
        return verb_misused(in, "--config FILE is missing: which services are there?");
    if (token_file && !token_file_read(token_file, token, sizeof token))
        return CLI_USAGE;
    struct http_config *c = http_config_of(file);
    if (!c)
        return CLI_NOT_WELL;
    read_level(in);
    const struct http_agent_options o = {.server = given(in, "server"),
                                         .token = token_file ? token : NULL,
                                         .ca = given(in, "ca"),
                                         .instance = given(in, "instance")};
    int status = CLI_OK;
    if (given(in, "check"))
        printf("%s: no mistakes\n", file);
    else
        status = http_agent_run(c, &o);
    http_config_free(c);
    return status;
}

static const struct flag flags[] = {
    {.name = "config",
     .value = "FILE",
     .help = "the services, YAML or JSON: see docs/http-agent.md",
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
     .initial = "HOST-PID"},
    {.name = "log",
     .value = "LEVEL",
     .help = "what is logged: debug, info, warn or error",
     .initial = "info",
     .kind = WORD_CHOICE,
     .choices = "debug info warn error"},
    {0},
};

const struct verb verb_agent_http = {
    .noun = "agent",
    .name = "http",
    .summary = "call services over HTTP, without an agent of your own",
    .about = "Does the steps of workflows that say the HTTP request that they stand for, and those "
             "whose actions its configuration knows: one agent for each service in it. A server "
             "can do it itself, too: intact serve --http FILE.\n\n"
             "SIGHUP reads the secrets again. SIGTERM ends it: what is under way is waited for; a "
             "second one ends it at once.",
    .flags = flags,
    .examples = {{"intact agent http --config services.yaml", "call the services of that file"},
                 {"intact agent http --config services.yaml --check", "is the file right?"}},
    .exits = "1 if it had to stop, or answers could not be handed in",
    .is_local = true,
    .run = run,
};
