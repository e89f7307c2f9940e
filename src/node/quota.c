/*
 * What each token may use of this node, and what it has used: see quota.h. The defaults are the
 * table below; docs/access.md describes them.
 */

#include "node/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/map.h"
#include "http/http.h"
#include "node/access.h"
#include "node/fair.h"
#include "json/json.h"

/* The defaults are beyond what one client of a node can reach, but that connections that wait are
 * left for others; and so many open tasks fill a disk. */
enum { BURST_S = 10, OTHERS_S = 1, RECENT_S = 60 };

/* A call is charged no more of the loop's time than this: the process may have been stopped while
 * it was served. */
#define WORKED_MAX_NS UINT64_C(1000000000)
#define SECOND_NS     UINT64_C(1000000000)
#define LIMIT_MAX     INT64_C(1000000000000)

/* A token leaves so much of all places to others, and half of them if these called lately. */
enum { SHARE_LEFT = 16, SHARE_OTHERS_S = 60 };

static const struct {
    const char *name, *what;
    uint64_t initial;
    uint64_t unit;   /* what is counted is so much smaller than the limit's unit; 0: the same */
    uint64_t debt_s; /* one call keeps the next ones out for so long at most; 0: any time */
} kinds[QUOTA_KINDS] = {
    [QUOTA_CALLS] = {"calls", "calls a second", .initial = 100000},
    [QUOTA_SUBMISSIONS] = {"submissions", "submissions a second", .initial = 200000},
    [QUOTA_BYTES] = {"bytes", "bytes a second", .initial = UINT64_C(1) << 30, .debt_s = 60},
    [QUOTA_WAITING] = {"waiting", "open calls at a time", .initial = 11000},
    [QUOTA_CPU] = {"cpu", "milliseconds a second of the node's loop", 800, 1000, 60},
    [QUOTA_READINGS] = {"readings", "readings a second", .initial = 100000},
    [QUOTA_OPEN_TASKS] = {"open_tasks", "open tasks", .initial = 10000000},
};

struct quota {
    struct arena arena; /* it lies in it */
    struct slice name;
    struct fair_share share;
    struct quota_limits limits;    /* in force; 0: none */
    uint64_t full_at[QUOTA_KINDS]; /* steady, ns: when the bucket is empty again */
    uint64_t used[QUOTA_KINDS];    /* since the node began; of QUOTA_WAITING: now */
    struct open_tasks {
        uint64_t stored; /* by the latest count, and by the one that is being made ... */
        uint64_t counted;
        int64_t since; /* ... and what began less what ended here since the beginning of each */
        int64_t since_new;
    } open;
    uint64_t refused; /* calls */
    size_t readers;   /* that wait to see something */
    bool is_admin;    /* its token is the admin's: it may have all places */
    int64_t last_at;
    /* What was used by the beginning of this minute and of the one before, in which it was used. */
    uint64_t minute_at; /* steady, ns */
    struct amounts {
        uint64_t used[QUOTA_KINDS], refused;
    } by_now, before;
};

/* Tokens that called: the latest one, and the latest of all others. */
struct recent {
    const struct quota *quota;
    uint64_t at_ns;
};

struct quotas {
    struct map by_name;
    struct recent recent[2];
    /* Since the last count of open tasks began: a token came near its limit, or its use was asked
     * for. */
    bool near_open, wants_count;
};

/* ---- limits ---- */

bool quota_limits_read(const struct json *j, struct quota_limits *ret, struct slice *ret_wrong)
{
    *ret = (struct quota_limits){0};
    *ret_wrong = SLICE("limits");
    if (!j || j->type == JSON_NULL)
        return true;
    if (j->type != JSON_OBJECT)
        return false;
    for (const struct json *m = j->child; m; m = m->next) {
        size_t k = 0;
        int64_t n = 0;
        while (k < QUOTA_KINDS && !slice_is(m->key, kinds[k].name))
            k++;
        *ret_wrong = m->key;
        if (k == QUOTA_KINDS
            || (m->type != JSON_NULL && (!json_int(m, &n) || n < 1 || n > LIMIT_MAX)))
            return false;
        ret->max[k] = (uint64_t)n;
    }
    return true;
}

