/* Why a task is where it is: finds the reasons that reason.h lists. Pure: reads a task and facts,
 * writes a list. The texts are made in why/. */
#include "core/reason.h"

#include "core/ready.h"
#include "core/retry.h"
#include "core/summary.h"

const char *reason_word(enum reason_kind k)
{
    static const char *const words[] = {
#define X(name, word, when) word,
        REASONS(X)
#undef X
    };
    ASSERT(k < REASON_KINDS);
    return words[k];
}

const char *reason_when(enum reason_kind k)
{
    static const char *const texts[] = {
#define X(name, word, when) when,
        REASONS(X)
#undef X
    };
    ASSERT(k < REASON_KINDS);
    return texts[k];
}

/* The working set of one search. */
struct search {
    const struct workflow *w;
    const struct task *t;
    const struct facts *f;
    struct reasons *out;
};

static struct reason *add(const struct search *x, enum reason_kind kind, int step)
{
    ASSERT(x->out->count < REASONS_MAX);
    struct reason *r = &x->out->list[x->out->count++];

    *r = (struct reason){.kind = kind, .step = step, .direction = x->t->direction};
    if (step >= 0)
        r->direction = step_next_direction(x->w, x->t, (uint16_t)step);
    return r;
}

/* ---- start times ---- */

static int64_t last_end(const struct step *s)
{
    bool waited = s->begun_at != 0 && (s->state == STEP_COMPLETED || s->state == STEP_FAILED);
    int64_t at = waited ? max_i64(s->begun_at, s->wait_until) : 0;

    for (uint16_t i = 0; i < s->attempt_count; i++)
        at = max_i64(at, s->attempts[i].ended_at);
    return at;
}

static bool goes_back(const struct search *x, uint16_t i)
{
    return step_next_direction(x->w, x->t, i) == DIRECTION_UNDO;
}

static bool of_on_undo(const struct search *x, int step)
{
    return x->w->steps[step].on_undo;
}

/* The latest operator action on the step, or on one that it waited for. */
static int64_t acted_at(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    bool undo = goes_back(x, i);
    const uint16_t *others = undo ? ws->after : ws->before;
    uint16_t count = undo ? ws->after_count : ws->before_count;
    int64_t at = 0;

    for (size_t k = 0; k < x->f->act_count; k++) {
        const struct intervention *a = &x->f->acts[k];
        bool concerns = a->step < 0 || a->step == i || (ws->on_undo && !of_on_undo(x, a->step));
        for (uint16_t n = 0; n < count && !concerns; n++)
            concerns = a->step == others[n];
        if (concerns)
            at = max_i64(at, a->at);
    }
    return at;
}

/* Since when the step could run, as far as recorded. */
static int64_t ready_since(const struct search *x, uint16_t i, int64_t ready_at)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct task *t = x->t;
    bool undo = goes_back(x, i);
    const uint16_t *others = undo ? ws->after : ws->before;
    uint16_t count = undo ? ws->after_count : ws->before_count;
    int64_t at = max_i64(max_i64(t->submitted_at, undo ? 0 : t->not_before), ready_at);

    for (uint16_t n = 0; ws->on_undo && n < t->step_count; n++) /* all compensations */
        at = max_i64(at, of_on_undo(x, n) ? 0 : last_end(&t->steps[n]));
    for (uint16_t n = 0; n < count; n++)
        at = max_i64(at, last_end(&t->steps[others[n]]));
    at = max_i64(at, last_end(&t->steps[i]));
    return min_i64(max_i64(at, acted_at(x, i)), x->f->now);
}

static int64_t failed_since(const struct search *x, uint16_t i)
{
    int64_t at = last_end(&x->t->steps[i]);

    return at ? at : x->t->ended_at;
}

/* ---- consequences ---- */

static const struct call_spec *spec_of(const struct search *x, uint16_t i, enum direction d)
{
    return d == DIRECTION_UNDO ? &x->w->steps[i].undo : &x->w->steps[i].call;
}

/* Whether this pivot, which may have taken effect, will tell. */
static bool pivot_will_tell(const struct step *s)
{
    if (s->items)
        return s->items->tally.telling > 0;
    if (child_is_open(&s->child))
        return s->child.state != CHILD_STUCK && s->child.state != CHILD_STANDS;
    return step_is_open(s) || s->state == STEP_WAITING;
}

