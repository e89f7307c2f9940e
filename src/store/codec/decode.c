/*
 * Reads a task from its document, its payloads and its groups of steps. A document comes from disk,
 * so everything in it is checked and nothing is asserted. encode.c writes it; groups.h explains
 * groups.
 */
#include "store/codec/codec.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/attempts.h"
#include "core/items.h"
#include "store/codec/groups.h"
#include "json/json.h"

/* What a damaged row may not exceed, so that whoever adds to it need not look: times in years to
 * come (of a task that begins at the end of 9999, too), and counts. */
#define TIME_LIMIT  (INT64_C(1) << 50)
#define COUNT_LIMIT (INT64_C(1) << 30)

/* One that was read, and where its next step is looked for: they are in order. */
struct group {
    uint32_t number;
    const struct json *at;
};

struct decoder {
    struct arena *arena;
    const struct task_row *row;
    struct encoded *kept; /* or NULL */
    struct group *groups;
    size_t group_count, group_cap;
    uint32_t payload_count;
    struct value input; /* the task's */
    bool whole;         /* all values that it names were read with the row */
    const char *bad;    /* the first thing that was wrong; NULL: nothing yet */
};

static void found_bad(struct decoder *d, const char *what)
{
    if (!d->bad)
        d->bad = what;
}

/* A number from 0 to max; 0 if it is left out. */
static int64_t get_number(struct decoder *d, const struct json *j, const char *key, int64_t max)
{
    const struct json *m = json_get(j, key);
    int64_t v = 0;

    if (m && (!json_int(m, &v) || v < 0 || v > max)) {
        found_bad(d, key);
        return 0;
    }
    return v;
}

static uint32_t get_count(struct decoder *d, const struct json *j, const char *key)
{
    return (uint32_t)get_number(d, j, key, COUNT_LIMIT);
}

static int64_t get_time(struct decoder *d, const struct json *j, const char *key)
{
    return get_number(d, j, key, TIME_LIMIT);
}

static struct slice get_text(struct decoder *d, const struct json *j, const char *key)
{
    const struct json *m = json_get(j, key);

    if (!m)
        return SLICE_NONE;
    if (m->type != JSON_STRING)
        found_bad(d, key);
    return m->type == JSON_STRING ? m->text : SLICE_NONE;
}

static bool get_bool(struct decoder *d, const struct json *j, const char *key)
{
    const struct json *m = json_get(j, key);

    if (m && m->type != JSON_TRUE && m->type != JSON_FALSE)
        found_bad(d, key);
    return m && m->type == JSON_TRUE;
}

static struct fault_note get_note(struct decoder *d, const struct json *j)
{
    const struct json *m = json_get(j, "error");

    if (m && m->type != JSON_OBJECT)
        found_bad(d, "error");
    return (struct fault_note){get_text(d, m, "code"), get_text(d, m, "message")};
}

/* NONE: the row has none of that number. They are in the order of their numbers. */
static struct slice payload_find(const struct task_row *row, uint32_t number)
{
    size_t from = 0;
    size_t to = row->payload_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (row->payloads[middle].number == number)
            return row->payloads[middle].json;
        if (row->payloads[middle].number < number)
            from = middle + 1;
        else
            to = middle;
    }
    return SLICE_NONE;
}

/* A row that was read without its values is good as well: it is there, its text is not. */
static struct slice payload_text(struct decoder *d, uint32_t number)
{
    if (number == 0 || number > d->payload_count) {
        found_bad(d, "number of a payload");
        return SLICE_NONE;
    }
    struct slice text = payload_find(d->row, number);
    if (!text.ptr && (d->whole || (d->row->payload_count > 0 && !d->row->groups_only)))
        found_bad(d, "a payload that is not there");
    return text.ptr ? arena_copy(d->arena, text) : SLICE("");
}

static struct value get_value(struct decoder *d, const struct json *j, const char *key,
                              const char *payload_key)
{
    struct value v = {json_get_raw(j, key), 0};

    if (json_get(j, payload_key)) {
        v.payload = get_count(d, j, payload_key);
        v.json = payload_text(d, v.payload);
    }
    return v;
}