void quota_limits_write(struct buf *b, const struct quota_limits *l)
{
    json_open(b, '{');
    for (size_t k = 0; k < QUOTA_KINDS; k++) {
        if (l->max[k] == 0)
            continue;
        json_member_number(b, kinds[k].name, (int64_t)l->max[k]);
    }
    json_close(b, '}');
}

/* An admin token has no limits, unless some were set for it. */
static struct quota_limits limits_of(const struct bearer *b)
{
    struct quota_limits l = b->limits;

    for (size_t k = 0; k < QUOTA_KINDS && !(b->roles & ROLE_ADMIN); k++)
        if (l.max[k] == 0)
            l.max[k] = kinds[k].initial;
    return l;
}

/* ---- use ---- */

struct quotas *quotas_new(void)
{
    struct quotas *qs = calloc(1, sizeof *qs);

    ASSERT(qs);
    return qs;
}

void quotas_free(struct quotas *qs)
{
    struct quota *q = NULL;

    if (!qs)
        return;
    for (size_t i = 0; (q = map_next(&qs->by_name, &i));) {
        struct arena a = q->arena;
        arena_fini(&a);
    }
    map_fini(&qs->by_name);
    free(qs);
}

static struct quota *quota_of(struct quotas *qs, struct slice name)
{
    struct quota *q = map_get(&qs->by_name, name);
    struct arena a = {0};

    if (q)
        return q;
    q = arena_alloc(&a, sizeof *q);
    *q = (struct quota){.arena = a};
    q->name = arena_copy(&q->arena, name);
    map_put(&qs->by_name, q->name, q);
    return q;
}

static bool refuse(struct quota *q, struct http_request *r, enum quota_kind k, uint64_t wait_ns)
{
    char header[40];

    q->refused++;
    (void)snprintf(header, sizeof header, "Retry-After: %" PRIu64 "\r\n",
                   (wait_ns + SECOND_NS - 1) / SECOND_NS);
    http_problem_with(r, 429, "over-quota", header,
                      "the token \"%.*s\" exceeds its limit of %" PRIu64 " %s on this node",
                      SLICE_ARG(q->name), q->limits.max[k], kinds[k].what);
    return false;
}

/* Is there room in the bucket? `now_ns` is when the request is served, since its body may have
 * taken longer to come than a burst lasts. */
static bool has_room(struct quota *q, struct http_request *r, uint64_t now_ns, enum quota_kind k)
{
    uint64_t end = now_ns + BURST_S * SECOND_NS;

    if (q->limits.max[k] == 0 || q->full_at[k] < end)
        return true;
    return refuse(q, r, k, q->full_at[k] - end + 1);
}

static void pay(struct quota *q, uint64_t now_ns, enum quota_kind k, uint64_t count)
{
    uint64_t max = q->limits.max[k] * (kinds[k].unit ? kinds[k].unit : 1);
    uint64_t from = q->full_at[k] > now_ns ? q->full_at[k] : now_ns;

    q->used[k] += count;
    if (max == 0)
        return;
    q->full_at[k] = from + count / max * SECOND_NS + count % max * SECOND_NS / max;
    uint64_t latest = now_ns + (BURST_S + kinds[k].debt_s) * SECOND_NS;
    if (kinds[k].debt_s != 0 && q->full_at[k] > latest)
        q->full_at[k] = latest;
}

/* Debts are those of the limits before. */
static void set_limits(struct quota *q, struct quota_limits l)
{
    for (size_t k = 0; k < QUOTA_KINDS; k++)
        if (l.max[k] != q->limits.max[k])
            q->full_at[k] = 0;
    q->limits = l;
}

static struct amounts amounts_of(const struct quota *q)
{
    struct amounts a = {.refused = q->refused};

    memcpy(a.used, q->used, sizeof a.used);
    return a;
}

