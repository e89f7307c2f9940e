/* Reads `for_each` of a step: the list, how many items are at work at a time, and what the failure
 * of one means. Makes the slots in which they are at work (core/workflow.h). scope.c evaluates the
 * list. */
#include "definition/reader/each.h"

#include "definition/template/template.h"

enum { CONCURRENCY_DEFAULT = 10, WHOLE_PERCENT = 100 };

/* A string is a list only if it is nothing but an expression. */
void read_for_each(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct each_draft *d = target;
    size_t before = r->mistakes->count;
    enum seen_of_rounds rounds = reading_of(r)->rounds;

    d->list = j;
    reading_of(r)->items = ITEM_BARRED;
    reading_of(r)->rounds = ROUNDS_NONE;
    read_template(r, j, path, &d->items);
    reading_of(r)->items = ITEM_SEEN;
    reading_of(r)->rounds = rounds;
    if (r->mistakes->count > before)
        return;
    if (j->type == JSON_STRING ? template_is_text(d->items)
                               : j->type != JSON_ARRAY && j->type != JSON_OBJECT)
        mistake_in(r, path, j, "a list, or an expression that gives one: ${ .input.lines }");
}

void read_step_condition(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct reading *g = reading_of(r);
    enum seen_of_rounds rounds = g->rounds;
    enum seen_of_items items = g->items;

    g->rounds = items == ITEM_NONE ? rounds : ROUNDS_NONE;
    g->items = items == ITEM_NONE ? items : ITEM_BARRED;
    read_condition(r, j, path, target);
    g->rounds = rounds;
    g->items = items;
}

void read_max_items(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct each_draft *d = target;
    int64_t count = 0;

    d->max_items = j;
    if (read_whole(r, j, path, 1, ITEMS_MAX, &count))
        d->rule.max_items = (uint32_t)count;
}

void read_concurrency(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct each_draft *d = target;
    int64_t count = 0;

    d->concurrency = j;
    if (read_whole(r, j, path, 1, ITEMS_AT_WORK_MAX, &count))
        d->rule.concurrency = (uint16_t)count;
}

/* "2%", "0.25%": hundredths of a percent, above 0 and at most 100 percent. False: it is none. */
static bool percentage_parse(struct slice text, uint16_t *ret)
{
    uint32_t hundredths = 0;
    size_t digits = 0;
    size_t decimals = 0;
    bool has_point = false;

    if (text.len < 2 || text.ptr[text.len - 1] != '%')
        return false;
    for (size_t i = 0; i + 1 < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.' && !has_point && digits > 0) {
            has_point = true;
            continue;
        }
        if (c < '0' || c > '9' || decimals == 2 || hundredths > 100 * WHOLE_PERCENT)
            return false;
        hundredths = hundredths * 10 + (uint32_t)(c - '0');
        digits++;
        decimals += has_point;
    }
    if (digits == 0 || (has_point && decimals == 0))
        return false;
    for (; decimals < 2; decimals++)
        hundredths *= 10;
    *ret = (uint16_t)hundredths;
    return hundredths > 0 && hundredths <= 100 * WHOLE_PERCENT;
}

static void read_tolerate(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct each_draft *d = target;
    uint16_t share = 0;

    if (j->type == JSON_STRING && percentage_parse(j->text, &share))
        d->rule.tolerate = share;
    else
        mistake_in(r, path, j,
                   "a percentage above 0 and at most 100%%, with two decimals at most: 5%%");
}

void read_on_item_failure(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    static const struct field fields[] = {REQUIRED("tolerate", read_tolerate, 0)};
    struct each_draft *d = target;

    d->on_item_failure = j;
    if (j->type == JSON_STRING && slice_is(j->text, "continue"))
        d->rule.goes_on = true;
    else if (j->type == JSON_OBJECT)
        read_object(r, j, path, fields, COUNT_OF(fields), d);
    else if (j->type != JSON_STRING || !slice_is(j->text, "stop"))
        mistake_in(r, path, j, "stop, continue or {tolerate: 5%%}");
}

static void refuse_alone(struct reader *r, const struct path *path, const char *key,
                         const struct json *j)
{
    struct path at = {path, slice_of(key), 0};

    if (j)
        mistake_in(r, &at, j, "for_each beside it: it says something of items");
}

/* A step beyond that could not get its slots. */
static void count_slots(struct reader *r, const struct path *path, const struct each_draft *d,
                        const struct each_spec *rule)
{
    struct reading *in = reading_of(r);
    struct path at = {path, SLICE("concurrency"), 0};
    bool fitted = in->items_at_work <= ITEMS_AT_WORK_ALL_MAX;

    in->items_at_work += rule->concurrency;
    if (in->items_at_work <= ITEMS_AT_WORK_ALL_MAX)
        in->definition->workflow.slot_count += each_slots(rule->concurrency);
    else if (fitted)
        mistake_at(r, &at, (d->concurrency ? d->concurrency : d->list)->at, "too many items",
                   "%d of them at work at most, in all steps together: a lower concurrency",
                   ITEMS_AT_WORK_ALL_MAX);
}

void settle_each(struct reader *r, const struct json *step, const struct path *path,
                 const struct each_draft *d, struct workflow_step *s)
{
    struct path at_each = {path, SLICE("for_each"), 0};
    struct path at_max = {path, SLICE("max_items"), 0};

    if (!d->list) {
        refuse_alone(r, path, "max_items", d->max_items);
        refuse_alone(r, path, "concurrency", d->concurrency);
        refuse_alone(r, path, "on_item_failure", d->on_item_failure);
        return;
    }
    if (s->on_undo)
        mistake_in(r, &at_each, d->list, "no for_each: a step of on_undo is requested once");
    if (!d->max_items)
        mistake_at(r, &at_max, step->at, "nothing",
                   "a key \"max_items\": a list that is longer fails the step");
    s->kind = KIND_EACH;
    s->each = d->rule;
    if (s->each.concurrency == 0)
        s->each.concurrency = CONCURRENCY_DEFAULT;
    s->each.step = reading_of(r)->step;
    s->each.slot_count = each_slots(s->each.concurrency);
    count_slots(r, path, d, &s->each);
}

/* What is evaluated for an item is in its slot; `if` and the list stay with the step. */
static struct step_templates move_to_slot(struct step_templates *step)
{
    struct step_templates slot = *step;

    slot.condition = NULL;
    slot.items = NULL;
    *step = (struct step_templates){.condition = step->condition,
                                    .items = step->items,
                                    .child_at = step->child_at};
    return slot;
}

void keep_slots(struct reader *r, struct workflow_step *steps, struct step_templates *templates)
{
    uint16_t step_count = reading_of(r)->step_count;
    uint16_t at = step_count;

    if (reading_of(r)->items_at_work > ITEMS_AT_WORK_ALL_MAX)
        return; /* reported before */
    for (uint16_t i = 0; i < step_count; i++) {
        struct workflow_step *s = &steps[i];
        if (s->kind != KIND_EACH)
            continue;
        struct workflow_step slot = *s;
        struct step_templates of_slot = move_to_slot(&templates[i]);
        slot.kind = s->child.workflow.ptr ? KIND_TASK : KIND_CALL;
        slot.each.slot_count = 0;
        s->repeat = (struct repeat_rule){0};
        if (slot.kind == KIND_TASK)
            reading_of(r)->definition->workflow.child_step_count += s->each.slot_count;
        s->each.slots_at = slot.each.slots_at = at;
        for (uint16_t k = 0; k < s->each.slot_count; k++, at++) {
            steps[at] = slot;
            templates[at] = of_slot;
        }
    }
}