/* A step's input: may be given by the number of the task's input payload, or by PAYLOAD_INPUT. */
static struct value get_input(struct decoder *d, const struct json *j)
{
    const struct value *whole = &d->input;
    const struct json *m = json_get(j, "input_payload");
    int64_t number = 0;

    if (!m || !json_int(m, &number))
        return get_value(d, j, "input", "input_payload");
    if (number == PAYLOAD_INPUT && !whole->json.ptr)
        found_bad(d, "an input that its task does not have");
    return number == PAYLOAD_INPUT || number == whole->payload
               ? *whole
               : get_value(d, j, "input", "input_payload");
}

static enum direction get_direction(struct decoder *d, const struct json *j)
{
    struct slice word = get_text(d, j, "direction");
    enum direction dir = DIRECTION_FORWARD;

    if (word.ptr && !direction_parse(word, &dir))
        found_bad(d, "direction");
    return dir;
}

static enum effect get_effect(struct decoder *d, const struct json *j)
{
    struct slice word = get_text(d, j, "effect");
    enum effect effect = EFFECT_NONE;

    if (word.ptr && !effect_parse(word, &effect))
        found_bad(d, "effect");
    return effect;
}

static uint32_t get_generation(struct decoder *d, const struct json *j)
{
    uint32_t number = get_count(d, j, "key_generation");

    return number > 0 ? number - 1 : 0;
}

static struct attempt get_attempt(struct decoder *d, const struct json *j)
{
    struct attempt at = {
        .number = get_count(d, j, "attempt"),
        .direction = get_direction(d, j),
        .effect = get_effect(d, j),
        .started_at = get_time(d, j, "started_at"),
        .ended_at = get_time(d, j, "ended_at"),
        .complete_by = get_time(d, j, "complete_by"),
        .resent = get_count(d, j, "resent"),
        .tries = get_count(d, j, "tries"),
        .elsewhere = get_bool(d, j, "elsewhere"),
        .spared = get_bool(d, j, "spared"),
        .generation = get_generation(d, j),
        .round = get_count(d, j, "round"),
        .instance = get_text(d, j, "instance"),
        .output = get_value(d, j, "output", "output_payload"),
        .error = get_note(d, j),
    };

    if (!outcome_parse(get_text(d, j, "outcome"), &at.outcome))
        found_bad(d, "outcome");
    return at;
}

static void get_attempts(struct decoder *d, const struct json *j, struct step *s)
{
    const struct json *list = json_get(j, "attempts");
    uint32_t count = list ? list->count : 0;

    if (list && (list->type != JSON_ARRAY || count > ATTEMPTS_KEPT)) {
        found_bad(d, "attempts");
        return;
    }
    if (count == 0)
        return;
    s->attempt_cap = (uint16_t)(count + 1); /* most have one more before they are written again */
    s->attempts = arena_alloc(d->arena, s->attempt_cap * sizeof *s->attempts);
    for (const struct json *m = list->child; m; m = m->next)
        s->attempts[s->attempt_count++] = get_attempt(d, m);
}

static enum child_wish get_wish(struct decoder *d, const struct json *j, const char *key)
{
    struct slice word = get_text(d, j, key);
    enum child_wish wish = WISH_NONE;

    if (word.ptr && !child_wish_parse(word, &wish))
        found_bad(d, key);
    return wish;
}

static struct child get_child(struct decoder *d, const struct json *j)
{
    const struct json *m = json_get(j, "child");

    if (!m)
        return (struct child){0};
    struct slice state = get_text(d, m, "state");
    struct child c = {.number = get_count(d, m, "number"), .wish = get_wish(d, m, "wish")};

    if (m->type != JSON_OBJECT || (state.ptr && !child_state_parse(state, &c.state)))
        found_bad(d, "child");
    return c;
}

