/* Decides which moments of a schedule get a task now: those that are due, missed, waiting or in a
 * backlog, and records gaps (plan.h). Pure: times and the row's state are passed in.
 * ticker.c carries the decisions out, and row.c encodes the state. */

#include "schedule/plan.h"

#include "base/when.h"

const char *gap_kind_text(enum gap_kind k)
{
    static const char *const texts[] = {
#define X(name, text) text,
        GAP_KINDS(X)
#undef X
    };
    return texts[k];
}

struct slice run_id(struct slice schedule, int64_t moment, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, schedule);
    buf_byte(&b, '@');
    moment_write(&b, moment);
    return arena_copy(a, buf_view(&b));
}

/* ---- the record ---- */

static void count_gap(struct schedule_state *st, enum gap_kind kind, uint64_t count)
{
    switch (kind) {
    case GAP_MISSED:
        st->missed_count += count;
        return;
    case GAP_SKIPPED:
        st->skipped_count += count;
        return;
    case GAP_FAILED:
        st->failed_count += count;
        return;
    }
    UNREACHABLE();
}

/* Moments in sequence with one reason are one gap: a schedule that is skipped for a month fills no
 * more than one place. */
static void note_gap(struct schedule_state *st, const struct gap *g)
{
    struct gap *latest = st->gap_count > 0 ? &st->gaps[st->gap_count - 1] : NULL;

    count_gap(st, g->kind, g->count);
    st->gap_at = g->noted_at;
    if (latest && latest->kind == g->kind && slice_eq(latest->why, g->why)
        && latest->last >= st->fired && latest->last < g->first) {
        latest->last = g->last;
        latest->count += g->count;
        latest->noted_at = g->noted_at;
        return;
    }
    if (st->gap_count == GAPS_KEPT) {
        st->gap_count--;
        memmove(&st->gaps[0], &st->gaps[1], st->gap_count * sizeof st->gaps[0]);
    }
    st->gaps[st->gap_count++] = *g;
}

static void note(struct schedule_state *st, enum gap_kind kind, int64_t moment, int64_t now)
{
    const struct gap g = {.kind = kind,
                          .first = moment,
                          .last = moment,
                          .noted_at = now,
                          .count = 1,
                          .why = kind == GAP_SKIPPED ? st->run : SLICE_NONE};

    note_gap(st, &g);
}

/* ---- moments ---- */

struct decision {
    const struct schedule *s;
    struct schedule_state *st;
    int64_t now;
    struct arena *arena;
    struct plan *plan;
    size_t failed;  /* moments whose input could not be evaluated */
    bool caught_up; /* some of these moments went into the backlog: so do those after them */
};

static bool is_full(const struct decision *d)
{
    return d->plan->fire_count + d->failed == PLAN_FIRES_MAX;
}

/* It gets no task, and is on record instead. */
static void fail(struct decision *d, int64_t moment, struct slice why)
{
    const struct gap g = {.kind = GAP_FAILED,
                          .first = moment,
                          .last = moment,
                          .noted_at = d->now,
                          .count = 1,
                          .why = arena_copy(d->arena, slice_cut(why, 200))};

    d->failed++;
    note_gap(d->st, &g);
}

/* `before`: the moment before it in its backlog; 0: none. */
static void fire(struct decision *d, int64_t moment, bool is_of_backlog, int64_t before)
{
    struct schedule_state *st = d->st;
    bool is_news = moment > st->fired;
    struct fire f = {.moment = moment, .previous = is_news ? st->fired : before};
    struct error e = {0};

    ASSERT(!is_full(d));
    if (schedule_input(d->s, moment, f.previous, d->arena, &f.input, &e) != ERR_OK) {
        fail(d, moment, slice_of(e.text));
        return;
    }
    d->plan->fires[d->plan->fire_count++] = f;
    st->fired_count++;
    if (is_news)
        st->fired = moment;
    if (d->s->overlap == OVERLAP_ALLOW && !is_of_backlog)
        return;
    ASSERT(!st->run.ptr);
    st->run = run_id(d->s->name, moment, d->arena);
    st->run_is_of_backlog = is_of_backlog;
}

