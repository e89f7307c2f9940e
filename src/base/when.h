#ifndef BASE_WHEN_H
#define BASE_WHEN_H

/*
 * Times and durations as text. All times inside the program are int64_t milliseconds since 1970 UTC
 * (`_at`); all lengths are milliseconds (`_ms`). Pure: nothing here reads a clock.
 */

#include "base/buf.h"

#define MS_PER_S   INT64_C(1000)
#define MS_PER_MIN INT64_C(60000)
#define MS_PER_H   INT64_C(3600000)
#define MS_PER_D   INT64_C(86400000)

/* "200ms", "30s", "15m", "2h", "7d"; a whole number and one unit. At most 10 000 days. */
bool duration_parse(struct slice text, int64_t *ret_ms) MUST_USE;
void duration_write(struct buf *b, int64_t ms); /* in the largest unit that is exact */
/* For people: "340ms", "3.2s", "32s", "4m 10s", "2h 05m", "3d 4h". ms >= 0. */
void duration_tell(struct buf *b, int64_t ms);

/* RFC 3339: "2026-01-31T10:00:00.000Z". Parsing accepts offsets and 0 to 9 decimals; digits beyond
 * milliseconds are cut. From 1970 to 9999 UTC. */
bool time_parse(struct slice text, int64_t *ret_at) MUST_USE;
void time_write(struct buf *b, int64_t at);

/* Days since 1970-01-01 of a date of the Gregorian calendar, and back; month and day count from 1.
 * Algorithms by Howard Hinnant ("chrono-Compatible Low-Level Date Algorithms"). */
int64_t days_from_civil(int64_t y, int64_t m, int64_t d);
void civil_from_days(int64_t days, int64_t *y, int64_t *m, int64_t *d);

#endif
