/*
 * Writes the document of a task. Long values go to payloads, and resting steps of a long task to
 * groups (groups.h). decode.c reads it.
 */
#include "store/codec/codec.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/undo.h"
#include "core/votes.h"
#include "store/codec/groups.h"
#include "json/json.h"

struct encoder {
    struct buf *b;
    struct task *task;
    struct arena *arena;
    struct payload *payloads; /* given numbers just now */
    size_t count, cap;
    struct encoded *kept; /* or NULL */
    bool apart;           /* what is written is a row of its own, without the task's document */
};

static uint32_t payload_add(struct encoder *en, struct slice json)
{
    if (en->count == en->cap) {
        size_t cap = en->cap ? en->cap * 2 : 4;
        struct payload *more = arena_alloc(en->arena, cap * sizeof *more);
        if (en->count)
            memcpy(more, en->payloads, en->count * sizeof *more);
        en->payloads = more;
        en->cap = cap;
    }
    uint32_t number = ++en->task->payload_count;
    en->payloads[en->count++] = (struct payload){number, arena_copy(en->arena, json)};
    return number;
}

static void number_if_long(struct encoder *en, struct value *v)
{
    if (!v->payload && v->json.len > PAYLOAD_INLINE_MAX && !en->apart)
        v->payload = payload_add(en, v->json);
}

/* The row of an item at rest has its values itself, however long they are: in the payload table
 * each read of the task would read those of all its items. It refers to the task's input alone. A
 * text that is not known here stays where it is. */
static bool is_moved(const struct encoder *en, const struct value *v)
{
    return en->apart && v->payload != PAYLOAD_FIRST && v->json.len > 0;
}

static void put_value(struct encoder *en, const char *key, const char *payload_key, struct value *v)
{
    number_if_long(en, v);
    if (v->payload && !is_moved(en, v))
        json_member_number(en->b, payload_key, v->payload);
    else
        json_member_raw_if(en->b, key, v->json);
}

/* A step that has the task's own input, which is the one that it has if its definition says
 * nothing, does not repeat it. Texts are not changed in their place: if both lie in one, they are
 * the same. By its number if it has one. A row that lies apart has only numbers to refer to, and
 * only that of an input which was not corrected: it has the text of another. */
static void put_input(struct encoder *en, struct step *s)
{
    const struct value *whole = &en->task->input;
    bool same = !s->input.payload && slice_same(s->input.json, whole->json);

    if (same && !whole->payload && !en->apart) {
        json_member_number(en->b, "input_payload", PAYLOAD_INPUT);
        return;
    }
    if (same)
        s->input.payload = whole->payload;
    put_value(en, "input", "input_payload", &s->input);
}

static void put_number(struct buf *b, const char *key, int64_t v)
{
    if (v != 0)
        json_member_number(b, key, v);
}

static void put_true(struct buf *b, const char *key, bool v)
{
    if (v)
        json_member_bool(b, key, true);
}

static void put_note(struct buf *b, const struct fault_note *n)
{
    if (!n->code.ptr && !n->message.ptr)
        return;
    json_key(b, "error");
    json_open(b, '{');
    json_member_text_if(b, "code", n->code);
    json_member_text_if(b, "message", n->message);
    json_close(b, '}');
}

/* By the name of its step: a position says nothing to people. */
static void put_cause(struct buf *b, const struct workflow *w, const struct cause *c)
{
    if (!c->error.code.ptr)
        return;
    json_key(b, "cause");
    json_open(b, '{');
    if (c->step >= 0)
        json_member_text_if(b, "step", w->steps[c->step].name);
    json_member_text_if(b, "code", c->error.code);
    json_member_text_if(b, "message", c->error.message);
    json_close(b, '}');
}

/* As people count: the first key is 1, and goes without saying. */
static void put_generation(struct buf *b, uint32_t generation)
{
    if (generation > 0)
        put_number(b, "key_generation", (int64_t)generation + 1);
}

