/* Scenarios of processes that are killed, exit, or lose their server: what becomes of the
 * requests of the previous process, how an agent ends on SIGTERM, and how it waits for a server
 * that is unavailable. scenarios.c has the texts, child.c starts and kills. */

#include <signal.h>
#include <sys/wait.h>

#include "agents/check/plays.h"
#include "base/clock.h"

enum { AWAY_MS = 2500, FETCHES_MAX = 3, REFUSED_CALLS = 2 };

static unsigned fetches_since(struct stage *s, int64_t at)
{
    unsigned n = 0;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        n += c->kind == CALL_WORK && c->fetches && c->came_at > at;
    }
    return n;
}

static bool has_fetched_since(struct stage *s, const void *arg)
{
    return fetches_since(s, *(const int64_t *)arg) > 0;
}

static bool has_results(struct stage *s, const void *arg)
{
    (void)s;
    return ((const struct asked *)arg)->results > 0;
}

/* The previous process may or may not have received or executed it. */
static void play_kill(struct stage *s, bool when_done)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    s->fault_count = 0;
    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, 0, UINT32_MAX);
    bool is_reached = when_done ? stage_until(s, has_results, a, "a result") : stage_given(s, a);
    if (!is_reached || !stage_again(s))
        return;
    int64_t killed_at = clock_boot_ms();
    s->fault_count = 0;
    if (!stage_until(s, has_fetched_since, &killed_at, "a call for work after a start"))
        return;
    if (!a->is_settled && !a->is_held)
        a->to_give = 1; /* a server sees that the instance does not hold it */
    if (!stage_output(s, a))
        stage_expected(s, "a result of a request that comes again after the process was killed");
}

void play_killed(struct stage *s)
{
    play_kill(s, true);
    if (!s->is_decided)
        play_kill(s, false);
}

void play_sigterm(struct stage *s)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, 0, 2);
    if (!stage_until(s, has_results, a, "a result"))
        return;
    child_signal(&s->child, SIGTERM);
    int64_t told_at = clock_boot_ms();
    if (!stage_ended(s, "an end after SIGTERM"))
        return;
    if (!a->is_settled)
        stage_wrong(s, "all results handed in before the end",
                    "it ended on SIGTERM while a result had no outcome yet");
    else if (fetches_since(s, told_at) > FETCHES_MAX)
        stage_wrong(s, "no calls that ask for work after SIGTERM", "%u of them",
                    fetches_since(s, told_at));
    else if (WIFEXITED(s->child.status) && WEXITSTATUS(s->child.status) != 0
             && WEXITSTATUS(s->child.status) != 128 + SIGTERM)
        stage_wrong(s, "an end with status 0, as everything was delivered", "status %d",
                    WEXITSTATUS(s->child.status));
}

void play_server_restart(struct stage *s)
{
    struct asked *a = stage_ask(s, &(struct ask){0});
    struct error e = {0};

    stage_fault(s, FAULT_ON_RESULTS, FAULT_BREAK, 0, 0, 1);
    if (!stage_until(s, has_results, a, "a result"))
        return;
    node_close(&s->nodes[0]);
    if (!stage_passes(s, AWAY_MS)) {
        stage_expected(s, "an agent that waits for a server that cannot be reached");
        return;
    }
    if (node_open(&s->nodes[0], &e) != ERR_OK) {
        stage_skip(s, "the port was taken meanwhile: %s", e.text);
        return;
    }
    if (!stage_output(s, a)) {
        stage_expected(s, "the result handed in when the server is back");
        return;
    }
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

/* ---- the token is refused ---- */

static unsigned count_work(struct stage *s)
{
    unsigned n = 0;

    LIST_FOREACH (l, after, &s->calls) {
        n += CONTAINER_OF(l, struct call, link)->kind == CALL_WORK;
    }
    return n;
}

static bool was_refused(struct stage *s, const void *arg)
{
    (void)arg;
    return (s->child.has_ended && count_work(s) > 0) || count_work(s) >= REFUSED_CALLS;
}

void play_refused(struct stage *s)
{
    s->refuses_bearer = s->may_end = true;
    if (!stage_until(s, was_refused, NULL, "an end, or another try later"))
        return;
    if (!stage_passes(s, 50)) /* its calls may be under way */
        return;
    if (s->child.has_ended && s->child.status == 0)
        stage_wrong(s, "an end with a status that is not 0 when the token is refused", "status 0");
    if (s->child.written == 0)
        stage_wrong(s, "words on standard error when the token is refused", "none");
    s->refuses_bearer = false;
    if (stage_again(s))
        (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}
