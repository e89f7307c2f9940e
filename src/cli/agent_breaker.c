#include "cli/agent_show.h"
#include "cli/verbs.h"

/* `intact agent open, close, reset`: the breaker by hand, and the default settings. */

static int move(struct invocation *in, const char *state)
{
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    const char *reason = given(in, "reason");

    if (!agent_path(in, "/breaker", &path))
        return CLI_USAGE;
    json_open(&body, '{');
    json_key(&body, "state");
    json_string(&body, slice_of(state));
    json_key(&body, "reason");
    json_string(&body, slice_of(reason));
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
    {.name = "reason", .value = "TEXT", .help = "why; it is shown, and stays on record"},
    {0},
};

const struct verb verb_agent_open = {
    .noun = "agent",
    .name = "open",
    .summary = "open an agent's breaker by hand",
    .about = "Opens the breaker of an agent: nothing more of it starts, at any node and through "
             "restarts, until somebody closes it. What is at work goes on. Steps wait, and that "
             "counts as no failure.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .flags = flags,
    .examples = {{"intact agent open payment --reason 'the bank is moving house'",
                  "its work waits from now on"}},
    .run = run_open,
};

const struct verb verb_agent_close = {
    .noun = "agent",
    .name = "close",
    .summary = "close an agent's breaker by hand",
    .about = "Closes the breaker of an agent now, whoever or whatever opened it: all that waits "
             "starts at once. From then on it opens by itself again, as it is set.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .flags = flags,
    .examples = {{"intact agent close payment", "its service is back"}},
    .run = run_close,
};

const struct verb verb_agent_reset = {
    .noun = "agent",
    .name = "reset",
    .summary = "forget what is set of an agent",
    .about = "Takes back all that is set of an agent: no limits, and the breaker as by default. "
             "A breaker that was opened by hand stays open.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .examples = {{"intact agent reset payment", "as if nothing had ever been set"}},
    .run = run_reset,
};