/* A pivot took effect, or may have, and nothing in the task will resolve it: undo is impossible. */
static bool pivot_rules_out_undo(const struct search *x)
{
    for (uint16_t i = 0; i < x->t->step_count; i++) {
        const struct step *s = &x->t->steps[i];
        if (x->w->steps[i].undo_kind == UNDO_PIVOT && !pivot_will_tell(s) && pivot_prevents_undo(s))
            return true;
    }
    return false;
}

static enum reason_next next_of_failure(const struct search *x, enum on_failure on)
{
    if (on == ON_FAILURE_CONTINUE)
        return NEXT_ON;
    return on == ON_FAILURE_HOLD || pivot_rules_out_undo(x) ? NEXT_ERROR : NEXT_UNDO;
}

/* A pivot in doubt that will still be resolved; -1: there is none. */
static int unresolved_pivot(const struct search *x)
{
    for (uint16_t i = 0; i < x->t->step_count; i++) {
        const struct step *s = &x->t->steps[i];
        if (x->w->steps[i].undo_kind == UNDO_PIVOT
            && (step_is_open(s) || (pivot_will_tell(s) && pivot_prevents_undo(s))))
            return i;
    }
    return -1;
}

/* For a task that starts nothing more going forward. */
static enum reason_next next_of_stop(const struct search *x)
{
    bool undo = x->t->stop == STOP_UNDO && unresolved_pivot(x) >= 0;

    return undo ? NEXT_UNDO : NEXT_ERROR;
}

/* For an attempt that reaches its complete-by. */
static enum reason_next next_of_silence(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct step *s = &x->t->steps[i];
    const struct failure f = {.count = s->failure_count + 1, .retryable = true};
    bool is_pivot = ws->undo_kind == UNDO_PIVOT;
    int64_t at = 0;
    bool again = retry_next(&spec_of(x, i, s->direction)->retry, &f, x->f->now, &at);

    if (s->direction == DIRECTION_FORWARD && goes_back(x, i))
        return NEXT_UNDO;
    if (x->t->stop != STOP_NONE && !(is_pivot && x->t->stop == STOP_UNDO))
        return next_of_stop(x);
    if (again)
        return NEXT_TRY;
    if (s->direction == DIRECTION_UNDO)
        return NEXT_ERROR;
    if (unit_is_slot(x->w, i) && ws->each.goes_on)
        return NEXT_ON;
    /* It is in doubt, and nothing will resolve it. */
    if (is_pivot && (ws->on_failure != ON_FAILURE_CONTINUE || x->t->stop == STOP_UNDO))
        return NEXT_ERROR;
    return next_of_failure(x, ws->on_failure);
}

static enum reason_next next_of_deadline(const struct search *x)
{
    if (x->t->direction == DIRECTION_UNDO)
        return NEXT_ERROR;
    if (any_pivot_completed(x->w, x->t))
        return NEXT_ON;
    if (x->t->stop != STOP_NONE)
        return next_of_stop(x);
    return x->w->on_failure == ON_FAILURE_HOLD || pivot_rules_out_undo(x) ? NEXT_ERROR : NEXT_UNDO;
}

static int64_t deadline_of(const struct task *t)
{
    if (t->deadline_passed)
        return 0;
    return t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
}

/* ---- the end ---- */

/* Whether the step waits for its child, forward or back. */
static bool waits_for_child(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct step *s = &x->t->steps[i];

    if (ws->kind != KIND_TASK)
        return false;
    if (x->t->direction == DIRECTION_FORWARD)
        return step_has_begun(s);
    return step_needs_undo(ws, s)
           && (child_is_open(&s->child)
               || (s->state == STEP_UNDOING && ws->undo_kind == UNDO_CHILD));
}

static enum reason_kind kind_of_failed(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct step *s = &x->t->steps[i];
    bool given_up = s->state == STEP_FAILED || s->state == STEP_SKIPPED
                    || (s->items && s->items->tally.telling == 0);

    if (child_has_stopped(&s->child)
        && (waits_for_child(x, i)
            || (ws->undo_kind == UNDO_PIVOT && s->child.state == CHILD_STUCK)))
        return REASON_CHILD_STOPPED;
    if (child_is_open(&s->child))
        return REASON_KINDS;
    if (step_undo_is_stuck(s))
        return REASON_UNDO_FAILED;
    if (x->t->direction == DIRECTION_UNDO)
        return step_stops_task(x->w, x->t, i) ? REASON_FAILED : REASON_KINDS;
    if (ws->undo_kind == UNDO_PIVOT && pivot_prevents_undo(s) && given_up)
        return REASON_PIVOT_UNCLEAR;
    return s->state == STEP_FAILED && !step_has_ended(ws, s) ? REASON_FAILED : REASON_KINDS;
}

