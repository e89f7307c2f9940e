/* The breaker's state machine, and its record as JSON. Pure: no clock, no store. tasks/breakers.c
 * drives it. */

#include "dispatch/breaker.h"

#include <stdio.h>

#include "json/json.h"

const char *breaker_state_text(enum breaker_state s)
{
    static const char *const texts[] = {
#define X(name, text) text,
        BREAKER_STATES(X)
#undef X
    };
    ASSERT(s < BREAKER_STATE_COUNT);
    return texts[s];
}

/* ---- the window ---- */

static void window_clear(struct breaker *b)
{
    memset(b->buckets, 0, sizeof b->buckets);
    b->sum = (struct breaker_bucket){0};
}

static void bucket_drop(struct breaker *b, struct breaker_bucket *k)
{
    b->sum.ends -= k->ends;
    b->sum.bad -= k->bad;
    b->sum.slow -= k->slow;
    *k = (struct breaker_bucket){0};
}

/* The current bucket, after emptying those that have left the window. */
static struct breaker_bucket *bucket_now(struct breaker *b, const struct breaker_rule *r,
                                         int64_t now)
{
    int64_t length = max_i64(r->window_ms / BREAKER_BUCKETS, 1);
    int64_t at = now / length;

    if (b->bucket_ms != length || at - b->bucket_at >= BREAKER_BUCKETS) {
        window_clear(b);
        b->bucket_ms = length;
        b->bucket_at = at;
    }
    while (b->bucket_at < at) {
        b->bucket_at++;
        bucket_drop(b, &b->buckets[b->bucket_at % BREAKER_BUCKETS]);
    }
    return &b->buckets[b->bucket_at % BREAKER_BUCKETS];
}

static bool is_at_least(uint32_t part, uint32_t of, uint32_t percent)
{
    return (uint64_t)part * 100 >= (uint64_t)of * percent;
}

/* ---- states ---- */

static void next_epoch(struct breaker *b)
{
    b->epoch++;
    if (b->epoch == 0) /* 0 means "no trial" */
        b->epoch = 1;
}

static void enter(struct breaker *b, enum breaker_state s, int64_t now)
{
    b->state = s;
    b->since = now;
    b->until = 0;
    b->by_hand = false;
    b->trials = b->good = 0;
    next_epoch(b);
}

static void say(struct breaker *b, struct slice reason)
{
    (void)snprintf(b->reason, sizeof b->reason, "%.*s",
                   SLICE_ARG(slice_cut(reason, BREAKER_REASON_SIZE - 1)));
}

static uint64_t mix(uint64_t z) /* splitmix64's finisher */
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Doubles each time, up to max_wait; the last fifth is random. */
static int64_t wait_of(const struct breaker *b, const struct breaker_rule *r, uint64_t seed)
{
    int64_t wait = r->wait_ms;

    for (uint32_t i = 1; i < b->times && wait < r->max_wait_ms; i++)
        wait *= 2;
    wait = min_i64(wait, r->max_wait_ms);
    int64_t part = wait / 5;
    return wait - part + (int64_t)(mix(seed ^ b->times) % (uint64_t)(part + 1));
}

static void open_for_a_wait(struct breaker *b, const struct breaker_rule *r, int64_t now,
                            uint64_t seed)
{
    enter(b, BREAKER_OPEN, now);
    b->times++;
    b->until = now + wait_of(b, r, seed);
}

static void close(struct breaker *b, int64_t now)
{
    enter(b, BREAKER_CLOSED, now);
    b->times = 0;
    window_clear(b);
}

static bool trial_ended(struct breaker *b, const struct breaker_rule *r, enum breaker_end end,
                        int64_t now, uint64_t seed)
{
    if (end == END_BAD || (end == END_SLOW && r->slow_ms > 0)) {
        open_for_a_wait(b, r, now, seed);
        say(b, end == END_BAD ? SLICE("a trial failed") : SLICE("a trial was slow"));
        return true;
    }
    b->good++;
    if (b->good < r->trials)
        return false;
    close(b, now);
    say(b, SLICE("the trials succeeded"));
    return true;
}

