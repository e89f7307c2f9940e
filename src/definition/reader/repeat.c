/* Reads `repeat` of a step: the condition that ends its rounds (scope.c evaluates it), and how far
 * they are apart. Bounds their number. */
#include "definition/reader/repeat.h"

#include "base/when.h"
#include "core/repeat.h"

static void read_until(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct repeat_draft *d = target;

    reading_of(r)->rounds = ROUNDS_ANSWER;
    read_condition(r, j, path, &d->until);
    reading_of(r)->rounds = ROUNDS_NUMBER;
}

static void read_max_every(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    struct repeat_draft *d = target;

    d->max_every = j;
    read_length(r, j, path, &d->rule.max_every_ms);
}

/* Fields that are valid separately may contradict each other. */
static void check_together(struct reader *r, const struct json *j, const struct path *path,
                           struct repeat_draft *d)
{
    struct path max_every = {path, SLICE("max_every"), 0};
    struct path at_for = {path, SLICE("for"), 0};

    if (d->rule.every_ms == 0 || d->rule.for_ms == 0) /* reported before */
        return;
    if (!d->max_every)
        d->rule.max_every_ms = INT64_MAX;
    if (d->rule.max_every_ms == 0)
        return;
    if (d->rule.max_every_ms < d->rule.every_ms)
        mistake_in(r, &max_every, d->max_every, "at least as long as every");
    else if (repeat_rounds(&d->rule) > ROUNDS_MAX)
        mistake_at(r, &at_for, json_get(j, "for")->at, "too many rounds",
                   "%d of them at most: a longer every or a shorter for", ROUNDS_MAX);
}

void read_repeat(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        REQUIRED("until", read_until, 0),
        REQUIRED("every", read_length, offsetof(struct repeat_draft, rule.every_ms)),
        FIELD("factor", read_growth, offsetof(struct repeat_draft, rule.factor_milli)),
        FIELD("max_every", read_max_every, 0),
        REQUIRED("for", read_length, offsetof(struct repeat_draft, rule.for_ms)),
    };
    struct repeat_draft *d = target;

    *d = (struct repeat_draft){.json = j, .rule = {.factor_milli = 1000}};
    read_object(r, j, path, fields, COUNT_OF(fields), d);
    if (j->type == JSON_OBJECT)
        check_together(r, j, path, d);
}

void check_repeat_undo(struct reader *r, const struct path *step, const struct json *repeat,
                       const struct json *undo, bool is_none)
{
    struct path at_repeat = {step, SLICE("repeat"), 0};
    struct path at_undo = {step, SLICE("undo"), 0};

    if (is_none)
        return;
    if (undo)
        mistake_in(r, &at_undo, undo, "undo: none beside repeat");
    else
        mistake_at(r, &at_repeat, repeat->at, "repeat of a pivot",
                   "undo: none beside repeat: a repeated step changes nothing");
}
