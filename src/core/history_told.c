/* Checks what is told in a family after each event: by a task to its children, and to its parent
 * (see history_check.h). Part of the tests. */

#include "core/history_check.h"

static bool is_active(const struct task *t)
{
    return t->state != TASK_PROCESSED && t->state != TASK_COMPENSATED && t->state != TASK_ERROR;
}

static const struct workflow_step *spec_of(uint16_t i)
{
    return &history.graph.steps[i];
}

/* ---- what children are told ---- */

/* A child starts: there is none from before that has not ended, or has to be undone. */
static void check_started(const struct node *was, const struct node *is, const struct event *ev,
                          uint16_t i)
{
    const struct world_kid *before = &was->world.steps[i].kid;
    const struct child *c = &is->steps[i].child;

    CHECK(ev->kind == EVENT_BEGIN && ev->step == i, "%s: step %u starts a child", history_story(),
          i);
    CHECK(c->number == before->number + 1 && c->state == CHILD_RUNNING && c->wish == WISH_NONE,
          "%s: step %u: a new child", history_story(), i);
    CHECK(before->phase == KID_NONE || before->phase == KID_UNDONE
              || (before->phase == KID_DONE && spec_of(i)->undo_kind == UNDO_NONE),
          "%s: step %u has a second child", history_story(), i);
}

/* A pivot that is a call may still take effect, or be found to have none. */
static bool call_pivot_is_open(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        if (spec_of(i)->undo_kind == UNDO_PIVOT && spec_of(i)->kind == KIND_CALL
            && (world_open(s) || (s->phase == PHASE_IDLE && !world_pivot_clear(s))))
            return true;
    }
    return false;
}

static bool is_pivot_to_ask(const struct node *is, uint16_t i)
{
    return is->t.direction == DIRECTION_FORWARD && is->t.stop == STOP_UNDO
           && spec_of(i)->undo_kind == UNDO_PIVOT && !call_pivot_is_open(&is->world);
}

static bool is_reopened(const struct event *ev)
{
    return ev->kind == EVENT_REOPEN || (ev->kind == EVENT_PARENT && ev->wish != WISH_CLOSE);
}

static void check_stop(const struct node *is, const struct event *ev, uint16_t i)
{
    bool late = ev->kind == EVENT_TIMEOUT && ev->step == i;

    CHECK(world_kid_open(&is->world.steps[i]), "%s: the child of %u has ended", history_story(), i);
    CHECK(is->t.paused_at == 0, "%s: told in a pause", history_story());
    CHECK(late || is->t.direction == DIRECTION_UNDO || is_pivot_to_ask(is, i)
              || is->t.state == TASK_ERROR, /* it was asked, and nothing else can go on */
          "%s: why is the child of %u to stop?", history_story(), i);
}

static void check_undo(const struct node *is, const struct event *ev, uint16_t i)
{
    const struct world_kid *k = &is->world.steps[i].kid;

    CHECK(is->t.direction == DIRECTION_UNDO && spec_of(i)->undo_kind == UNDO_CHILD,
          "%s: why is the child of %u undone?", history_story(), i);
    if (is_reopened(ev) && is->world.steps[i].back)
        return; /* it is told again */
    CHECK(is->world.steps[i].said == CHILD_PROCESSED && k->phase == KID_DONE,
          "%s: the child of %u is not processed", history_story(), i);
    CHECK(is->t.paused_at == 0 && world_after_is_undone(&is->world, i), "%s: the turn of %u",
          history_story(), i);
}

static void check_close(const struct node *is, const struct event *ev, uint16_t i)
{
    bool left = (ev->kind == EVENT_SKIP || ev->kind == EVENT_SUPPLY) && ev->step == i;

    CHECK(world_kid_stopped(&is->world.steps[i]), "%s: the child of %u is not in error",
          history_story(), i);
    CHECK(left || is->world.closed, "%s: why is the child of %u closed?", history_story(), i);
}

