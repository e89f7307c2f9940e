/* Commands for items at rest: late results, verbs of operators, and what children of items tell
 * that were left by hand. The row of the item is read and put into a slot, where the event finds it
 * like an item that has just come to rest (item_hold). The change that follows writes the row
 * again, and frees the slot. items.c reads and lands the rows; commands.c calls. */

#include "core/items.h"
#include "scheduler/job.h"

/* The item of its present list that a command is for. */
struct meant {
    uint16_t step;
    uint32_t number;
};

static bool by_token(const struct command *c, struct item_ref *ret, int *ret_step)
{
    struct token t;

    if (!token_parse(c->ask->result->token, &t)) /* it is checked when the command is decided */
        return false;
    *ret = t.item;
    *ret_step = t.step;
    return t.item.any;
}

/* False: it is for something else, or for an item of a former list. */
static bool item_meant(const struct live *l, const struct command *c, struct meant *ret)
{
    struct item_ref item = c->item;
    int step = c->event.step;
    bool named = false;

    if (c->kind == COMMAND_ASK && c->ask->kind == ASK_END)
        named = by_token(c, &item, &step);
    else if (c->kind == COMMAND_ASK && c->ask->step.ptr)
        named = live_item_named(l, c->ask->step, &item, &step);
    else if (c->kind == COMMAND_RESULT)
        named = item.any;
    if (!named || step < 0 || step >= l->task.step_count || !l->task.steps[step].items
        || item.generation != l->task.steps[step].generation)
        return false;
    *ret = (struct meant){(uint16_t)step, item.number};
    return item.number < l->task.steps[step].items->begun
           && items_slot(&l->definition->workflow, &l->task, ret->step, item.number) < 0;
}

/* NULL: it is not among those that were just read. */
static const struct item_row *row_read(const struct scheduler *s, const struct live *l,
                                       const struct meant *m)
{
    const struct item_reading *r = s->landing;

    if (!r || r->step != m->step || r->rows.generation != l->task.steps[m->step].generation)
        return NULL;
    for (size_t i = 0; i < r->rows.count; i++)
        if (r->rows.rows[i].number == m->number)
            return &r->rows.rows[i];
    return NULL;
}

/* The task keeps of a result what is news. A repeated answer must not cost memory each time. */
static bool changes(const struct command *c, const struct step *item)
{
    if (c->kind != COMMAND_RESULT)
        return true;
    const struct attempt *a = step_find_attempt(item, c->event.direction, c->event.attempt);
    return a ? a->outcome == OUTCOME_TIMED_OUT : item->dropped_count > 0;
}

/* The task in memory may be older than the rows: a node that has lost the task may not know it yet.
 * True: the task is read again. */
static bool reads_task_again(struct scheduler *s, struct live *l, const struct command *c)
{
    if (!s->config.shared || c->task_read)
        return false;
    live_reload(&s->tasks, l);
    return true;
}

static void cannot_be_read(struct scheduler *s, struct live *l, struct command *c,
                           const struct meant *m, const char *why)
{
    items_unreadable(s, l, m->step, why);
    c->unread = true;
}

/* False: the task in memory is older than the row, and is read again. */
static bool hold(struct scheduler *s, struct live *l, struct command *c, const struct meant *m,
                 const struct item_row *row)
{
    const struct workflow *w = &l->definition->workflow;
    uint16_t unit = (uint16_t)items_free_slot(w, &l->task, m->step);
    struct error e = {0};
    struct step item;

    enum err err = item_decode(w, m->step, row, &s->rest.arena, &item, &e);
    bool is_newer =
        err == ERR_OK && item.direction == DIRECTION_UNDO && l->task.direction == DIRECTION_FORWARD;
    if (is_newer && reads_task_again(s, l, c)) {
        arena_fini(&s->rest.arena);
        return false;
    }
    if (is_newer)
        err = error_set(&e, ERR_CORRUPT, "the row of an item is undone, and its task is not");
    if (err == ERR_OK && changes(c, &item))
        err = item_decode(w, m->step, row, &l->arena, &item, &e);
    if (err != ERR_OK) {
        arena_fini(&s->rest.arena);
        cannot_be_read(s, l, c, m, e.text);
        return true;
    }
    s->rest.unit = unit;
    s->rest.changed = false;
    s->rest.slot = l->task.steps[unit];
    item_hold(w, &l->task, unit, &item);
    family_told_item(l, unit, item.child);
    return true;
}

bool rest_reach(struct scheduler *s, struct live *l, struct command *c)
{
    struct meant m;

    ASSERT(s->rest.unit == 0);
    if (l->task.slot_count == 0 || !item_meant(l, c, &m))
        return true;
    if (items_free_slot(&l->definition->workflow, &l->task, m.step) < 0) {
        ASSERT(link_is_in(&l->dirty_link)); /* some are free when that is stored */
        return false;
    }
    const struct item_row *row = row_read(s, l, &m);
    if (row)
        return hold(s, l, c, &m, row);
    if (s->landing && s->landing->step == m.step && s->landing->rows.from == m.number) {
        if (reads_task_again(s, l, c))
            return false;
        cannot_be_read(s, l, c, &m, "the row of an item is missing");
        return true;
    }
    c->task_read |= s->just_read == l && !c->overtook;
    items_want_row(s, l, m.step, m.number);
    return false;
}

void rest_done(struct scheduler *s, struct live *l)
{
    uint16_t unit = s->rest.unit;

    if (unit == 0)
        return;
    const struct workflow *w = &l->definition->workflow;
    if (s->rest.changed) {
        items_forget_rows(l, unit_step(w, unit));
    } else {
        item_let_go(w, &l->task, unit);
        l->task.steps[unit] = s->rest.slot; /* with its memory of attempts */
        family_told_item(l, unit, (struct child){0});
    }
    s->rest.unit = 0;
    arena_fini(&s->rest.arena);
}
