/* Scenarios with two nodes of one installation: the agent finds the second, reports to it what
 * it holds, and continues when one is gone. scenarios.c has the texts, node.c is one simulated
 * node. */

#include "agents/check/plays.h"
#include "base/clock.h"

enum { LOOKED_MS = 3000, LOOKED_CALLS = 10 };

static unsigned count_fetches(struct stage *s, const struct node *n)
{
    unsigned calls = 0;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        calls += c->kind == CALL_WORK && c->fetches && c->node == n;
    }
    return calls;
}

static bool has_looked(struct stage *s, const void *arg)
{
    const int64_t *since = arg;

    return count_fetches(s, &s->nodes[1]) > 0
           || (!s->knows_nodes && clock_boot_ms() > *since + LOOKED_MS
               && count_fetches(s, &s->nodes[0]) >= LOOKED_CALLS);
}

/* Starts a second node, and waits until the agent calls both. */
static bool begin_two(struct stage *s)
{
    struct error e = {0};
    int64_t since = clock_boot_ms();

    if (node_open(&s->nodes[1], &e) != ERR_OK) {
        stage_skip(s, "no port for a second node: %s", e.text);
        return false;
    }
    s->node_count = 2;
    if (!stage_until(s, has_looked, &since,
                     "a call for work to the node that GET /v1/nodes tells of"))
        return false;
    if (count_fetches(s, &s->nodes[1]) == 0)
        stage_skip(s,
                   "it never asks for the nodes (GET /v1/nodes), and works for the one it knows");
    return !s->is_decided;
}

void play_nodes_found(struct stage *s)
{
    if (!begin_two(s))
        return;
    for (int i = 0; i < 2; i++) {
        struct asked *a = stage_ask(s, &(struct ask){.node = &s->nodes[1 - i]});
        if (!stage_output(s, a))
            return;
        if (a->results_at != a->node)
            stage_wrong(s, "a result handed in at the node that the request came from",
                        "it came to the other one");
    }
}

static struct asked *ask_slow(struct stage *s, struct node *n, const char *input)
{
    return stage_ask(s, &(struct ask){.action = "slow", .input = input, .node = n});
}

static bool has_token(const struct call *c, const struct asked *a)
{
    const struct json *holding = json_get(c->body, "holding");

    for (const struct json *j = holding ? holding->child : NULL; j; j = j->next)
        if (slice_is(j->text, a->token))
            return true;
    return false;
}

static bool is_held_at_the_other(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kind == CALL_WORK && c->fetches && c->node != a->node && has_token(c, a))
            return true;
    }
    return false;
}

void play_nodes_holding(struct stage *s)
{
    if (!begin_two(s))
        return;
    struct asked *a = ask_slow(s, &s->nodes[0], "{\"ms\":600000,\"beats\":200}");
    if (stage_until(s, is_held_at_the_other, a,
                    "calls to the other node that hold the request of the first one, too"))
        stage_dismiss(s, a);
}

static bool was_given_twice(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->given > 1;
}

static bool has_beaten(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->beats > 5 || a->went_back;
}

void play_nodes_same(struct stage *s)
{
    if (!begin_two(s))
        return;
    struct asked *a = ask_slow(s, &s->nodes[0], "{\"ms\":600000,\"beats\":100}");
    if (!stage_until(s, has_beaten, a, "beats"))
        return;
    a->node = &s->nodes[1];
    a->to_give = 1;
    if (!stage_until(s, was_given_twice, a, "a call for work to the other node"))
        return;
    a->beats = 0;
    if (!stage_until(s, has_beaten, a, "further beats"))
        return;
    if (a->went_back)
        stage_wrong(s, "one request, whichever node it comes from under its token",
                    "it was begun once more");
    stage_dismiss(s, a);
}

static bool is_in_work(struct stage *s, const void *arg)
{
    (void)s;
    return ((const struct asked *)arg)->beats > 0;
}

void play_nodes_gone(struct stage *s)
{
    if (!begin_two(s))
        return;
    struct asked *a = ask_slow(s, &s->nodes[1], "{\"ms\":2000,\"beats\":100}");
    if (!stage_until(s, is_in_work, a, "a beat"))
        return;
    node_close(&s->nodes[1]);
    if (!stage_output(s, a)) {
        stage_expected(s, "a result handed in at the other node when the one that asked is gone");
        return;
    }
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}
