/* Decides what a run says about its workflow (classify.h). The runs that count are those with one
 * fault, and those with an answer that turns the task back and one more fault while it is undone:
 * what needs more than that is listed as an end, but is not held against the workflow. */

#include "simulation/classify.h"

#include "definition/definition.h"
#include "testing/step_path.h"

/* The faults of a run by what they mean. One that lasts is an answer that never comes. */
struct counts {
    unsigned passing, answers, help, outages;
};

static bool passes(const struct fault *f)
{
    return fault_spec(f->kind)->class == CLASS_TRANSIENT && !f->lasts;
}

static struct counts count(const struct run *r)
{
    struct counts c = {0};

    for (size_t i = 0; i < r->struck.count; i++) {
        const struct fault *f = &r->struck.list[i];
        enum fault_class class = fault_spec(f->kind)->class;
        c.passing += passes(f);
        c.help += class == CLASS_HELP;
        c.outages += class == CLASS_OUTAGE;
        c.answers += class == CLASS_ANSWER || f->lasts;
    }
    return c;
}

/* The step of the tested workflow that a fault names; NULL: another workflow's, or none. */
static const struct workflow_step *step_of(const struct run *r, const struct fault *f)
{
    const struct workflow *w = &r->config.suite->definition->workflow;
    bool is_childs = f->name.ptr && memchr(f->name.ptr, '/', f->name.len);
    enum fault_place place = fault_spec(f->kind)->place;

    if (is_childs || (place != PLACE_REQUEST && place != PLACE_VOTE))
        return NULL;
    int i = workflow_step_index(w, step_path_first(f->name));
    return i >= 0 ? &w->steps[i] : NULL;
}

static bool waits_for(const struct workflow_step *ws, struct slice signal)
{
    for (uint16_t i = 0; ws->kind == KIND_SIGNAL && i < ws->signal.count; i++)
        if (slice_eq(ws->signal.names[i], signal))
            return true;
    return false;
}

static bool holds(const struct run *r, const struct fault *f)
{
    const struct workflow *w = &r->config.suite->definition->workflow;
    const struct workflow_step *ws = step_of(r, f);

    for (uint16_t i = 0; i < w->step_count && !ws; i++)
        if (waits_for(&w->steps[i], f->name))
            ws = &w->steps[i];
    return ws && ws->on_failure == ON_FAILURE_HOLD;
}

/* ---- sentences ---- */

static struct slice sentence(const struct run *r, const struct fault *a, const struct fault *b,
                             const char *after)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (a)
        fault_tell(&text, a);
    if (b) {
        buf_str(&text, ", then ");
        fault_tell(&text, b);
    }
    buf_str(&text, after);
    return arena_copy((struct arena *)(uintptr_t)&r->trial.arena, buf_view(&text));
}

static struct slice about_end(const struct run *r, const char *head)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_str(&text, head);
    if (!r->end.is_end)
        buf_fmt(&text, "it does not end: %.*s", SLICE_ARG(r->end.waits));
    else if (r->end.code.ptr)
        buf_fmt(&text, "it is %s: %.*s: %.*s", task_state_text(r->end.state),
                SLICE_ARG(r->end.code), SLICE_ARG(r->end.message));
    else
        buf_fmt(&text, "it is %s", task_state_text(r->end.state));
    return arena_copy((struct arena *)(uintptr_t)&r->trial.arena, buf_view(&text));
}

/* ---- what each says ---- */

struct sink {
    struct classified *list;
    size_t count;
};

static void say(struct sink *s, enum finding_kind k, const struct rule *rule, struct slice subject,
                struct slice text)
{
    if (s->count < CLASSIFIED_MAX)
        s->list[s->count++] = (struct classified){k, rule, subject, text};
}

static enum task_state expected(const struct run *r)
{
    const struct test_case *t = r->config.test;

    return t->state.is_given && !t->state.is_asked ? t->state_word : TASK_PROCESSED;
}

static void say_plain(const struct run *r, struct sink *s)
{
    if (r->struck.count == 0 && (!r->end.is_end || r->end.state != expected(r)))
        say(s, FINDING_PLAIN, NULL, SLICE_NONE, about_end(r, "without any fault "));
}

static struct slice subject_of(const struct fault *f)
{
    return f->name.ptr ? f->name : SLICE("server");
}

/* Silence of a pivot cannot be undone, nor can what follows one: whether it took effect has to be
 * found out. */
static bool may_be_silent(const struct run *r, const struct fault *f)
{
    const struct workflow_step *ws = step_of(r, f);

    return !f->is_undo && !r->after_pivot && !(ws && ws->undo_kind == UNDO_PIVOT)
           && !(ws && ws->on_undo);
}

/* A step without an undo after the pivot: its author knows that there is no way back. */
static bool is_last_part(const struct run *r, const struct fault *f)
{
    const struct workflow_step *ws = step_of(r, f);

    return r->after_pivot && ws && ws->undo_kind == UNDO_NONE;
}

static enum finding_kind kind_of_stop(const struct run *r, const struct fault *f, bool is_refusal)
{
    if (holds(r, f))
        return FINDING_HOLDS;
    if (!is_refusal)
        return FINDING_SILENCE;
    return is_last_part(r, f) ? FINDING_AFTER_PIVOT : FINDING_REFUSAL;
}

