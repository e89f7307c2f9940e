/* How the state and the attempts of a task are shown, alike by all verbs. */
#include "cli/record.h"

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

/* The attempts of a direction are numbered from 1, and of many not all are in the record. */
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