/* A minute that has passed is the one before; after another one without use there is none. */
static void turn_minute(struct quota *q, uint64_t now_ns)
{
    const uint64_t minute = RECENT_S * SECOND_NS;

    if (now_ns < q->minute_at + minute)
        return;
    q->before = now_ns < q->minute_at + 2 * minute ? q->by_now : amounts_of(q);
    q->by_now = amounts_of(q);
    q->minute_at = now_ns;
}

static void note(struct quotas *qs, const struct quota *q, uint64_t now_ns)
{
    if (qs->recent[0].quota != q)
        qs->recent[1] = qs->recent[0];
    qs->recent[0] = (struct recent){q, now_ns};
}

/* Has another token called just now? */
static bool has_others(const struct quotas *qs, const struct quota *q, uint64_t now_ns,
                       uint64_t seconds)
{
    for (size_t i = 0; i < COUNT_OF(qs->recent); i++)
        if (qs->recent[i].quota && qs->recent[i].quota != q
            && qs->recent[i].at_ns + seconds * SECOND_NS > now_ns)
            return true;
    return false;
}

struct quota *quota_enter(struct quotas *qs, const struct bearer *b, struct http_request *r,
                          int64_t now, bool is_work)
{
    struct quota *q = quota_of(qs, b->name);
    uint64_t now_ns = uv_hrtime();

    q->is_admin = b->roles & ROLE_ADMIN;

    set_limits(q, limits_of(b));
    q->last_at = now;
    note(qs, q, now_ns);
    turn_minute(q, now_ns);
    if (!has_room(q, r, now_ns, QUOTA_CALLS)
        || (r->body.len > 0 && !has_room(q, r, now_ns, QUOTA_BYTES))
        || (has_others(qs, q, now_ns, OTHERS_S) && !has_room(q, r, now_ns, QUOTA_CPU)))
        return NULL;
    q->used[QUOTA_WAITING]++;
    if (!is_work && !quota_may_wait(q)) {
        q->used[QUOTA_WAITING]--;
        quota_refuse_to_wait(q, r);
        return NULL;
    }
    pay(q, now_ns, QUOTA_CALLS, 1);
    pay(q, now_ns, QUOTA_BYTES, r->body.len);
    return q;
}

bool quota_may_wait(const struct quota *q)
{
    return !q || !q->limits.max[QUOTA_WAITING]
           || q->used[QUOTA_WAITING] <= q->limits.max[QUOTA_WAITING];
}

void quota_refuse_to_wait(struct quota *q, struct http_request *r)
{
    (void)refuse(q, r, QUOTA_WAITING, SECOND_NS);
}

bool quota_share_has_room(const struct quotas *qs, const struct quota *q, size_t has, size_t all)
{
    if (!q || q->is_admin)
        return true;
    size_t left = has_others(qs, q, uv_hrtime(), SHARE_OTHERS_S) ? all / 2 : all / SHARE_LEFT;
    return has < all - (left > 0 ? left : all > 1);
}

size_t quota_open(const struct quota *q)
{
    return q ? (size_t)q->used[QUOTA_WAITING] : 0;
}

size_t quota_readers(const struct quota *q)
{
    return q ? q->readers : 0;
}

void quota_reads(struct quota *q, bool more)
{
    if (!q)
        return;
    ASSERT(more || q->readers > 0);
    q->readers += more ? 1 : (size_t)-1;
}

struct slice quota_name(const struct quota *q)
{
    return q ? q->name : SLICE_NONE;
}

struct fair_share *quota_share(struct quota *q)
{
    return q ? &q->share : NULL;
}

void quota_leave(struct quota *q)
{
    if (!q)
        return;
    ASSERT(q->used[QUOTA_WAITING] > 0);
    q->used[QUOTA_WAITING]--;
}

void quota_worked(struct quota *q, uint64_t now_ns, uint64_t took_ns)
{
    if (q)
        pay(q, now_ns, QUOTA_CPU, (took_ns < WORKED_MAX_NS ? took_ns : WORKED_MAX_NS) / 1000);
}

static uint64_t open_tasks(const struct quota *q)
{
    int64_t n = (int64_t)q->open.stored + q->open.since;

    return n > 0 ? (uint64_t)n : 0;
}