static void say_one(const struct run *r, struct sink *s)
{
    const struct fault *f = &r->struck.list[0];
    enum fault_kind k = f->kind;
    bool is_refusal = (k == FAULT_REFUSED && !f->is_undo) || k == FAULT_VOTE_AGAINST
                      || k == FAULT_SIGNAL_NEVER || k == FAULT_SIGNAL_LATE || k == FAULT_VOTE_NEVER;
    struct slice text = sentence(r, f, NULL, ": the task stops in error");

    if (passes(f))
        say(s, FINDING_ONE_FAULT, NULL, subject_of(f), text);
    else if (is_refusal || (f->lasts && may_be_silent(r, f)))
        say(s, kind_of_stop(r, f, is_refusal), NULL, subject_of(f), text);
}

/* Whether a fault struck while the task was undone. */
static bool is_while_undone(const struct run *r, const struct fault *f)
{
    const struct workflow_step *ws = step_of(r, f);

    return f->is_undo || (ws && ws->on_undo);
}

static void say_pair(const struct run *r, struct sink *s)
{
    const struct fault *a = &r->struck.list[0];
    const struct fault *b = &r->struck.list[1];

    if (passes(b) && is_while_undone(r, b) && !passes(a) && !holds(r, a))
        say(s, FINDING_ONE_FAULT, NULL, subject_of(b),
            sentence(r, a, b, ": the task stops in error"));
}

static void say_error(const struct run *r, struct sink *s)
{
    struct counts c = count(r);

    if (!r->end.is_end || r->end.state != TASK_ERROR || expected(r) == TASK_ERROR || c.help > 0
        || c.outages > 0)
        return;
    if (r->struck.count == 1)
        say_one(r, s);
    else if (r->struck.count == 2)
        say_pair(r, s);
}

static void say_waits(const struct run *r, struct sink *s)
{
    if (r->struck.count == 1 && !r->end.is_end)
        say(s, FINDING_WAITS, NULL, subject_of(&r->struck.list[0]),
            sentence(r, &r->struck.list[0], NULL, ": the task waits for ever"));
}

/* ---- time ---- */

static void say_attempts(const struct run *r, const struct workflow_step *ws, struct sink *s)
{
    uint32_t most = ws->call.retry.attempts + ws->call.retry.defers;
    CLEANUP(buf_fini) struct buf b = {0};

    if (r->attempts > most || (r->attempts == most && !slice_is(r->end.code, "deadline")))
        return;
    buf_fmt(&b, "%.*s has %u attempts; without answers, the task's complete_by passes in number %u",
            SLICE_ARG(ws->name), most, r->attempts);
    say(s, FINDING_FIT, NULL, ws->name,
        arena_copy((struct arena *)(uintptr_t)&r->trial.arena, buf_view(&b)));
}

static void say_wait_fits(const struct run *r, const struct fault *f, struct sink *s)
{
    const struct workflow *w = &r->config.suite->definition->workflow;

    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct workflow_step *ws = &w->steps[i];
        bool is_it =
            f->kind == FAULT_VOTE_NEVER ? slice_eq(ws->name, f->name) : waits_for(ws, f->name);
        int64_t limit = ws->kind == KIND_SIGNAL    ? ws->signal.complete_by_ms
                        : ws->kind == KIND_APPROVE ? ws->approve.complete_by_ms
                                                   : 0;
        CLEANUP(buf_fini) struct buf b = {0};
        if (!is_it || limit == 0)
            continue;
        buf_fmt(&b, "the task's complete_by passes before that of %.*s", SLICE_ARG(ws->name));
        say(s, FINDING_FIT, NULL, ws->name,
            arena_copy((struct arena *)(uintptr_t)&r->trial.arena, buf_view(&b)));
    }
}

static void say_fit(const struct run *r, struct sink *s)
{
    if (r->struck.count != 1 || !r->deadline_passed)
        return;
    const struct fault *f = &r->struck.list[0];
    const struct workflow_step *ws = step_of(r, f);
    if (f->kind == FAULT_SIGNAL_NEVER || f->kind == FAULT_VOTE_NEVER)
        say_wait_fits(r, f, s);
    else if (f->kind == FAULT_REQUEST_LOST && f->lasts && !f->is_undo && ws
             && ws->kind == KIND_CALL)
        say_attempts(r, ws, s);
}

size_t classify(const struct run *r, struct classified ret[CLASSIFIED_MAX])
{
    struct sink s = {.list = ret};

    if (r->broken_rule.rule)
        say(&s, FINDING_RULE, r->broken_rule.rule, r->broken_rule.subject, r->broken_rule.text);
    say_plain(r, &s);
    say_error(r, &s);
    say_waits(r, &s);
    say_fit(r, &s);
    if (r->stays.ptr)
        say(&s, FINDING_STAYS, NULL, r->stays,
            sentence(r, NULL, NULL, "the task is compensated, and the effect stays"));
    if (r->unclear.ptr)
        say(&s, FINDING_UNCLEAR, NULL, r->unclear,
            sentence(r, NULL, NULL,
                     "the task is compensated, and nobody can say what is left of it"));
    if (r->gap.ptr)
        say(&s, FINDING_GAP, NULL, r->gap,
            sentence(r, NULL, NULL, "the task is processed without it (on_failure: continue)"));
    return s.count;
}

bool classified_is_pair(const struct run *r, enum finding_kind k)
{
    return k == FINDING_ONE_FAULT && r->struck.count == 2;
}