static void get_step(struct decoder *d, const struct json *j, struct slice name, struct step *s)
{
    const struct json *dropped = json_get(j, "dropped");

    *s = (struct step){
        .direction = get_direction(d, j),
        .attempt = get_count(d, j, "attempt"),
        .failure_count = get_count(d, j, "failure_count"),
        .spared_count = get_count(d, j, "spared_count"),
        .spared_at = get_time(d, j, "spared_at"),
        .begun_at = get_time(d, j, "begun_at"),
        .wait_until = get_time(d, j, "wait_until"),
        .round = get_count(d, j, "round"),
        .round_at = get_time(d, j, "round_at"),
        .repeat_until = get_time(d, j, "repeat_until"),
        .corrected = get_bool(d, j, "corrected"),
        .complete_by = get_time(d, j, "complete_by"),
        .input = get_input(d, j),
        .output = get_value(d, j, "output", "output_payload"),
        .undo_input = get_value(d, j, "undo_input", "undo_input_payload"),
        .error = get_note(d, j),
        .resume = json_get_raw(j, "resume"),
        .generation = get_generation(d, j),
        .child = get_child(d, j),
        .supplied = get_bool(d, j, "supplied"),
        .resolved = get_count(d, j, "resolved"),
        .dropped_count = get_count(d, dropped, "count"),
        .dropped_effect = get_effect(d, dropped),
        .dropped_until = get_time(d, dropped, "until"),
        .dropped_attempt = get_count(d, dropped, "attempt"),
    };
    if (!step_state_parse(get_text(d, j, "state"), &s->state))
        found_bad(d, "state of a step");
    if (!slice_eq(get_text(d, j, "name"), name))
        found_bad(d, "a step that its workflow does not have there");
    get_attempts(d, j, s);
}

/* ---- items ---- */

/* Its parts lie in payloads next to each other. */
static struct item_list get_list(struct decoder *d, const struct json *j)
{
    struct item_list list = {
        .count = (uint32_t)get_number(d, j, "count", ITEMS_MAX),
        .part_count = (uint16_t)get_number(d, j, "parts", UINT16_MAX),
    };
    uint32_t first = get_count(d, j, "first_part");

    if (list.part_count != (list.count + ITEMS_OF_PART - 1) / ITEMS_OF_PART) {
        found_bad(d, "parts of a list");
        return (struct item_list){0};
    }
    list.parts = arena_alloc(d->arena, list.part_count * sizeof *list.parts);
    for (uint32_t i = 0; i < list.part_count; i++)
        list.parts[i] = (struct value){payload_text(d, first + i), first + i};
    return list;
}

/* An item stays in its slot: what is known of it in memory is known by its unit. NULL: it has no
 * slot, or one that is taken. */
static struct step *get_slot(struct decoder *d, const struct json *j,
                             const struct workflow_step *ws, struct task *t)
{
    uint32_t index = get_count(d, j, "slot_index");
    struct step *s = index < ws->each.slot_count ? &t->steps[ws->each.slots_at + index] : NULL;

    if (s && s->slot == SLOT_FREE)
        return s;
    found_bad(d, "slot_index of an item");
    return NULL;
}

static void get_at_work(struct decoder *d, const struct json *j, const struct workflow_step *ws,
                        struct task *t)
{
    const struct json *list = json_get(j, "at_work");

    if (list && (list->type != JSON_ARRAY || list->count > ws->each.slot_count)) {
        found_bad(d, "items at work");
        return;
    }
    for (const struct json *m = list ? list->child : NULL; m; m = m->next) {
        struct slice word = get_text(d, m, "slot");
        struct step *s = get_slot(d, m, ws, t);
        if (!s)
            return;
        get_step(d, m, SLICE_NONE, s);
        s->item = get_count(d, m, "item");
        s->slot = word.ptr ? SLOT_BACK : SLOT_TAKEN;
        if (word.ptr && !slice_is(word, "back"))
            found_bad(d, "slot of an item");
    }
}

static void get_items(struct decoder *d, const struct json *step, const struct workflow *w,
                      struct task *t, uint16_t i)
{
    const struct json *j = json_get(step, "items");
    struct step *s = &t->steps[i];