static bool add_range(struct schedule_state *st, int64_t after, int64_t last)
{
    struct backlog_range *latest =
        st->backlog_count > 0 ? &st->backlog[st->backlog_count - 1] : NULL;

    if (latest && latest->last == after) {
        latest->last = last;
        return true;
    }
    if (st->backlog_count == BACKLOG_RANGES_MAX)
        return false;
    st->backlog[st->backlog_count++] = (struct backlog_range){after, last};
    return true;
}

/* A missed moment that is caught up when those before it have run. */
static void queue(struct decision *d, int64_t moment)
{
    const struct schedule_state *st = d->st;
    bool goes_on = st->backlog_count > 0 && st->backlog[st->backlog_count - 1].last == st->last;

    if (add_range(d->st, goes_on ? st->last : moment - 1, moment))
        d->caught_up = true;
    else
        note(d->st, GAP_MISSED, moment, d->now);
}

/* A run is open. */
static void meet_run(struct decision *d, int64_t moment)
{
    struct schedule_state *st = d->st;
    enum overlap overlap = d->s->overlap;

    if ((overlap == OVERLAP_SKIP && !st->run_is_of_backlog) || st->waiting)
        note(st, GAP_SKIPPED, moment, d->now);
    else
        st->waiting = moment;
}

static void begin(struct decision *d, int64_t moment, bool is_latest)
{
    struct schedule_state *st = d->st;

    if (d->s->overlap == OVERLAP_ALLOW)
        fire(d, moment, false, 0);
    else if (d->caught_up || (!is_latest && (st->run.ptr || st->waiting)))
        queue(d, moment);
    else if (st->run.ptr || st->waiting)
        meet_run(d, moment);
    else
        fire(d, moment, false, 0);
}

/* One moment that is due. */
static void decide_moment(struct decision *d, int64_t moment, bool is_latest)
{
    bool is_too_late = schedule_due_at(d->s, moment) < d->now - d->s->catch_up_ms;

    if (is_too_late || (!is_latest && !d->s->missed_all))
        note(d->st, GAP_MISSED, moment, d->now);
    else
        begin(d, moment, is_latest);
    d->st->last = moment;
}

static bool is_due(const struct decision *d, int64_t moment)
{
    return moment >= 0 && schedule_due_at(d->s, moment) <= d->now;
}

/* Without looking at each of them: an interval of a second has 31 million moments a year. */
static void miss_at_once(struct decision *d)
{
    struct schedule_state *st = d->st;
    int64_t every = d->s->every_ms;
    int64_t spread = schedule_due_at(d->s, 0);
    int64_t first = st->last >= 0 ? schedule_next(d->s, st->last) : -1;
    int64_t end = d->now - d->s->catch_up_ms - spread; /* what is before it is too late */

    if (d->s->kind != SCHEDULE_EVERY || first < 0 || first >= end)
        return;
    int64_t count = (end - 1 - first) / every + 1;
    const struct gap g = {.kind = GAP_MISSED,
                          .first = first,
                          .last = first + (count - 1) * every,
                          .noted_at = d->now,
                          .count = (uint64_t)count};
    note_gap(st, &g);
    st->last = g.last;
}

static void decide_moments(struct decision *d)
{
    struct schedule_state *st = d->st;

    miss_at_once(d);
    int64_t moment = schedule_next(d->s, st->last);
    for (int n = 0; is_due(d, moment); n++) {
        if (is_full(d) || n == PLAN_LOOK_MAX) {
            d->plan->more = true;
            return;
        }
        int64_t next = schedule_next(d->s, moment);
        decide_moment(d, moment, !is_due(d, next));
        moment = next;
    }
}

/* ---- what waits ---- */

static void decide_waiting(struct decision *d)
{
    struct schedule_state *st = d->st;
    int64_t moment = st->waiting;

    if (st->run.ptr || !moment)
        return;
    st->waiting = 0;
    fire(d, moment, false, 0);
}

