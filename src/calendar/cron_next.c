/*
 * The next moment of a cron expression: see cron.h.
 *
 * Two clocks are involved: moments (`at`, UTC) and what the clocks of the zone show (`local`). Both
 * are milliseconds. next_local() knows the calendar alone; the rest of the file decides what a
 * change of the clocks means.
 */
#include "base/when.h"
#include "calendar/cron.h"

enum { MINUTES_PER_DAY = 24 * 60 };

#define LOCAL_END INT64_C(253402300800000) /* the year 10000 begins */

/* Clocks are turned back by less than this, and not twice within it. */
#define CHANGE_MAX_MS (6 * MS_PER_H)

static int month_length(int64_t y, int64_t m)
{
    int64_t next_y = m == 12 ? y + 1 : y;
    int64_t next_m = m == 12 ? 1 : m + 1;

    return (int)(days_from_civil(next_y, next_m, 1) - days_from_civil(y, m, 1));
}

static bool weekday_matches(const struct cron *c, int weekday, int day, int length)
{
    ASSERT(weekday >= 0 && weekday <= 6);
    uint8_t bit = (uint8_t)(1U << weekday);
    int nth = (day - 1) / 7 + 1;

    ASSERT(nth >= 1 && nth <= 5);
    return (c->weekdays & bit) || (c->nth_weekdays[nth] & bit)
           || ((c->last_weekdays & bit) && day + 7 > length);
}

static bool day_matches(const struct cron *c, int64_t days, int day, int length)
{
    int weekday = (int)((days + 4) % 7); /* 1970-01-01 was a Thursday */
    bool by_day = (c->days & BIT(day)) || (c->last_day && day == length);
    bool by_weekday = weekday_matches(c, weekday, day, length);

    if (c->any_day)
        return c->any_weekday || by_weekday;
    return c->any_weekday ? by_day : by_day || by_weekday;
}

/* The first matching day from `days` on; -1: none before the year 10000. */
static int64_t next_day(const struct cron *c, int64_t days)
{
    while (days * MS_PER_D < LOCAL_END) {
        int64_t y = 0, m = 0, d = 0;
        civil_from_days(days, &y, &m, &d);
        int length = month_length(y, m);
        if (c->months & BIT(m))
            for (; d <= length; d++, days++)
                if (day_matches(c, days, (int)d, length))
                    return days;
        days += length - d + 1; /* of the next month the first */
    }
    return -1;
}

/* The first matching minute of the day from `minute` on; -1: none. */
static int next_minute(const struct cron *c, int minute)
{
    for (; minute < MINUTES_PER_DAY; minute++) {
        if (!(c->hours & BIT(minute / 60)))
            minute += 59 - minute % 60;
        else if (c->minutes & (UINT64_C(1) << minute % 60))
            return minute;
    }
    return -1;
}

/* The first local time that matches, `local` or later; -1: none before the year 10000. */
static int64_t next_local(const struct cron *c, int64_t local)
{
    int64_t rounded = (local + MS_PER_MIN - 1) / MS_PER_MIN;
    int64_t days = rounded / MINUTES_PER_DAY;
    int minute = (int)(rounded % MINUTES_PER_DAY);

    ASSERT(local >= 0);
    for (;;) {
        int64_t day = next_day(c, days);
        if (day < 0)
            return -1;
        minute = next_minute(c, day > days ? 0 : minute);
        if (minute >= 0)
            return day * MS_PER_D + minute * MS_PER_MIN;
        days = day + 1;
        minute = 0;
    }
}

/* Fixed times of the day. Later local times never mean earlier moments, so the first one that is
 * after `after_at` is the answer. */
static int64_t next_fixed(const struct cron *c, const struct zone *z, int64_t after_at)
{
    int64_t local = max_i64(after_at + zone_offset_ms(z, after_at) - CHANGE_MAX_MS, 0);

    for (;; local += MS_PER_MIN) {
        local = next_local(c, local);
        if (local < 0)
            return -1;
        int64_t at = zone_moment(z, local);
        if (at > after_at)
            return at;
    }
}

/* What clocks show follows time from one change to the next one. */
static int64_t next_real(const struct cron *c, const struct zone *z, int64_t after_at)
{
    int64_t at = after_at + 1; /* the answer is not before it */

    for (;;) {
        int64_t offset = zone_offset_ms(z, at);
        int64_t local = next_local(c, max_i64(at + offset, 0));
        if (local < 0)
            return -1;
        int64_t until = min_i64(local - offset, at + CHANGE_MAX_MS);
        int64_t change = zone_change_after(z, at, until);
        if (zone_offset_ms(z, change) != offset)
            at = change; /* another local time begins here */
        else if (until == local - offset)
            return until;
        else /* a change that is further away does not bring back times before `local` */
            at = max_i64(until, local - offset - 2 * MS_PER_D);
    }
}

int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after_at)
{
    ASSERT(after_at >= 0);
    int64_t at = c->follows_real_time ? next_real(c, z, after_at) : next_fixed(c, z, after_at);

    ASSERT(at < 0 || at > after_at);
    return at;
}
