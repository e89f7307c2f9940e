/* Reads a task's row for the checkers, from columns and document as plain JSON (seen.h). Shares
 * no code with store/codec, which wrote the document. A new field of a task that the checkers
 * need is read here. */

#include "sim/seen.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/world.h"
#include "json/json.h"

static int64_t number_of(const struct json *j, const char *key)
{
    return json_get_int(j, key, 0);
}

static void must(bool ok, const struct task_row *row, const char *what)
{
    if (!ok)
        broken("rows can be read", "%s of %.*s: %.*s", what, SLICE_ARG(row->id),
               SLICE_ARG(row->doc));
}

static enum direction direction_of(const struct task_row *row, const struct json *j)
{
    struct slice word = json_get_text(j, "direction");
    enum direction d = DIRECTION_FORWARD;

    must(!word.ptr || direction_parse(word, &d), row, "direction");
    return d;
}

static enum effect effect_of(const struct task_row *row, const struct json *j)
{
    struct slice word = json_get_text(j, "effect");
    enum effect e = EFFECT_NONE;

    must(!word.ptr || effect_parse(word, &e), row, "effect");
    return e;
}

static void read_attempt(const struct task_row *row, const struct json *j, struct seen_attempt *a)
{
    *a = (struct seen_attempt){
        .number = (uint32_t)number_of(j, "attempt"),
        .resent = (uint32_t)number_of(j, "resent"),
        .direction = direction_of(row, j),
        .effect = effect_of(row, j),
        .started_at = number_of(j, "started_at"),
        .ended_at = number_of(j, "ended_at"),
        .complete_by = number_of(j, "complete_by"),
        .generation = (uint32_t)json_get_int(j, "key_generation", 1),
        .round = (uint32_t)number_of(j, "round"),
        .spared = json_get_bool(j, "spared", false),
        .elsewhere = json_get_bool(j, "elsewhere", false),
        .silent = slice_is(json_get_text(json_get(j, "error"), "code"), "heartbeat"),
    };
    must(outcome_parse(json_get_text(j, "outcome"), &a->outcome), row, "outcome");
    (void)snprintf(a->instance, sizeof a->instance, "%.*s",
                   SLICE_ARG(json_get_text(j, "instance")));
}

uint64_t seen_trace(struct slice traceparent)
{
    char digits[17] = "";

    if (traceparent.len > 3)
        (void)snprintf(digits, sizeof digits, "%.*s",
                       SLICE_ARG(slice_cut((struct slice){traceparent.ptr + 3, traceparent.len - 3},
                                           16)));
    return strtoull(digits, NULL, 16);
}

uint64_t seen_hash(struct slice json)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < json.len; i++)
        h = (h ^ (unsigned char)json.ptr[i]) * UINT64_C(0x100000001b3);
    return json.ptr ? h | 1 : 0;
}

/* A step in a payload; NULL: the row came without it. */
static const struct json *grouped_step(const struct task_row *row, struct arena *a, int64_t number,
                                       uint32_t i)
{
    struct json *group = NULL;
    char key[8];

    (void)snprintf(key, sizeof key, "%u", i); /* always fits */
    for (size_t k = 0; k < row->payload_count; k++)
        if (row->payloads[k].number == number) {
            must(json_parse(a, row->payloads[k].json, &group, NULL) == ERR_OK, row, "a group");
            must(json_get(group, key) != NULL, row, "a step in its group");
        }
    return json_get(group, key);
}

/* The step, wherever it is. */
static const struct json *step_json(const struct task_row *row, struct arena *a,
                                    const struct json *steps, uint32_t i)
{
    const struct json *j = steps->child;
    int64_t group = 0;

    for (uint32_t k = 0; k < i; k++)
        j = j->next;
    return json_int(j, &group) ? grouped_step(row, a, group, i) : j;
}

static void read_decision(const struct task_row *row, const struct json *output,
                          struct seen_decision *d)
{
    const struct json *votes = json_get(output, "votes");

    if (!output || output->type != JSON_OBJECT)
        return;
    d->approved = json_get_bool(output, "approved", false);
    d->overridden = json_get_bool(output, "overridden", false);
    d->has_id = json_get(output, "id") != NULL;
    for (const struct json *v = votes ? votes->child : NULL; v; v = v->next) {
        struct slice by = json_get_text(v, "by");
        must(by.len == 1 && d->count < COUNT_OF(d->by), row, "who decided");
        d->by[d->count++] = by.ptr[0];
    }
}

