/* Families: what a change tells the parent and the children of its task, which children it starts,
 * and what others tell the task, as events for core/. Both follow from comparing the task with what
 * was told before (tasks/family.h). change.c stores it, commands.c decides on the events. */

#include "scheduler/job.h"

#include <stdio.h>

#include "core/summary.h"
#include "definition/family.h"
#include "store/codec/family.h"

/* ---- what is told ---- */

/* What one change tells, while it is gathered. */
struct family_gathering {
    struct scheduler *s;
    struct job *j;
    const struct live *l;
    struct notice_row *tells; /* one to the parent, two to each child */
    size_t tell_count;
    struct submission_row *children;
    size_t child_count;
};

static void tell(struct family_gathering *g, struct slice to, struct slice kind,
                 const struct family_word *word)
{
    CLEANUP(buf_fini) struct buf body = {0};

    family_word_write(&body, kind, word);
    g->tells[g->tell_count++] =
        (struct notice_row){.task = to,
                            .sender = g->l->id,
                            .kind = kind,
                            .at = scheduler_now(g->s),
                            .body = arena_copy(&g->j->arena, buf_view(&body))};
}

/* Why the child ended, or stopped. */
static struct fault_note reason_of(const struct task *t)
{
    return t->state == TASK_COMPENSATED && t->cause.error.code.ptr ? t->cause.error : t->error;
}

static void tell_parent(struct family_gathering *g)
{
    const struct task *t = &g->l->task;
    enum child_state state = child_told(&g->l->definition->workflow, t);

    if (!t->parent.ptr || state == g->l->family.state)
        return;
    struct family_word word = {.step = t->parent_step, .number = t->parent_number, .state = state};
    if (state == CHILD_PROCESSED)
        word.output = t->output.json.ptr ? t->output.json : SLICE("null");
    else if (state != CHILD_RUNNING)
        word.error = reason_of(t);
    tell(g, t->parent, NOTICE_CHILD, &word);
}

static struct slice root_of(const struct task *t)
{
    return t->parent.ptr ? t->root : t->id;
}

static struct slice origin_text(struct family_gathering *g, uint16_t step)
{
    const struct task *t = &g->l->task;
    CLEANUP(buf_fini) struct buf b = {0};
    const struct child_origin o = {.parent = t->id,
                                   .root = root_of(t),
                                   .step = live_unit_name(g->l, step, &g->j->arena),
                                   .number = t->steps[step].child.number,
                                   .complete_by = t->steps[step].complete_by,
                                   .family = t->family,
                                   .trace = t->trace,
                                   .owner = t->owner};

    child_origin_write(&b, &o);
    return arena_copy(&g->j->arena, buf_view(&b));
}

static struct slice number_text(struct family_gathering *g, int64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, n);
    return arena_copy(&g->j->arena, slice_of(text));
}

/* The version of its workflow is that of the family, so it does not depend on when it starts. */
static void start_child(struct family_gathering *g, uint16_t step, struct slice id)
{
    const struct child_spec *spec = &g->l->definition->workflow.steps[step].child;
    const struct task *t = &g->l->task;

    g->children[g->child_count++] = (struct submission_row){
        .source = CHILD_SOURCE,
        .id = id,
        .key = id,
        .workflow = spec->workflow,
        .version = number_text(g, family_version(t->family, spec->workflow)),
        .priority = number_text(g, t->priority),
        .tags = spec->tags.ptr ? spec->tags : t->tags,
        .input = t->steps[step].input.json,
        .submitter = task_submitter(t),
        .child = origin_text(g, step),
        .submitted_at = scheduler_now(g->s),
    };
}

/* It was in error, where it is not paused, and goes on. */
static bool went_on(const struct child *before, const struct child *now)
{
    return (before->state == CHILD_ERROR || before->state == CHILD_STUCK) && child_is_open(now)
           && now->state != CHILD_ERROR && now->state != CHILD_STUCK;
}

