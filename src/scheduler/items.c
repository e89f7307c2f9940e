/* Items of steps with for_each that are at rest: reads their rows for the task that needs them, and
 * brings those back that are to be undone. core/items.c says which; a job reads (job.c). */

#include "core/items.h"
#include "core/undo.h"

#include "scheduler/job.h"

enum {
    ERRORS_MAX = 100,         /* of items, that an expression sees */
    READS_OF_STEP = 4,        /* at most */
    READS_MAX = 8,            /* of one job */
    ROWS_BYTES_MAX = 4 << 20, /* of one read */
    REST_MAX = 32,            /* of one read for a command: others may be for those after it */
    REST_BYTES_MAX = 1 << 20,
    RETRY_MS = 1000,
    OUTPUTS_BYTES_MAX = 16 << 20, /* of the array that an expression sees */
};

/* What could not be read is read later. */
static void want_read(struct scheduler *s, struct live *l, uint16_t step)
{
    int64_t at = l->items[step].retry_at;

    l->awaits_items = true;
    if (at > scheduler_now(s))
        l->items_at = earlier(l->items_at, at);
    else if (!link_is_in(&l->item_link))
        list_push(&s->tasks.item_reads, &l->item_link);
}

/* What is known of the present list of a step. */
static struct live_items *known_of(struct live *l, uint16_t step)
{
    struct live_items *in = &l->items[step];
    uint32_t generation = l->task.steps[step].generation;

    if (in->generation != generation)
        *in = (struct live_items){.generation = generation, .asked = in->asked, .needs = in->needs};
    return in;
}

/* ---- items to be undone ---- */

/* The next free slot of the step, from *unit on. */
static bool next_free(const struct live *l, const struct workflow_step *ws, uint16_t *unit)
{
    uint16_t end = (uint16_t)(ws->each.slots_at + ws->each.slot_count);

    while (*unit < end && l->task.steps[*unit].slot != SLOT_FREE)
        (*unit)++;
    return *unit < end;
}

static void bring_known(struct scheduler *s, struct live *l, uint16_t step)
{
    const struct workflow *w = &l->definition->workflow;
    struct live_items *known = known_of(l, step);
    uint16_t unit = w->steps[step].each.slots_at;

    /* A later item has to be undone since they were read: it comes first. */
    if (l->task.steps[step].items->undo_below > known->below)
        known->count = known->next = 0;
    while (known->next < known->count && items_to_bring(w, &l->task, step) > 0
           && next_free(l, &w->steps[step], &unit)) {
        const struct event bring = {.kind = EVENT_BRING,
                                    .step = unit,
                                    .row = &known->rows[known->next++]};
        if (bring.row->item >= l->task.steps[step].items->undo_below)
            continue;
        if (live_decide(&s->tasks, l, &bring) == ANSWER_ACCEPTED)
            family_told_item(l, unit, bring.row->child);
        known->below = l->task.steps[step].items->undo_below;
    }
}

static uint32_t known_count(const struct live_items *known)
{
    return (uint32_t)(known->count - known->next);
}

/* The rows that are known, and those to be read, are next to each other: from which number down. */
static uint32_t unknown_below(const struct live *l, uint16_t step)
{
    const struct live_items *known = &l->items[step];

    return known_count(known) > 0 ? known->rows[known->count - 1].item
                                  : l->task.steps[step].items->undo_below;
}

/* Rows are wanted now; or will be once those that run are undone, and then twice those of these:
 * they are read while the store has nothing else to do, or at last beside a commit (may_wait). So
 * no item waits for its row. If nothing runs, or the task is paused, it may be for another node. */
static bool rows_are_wanted(const struct live *l, uint16_t step)
{
    const struct workflow *w = &l->definition->workflow;
    const struct items *in = l->task.steps[step].items;
    uint32_t known = known_count(&l->items[step]);

    if (known == 0)
        return items_to_bring(w, &l->task, step) > 0;
    return !l->items[step].enough && in->tally.open > 0 && l->task.paused_at == 0
           && known < 2U * w->steps[step].each.concurrency && known < in->to_undo;
}

void items_bring(struct scheduler *s, struct live *l)
{
    const struct workflow *w = &l->definition->workflow;

    if (l->task.direction != DIRECTION_UNDO)
        return;
    for (uint16_t i = 0; i < w->step_count; i++) {
        if (w->steps[i].kind != KIND_EACH)
            continue;
        bring_known(s, l, i);
        if (!rows_are_wanted(l, i))
            continue;
        known_of(l, i)->reads_rows = true;
        want_read(s, l, i);
    }
}