static bool closed_ended(struct breaker *b, const struct breaker_rule *r, enum breaker_end end,
                         int64_t now, uint64_t seed)
{
    struct breaker_bucket *k = bucket_now(b, r, now);

    k->ends++;
    b->sum.ends++;
    k->bad += end == END_BAD;
    b->sum.bad += end == END_BAD;
    k->slow += end == END_SLOW;
    b->sum.slow += end == END_SLOW;
    if (b->sum.ends < r->calls)
        return false;
    bool failed = is_at_least(b->sum.bad, b->sum.ends, r->failures_percent);
    bool slow = r->slow_ms > 0 && is_at_least(b->sum.slow, b->sum.ends, r->slow_percent);
    if (!failed && !slow)
        return false;
    open_for_a_wait(b, r, now, seed);
    (void)snprintf(b->reason, sizeof b->reason, "%" PRIu32 " of %" PRIu32 " attempts %s",
                   failed ? b->sum.bad : b->sum.slow, b->sum.ends, failed ? "failed" : "were slow");
    window_clear(b);
    return true;
}

bool breaker_ended(struct breaker *b, const struct breaker_rule *r, enum breaker_end end,
                   int64_t started_at, int64_t now, uint64_t seed)
{
    if (r->off)
        return false;
    switch (b->state) {
    case BREAKER_CLOSED: /* an attempt begun in an outage says nothing about the time after it */
        return started_at >= b->since && closed_ended(b, r, end, now, seed);
    case BREAKER_HALF_OPEN:
        return started_at >= b->since && trial_ended(b, r, end, now, seed);
    case BREAKER_OPEN:
    case BREAKER_STATE_COUNT:
        return false;
    }
    UNREACHABLE();
}

/* A new epoch: attempts at work are no longer trials, but their results still count. */
static void more_trials(struct breaker *b, const struct breaker_rule *r, int64_t now)
{
    if (b->trials < r->trials || now < b->patient_until)
        return;
    b->trials = 0;
    next_epoch(b);
}

bool breaker_tick(struct breaker *b, const struct breaker_rule *r, int64_t now)
{
    if (b->state == BREAKER_HALF_OPEN)
        more_trials(b, r, now);
    if (b->state != BREAKER_OPEN || b->by_hand || now < b->until)
        return false;
    enter(b, BREAKER_HALF_OPEN, now);
    return true;
}

int64_t breaker_next(const struct breaker *b, const struct breaker_rule *r)
{
    if (b->state == BREAKER_HALF_OPEN)
        return b->trials < r->trials ? 0 : b->patient_until;
    return b->state == BREAKER_OPEN && !b->by_hand ? b->until : 0;
}

bool breaker_ruled(struct breaker *b, const struct breaker_rule *r, int64_t now)
{
    if (b->state == BREAKER_CLOSED || b->by_hand)
        return false;
    if (!r->off) {
        b->until = min_i64(b->until, now + r->max_wait_ms);
        return false;
    }
    close(b, now);
    say(b, SLICE("it is switched off"));
    return true;
}

void breaker_open_by_hand(struct breaker *b, struct slice reason, int64_t now)
{
    enter(b, BREAKER_OPEN, now);
    b->by_hand = true;
    window_clear(b);
    say(b, reason.ptr ? reason : SLICE("by hand"));
}

void breaker_close_by_hand(struct breaker *b, struct slice reason, int64_t now)
{
    close(b, now);
    say(b, reason.ptr ? reason : SLICE("by hand"));
}

/* ---- trials ---- */

uint32_t breaker_room(const struct breaker *b, const struct breaker_rule *r)
{
    switch (b->state) {
    case BREAKER_CLOSED:
        return UINT32_MAX;
    case BREAKER_HALF_OPEN:
        return b->trials < r->trials ? r->trials - b->trials : 0;
    case BREAKER_OPEN:
    case BREAKER_STATE_COUNT:
        return 0;
    }
    UNREACHABLE();
}