static char input_by(const struct json *input)
{
    struct slice text = json_get_text(input, "text");

    return text.len > 0 ? text.ptr[0] : 0;
}

static enum child_wish wish_of(const struct task_row *row, struct slice word)
{
    enum child_wish wish = WISH_NONE;

    must(!word.ptr || child_wish_parse(word, &wish), row, "a wish");
    return wish;
}

static struct seen_child child_of(const struct task_row *row, const struct json *j)
{
    struct slice word = json_get_text(j, "state");
    struct seen_child c = {.number = (uint32_t)number_of(j, "number"),
                           .wish = wish_of(row, json_get_text(j, "wish"))};

    must(!word.ptr || child_state_parse(word, &c.state), row, "state of a child");
    return c;
}

static void read_step(const struct task_row *row, struct arena *a, const struct json *j, uint32_t i,
                      struct seen_step *s)
{
    int64_t group = 0;
    bool grouped = json_int(j, &group);

    j = grouped ? grouped_step(row, a, group, i) : j;
    const struct json *attempts = json_get(j, "attempts");
    const struct json *dropped = json_get(j, "dropped");
    const struct json *resume = json_get(j, "resume");
    struct slice of = json_get_text(resume, "of");

    *s = (struct seen_step){
        .grouped = grouped,
        .direction = direction_of(row, j),
        .failure_count = (uint32_t)number_of(j, "failure_count"),
        .spared_count = (uint32_t)number_of(j, "spared_count"),
        .spared_at = number_of(j, "spared_at"),
        .attempt = (uint32_t)number_of(j, "attempt"),
        .begun_at = number_of(j, "begun_at"),
        .wait_until = number_of(j, "wait_until"),
        .round = (uint32_t)number_of(j, "round"),
        .round_at = number_of(j, "round_at"),
        .repeat_until = number_of(j, "repeat_until"),
        .not_yet = slice_is(json_get_text(json_get(j, "error"), "code"), "not_yet"),
        .complete_by = number_of(j, "complete_by"),
        .supplied = json_get_bool(j, "supplied", false),
        .resolved = (uint32_t)number_of(j, "resolved"),
        .generation = (uint32_t)json_get_int(j, "key_generation", 1),
        .input = seen_hash(json_get_raw(j, "input")),
        .input_by = input_by(json_get(j, "input")),
        .has_output = json_get(j, "output") || json_get(j, "output_payload"),
        .dropped_count = (uint32_t)number_of(dropped, "count"),
        .dropped_effect = effect_of(row, dropped),
        .dropped_until = number_of(dropped, "until"),
        .dropped_attempt = (uint32_t)number_of(dropped, "attempt"),
        .resume = (uint32_t)number_of(resume, "attempt"),
        .child = child_of(row, json_get(j, "child")),
    };
    if (!j)
        return;
    read_decision(row, json_get(j, "output"), &s->decision);
    must(!resume || (s->resume > 0 && direction_parse(of, &s->resume_of)), row, "resume");
    must(step_state_parse(json_get_text(j, "state"), &s->state), row, "state of a step");
    for (const struct json *at = attempts ? attempts->child : NULL; at; at = at->next) {
        must(s->attempt_count < COUNT_OF(s->attempts), row, "number of attempts");
        read_attempt(row, at, &s->attempts[s->attempt_count++]);
    }
}

static bool item_needs_undo(const struct flow_step *f, const struct seen_step *item)
{
    bool took_effect = seen_happened(item) || seen_in_doubt(item);

    if (item->state == STEP_UNDONE)
        return false;
    if (f->is_child && f->undo != UNDO_CALL)
        took_effect = f->undo == UNDO_CHILD && item->child.state == CHILD_PROCESSED;
    return item->direction == DIRECTION_UNDO || seen_child_is_open(item) || took_effect;
}