bool items_are_wanted_back(const struct live *l)
{
    const struct workflow *w = &l->definition->workflow;

    for (uint16_t i = 0; w->slot_count > 0 && i < w->step_count; i++)
        if (w->steps[i].kind == KIND_EACH && items_to_bring(w, &l->task, i) > 0)
            return true;
    return false;
}

bool items_will_be_undone(const struct live *l)
{
    const struct workflow *w = &l->definition->workflow;
    const struct task *t = &l->task;

    if (t->direction != DIRECTION_UNDO || t->stop != STOP_NONE || t->paused_at != 0)
        return false;
    for (uint16_t u = t->step_count; u < task_unit_count(t); u++)
        if (t->steps[u].slot == SLOT_RESTING && step_needs_undo(&w->steps[u], &t->steps[u]))
            return true;
    return false;
}

/* ---- for commands ---- */

void items_want_row(struct scheduler *s, struct live *l, uint16_t step, uint32_t number)
{
    l->items[step].reads_rest = true;
    l->items[step].rest_from = number;
    l->awaits_items = true;
    if (!link_is_in(&l->item_link))
        list_push(&s->tasks.item_reads, &l->item_link);
}

void items_forget_rows(struct live *l, uint16_t step)
{
    l->items[step].count = l->items[step].next = 0;
}

/* ---- what expressions need ---- */

static void add_needs(struct live_items *in, const struct definition *d, int unit, uint16_t each)
{
    for (int back = 0; back < 2; back++) {
        struct items_needed n =
            definition_needs_items(d, unit, back ? DIRECTION_UNDO : DIRECTION_FORWARD, each);
        in->needs.output |= n.output;
        in->needs.errors |= n.errors;
    }
}

/* What any expression needs, also one that was evaluated before. */
static struct items_needed needs_of(struct live *l, uint16_t each)
{
    const struct definition *d = l->definition;
    struct live_items *in = known_of(l, each);

    for (int i = -1; !in->asked && i < d->workflow.step_count; i++) {
        add_needs(in, d, i, each);
        if (i >= 0 && d->workflow.steps[i].kind == KIND_EACH) /* all its slots need the same */
            add_needs(in, d, d->workflow.steps[i].each.slots_at, each);
    }
    in->asked = true;
    return in->needs;
}

/* A step whose array of outputs is not known here. */
static bool lacks_outputs(struct live *l, uint16_t step)
{
    const struct value *output = &l->task.steps[step].output;

    return output->payload == ITEMS_OUTPUT && output->json.len == 0
           && !known_of(l, step)->outputs_too_big;
}

/* The same for its errors. */
static bool lacks_errors(struct live *l, uint16_t step)
{
    return step_has_ended(&l->definition->workflow.steps[step], &l->task.steps[step])
           && !known_of(l, step)->errors.ptr;
}

/* What was to be read for the task as it was; the caller finds out anew what is. Commands still
 * wait for what they need. */
static void forget_reads(struct live *l, const struct workflow *w)
{
    bool rest = false;

    l->items_at = 0;
    for (uint16_t i = 0; i < w->step_count; i++) {
        l->items[i].reads_rows = l->items[i].reads_outputs = l->items[i].reads_errors = false;
        rest |= l->items[i].reads_rest;
    }
    l->awaits_items = rest;
    if (!rest)
        link_remove(&l->item_link);
}

bool items_await_outputs(struct scheduler *s, struct live *l)
{
    const struct workflow *w = &l->definition->workflow;
    bool any = false;

    forget_reads(l, w);
    for (uint16_t i = 0; i < w->step_count; i++) {
        if (w->steps[i].kind != KIND_EACH || (!lacks_outputs(l, i) && !lacks_errors(l, i)))
            continue;
        struct items_needed n = needs_of(l, i);
        l->items[i].reads_outputs = n.output && lacks_outputs(l, i);
        l->items[i].reads_errors = n.errors && lacks_errors(l, i);
        if (!l->items[i].reads_outputs && !l->items[i].reads_errors)
            continue;
        any = true;
        if (!link_is_in(&l->dirty_link)) /* once the rows of the last items are stored */
            want_read(s, l, i);
    }
    return any;
}

