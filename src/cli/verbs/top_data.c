/* The state of `intact top`: two samples, between which rates are computed, and the newest errors
 * with their reasons (top.h). Calls no server and reads no clock; top.c fills it in, top_draw.c
 * draws it. */

#include "base/when.h"
#include "cli/verbs/top.h"

static void error_fini(struct top_error *e)
{
    buf_fini(&e->id);
    buf_fini(&e->workflow);
    buf_fini(&e->ended_at);
    buf_fini(&e->reason);
    *e = (struct top_error){0};
}

void top_fini(struct top *t)
{
    for (int i = 0; i < 2; i++) {
        buf_fini(&t->samples[i].text);
        arena_fini(&t->samples[i].arena);
    }
    for (size_t i = 0; i < TOP_ERRORS; i++)
        error_fini(&t->errors[i]);
}

bool top_take_stats(struct top *t, struct slice json)
{
    struct top_sample *s = &t->samples[!t->current];
    struct json *stats = NULL;

    s->stats = NULL;
    arena_fini(&s->arena);
    s->arena = (struct arena){0};
    buf_clear(&s->text);
    buf_slice(&s->text, json);
    if (json_parse(&s->arena, buf_view(&s->text), &stats, NULL) != ERR_OK
        || !json_get(stats, "counters") || !time_parse(json_get_text(stats, "now"), &s->now))
        return false;
    s->stats = stats;
    t->current = !t->current;
    return true;
}

static void keep(struct buf *b, struct slice text)
{
    buf_clear(b);
    buf_slice(b, text);
}

/* It may have been in error before, at another time. */
static bool is_same(const struct top_error *e, const struct json *task)
{
    return slice_eq(buf_view(&e->id), json_get_text(task, "id"))
           && slice_eq(buf_view(&e->ended_at), json_get_text(task, "ended_at"));
}

void top_take_errors(struct top *t, struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *page = NULL;
    struct top_error old[TOP_ERRORS];

    if (json_parse(&a, json, &page, NULL) != ERR_OK || !json_get(page, "tasks"))
        return;
    memcpy(old, t->errors, sizeof old);
    memset(t->errors, 0, sizeof t->errors);
    t->error_count = 0;
    for (const struct json *j = json_get(page, "tasks")->child; j && t->error_count < TOP_ERRORS;
         j = j->next) {
        struct top_error *e = &t->errors[t->error_count++];
        keep(&e->id, json_get_text(j, "id"));
        keep(&e->workflow, json_get_text(j, "workflow"));
        keep(&e->ended_at, json_get_text(j, "ended_at"));
        for (size_t i = 0; i < TOP_ERRORS; i++)
            if (is_same(&old[i], j))
                keep(&e->reason, buf_view(&old[i].reason));
    }
    for (size_t i = 0; i < TOP_ERRORS; i++)
        error_fini(&old[i]);
}

void top_take_reason(struct top *t, struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *task = NULL;

    if (json_parse(&a, json, &task, NULL) != ERR_OK)
        return;
    const struct json *error = json_get(task, "error");
    for (size_t i = 0; i < t->error_count; i++) {
        struct top_error *e = &t->errors[i];
        if (!slice_eq(buf_view(&e->id), json_get_text(task, "id")))
            continue;
        buf_clear(&e->reason);
        buf_slice(&e->reason, json_get_text(error, "code"));
        if (json_get_text(error, "message").len > 0)
            buf_fmt(&e->reason, ": %.*s", SLICE_ARG(json_get_text(error, "message")));
        if (e->reason.len == 0)
            buf_byte(&e->reason, '-');
    }
}

const struct top_error *top_unexplained(const struct top *t)
{
    for (size_t i = 0; i < t->error_count; i++)
        if (t->errors[i].reason.len == 0)
            return &t->errors[i];
    return NULL;
}

const char *top_sort_text(enum top_sort s)
{
    static const char *const texts[] = {"waiting", "agent", "failed"};

    return texts[s];
}
