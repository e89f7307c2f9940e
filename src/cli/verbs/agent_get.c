/* `intact agent get`: one agent's settings and breaker. agent_show.c makes the call and shows the
 * answer, as for all verbs for one agent; agent_list.c shows all agents and their instances. */

#include "cli/verbs.h"
#include "cli/verbs/agent_show.h"

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};

    return agent_path(in, "", &path) ? agent_ask(in, "GET", path.ptr, NULL) : CLI_USAGE;
}

const struct verb verb_agent_get = {
    .noun = "agent",
    .name = "get",
    .summary = "show settings and breaker of an agent",
    .about = "Shows the limits of an agent, and the settings and the state of its "
             "breaker.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .examples = {{"intact agent get payment", "whether its breaker is open, and why"},
                 {"intact agent get payment --json | jq .settings > payment.json",
                  "save the settings for editing"}},
    .run = run,
};
