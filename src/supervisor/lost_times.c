/* Finds lost time from when scans begin and succeed. Pure; see lost_times.h. Which gaps still count
 * is in gaps.c. */

#include "supervisor/lost_times.h"

#include "base/base.h"

enum {
    LOST_MAX = 5,       /* gaps that move tasks' own deadlines in one slow time ... */
    SLOW_FACTOR = 4,    /* ... except for those of so many times the usual gap */
    LATE_INTERVALS = 3, /* a longer gap is late */
};

/* The last gap ended at `until` at the earliest. */
static void lost_until(struct lost_times *lt, int64_t until)
{
    gaps_longer(&lt->gaps, until);
    lt->lost.until = max_i64(lt->lost.until, until);
    if (!lt->slow)
        lt->lost.until_of_tasks = lt->lost.until;
}

static void lose_time(struct lost_times *lt, int64_t from, int64_t until)
{
    ASSERT(from <= until);
    gaps_add(&lt->gaps, from, until, lt->lost.grace_ms);
    lt->lost.from = gaps_from(&lt->gaps);
    lt->lost.until = until;
    /* A deadline to be moved stays where it is until the task's owner has moved it. So a gap within
     * the grace time of another one continues it. */
    if (!lt->slow && from >= lt->lost.until_of_tasks + lt->lost.grace_ms)
        lt->lost.from_of_tasks = from;
    lost_until(lt, until);
}

static void slow_time_ends(struct lost_times *lt)
{
    lt->lost_count = 0;
    lt->slow_ms = LATE_INTERVALS * lt->interval_ms;
}

void lost_times_init(struct lost_times *lt, int64_t interval_ms, int64_t grace_ms, int64_t now,
                     int64_t steady)
{
    ASSERT(interval_ms > 0);
    ASSERT(grace_ms > 0);
    *lt = (struct lost_times){
        .interval_ms = interval_ms,
        .last_at = now,
        .last_steady = steady,
        .lost.grace_ms = grace_ms,
    };
    lose_time(lt, 1, lt->last_at);
    slow_time_ends(lt);
}

/* One scan in time does not end a slow time, because late scans are not all equally late. A scan
 * that is far later than the others is still an outage. */
static bool is_just_slow(struct lost_times *lt, int64_t gap)
{
    const int64_t usual = lt->slow_ms;

    if (lt->last_at != lt->late_after)
        lt->slow_ms = gap > usual ? usual * 5 / 4 : usual * 4 / 5;
    lt->late_after = lt->last_at;
    if (lt->last_at == lt->lost_after)
        return false; /* no scan has succeeded since it was detected */
    if (gap <= SLOW_FACTOR * usual) {
        if (lt->lost_count == LOST_MAX)
            return true;
        lt->lost_count++;
    }
    lt->lost_after = lt->last_at;
    return false;
}

int64_t lost_times_scan_begins(struct lost_times *lt, int64_t now, int64_t steady)
{
    int64_t passed = steady - lt->last_steady;
    int64_t shown = now - lt->last_at; /* by the store's time */
    int64_t gap = max_i64(passed, shown);

    if (passed <= LATE_INTERVALS * lt->interval_ms && shown - passed <= lt->interval_ms) {
        if (steady - lt->late_steady >= lt->lost.grace_ms)
            slow_time_ends(lt);
        return 0;
    }
    lt->late_steady = steady;
    lt->slow = is_just_slow(lt, gap);
    lose_time(lt, lt->last_at, now);
    lt->outage_ms = gap;
    if (lt->reported_ms || lt->slow)
        return 0; /* the same outage (the previous scan failed), or nothing new */
    lt->reported_ms = gap;
    return gap;
}

void lost_times_answered(struct lost_times *lt, int64_t now)
{
    if (lt->outage_ms > 0)
        lost_until(lt, now);
}

int64_t lost_times_scan_succeeds(struct lost_times *lt, int64_t began_at, int64_t began_steady)
{
    bool longer = lt->reported_ms > 0 && lt->outage_ms > lt->reported_ms;
    int64_t lasted = longer ? lt->outage_ms : 0;

    lt->last_at = began_at;
    lt->last_steady = began_steady;
    lt->outage_ms = lt->reported_ms = 0;
    return lasted;
}