uint32_t breaker_start(struct breaker *b, const struct breaker_rule *r, int64_t now)
{
    ASSERT(b->state != BREAKER_OPEN);
    if (b->state == BREAKER_CLOSED)
        return 0;
    b->trials++;
    b->patient_until = now + r->max_wait_ms;
    return b->epoch;
}

uint32_t breaker_adopt(struct breaker *b, const struct breaker_rule *r, int64_t started_at,
                       int64_t now)
{
    bool is_trial = b->state == BREAKER_HALF_OPEN && started_at >= b->since;

    return is_trial ? breaker_start(b, r, now) : 0;
}

void breaker_trial_over(struct breaker *b, uint32_t epoch)
{
    if (epoch == 0 || epoch != b->epoch)
        return;
    ASSERT(b->trials > 0);
    b->trials--;
}

/* ---- other nodes, and restarts ---- */

struct breaker_record breaker_record(const struct breaker *b)
{
    return (struct breaker_record){.state =
                                       b->state == BREAKER_CLOSED ? BREAKER_CLOSED : BREAKER_OPEN,
                                   .by_hand = b->by_hand,
                                   .since = b->since,
                                   .until = b->until,
                                   .times = b->times,
                                   .reason = b->reason[0] ? slice_of(b->reason) : SLICE_NONE};
}

bool breaker_follow(struct breaker *b, const struct breaker_rule *r,
                    const struct breaker_record *rec, int64_t now)
{
    bool was_open = b->state != BREAKER_CLOSED;

    if (rec->state == BREAKER_CLOSED) {
        if (was_open)
            close(b, now);
        window_clear(b); /* the record's writer knew more about the time before */
        say(b, rec->reason);
        return was_open;
    }
    int64_t until = rec->by_hand ? rec->until : min_i64(rec->until, now + r->max_wait_ms);
    bool news = b->state != BREAKER_OPEN || b->by_hand != rec->by_hand || b->until != until;
    if (news)
        enter(b, BREAKER_OPEN, now);
    b->by_hand = rec->by_hand;
    b->until = until;
    b->times = rec->times;
    b->since = min_i64(rec->since, now);
    window_clear(b);
    say(b, rec->reason);
    return news;
}

void breaker_record_write(struct buf *b, const struct breaker_record *rec)
{
    json_open(b, '{');
    json_key(b, "state");
    json_string(b, slice_of(breaker_state_text(rec->state)));
    json_key(b, "by_hand");
    json_bool(b, rec->by_hand);
    json_key(b, "since");
    json_number(b, rec->since);
    json_key(b, "until");
    json_number(b, rec->until);
    json_key(b, "times");
    json_number(b, rec->times);
    json_key(b, "reason");
    json_string(b, rec->reason);
    json_close(b, '}');
}

enum err breaker_record_read(struct slice text, struct arena *a, struct breaker_record *ret)
{
    struct json *j = NULL;

    if (json_parse(a, arena_copy(a, text), &j, NULL) != ERR_OK || j->type != JSON_OBJECT)
        return ERR_INVALID;
    bool open = slice_is(json_get_text(j, "state"), "open");
    struct breaker_record rec = {
        .state = open ? BREAKER_OPEN : BREAKER_CLOSED,
        .by_hand = open && json_get_bool(j, "by_hand", false),
        .since = max_i64(json_get_int(j, "since", 0), 0),
        .until = max_i64(json_get_int(j, "until", 0), 0),
        .times = (uint32_t)min_i64(max_i64(json_get_int(j, "times", 0), 0), 1000),
        .reason = json_get_text(j, "reason"),
    };
    *ret = rec;
    return ERR_OK;
}

void breaker_render(struct buf *b, const struct breaker *br)
{
    json_open(b, '{');
    json_key(b, "state");
    json_string(b, slice_of(breaker_state_text(br->state)));
    json_key(b, "since");
    json_time(b, br->since);
    json_key(b, "until");
    json_time(b, br->until);
    json_key(b, "reason");
    json_string(b, br->reason[0] ? slice_of(br->reason) : SLICE_NONE);
    json_key(b, "by_hand");
    json_bool(b, br->by_hand);
    json_close(b, '}');
}
