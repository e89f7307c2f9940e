/* What the verbs of built-in agents (http, exec, amqp) share: reading the token and the
 * configuration, and running the agent with both (agent_program.h). The agents themselves are in
 * src/agents. */

#include "cli/verbs/agent_program.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/client/token_file.h"

int agent_program_run(const struct invocation *in, const struct agent_program *p)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const char *file = given(in, "config");
    const char *token_file = given(in, "token-file");
    char token[128] = "";

    if (!file)
        return verb_misused(in, "--config FILE is missing: %s", p->question);
    if (!client_read_file(file, &text)
        || (token_file && !token_file_read(token_file, token, sizeof token)))
        return CLI_USAGE;
    void *config = p->parse(file, buf_view(&text));
    if (!config)
        return CLI_NOT_WELL;
    given_log_level(in);
    if (given(in, "installation")) /* all agents of this process read it there */
        (void)setenv("INTACT_INSTALLATION", given(in, "installation"), 1);
    int status = CLI_OK;
    if (given(in, "check"))
        printf("%s: no mistakes\n", file);
    else
        status = p->run(config, &(struct agent_start){.server = given(in, "server"),
                                                      .token = token_file ? token : NULL,
                                                      .ca = given(in, "ca"),
                                                      .instance = given(in, "instance")});
    p->free(config);
    return status;
}