/* ---- reads ---- */

static void gather_rows(struct job *j, const struct live *l, uint16_t step, struct item_read read)
{
    read.task = l->id;
    read.step = l->definition->workflow.steps[step].name;
    read.generation = l->task.steps[step].generation;
    j->items[j->item_count++] = (struct item_reading){
        .task = arena_copy(&j->arena, l->id),
        .step = step,
        .rows = read,
        .workflow = read.order == ITEMS_TO_UNDO ? &l->definition->workflow : NULL,
    };
}

/* How many rows below that number say at most that they are to be undone: those that the list
 * counts and that are not known yet, and perhaps older ones of items in slots. */
static uint32_t rows_left(const struct live *l, uint16_t step, uint32_t below)
{
    const struct each_spec *each = &l->definition->workflow.steps[step].each;
    uint32_t to_undo = l->task.steps[step].items->to_undo;
    uint32_t count = to_undo - min_u32(to_undo, known_count(&l->items[step]));

    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        count += l->task.steps[u].slot != SLOT_FREE && l->task.steps[u].item < below;
    return count;
}

/* If a late result says that one item of ten thousand is to be undone after all, the others are not
 * read. */
static struct item_read read_to_undo(const struct scheduler *s, const struct live *l, uint16_t step)
{
    uint32_t below = unknown_below(l, step);
    uint32_t left = rows_left(l, step, below);

    return (struct item_read){.order = ITEMS_TO_UNDO,
                              .from = below,
                              .limit = left < s->config.rows_max ? left : s->config.rows_max,
                              .is_all = left <= s->config.rows_max,
                              .bytes_max = ROWS_BYTES_MAX};
}

static struct item_read read_failed(void)
{
    return (
        struct item_read){.order = ITEMS_FAILED, .limit = ERRORS_MAX, .bytes_max = ROWS_BYTES_MAX};
}

static struct item_read read_for_command(const struct live *l, uint16_t step)
{
    return (struct item_read){.order = ITEMS_UP,
                              .from = l->items[step].rest_from,
                              .limit = REST_MAX,
                              .bytes_max = REST_BYTES_MAX};
}

static void gather_outputs(struct job *j, const struct live *l, uint16_t step)
{
    const struct step *st = &l->task.steps[step];

    j->items[j->item_count++] = (struct item_reading){
        .task = arena_copy(&j->arena, l->id),
        .step = step,
        .outputs = true,
        .all = {.task = l->id,
                .step = l->definition->workflow.steps[step].name,
                .generation = st->generation,
                .item_count = st->items->list.count,
                .bytes_max = OUTPUTS_BYTES_MAX},
    };
}

/* Their texts are copied: the task may leave memory while the job is at the store. */
static void keep_texts(struct job *j, struct item_reading *r)
{
    r->rows.task = r->all.task = r->task;
    r->rows.step = arena_copy(&j->arena, r->rows.step);
    r->all.step = arena_copy(&j->arena, r->all.step);
}

/* One array may be long: other jobs wait meanwhile. */
static bool reads_outputs(const struct job *j)
{
    return j->item_count > 0 && j->items[j->item_count - 1].outputs;
}

static void gather_of(struct scheduler *s, struct job *j, struct live *l)
{
    for (uint16_t i = 0; i < l->task.step_count; i++) {
        size_t from = j->item_count;
        if (j->item_count + READS_OF_STEP > READS_MAX || reads_outputs(j))
            return;
        if (l->items[i].reads_rows)
            gather_rows(j, l, i, read_to_undo(s, l, i));
        if (l->items[i].reads_errors)
            gather_rows(j, l, i, read_failed());
        if (l->items[i].reads_rest)
            gather_rows(j, l, i, read_for_command(l, i));
        if (l->items[i].reads_outputs)
            gather_outputs(j, l, i);
        for (size_t n = from; n < j->item_count; n++)
            keep_texts(j, &j->items[n]);
        l->items[i].reads_rows = l->items[i].reads_outputs = l->items[i].reads_errors = false;
        l->items[i].reads_rest = false;
    }
    link_remove(&l->item_link);
}