    if (j && j->type != JSON_OBJECT)
        found_bad(d, "items");
    s->items = arena_alloc(d->arena, sizeof *s->items);
    *s->items = (struct items){
        .list = get_list(d, j),
        .begun = get_count(d, j, "begun"),
        .completed = get_count(d, j, "completed"),
        .failed = get_count(d, j, "failed"),
        .skipped = get_count(d, j, "skipped"),
        .undone = get_count(d, j, "undone"),
        .effects = get_count(d, j, "effects"),
        .doubts = get_count(d, j, "doubts"),
        .to_undo = get_count(d, j, "to_undo"),
        .contradicted = get_count(d, j, "contradicted"),
        .child_base = get_count(d, j, "child_base"),
        .undo_below = get_count(d, j, "undo_below"),
    };
    if (get_bool(d, j, "output"))
        s->output = (struct value){SLICE(""), ITEMS_OUTPUT};
    get_at_work(d, j, &w->steps[i], t);
}

/* ---- steps ---- */

static struct group *group_read(struct decoder *d, uint32_t number)
{
    struct slice text = payload_find(d->row, number);
    struct json *j = NULL;

    if (number == 0 || number > d->payload_count || !text.ptr
        || json_parse(d->arena, arena_copy(d->arena, text), &j, NULL) != ERR_OK
        || j->type != JSON_OBJECT) {
        found_bad(d, "a group of steps");
        return NULL;
    }
    if (d->group_count == d->group_cap) {
        size_t cap = d->group_cap ? d->group_cap * 2 : 8;
        struct group *more = arena_alloc(d->arena, cap * sizeof *more);
        if (d->group_count)
            memcpy(more, d->groups, d->group_count * sizeof *more);
        d->groups = more;
        d->group_cap = cap;
    }
    struct group *g = &d->groups[d->group_count++];
    *g = (struct group){number, j->child};
    return g;
}

/* The latest ones are what most steps lie in. */
static struct group *group_find(struct decoder *d, uint32_t number)
{
    for (size_t i = d->group_count; i-- > 0;)
        if (d->groups[i].number == number)
            return &d->groups[i];
    return group_read(d, number);
}

/* As it lies in its group; NULL if it is not there. */
static const struct json *grouped_step(struct decoder *d, uint32_t number, uint16_t i)
{
    struct group *g = group_find(d, number);
    char key[8];

    if (!g)
        return NULL;
    (void)snprintf(key, sizeof key, "%u", i); /* always fits */
    while (g->at && !slice_is(g->at->key, key))
        g->at = g->at->next;
    if (!g->at)
        found_bad(d, "a step that is not in its group");
    return g->at;
}

static void get_step_of(struct decoder *d, const struct json *j, const struct workflow *w,
                        struct task *t, uint16_t i)
{
    uint32_t group = 0;

    if (j->type == JSON_NUMBER) {
        int64_t number = 0;
        group =
            json_int(j, &number) && number > 0 && number <= d->payload_count ? (uint32_t)number : 0;
        j = grouped_step(d, group, i);
    }
    if (!j)
        return; /* it is known that it is bad */
    get_step(d, j, w->steps[i].name, &t->steps[i]);
    if (w->steps[i].kind == KIND_EACH)
        get_items(d, j, w, t, i);
    if (d->kept && group)
        kept_set_group(d->kept, i, &t->steps[i], group);
}

static void get_steps(struct decoder *d, const struct json *j, const struct workflow *w,
                      struct task *t)
{
    const struct json *list = json_get(j, "steps");
    const struct json *m = list ? list->child : NULL;

    if (!list || list->type != JSON_ARRAY || list->count != w->step_count) {
        found_bad(d, "steps");
        return;
    }
    t->step_count = w->step_count;
    t->slot_count = w->slot_count;
    t->steps = arena_alloc(d->arena, (size_t)task_unit_count(t) * sizeof *t->steps);
    for (uint16_t i = 0; i < w->step_count; i++, m = m->next)
        get_step_of(d, m, w, t, i);
}

static struct signal get_signal(struct decoder *d, const struct json *j, const struct workflow *w)
{
    struct slice step = get_text(d, j, "step");
    struct signal s = {
        .key = get_text(d, j, "key"),
        .name = get_text(d, j, "name"),
        .data = get_value(d, j, "data", "data_payload"),
        .content = get_text(d, j, "content"),
        .at = get_time(d, j, "at"),
        .step = -1,
    };

