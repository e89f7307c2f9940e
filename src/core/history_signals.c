/* The observer's model of signals: which a task may take, keeps or drops, and the answer to their
 * sender (see history_world.h). Part of the tests: it shares no code with signal.c, which it
 * judges. */

#include "core/history_check.h"

bool world_awaits(const struct world *w, uint16_t i, int64_t now)
{
    enum step_kind kind = w->graph->steps[i].kind;

    return (kind == KIND_SIGNAL || kind == KIND_APPROVE) && w->steps[i].begun_at != 0
           && world_startable(w, i, now) && world_has_time(w, now);
}

bool world_awaits_no_longer(const struct world *w, uint16_t i, int64_t now)
{
    return world_awaits(w, i, now) && w->steps[i].signal_by != 0 && now >= w->steps[i].signal_by;
}

/* ---- signals: their key is "0" for the first, "1" for the second ---- */

static bool takes(const struct world *w, uint16_t i, char name)
{
    const struct signal_spec *spec = &w->graph->steps[i].signal;

    for (uint16_t k = 0; k < spec->count; k++)
        if (spec->names[k].ptr[0] == name)
            return true;
    return false;
}

static bool may_come(const struct world *w, char name)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (takes(w, i, name) && !world_ended(w, i))
            return true;
    return false;
}

static bool is_undo_name(const struct world *w, char name)
{
    return name == 'u' && w->graph->w.undo_signal_count > 0;
}

bool world_asks_for_undo(const struct world *w, uint16_t signal)
{
    const struct world_signal *s = &w->signals[signal];

    return is_undo_name(w, s->name) && s->taken_by == WORLD_KEPT && !s->dropped;
}

bool world_signal_acted(const struct world *was, const struct world *is)
{
    for (uint16_t i = 0; i < is->signal_count; i++)
        if (is->signals[i].taken_by == WORLD_UNDID
            && (i >= was->signal_count || was->signals[i].taken_by != WORLD_UNDID))
            return true;
    return false;
}

/* A pivot may still clear itself only if something of it goes on. */
static bool may_turn(const struct world *w, enum task_state state)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        bool goes_on = world_open(s) || s->phase == PHASE_IDLE;
        if (w->graph->steps[i].undo_kind != UNDO_PIVOT || world_pivot_clear(s))
            continue;
        if (!goes_on || state == TASK_ERROR)
            return false;
    }
    return true;
}

static uint16_t number_of(const struct event *ev)
{
    return (uint16_t)(ev->signal->key.ptr[0] - '0');
}

static enum answer arrives(const struct world *w, const struct event *ev, enum task_state state)
{
    char name = ev->signal->name.ptr[0];
    uint16_t n = number_of(ev);

    if (n < w->signal_count) /* its content is "1" */
        return w->signals[n].name == name && ev->signal->content.ptr[0] == '1' ? ANSWER_REPEATED
                                                                               : ANSWER_REFUSED;
    if (state == TASK_PROCESSED || state == TASK_COMPENSATED || w->back)
        return ANSWER_REFUSED;
    bool fits = is_undo_name(w, name) ? may_turn(w, state) : may_come(w, name);
    return fits ? ANSWER_ACCEPTED : ANSWER_REFUSED;
}

enum answer world_signal_answer(const struct world *w, const struct event *ev,
                                enum task_state state, int64_t now)
{
    const struct world_signal *s = NULL;

    if (ev->kind == EVENT_SIGNAL)
        return arrives(w, ev, state);
    if (ev->kind == EVENT_TAKE) {
        if (number_of(ev) >= w->signal_count)
            return ANSWER_REFUSED;
        s = &w->signals[number_of(ev)];
        return s->taken_by == WORLD_KEPT && !s->dropped && takes(w, (uint16_t)ev->step, s->name)
                       && world_awaits(w, (uint16_t)ev->step, now)
                   ? ANSWER_ACCEPTED
                   : ANSWER_REFUSED;
    }
    for (uint16_t i = 0; i < w->signal_count; i++)
        if (w->signals[i].name == ev->signal->name.ptr[0] && w->signals[i].taken_by == WORLD_KEPT
            && !w->signals[i].dropped)
            return state == TASK_PROCESSED || state == TASK_COMPENSATED ? ANSWER_REFUSED
                                                                        : ANSWER_ACCEPTED;
    return ANSWER_REFUSED;
}

static void dropped(struct world *w, const struct event *ev)
{
    for (uint16_t i = 0; i < w->signal_count; i++)
        if (w->signals[i].name == ev->signal->name.ptr[0] && w->signals[i].taken_by == WORLD_KEPT)
            w->signals[i].dropped = true;
}

static void taken(struct world *w, const struct event *ev)
{
    w->signals[number_of(ev)].taken_by = ev->step;
    w->steps[ev->step].phase = PHASE_DONE;
}

static void arrived(struct world *w, const struct event *ev)
{
    w->signals[w->signal_count++] =
        (struct world_signal){.name = ev->signal->name.ptr[0], .taken_by = WORLD_KEPT};
}

void world_put_back(struct world *w, uint16_t step)
{
    for (uint16_t i = 0; i < w->signal_count; i++)
        if (w->signals[i].taken_by == step)
            w->signals[i].taken_by = WORLD_KEPT;
}

void world_signal_event(struct world *w, const struct event *ev)
{
    if (ev->kind == EVENT_SIGNAL)
        arrived(w, ev);
    else if (ev->kind == EVENT_TAKE)
        taken(w, ev);
    else
        dropped(w, ev);
}

void world_check_signals(const struct world *w, const struct task *t, const char *(*about)(void))
{
    CHECK(t->signal_count == w->signal_count, "%s: signals", about());
    for (uint16_t i = 0; i < w->signal_count; i++) {
        const struct world_signal *s = &w->signals[i];
        const struct signal *c = &t->signals[i];
        enum signal_state state = s->dropped                  ? SIGNAL_DROPPED
                                  : s->taken_by == WORLD_KEPT ? SIGNAL_KEPT
                                                              : SIGNAL_TAKEN;
        CHECK(c->key.ptr[0] == '0' + i && c->name.ptr[0] == s->name, "%s: signal %u", about(), i);
        CHECK(c->state == state, "%s: signal %u is %s", about(), i, signal_state_text(c->state));
        CHECK(c->step == (s->taken_by >= 0 ? s->taken_by : -1), "%s: signal %u: by", about(), i);
        CHECK((c->data.json.ptr != NULL) == !s->dropped, "%s: signal %u: data", about(), i);
    }
}

const struct signal *history_signal(char name, int number, bool other)
{
    static const char names[] = "srux";
    static const char keys[] = "0123456789:;";
    static struct signal s;

    ASSERT(number < WORLD_SIGNALS);
    s = (struct signal){.content = other ? SLICE("2") : SLICE("1"), .data = {.json = SLICE("1")}};
    if (name)
        s.name = (struct slice){strchr(names, name), 1};
    if (number >= 0)
        s.key = (struct slice){&keys[number], 1};
    return &s;
}