/* Whether all that it wants are rows for which no place waits yet. */
static bool may_wait(const struct live *l)
{
    const struct workflow *w = &l->definition->workflow;

    for (uint16_t i = 0; i < l->task.step_count; i++) {
        const struct live_items *in = &l->items[i];
        if (in->reads_outputs || in->reads_errors || in->reads_rest
            || (in->reads_rows && known_count(in) < w->steps[i].each.concurrency))
            return false;
    }
    return true;
}

void items_gather(struct scheduler *s, struct job *j)
{
    struct link later;

    if (list_empty(&s->tasks.item_reads))
        return;
    list_init(&later);
    j->items = arena_alloc(&j->arena, READS_MAX * sizeof *j->items);
    while (!list_empty(&s->tasks.item_reads) && j->item_count + READS_OF_STEP <= READS_MAX
           && !reads_outputs(j)) {
        struct live *l = CONTAINER_OF(list_first(&s->tasks.item_reads), struct live, item_link);
        if (j->batch.change_count == 0 || !may_wait(l)) {
            gather_of(s, j, l);
            continue;
        }
        link_remove(&l->item_link);
        list_push(&later, &l->item_link);
    }
    list_take_all(&s->tasks.item_reads, &later);
}

/* ---- what was read ---- */

/* It cannot go on without them. It is tried again, but not at once. */
void items_unreadable(struct scheduler *s, struct live *l, uint16_t step, const char *story)
{
    uint64_t left_out = 0;

    l->items[step].retry_at = scheduler_now(s) + RETRY_MS;
    if (log_burst_has_room(&s->unreadable, scheduler_now(s), &left_out))
        log_line(LOG_ERROR,
                 "event=items_unreadable task=%.*s step=%.*s reason=\"%s\" left_out=%" PRIu64,
                 SLICE_ARG(l->id), SLICE_ARG(l->definition->workflow.steps[step].name), story,
                 left_out);
}

static bool rests_to_be_undone(const struct live *l, uint16_t step)
{
    const struct workflow *w = &l->definition->workflow;
    const struct each_spec *each = &w->steps[step].each;

    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        if (l->task.steps[u].slot == SLOT_RESTING
            && step_needs_undo(&w->steps[u], &l->task.steps[u]))
            return true;
    return false;
}

/* Room for so many more behind those that are known. */
static void rows_grow(struct live *l, struct live_items *known, size_t more)
{
    size_t left = known_count(known);
    struct step *rows = arena_alloc(&l->arena, (left + more + 1) * sizeof *rows);

    if (left > 0)
        memcpy(rows, known->rows + known->next, left * sizeof *rows);
    known->rows = rows;
    known->count = left;
    known->next = 0;
}

static void landed_rows(struct scheduler *s, struct live *l, struct item_reading *r)
{
    const struct workflow *w = &l->definition->workflow;
    struct live_items *known = known_of(l, r->step);

    if (r->rows.from != unknown_below(l, r->step))
        return; /* other rows are wanted by now */
    if (known_count(known) == 0)
        known->below = l->task.steps[r->step].items->undo_below;
    if (rests_to_be_undone(l, r->step)) {
        known->count = known->next = 0;
        return; /* its row is not stored yet: they are read again when it is */
    }
    known->enough = r->rows.more && r->rows.count < r->rows.limit;
    rows_grow(l, known, r->step_count);
    arena_take(&l->arena, &r->decoded);
    size_t before = known->count;
    for (size_t i = 0; i < r->step_count; i++)
        if (items_slot(w, &l->task, r->step, r->steps[i].item) < 0) /* else its row is older */
            known->rows[known->count++] = r->steps[i];
    if (known->count > before)
        return; /* one that cannot be read, and those before it in the list, have to wait */
    known->enough = before > 0; /* nothing is read ahead until these are used */
    if (before == 0)
        items_unreadable(s, l, r->step,
                         r->step_count < r->rows.count ? r->error.text
                                                       : "rows of items are missing");
}

static void put_error(struct buf *b, const struct step *item)
{
    const struct fault_note error = step_forward_error(item);

    json_open(b, '{');
    json_member_number(b, "index", item->item);
    json_member_text(b, "code", error.code);
    json_member_text(b, "message", error.message);
    json_close(b, '}');
}

/* The failed item of the step in a slot with the least number from `from` on; NULL: there is none.
 * Its row, if it has one, may be older. */
