/*
 * The clocks of a row: its alarm is never later than the events it is for, and only a pause moves
 * times ahead of it (not_before), by its length.
 */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/weather.h"
#include "sim/world.h"

/* After this long without faults no grace time applies. */
enum { CALM_MS = 60000 };

static void must(const struct subject *t, bool ok, const char *rule, const char *what, int64_t ms)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s: %s: %" PRId64 " ms", t->id, what, ms);
}

/* ---- the alarm ---- */

/* What is overdue is checked again after a while; what was due in lost time, after the grace time.
 * Both take about as long. */
static int64_t latest_alarm(int64_t deadline)
{
    bool calm = nodes_quiet_since() + CALM_MS < world.now && weather.store_ms <= SLOW_MS;
    int64_t again = latest_now() + GRACE_MS;

    return calm && deadline > latest_now() ? deadline : max_i64(deadline, again);
}

static uint32_t count_open(const struct seen *s)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->step_count; i++)
        count += seen_open(&s->steps[i]) != NULL;
    return count;
}

static void check_one(const struct subject *t, const struct seen *s, int64_t deadline,
                      const char *what)
{
    must(t, s->wake_at != 0 && s->wake_at <= latest_alarm(deadline),
         "the alarm of a row is no later than anything that it is for", what,
         s->wake_at - deadline);
}

static void check_items_alarm(const struct subject *t, const struct seen *s, uint32_t step)
{
    const struct seen_items *in = t->items[step];

    for (uint32_t i = 0; in && i < in->work_count; i++)
        if (seen_open(&in->work[i].step))
            check_one(t, s, seen_open(&in->work[i].step)->complete_by, "an attempt of an item");
    if (s->paused_at != 0 || s->stop != STOP_NONE || s->direction == DIRECTION_UNDO)
        return;
    for (uint32_t i = 0; in && i < in->work_count; i++)
        if (in->work[i].step.complete_by != 0 && in->work[i].step.state == STEP_WAITING)
            check_one(t, s, in->work[i].step.complete_by, "waiting for the child of an item");
}

void check_alarm(const struct subject *t, const struct seen *s)
{
    int64_t at = s->direction == DIRECTION_UNDO ? s->undo_complete_by : s->complete_by;

    if (seen_is_end(s) || world.set_back)
        return;
    if (count_open(s) > 1)
        covered(COVER_SEVERAL_ALARMS);
    if (at != 0 && !s->deadline_passed && s->paused_at == 0)
        check_one(t, s, at, "the task");
    for (uint32_t i = 0; i < s->step_count; i++)
        if (seen_open(&s->steps[i]))
            check_one(t, s, seen_open(&s->steps[i])->complete_by, "an attempt");
    for (uint32_t i = 0; i < s->step_count; i++)
        check_items_alarm(t, s, i);
    for (uint32_t i = 0; i < s->step_count; i++)
        if (s->steps[i].complete_by != 0 && s->steps[i].state == STEP_WAITING && s->paused_at == 0
            && s->stop == STOP_NONE && s->direction == DIRECTION_FORWARD)
            check_one(t, s, s->steps[i].complete_by, "waiting for a signal or people");
}

/* ---- not_before ---- */

static uint32_t outstanding(const struct subject *t)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ASK_KINDS; i++)
        if (i != ASK_PAUSE && i != ASK_SUBMIT && i != ASK_END)
            count += t->wanted[i] - t->verbs_told[i] - t->refused[i] - t->repeated[i];
    return count;
}

bool check_paused_again(const struct subject *t)
{
    uint32_t known = t->audited[ASK_PAUSE] + t->refused[ASK_PAUSE] + t->repeated[ASK_PAUSE];

    return t->wanted[ASK_PAUSE] > known;
}

void check_verb_asked(struct subject *t)
{
    if (t->seen.paused_at != 0 && t->unpause_at == 0)
        t->unpause_at = store_now();
}

/* The time when somebody asked for it, if only one ask can have caused it. */
static void note_pause(struct subject *t, const struct seen *old, const struct seen *new)
{
    if (new->paused_at != old->paused_at &&new->paused_at != 0)
        t->unpause_at = outstanding(t) > 0 ? -1 : 0;
}

void check_not_before(struct subject *t, const struct seen *old, const struct seen *new)
{
    int64_t moved = new->not_before - old->not_before;
    int64_t asked_at = t->unpause_at;

    note_pause(t, old, new);
    if (old->revision == 0 || world.set_back)
        return;
    bool over = old->paused_at != 0 && new->paused_at != old->paused_at;
    bool ahead = old->not_before > old->paused_at;
    int64_t left = old->not_before - old->paused_at;
    if (!over) {
        must(t, moved == 0 || t->wanted[ASK_PAUSE] > 0, "only a pause moves not_before",
             "it moves by", moved);
        return;
    }
    must(t, ahead || moved == 0 || check_paused_again(t), "a pause moves no moment that has come",
         "it moves by", moved);
    if (!ahead)
        return;
    covered(COVER_PAUSED_EARLY);
    must(t, moved >= 0 && new->not_before <= latest_now() + left,
         "a pause moves not_before by its length", "it moves by", moved);
    if (asked_at > 0 && nodes.store_lost_since == 0)
        must(t, new->not_before + nodes.skew_max + 1 >= asked_at + left,
             "a pause moves not_before by its length", "too short by",
             asked_at + left - new->not_before);
}