bool quota_submits(struct quotas *qs, struct quota *q, struct http_request *r, uint64_t count)
{
    uint64_t now_ns = uv_hrtime();

    if (!q)
        return true;
    uint64_t most = q->limits.max[QUOTA_OPEN_TASKS];
    qs->near_open |= most != 0 && open_tasks(q) >= most - most / 4;
    if (most != 0 && open_tasks(q) >= most)
        return refuse(q, r, QUOTA_OPEN_TASKS, SECOND_NS);
    if (!has_room(q, r, now_ns, QUOTA_SUBMISSIONS))
        return false;
    pay(q, now_ns, QUOTA_SUBMISSIONS, count);
    return true;
}

bool quota_reading(struct quota *q, struct http_request *r)
{
    uint64_t now_ns = uv_hrtime();

    if (!q)
        return true;
    if (!has_room(q, r, now_ns, QUOTA_READINGS))
        return false;
    pay(q, now_ns, QUOTA_READINGS, 1);
    return true;
}

/* ---- open tasks ---- */

void quotas_task(struct quotas *qs, struct slice owner, bool begins)
{
    if (!owner.ptr)
        return;
    struct quota *q = quota_of(qs, owner);
    q->open.since += begins ? 1 : -1;
    q->open.since_new += begins ? 1 : -1;
}

void quotas_count_begin(struct quotas *qs)
{
    struct quota *q = NULL;

    qs->near_open = qs->wants_count = false;
    for (size_t i = 0; (q = map_next(&qs->by_name, &i));) {
        q->open.counted = 0;
        q->open.since_new = 0;
    }
}

void quotas_counted(struct quotas *qs, struct slice owner)
{
    quota_of(qs, owner)->open.counted++;
}

void quotas_count_end(struct quotas *qs)
{
    struct quota *q = NULL;

    for (size_t i = 0; (q = map_next(&qs->by_name, &i));) {
        q->open.stored = q->open.counted;
        q->open.since = q->open.since_new;
    }
}

bool quotas_want_count(const struct quotas *qs)
{
    return qs->near_open || qs->wants_count;
}

bool quotas_near(const struct quotas *qs)
{
    return qs->near_open;
}

static void render_amount(struct buf *out, size_t k, uint64_t count)
{
    json_member_number(out, kinds[k].name, (int64_t)(count / (kinds[k].unit ? kinds[k].unit : 1)));
}

static void render_limits(const struct quota_limits *l, struct buf *out)
{
    json_key(out, "limits");
    json_open(out, '{');
    for (size_t k = 0; k < QUOTA_KINDS; k++) {
        json_key(out, kinds[k].name);
        if (l->max[k])
            json_number(out, (int64_t)l->max[k]);
        else
            json_null(out);
    }
    json_close(out, '}');
}

static void render_use(const struct quota *q, struct buf *out)
{
    json_key(out, "use");
    json_open(out, '{');
    for (size_t k = 0; k < QUOTA_KINDS; k++)
        render_amount(out, k, k == QUOTA_OPEN_TASKS ? open_tasks(q) : q->used[k]);
    json_member_number(out, "refused", (int64_t)q->refused);
    json_close(out, '}');
    json_key(out, "recent");
    json_open(out, '{');
    for (size_t k = 0; k < QUOTA_KINDS; k++)
        if (k != QUOTA_WAITING && k != QUOTA_OPEN_TASKS)
            render_amount(out, k, q->used[k] - q->before.used[k]);
    json_member_number(out, "refused", (int64_t)(q->refused - q->before.refused));
    json_close(out, '}');
}

void quota_render(struct quotas *qs, const struct bearer *b, uint64_t now_ns, struct buf *out)
{
    struct quota none = {0};
    struct quota *q = map_get(&qs->by_name, b->name);
    const struct quota_limits limits = limits_of(b);

    qs->wants_count = true;
    q = q ? q : &none;
    turn_minute(q, now_ns);
    render_limits(&limits, out);
    render_use(q, out);
    json_member_time(out, "last_used_at", q->last_at);
}
