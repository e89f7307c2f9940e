#ifndef CALENDAR_CRON_H
#define CALENDAR_CRON_H

/*
 * Cron expressions of five fields: minute (0-59), hour (0-23), day of month (1-31), month (1-12 or
 * JAN-DEC) and day of week (0-7 or SUN-SAT; 0 and 7 are Sunday).
 *
 * A field is a list, separated by commas, of stars, numbers and ranges, each with an optional step:
 * 8-18/2, or 5/10, which is from 5 to the end of the field. In both fields of days
 * a question mark is a star.
 * `L` as a day of month is the last one; `5L` as a day of week is the last Friday of the month and
 * `5#2` its second Friday. If both fields of days are restricted, a day matches that is in either.
 * Macros: @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
 *
 * When clocks are changed: an expression with a star in its hour or minute follows real time. Any
 * other one names fixed times of the day: a time that clocks skip fires at the moment of the
 * change, and a time that comes twice fires the first time.
 */

#include "base/err.h"
#include "calendar/zone.h"

struct cron {
    uint64_t minutes; /* bit n: minute n; so in all fields */
    uint32_t hours;
    uint32_t days;           /* of the month; bits 1 to 31 */
    uint16_t months;         /* bits 1 to 12 */
    uint8_t weekdays;        /* bits 0 (Sunday) to 6 */
    uint8_t last_weekdays;   /* as `weekdays`, but only the last one of the month */
    uint8_t nth_weekdays[6]; /* [n], n = 1 to 5: only the n-th one of the month */
    bool last_day;
    bool any_day, any_weekday; /* the field does not restrict */
    bool follows_real_time;
};

/* ERR_INVALID: `e` says which field is wrong and why. An expression that never fires is wrong. */
enum err cron_parse(struct slice text, struct cron *c, struct error *e) MUST_USE;

/* The first moment after `after_at` at which the expression fires in this zone, on a full second;
 * -1: none before the year 10000. `after_at` >= 0. Pure but for the rules of the zone. */
int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after_at);

#endif
