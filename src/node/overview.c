/*
 * The ring of the last hour (overview.h). A period is found by its number since 1970, so a clock
 * that jumps makes gaps, and never mixes two periods. GET /v1/overview: api/overview.c.
 */

#include "node/overview.h"

#include <stdlib.h>

#include "json/json.h"

/* Beyond the last bin lie 30 years. */
enum { BINS = 160, LINEAR = 4 };

struct period {
    int64_t number; /* 0: nothing was counted in it yet */
    uint32_t submitted, ended[TASK_ERROR + 1];
    uint32_t bins[BINS];
};

struct overview {
    int64_t since;
    struct period periods[OVERVIEW_PERIODS];
};

struct overview *overview_new(int64_t now)
{
    struct overview *o = calloc(1, sizeof *o);

    ASSERT(o);
    o->since = now;
    return o;
}

void overview_free(struct overview *o)
{
    free(o);
}

static struct period *period_of(struct overview *o, int64_t now)
{
    int64_t number = max_i64(now, 0) / OVERVIEW_PERIOD_MS;
    struct period *p = &o->periods[number % OVERVIEW_PERIODS];

    if (p->number != number)
        *p = (struct period){.number = number};
    return p;
}

void overview_submitted(struct overview *o, int64_t now)
{
    period_of(o, now)->submitted++;
}

static size_t bin_of(int64_t ms)
{
    if (ms < LINEAR)
        return (size_t)max_i64(ms, 0);
    unsigned power = 63 - (unsigned)__builtin_clzll((unsigned long long)ms);
    size_t bin = (size_t)(power - 1) * LINEAR + (size_t)(ms >> (power - 2) & (LINEAR - 1));
    return bin < BINS ? bin : BINS - 1;
}

/* Where a bin begins. */
static int64_t bin_begin(size_t bin)
{
    if (bin < LINEAR)
        return (int64_t)bin;
    return (int64_t)(LINEAR + bin % LINEAR) << (bin / LINEAR - 1);
}

void overview_ended(struct overview *o, enum task_state state, int64_t took_ms, int64_t now)
{
    struct period *p = period_of(o, now);

    ASSERT(task_state_is_end(state) || state == TASK_ERROR);
    p->ended[state]++;
    p->bins[bin_of(took_ms)]++;
}

/* The middle of the bin in which it is; -1: none ended. */
static int64_t percentile(const struct period *p, uint64_t percent)
{
    uint64_t count = 0;
    uint64_t below = 0;

    for (size_t i = 0; i < BINS; i++)
        count += p->bins[i];
    uint64_t rank = (count * percent + 99) / 100;
    for (size_t i = 0; i < BINS; i++) {
        below += p->bins[i];
        if (count > 0 && below >= rank)
            return (bin_begin(i) + bin_begin(i + 1) - 1) / 2;
    }
    return -1;
}

static void write_percentile(struct buf *b, const char *key, int64_t ms)
{
    json_key(b, key);
    if (ms < 0)
        buf_str(b, "null");
    else
        json_number(b, ms);
}

static void write_period(struct buf *b, const struct period *p, int64_t number)
{
    static const struct period nothing;

    if (p->number != number)
        p = &nothing;
    json_open(b, '{');
    json_member_time(b, "at", number * OVERVIEW_PERIOD_MS);
    json_member_number(b, "submitted", p->submitted);
    json_member_number(b, "processed", p->ended[TASK_PROCESSED]);
    json_member_number(b, "compensated", p->ended[TASK_COMPENSATED]);
    json_member_number(b, "error", p->ended[TASK_ERROR]);
    write_percentile(b, "p50_ms", percentile(p, 50));
    write_percentile(b, "p99_ms", percentile(p, 99));
    json_close(b, '}');
}

void overview_write(const struct overview *o, int64_t now, struct buf *b)
{
    int64_t last = max_i64(now, 0) / OVERVIEW_PERIOD_MS;
    int64_t first =
        max_i64(last - OVERVIEW_PERIODS + 1, min_i64(o->since / OVERVIEW_PERIOD_MS, last));

    json_member_time(b, "at", now);
    json_member_time(b, "since", o->since);
    json_member_text(b, "window", SLICE("1h"));
    json_member_text(b, "resolution", SLICE("10s"));
    json_key(b, "series");
    json_open(b, '[');
    for (int64_t number = first; number <= last; number++)
        write_period(b, &o->periods[number % OVERVIEW_PERIODS], number);
    json_close(b, ']');
}
