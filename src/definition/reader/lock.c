/* Reads `lock` of a definition: {key, max, if_taken, shared}. The key is evaluated at submission
 * (scope.c), so it sees the input of the task alone. */
#include "definition/reader/lock.h"

#include "definition/template/template.h"

enum { LOCK_HOLDERS_MAX = 10000 };

struct lock_draft {
    const struct json *key;
    int64_t max;
    enum if_taken if_taken;
    struct slice shared;
};

static void read_max(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct lock_draft *d = target;

    (void)read_whole(r, j, path, 1, LOCK_HOLDERS_MAX, &d->max);
}

static void read_if_taken(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct lock_draft *d = target;

    if (j->type == JSON_STRING && slice_is(j->text, "wait"))
        d->if_taken = IF_TAKEN_WAIT;
    else if (j->type == JSON_STRING && slice_is(j->text, "refuse"))
        d->if_taken = IF_TAKEN_REFUSE;
    else if (j->type == JSON_STRING && slice_is(j->text, "replace"))
        d->if_taken = IF_TAKEN_REPLACE;
    else
        mistake_in(r, path, j, "wait, refuse or replace");
}

/* A number or a boolean is a key as well as a text is. */
static void read_key(struct reader *r, const struct json *j, const struct path *path)
{
    struct definition *d = reading_of(r)->definition;

    if (j->type != JSON_STRING) {
        mistake_in(r, path, j, "a text with an ${ expression } of the task's input");
        return;
    }
    read_template(r, j, path, &d->lock_key);
    if (!d->lock_key)
        return;
    const struct needs *n = template_needs(d->lock_key);
    if (n->all_steps || n->count > 0 || n->task)
        mistake_in(r, path, j, "an expression of .input alone: the key is fixed at submission");
}

void read_lock(struct reader *r, const struct json *j, const struct path *path)
{
    static const struct field fields[] = {
        REQUIRED("key", read_node, offsetof(struct lock_draft, key)),
        FIELD("max", read_max, 0),
        FIELD("if_taken", read_if_taken, 0),
        FIELD("shared", read_name, offsetof(struct lock_draft, shared)),
    };
    struct lock_draft draft = {.max = 1};
    struct workflow *w = &reading_of(r)->definition->workflow;
    struct path at_key = {path, SLICE("key"), 0};

    read_object(r, j, path, fields, COUNT_OF(fields), &draft);
    if (draft.key)
        read_key(r, draft.key, &at_key);
    w->lock = (struct lock_rule){.name = draft.shared.ptr ? draft.shared : w->name,
                                 .max = draft.max,
                                 .if_taken = draft.if_taken};
}