static void add_items(const struct task_row *row, struct arena *a, const struct json *j,
                      const struct flow_step *f, struct seen_step *s)
{
    const struct json *at_work = json_get(j, "at_work");
    struct seen_step item;

    s->effects = (uint32_t)number_of(j, "effects");
    s->doubts = (uint32_t)number_of(j, "doubts");
    s->to_undo = (uint32_t)number_of(j, "to_undo");
    s->has_output |= json_get_bool(j, "output", false);
    for (const struct json *at = at_work ? at_work->child : NULL; at; at = at->next) {
        read_step(row, a, at, 0, &item);
        s->effects += seen_happened(&item);
        s->doubts += seen_in_doubt(&item);
        s->open += seen_open(&item) != NULL;
        s->to_undo += item_needs_undo(f, &item);
        s->children += seen_child_is_open(&item);
        s->children_stopped += seen_child_stopped(&item);
        s->children_standing += item.child.state == CHILD_STANDS;
    }
}

static struct seen_cause cause_of(const struct json *doc)
{
    const struct json *j = json_get(doc, "cause");
    struct slice step = json_get_text(j, "step");

    return (struct seen_cause){.step = step.ptr ? (int)flow_step_number(step) : -1,
                               .code = seen_hash(json_get_text(j, "code")),
                               .message = seen_hash(json_get_text(j, "message"))};
}

static void read_signal(const struct task_row *row, const struct json *j, struct seen_signal *s)
{
    struct slice key = json_get_text(j, "key");
    struct slice name = json_get_text(j, "name");
    struct slice step = json_get_text(j, "step");

    must(key.len > 1 && name.len == 1, row, "a signal");
    *s = (struct seen_signal){.key = (uint32_t)strtoul(key.ptr + 1, NULL, 10),
                              .name = name.ptr[0],
                              .ok = json_get_bool(json_get(j, "data"), "ok", false),
                              .step = step.ptr ? (int)flow_step_number(step) : -1,
                              .at = number_of(j, "at")};
    must(signal_state_parse(json_get_text(j, "state"), &s->state), row, "state of a signal");
}

static void read_vote(const struct task_row *row, const struct json *j, struct seen_vote *v)
{
    struct slice person = json_get_text(j, "person");
    struct slice step = json_get_text(j, "step");

    must(person.len == 1 && step.len > 1, row, "a vote");
    *v = (struct seen_vote){.step = (int)flow_step_number(step),
                            .person = person.ptr[0],
                            .agrees = json_get_bool(j, "agrees", false),
                            .at = number_of(j, "at")};
}

static void read_lists(const struct task_row *row, const struct json *doc, struct seen *ret)
{
    const struct json *signals = json_get(doc, "signals");
    const struct json *votes = json_get(doc, "votes");

    for (const struct json *s = signals ? signals->child : NULL; s; s = s->next) {
        must(ret->signal_count < SEEN_SIGNALS_MAX, row, "number of signals");
        read_signal(row, s, &ret->signals[ret->signal_count++]);
    }
    for (const struct json *v = votes ? votes->child : NULL; v; v = v->next) {
        must(ret->vote_count < SEEN_VOTES_MAX, row, "number of votes");
        read_vote(row, v, &ret->votes[ret->vote_count++]);
    }
}

void seen_read(const struct task_row *row, const struct flow *f, struct seen *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *doc = NULL;
    struct slice stop;

    must(json_parse(&a, row->doc, &doc, NULL) == ERR_OK, row, "document");
    *ret = (struct seen){
        .revision = row->revision,
        .state = row->state,
        .direction = row->direction,
        .locked = row->locked_by.ptr != NULL,
        .complete_by = row->complete_by,
        .paused_at = row->paused_at,
        .closed_at = row->closed_at,
        .lock_since = row->lock_since,
        .wake_at = row->wake_at,
        .not_before = row->not_before,
        .submitted_at = row->submitted_at,
        .ended_at = row->ended_at,
        .failure_count = row->failure_count,
        .requested = row->request.ptr != NULL,
        .undo_complete_by = number_of(doc, "undo_complete_by"),
        .deadline_passed = json_get_bool(doc, "deadline_passed", false),
        .has_error = json_get(doc, "error") != NULL,
        .is_of_child = slice_is(json_get_text(json_get(doc, "error"), "code"), "child"),
        .asked = wish_of(row, json_get_text(json_get(doc, "parent"), "asked")),
        .version = row->version,
        .of_family = (int64_t)seen_hash(json_get_raw(doc, "family")),
        .cause = cause_of(doc),
        .input_n = json_get_int(json_get(doc, "input"), "n", -1),
        .input = seen_hash(json_get_raw(doc, "input")),
        .input_by = input_by(json_get(doc, "input")),
    };
    (void)snprintf(ret->owner, sizeof ret->owner, "%.*s", SLICE_ARG(row->locked_by));
    (void)snprintf(ret->waiting_for, sizeof ret->waiting_for, "%.*s", SLICE_ARG(row->waiting_for));
    stop = json_get_text(doc, "stop");
    must(!stop.ptr || stop_parse(stop, &ret->stop), row, "stop");
    struct slice content = json_get_text(doc, "content");
    ret->content = content.ptr ? strtoull(content.ptr, NULL, 16) : 0;
    struct slice sha256 = json_get_text(doc, "sha256");
    ret->sha256 = sha256.ptr ? strtoull(sha256.ptr, NULL, 16) : 0; /* as in subject_content */
    ret->trace = seen_trace(json_get_text(doc, "traceparent"));
    const struct json *steps = json_get(doc, "steps");
    must(steps && steps->count == f->step_count, row, "steps");
    read_lists(row, doc, ret);
    for (const struct json *s = steps->child; s; s = s->next, ret->step_count++)
        read_step(row, &a, s, ret->step_count, &ret->steps[ret->step_count]);
    for (uint32_t i = 0; i < ret->step_count; i++)
        if (f->steps[i].is_each)
            add_items(row, &a, json_get(step_json(row, &a, steps, i), "items"), &f->steps[i],
                      &ret->steps[i]);
}