/* What a child is told now that it was not told before. */
static void check_wish(const struct node *was, const struct node *is, const struct event *ev,
                       uint16_t i)
{
    const struct child *c = &is->steps[i].child;

    switch (c->wish) {
    case WISH_STOP:
        check_stop(is, ev, i);
        return;
    case WISH_UNDO:
        check_undo(is, ev, i);
        return;
    case WISH_CLOSE:
        check_close(is, ev, i);
        return;
    case WISH_NONE:
        CHECK(c->state == CHILD_NONE || c->number != was->steps[i].child.number || is_reopened(ev),
              "%s: the child of %u is told nothing", history_story(), i);
        return;
    }
}

/* What a child has to be told in this state was told. */
static void check_all_told(const struct node *is, uint16_t i)
{
    const struct world *w = &is->world;
    const struct world_step *s = &w->steps[i];
    enum child_wish wish = is->steps[i].child.wish;
    bool done = s->back && s->phase == PHASE_DONE;
    bool to_stop = wish == WISH_STOP || wish == WISH_UNDO;

    if (!is_active(&is->t) || is->t.paused_at != 0 || done)
        return;
    if (world_kid_open(s))
        CHECK(to_stop || (!w->back && (!is_pivot_to_ask(is, i) || s->said == CHILD_STUCK)),
              "%s: the child of %u was not told to stop", history_story(), i);
    if (s->said == CHILD_PROCESSED && w->back && spec_of(i)->undo_kind == UNDO_CHILD
        && is->t.stop == STOP_NONE && world_after_is_undone(w, i))
        CHECK(wish == WISH_UNDO, "%s: the child of %u was not told", history_story(), i);
}

/* A task that has ended has no child whose end is to come, or that has to be undone, unless an
 * operator said otherwise. */
static void check_kid_at_end(const struct node *is, uint16_t i)
{
    const struct world_step *s = &is->world.steps[i];
    const struct world_kid *k = &s->kid;
    bool by_hand = is->steps[i].child.wish == WISH_CLOSE || s->by_hand;

    if (by_hand || k->phase == KID_NONE || s->said == CHILD_NONE)
        return;
    CHECK(k->phase == KID_DONE || k->phase == KID_UNDONE, "%s: the child of %u runs",
          history_story(), i);
    if (is->t.state == TASK_PROCESSED)
        CHECK(k->phase == KID_DONE || s->phase != PHASE_DONE || s->supplied,
              "%s: step %u completed without its child", history_story(), i);
    else
        CHECK(k->phase == KID_UNDONE
                  || (spec_of(i)->undo_kind != UNDO_CHILD && spec_of(i)->undo_kind != UNDO_PIVOT),
              "%s: the child of %u was not undone", history_story(), i);
}

static void check_kid_at_turn(const struct node *is, uint16_t i)
{
    const struct world_kid *k = &is->world.steps[i].kid;

    if (spec_of(i)->undo_kind == UNDO_PIVOT && k->phase != KID_NONE)
        CHECK(k->back, "%s: the pivot child of %u may stand", history_story(), i);
}

static void tell_step(const struct node *was, struct node *is, const struct event *ev, uint16_t i)
{
    struct world_step *s = &is->world.steps[i];
    const struct child *before = &was->steps[i].child;
    const struct child *c = &is->steps[i].child;

    if (c->number != before->number) {
        check_started(was, is, ev, i);
        s->said = CHILD_RUNNING;
    }
    if (c->wish == WISH_STOP && before->wish != WISH_STOP && s->said == CHILD_ERROR
        && !(was->world.closed && c->state == CHILD_ERROR)) /* reopened as it was */
        s->said = CHILD_RUNNING;                            /* it goes on */
    if (c->wish == WISH_UNDO && before->wish != WISH_UNDO && !s->back) {
        world_goes_undo(s);
        s->phase = PHASE_IDLE;
    }
    if (c->wish == WISH_STOP)
        s->signal_by = 0;
    kid_is_told(&s->kid, before, c);
}

void history_tell(const struct node *was, struct node *is, const struct event *ev)
{
    if (history.graph.w.child_step_count == 0)
        return;
    for (uint16_t i = 0; i < is->t.step_count; i++)
        if (spec_of(i)->kind == KIND_TASK)
            tell_step(was, is, ev, i);
}

