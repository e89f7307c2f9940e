/* What happens to the task of a test from outside: its submission, verbs of operators, signals and
 * votes, at their moments. One that the server would refuse fails the test. */

#include "definition/family.h"
#include "testing/strikes.h"

/* An act that is planned. */
struct planned {
    struct asker asker; /* first: for `ask.user` */
    struct ask ask;
    struct trial *trial;
    const struct act *act;
    bool again; /* it was done before */
};

/* ---- the submission ---- */

struct submitted {
    struct asker asker;
    struct trial *trial;
};

static void refused(struct trial *t, const char *why)
{
    t->is_refused = true;
    trial_problem(t, t->test->at, "the submission is refused: %s", why);
}

static void submission_answered(struct ask *a)
{
    const struct submitted *s = a->user;

    if (a->outcome != ERR_OK)
        refused(s->trial, a->story[0] ? a->story : err_text(a->outcome));
}

static enum err check_input(struct trial *t, struct error *e)
{
    const struct definition *d = t->suite->definition;
    struct slice input = t->test->input.ptr ? t->test->input : SLICE("null");

    t->submission.input = input;
    if (!d->has_inputs)
        return ERR_OK;
    return definition_check_input(d, input, &t->arena, &t->submission.input, e);
}

static enum err check_family(struct trial *t, struct error *e)
{
    const struct family_source source = {registry_newest, (void *)(uintptr_t)&t->suite->workflows,
                                         true};
    struct family_fault f;

    if (family_resolve(t->suite->definition, &source, &t->arena, &t->submission.family, &f)
        == ERR_OK)
        return ERR_OK;
    return error_set(e, ERR_INVALID,
                     "children: found %s, expected %s; definitions of children are named by `also`",
                     f.path, f.expected);
}

void acts_submit(struct trial *t)
{
    struct submitted *s = arena_alloc(&t->arena, sizeof *s);
    struct error e = {0};

    *s = (struct submitted){{submission_answered}, t};
    t->submission = (struct ask){.kind = ASK_SUBMIT,
                                 .user = s,
                                 .id = TRIAL_ID,
                                 .definition = t->suite->definition,
                                 .priority = 5,
                                 .owner = t->test->submitter,
                                 .submitter = t->test->submitter,
                                 .content = {.hash = 1}};
    if (check_input(t, &e) != ERR_OK || check_family(t, &e) != ERR_OK) {
        refused(t, e.text);
        return;
    }
    timeline_add(&t->timeline, trial_now(t), "submitted: %.*s",
                 SLICE_ARG(timeline_short(&t->arena, t->submission.input)));
    engine_ask(t->engine, &t->submission);
}

/* ---- the others ---- */

static void describe(const struct act *a, struct buf *b)
{
    if (a->kind == ACT_SIGNAL)
        buf_fmt(b, "signal %.*s", SLICE_ARG(a->name));
    else if (a->kind == ACT_VOTE)
        buf_fmt(b, "%.*s %s %.*s", SLICE_ARG(a->name), a->agrees ? "approves" : "rejects",
                SLICE_ARG(a->step));
    else
        buf_fmt(b, "operator: %s%s%.*s", ask_kind_text((enum ask_kind)a->verb),
                a->step.ptr ? " " : "", SLICE_ARG(a->step));
}

static void act_answered(struct ask *a)
{
    const struct planned *p = a->user;
    struct trial *t = p->trial;
    CLEANUP(buf_fini) struct buf what = {0};

    t->acts_left--;
    if (a->outcome == ERR_OK)
        return;
    describe(p->act, &what);
    timeline_add(&t->timeline, trial_now(t), "%s is refused: %s", what.ptr, a->story);
    if (t->faults)
        return; /* it may come too late, or too often */
    trial_problem(t, p->act->at, "%s is refused: %s", what.ptr,
                  a->story[0] ? a->story : err_text(a->outcome));
}

static void fill_vote(struct planned *p)
{
    const struct act *a = p->act;
    const struct workflow *w = &p->trial->suite->definition->workflow;
    const struct approve_spec *s = &w->steps[workflow_step_index(w, a->step)].approve;
    size_t asked = (size_t)s->by_count + s->to_count;
    struct slice *groups = arena_alloc(&p->trial->arena, (asked + 1) * sizeof *groups);

    for (size_t i = 0; i < asked; i++)
        groups[i] = i < s->by_count ? s->by[i] : s->to[i - s->by_count];
    p->ask.kind = a->agrees ? ASK_APPROVE : ASK_REJECT;
    p->ask.ballot = (struct ballot){.person = a->name,
                                    .comment = a->reason,
                                    .groups = a->groups ? a->groups : groups,
                                    .group_count = a->groups ? a->group_count : asked,
                                    .agrees = a->agrees};
}