    if (!signal_state_parse(get_text(d, j, "state"), &s.state))
        found_bad(d, "state of a signal");
    if (step.ptr && (s.step = workflow_step_index(w, step)) < 0)
        found_bad(d, "step of a signal");
    return s;
}

static void get_signals(struct decoder *d, const struct json *j, const struct workflow *w,
                        struct task *t)
{
    const struct json *list = json_get(j, "signals");

    if (!list)
        return;
    if (list->type != JSON_ARRAY || list->count > SIGNALS_MAX) {
        found_bad(d, "signals");
        return;
    }
    t->signal_cap = (uint16_t)(list->count + 1); /* most have one more before they are written */
    t->signals = arena_alloc(d->arena, t->signal_cap * sizeof *t->signals);
    for (const struct json *m = list->child; m; m = m->next)
        t->signals[t->signal_count++] = get_signal(d, m, w);
}

static struct vote get_vote(struct decoder *d, const struct json *j, const struct workflow *w)
{
    struct vote v = {
        .person = get_text(d, j, "person"),
        .comment = get_text(d, j, "comment"),
        .at = get_time(d, j, "at"),
        .agrees = get_bool(d, j, "agrees"),
        .step = workflow_step_index(w, get_text(d, j, "step")),
    };

    if (v.step < 0)
        found_bad(d, "step of a vote");
    return v;
}

static void get_votes(struct decoder *d, const struct json *j, const struct workflow *w,
                      struct task *t)
{
    const struct json *list = json_get(j, "votes");

    if (!list)
        return;
    if (list->type != JSON_ARRAY || list->count > VOTES_MAX) {
        found_bad(d, "votes");
        return;
    }
    t->vote_cap = (uint16_t)(list->count + 1); /* most have one more before they are written */
    t->votes = arena_alloc(d->arena, t->vote_cap * sizeof *t->votes);
    for (const struct json *m = list->child; m; m = m->next)
        t->votes[t->vote_count++] = get_vote(d, m, w);
}

/* The value of a hexadecimal digit as we write them, or -1. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint64_t get_content_hash(struct decoder *d, const struct json *j)
{
    struct slice text = get_text(d, j, "content");
    uint64_t content = 0;

    if (text.ptr && text.len != 16)
        found_bad(d, "content");
    for (size_t i = 0; i < text.len && !d->bad; i++) {
        int digit = hex_digit(text.ptr[i]); /* NOLINT: without a pointer the length is 0 */
        if (digit < 0)
            found_bad(d, "content");
        else
            content = content << 4 | (uint64_t)digit;
    }
    return content;
}

/* A task of a version before has none, and neither has one that such a version wrote again. */
static struct slice get_sha256(struct decoder *d, const struct json *j)
{
    struct slice text = get_text(d, j, "sha256");

    if (text.ptr && text.len != CONTENT_SHA256_LEN)
        found_bad(d, "sha256");
    return text;
}

/* A task that stopped, or turned back, under a version before has none: its error says most. */
static struct cause get_cause(struct decoder *d, const struct json *j, const struct workflow *w,
                              const struct task *t)
{
    const struct json *m = json_get(j, "cause");
    struct slice step = get_text(d, m, "step");
    bool stopped = t->direction == DIRECTION_UNDO || t->stop != STOP_NONE || t->state == TASK_ERROR;
    struct cause c = {{get_text(d, m, "code"), get_text(d, m, "message")}, -1};

    if (!m && stopped)
        c.error = t->error;
    if (step.ptr && (c.step = workflow_step_index(w, step)) < 0)
        found_bad(d, "cause");
    return c;
}

/* Whose child it is, but for the ids; and the versions of its family. */
static void get_family(struct decoder *d, const struct json *j, struct task *t)
{
    const struct json *parent = json_get(j, "parent");
    const struct json *family = json_get(j, "family");

    if ((parent && parent->type != JSON_OBJECT) || (family && family->type != JSON_OBJECT)) {
        found_bad(d, "family");
        return;
    }
    t->parent_step = get_text(d, parent, "step");
    t->parent_number = get_count(d, parent, "number");
    t->asked = get_wish(d, parent, "asked");
    t->family = json_get_raw(j, "family");
}

