/* The moments of a schedule: the next one by interval, list or cron expression, the spread that is
 * added to all of them, and the input of their tasks (schedule.h). Pure: times are passed in.
 * plan.c decides which moments get a task. */

#include "base/map.h"
#include "base/when.h"
#include "schedule/schedule.h"

#define MOMENTS_END INT64_C(253402300800000) /* the year 10000 begins */

static int64_t next_every(const struct schedule *s, int64_t after_at)
{
    int64_t at = (after_at / s->every_ms + 1) * s->every_ms;

    return at < MOMENTS_END ? at : -1;
}

/* They are in their order. */
static int64_t next_at(const struct schedule *s, int64_t after_at)
{
    size_t low = 0;
    size_t high = s->at_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->at[middle] > after_at)
            high = middle;
        else
            low = middle + 1;
    }
    return low < s->at_count ? s->at[low] : -1;
}

int64_t schedule_next(const struct schedule *s, int64_t after_at)
{
    ASSERT(after_at >= 0);
    if (after_at >= MOMENTS_END)
        return -1;
    switch (s->kind) {
    case SCHEDULE_CRON:
        return cron_next(&s->cron, s->zone, after_at);
    case SCHEDULE_EVERY:
        return next_every(s, after_at);
    case SCHEDULE_AT:
        return next_at(s, after_at);
    }
    UNREACHABLE();
}

/* The same for all moments, so that runs keep their distance. */
int64_t schedule_due_at(const struct schedule *s, int64_t moment)
{
    if (s->spread_ms == 0)
        return moment;
    return moment + (int64_t)(hash_stable(s->name.ptr, s->name.len) % (uint64_t)s->spread_ms);
}

bool schedule_same_times(const struct schedule *a, const struct schedule *b)
{
    return a->kind == b->kind && slice_eq(a->times, b->times)
           && slice_eq(a->zone_name, b->zone_name) && a->spread_ms == b->spread_ms;
}

/* Without the fraction, which is 0, and the Z. */
static void write_clock(struct buf *b, int64_t at)
{
    CLEANUP(buf_fini) struct buf text = {0};

    time_write(&text, at);
    ASSERT(text.len == sizeof "2027-01-01T01:30:00.000Z" - 1);
    buf_add(b, text.ptr, sizeof "2027-01-01T01:30:00" - 1);
}

void moment_write(struct buf *b, int64_t moment)
{
    write_clock(b, moment);
    buf_byte(b, 'Z');
}

void moment_write_local(struct buf *b, const struct zone *z, int64_t moment)
{
    int64_t offset = zone_offset_ms(z, moment);
    int64_t min = (offset < 0 ? -offset : offset) / MS_PER_MIN;

    if (moment + offset < 0 || moment + offset >= MOMENTS_END) { /* no four digits for it */
        moment_write(b, moment);
        return;
    }
    write_clock(b, moment + offset);
    buf_fmt(b, "%c%02d:%02d", offset < 0 ? '-' : '+', (int)(min / 60), (int)(min % 60));
}

static void write_scope(struct buf *b, const struct schedule *s, int64_t moment, int64_t previous)
{
    CLEANUP(buf_fini) struct buf text = {0};

    json_open(b, '{');
    moment_write(&text, moment);
    json_member_text(b, "time", buf_view(&text));
    buf_clear(&text);
    moment_write_local(&text, s->zone, moment);
    json_member_text(b, "local", buf_view(&text));
    buf_clear(&text);
    if (previous)
        moment_write(&text, previous);
    json_member_text(b, "previous", previous ? buf_view(&text) : SLICE_NONE);
    json_close(b, '}');
}

enum err schedule_input(const struct schedule *s, int64_t moment, int64_t previous, struct arena *a,
                        struct slice *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf scope = {0};
    CLEANUP(arena_fini) struct arena own = {0};
    struct json *root = NULL;
    struct slice input;

    *ret = SLICE_NONE;
    if (!s->input)
        return ERR_OK;
    write_scope(&scope, s, moment, previous);
    enum err err = json_parse(&own, buf_view(&scope), &root, NULL);
    ASSERT(err == ERR_OK);
    err = template_eval(s->input, root, &own, &input, e);
    if (err != ERR_OK)
        return error_wrap(e, "input");
    *ret = arena_copy(a, input);
    return ERR_OK;
}
