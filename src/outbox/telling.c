/* Finds which messages a change of a task causes, by comparing the task as of its last durable
 * change with its present state, and writes their CloudEvents (telling.h). Pure.
 * scheduler/change.c adds them to the batch of the change; courier.c delivers them. */

#include "outbox/telling.h"

#include "base/pen.h"
#include "base/when.h"
#include "core/summary.h"
#include "store/codec/envelope.h"
#include "json/text.h"

enum { ERROR_TOLD_MAX = 4096, SEQUENCE_SHIFT = 12, FEW = 1, TEXT_USUAL = 1000 };

_Static_assert(STEPS_MAX + EVENT_TYPE_COUNT < 1 << SEQUENCE_SHIFT, "of one change");

/* As the key of the step in its definition. */
static const char *const kinds[] = {
    [KIND_CALL] = "agent",      [KIND_WAIT] = "wait", [KIND_SIGNAL] = "signal",
    [KIND_APPROVE] = "approve", [KIND_TASK] = "task", [KIND_EACH] = "for_each",
};

static uint32_t ended_tries(const struct step *s)
{
    uint32_t tries = s->dropped_count + s->attempt_count - (step_open_attempt(s) != NULL);

    return tries + s->failure_count; /* includes failures without an attempt */
}

static bool has_started(const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (t->steps[i].attempt_count > 0 || t->steps[i].state != STEP_WAITING
            || t->steps[i].begun_at != 0 || t->steps[i].generation > 0) /* it starts anew */
            return true;
    return t->state == TASK_PROCESSED || t->failure_count > 0; /* continued after a failure */
}

/* Nobody has it, and nothing else keeps it from taking its lock. A start time that is to come does,
 * but when it has come a claim takes the task, and that is over before it queues. */
static bool queues(const struct task *t)
{
    return t->state == TASK_PENDING && task_lacks_lock(t) && t->paused_at == 0;
}

static bool wants(const struct reply *r, enum event_type type)
{
    return r->events & 1U << type;
}

static int64_t waits_since(const struct step *s)
{
    return step_has_begun(s) ? s->begun_at : 0;
}

/* Failed compensations are reported to receivers of needs_operator. */
static bool tells_of_steps(const struct reply *r, enum direction d)
{
    return wants(r, EVENT_TYPE_PROGRESS) || wants(r, EVENT_TYPE_WAITING)
           || (wants(r, EVENT_TYPE_NEEDS_OPERATOR) && d == DIRECTION_UNDO);
}

void told_of(const struct task *t, const struct reply *r, struct arena *a, struct told *ret)
{
    struct told_step *steps = ret->steps;

    if (!r->to.ptr)
        return;
    *ret = (struct told){.any = true,
                         .started = ret->started || has_started(t),
                         .paused = t->paused_at != 0,
                         .closed = t->closed_at != 0,
                         .queues = queues(t),
                         .state = t->state,
                         .direction = t->direction};
    if (!tells_of_steps(r, t->direction))
        return;
    ret->steps = steps ? steps : arena_alloc(a, t->step_count * sizeof *steps);
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        ret->steps[i] = (struct told_step){s->state, s->direction, ended_tries(s), waits_since(s)};
    }
}

/* ---- the envelope ---- */

static void at(struct buf *b, const char *key, int64_t time)
{
    if (time == 0)
        return;
    buf_str(b, key);
    time_write(b, time);
    buf_byte(b, '"');
}

/* Fast path: constant parts and words that need no escape are copied. Three of these envelopes are
 * made for most tasks, and would cost as much as the rest of the work for messages. */
static void put(struct buf *b, const char *before, struct slice plain)
{
    buf_str(b, before);
    buf_slice(b, plain);
}

static void put_word(struct buf *b, const char *before, const char *word)
{
    buf_str(b, before);
    buf_str(b, word);
}

static void write_error(struct buf *b, const struct fault_note *n)
{
    struct slice message = n->message;

    if (!n->code.ptr)
        return;
    if (message.len > ERROR_TOLD_MAX)
        message.len = ERROR_TOLD_MAX;
    message.len = text_utf8_end(message); /* it may end within a character now */
    json_key(b, "error");
    json_open(b, '{');
    json_member_text(b, "code", n->code);
    json_member_text(b, "message", message);
    json_close(b, '}');
}

