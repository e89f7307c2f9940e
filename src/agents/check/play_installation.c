/* Scenarios in which a server of another installation answers at the agent's address: it must
 * get neither results nor calls for work. scenarios.c has the texts, stage.h what a scenario
 * can do. */

#include <sys/wait.h>

#include "agents/check/plays.h"

#define OWN_EXPECTED "the result handed in when its own installation is back"

/* An agent may fetch work and send results on separate threads, so two of its calls may be under
 * way at the first refusal. The third one comes after an answer of the other installation. */
enum { LOOKED_CALLS = 5, REFUSALS = 3, WORDS_MS = 200, SHOWN_MAX = 400, MISSED_MAX = 3 };

/* Calls that bring results or ask for work. */
static bool counts(const struct call *c)
{
    return c->kind != CALL_NODES && c->kind != CALL_OTHER;
}

/* Calls begun once it could know the id. */
static unsigned count_after(struct stage *s, const struct asked *first, bool is_named)
{
    unsigned n = 0;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        n += counts(c) && c->came_at > first->settled_by->ended_at && c->is_named == is_named;
    }
    return n;
}

static bool has_looked(struct stage *s, const void *arg)
{
    return count_after(s, arg, true) > 0 || count_after(s, arg, false) >= LOOKED_CALLS;
}

/* Optional: an agent without support for installations may pass everything else. */
static bool names_it(struct stage *s, const struct asked *first)
{
    if (!stage_until(s, has_looked, first, "calls for work after a result"))
        return false;
    if (count_after(s, first, true) == 0)
        stage_skip(s, "its calls have no Intact-Installation: it takes any server at its address "
                      "for its own");
    return !s->is_decided;
}

/* Checks what a server of the other installation has accepted: the agent named none, or switched to
 * it. */
static void judge_taken(struct stage *s)
{
    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->is_at_other && counts(c))
            stage_wrong(s, "the installation of the first answer named in each call",
                        "a server of another one was called with %s, %.*s",
                        c->is_named ? "the id of that one" : "none",
                        SLICE_ARG(c->body ? slice_cut(c->body->raw, SHOWN_MAX) : SLICE("")));
    }
}

static bool has_met(struct stage *s, const void *arg)
{
    (void)arg;
    judge_taken(s);
    s->may_end = s->misdirected > 0;
    return !s->is_decided
           && (s->misdirected >= REFUSALS || (s->misdirected > 0 && s->child.has_ended));
}

/* There is work for it there, too. True: it stayed away, and reported why. */
static bool keeps_away(struct stage *s)
{
    struct asked *offered = stage_ask(s, &(struct ask){0});
    size_t written = s->child.written;

    if (!stage_until(s, has_met, NULL, "another call to its address, whoever is there now")
        || !stage_passes(s, WORDS_MS))
        return false;
    judge_taken(s);
    if (s->child.has_ended && s->child.status == 0)
        stage_wrong(s, "an end with a status that is not 0", "status 0");
    if (s->child.written == written)
        stage_wrong(s, "words on standard error about the other installation", "none");
    offered->to_give = 0;
    return !s->is_decided;
}

static bool has_results(struct stage *s, const void *arg)
{
    (void)s;
    return ((const struct asked *)arg)->results > 0;
}

/* Or it gives up, which stage_output reports. */
static bool has_come_or_ended(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    return a->settled_by || a->missed >= MISSED_MAX || s->child.has_ended;
}

/* An agent that gives up for good is restarted by hand. It may still be exiting when its own
 * installation is back. */
static bool own_is_back(struct stage *s, struct asked *kept)
{
    if (!s->child.has_ended
        && (!stage_replace(s, INSTALLATION_OWN)
            || !stage_until(s, has_come_or_ended, kept, OWN_EXPECTED)))
        return false;
    if (!kept->settled_by && s->child.has_ended) {
        if (s->child.status == 0)
            stage_wrong(s, "an end with a status that is not 0", "status 0");
        s->installation = INSTALLATION_OWN;
        kept->to_give = 1; /* the server sees that the instance does not hold it */
        if (!stage_again(s))
            return false;
    }
    s->may_end = false;
    return !s->is_decided;
}

/* It gets the outstanding acknowledgement. */
static void go_on(struct stage *s, struct asked *kept)
{
    if (!own_is_back(s, kept))
        return;
    if (!stage_output(s, kept)) {
        stage_expected(s, OWN_EXPECTED);
        return;
    }
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

void play_another_installation(struct stage *s)
{
    struct asked *first = stage_ask(s, &(struct ask){0});

    if (!stage_output(s, first) || !names_it(s, first))
        return;
    struct asked *kept = stage_ask(s, &(struct ask){0});
    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, 0, UINT32_MAX);
    if (!stage_until(s, has_results, kept, "a result"))
        return;
    s->fault_count = 0;
    if (stage_replace(s, INSTALLATION_OTHER) && keeps_away(s))
        go_on(s, kept);
}