static void fill_signal(struct planned *p)
{
    const struct act *a = p->act;
    CLEANUP(buf_fini) struct buf key = {0};

    buf_fmt(&key, "%.*s-%zu%s", SLICE_ARG(a->name), (size_t)(a - p->trial->test->acts) + 1,
            p->again ? "-again" : "");
    p->ask.kind = ASK_SIGNAL;
    p->ask.signal = (struct signal){.key = arena_copy(&p->trial->arena, buf_view(&key)),
                                    .name = a->name,
                                    .data.json = a->data,
                                    .content = a->data};
}

static void fill_verb(struct planned *p)
{
    const struct act *a = p->act;

    p->ask.kind = (enum ask_kind)a->verb;
    p->ask.reason = a->reason;
    p->ask.is_admin = true;
    if (a->verb == ASK_CORRECT)
        p->ask.input = a->data;
    else
        p->ask.output = a->data;
}

static void happens(void *arg, uint64_t n)
{
    struct planned *p = arg;
    struct trial *t = p->trial;
    CLEANUP(buf_fini) struct buf what = {0};
    (void)n;

    p->ask.user = p;
    p->ask.id = TRIAL_ID;
    p->ask.step = p->act->step;
    p->ask.actor = t->test->submitter;
    if (p->act->kind == ACT_SIGNAL)
        fill_signal(p);
    else if (p->act->kind == ACT_VOTE)
        fill_vote(p);
    else
        fill_verb(p);
    describe(p->act, &what);
    timeline_add(&t->timeline, trial_now(t), "%s", what.ptr);
    engine_ask(t->engine, &p->ask);
}

static void plan(struct trial *t, const struct act *a, int64_t at, bool again)
{
    struct planned *p = arena_alloc(&t->arena, sizeof *p);

    *p = (struct planned){.asker = {act_answered}, .trial = t, .act = a, .again = again};
    agenda_add(engine_agenda(t->engine), at, happens, p, 0);
    t->acts_left++;
}

static const struct act *kept(struct trial *t, const struct act *a)
{
    struct act *copy = arena_alloc(&t->arena, sizeof *copy);

    *copy = *a;
    return copy;
}

void acts_add(struct trial *t, const struct act *a, int64_t at)
{
    plan(t, kept(t, a), at, false);
}

/* ---- among faults ---- */

static bool are_alike(const struct act *a, const struct act *b)
{
    return a->kind == b->kind && slice_eq(a->name, b->name) && slice_eq(a->step, b->step);
}

static struct fault_point point_of(const struct trial *t, const struct act *a)
{
    struct fault_point p = {.place = a->kind == ACT_VOTE ? PLACE_VOTE : PLACE_SIGNAL,
                            .name = a->kind == ACT_VOTE ? a->step : a->name,
                            .number = 1};

    for (const struct act *b = t->test->acts; b < a; b++)
        p.number += a->kind == ACT_VOTE ? b->kind == ACT_VOTE && slice_eq(a->step, b->step)
                                        : are_alike(a, b);
    return p;
}

static void plan_struck(struct trial *t, const struct act *a, int64_t at, const struct fault *f)
{
    if (f->kind == FAULT_SIGNAL_EARLY) {
        plan(t, a, t->test->start_at + 1, false);
    } else if (f->kind == FAULT_SIGNAL_LATE) {
        plan(t, a, at + f->ms, false);
    } else if (f->kind == FAULT_SIGNAL_TWICE) {
        plan(t, a, at, false);
        plan(t, a, at + f->ms, true);
    } else if (f->kind == FAULT_VOTE_AGAINST) {
        struct act against = *a;
        against.agrees = false;
        against.reason = a->reason.ptr ? a->reason : SLICE("test");
        acts_add(t, &against, at);
    }
}

void acts_plan(struct trial *t)
{
    for (size_t i = 0; i < t->test->act_count; i++) {
        const struct act *a = &t->test->acts[i];
        int64_t at = t->test->start_at + a->after_ms;
        struct fault_point p = point_of(t, a);
        struct fault f;
        if (a->kind != ACT_VERB && strikes_at(t, &p, &f))
            plan_struck(t, a, at, &f);
        else
            plan(t, a, at, false);
    }
}
