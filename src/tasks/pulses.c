/* The latest heartbeat of each open attempt: kept, compared, copied. Whether a heartbeat is
 * accepted is decided in scheduler/heartbeats.c. */

#include "tasks/pulses.h"

#include <stdlib.h>

/* The latest heartbeat of an open attempt. */
struct kept_pulse {
    struct link link; /* in the list of its live task */
    uint16_t step; /* with `item`, whichever slot that has: a task that is read again may differ */
    struct item_ref item;
    enum direction direction;
    uint32_t attempt;
    struct pulse pulse; /* points behind this struct */
};

/* The latest heartbeat of a unit; NULL: none. */
static struct kept_pulse *kept_of(const struct live *l, uint16_t unit)
{
    if (list_empty(&l->pulses))
        return NULL;
    /* Which item is in a slot is not known while the task is being read. */
    const struct item_ref item = l->loaded ? live_item(l, unit) : (struct item_ref){0};
    uint16_t step = l->loaded ? unit_step(&l->definition->workflow, unit) : unit;

    LIST_FOREACH (link, after, &l->pulses) {
        struct kept_pulse *k = CONTAINER_OF(link, struct kept_pulse, link);
        if (k->step == step && k->item.any == item.any && k->item.number == item.number
            && k->item.generation == item.generation)
            return k;
    }
    return NULL;
}

static void kept_free(struct kept_pulse *k)
{
    link_remove(&k->link);
    free(k);
}

void pulses_forget(struct live *l, uint16_t step)
{
    struct kept_pulse *k = kept_of(l, step);

    if (k)
        kept_free(k);
}

void pulses_forget_all(struct live *l)
{
    for (struct link *first = NULL; (first = list_first(&l->pulses));)
        kept_free(CONTAINER_OF(first, struct kept_pulse, link));
}

const struct pulse *pulses_find(const struct live *l, uint16_t step, enum direction d,
                                uint32_t attempt)
{
    const struct kept_pulse *k = kept_of(l, step);

    return k && k->direction == d && k->attempt == attempt ? &k->pulse : NULL;
}

struct slice pulses_resume(const struct live *l, uint16_t step, enum direction d, uint32_t attempt)
{
    const struct kept_pulse *k = kept_of(l, step);

    return k && k->direction == d && k->attempt == attempt ? k->pulse.resume : SLICE_NONE;
}

static struct slice bytes_put(char **at, struct slice s)
{
    char *to = *at;

    if (!s.ptr)
        return SLICE_NONE;
    memcpy(to, s.ptr, s.len);
    *at += s.len;
    return (struct slice){to, s.len};
}

/* Does the heartbeat report progress that the previous one did not? */
bool pulses_is_progress(const struct live *l, const struct heartbeat *b)
{
    const struct kept_pulse *k = kept_of(l, b->of.step);

    return !k || k->direction != b->of.direction || k->attempt != b->of.attempt
           || !slice_eq(k->pulse.progress, b->progress);
}

void pulses_keep(struct live *l, const struct heartbeat *b, int64_t now)
{
    struct slice resume =
        b->resume.ptr ? b->resume : pulses_resume(l, b->of.step, b->of.direction, b->of.attempt);
    struct kept_pulse *k = malloc(sizeof *k + b->progress.len + b->message.len + resume.len);

    ASSERT(k);
    char *at = (char *)(k + 1);
    *k = (struct kept_pulse){.step = unit_step(&l->definition->workflow, b->of.step),
                             .item = live_item(l, b->of.step),
                             .direction = b->of.direction,
                             .attempt = b->of.attempt,
                             .pulse.at = now};
    k->pulse.progress = bytes_put(&at, b->progress);
    k->pulse.message = bytes_put(&at, b->message);
    k->pulse.resume = bytes_put(&at, resume);
    pulses_forget(l, b->of.step);
    list_push(&l->pulses, &k->link);
}

void pulses_copy_all(const struct live *l, struct arena *a, struct pulses *ret)
{
    size_t count = 0;

    *ret = (struct pulses){0};
    LIST_FOREACH (i, after, &l->pulses)
        count++;
    if (count == 0)
        return;
    ret->list = arena_alloc(a, count * sizeof *ret->list);
    LIST_FOREACH (i, after, &l->pulses) {
        const struct kept_pulse *k = CONTAINER_OF(i, struct kept_pulse, link);
        ret->list[ret->count++] = (struct pulse_of){
            k->step,
            k->item,
            k->direction,
            k->attempt,
            {k->pulse.at, arena_copy(a, k->pulse.progress), arena_copy(a, k->pulse.message),
             arena_copy(a, k->pulse.resume)},
        };
    }
}

const char *beat_status_text(enum beat_status st)
{
    static const char *const texts[] = {
#define X(name, text) text,
        BEAT_STATUSES(X)
#undef X
    };
    return texts[st];
}