/* ---- what a parent is told ---- */

/* Whether one can follow the other; `undo`: by a wish of the parent only. */
static bool may_follow(enum child_state from, enum child_state to, bool undo)
{
    static const uint32_t next[] = {
        [CHILD_RUNNING] = BIT(CHILD_ERROR) | BIT(CHILD_STANDS) | BIT(CHILD_TURNED)
                          | BIT(CHILD_STUCK) | BIT(CHILD_PROCESSED) | BIT(CHILD_COMPENSATED),
        [CHILD_ERROR] = BIT(CHILD_RUNNING) | BIT(CHILD_TURNED) | BIT(CHILD_STUCK)
                        | BIT(CHILD_PROCESSED) | BIT(CHILD_COMPENSATED),
        [CHILD_STANDS] = BIT(CHILD_STUCK) | BIT(CHILD_PROCESSED),
        [CHILD_TURNED] = BIT(CHILD_STUCK) | BIT(CHILD_COMPENSATED),
        [CHILD_STUCK] = BIT(CHILD_RUNNING) | BIT(CHILD_STANDS) | BIT(CHILD_TURNED)
                        | BIT(CHILD_PROCESSED) | BIT(CHILD_COMPENSATED),
        [CHILD_PROCESSED] = 0,
        [CHILD_COMPENSATED] = 0,
    };

    if (from == CHILD_PROCESSED)
        return undo && (to == CHILD_TURNED || to == CHILD_STUCK || to == CHILD_COMPENSATED);
    return (next[from] & BIT(to)) != 0;
}

/* Which an operator, or on_failure, ignores. */
static bool any_pivot_in_doubt(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (spec_of(i)->undo_kind == UNDO_PIVOT && !world_pivot_clear(&w->steps[i])
            && !world_open(&w->steps[i]) && w->steps[i].phase != PHASE_IDLE)
            return true;
    return false;
}

static void check_parent(const struct node *was, const struct node *is, const struct event *ev)
{
    enum child_state from = child_told(&history.graph.w, &was->t);
    enum child_state to = child_told(&history.graph.w, &is->t);
    const struct world *w = &is->world;
    bool told_undo = ev->kind == EVENT_PARENT && ev->wish == WISH_UNDO;

    if (!history.graph.is_child)
        return;
    CHECK(from == to || may_follow(from, to, told_undo), "%s: tells %s, then %s", history_story(),
          child_state_text(from), child_state_text(to));
    bool went_back = was->t.direction == DIRECTION_UNDO || was->world.told == WISH_UNDO;
    CHECK(!went_back
              || (to != CHILD_RUNNING && to != CHILD_ERROR && to != CHILD_STANDS
                  && to != CHILD_PROCESSED),
          "%s: it had turned back, and is %s", history_story(), child_state_text(to));
    CHECK(is->t.asked == w->told, "%s: it was told", history_story());
    if (w->told != WISH_STOP || !is_active(&is->t) || w->back || is->t.stop != STOP_NONE)
        return;
    CHECK(to == CHILD_STANDS || any_pivot_in_doubt(w), "%s: told to stop, and goes forward",
          history_story());
}

/* ---- all checks after an event ---- */

void history_check_told(const struct node *was, const struct node *is, const struct event *ev)
{
    bool turned = was->t.direction != is->t.direction;
    bool ended = task_state_is_end(is->t.state) && !task_state_is_end(was->t.state);

    check_parent(was, is, ev);
    if (history.graph.w.child_step_count == 0)
        return;
    for (uint16_t i = 0; i < is->t.step_count; i++) {
        if (spec_of(i)->kind != KIND_TASK)
            continue;
        if (is->steps[i].child.wish != was->steps[i].child.wish)
            check_wish(was, is, ev, i);
        check_all_told(is, i);
        if (ended)
            check_kid_at_end(is, i);
        if (turned)
            check_kid_at_turn(is, i);
    }
}
