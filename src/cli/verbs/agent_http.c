/* `intact agent http`: reads a configuration, and runs the agent that calls HTTP services
 * (agents/http) in this process. agent_program.c has what it shares with the other built-in
 * agents; serve.c runs the same agent as its child. */

#include <stdlib.h>

#include "agents/http/http_agent.h"
#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/verbs.h"
#include "cli/verbs/agent_program.h"

static void *parse_http(const char *file, struct slice text)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct http_config *c = NULL;

    ASSERT(m);
    if (http_config_parse(text, (enum source_format)format_of_file(file), &c, m) != ERR_OK)
        mistakes_print(file, "error", m);
    free(m);
    return c;
}

struct http_config *http_config_of(const char *file)
{
    CLEANUP(buf_fini) struct buf text = {0};

    return client_read_file(file, &text) ? parse_http(file, buf_view(&text)) : NULL;
}

static int run_http(const void *config, const struct agent_start *start)
{
    const struct http_agent_options o = {.server = start->server,
                                         .token = start->token,
                                         .ca = start->ca,
                                         .instance = start->instance};

    return http_agent_run(config, &o);
}

static void free_http(void *config)
{
    http_config_free(config);
}

static int run(struct invocation *in)
{
    static const struct agent_program program = {"which services are there?", parse_http, run_http,
                                                 free_http};

    return agent_program_run(in, &program);
}

static const struct flag flags[] = {
    AGENT_PROGRAM_FLAGS("services, YAML or JSON: see docs/http-agent.md", "HOST-PID"),
    {0},
};

const struct verb verb_agent_http = {
    .noun = "agent",
    .name = "http",
    .summary = "call services over HTTP without an agent of your own",
    .about = "Executes steps that define an HTTP request, and those whose actions "
             "are in the configuration; each service is one agent. A server can do "
             "the same: intact serve --http FILE.\n\nSIGHUP reads the secrets "
             "again. SIGTERM ends it after running requests, a second one at once.",
    .flags = flags,
    .examples = {{"intact agent http --config services.yaml", "call the configured services"},
                 {"intact agent http --config services.yaml --check", "check the file only"}},
    .exits = AGENT_PROGRAM_EXITS,
    .is_local = true,
    .run = run,
};
