/* Deliveries of alerts to sinks: what is due for each sink, in which order, and the pauses
 * between deliveries, which grow if they follow closely (alerts.h). Pure: watch.c passes the
 * deliveries on. alerts.c decides which alerts are open. */

#include "alerts/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FAILED_MS = 1000,
    FAILED_MAX_MS = 300000,
    PACE_CALM_MS = 1800000, /* after this long without a delivery, the spacing starts again */
};

bool sink_wants(const struct alert_sink *s, const struct alert *al)
{
    if (s->conditions != 0 && !(s->conditions & BIT(al->condition)))
        return false;
    if (!s->workflow.ptr)
        return true;
    for (size_t i = 0; i < al->label_count; i++)
        if (strcmp(al->labels[i].name, "workflow") == 0)
            return slice_is(s->workflow, al->labels[i].value);
    return false;
}

void sinks_forget(struct alerts *a)
{
    for (size_t i = 0; i < a->config.sink_count; i++)
        a->sinks[i].count = 0;
}

static bool is_news(const struct alert *al, size_t sink, bool stored_only)
{
    return al->notice > 0 && al->told[sink] < al->notice
           && (!stored_only || al->stored_notice >= al->notice);
}

/* Notices, and everything open for a sink that wants repetition. */
static bool is_due(const struct alerts *a, const struct alert *al, size_t sink, bool stored_only,
                   bool resend)
{
    return sink_wants(&a->config.sinks[sink], al)
           && (is_news(al, sink, stored_only) || (resend && alert_is_open(al) && al->notice > 0));
}

static bool any_is_due(const struct alerts *a, size_t sink, bool stored_only, bool resend)
{
    const struct alert *al = NULL;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        if (is_due(a, al, sink, stored_only, resend))
            return true;
    return false;
}

/* Ordered by key: a delivery that another process repeats is identical, with the same id. */
static size_t gather(const struct alerts *a, size_t sink, bool stored_only, bool resend,
                     struct sink *ret)
{
    size_t count = 0;

    if (!any_is_due(a, sink, stored_only, resend))
        return 0;
    struct alert **all = (struct alert **)map_sorted(&a->by_key);
    for (size_t i = 0; all[i] && count < ALERTS_A_DELIVERY; i++) {
        if (!is_due(a, all[i], sink, stored_only, resend))
            continue;
        ret->list[count] = all[i];
        ret->notices[count++] = all[i]->notice;
    }
    free(all);
    return count;
}

size_t alerts_tell(struct alerts *a, size_t sink, bool stored_only, int64_t now,
                   const struct alert *ret[ALERTS_A_DELIVERY], int64_t *ret_next)
{
    const struct alert_sink *c = &a->config.sinks[sink];
    struct sink *s = &a->sinks[sink];
    bool resend = c->resend_ms > 0 && now >= s->state.last_at + c->resend_ms;

    ASSERT(sink < a->config.sink_count);
    *ret_next = 0;
    if (s->state.busy)
        return 0;
    s->count = gather(a, sink, stored_only, resend, s);
    if (s->count == 0) {
        if (c->resend_ms > 0 && s->state.last_at > 0)
            *ret_next = s->state.last_at + c->resend_ms;
        return 0;
    }
    if (now < s->state.next_at) {
        *ret_next = s->state.next_at;
        s->count = 0;
        return 0;
    }
    s->state.busy = true;
    s->resending = resend;
    for (size_t i = 0; i < s->count; i++)
        ret[i] = s->list[i];
    return s->count;
}

/* The delay before the next delivery, which grows with deliveries in close succession. */
static int64_t pace(struct sink *s, const struct alerts_config *c, int64_t now)
{
    int64_t group_wait_ms = c->group_wait_ms;

    if (s->resending)
        return group_wait_ms;
    if (s->state.last_at == 0 || now - s->state.last_at >= PACE_CALM_MS)
        s->pace_ms = group_wait_ms;
    else
        s->pace_ms = min_i64(max_i64(s->pace_ms, group_wait_ms) * 2, c->pace_max_ms);
    return s->pace_ms;
}

static void took_it(struct alerts *a, size_t sink, int64_t now)
{
    struct sink *s = &a->sinks[sink];

    s->state.next_at = now + pace(s, &a->config, now);
    s->state.failing = 0;
    s->state.delivered++;
    s->state.last_at = now;
    for (size_t i = 0; i < s->count; i++) {
        s->list[i]->told[sink] = s->notices[i];
        s->list[i]->dirty = true;
        if (s->list[i]->stored_notice == s->list[i]->notice)
            s->list[i]->stored_at = 0; /* the delivery is recorded soon */
    }
}

void alerts_told(struct alerts *a, size_t sink, bool took, const char *story, int64_t now)
{
    struct sink *s = &a->sinks[sink];

    ASSERT(s->state.busy);
    s->state.busy = false;
    if (took) {
        took_it(a, sink, now);
    } else {
        unsigned shift = s->state.failing < 9 ? s->state.failing : 9;
        s->state.next_at = now + min_i64((int64_t)FAILED_MS << shift, FAILED_MAX_MS);
        s->state.failing++;
        s->state.failed++;
        (void)snprintf(s->state.story, sizeof s->state.story, "%s", story ? story : "");
    }
    s->count = 0;
}

const struct sink_state *alerts_sink(const struct alerts *a, size_t sink)
{
    ASSERT(sink < a->config.sink_count);
    return &a->sinks[sink].state;
}