static void get_doc(struct decoder *d, const struct json *j, const struct workflow *w,
                    struct task *t)
{
    struct slice stop = get_text(d, j, "stop");

    if (j->type != JSON_OBJECT)
        found_bad(d, "type");
    t->payload_count = d->payload_count = get_count(d, j, "payloads");
    t->input = d->input = get_value(d, j, "input", "input_payload");
    t->output = get_value(d, j, "output", "output_payload");
    t->error = get_note(d, j);
    if (stop.ptr && !stop_parse(stop, &t->stop))
        found_bad(d, "stop");
    t->cause = get_cause(d, j, w, t);
    t->content = (struct content){get_content_hash(d, j), get_sha256(d, j)};
    t->deadline_passed = get_bool(d, j, "deadline_passed");
    t->undo_complete_by = get_time(d, j, "undo_complete_by");
    t->closed_reason = get_text(d, j, "closed_reason");
    t->trace = get_text(d, j, "traceparent");
    t->owner = get_text(d, j, "owner");
    t->submitter = get_text(d, j, "submitter");
    get_family(d, j, t);
    get_steps(d, j, w, t);
    get_signals(d, j, w, t);
    get_votes(d, j, w, t);
}

static bool columns_valid(const struct task_row *row)
{
    const int64_t times[] = {row->complete_by, row->not_before, row->submitted_at, row->started_at,
                             row->ended_at,    row->paused_at,  row->closed_at,    row->lock_since};

    for (size_t i = 0; i < COUNT_OF(times); i++)
        if (times[i] < 0 || times[i] > TIME_LIMIT)
            return false;
    return row->failure_count <= COUNT_LIMIT;
}

static struct task columns(struct arena *a, const struct task_row *row)
{
    return (struct task){
        .id = arena_copy(a, row->id),
        .locked_by = arena_copy(a, row->locked_by),
        .revision = row->revision,
        .state = row->state,
        .direction = row->direction,
        .priority = row->priority,
        .complete_by = row->complete_by,
        .not_before = row->not_before,
        .submitted_at = row->submitted_at,
        .started_at = row->started_at,
        .ended_at = row->ended_at,
        .paused_at = row->paused_at,
        .closed_at = row->closed_at,
        .failure_count = row->failure_count,
        .reply_to = arena_copy(a, row->reply_to),
        .tags = arena_copy(a, row->tags),
        .lock = arena_copy(a, row->lock),
        .lock_mode = (enum lock_mode)row->lock_mode,
        .lock_since = row->lock_since,
        .parent = arena_copy(a, row->parent),
        .root = arena_copy(a, row->root),
    };
}

/* Intact once took a list for undone while one of its items ran, whatever that did then. Such a
 * list is undone further. Of a task that has ended, the record stays as it is: what stands of the
 * list counts as what was told too late. */
static void mend_lists(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        struct step *s = &t->steps[i];
        if (w->steps[i].kind != KIND_EACH || s->state != STEP_UNDONE || !s->items)
            continue;
        struct items *in = s->items;
        uint32_t left = in->to_undo + in->tally.to_undo;
        uint32_t known = in->contradicted + in->tally.contradicted;
        if (!task_state_is_end(t->state) && (in->tally.open > 0 || left > known))
            s->state = STEP_UNDOING;
        else if (left > known)
            in->contradicted += left - known;
    }
}

enum err task_decode(const struct workflow *w, const struct task_row *row, struct arena *a,
                     struct task *ret, struct error *e)
{
    return task_decode_kept(w, row, NULL, a, ret, e);
}

enum err task_decode_kept(const struct workflow *w, const struct task_row *row,
                          struct encoded *kept, struct arena *a, struct task *ret, struct error *e)
{
    struct decoder d = {.arena = a, .row = row, .kept = kept};
    struct json_fault fault;
    struct json *j;

    if (!slice_eq(row->workflow, w->name) || row->version != w->version)
        return error_set(e, ERR_CORRUPT, "task %.*s is of another workflow or version",
                         SLICE_ARG(row->id));
    if (!columns_valid(row))
        return error_set(e, ERR_CORRUPT, "columns of task %.*s: a time or count is out of range",
                         SLICE_ARG(row->id));
    struct slice doc = arena_copy(a, row->doc); /* the tree points into it */
    if (json_parse(a, doc, &j, &fault) != ERR_OK)
        return error_set(e, ERR_CORRUPT, "document of task %.*s: line %u, column %u: %s",
                         SLICE_ARG(row->id), fault.line, fault.column, fault.what);

