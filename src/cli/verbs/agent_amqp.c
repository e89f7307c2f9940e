/* `intact agent amqp`: reads the section `amqp` of a server's configuration, and runs the AMQP
 * agent (agents/amqp) in this process. agent_program.c has what it shares with the other built-in
 * agents. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/amqp/amqp_agent.h"
#include "cli/client/mistakes.h"
#include "cli/verbs.h"
#include "cli/verbs/agent_program.h"
#include "cli/verbs/serve_settings.h"

enum { NAME_MAX_HERE = 64 };

/* The node's name must stay the same, because replies wait in a queue of that name. */
static char node[NAME_MAX_HERE];

static void *parse_amqp(const char *file, struct slice text)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct serve_settings *s = calloc(1, sizeof *s);

    ASSERT(m && s);
    serve_settings_init(s);
    bool good = serve_settings_parse(s, text, (enum source_format)format_of_file(file), m);
    if (!good)
        mistakes_print(file, "error", m);
    else if (!s->amqp)
        fprintf(stderr, "%s: there is no section amqp: see docs/amqp.md\n", file);
    free(m);
    if (good && s->amqp)
        return s;
    serve_settings_fini(s);
    free(s);
    return NULL;
}

static int run_amqp(const void *config, const struct agent_start *start)
{
    const struct serve_settings *s = config;
    char instance[NAME_MAX_HERE + 8];

    (void)snprintf(instance, sizeof instance, "amqp-%s", node);
    const struct amqp_agent_options o = {.server = start->server,
                                         .token = start->token,
                                         .ca = start->ca,
                                         .instance = start->instance ? start->instance : instance,
                                         .node = node};

    return amqp_agent_run(s->amqp, &o);
}

static void free_amqp(void *config)
{
    serve_settings_fini(config);
    free(config);
}

static int run(struct invocation *in)
{
    static const struct agent_program program = {"which brokers and queues are there?", parse_amqp,
                                                 run_amqp, free_amqp};
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1); /* it is not longer */
    const char *name = given(in, "node") ? given(in, "node") : host;
    if (!*name || strlen(name) >= sizeof node || strpbrk(name, " /"))
        return verb_misused(in, "--node is \"%s\", expected a name of at most %d bytes", name,
                            NAME_MAX_HERE - 1);
    memcpy(node, name, strlen(name) + 1);
    return agent_program_run(in, &program);
}

static const struct flag flags[] = {
    AGENT_PROGRAM_FLAGS("server configuration with a section amqp: see docs/amqp.md", "amqp-NODE"),
    {.name = "node",
     .value = "NAME",
     .help = "value of {node} in the name of the reply queue; keep it over restarts",
     .initial = "this machine's name"},
    {0},
};

const struct verb verb_agent_amqp = {
    .noun = "agent",
    .name = "amqp",
    .summary = "submissions and work over AMQP queues",
    .about = "Connects to AMQP 1.0 brokers, for submissions and agents. A server "
             "with this section in its configuration does the same, and also sends "
             "status messages to queues: intact serve --config FILE.\n\nSIGTERM "
             "ends it after running work, a second one at once.",
    .flags = flags,
    .examples = {{"intact agent amqp --config intact.yaml", "with that configuration"},
                 {"intact agent amqp --config intact.yaml --check", "check the file only"}},
    .exits = AGENT_PROGRAM_EXITS,
    .is_local = true,
    .run = run,
};