static void find_failed(const struct search *x, uint16_t i)
{
    const struct step *s = &x->t->steps[i];
    enum reason_kind kind = kind_of_failed(x, i);

    if (kind == REASON_KINDS) /* it did not fail */
        return;
    struct reason *r = add(x, kind, i);
    r->agent = spec_of(x, i, s->direction)->agent;
    r->since = failed_since(x, i);
    if (kind == REASON_CHILD_STOPPED)
        r->count = s->child.number;
}

/* The first item at hand that stops its step, or the task, or is in doubt; else the first whose
 * child stopped; else the step. */
static uint16_t failed_item(const struct search *x, uint16_t step)
{
    const struct each_spec *each = &x->w->steps[step].each;
    bool back = x->t->direction == DIRECTION_UNDO;
    bool stops = step_stops_task(x->w, x->t, step); /* else it may be a pivot in doubt */
    uint16_t found = step;
    uint16_t child = step;

    if (x->w->steps[step].kind != KIND_EACH)
        return step;
    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++) {
        const struct step *s = &x->t->steps[u];
        bool failed =
            back ? s->slot == SLOT_BACK && step_undo_is_stuck(s)
                 : s->slot == SLOT_TAKEN && s->state == STEP_FAILED && (stops || step_in_doubt(s));
        if (failed && (found == step || s->item < x->t->steps[found].item))
            found = u;
        bool held = (s->slot == SLOT_TAKEN || s->slot == SLOT_BACK)
                    && kind_of_failed(x, u) == REASON_CHILD_STOPPED;
        if (held && (child == step || s->item < x->t->steps[child].item))
            child = u;
    }
    return found == step ? child : found;
}

static void find_error(const struct search *x)
{
    size_t before = x->out->count;

    for (uint16_t i = 0; i < x->t->step_count; i++)
        find_failed(x, failed_item(x, i));
    if (slice_is(x->t->error.code, "deadline"))
        add(x, REASON_DEADLINE, -1)->since = x->t->ended_at;
    if (x->out->count == before)
        add(x, REASON_STOPPED, -1)->since = x->t->ended_at;
}

/* ---- reasons of the whole task ---- */

static void find_owner(const struct search *x)
{
    const struct facts *f = x->f;
    bool gone = f->owner_lease_until != 0 && f->owner_lease_until <= f->now;

    if (f->owner == OWNER_BEFORE_US)
        (void)add(x, REASON_TAKING_OVER, -1);
    if (f->owner != OWNER_OTHER)
        return;
    struct reason *r = add(x, gone ? REASON_OWNER_GONE : REASON_ELSEWHERE, -1);
    r->since = gone ? f->owner_lease_until : 0;
}

static void find_deadline(const struct search *x)
{
    const struct task *t = x->t;
    int64_t said = deadline_of(t);
    int64_t at = task_overdue_at(x->w, t, &x->f->lost);

    if (t->deadline_passed) {
        int64_t was = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
        if (was != 0 && t->stop == STOP_NONE)
            add(x, REASON_LATE, -1)->since = was;
        return;
    }
    if (at == 0)
        return;
    struct reason *r = add(x,
                           at <= x->f->now     ? REASON_DEADLINE_DUE
                           : said <= x->f->now ? REASON_GRACE
                                               : REASON_COMPLETE_BY,
                           -1);
    r->next = next_of_deadline(x);
    r->since = r->kind == REASON_COMPLETE_BY ? 0 : said;
    r->until = r->kind == REASON_DEADLINE_DUE ? 0 : at;
}

static uint32_t open_count(const struct task *t)
{
    uint32_t n = 0;

    for (uint16_t i = 0; i < t->step_count; i++)
        n += t->steps[i].items ? t->steps[i].items->tally.open : step_is_open(&t->steps[i]);
    return n;
}