static void write_step(struct buf *b, const struct telling *now, int step)
{
    const struct step *s = &now->task->steps[step];

    json_key(b, "step");
    json_open(b, '{');
    json_member_text(b, "name", now->workflow->steps[step].name);
    json_member_text(b, "state", slice_of(step_state_text(s->state)));
    json_member_text(b, "direction", slice_of(direction_text(s->direction)));
    if (step_has_begun(s)) {
        json_member_text(b, "kind", slice_of(kinds[now->workflow->steps[step].kind]));
        at(b, ",\"until\":\"", s->complete_by ? s->complete_by : s->wait_until);
    } else {
        json_member_number(b, "failure_count", s->failure_count);
    }
    if (s->state == STEP_FAILED)
        write_error(b, &s->error);
    json_close(b, '}');
}

static void write_output(struct buf *b, const struct task *t)
{
    if (!t->output.json.ptr)
        return;
    if (t->output.json.len <= OUTPUT_TOLD_MAX) {
        json_member_raw(b, "output", t->output.json);
        return;
    }
    json_member_bool(b, "output_omitted", true);
}

static void write_data(struct buf *b, const struct telling *now, enum event_type type, int step)
{
    const struct task *t = now->task;

    char *pen = pen_begin(b, 30 + t->id.len);

    pen = PEN(pen, "{\"task\":\"");
    pen = pen_slice(pen, t->id);
    pen = PEN(pen, "\",\"workflow\":");
    pen_end(b, pen);
    json_string(b, now->workflow->name);
    buf_str(b, ",\"version\":");
    buf_i64(b, now->workflow->version);
    pen = pen_begin(b, 100);
    pen = PEN(pen, ",\"state\":\"");
    pen = pen_slice(pen, slice_of(task_state_text(t->state)));
    pen = PEN(pen, "\",\"direction\":\"");
    pen = pen_slice(pen, slice_of(direction_text(t->direction)));
    pen = PEN(pen, "\",\"revision\":");
    pen_end(b, pen);
    buf_i64(b, (int64_t)now->revision);
    if (t->tags.ptr) {
        json_member_raw(b, "tags", t->tags);
    }
    if (step >= 0)
        write_step(b, now, step);
    if (step < 0 && type == EVENT_TYPE_WAITING)
        json_member_text(b, "lock", t->lock);
    if (type == EVENT_TYPE_PROCESSED)
        write_output(b, t);
    write_error(b, &t->error);
    if (type == EVENT_TYPE_CLOSED && t->closed_reason.ptr)
        json_member_text(b, "closed_reason", t->closed_reason);
    at(b, ",\"submitted_at\":\"", t->submitted_at);
    at(b, ",\"started_at\":\"", t->started_at);
    at(b, ",\"ended_at\":\"", t->ended_at);
    buf_byte(b, '}');
}

static void write_name(struct buf *b, const struct telling *now, enum event_type type, int step)
{
    buf_i64(b, (int64_t)now->revision);
    put_word(b, "/", event_type_text(type));
    if (step >= 0)
        put(b, "/", now->workflow->steps[step].name);
}

/* ---- the messages of a change ---- */

struct list {
    const struct telling *now;
    struct slice task, target, trace; /* in `arena`, once there is a message */
    struct arena *arena;
    struct message *messages;
    size_t count, cap;
    struct buf *text; /* of the message being written */
};

static void add(struct list *l, enum event_type type, int step)
{
    struct buf *b = l->text;

    if (!wants(l->now->reply, type))
        return;
    buf_clear(b);
    (void)buf_room(b, TEXT_USUAL);
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 4 : FEW;
        struct message *more = arena_alloc(l->arena, l->cap * sizeof *more);
        if (l->count)
            memcpy(more, l->messages, l->count * sizeof *more);
        l->messages = more;
    }
    if (l->count == 0) {
        l->task = arena_copy(l->arena, l->now->task->id);
        l->target = arena_copy(l->arena, l->now->reply->to);
        l->trace = arena_copy(l->arena, l->now->task->trace);
    }
    write_name(b, l->now, type, step);
    struct message *m = &l->messages[l->count++];
    *m = (struct message){.task = l->task,
                          .name = arena_copy(l->arena, buf_view(b)),
                          .target = l->target,
                          .source = l->now->source,
                          .trace = l->trace,
                          .sequence = (l->now->revision << SEQUENCE_SHIFT) + l->count,
                          .created_at = l->now->now};
    buf_clear(b);
    if (m->trace.ptr) { /* few have one: they are stored complete */
        envelope_begin(b, m);
        write_data(b, l->now, type, step);
        buf_byte(b, '}');
        m->body = arena_copy(l->arena, buf_view(b));
    } else {
        write_data(b, l->now, type, step);
        m->data = arena_copy(l->arena, buf_view(b));
    }
}