/* The next moment of the backlog, and the one before it; -1: it is empty. */
static int64_t take_backlog(const struct schedule *s, struct schedule_state *st,
                            int64_t *ret_before)
{
    while (st->backlog_count > 0) {
        struct backlog_range *range = &st->backlog[0];
        int64_t moment = schedule_next(s, range->after);
        if (moment >= 0 && moment <= range->last) {
            *ret_before = range->after % MS_PER_S == 0 ? range->after : 0; /* else it begins here */
            range->after = moment;
            return moment;
        }
        st->backlog_count--;
        memmove(range, range + 1, st->backlog_count * sizeof *range);
    }
    return -1;
}

static void decide_backlog(struct decision *d)
{
    struct schedule_state *st = d->st;

    if (st->run.ptr || st->waiting || is_full(d))
        return;
    int64_t before = 0;
    int64_t moment = take_backlog(d->s, st, &before);
    if (moment >= 0)
        fire(d, moment, true, before);
}

static bool wants_undo(const struct schedule *s, const struct schedule_state *st)
{
    return s->overlap == OVERLAP_UNDO && st->run.ptr && st->waiting && !st->run_is_of_backlog;
}

void plan_decide(const struct schedule *s, struct schedule_state *st, bool run_is_open, int64_t now,
                 struct arena *a, struct plan *ret)
{
    struct decision d = {.s = s, .st = st, .now = now, .arena = a, .plan = ret};

    ret->fire_count = 0;
    ret->undo = ret->more = false;
    if (!run_is_open)
        st->run = SLICE_NONE;
    if (st->paused_at)
        return;
    decide_waiting(&d);
    decide_moments(&d);
    decide_backlog(&d);
    ret->undo = wants_undo(s, st);
}

bool plan_waits(const struct schedule_state *st)
{
    return !st->paused_at && st->run.ptr && (st->waiting || st->backlog_count > 0);
}

int64_t plan_wakes_at(const struct schedule *s, const struct schedule_state *st, int64_t now)
{
    if (st->paused_at)
        return 0;
    if (!st->run.ptr && (st->waiting || st->backlog_count > 0))
        return now;
    int64_t next = schedule_next(s, st->last);
    int64_t due_at = next < 0 ? 0 : schedule_due_at(s, next);
    if (wants_undo(s, st)) /* it is asked for again, lest it was lost */
        due_at = due_at ? min_i64(due_at, now + MS_PER_MIN) : now + MS_PER_MIN;
    return due_at;
}

bool plan_pause(struct schedule_state *st, int64_t now)
{
    if (st->paused_at)
        return false;
    st->paused_at = now;
    return true;
}

bool plan_resume(struct schedule_state *st, int64_t now)
{
    if (!st->paused_at)
        return false;
    st->paused_at = 0;
    st->last = now;
    return true;
}

void plan_replace(const struct schedule *old, const struct schedule *new, struct schedule_state *st,
                  int64_t now)
{
    if (!schedule_same_times(old, new))
        st->last = now;
}

enum err plan_backfill(const struct schedule *s, struct schedule_state *st, int64_t from,
                       int64_t to, uint64_t *ret_count, struct error *e)
{
    uint64_t count = 0;

    ASSERT(from >= 0);
    for (int64_t m = schedule_next(s, max_i64(from - 1, 0)); m >= 0 && m <= to;
         m = schedule_next(s, m))
        if (++count > BACKFILL_MAX)
            return error_set(e, ERR_INVALID, "there are more than %d moments from then to then",
                             BACKFILL_MAX);
    if (count == 0)
        return error_set(e, ERR_INVALID, "the schedule has no moment from then to then");
    if (st->backlog_count == BACKLOG_RANGES_MAX)
        return error_set(e, ERR_CONFLICT, "%d backfills are not done yet", BACKLOG_RANGES_MAX);
    st->backlog[st->backlog_count++] = (struct backlog_range){max_i64(from - 1, 0), to};
    *ret_count = count;
    return ERR_OK;
}