/* The step whose failure stops the task; -1: none. */
static int failed_step(const struct search *x)
{
    for (uint16_t i = 0; i < x->t->step_count; i++) {
        const struct step *s = &x->t->steps[i];
        if (s->state == STEP_FAILED && !step_has_ended(&x->w->steps[i], s)
            && slice_eq(s->error.code, x->t->error.code))
            return i;
    }
    return -1;
}

static void find_stop(const struct search *x)
{
    int pivot = x->t->stop == STOP_UNDO ? unresolved_pivot(x) : -1;
    int failed = failed_step(x);

    if (x->t->stop == STOP_NONE)
        return;
    struct reason *r =
        add(x, pivot < 0 ? REASON_HOLDING : REASON_PIVOT_HOLDS, pivot < 0 ? failed : pivot);
    r->count = open_count(x->t);
    if (r->step >= 0)
        r->agent = spec_of(x, (uint16_t)r->step, DIRECTION_FORWARD)->agent;
    r->next = pivot < 0 ? NEXT_ERROR : NEXT_UNDO;
    if (failed >= 0)
        r->since = failed_since(x, (uint16_t)failed);
    for (size_t i = 0; i < x->f->act_count && failed < 0; i++)
        r->since = max_i64(r->since, x->f->acts[i].at);
}

static void find_task(const struct search *x)
{
    const struct facts *f = x->f;

    if (x->t->paused_at != 0)
        add(x, REASON_PAUSED, -1)->since = x->t->paused_at;
    if (f->store_failed)
        add(x, REASON_STORE, -1)->since = f->store_failed_since;
    if (f->draining)
        (void)add(x, REASON_DRAINING, -1);
    find_owner(x);
    find_stop(x);
    if (x->t->paused_at == 0)
        find_deadline(x);
}

/* ---- reasons of one step ---- */

/* An attempt that has to send heartbeats may be given up earlier. */
static void limit_by_silence(const struct search *x, uint16_t i, const struct attempt *a,
                             struct reason *r)
{
    struct attempt_view v = {0};

    if (x->f->attempt)
        x->f->attempt(x->f->arg, i, a, &v);
    if (v.silent_by == 0 || v.silent_by >= r->until)
        return;
    r->complete_by = r->until;
    r->until = max_i64(v.silent_by, x->f->now + 1); /* a heartbeat may be on its way */
}

static void find_open(const struct search *x, uint16_t i)
{
    const struct step *s = &x->t->steps[i];
    const struct attempt *a = step_open_attempt(s);
    int64_t now = x->f->now;
    int64_t at = step_overdue_at(s, &x->f->lost);
    bool forward = a->direction == DIRECTION_FORWARD;
    enum reason_kind kind = !forward          ? REASON_UNDOING
                            : goes_back(x, i) ? REASON_STOPPING
                                              : REASON_RUNNING;

    if (a->complete_by <= now)
        kind = at <= now ? REASON_OVERDUE : REASON_GRACE;
    struct reason *r = add(x, kind, i);
    r->direction = a->direction;
    r->agent = spec_of(x, i, a->direction)->agent;
    r->since = a->complete_by <= now ? a->complete_by : a->started_at;
    r->until = kind == REASON_OVERDUE ? 0 : at;
    r->next = next_of_silence(x, i);
    if (kind != REASON_OVERDUE && kind != REASON_GRACE)
        limit_by_silence(x, i, a, r);
}

static void find_sleeping(const struct search *x, uint16_t i, int64_t at)
{
    const struct task *t = x->t;
    const struct step *s = &t->steps[i];
    enum direction goes = step_next_direction(x->w, t, i);
    bool undo = goes == DIRECTION_UNDO;
    bool waits = s->direction == goes && s->wait_until > x->f->now;
    enum reason_kind kind = REASON_NOT_BEFORE;

    if (undo && (!waits || s->wait_until < at))
        kind = REASON_IN_DOUBT;
    else if (waits && s->wait_until == at && step_is_between_rounds(s))
        kind = REASON_ROUND;
    else if (waits && s->wait_until == at)
        kind = s->failure_count < spec_of(x, i, goes)->retry.attempts ? REASON_BETWEEN
                                                                      : REASON_DEFERRED;
    struct reason *r = add(x, kind, i);
    r->agent = spec_of(x, i, goes)->agent;
    r->until = at;
    r->since = kind == REASON_NOT_BEFORE ? t->submitted_at : last_end(s);
    int64_t cap = deadline_of(t);
    r->capped = cap != 0 && cap <= at;
    r->next = r->capped ? next_of_deadline(x) : NEXT_TRY;
    r->count = kind == REASON_ROUND ? s->round : 0;
}

