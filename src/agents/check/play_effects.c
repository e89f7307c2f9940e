/* Scenarios of effects that must happen once, whatever is repeated and whoever dies: the agent's
 * record by idempotency key, and its tombstones. scenarios.c has the texts, effects.c counts. */

#include "agents/check/plays.h"

enum { MANY = 50 };

static bool is_same(struct stage *s, const struct asked *a, const struct asked *b)
{
    const struct json *one = json_get(a->result, "output");
    const struct json *two = json_get(b->result, "output");

    if (json_hash(one) == json_hash(two))
        return true;
    stage_wrong(s, "the same output for the same idempotency key", "first %.*s, then %.*s",
                SLICE_ARG(slice_cut(one->raw, 300)), SLICE_ARG(slice_cut(two->raw, 300)));
    return false;
}

static bool is_null(struct stage *s, const struct asked *a)
{
    if (slice_is(asked_output(a), "null"))
        return true;
    stage_wrong(s, "the output null of an undo that finds nothing", "%.*s",
                SLICE_ARG(slice_cut(a->result->raw, 300)));
    return false;
}

/* Requests and waits; NULL: the scenario is decided. */
static struct asked *output_of(struct stage *s, const struct ask *how)
{
    struct asked *a = stage_ask(s, how);

    return stage_output(s, a) ? a : NULL;
}

void play_same_key(struct stage *s)
{
    struct asked *a = output_of(s, &(struct ask){0});
    struct asked *twice = a ? output_of(s, &(struct ask){.again = a}) : NULL;

    if (twice)
        (void)is_same(s, a, twice);
}

/* The record survives the process. Tested with a later request, because an agent that restarts its
 * count would repeat the output of the first. */
void play_record_killed(struct stage *s)
{
    struct asked *first = output_of(s, &(struct ask){0});
    struct asked *a = first ? output_of(s, &(struct ask){0}) : NULL;

    if (!a || !stage_again(s))
        return;
    struct asked *twice = output_of(s, &(struct ask){.again = a});
    if (twice)
        (void)is_same(s, a, twice);
}

/* And so does the record of what must not happen any more. */
void play_undo_killed(struct stage *s)
{
    struct asked *undo = output_of(s, &(struct ask){.undo_of_nothing = true});

    if (undo && stage_again(s))
        (void)stage_undone(s, stage_ask_forward_of(s, undo));
}

void play_undo(struct stage *s)
{
    struct asked *a = output_of(s, &(struct ask){0});
    struct asked *undone = a ? output_of(s, &(struct ask){.undo = a}) : NULL;
    struct asked *twice = undone ? output_of(s, &(struct ask){.again = undone}) : NULL;

    if (twice)
        (void)is_same(s, undone, twice);
}

void play_undo_first(struct stage *s)
{
    struct asked *undone = output_of(s, &(struct ask){.undo_of_nothing = true});

    if (!undone || !is_null(s, undone))
        return;
    for (int i = 0; i < 2; i++)
        if (!stage_undone(s, stage_ask_forward_of(s, undone)))
            return;
    struct asked *twice = output_of(s, &(struct ask){.again = undone});
    if (twice)
        (void)is_null(s, twice);
}

void play_forward_after_undo(struct stage *s)
{
    struct asked *a = output_of(s, &(struct ask){0});
    struct asked *undone = a ? output_of(s, &(struct ask){.undo = a}) : NULL;

    if (!undone || !stage_undone(s, stage_ask(s, &(struct ask){.again = a})))
        return;
    struct asked *twice = output_of(s, &(struct ask){.again = undone});
    if (twice)
        (void)is_same(s, undone, twice);
}

/* ---- the action count ---- */

static int64_t n_of(const struct asked *a)
{
    return json_get_int(json_get(a->result, "output"), "n", -1);
}

static bool has_n(struct stage *s, const struct asked *a)
{
    if (n_of(a) < 0)
        stage_wrong(s, "the output {\"n\": NUMBER} of the action count", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, 300)));
    return n_of(a) >= 0;
}

void play_count_once(struct stage *s)
{
    const struct ask count = {.action = "count"};
    struct asked *a = output_of(s, &count);

    if (!a || !has_n(s, a))
        return;
    for (int i = 0; i < 2; i++) {
        struct asked *twice = output_of(s, &(struct ask){.action = "count", .again = a});
        if (!twice || !is_same(s, a, twice))
            return;
    }
    struct asked *other = output_of(s, &count);
    if (other && n_of(other) - n_of(a) > 1)
        stage_wrong(s, "one effect of the attempts of a step, however many they are",
                    "\"n\" is %d, and was %d before the repeats", (int)n_of(other), (int)n_of(a));
}

/* An agent that records by task takes the second step for a repeat of the first. */
void play_count_steps(struct stage *s)
{
    struct asked *a = output_of(s, &(struct ask){.action = "count"});

    if (!a || !has_n(s, a))
        return;
    struct asked *b = stage_ask(s, &(struct ask){.action = "count"});
    memcpy(b->task, a->task, sizeof b->task);
    (void)snprintf(b->step, sizeof b->step, "other");
    (void)snprintf(b->key, sizeof b->key, "%.70s/other", b->task);
    if (stage_output(s, b) && has_n(s, b) && n_of(b) == n_of(a))
        stage_wrong(s, "two effects of two steps of a task: their idempotency keys differ",
                    "\"n\" is %d after the second one, as after the first", (int)n_of(b));
}

/* A step that an operator started anew has another key, and is another effect. Its undo leaves the
 * record of the first one unchanged. */
void play_count_anew(struct stage *s)
{
    struct asked *a = output_of(s, &(struct ask){.action = "count"});

    if (!a || !has_n(s, a))
        return;
    struct asked *b = stage_ask(s, &(struct ask){.action = "count"});
    memcpy(b->task, a->task, sizeof b->task);
    (void)snprintf(b->key, sizeof b->key, "%.70s/step~2", b->task);
    if (!stage_output(s, b) || !has_n(s, b))
        return;
    if (n_of(b) == n_of(a)) {
        stage_wrong(s, "two effects of a step that was begun anew: its idempotency key is another",
                    "\"n\" is %d under the second key, as under the first", (int)n_of(b));
        return;
    }
    struct asked *undone = stage_ask(s, &(struct ask){.undo = b, .action = "count"});
    (void)snprintf(undone->key, sizeof undone->key, "%.70s/step~2/undo", undone->task);
    struct asked *first =
        stage_output(s, undone) ? output_of(s, &(struct ask){.again = a, .action = "count"}) : NULL;
    if (first)
        (void)is_same(s, a, first);
}

void play_count_undo(struct stage *s)
{
    const struct ask count = {.action = "count"};
    struct asked *a = output_of(s, &count);
    struct asked *b = a ? output_of(s, &count) : NULL;
    struct asked *undone = b ? output_of(s, &(struct ask){.undo = a, .action = "count"}) : NULL;
    struct asked *twice =
        undone ? output_of(s, &(struct ask){.again = undone, .action = "count"}) : NULL;
    struct asked *c = twice ? output_of(s, &count) : NULL;

    if (c && has_n(s, b) && n_of(c) != n_of(b))
        stage_wrong(s, "an effect that is taken back once",
                    "\"n\" is %d after one undo (asked twice) and one effect, and was %d",
                    (int)n_of(c), (int)n_of(b));
}

void play_many(struct stage *s)
{
    struct asked *all[MANY];

    for (int i = 0; i < MANY; i++)
        all[i] = stage_ask(s, &(struct ask){0});
    for (int i = 0; i < MANY; i++)
        if (!stage_output(s, all[i]))
            return;
}
