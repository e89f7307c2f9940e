/* Checks why a task stopped or turned back: the first failure in its row, and what its undos are
 * sent. check_row.c and check_wire.c call it; scene_cause.c has the scenes. check.h lists all
 * checkers. */

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

static void must(const struct subject *t, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s: of step %d", t->id, t->seen.cause.step);
}

static bool stops(const struct seen *s)
{
    return s->direction == DIRECTION_UNDO || s->stop != STOP_NONE || s->state == TASK_ERROR;
}

static bool same(const struct seen_cause *a, const struct seen_cause *b)
{
    return a->step == b->step && a->code == b->code && a->message == b->message;
}

/* It failed forward; it may have been undone since, or its undo begun. */
static bool stands_failed(const struct seen *s, int step)
{
    enum step_state state = s->steps[step].state;

    return state == STEP_FAILED || state == STEP_UNDOING || state == STEP_UNDONE
           || seen_child_stopped(&s->steps[step]);
}

/* A pivot took effect, which rules out the undo: the reason for the undo is obsolete, and another
 * step may have failed in the same commit. */
static bool was_overtaken(const struct subject *t, const struct seen *old, const struct seen *new)
{
    for (uint32_t i = 0; i < new->step_count; i++)
        if (t->flow->steps[i].undo == UNDO_PIVOT && old->steps[i].state != STEP_COMPLETED
            && new->steps[i].state == STEP_COMPLETED)
            return old->stop == STOP_UNDO;
    return false;
}

/* What had stopped it was a child alone, and that is in error no more, or another one is not: the
 * task went on, and what stops it now, or turns it back, may be another failure. */
static bool child_went_on(const struct seen *old, const struct seen *new)
{
    if (old->state != TASK_ERROR || old->cause.step < 0
        || !seen_child_stopped(&old->steps[old->cause.step])
        || old->steps[old->cause.step].state == STEP_FAILED)
        return false;
    for (uint32_t i = 0; i < new->step_count; i++)
        if (seen_child_stopped(&old->steps[i])
            && (new->steps[i].child.state != old->steps[i].child.state
                || new->steps[i].children_stopped < old->steps[i].children_stopped))
            return true;
    return false;
}

void check_cause(const struct subject *t, const struct seen *old, const struct seen *new)
{
    const struct seen_cause *c = &new->cause;
    bool went_on = child_went_on(old, new);

    must(t, !stops(new) || c->code, "a task that stops, or goes back, knows why");
    must(t, stops(new) || !c->code, "a task that goes on has no failure");
    if (old->direction == DIRECTION_UNDO)
        must(t, same(&old->cause, c), "the first failure stays, whatever fails later");
    if (stops(old) && stops(new) && !t->verbs && !was_overtaken(t, old, new) && !went_on)
        must(t, same(&old->cause, c), "the first failure stays, whatever fails later");
    if (c->code && (!old->cause.code || went_on) && c->step >= 0 && !t->verbs)
        must(t, stands_failed(new, c->step), "the first failure is that of a step that failed");
}

static uint64_t text_hash(const struct json *j, const char *key)
{
    return seen_hash(json_get_text(j, key));
}

/* ---- references of an undo ---- */

static bool knows_output(const struct flow_step *f, const struct seen_step *s, bool *ret_late)
{
    *ret_late = false;
    if (f->is_approval) /* by hand: one that is skipped says at least that people were overridden */
        return s->decision.has_id;
    if (f->is_wait) /* it has none with an id, unless by hand */
        return s->supplied || (s->state == STEP_SKIPPED && s->has_output);
    for (uint32_t i = 0; i < s->attempt_count; i++)
        *ret_late |= s->attempts[i].direction == DIRECTION_FORWARD
                     && s->attempts[i].outcome == OUTCOME_LATE
                     && s->attempts[i].effect == EFFECT_HAPPENED;
    return s->has_output || *ret_late;
}

/* The undo's input is evaluated once, when it begins, with all results on record, including late
 * ones. If the evaluation fails, it is repeated at the next start. */
void check_undo_begins(struct subject *t, uint32_t step, const struct seen *old,
                       const struct seen *new)
{
    bool late = false;

    for (uint32_t i = 0; i < new->step_count; i++) {
        const struct flow_step *f = &t->flow->steps[i];
        bool known = knows_output(f, &new->steps[i], &late);
        if (known && !t->undone_as[step])
            t->undo_may_know[step] |= BIT(i);
        if (known && !t->undo_began[step] && knows_output(f, &old->steps[i], &late))
            t->undo_knew[step] |= BIT(i);
    }
    t->undo_began[step] = true;
}

static void check_reference(const struct subject *t, uint32_t step, const struct json *id,
                            uint32_t of)
{
    bool late = false;

    if (!id || t->flow->steps[of].is_child) /* its output is that of a step of the child */
        return;
    if (id->type != JSON_STRING) {
        must(t, (t->undo_knew[step] & BIT(of)) == 0, "an undo is told the outputs on record");
        return;
    }
    must(t, (t->undo_may_know[step] & BIT(of)) != 0, "an undo is told the outputs on record");
    must(t, slice_eq(id->text, text_of("%s-%u", t->id, of)) || slice_is(id->text, "by hand"),
         "an undo is told the output of the step that it names");
    (void)knows_output(&t->flow->steps[of], &t->seen.steps[of], &late);
    if (late && !t->seen.steps[of].has_output)
        covered(COVER_UNDO_LATE_OUTPUT);
}

/* The undo's input is the same at each attempt, whoever owns the task. */
void check_undo_input(struct subject *t, uint32_t step, struct slice input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    uint64_t hash = seen_hash(input);

    must(t, t->undone_as[step] == 0 || t->undone_as[step] == hash,
         "a key stands for one request, also of an undo");
    t->undone_as[step] = hash;
    must(t, json_parse(&a, input, &j, NULL) == ERR_OK, "an input is JSON");
    check_reference(t, step, json_get(j, "id"), step);
    for (uint32_t i = 0; i < t->flow->step_count; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "of%u", i);
        check_reference(t, step, json_get(j, key), i);
    }
    const struct json *why = json_get(j, "why");
    if (!why)
        return;
    struct slice of = json_get_text(why, "step");
    const struct seen_cause told = {.step = of.ptr ? (int)flow_step_number(of) : -1,
                                    .code = text_hash(why, "code"),
                                    .message = text_hash(why, "message")};
    must(t, same(&told, &t->seen.cause), "an undo is told the first failure");
    t->told_why[step] = told.step + 2;
    covered(COVER_TOLD_WHY);
}