/* Whether the last answer satisfies the step is about to be found. */
static void find_answered(const struct search *x, uint16_t i)
{
    const struct step *s = &x->t->steps[i];
    struct reason *r = add(x, REASON_ROUND, i);

    r->agent = spec_of(x, i, DIRECTION_FORWARD)->agent;
    r->since = last_end(s);
    r->next = NEXT_ON;
    r->count = s->round;
}

/* A wait that has begun, or that is about to. */
static void find_wait(const struct search *x, uint16_t i, int64_t at)
{
    const struct step *s = &x->t->steps[i];
    int64_t cap = deadline_of(x->t);
    struct reason *r = add(x, REASON_WAIT, i);

    r->since = s->begun_at ? s->begun_at : ready_since(x, i, 0);
    r->until = at > x->f->now ? at : 0;
    r->capped = r->until != 0 && cap != 0 && cap <= at;
    r->next = r->capped ? next_of_deadline(x) : NEXT_ON;
}

/* A step that waits for a signal, or that is about to. */
static void find_signal(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct step *s = &x->t->steps[i];
    int64_t at = signal_overdue_at(x->t, i, &x->f->lost);
    int64_t cap = deadline_of(x->t);
    struct reason *r = add(x, REASON_SIGNAL, i);

    r->since = s->begun_at ? s->begun_at : ready_since(x, i, 0);
    r->until = at > x->f->now ? at : 0;
    r->capped = r->until != 0 && cap != 0 && cap <= at;
    r->next = r->capped                  ? next_of_deadline(x)
              : at == 0                  ? NEXT_NONE
              : ws->signal.otherwise.ptr ? NEXT_ON
                                         : next_of_failure(x, ws->on_failure);
}

/* A step that waits for people, or that is about to ask them. */
static void find_approval(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct step *s = &x->t->steps[i];
    int64_t at = signal_overdue_at(x->t, i, &x->f->lost);
    int64_t cap = deadline_of(x->t);
    struct tally tally = step_votes(x->t, i);
    bool voted = step_is_voted(x->w, x->t, i);
    struct reason *r = add(x, REASON_APPROVAL, i);

    r->since = s->begun_at ? s->begun_at : ready_since(x, i, 0);
    r->until = !voted && at > x->f->now ? at : 0;
    r->capped = r->until != 0 && cap != 0 && cap <= at;
    r->count = tally.agreed;
    if (r->capped)
        r->next = next_of_deadline(x);
    else if (voted ? !tally.rejection : at != 0 && ws->approve.otherwise.ptr)
        r->next = NEXT_ON;
    else if (voted || at != 0)
        r->next = next_of_failure(x, ws->on_failure);
}

/* A step that waits for its child, or that is about to start it. */
static void find_child(const struct search *x, uint16_t i)
{
    const struct step *s = &x->t->steps[i];
    int64_t at = signal_overdue_at(x->t, i, &x->f->lost);
    struct reason *r =
        add(x, child_has_stopped(&s->child) ? REASON_CHILD_STOPPED : REASON_CHILD, i);

    if (r->direction == DIRECTION_FORWARD && r->kind == REASON_CHILD)
        r->since = s->begun_at ? s->begun_at : ready_since(x, i, 0);
    r->until = at > x->f->now ? at : 0;
    r->count = s->child.number;
}

/* What a ready step waits for, as far as its agent is known. */
static enum reason_kind kind_of_ready(const struct facts *f, const struct agent_view *v)
{
    if (!v->connected)
        return v->nodes.len > 0 ? REASON_AGENT_AWAY : REASON_NO_AGENT;
    if (v->held == HELD_BY_BREAKER)
        return REASON_BREAKER;
    if (v->held == HELD_BY_TRIALS)
        return REASON_TRIALS;
    if (v->held == HELD_BY_LIMIT)
        return REASON_LIMIT;
    if (f->full && !f->live)
        return REASON_FULL;
    if (v->held == HELD_BY_HEALTH)
        return REASON_HEALTH;
    if (v->free)
        return REASON_STARTING;
    return v->ahead > 0 ? REASON_QUEUED : REASON_NO_PLACE;
}