static bool has_ended(enum step_state s)
{
    return s == STEP_COMPLETED || s == STEP_FAILED || s == STEP_SKIPPED || s == STEP_UNDONE;
}

/* Since the last message. A step may end twice in the same way. */
static bool just_ended(const struct list *l, const struct told *before, uint16_t i)
{
    const struct step *s = &l->now->task->steps[i];
    const struct told_step was =
        before->steps ? before->steps[i] : (struct told_step){.state = STEP_WAITING};

    return has_ended(s->state)
           && (s->state != was.state
               || (s->state == STEP_FAILED
                   && (s->direction != was.direction || ended_tries(s) != was.tries)));
}

static void add_progress(struct list *l, const struct told *before)
{
    const struct task *t = l->now->task;

    if (!wants(l->now->reply, EVENT_TYPE_PROGRESS))
        return;
    for (uint16_t i = 0; i < t->step_count; i++)
        if (just_ended(l, before, i))
            add(l, EVENT_TYPE_PROGRESS, i);
}

static void add_waiting(struct list *l, const struct told *before)
{
    const struct task *t = l->now->task;

    if (!wants(l->now->reply, EVENT_TYPE_WAITING))
        return;
    if (queues(t) && !before->queues
        && (t->direction == DIRECTION_UNDO || t->not_before <= l->now->now))
        add(l, EVENT_TYPE_WAITING, -1);
    for (uint16_t i = 0; i < t->step_count; i++) {
        int64_t since = waits_since(&t->steps[i]);
        if (since != 0 && (!before->steps || since != before->steps[i].begun_at))
            add(l, EVENT_TYPE_WAITING, i);
    }
}

static bool is_at_work(const struct task *t)
{
    return !task_state_is_end(t->state) && t->state != TASK_ERROR;
}

/* A compensation, or a step of on_undo, failed for good while others continue: the task stops only
 * when these have ended, but an operator can act now. */
static void add_held(struct list *l, const struct told *before)
{
    const struct task *t = l->now->task;

    if (t->direction != DIRECTION_UNDO || !is_at_work(t)
        || !wants(l->now->reply, EVENT_TYPE_NEEDS_OPERATOR))
        return;
    for (uint16_t i = 0; i < t->step_count; i++)
        if (t->steps[i].state == STEP_FAILED && step_stops_task(l->now->workflow, t, i)
            && just_ended(l, before, i))
            add(l, EVENT_TYPE_NEEDS_OPERATOR, i);
}

/* Operator actions. A task that ended while it was paused is not reported as resumed. */
static void add_hands(struct list *l, const struct told *before)
{
    const struct task *t = l->now->task;

    if (before->paused && t->paused_at == 0 && is_at_work(t))
        add(l, EVENT_TYPE_RESUMED, -1);
    if (!before->paused && t->paused_at != 0)
        add(l, EVENT_TYPE_PAUSED, -1);
    if (!before->closed && t->closed_at != 0)
        add(l, EVENT_TYPE_CLOSED, -1);
}

static void add_states(struct list *l, const struct told *before)
{
    const struct task *t = l->now->task;
    enum task_state was = before->any ? before->state : TASK_PENDING;

    if (t->direction == DIRECTION_UNDO && (!before->any || before->direction != t->direction))
        add(l, EVENT_TYPE_COMPENSATING, -1);
    add_progress(l, before);
    add_waiting(l, before);
    if (t->state == TASK_PROCESSED && was != TASK_PROCESSED)
        add(l, EVENT_TYPE_PROCESSED, -1);
    if (t->state == TASK_COMPENSATED && was != TASK_COMPENSATED)
        add(l, EVENT_TYPE_COMPENSATED, -1);
    if (t->state == TASK_ERROR && (was != TASK_ERROR || l->now->alert))
        add(l, EVENT_TYPE_ERROR, -1);
    if (l->now->alert)
        add(l, EVENT_TYPE_NEEDS_OPERATOR, -1);
    add_held(l, before);
    add_hands(l, before);
}

const struct message *messages_of(const struct told *before, const struct telling *now,
                                  struct buf *scratch, struct arena *a, size_t *ret_count)
{
    struct list l = {.now = now, .arena = a, .text = scratch};

    *ret_count = 0;
    if (!now->reply->to.ptr)
        return NULL;
    if (!before->any)
        add(&l, EVENT_TYPE_RECEIVED, -1);
    if (!before->started && has_started(now->task))
        add(&l, EVENT_TYPE_STARTED, -1);
    add_states(&l, before);
    *ret_count = l.count;
    return l.messages;
}