void seen_read_items(const struct task_row *row, uint32_t step, struct seen_items *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *doc = NULL;

    must(json_parse(&a, row->doc, &doc, NULL) == ERR_OK, row, "document");
    const struct json *j = step_json(row, &a, json_get(doc, "steps"), step);
    const struct json *items = json_get(j, "items");
    const struct json *at_work = json_get(items, "at_work");
    memset(ret, 0, sizeof *ret);
    ret->list = (uint32_t)json_get_int(j, "key_generation", 1) - 1;
    ret->has_begun = number_of(j, "begun_at") != 0;
    ret->count = (uint32_t)number_of(items, "count");
    ret->begun = (uint32_t)number_of(items, "begun");
    ret->completed = (uint32_t)number_of(items, "completed");
    ret->failed = (uint32_t)number_of(items, "failed");
    ret->skipped = (uint32_t)number_of(items, "skipped");
    ret->undone = (uint32_t)number_of(items, "undone");
    ret->effects = (uint32_t)number_of(items, "effects");
    ret->doubts = (uint32_t)number_of(items, "doubts");
    ret->to_undo = (uint32_t)number_of(items, "to_undo");
    ret->contradicted = (uint32_t)number_of(items, "contradicted");
    ret->undo_below = (uint32_t)number_of(items, "undo_below");
    ret->bytes = json_get_raw(j, "items").len - json_get_raw(items, "at_work").len;
    must(step_state_parse(json_get_text(j, "state"), &ret->state), row, "state of a step");
    for (const struct json *at = at_work ? at_work->child : NULL; at; at = at->next) {
        must(ret->work_count < ITEMS_SEEN_MAX, row, "number of items at work");
        struct seen_item *w = &ret->work[ret->work_count++];
        w->item = (uint32_t)number_of(at, "item");
        w->back = slice_is(json_get_text(at, "slot"), "back");
        read_step(row, &a, at, 0, &w->step);
    }
}

void seen_read_item(const struct task_row *row, struct slice doc, struct seen_step *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    must(json_parse(&a, doc, &j, NULL) == ERR_OK, row, "document of an item");
    read_step(row, &a, j, 0, ret);
}

const struct seen_attempt *seen_open(const struct seen_step *s)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].outcome == OUTCOME_OPEN)
            return &s->attempts[i];
    return NULL;
}

bool seen_runs(const struct seen_step *s)
{
    return seen_open(s) || s->open > 0;
}

const struct seen_attempt *seen_find(const struct seen_step *s, enum direction d, uint32_t number)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == d && s->attempts[i].number == number)
            return &s->attempts[i];
    return NULL;
}

static bool counts(const struct seen_attempt *a, enum effect e)
{
    return a->direction == DIRECTION_FORWARD && a->outcome != OUTCOME_OPEN && a->effect == e;
}

bool seen_happened(const struct seen_step *s)
{
    if (s->supplied || s->child.state == CHILD_PROCESSED || s->effects > 0)
        return true;
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (counts(&s->attempts[i], EFFECT_HAPPENED))
            return true;
    return s->dropped_effect == EFFECT_HAPPENED;
}