static void find_ready(const struct search *x, uint16_t i, int64_t at)
{
    const struct facts *f = x->f;
    struct slice agent = spec_of(x, i, step_next_direction(x->w, x->t, i))->agent;
    struct agent_view v = {0};

    /* Queues of other nodes are unknown, and queues mean nothing where nothing starts. */
    if (f->owner == OWNER_BEFORE_US || f->owner == OWNER_OTHER)
        return;
    f->agent(f->arg, i, agent, &v);
    enum reason_kind kind = kind_of_ready(f, &v);
    if (kind == REASON_STARTING && (f->draining || f->store_failed))
        return;
    struct reason *r = add(x, kind, i);
    r->agent = agent;
    r->since = ready_since(x, i, at);
    if (kind == REASON_BREAKER)
        r->until = v.held_until;
}

/* A step that is neither running nor ready, but will be. */
static void find_later(const struct search *x, uint16_t i)
{
    const struct workflow_step *ws = &x->w->steps[i];
    const struct step *s = &x->t->steps[i];
    bool undo = goes_back(x, i);

    if (x->t->stop != STOP_NONE || (ws->on_undo && x->t->direction == DIRECTION_FORWARD))
        return;
    if (x->t->direction == DIRECTION_UNDO && step_stops_task(x->w, x->t, i)) {
        find_failed(x, i);
        return;
    }
    if (undo ? !step_needs_undo(ws, s) || !x->out->order.blocked[i] : s->state != STEP_WAITING)
        return;
    if (!undo && reason_waits_for(x->w, x->t, x->out, i, NULL, 0) == 0)
        return; /* its time has passed: the task's reason says so */
    add(x, undo ? REASON_UNDO_AFTER : REASON_AFTER, i)->agent =
        spec_of(x, i, step_next_direction(x->w, x->t, i))->agent;
}

/* ---- reasons of items ---- */

static bool says_more(enum reason_kind k)
{
    return k < REASON_STOPPING;
}

/* The most important one of those found since stays. */
static void keep_first(const struct search *x, size_t before)
{
    struct reason *list = x->out->list;
    size_t best = before;

    if (x->out->count == before)
        return;
    for (size_t i = before + 1; i < x->out->count; i++)
        if (list[i].kind < list[best].kind)
            best = i;
    list[before] = list[best];
    x->out->count = before + says_more(list[before].kind);
}

/* As for a step. */
static void find_item(const struct search *x, uint16_t u, const struct ready *ready)
{
    const struct step *s = &x->t->steps[u];

    if (step_is_open(s))
        find_open(x, u);
    else if (s->slot == SLOT_BACK && step_undo_is_stuck(s))
        find_failed(x, u);
    else if (ready && step_is_answered(s))
        find_answered(x, u);
    else if (ready && ready->at > x->f->now)
        find_sleeping(x, u, ready->at);
    else if (ready)
        find_ready(x, u, ready->at);
}

/* `ready`: of slots, in their order. */
static void find_items(const struct search *x, uint16_t i, const struct ready *ready, size_t count)
{
    const struct each_spec *each = &x->w->steps[i].each;
    const struct step *s = &x->t->steps[i];
    const struct items *in = s->items;
    struct reason *r = add(x, REASON_ITEMS, i);
    size_t before = x->out->count;
    size_t next = 0;

    r->agent = spec_of(x, i, r->direction)->agent;
    if (r->direction == DIRECTION_FORWARD)
        r->since = s->begun_at ? s->begun_at : ready_since(x, i, 0);
    r->count = in->completed + in->failed + in->skipped + in->undone;
    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++) {
        while (next < count && ready[next].step < u)
            next++;
        find_item(x, u, next < count && ready[next].step == u ? &ready[next] : NULL);
        keep_first(x, before);
    }
}

/* Whether something of its items runs, or is to be started now or later. */
static bool works_on_items(const struct search *x, uint16_t i, const struct ready *ready)
{
    const struct step *s = &x->t->steps[i];

    if (!s->items || step_is_open(s) || x->t->paused_at != 0)
        return s->items && step_is_open(s);
    if (goes_back(x, i))
        return step_needs_undo(&x->w->steps[i], s) && !x->out->order.blocked[i]
               && x->t->stop == STOP_NONE;
    return (step_has_begun(s) && x->t->stop == STOP_NONE) || (ready && ready->at <= x->f->now);
}