    struct task t = columns(a, row);
    get_doc(&d, j, w, &t);
    if (d.bad)
        return error_set(e, ERR_CORRUPT, "document of task %.*s: wrong: %s", SLICE_ARG(row->id),
                         d.bad);
    if (w->slot_count > 0) {
        items_tally_all(w, &t);
        mend_lists(w, &t);
    }
    if (!task_valid(w, &t))
        return error_set(e, ERR_CORRUPT, "task %.*s breaks an invariant", SLICE_ARG(row->id));
    if (kept)
        kept_set_input(kept, &t.input);
    *ret = t;
    return ERR_OK;
}

/* As the only step of a task that goes its way: nothing else of the task is known here. */
static bool item_valid(const struct workflow *w, uint16_t step, struct step *s)
{
    struct workflow_step spec = w->steps[w->steps[step].each.slots_at];
    const struct workflow one = {.steps = &spec, .step_count = 1};
    const struct task t = {.direction = s->direction, .steps = s, .step_count = 1};
    bool rests = s->state == STEP_COMPLETED || s->state == STEP_FAILED || s->state == STEP_SKIPPED
                 || s->state == STEP_UNDONE;

    spec.before_count = spec.after_count = 0;
    spec.on_undo = false;
    return rests && task_step_valid(&one, &t, 0);
}

static struct fault_note note_copy(struct arena *a, struct fault_note n)
{
    return (struct fault_note){arena_copy(a, n.code), arena_copy(a, n.message)};
}

/* The tree of a row is not kept: it takes several times what is kept of it, and very many rows are
 * read. Values are pieces of the document. */
static void keep_texts(struct arena *a, struct step *s)
{
    s->error = note_copy(a, s->error);
    for (uint16_t i = 0; i < s->attempt_count; i++) {
        s->attempts[i].instance = arena_copy(a, s->attempts[i].instance);
        s->attempts[i].error = note_copy(a, s->attempts[i].error);
    }
}

enum err item_decode(const struct workflow *w, uint16_t step, const struct item_row *row,
                     struct arena *a, struct step *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena tree = {0};

    return item_decode_with(w, step, row, &tree, a, ret, e);
}

enum err item_decode_with(const struct workflow *w, uint16_t step, const struct item_row *row,
                          struct arena *tree, struct arena *a, struct step *ret, struct error *e)
{
    const struct task_row values = {.payloads = row->payloads, .payload_count = row->payload_count};
    struct decoder d = {.arena = a,
                        .row = &values,
                        .payload_count = PAYLOAD_NUMBER_MAX,
                        .whole = true};
    struct json *j;
    struct step s;

    ASSERT(w->steps[step].kind == KIND_EACH);
    if (json_parse(tree, arena_copy(a, row->doc), &j, NULL) != ERR_OK || j->type != JSON_OBJECT)
        return error_set(e, ERR_CORRUPT, "item %u of step %.*s: its document cannot be read",
                         row->number, SLICE_ARG(row->step));
    get_step(&d, j, SLICE_NONE, &s);
    s.item = row->number;
    if (d.bad)
        return error_set(e, ERR_CORRUPT, "item %u of step %.*s: wrong: %s", row->number,
                         SLICE_ARG(row->step), d.bad);
    if (s.state != row->state || !item_valid(w, step, &s))
        return error_set(e, ERR_CORRUPT, "item %u of step %.*s breaks an invariant", row->number,
                         SLICE_ARG(row->step));
    keep_texts(a, &s);
    *ret = s;
    return ERR_OK;
}

struct slice doc_owner(struct slice doc, struct arena *a)
{
    struct json *j = NULL;

    if (!doc.ptr || json_parse(a, arena_copy(a, doc), &j, NULL) != ERR_OK)
        return SLICE_NONE;
    return json_get_text(j, "owner");
}
