/* Compares the ends of an instance's attempts with the others' (rules: health.h). Pure:
 * tasks/counts.c reports the ends, lanes.c asks which instance may get work. */

#include "dispatch/health.h"

const char *health_state_text(enum health_state st)
{
    static const char *const texts[] = {
#define X(name, text) text,
        HEALTH_STATES(X)
#undef X
    };
    return texts[st];
}

/* ---- counting ---- */

void ends_roll(struct ends *e, int64_t now)
{
    int64_t window = now / HEALTH_WINDOW_MS;

    if (window == e->window)
        return;
    bool next = window == e->window + 1;
    e->good[1] = next ? e->good[0] : 0;
    e->bad[1] = next ? e->bad[0] : 0;
    e->good[0] = e->bad[0] = 0;
    e->window = window;
}

void ends_count(struct ends *e, bool good, int64_t now)
{
    ends_roll(e, now);
    if (good)
        e->good[0]++;
    else
        e->bad[0]++;
}

static uint64_t bad_sum(const struct ends *e)
{
    return e->bad[0] + e->bad[1];
}

uint64_t ends_sum(const struct ends *e)
{
    return e->good[0] + e->good[1] + bad_sum(e);
}

static uint32_t percent(uint64_t bad, uint64_t all)
{
    return all ? (uint32_t)(bad * 100 / all) : 0;
}

uint32_t ends_bad_percent(const struct ends *e)
{
    return percent(bad_sum(e), ends_sum(e));
}

/* ---- judging ---- */

/* By how many percent it is worse than the others; 0 while that is unknown. */
static uint32_t worse_by(const struct ends *own, const struct ends *all)
{
    uint64_t others = ends_sum(all) > ends_sum(own) ? ends_sum(all) - ends_sum(own) : 0;
    uint64_t others_bad = bad_sum(all) > bad_sum(own) ? bad_sum(all) - bad_sum(own) : 0;

    if (ends_sum(own) < HEALTH_ENDS_MIN || others < HEALTH_ENDS_MIN)
        return 0;
    uint32_t theirs = percent(others_bad, others);
    uint32_t ours = ends_bad_percent(own);
    return ours > theirs ? ours - theirs : 0;
}

static void fall_ill(struct health *h, int64_t now)
{
    if (h->state == HEALTH_ILL)
        return;
    h->state = HEALTH_ILL;
    h->wait_ms = HEALTH_TRIAL_MS;
    h->trial_at = now + h->wait_ms;
    h->trial = false;
}

/* Its ends are forgotten, also in the comparison with others. */
static void recover(struct health *h, struct ends *all)
{
    for (int i = 0; i < 2; i++) {
        all->good[i] -= h->ends.good[i] < all->good[i] ? h->ends.good[i] : all->good[i];
        all->bad[i] -= h->ends.bad[i] < all->bad[i] ? h->ends.bad[i] : all->bad[i];
    }
    h->state = HEALTH_GOOD;
    h->ends = (struct ends){.window = h->ends.window};
    h->trial = false;
    h->wait_ms = h->trial_at = 0;
}

static void trial_failed(struct health *h, int64_t now)
{
    h->trial = false;
    h->wait_ms = min_i64(2 * h->wait_ms, HEALTH_TRIAL_MAX_MS);
    h->trial_at = now + h->wait_ms;
}

void health_ended(struct health *h, struct ends *all, bool good, int64_t now)
{
    ends_count(&h->ends, good, now);
    ends_count(all, good, now);
    h->moved_at = now;
    h->failed = !good;
    if (h->state == HEALTH_ILL) {
        if (good)
            recover(h, all);
        else if (h->trial)
            trial_failed(h, now);
        return;
    }
    uint32_t worse = worse_by(&h->ends, all);
    if (worse >= HEALTH_ILL_PERCENT)
        fall_ill(h, now);
    else
        h->state = worse >= HEALTH_POOR_PERCENT ? HEALTH_POOR : HEALTH_GOOD;
}

void health_moved(struct health *h, int64_t now)
{
    h->moved_at = now;
}

void health_beat(struct health *h, int64_t others_moved_at, int64_t now)
{
    int64_t still = now - h->moved_at;

    /* others must have made progress while it made none */
    if (h->state == HEALTH_ILL || h->moved_at == 0 || still < HEALTH_STILL_MS
        || others_moved_at < h->moved_at + HEALTH_STILL_MS / 2)
        return;
    if (still >= 2 * HEALTH_STILL_MS)
        fall_ill(h, now);
    else
        h->state = HEALTH_POOR;
}

uint32_t health_places(const struct health *h, uint32_t places, bool last)
{
    uint32_t part = places * (100 - ends_bad_percent(&h->ends)) / 100;

    if (h->state == HEALTH_GOOD || last)
        return places;
    if (h->state == HEALTH_ILL)
        return 0;
    part = part < places / 2 ? part : places / 2;
    return part > 0 ? part : places > 0;
}

bool health_may_begin(const struct health *h, uint32_t places, uint32_t open, bool last,
                      int64_t now)
{
    if (h->state == HEALTH_GOOD || last)
        return true;
    if (h->state == HEALTH_ILL)
        return now >= h->trial_at && (!h->trial || open == 0);
    return open < health_places(h, places, last);
}

void health_begun(struct health *h, int64_t now)
{
    if (h->state != HEALTH_ILL)
        return;
    h->trial = true;
    h->trial_at = now + h->wait_ms;
}

void health_lost(struct health *h)
{
    h->trial = false;
}
