/* Reads `signal` of a step: the names that it waits for, and the condition (`match`) that a signal
 * must meet, which is evaluated when one arrives (scope.c). Also `on_signal` of a definition. */
#include "definition/reader/signal_step.h"

#include "core/task.h"

static bool has_name(const struct signal_names *n, struct slice name)
{
    for (uint16_t i = 0; i < n->count; i++)
        if (slice_eq(n->list[i], name))
            return true;
    return false;
}

static void add_name(struct reader *r, const struct json *j, const struct path *path,
                     struct signal_names *n)
{
    struct slice name = SLICE_NONE;

    read_name(r, j, path, &name);
    if (!name.ptr)
        return;
    if (has_name(n, name))
        mistake_in(r, path, j, "each name once");
    else
        n->list[n->count++] = name;
}

static void read_signal_names(struct reader *r, const struct json *j, const struct path *path,
                              void *target)
{
    struct signal_draft *d = target;
    size_t at = 0;

    if (j->type != JSON_ARRAY) {
        add_name(r, j, path, &d->names);
        return;
    }
    if (j->count == 0 || j->count > SIGNAL_NAMES_MAX) {
        mistake_in(r, path, j, "1 to %d names", SIGNAL_NAMES_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at++) {
        struct path place = {path, SLICE_NONE, at};
        add_name(r, m, &place, &d->names);
    }
}

static void read_match(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct signal_draft *d = target;

    reading_of(r)->visible = VISIBLE_MATCH;
    read_condition(r, j, path, &d->match);
    reading_of(r)->visible = VISIBLE_BEFORE;
}

void read_signal(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        REQUIRED("name", read_signal_names, 0),
        FIELD("match", read_match, 0),
    };

    if (j->type == JSON_OBJECT)
        read_object(r, j, path, fields, COUNT_OF(fields), target);
    else
        mistake_in(r, path, j, "an object with name: {name: payment}");
}

void read_signal_complete_by(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    struct signal_draft *d = target;

    d->complete_by = j;
    read_length(r, j, path, &d->complete_by_ms);
}

/* A value as it is: nothing is evaluated when a time has passed. */
void read_signal_default(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct signal_draft *d = target;

    d->otherwise = j;
    if (memmem(j->raw.ptr, j->raw.len, "${", 2))
        mistake_in(r, path, j, "a value without expressions");
}

void refuse_beside_signal(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    (void)target;
    mistake_in(r, path, j,
               "no such key: a step with signal has name, signal, complete_by, default, if, after, "
               "on_failure");
}

const struct slice *signal_names_keep(struct reader *r, const struct signal_names *n)
{
    struct slice *kept = arena_alloc(r->arena, (n->count + 1u) * sizeof *kept);

    memcpy(kept, n->list, n->count * sizeof *kept);
    return kept;
}

void settle_signal(struct reader *r, const struct json *j, const struct path *path,
                   const struct signal_draft *d, struct signal_spec *ret)
{
    struct path at = {path, SLICE("complete_by"), 0};

    if (d->otherwise && !d->complete_by)
        mistake_at(r, &at, j->at, "nothing",
                   "a key \"complete_by\": default is the output if no "
                   "signal arrives by then");
    *ret = (struct signal_spec){
        .names = signal_names_keep(r, &d->names),
        .count = d->names.count,
        .complete_by_ms = d->complete_by_ms,
        .otherwise = d->otherwise ? d->otherwise->raw : SLICE_NONE,
    };
}

void read_on_signal(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct signal_names *n = target;

    if (j->type != JSON_OBJECT || j->count == 0 || j->count > SIGNAL_NAMES_MAX) {
        mistake_in(r, path, j, "an object of 1 to %d names: {cancelled: undo}", SIGNAL_NAMES_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        struct json name = *m;
        name.type = JSON_STRING;
        name.text = m->key;
        name.raw = m->key;
        if (m->type != JSON_STRING || !slice_is(m->text, "undo"))
            mistake_in(r, &at, m, "undo");
        else
            add_name(r, &name, &at, n);
    }
}

void check_on_signal(struct reader *r, const struct workflow_step *steps, uint16_t count,
                     const struct json *on_signal, const struct signal_names *names)
{
    struct path up = {NULL, SLICE("on_signal"), 0};

    for (const struct json *m = on_signal->child; m; m = m->next) {
        struct path at = {&up, m->key, 0};
        bool both = false;
        for (uint16_t i = 0; i < count; i++)
            both |= step_takes_signal(&steps[i], m->key);
        if (both && has_name(names, m->key))
            mistake_in(r, &at, m, "a name that no step waits for");
    }
}