static void put_attempt(struct encoder *en, struct attempt *at)
{
    struct buf *b = en->b;

    json_open(b, '{');
    put_number(b, "attempt", at->number);
    if (at->direction != DIRECTION_FORWARD)
        json_member_plain(b, "direction", slice_of(direction_text(at->direction)));
    json_member_plain(b, "outcome", slice_of(outcome_text(at->outcome)));
    if (at->effect != EFFECT_NONE)
        json_member_plain(b, "effect", slice_of(effect_text(at->effect)));
    json_member_text_if(b, "instance", at->instance);
    put_number(b, "started_at", at->started_at);
    put_number(b, "ended_at", at->ended_at);
    put_number(b, "complete_by", at->complete_by);
    put_number(b, "resent", at->resent);
    put_number(b, "tries", at->tries);
    put_true(b, "elsewhere", at->elsewhere);
    put_true(b, "spared", at->spared);
    put_generation(b, at->generation);
    put_number(b, "round", at->round);
    put_value(en, "output", "output_payload", &at->output);
    put_note(b, &at->error);
    json_close(b, '}');
}

static void put_dropped(struct buf *b, const struct step *s)
{
    if (s->dropped_count == 0 && s->dropped_effect == EFFECT_NONE && s->dropped_until == 0
        && s->dropped_attempt == 0)
        return;
    json_key(b, "dropped");
    json_open(b, '{');
    put_number(b, "count", s->dropped_count);
    if (s->dropped_effect != EFFECT_NONE)
        json_member_plain(b, "effect", slice_of(effect_text(s->dropped_effect)));
    put_number(b, "until", s->dropped_until);
    put_number(b, "attempt", s->dropped_attempt);
    json_close(b, '}');
}

static void put_attempts(struct encoder *en, struct step *s)
{
    if (s->attempt_count == 0)
        return;
    json_key(en->b, "attempts");
    json_open(en->b, '[');
    for (uint16_t i = 0; i < s->attempt_count; i++)
        put_attempt(en, &s->attempts[i]);
    json_close(en->b, ']');
}

static void put_rounds(struct buf *b, const struct step *s)
{
    put_number(b, "round", s->round);
    put_number(b, "round_at", s->round_at);
    put_number(b, "repeat_until", s->repeat_until);
    put_true(b, "corrected", s->corrected);
}

static void put_child(struct buf *b, const struct child *c)
{
    json_key(b, "child");
    json_open(b, '{');
    put_number(b, "number", c->number);
    if (c->state != CHILD_NONE)
        json_member_plain(b, "state", slice_of(child_state_text(c->state)));
    if (c->wish != WISH_NONE)
        json_member_plain(b, "wish", slice_of(child_wish_text(c->wish)));
    json_close(b, '}');
}

/* What a step has besides its name and its items. */
static void put_members(struct encoder *en, struct step *s)
{
    struct buf *b = en->b;

    json_member_plain(b, "state", slice_of(step_state_text(s->state)));
    if (s->direction != DIRECTION_FORWARD)
        json_member_plain(b, "direction", slice_of(direction_text(s->direction)));
    put_number(b, "attempt", s->attempt);
    put_number(b, "failure_count", s->failure_count);
    put_number(b, "spared_count", s->spared_count);
    put_number(b, "spared_at", s->spared_at);
    put_number(b, "begun_at", s->begun_at);
    put_number(b, "wait_until", s->wait_until);
    if (s->round != 0 || s->repeat_until != 0 || s->corrected)
        put_rounds(b, s);
    put_number(b, "complete_by", s->complete_by);
    put_true(b, "in_doubt", step_in_doubt(s)); /* for people; not read back */
    put_input(en, s);
    if (s->output.payload != ITEMS_OUTPUT)
        put_value(en, "output", "output_payload", &s->output);
    put_value(en, "undo_input", "undo_input_payload", &s->undo_input);
    put_note(b, &s->error);
    json_member_raw_if(b, "resume", s->resume);
    put_generation(b, s->generation);
    if (s->child.number != 0 || s->child.state != CHILD_NONE || s->child.wish != WISH_NONE)
        put_child(b, &s->child);
    put_true(b, "supplied", s->supplied);
    put_number(b, "resolved", s->resolved);
    put_dropped(b, s);
    put_attempts(en, s);
}

/* The parts of a list get numbers next to each other. */
static void number_parts(struct encoder *en, struct item_list *list)
{
    for (uint16_t i = 0; i < list->part_count; i++)
        if (!list->parts[i].payload)
            list->parts[i].payload = payload_add(en, list->parts[i].json);
}

static bool is_at_work(const struct step *s)
{
    return s->slot == SLOT_TAKEN || s->slot == SLOT_BACK;
}

