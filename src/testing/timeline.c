/* Collects and writes the lines that tell what happened in a test, each with its moment
 * (timeline.h). */

#include "testing/timeline.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/when.h"

enum { SHORT_MAX = 100, LINE_MAX_BYTES = 400, MOMENT_WIDTH = 16 };

void timeline_fini(struct timeline *t)
{
    free(t->list);
    t->list = NULL;
}

void timeline_add(struct timeline *t, int64_t at, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list ap;

    if (t->is_off)
        return;
    if (t->count == TIMELINE_MAX) {
        t->left_out++;
        return;
    }
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 32;
        t->list = reallocarray(t->list, t->cap, sizeof *t->list);
        ASSERT(t->list);
    }
    va_start(ap, fmt);
    text_format(text, sizeof text, fmt, ap);
    va_end(ap);
    t->list[t->count++] = (struct timeline_entry){at, arena_copy(t->arena, slice_of(text))};
}

void timeline_moment(const struct timeline *t, int64_t at, struct buf *b)
{
    int64_t ms = max_i64(at - t->from, 0);
    int64_t s = ms / MS_PER_S;

    if (ms >= MS_PER_D)
        buf_fmt(b, "%" PRId64 "d ", ms / MS_PER_D);
    buf_fmt(b, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 "", s / 3600 % 24, s / 60 % 60, s % 60);
    if (ms % MS_PER_S != 0)
        buf_fmt(b, ".%03" PRId64, ms % MS_PER_S);
}

struct slice timeline_short(struct arena *a, struct slice json)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (!json.ptr)
        return SLICE("null");
    if (json.len <= SHORT_MAX)
        return json;
    buf_slice(&b, slice_cut(json, SHORT_MAX));
    buf_str(&b, "...");
    return arena_copy(a, buf_view(&b));
}

void timeline_write(const struct timeline *t, const char *indent, struct buf *b)
{
    for (size_t i = 0; i < t->count; i++) {
        CLEANUP(buf_fini) struct buf moment = {0};
        timeline_moment(t, t->list[i].at, &moment);
        buf_fmt(b, "%s%*s  %.*s\n", indent, MOMENT_WIDTH, moment.ptr, SLICE_ARG(t->list[i].text));
    }
    if (t->left_out > 0)
        buf_fmt(b, "%s(%zu more lines are left out)\n", indent, t->left_out);
}
