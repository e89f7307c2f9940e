/* `intact agent open`, `close` and `reset`: operates an agent's breaker by hand, or brings the
 * default settings back. agent_show.c makes the call and shows the result; agent_set.c changes
 * the breaker's rule. */

#include "cli/verbs.h"
#include "cli/verbs/agent_show.h"

static int move(struct invocation *in, const char *state)
{
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    const char *reason = given(in, "reason");

    if (!agent_path(in, "/breaker", &path))
        return CLI_USAGE;
    json_open(&body, '{');
    json_member_text(&body, "state", slice_of(state));
    json_member_text(&body, "reason", slice_of(reason));
    json_close(&body, '}');
    return agent_ask(in, "POST", path.ptr, &body);
}

static int run_open(struct invocation *in)
{
    const char *reason = given(in, "reason");

    if (!reason || !*reason)
        return verb_misused(in, "--reason TEXT is required");
    return move(in, "open");
}

static int run_close(struct invocation *in)
{
    return move(in, "closed");
}

static int run_reset(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};

    return agent_path(in, "", &path) ? agent_ask(in, "DELETE", path.ptr, NULL) : CLI_USAGE;
}

static const struct flag flags[] = {
    {.name = "reason", .value = "TEXT", .help = "reason, shown and recorded in the audit"},
    {0},
};

const struct verb verb_agent_open = {
    .noun = "agent",
    .name = "open",
    .summary = "open the breaker of an agent",
    .about = "Opens the breaker of an agent: no new attempt starts until the "
             "breaker is closed. Running attempts continue.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .flags = flags,
    .examples = {{"intact agent open payment --reason 'the bank is moving house'",
                  "hold back its work"}},
    .run = run_open,
};

const struct verb verb_agent_close = {
    .noun = "agent",
    .name = "close",
    .summary = "close the breaker of an agent",
    .about = "Closes the breaker of an agent: waiting steps start at once. It can "
             "open by itself again.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .flags = flags,
    .examples = {{"intact agent close payment", "after its service is available again"}},
    .run = run_close,
};

const struct verb verb_agent_reset = {
    .noun = "agent",
    .name = "reset",
    .summary = "remove the settings of an agent",
    .about = "Removes all settings of an agent: no limits, and the default breaker. A breaker that "
             "was opened by a command stays open.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .examples = {{"intact agent reset payment", "back to the defaults"}},
    .run = run_reset,
};
