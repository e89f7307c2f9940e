/* `intact agent get`: an agent's settings and breaker; shown by agent_show.c. */

#include "cli/agent_show.h"
#include "cli/verbs.h"

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};

    return agent_path(in, "", &path) ? agent_ask(in, "GET", path.ptr, NULL) : CLI_USAGE;
}

const struct verb verb_agent_get = {
    .noun = "agent",
    .name = "get",
    .summary = "show what is set of an agent, and its breaker",
    .about = "Shows the limits and the breaker of one agent: what is set, and how the breaker "
             "stands. What was never set is as by default.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .examples = {{"intact agent get payment", "is its breaker open, and why?"},
                 {"intact agent get payment --json | jq .settings > payment.json",
                  "its settings, to be edited and set again"}},
    .run = run,
};