/* ---- as JSON ---- */

static void write_count(struct buf *b, const char *key, uint64_t v)
{
    json_member_number(b, key, (int64_t)v);
}

void gaps_write(const struct schedule_state *st, struct buf *b)
{
    json_open(b, '[');
    for (size_t i = 0; i < st->gap_count; i++) {
        const struct gap *g = &st->gaps[i];
        json_open(b, '{');
        json_member_text(b, "kind", slice_of(gap_kind_text(g->kind)));
        json_member_time(b, "from", g->first);
        json_member_time(b, "to", g->last);
        write_count(b, "count", g->count);
        json_member_time(b, "noted_at", g->noted_at);
        json_member_text(b, "why", g->why);
        json_close(b, '}');
    }
    json_close(b, ']');
}

void schedule_state_write(const struct schedule_state *st, struct buf *b)
{
    json_open(b, '{');
    json_member_number(b, "fired_at", st->fired);
    json_member_bool(b, "run_is_of_backlog", st->run_is_of_backlog);
    write_count(b, "fired", st->fired_count);
    write_count(b, "missed", st->missed_count);
    write_count(b, "skipped", st->skipped_count);
    write_count(b, "failed", st->failed_count);
    json_key(b, "backlog");
    json_open(b, '[');
    for (size_t i = 0; i < st->backlog_count; i++) {
        json_open(b, '{');
        json_member_number(b, "after", st->backlog[i].after);
        json_member_number(b, "last", st->backlog[i].last);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_key(b, "gaps");
    gaps_write(st, b);
    json_close(b, '}');
}

static bool read_gap(const struct json *j, struct gap *ret)
{
    struct slice kind = json_get_text(j, "kind");

    for (int k = 0; k <= GAP_FAILED; k++) {
        if (!slice_is(kind, gap_kind_text((enum gap_kind)k)))
            continue;
        *ret = (struct gap){.kind = (enum gap_kind)k,
                            .count = (uint64_t)json_get_int(j, "count", 0),
                            .why = json_get_text(j, "why")};
        return time_parse(json_get_text(j, "from"), &ret->first)
               && time_parse(json_get_text(j, "to"), &ret->last)
               && time_parse(json_get_text(j, "noted_at"), &ret->noted_at);
    }
    return false;
}

static bool read_lists(const struct json *j, struct schedule_state *ret)
{
    const struct json *backlog = json_get(j, "backlog");
    const struct json *gaps = json_get(j, "gaps");

    if (!backlog || !gaps || backlog->count > BACKLOG_RANGES_MAX || gaps->count > GAPS_KEPT)
        return false;
    for (const struct json *m = backlog->child; m; m = m->next)
        ret->backlog[ret->backlog_count++] =
            (struct backlog_range){json_get_int(m, "after", 0), json_get_int(m, "last", 0)};
    for (const struct json *m = gaps->child; m; m = m->next)
        if (!read_gap(m, &ret->gaps[ret->gap_count++]))
            return false;
    return true;
}

enum err schedule_state_read(struct slice doc, struct arena *a, struct schedule_state *ret,
                             struct error *e)
{
    struct json *j = NULL;

    if (json_parse(a, arena_copy(a, doc), &j, NULL) != ERR_OK)
        return error_set(e, ERR_CORRUPT, "the state of a schedule is not JSON");
    ret->fired = json_get_int(j, "fired_at", 0);
    ret->run_is_of_backlog = json_get_bool(j, "run_is_of_backlog", false);
    ret->fired_count = (uint64_t)json_get_int(j, "fired", 0);
    ret->missed_count = (uint64_t)json_get_int(j, "missed", 0);
    ret->skipped_count = (uint64_t)json_get_int(j, "skipped", 0);
    ret->failed_count = (uint64_t)json_get_int(j, "failed", 0);
    ret->backlog_count = ret->gap_count = 0;
    if (!read_lists(j, ret))
        return error_set(e, ERR_CORRUPT, "the state of a schedule cannot be read");
    return ERR_OK;
}