static void tell_child(struct family_gathering *g, uint16_t step)
{
    const struct live *l = g->l;
    const struct child before = l->family.children ? l->family.children[step] : (struct child){0};
    const struct child *now = &l->task.steps[step].child;
    bool is_new = now->number != before.number;
    enum child_wish before_wish = is_new ? WISH_NONE : before.wish;
    bool wishes = now->state != CHILD_NONE && now->wish != before_wish;
    bool is_told = !is_new && !went_on(&before, now); /* of the pause that there was, if any */
    /* A processed child that was told to go back is about to run again. */
    bool runs = l->task.steps[step].slot != SLOT_RESTING
                && step_awaits_child(&l->definition->workflow.steps[step], &l->task.steps[step]);
    bool pauses = runs && l->task.paused_at != (is_told ? l->family.paused_at : 0);

    ASSERT(l->task.steps[step].slot != SLOT_FREE || now->number == before.number
           || now->number == before.number + 1);
    if (!is_new && !wishes && !pauses)
        return;
    struct slice id =
        child_id(l->id, live_unit_name(l, step, &g->j->arena), now->number, &g->j->arena);
    const struct family_word word = {.wish = now->wish, .error = l->task.cause.error};
    const struct family_word pause = {.pauses = true, .paused_at = l->task.paused_at};
    if (is_new)
        start_child(g, step, id);
    if (wishes)
        tell(g, id, NOTICE_PARENT, &word);
    if (pauses)
        tell(g, id, NOTICE_PARENT, &pause);
}

void family_fill(struct scheduler *s, struct job *j, const struct live *l, struct change *c)
{
    const struct workflow *w = &l->definition->workflow;
    size_t most = w->child_step_count;

    ASSERT(family_has(l));
    struct family_gathering g = {.s = s, .j = j, .l = l};
    g.tells = arena_alloc(&j->arena, (1 + 2 * most) * sizeof *g.tells);
    g.children = arena_alloc(&j->arena, (most + 1) * sizeof *g.children);
    tell_parent(&g);
    for (uint16_t i = 0; i < task_unit_count(&l->task); i++)
        if (w->steps[i].kind == KIND_TASK)
            tell_child(&g, i);
    ASSERT(g.tell_count <= 1 + 2 * most && g.child_count <= most);
    c->tells = g.tells;
    c->tell_count = g.tell_count;
    c->children = g.children;
    c->child_count = g.child_count;
    s->family_told |= c->tell_count > 0 || c->child_count > 0;
}

/* ---- what others tell ---- */

/* What the task keeps of it. A word that changes nothing costs its memory until it leaves memory,
 * which is soon. */
static struct fault_note kept_error(struct live *l, const struct fault_note *n)
{
    return (struct fault_note){arena_copy(&l->arena, n->code), arena_copy(&l->arena, n->message)};
}

/* That of a child that stopped gets the code CODE_CHILD, so its own is part of the message:
 * "declined: the card is blocked". A child of which a child stopped says so of that. */
static struct fault_note error_of_child(struct live *l, const struct family_word *w)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct child told = {.number = w->number, .state = w->state};

    if (!child_has_stopped(&told) || !w->error.code.ptr || slice_is(w->error.code, CODE_CHILD))
        return kept_error(l, &w->error);
    buf_slice(&b, w->error.code);
    if (w->error.message.len > 0)
        buf_str(&b, ": ");
    buf_slice(&b, w->error.message);
    return (struct fault_note){arena_copy(&l->arena, w->error.code),
                               arena_copy(&l->arena, buf_view(&b))};
}

static struct event child_event(struct live *l, const struct ask *a)
{
    int step = live_unit_named(l, a->step);

    return (struct event){
        .kind = EVENT_CHILD,
        .step = step >= 0 ? step : task_unit_count(&l->task),
        .attempt = a->word.number,
        .child = a->word.state,
        .output.json = arena_copy(&l->arena, a->word.output),
        .error = error_of_child(l, &a->word),
    };
}

static struct event parent_event(struct live *l, const struct ask *a)
{
    const struct family_word *w = &a->word;
    struct event e = {.kind = EVENT_PARENT, .step = -1, .wish = w->wish};

    if (w->pauses) {
        e.kind = w->paused_at ? EVENT_PARENT_PAUSE : EVENT_PARENT_RESUME;
        e.until = w->paused_at;
        return e;
    }
    e.error = kept_error(l, &w->error);
    return e;
}

struct event family_event(struct live *l, const struct command *c)
{
    ASSERT(l->loaded);
    return c->ask->kind == ASK_CHILD ? child_event(l, c->ask) : parent_event(l, c->ask);
}