/* Some attempt may have had an effect, and no later one is known to have had one. */
/* Attempts that are no longer kept individually came after the first five. */
bool seen_in_doubt(const struct seen_step *s)
{
    enum { KEPT_FIRST = 5 };
    bool merged = s->dropped_effect == EFFECT_UNKNOWN && s->dropped_attempt > s->resolved;
    bool doubt = false;

    if (s->supplied)
        return false;
    if (s->doubts > 0)
        return true;
    for (uint32_t i = 0; i < s->attempt_count; i++) {
        doubt |=
            (merged && i == KEPT_FIRST)
            || (counts(&s->attempts[i], EFFECT_UNKNOWN) && s->attempts[i].number > s->resolved);
        if (counts(&s->attempts[i], EFFECT_HAPPENED))
            doubt = false;
    }
    return doubt || (merged && s->attempt_count <= KEPT_FIRST);
}

/* One of the two recipients may be working on it, whatever the other one reported. */
static bool was_sent_again(const struct seen_attempt *a)
{
    return a->direction == DIRECTION_FORWARD && a->outcome != OUTCOME_OPEN && a->resent > 0;
}

/* An attempt without an answer may be at work until its complete-by, and so may one that is in
 * doubt for another reason. */
int64_t seen_doubt_until(const struct seen_step *s)
{
    bool doubt = seen_in_doubt(s);
    int64_t until = s->dropped_until;

    for (uint32_t i = 0; i < s->attempt_count; i++)
        if ((counts(&s->attempts[i], EFFECT_UNKNOWN)
             && (doubt || s->attempts[i].outcome == OUTCOME_TIMED_OUT))
            || was_sent_again(&s->attempts[i]))
            until = max_i64(until, s->attempts[i].complete_by);
    return until;
}

bool seen_child_is_open(const struct seen_step *s)
{
    enum child_state c = s->child.state;

    return s->children > 0 || (c != CHILD_NONE && c != CHILD_PROCESSED && c != CHILD_COMPENSATED);
}

bool seen_child_stopped(const struct seen_step *s)
{
    return s->children_stopped > 0 || s->child.state == CHILD_ERROR
           || s->child.state == CHILD_STUCK;
}

bool seen_undone_by_hand(const struct seen_step *s)
{
    if (s->child.state == CHILD_COMPENSATED)
        return false;
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_UNDO
            && s->attempts[i].outcome == OUTCOME_COMPLETED)
            return false;
    return s->state == STEP_UNDONE;
}

bool seen_is_end(const struct seen *t)
{
    return t->state == TASK_PROCESSED || t->state == TASK_COMPENSATED || t->state == TASK_ERROR;
}

bool seen_passed(const struct flow_step *f, const struct seen_step *s)
{
    return s->state == STEP_COMPLETED || s->state == STEP_SKIPPED
           || (s->state == STEP_FAILED && f->on_failure == ON_FAILURE_CONTINUE);
}

bool seen_needs_undo(const struct flow_step *f, const struct seen_step *s)
{
    if (s->state == STEP_UNDONE)
        return false;
    if (seen_child_is_open(s) || (f->is_child && s->direction == DIRECTION_UNDO))
        return true;
    if (f->is_each)
        return (f->undo == UNDO_CALL || f->is_child) && s->to_undo > 0;
    if (f->undo == UNDO_CHILD)
        return s->child.state == CHILD_PROCESSED;
    return f->undo == UNDO_CALL
           && (s->direction == DIRECTION_UNDO || seen_happened(s) || seen_in_doubt(s));
}

uint32_t seen_past(const struct flow *f, const struct seen *t, uint32_t step)
{
    uint32_t past = f->steps[step].before;

    for (uint32_t p = step; p-- > 0;)
        if (past & BIT(p) && t->steps[p].state != STEP_SKIPPED && !t->steps[p].supplied)
            past |= f->steps[p].before;
    return past;
}

bool seen_answered(const struct seen_step *s)
{
    const struct seen_attempt *last = s->attempt_count ? &s->attempts[s->attempt_count - 1] : NULL;

    return s->state == STEP_WAITING && s->round_at != 0 && last && last->round == s->round
           && last->generation == s->generation && last->outcome == OUTCOME_COMPLETED;
}

bool seen_asked(const struct seen_step *s)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_FORWARD)
            return true;
    return s->dropped_count > 0;
}
