/* A task's state and attempts in words, from the record of a task that the server returned
 * (record.h). Shared by verbs that show tasks: task_show.c, watch_draw.c, and tables (table.c). */

/* The same text in all verbs. */
#include "cli/client/record.h"

void record_state(struct buf *b, const struct json *task)
{
    struct slice state = json_get_text(task, "state");

    buf_slice(b, state);
    if (slice_is(state, "pending") && slice_is(json_get_text(task, "direction"), "undo"))
        buf_str(b, " (undo)");
    if (json_get_text(task, "paused_at").ptr)
        buf_str(b, ", paused");
    if (json_get_text(task, "closed_at").ptr)
        buf_str(b, ", closed");
}

bool record_goes_forward(const struct json *task)
{
    struct slice state = json_get_text(task, "state");

    return (slice_is(state, "pending") || slice_is(state, "processing"))
           && slice_is(json_get_text(task, "direction"), "forward")
           && !json_get_text(task, "paused_at").ptr;
}

/* Attempts are numbered from 1 per direction, and the record may omit some of many. */
void record_attempts(struct buf *b, const struct json *step)
{
    const struct json *attempts = json_get(step, "attempts");
    int64_t count[2] = {0};

    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next) {
        int64_t *n = &count[slice_is(json_get_text(a, "direction"), "undo")];
        *n = max_i64(*n + 1, json_get_int(a, "attempt", 0));
    }
    if (count[0] + count[1] > 0)
        buf_i64(b, count[0]);
    if (count[1] > 0)
        buf_fmt(b, "+%" PRId64, count[1]);
}

void record_child(struct buf *b, const struct json *step)
{
    static const struct {
        const char *state, *words;
    } states[] = {
        {"running", "is running"},
        {"error", "stopped in error"},
        {"stands", "goes on, since its pivot took effect"},
        {"turned", "is being undone"},
        {"stuck", "stopped in error, and was not undone"},
        {"processed", "is processed"},
        {"compensated", "is compensated"},
    };
    const struct json *child = json_get(step, "child");
    struct slice state = json_get_text(child, "state");
    struct slice asked = json_get_text(child, "asked");

    if (!state.ptr)
        return;
    buf_fmt(b, "its child %.*s ", SLICE_ARG(json_get_text(child, "id")));
    size_t i = 0;
    while (i < COUNT_OF(states) && !slice_is(state, states[i].state))
        i++;
    buf_str(b, i < COUNT_OF(states) ? states[i].words : "is in a state that is not known here");
    if (slice_is(asked, "close"))
        buf_str(b, ", closed");
    else if (asked.ptr && !slice_is(state, "compensated"))
        buf_fmt(b, ", asked to %.*s", SLICE_ARG(asked));
}

static void put_count(struct buf *b, int64_t count, const char *what)
{
    if (count > 0)
        buf_fmt(b, ", %" PRId64 " %s", count, what);
}

static bool has_failed(const struct json *item)
{
    return slice_is(json_get_text(item, "state"), "failed");
}

void record_items(struct buf *b, const struct json *step)
{
    static const char *const words[] = {"failed", "skipped", "undone"};
    const struct json *items = json_get(step, "items");
    const struct json *units[RECORD_UNITS_MAX];
    int64_t at_work = 0;

    if (!items || !json_get_text(step, "begun_at").ptr)
        return;
    buf_fmt(b, "%" PRId64 " of %" PRId64 " items completed", json_get_int(items, "completed", 0),
            json_get_int(items, "count", 0));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        put_count(b, json_get_int(items, words[i], 0), words[i]);
    for (size_t i = 0, count = record_units(step, units); i < count; i++)
        at_work += !has_failed(units[i]);
    put_count(b, at_work, "at work");
    put_count(b, json_get_int(items, "in_doubt", 0), "in doubt");
}

static bool comes_before(const struct json *a, const struct json *b)
{
    if (has_failed(a) != has_failed(b))
        return has_failed(a);
    return json_get_int(a, "item", 0) < json_get_int(b, "item", 0);
}

size_t record_units(const struct json *step, const struct json *ret[RECORD_UNITS_MAX])
{
    const struct json *list = json_get(json_get(step, "items"), "at_work");
    size_t count = 0;

    for (const struct json *item = list ? list->child : NULL; item && count < RECORD_UNITS_MAX;
         item = item->next) {
        size_t at = count++;
        for (; at > 0 && comes_before(item, ret[at - 1]); at--)
            ret[at] = ret[at - 1];
        ret[at] = item;
    }
    return count;
}