/* ---- all reasons ---- */

static bool waits_to_begin(const struct search *x)
{
    return x->t->direction == DIRECTION_FORWARD && x->t->not_before > x->f->now
           && x->t->started_at == 0 && x->t->paused_at == 0;
}

/* Nothing of it begins before it has its lock. */
static void find_lock(const struct search *x)
{
    struct reason *r = add(x, REASON_LOCK, -1);

    r->since = x->f->lock_held_since;
    r->next = NEXT_ON;
}

static void find_steps(const struct search *x)
{
    const struct task *t = x->t;
    size_t count = task_ready(x->w, t, x->f->now, x->out->ready);
    size_t next = 0;
    size_t slots = 0; /* those of items come last */

    if (t->direction == DIRECTION_UNDO)
        undo_order_make(x->w, t, &x->out->order);
    while (slots < count && !unit_is_slot(x->w, x->out->ready[slots].step))
        slots++;
    /* Both lists are in the order of the graph. */
    for (uint16_t k = 0; k < x->w->step_count; k++) {
        uint16_t i = x->w->order[k];
        const struct ready *ready =
            next < count && x->out->ready[next].step == i ? &x->out->ready[next++] : NULL;
        int64_t at = ready ? ready->at : 0;
        if (ready && t->direction == DIRECTION_FORWARD)
            at = max_i64(at, t->not_before);
        if (works_on_items(x, i, ready))
            find_items(x, i, x->out->ready + slots, count - slots);
        else if (step_is_open(&t->steps[i]))
            find_open(x, i);
        else if (t->paused_at == 0
                 && (waits_for_child(x, i)
                     || (ready && at <= x->f->now && !step_calls(x->w, t, i)
                         && x->w->steps[i].kind == KIND_TASK)))
            find_child(x, i);
        else if (ready && x->w->steps[i].kind == KIND_WAIT
                 && (t->steps[i].begun_at != 0 || at <= x->f->now))
            find_wait(x, i, at);
        else if (ready && step_is_answered(&t->steps[i]))
            find_answered(x, i);
        else if (x->w->steps[i].kind == KIND_SIGNAL
                 && (step_awaits_signal(x->w, t, i, x->f->now) || (ready && at <= x->f->now)))
            find_signal(x, i);
        else if (x->w->steps[i].kind == KIND_APPROVE
                 && (step_awaits_votes(x->w, t, i, x->f->now) || (ready && at <= x->f->now)))
            find_approval(x, i);
        else if (ready && at > x->f->now)
            find_sleeping(x, i, at);
        else if (ready)
            find_ready(x, i, at);
        else if (t->paused_at == 0)
            find_later(x, i);
    }
}

/* Stable: reasons of one kind stay in the order of the graph. */
static void sort(struct reasons *r)
{
    for (size_t i = 1; i < r->count; i++) {
        struct reason one = r->list[i];
        size_t k = i;
        for (; k > 0 && r->list[k - 1].kind > one.kind; k--)
            r->list[k] = r->list[k - 1];
        r->list[k] = one;
    }
}

void reasons_find(const struct workflow *w, const struct task *t, const struct facts *f,
                  struct reasons *ret)
{
    const struct search x = {w, t, f, ret};

    ret->count = 0;
    if (task_state_is_end(t->state)) {
        struct reason *r =
            add(&x, t->state == TASK_PROCESSED ? REASON_PROCESSED : REASON_COMPENSATED, -1);
        r->since = t->ended_at;
    } else if (t->state == TASK_ERROR) {
        if (t->closed_at != 0)
            add(&x, REASON_CLOSED, -1)->since = t->closed_at;
        find_error(&x);
    } else if (waits_to_begin(&x)) {
        struct reason *r = add(&x, REASON_NOT_BEFORE, -1);
        r->since = t->submitted_at;
        r->until = t->not_before;
        find_task(&x);
    } else {
        find_task(&x);
        if (!task_lacks_lock(t))
            find_steps(&x);
        else if (t->paused_at == 0)
            find_lock(&x);
    }
    sort(ret);
}

void reasons_limit(struct reasons *r, size_t max)
{
    ASSERT(max > 0);
    if (r->count <= max)
        return;
    r->list[max - 1] =
        (struct reason){.kind = REASON_MORE, .step = -1, .count = (uint32_t)(r->count - max + 1)};
    r->count = max;
}
