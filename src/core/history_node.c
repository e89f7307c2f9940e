/* Copies and hashes the nodes of the search through histories, and the set of those visited: see
 * history_node.h. Part of the tests. */
#include "core/history_node.h"

#include <stdlib.h>

/* Most cases have fewer steps than there is room for. Unused entries are not copied or compared:
 * that took more than half the time. */

void node_image(struct node *to, const struct node *from)
{
    size_t count = from->t.step_count;

    memcpy(&to->t, &from->t, sizeof to->t);
    memcpy(to->steps, from->steps, count * sizeof *to->steps);
    memcpy(to->attempts, from->attempts, count * sizeof *to->attempts);
    memcpy(to->signals, from->signals, from->t.signal_count * sizeof *to->signals);
    memcpy(to->votes, from->votes, from->t.vote_count * sizeof *to->votes);
}

bool node_is_as(const struct node *n, const struct node *image)
{
    size_t count = image->t.step_count;

    return memcmp(&n->t, &image->t, sizeof n->t) == 0
           && memcmp(n->steps, image->steps, count * sizeof *n->steps) == 0
           && memcmp(n->attempts, image->attempts, count * sizeof *n->attempts) == 0
           && memcmp(n->signals, image->signals, image->t.signal_count * sizeof *n->signals) == 0
           && memcmp(n->votes, image->votes, image->t.vote_count * sizeof *n->votes) == 0;
}

void node_copy(struct node *to, const struct node *from)
{
    size_t count = from->t.step_count;

    node_image(to, from);
    to->t.steps = to->steps;
    to->t.signals = to->signals;
    to->t.votes = to->votes;
    for (size_t i = 0; i < count; i++)
        to->steps[i].attempts = to->attempts[i];
    memcpy(&to->world, &from->world,
           offsetof(struct world, steps) + count * sizeof *to->world.steps);
    to->left = from->left;
    to->kids = from->kids;
    to->told = from->told;
    to->now = from->now;
}

void node_make(struct node *n, const struct graph *g, struct budget budget)
{
    memset(n, 0, sizeof *n);
    n->now = KIT_BEGIN;
    n->left = budget;
    n->t = (struct task){
        .id = SLICE("t"),
        .priority = 5,
        .submitted_at = n->now,
        .complete_by = graph_complete_by(g),
        .not_before = graph_not_before(g),
        .steps = n->steps,
        .step_count = g->w.step_count,
        .signals = n->signals,
        .signal_cap = WORLD_SIGNALS,
        .votes = n->votes,
        .vote_cap = WORLD_VOTES,
        .owner = SLICE("till"),
        .submitter = SLICE("S"),
    };
    graph_family(g, &n->t);
    for (size_t i = 0; i < WORLD_STEPS; i++) {
        n->steps[i].attempts = n->attempts[i];
        n->steps[i].attempt_cap = WORLD_ATTEMPTS;
    }
    world_make(&n->world, g);
}

/* ---- visited states ---- */

static void put(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    *h ^= *h >> 29;
}

/* No pause is longer; the length of a pause matters until it ends. */
#define HISTORY_LONG_MS INT64_C(1000000)

/* All times that passed by more than the margin are equivalent. */
static void put_time(uint64_t *h, int64_t at, int64_t now, int64_t margin)
{
    int64_t left = at - now;

    put(h, at == 0 ? UINT64_MAX : (uint64_t)(left < -margin ? -margin - 1 : left));
}

/* What is left of the time for its rounds: in error and in a pause, what was left then. */
static void put_rounds(uint64_t *h, const struct node *n, uint16_t i)
{
    const struct step *s = &n->steps[i];
    int64_t now = n->t.state == TASK_ERROR ? n->world.erred_at
                  : n->world.paused_at     ? n->world.paused_at
                                           : n->now;

    put(h, (uint64_t)s->round << 8 | (uint64_t)(s->round_at != 0) << 4
               | (uint64_t)(s->round_at < s->repeat_until) << 3 | (uint64_t)s->corrected << 2
               | (uint64_t)(s->input.json.ptr != NULL) << 1 | n->world.steps[i].answered);
    put_time(h, s->repeat_until, now, 0);
}

/* What is known of a step's child, how it is, and what it has not heard. */
static void put_child(uint64_t *h, const struct node *n, uint16_t i)
{
    const struct child *c = &n->steps[i].child;
    const struct world_kid *k = &n->world.steps[i].kid;

    put(h, (uint64_t)c->state << 24 | (uint64_t)c->wish << 16 | (uint64_t)k->phase << 8
               | (uint64_t)k->back << 4 | (uint64_t)k->stands << 3 | (uint64_t)k->doubt << 2
               | (uint64_t)k->closed << 1 | (k->number > 0));
    put(h, (uint64_t)k->heard << 8 | (uint64_t)k->sent);
    for (uint8_t m = 0; m < k->coming_count; m++)
        put(h, 0x100u | k->coming[m]);
    put(h, (uint64_t)slice_is(n->steps[i].error.code, "child") << 2
               | (uint64_t)(n->steps[i].input.json.ptr != NULL) << 1 | (n->steps[i].begun_at != 0));
}

