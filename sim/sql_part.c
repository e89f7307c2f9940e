/* A node's part in submissions and signals by SQL, and in schedules: opens the intake of src/intake
 * and the ticker of src/schedule, and passes its turns on (sql_part.h). node.c calls it. sql.c,
 * notices.c and schedules.c have the applications. */

#include "sim/sql_part.h"

#include "schedule/ticker.h"
#include "sim/coverage.h"
#include "sim/notices.h"
#include "sim/schedules.h"
#include "sim/sql.h"

void sql_part_new(struct node *n)
{
    n->intake = sql_intake(n);
    n->notices = sql_signals_reader(n);
    n->ticker = schedules_ticker(n);
}

void sql_part_free(struct node *n)
{
    if (n->notices && notices_is_busy(n->notices))
        covered(COVER_NOTICE_CUT);
    intake_free(n->intake);
    notices_free(n->notices);
    ticker_free(n->ticker);
    n->intake = NULL;
    n->notices = NULL;
    n->ticker = NULL;
}

static int64_t sooner(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return min_i64(a, b);
}

int64_t sql_part_turn(struct node *n)
{
    int64_t take = n->intake ? intake_turn(n->intake) : 0;
    int64_t note = n->notices ? notices_turn(n->notices) : 0;
    int64_t tick = n->ticker ? ticker_turn(n->ticker) : 0;

    return sooner(sooner(take, note), tick);
}

void sql_part_task_ended(const struct node *n, struct slice task)
{
    if (!n->ticker)
        return;
    ticker_task_ended(n->ticker, task);
    check_schedules_hint(n);
}

void sql_part_surveyed(struct node *n, const struct survey *v)
{
    if (n->intake)
        intake_surveyed(n->intake, v);
    if (n->notices)
        notices_surveyed(n->notices, v);
}

void sql_part_family_told(void *arg)
{
    struct node *n = arg;

    if (n->dead)
        return;
    if (n->intake)
        intake_wake(n->intake);
    if (n->notices)
        notices_wake(n->notices);
    if (n->intake || n->notices)
        node_turn_later(n);
}

void sql_part_drain(struct node *n)
{
    if (n->intake)
        intake_drain(n->intake);
    if (n->notices)
        notices_drain(n->notices);
    if (n->ticker)
        ticker_drain(n->ticker);
}

bool sql_part_is_busy(const struct node *n)
{
    return (n->intake && intake_is_busy(n->intake)) || (n->notices && notices_is_busy(n->notices))
           || schedules_are_busy(n);
}

bool sql_part_asked(const struct ask *a)
{
    return sql_asked(a) || sql_signals_asked(a) || schedules_asked(a);
}

void sql_part_answered(struct node *n, struct ask *a)
{
    if (sql_asked(a))
        sql_answered(n, a);
    else if (schedules_asked(a))
        schedules_answered(n, a);
    else
        sql_signals_answered(n, a);
}