static void put_at_work(struct encoder *en, const struct workflow_step *ws)
{
    struct step *slots = en->task->steps + ws->each.slots_at;
    struct buf *b = en->b;
    bool any = false;

    for (uint16_t i = 0; i < ws->each.slot_count; i++) {
        if (!is_at_work(&slots[i]))
            continue;
        if (!any) {
            json_key(b, "at_work");
            json_open(b, '[');
        }
        any = true;
        json_open(b, '{');
        put_number(b, "item", slots[i].item);
        put_number(b, "slot_index", i);
        if (slots[i].slot == SLOT_BACK)
            json_member_plain(b, "slot", SLICE("back"));
        put_members(en, &slots[i]);
        json_close(b, '}');
    }
    if (any)
        json_close(b, ']');
}

static void put_items(struct encoder *en, const struct workflow_step *ws, const struct step *s)
{
    struct items *in = s->items;
    struct buf *b = en->b;
    size_t from = b->len;

    number_parts(en, &in->list);
    json_key(b, "items");
    json_open(b, '{');
    size_t empty = b->len;
    put_number(b, "count", in->list.count);
    put_number(b, "begun", in->begun);
    put_number(b, "completed", in->completed);
    put_number(b, "failed", in->failed);
    put_number(b, "skipped", in->skipped);
    put_number(b, "undone", in->undone);
    put_number(b, "effects", in->effects);
    put_number(b, "doubts", in->doubts);
    put_number(b, "to_undo", in->to_undo);
    put_number(b, "contradicted", in->contradicted);
    put_number(b, "child_base", in->child_base);
    put_number(b, "undo_below", in->undo_below);
    put_number(b, "parts", in->list.part_count);
    put_number(b, "first_part", in->list.part_count ? in->list.parts[0].payload : 0);
    put_true(b, "output", s->output.payload == ITEMS_OUTPUT);
    put_at_work(en, ws);
    if (b->len == empty)
        b->len = from; /* it has not begun */
    else
        json_close(b, '}');
}

static void write_step(struct encoder *en, const struct workflow *w, uint16_t i)
{
    const struct workflow_step *ws = &w->steps[i];
    struct step *s = &en->task->steps[i];

    json_open(en->b, '{');
    json_member_text_if(en->b, "name", ws->name);
    put_members(en, s);
    if (ws->kind == KIND_EACH)
        put_items(en, ws, s);
    json_close(en->b, '}');
}

/* The text of an item that came to rest, written behind the document that is to come. */
static struct item_row item_row(struct encoder *en, const struct workflow *w, uint16_t unit)
{
    uint16_t step = unit_step(w, unit);
    struct step *s = &en->task->steps[unit];
    size_t from = en->b->len;

    buf_byte(en->b, '{'); /* not json_open: what stands before it is another document */
    put_members(en, s);
    json_close(en->b, '}');
    struct slice doc = arena_copy(en->arena, (struct slice){en->b->ptr + from, en->b->len - from});
    en->b->len = from;
    return (struct item_row){
        .step = w->steps[step].name,
        .generation = en->task->steps[step].generation,
        .number = s->item,
        .state = s->state,
        .in_doubt = step_in_doubt(s),
        .needs_undo = step_needs_undo(&w->steps[unit], s),
        .doc = doc,
    };
}

/* Those of the slots whose items came to rest. */
static void put_item_rows(struct encoder *en, const struct workflow *w, struct task_row *ret)
{
    const struct task *t = en->task;
    struct item_row *rows = arena_alloc(en->arena, t->slot_count * sizeof *rows);

    en->apart = true;
    for (uint16_t u = t->step_count; u < task_unit_count(t); u++)
        if (t->steps[u].slot == SLOT_RESTING)
            rows[ret->item_count++] = item_row(en, w, u);
    en->apart = false;
    ret->items = rows;
}

/* ---- payloads of items that came to rest ---- */

/* In their order, each once. */
struct numbers {
    uint32_t *list;
    size_t count;
};

static int number_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Whose text is in the row now. */
static void numbers_add(struct numbers *n, const struct value *v)
{
    if (v->payload > PAYLOAD_FIRST && v->json.len > 0)
        n->list[n->count++] = v->payload;
}

static void numbers_remove(struct numbers *n, const struct value *v)
{
    const uint32_t *at = bsearch(&v->payload, n->list, n->count, sizeof *n->list, number_order);

    if (!at)
        return;
    size_t i = (size_t)(at - n->list);
    memmove(n->list + i, n->list + i + 1, (n->count - i - 1) * sizeof *n->list);
    n->count--;
}

