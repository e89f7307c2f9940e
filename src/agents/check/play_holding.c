/*
 * What calls must report about requests that the agent has shown to have, by an unacknowledged
 * result or by a heartbeat. A call for work that was begun after that names the request, as held or
 * with its result. A single one that does not is no proof, because it may have been composed before
 * the request came. Several in a row are.
 */

#include "agents/check/plays.h"

enum { SAID_ENOUGH = 3, RESULTS_ENOUGH = 6, BEATS_ENOUGH = 25 };

static void judge(struct stage *s, const struct asked *a)
{
    if (a->denied >= SAID_ENOUGH)
        stage_wrong(s, "\"holding\" with all that the agent was given and that has no outcome yet",
                    "%u calls for work without \"%s\", after the agent %s", a->denied, a->token,
                    a->results ? "handed in a result for it" : "sent a heartbeat of it");
}

static bool is_said_of_result(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    judge(s, a);
    /* An agent may ask for nothing else while it has a result left. */
    return a->confirmed >= SAID_ENOUGH || a->results >= RESULTS_ENOUGH;
}

void play_holding_answered(struct stage *s)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, 0, UINT32_MAX);
    if (!stage_until(s, is_said_of_result, a, "a result, handed in until it is acknowledged"))
        return;
    s->fault_count = 0;
    (void)stage_output(s, a);
}

static bool is_said_at_work(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    judge(s, a);
    /* An agent may have no other place. */
    return a->confirmed >= SAID_ENOUGH || a->beats >= BEATS_ENOUGH;
}

void play_holding_at_work(struct stage *s)
{
    struct asked *a =
        stage_ask(s, &(struct ask){.action = "slow", .input = "{\"ms\":600000,\"beats\":200}"});

    if (!stage_until(s, is_said_at_work, a, "heartbeats of the action slow with \"beats\""))
        return;
    stage_dismiss(s, a);
}