static const struct step *next_failed(const struct live *l, uint16_t step, uint32_t from)
{
    const struct each_spec *each = &l->definition->workflow.steps[step].each;
    const struct step *next = NULL;

    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++) {
        const struct step *s = &l->task.steps[u];
        if (s->slot != SLOT_FREE && s->state == STEP_FAILED && s->item >= from
            && (!next || s->item < next->item))
            next = s;
    }
    return next;
}

/* Those of rows and of slots, by their numbers. One that cannot be read is left out. */
static void landed_errors(struct live *l, const struct item_reading *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    const struct step *slot = next_failed(l, r->step, 0);
    struct error e = {0};
    size_t count = 0;

    json_open(&b, '[');
    for (size_t i = 0; (i < r->rows.count || slot) && count < ERRORS_MAX; count++) {
        bool is_row = i < r->rows.count && (!slot || r->rows.rows[i].number < slot->item);
        struct step item;
        if (!is_row) {
            put_error(&b, slot);
            if (i < r->rows.count && r->rows.rows[i].number == slot->item)
                i++; /* the same item, as it was */
            slot = next_failed(l, r->step, slot->item + 1);
            continue;
        }
        if (item_decode(&l->definition->workflow, r->step, &r->rows.rows[i++], &a, &item, &e)
            == ERR_OK)
            put_error(&b, &item);
    }
    json_close(&b, ']');
    known_of(l, r->step)->errors = arena_copy(&l->arena, buf_view(&b));
}

/* Where the value at `at` ends, in the text of an array. */
static size_t value_end(struct slice json, size_t at)
{
    bool in_text = false;
    int depth = 0;

    for (; at < json.len; at++) {
        char c = json.ptr[at];
        if (in_text) {
            at += c == '\\';
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (depth == 0 && (c == ',' || c == ']')) {
            break;
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return at;
}

static bool any_rests(const struct live *l, uint16_t step)
{
    const struct each_spec *each = &l->definition->workflow.steps[step].each;

    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        if (l->task.steps[u].slot == SLOT_RESTING)
            return true;
    return false;
}

/* The array, with the outputs of items that came to rest since their rows were written. */
static struct slice with_resting(struct live *l, uint16_t step, struct slice json)
{
    CLEANUP(buf_fini) struct buf b = {0};
    uint32_t n = 0;

    if (!any_rests(l, step))
        return arena_copy(&l->arena, json);
    buf_byte(&b, '[');
    for (size_t at = 1; at < json.len && json.ptr[at - 1] != ']'; n++) {
        size_t end = value_end(json, at);
        int unit = items_slot(&l->definition->workflow, &l->task, step, n);
        struct slice output = unit >= 0 ? l->task.steps[unit].output.json : SLICE_NONE;
        if (n > 0)
            buf_byte(&b, ',');
        buf_slice(&b, output.ptr ? output : (struct slice){json.ptr + at, end - at});
        at = end + 1;
    }
    buf_byte(&b, ']');
    return arena_copy(&l->arena, buf_view(&b));
}

static void landed_outputs(struct live *l, const struct item_reading *r)
{
    struct value *output = &l->task.steps[r->step].output;

    if (r->err == ERR_TOO_BIG)
        known_of(l, r->step)->outputs_too_big = true;
    else if (output->payload == ITEMS_OUTPUT)
        output->json = with_resting(l, r->step, r->all.json);
}

static void landed(struct scheduler *s, struct live *l, struct item_reading *r)
{
    if (r->outputs && (r->err == ERR_OK || r->err == ERR_TOO_BIG))
        landed_outputs(l, r);
    else if (r->err != ERR_OK && !err_is_transient(r->err))
        items_unreadable(s, l, r->step, r->error.text);
    else if (r->err == ERR_OK && r->rows.order == ITEMS_FAILED)
        landed_errors(l, r);
    else if (r->err == ERR_OK && r->rows.order == ITEMS_TO_UNDO)
        landed_rows(s, l, r);
}

struct live *items_landed(struct scheduler *s, struct item_reading *r)
{
    struct live *l = live_find(&s->tasks, r->task);
    uint32_t generation = r->outputs ? r->all.generation : r->rows.generation;

    if (!l || !l->loaded || !l->items || r->step >= l->task.step_count)
        return NULL;
    l->awaits_items = link_is_in(&l->item_link);
    if (l->task.steps[r->step].items && l->task.steps[r->step].generation == generation)
        landed(s, l, r);
    return l->in_flight || l->reload ? NULL : l;
}