static void each_value(struct numbers *n, const struct step *s,
                       void (*what)(struct numbers *n, const struct value *v))
{
    what(n, &s->input);
    what(n, &s->output);
    what(n, &s->undo_input);
    for (uint16_t i = 0; i < s->attempt_count; i++)
        what(n, &s->attempts[i].output);
}

static struct numbers numbers_of_rest(const struct encoder *en)
{
    const struct task *t = en->task;
    struct numbers n = {0};
    size_t max = 0;

    for (uint16_t u = t->step_count; u < task_unit_count(t); u++)
        max += t->steps[u].slot == SLOT_RESTING ? 3U + t->steps[u].attempt_count : 0;
    n.list = arena_alloc(en->arena, max * sizeof *n.list);
    for (uint16_t u = t->step_count; u < task_unit_count(t); u++)
        if (t->steps[u].slot == SLOT_RESTING)
            each_value(&n, &t->steps[u], numbers_add);
    qsort(n.list, n.count, sizeof *n.list, number_order);
    size_t count = 0;
    for (size_t i = 0; i < n.count; i++)
        if (count == 0 || n.list[count - 1] != n.list[i])
            n.list[count++] = n.list[i];
    n.count = count;
    return n;
}

/* What the rest of the task refers to stays. Their values keep their numbers here until the change
 * is stored: should it not be, the same is written again. */
static void drop_payloads(const struct encoder *en, struct task_row *ret)
{
    const struct task *t = en->task;
    struct numbers n = numbers_of_rest(en);

    if (n.count == 0)
        return;
    numbers_remove(&n, &t->input);
    numbers_remove(&n, &t->output);
    for (uint16_t u = 0; u < task_unit_count(t); u++) {
        const struct step *s = &t->steps[u];
        if (s->slot != SLOT_RESTING)
            each_value(&n, s, numbers_remove);
        for (uint16_t i = 0; s->items && i < s->items->list.part_count; i++)
            numbers_remove(&n, &s->items->list.parts[i]);
    }
    for (uint16_t i = 0; i < t->signal_count; i++)
        numbers_remove(&n, &t->signals[i].data);
    ret->dropped_payloads = n.list;
    ret->dropped_payload_count = n.count;
}

/* Gives a step that rests its text, unless it has that, or its group, already. It is written behind
 * the document that is to come. */
static void keep_text(struct encoder *en, const struct workflow *w, uint16_t i)
{
    struct step *s = &en->task->steps[i];
    size_t from = en->b->len;

    en->kept->texts[i].changed = false;
    if (kept_is_as(en->kept, i, s))
        return;
    kept_forget(en->kept, i);
    if (!kept_is_worth(s))
        return;
    write_step(en, w, i);
    struct slice text = {en->b->ptr + from, en->b->len - from};
    if (text.ptr[0] == ',')
        text = (struct slice){text.ptr + 1, text.len - 1};
    kept_set(en->kept, i, s, text);
    en->b->len = from;
}

/* What an ended task has in its document stays there: it is not written again. */
static bool is_over(const struct task *t)
{
    return task_state_is_end(t->state) || t->state == TASK_ERROR;
}

/* To look at all steps each time is what a long task would cost. So that nobody forgets to say what
 * he changed, all are looked at in one of so many revisions. */
enum { LOOK_AT_ALL = 16 };

static bool looks_at_all(const struct encoder *en)
{
    return en->task->revision % LOOK_AT_ALL == 0 || is_over(en->task);
}

static void keep_texts(struct encoder *en, const struct workflow *w)
{
    struct encoded *kept = en->kept;
    bool look = looks_at_all(en);

    kept_set_input(kept, &en->task->input);
    for (uint16_t i = 0; i < w->step_count; i++)
        if (kept->texts[i].changed)
            keep_text(en, w, i);
        else
            ASSERT(!look || (!kept->texts[i].text.ptr && !kept->texts[i].group)
                   || kept_is_as(kept, i, &en->task->steps[i]));
}

/* Closes the group that was begun there: to the payload table. Its steps are those up to `end` that
 * have the number which it will have. */
static void close_group(struct encoder *en, size_t from)
{
    if (en->b->len == from)
        return;
    json_close(en->b, '}');
    (void)payload_add(en, (struct slice){en->b->ptr + from, en->b->len - from});
    en->b->len = from;
}

