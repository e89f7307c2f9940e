/* The state of `intact watch`: two records of a task, its heartbeats, and the reason why it waits
 * (watch.h). Calls no server; watch.c fills it in, watch_draw.c and watch_lines.c show it. */

#include <stdlib.h>

#include "base/when.h"
#include "cli/verbs/watch.h"

static void beat_fini(struct watched_beat *p)
{
    buf_fini(&p->step);
    buf_fini(&p->direction);
    buf_fini(&p->progress);
    buf_fini(&p->message);
}

void watched_fini(struct watched *w)
{
    for (int i = 0; i < 2; i++) {
        buf_fini(&w->texts[i]);
        arena_fini(&w->arenas[i]);
    }
    for (size_t i = 0; i < w->beat_count; i++)
        beat_fini(&w->beats[i]);
    free(w->beats);
    buf_fini(&w->why);
}

bool watched_record(struct watched *w, struct slice json)
{
    int next = !w->current;
    struct json *task = NULL;

    /* The record before the previous one is not needed any more. */
    arena_fini(&w->arenas[next]);
    w->arenas[next] = (struct arena){0};
    w->before = NULL;
    buf_clear(&w->texts[next]);
    buf_slice(&w->texts[next], json);
    if (json_parse(&w->arenas[next], buf_view(&w->texts[next]), &task, NULL) != ERR_OK
        || !json_get(task, "steps") || !json_get_text(task, "state").ptr)
        return false;
    w->before = w->task;
    w->task = task;
    w->current = next;
    return true;
}

bool watched_has_ended(const struct watched *w)
{
    struct slice state = json_get_text(w->task, "state");

    return slice_is(state, "processed") || slice_is(state, "compensated")
           || slice_is(state, "error");
}

static void keep(struct buf *b, struct slice text)
{
    buf_clear(b);
    buf_slice(b, text);
}

static struct watched_beat *beat_for(struct watched *w, struct slice step)
{
    for (size_t i = 0; i < w->beat_count; i++)
        if (slice_eq(buf_view(&w->beats[i].step), step))
            return &w->beats[i];
    w->beats = realloc(w->beats, (w->beat_count + 1) * sizeof(*w->beats));
    if (!w->beats)
        abort();
    w->beats[w->beat_count] = (struct watched_beat){0};
    keep(&w->beats[w->beat_count].step, step);
    return &w->beats[w->beat_count++];
}

void watched_progress(struct watched *w, struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (json_parse(&a, json, &j, NULL) != ERR_OK || !json_get_text(j, "step").len)
        return;
    struct watched_beat *p = beat_for(w, json_get_text(j, "step"));
    keep(&p->direction, json_get_text(j, "direction"));
    keep(&p->progress, json_get_raw(j, "progress"));
    keep(&p->message, json_get_text(j, "message"));
    p->attempt = json_get_int(j, "attempt", 0);
}

const struct watched_beat *watched_beat_of(const struct watched *w, struct slice step,
                                           const struct json *attempt)
{
    for (size_t i = 0; i < w->beat_count; i++) {
        const struct watched_beat *p = &w->beats[i];
        if (slice_eq(buf_view(&p->step), step)
            && slice_eq(buf_view(&p->direction), json_get_text(attempt, "direction"))
            && p->attempt == json_get_int(attempt, "attempt", -1))
            return p;
    }
    return NULL;
}

void watched_why(struct watched *w, struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (json_parse(&a, json, &j, NULL) != ERR_OK)
        return;
    /* The first line shows the state already, so take the first reason instead of the summary. */
    const struct json *reasons = json_get(j, "reasons");
    const struct json *first = reasons ? reasons->child : NULL;
    keep(&w->why, json_get_text(first ? first : j, first ? "text" : "summary"));
}

int64_t watched_time(const struct json *j, const char *key)
{
    int64_t at = 0;

    return time_parse(json_get_text(j, key), &at) ? at : 0;
}