static void put_step(uint64_t *h, const struct node *n, uint16_t i)
{
    const struct step *s = &n->steps[i];
    const struct world_step *w = &n->world.steps[i];

    put(h, (uint64_t)s->state << 8 | (uint64_t)s->direction);
    put(h, (uint64_t)s->failure_count << 16 | s->attempt_count);
    put(h, (uint64_t)w->phase << 8 | (uint64_t)w->back << 1 | (uint64_t)w->supplied);
    put(h, (uint64_t)s->generation << 32 | w->request);
    put(h, s->resolved);
    put(h, (s->output.json.ptr ? 1u : 0u) | (s->error.code.ptr ? 2u : 0u) | (w->resume ? 4u : 0u));
    put_time(h, s->wait_until, n->now, 0);
    if (s->round != 0)
        put_rounds(h, n, i);
    put_time(h, s->state == STEP_WAITING ? s->complete_by : 0, n->now, 0);
    if (n->world.graph->steps[i].approve.escalate_ms && s->begun_at)
        put_time(h, s->begun_at + GRAPH_ESCALATE_MS, n->now, 0);
    if (step_has_begun(s)) /* in error, what was left of it when the task stopped */
        put(h, n->t.state == TASK_ERROR
                   ? (uint64_t)(s->wait_until + s->complete_by - n->world.erred_at)
                   : 1);
    if (n->world.graph->steps[i].kind == KIND_TASK)
        put_child(h, n, i);
    for (uint16_t k = 0; k < s->attempt_count; k++) {
        const struct attempt *a = &s->attempts[k];
        put(h, (uint64_t)a->number << 32 | (uint64_t)a->direction << 16 | (uint64_t)a->outcome << 8
                   | (uint64_t)a->effect);
        put_time(h, a->complete_by, n->now, CLOCK_MARGIN_MS);
    }
    for (int d = 0; d < 2; d++)
        for (uint32_t k = 0; k < w->count[d]; k++) {
            const struct world_attempt *a = &w->attempts[d][k];
            put(h,
                (uint64_t)a->end << 3 | (uint64_t)a->away << 2 | (uint64_t)a->again << 1 | a->late);
            put_time(h, world_silent_at(&n->world, i, (enum direction)d, a), n->now, 0);
        }
}

uint64_t node_key(const struct node *n)
{
    uint64_t h = 1;
    const struct world *w = &n->world;

    put(&h, (uint64_t)n->t.state << 32 | (uint64_t)n->t.direction << 16 | (uint64_t)n->t.stop);
    put(&h, (n->t.locked_by.ptr ? 1u : 0u) | (n->t.deadline_passed ? 2u : 0u)
                | (n->t.error.code.ptr ? 4u : 0u));
    put_time(&h, n->t.complete_by, n->now, 0);
    put_time(&h, n->t.not_before, n->now, 0);
    put_time(&h, n->t.undo_complete_by, n->now, 0);
    if (n->t.state == TASK_PROCESSED)
        put_time(&h, task_undo_until(&w->graph->w, &n->t), n->now, 0);
    put(&h, (uint64_t)w->back << 5 | (uint64_t)w->resumed << 4 | (uint64_t)w->asked << 3
                | (uint64_t)w->due[0] << 2 | (uint64_t)w->due[1] << 1);
    put(&h, (uint64_t)w->wish << 16 | (uint64_t)w->closed << 8 | n->left.verbs);
    put_time(&h, n->t.paused_at, n->now, HISTORY_LONG_MS);
    put(&h, (uint64_t)n->left.away << 56 | (uint64_t)n->left.spared << 48
                | (uint64_t)n->left.again << 40 | (uint64_t)n->left.late << 32
                | (uint64_t)n->left.not_sent << 24 | (uint64_t)n->left.releases << 16
                | (uint64_t)n->left.acts << 8 | n->left.bad);
    put(&h, (uint64_t)n->kids << 16 | (uint64_t)n->told << 8 | n->left.signals);
    put(&h, (uint64_t)n->t.asked << 8 | (uint64_t)w->told);
    if (w->graph->w.child_step_count > 0) /* whether it goes on when they do */
        put(&h, (uint64_t)slice_is(n->t.error.code, "child") << 2
                    | (uint64_t)slice_is(n->t.error.code, "pivot") << 1
                    | slice_is(n->t.cause.error.code, "child"));
    for (uint16_t i = 0; i < n->t.signal_count; i++)
        put(&h, (uint64_t)n->signals[i].state << 16 | (uint64_t)(n->signals[i].step + 1) << 8
                    | (uint64_t)(unsigned char)n->signals[i].name.ptr[0]);
    for (uint16_t i = 0; i < n->t.vote_count; i++)
        put(&h, (uint64_t)n->votes[i].step << 16 | (uint64_t)n->votes[i].agrees << 8
                    | (uint64_t)(unsigned char)n->votes[i].person.ptr[0]);
    for (uint16_t i = 0; i < n->t.step_count; i++)
        put_step(&h, n, i);
    return h;
}