/* All that rests, and does not yet, leaves the document together. */
static void put_groups(struct encoder *en)
{
    size_t from = en->b->len;

    for (uint16_t i = 0; i < en->task->step_count; i++) {
        struct kept_text *k = &en->kept->texts[i];
        char key[8];
        if (!k->text.ptr || k->group)
            continue;
        if (en->b->len == from)
            buf_byte(en->b, '{'); /* not json_open: what stands before it is another document */
        (void)snprintf(key, sizeof key, "%u", i); /* always fits */
        json_key(en->b, key);
        json_raw(en->b, k->text);
        k->group = en->task->payload_count + 1;
        if (en->b->len - from >= GROUP_MAX)
            close_group(en, from);
    }
    close_group(en, from);
}

static void put_step(struct encoder *en, const struct workflow *w, uint16_t i)
{
    const struct kept_text *k = en->kept ? &en->kept->texts[i] : NULL;

    if (k && k->group)
        json_number(en->b, k->group);
    else if (k && k->text.ptr)
        json_raw(en->b, k->text);
    else
        write_step(en, w, i);
}

/* It is written at each change: no format is read, and nothing looks for what has to be escaped. */
static void put_content(struct buf *b, const struct content *c)
{
    char text[16];

    if (c->hash != 0) {
        for (int i = 0; i < 16; i++)
            text[i] = "0123456789abcdef"[c->hash >> (60 - 4 * i) & 15];
        json_member_plain(b, "content", (struct slice){text, sizeof text});
    }
    if (c->sha256.ptr)
        json_member_plain(b, "sha256", c->sha256);
}

/* Inline if short: a task may have a thousand, and its document is written at each change. */
static void put_signal_data(struct encoder *en, struct value *v)
{
    if (!v->payload && v->json.len > SIGNAL_INLINE_MAX)
        v->payload = payload_add(en, v->json);
    put_value(en, "data", "data_payload", v);
}

static void put_signal(struct encoder *en, const struct workflow *w, struct signal *s)
{
    struct buf *b = en->b;

    json_open(b, '{');
    json_member_text_if(b, "key", s->key);
    json_member_text_if(b, "name", s->name);
    json_member_plain(b, "state", slice_of(signal_state_text(s->state)));
    if (s->step >= 0)
        json_member_text_if(b, "step", w->steps[s->step].name);
    put_number(b, "at", s->at);
    json_member_text_if(b, "content", s->content);
    put_signal_data(en, &s->data);
    json_close(b, '}');
}

static void put_signals(struct encoder *en, const struct workflow *w)
{
    if (en->task->signal_count == 0)
        return;
    json_key(en->b, "signals");
    json_open(en->b, '[');
    for (uint16_t i = 0; i < en->task->signal_count; i++)
        put_signal(en, w, &en->task->signals[i]);
    json_close(en->b, ']');
}

static void put_votes(struct encoder *en, const struct workflow *w)
{
    struct buf *b = en->b;

    if (en->task->vote_count == 0)
        return;
    json_key(b, "votes");
    json_open(b, '[');
    for (uint16_t i = 0; i < en->task->vote_count; i++) {
        const struct vote *v = &en->task->votes[i];
        json_open(b, '{');
        json_member_text_if(b, "step", w->steps[v->step].name);
        json_member_text_if(b, "person", v->person);
        put_true(b, "agrees", v->agrees);
        json_member_text_if(b, "comment", v->comment);
        put_number(b, "at", v->at);
        json_close(b, '}');
    }
    json_close(b, ']');
}

/* Whose child it is, but for the ids, which are columns. */
static void put_parent(struct buf *b, const struct task *t)
{
    json_key(b, "parent");
    json_open(b, '{');
    json_member_text_if(b, "step", t->parent_step);
    put_number(b, "number", t->parent_number);
    if (t->asked != WISH_NONE)
        json_member_plain(b, "asked", slice_of(child_wish_text(t->asked)));
    json_close(b, '}');
}

static void put_doc(struct encoder *en, const struct workflow *w)
{
    struct task *t = en->task;
    struct buf *b = en->b;

    buf_byte(b, '{'); /* not json_open: whatever stands before it is none of its array */
    put_true(b, "grouped", en->kept && kept_has_group(en->kept)); /* first: see doc_is_grouped */
    put_value(en, "input", "input_payload", &t->input);
    put_value(en, "output", "output_payload", &t->output);
    put_note(b, &t->error);
    put_cause(b, w, &t->cause);
    if (t->stop != STOP_NONE)
        json_member_plain(b, "stop", slice_of(stop_text(t->stop)));
    put_content(b, &t->content);
    put_true(b, "deadline_passed", t->deadline_passed);
    put_number(b, "undo_complete_by", t->undo_complete_by);
    json_member_text_if(b, "closed_reason", t->closed_reason);
    json_member_text_if(b, "traceparent", t->trace);
    json_member_text_if(b, "owner", t->owner);
    json_member_text_if(b, "submitter", t->submitter);
    if (t->parent_step.ptr || t->parent_number != 0 || t->asked != WISH_NONE)
        put_parent(b, t);
    json_member_raw_if(b, "family", t->family);
    json_key(b, "steps");
    json_open(b, '[');
    for (uint16_t i = 0; i < t->step_count; i++)
        put_step(en, w, i);
    json_close(b, ']');
    put_signals(en, w);
    put_votes(en, w);
    put_number(b, "payloads", t->payload_count); /* last: by now all numbers are given out */
    json_close(b, '}');
}

/* ---- who is asked ---- */

static void add_groups(struct buf *b, const struct slice *groups, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++) {
        const struct task_row so_far = {.asked = buf_view(b)};
        if (row_asks(&so_far, groups[i]))
            continue;
        if (b->len == 0)
            buf_byte(b, ',');
        buf_slice(b, groups[i]);
        buf_byte(b, ',');
    }
}

/* Also those to whom it escalates later. */
static struct slice asked_of(const struct workflow *w, const struct task *t, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct approve_spec *spec = &w->steps[i].approve;
        if (!step_is_asking(w, t, i))
            continue;
        add_groups(&b, spec->by, spec->by_count);
        add_groups(&b, spec->to, spec->to_count);
    }
    return b.len > 0 ? arena_copy(a, buf_view(&b)) : SLICE_NONE;
}

void task_encode(const struct workflow *w, struct task *t, struct arena *a, struct buf *doc,
                 struct task_row *ret)
{
    task_encode_again(w, t, NULL, a, doc, ret);
}

void task_encode_again(const struct workflow *w, struct task *t, struct encoded *kept,
                       struct arena *a, struct buf *doc, struct task_row *ret)
{
    struct encoder en = {.b = doc, .task = t, .arena = a, .kept = kept};
    struct task_row items = {0};
    size_t at = doc->len;

    ASSERT(!looks_at_all(&en) || task_valid(w, t)); /* decide() has looked at what it changed */
    number_if_long(&en, &t->input);                 /* before its steps, which may have the same */
    if (t->slot_count > 0)
        put_item_rows(&en, w, &items);
    if (items.item_count > 0)
        drop_payloads(&en, &items);
    if (kept)
        keep_texts(&en, w);
    if (kept && (kept->regroup || !is_over(t)) && kept_size(kept) >= GROUP_MIN)
        put_groups(&en);
    if (kept)
        kept->regroup = false;
    put_doc(&en, w);
    *ret = (struct task_row){
        .id = t->id,
        .workflow = w->name,
        .version = w->version,
        .revision = t->revision,
        .state = t->state,
        .direction = t->direction,
        .priority = t->priority,
        .locked_by = t->locked_by,
        .complete_by = t->complete_by,
        .not_before = t->not_before,
        .failure_count = t->failure_count,
        .submitted_at = t->submitted_at,
        .started_at = t->started_at,
        .ended_at = t->ended_at,
        .paused_at = t->paused_at,
        .closed_at = t->closed_at,
        .lock = t->lock,
        .lock_max = t->lock.ptr ? w->lock.max : 0,
        .lock_mode = t->lock_mode,
        .lock_since = t->lock_since,
        .asked = asked_of(w, t, a),
        .parent = t->parent,
        .root = t->root,
        .reply_to = t->reply_to,
        .tags = t->tags,
        .doc = {doc->ptr + at, doc->len - at},
        .payloads = en.payloads,
        .payload_count = en.count,
        .items = items.items,
        .item_count = items.item_count,
        .dropped_payloads = items.dropped_payloads,
        .dropped_payload_count = items.dropped_payload_count,
    };
}
