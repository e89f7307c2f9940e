/*
 * Bounds on what waits for the store. While the store is slow or blocked, clients give up and come
 * again, and their first requests still wait: without a bound, memory would grow all that time.
 * Also charges time on the event loop to tokens (fair.c, quota.c).
 */

#include "node/pressure.h"

#include "node/changes.h"
#include "node/fair.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/readings.h"

enum {
    ASKS_MAX = 16384,          /* some 4 KiB each */
    ASKS_BYTES_MAX = 64 << 20, /* of bodies; all in all a few times as much */
    READS_MAX = 8192,
    TREE_MIN = 16 << 20, /* however little memory the server has, small requests are served */
    TREE_MAX = 256 << 20,
    ANSWER_SMALL = 16 << 10,
};

static bool answer_overloaded(struct http_request *r, const char *what)
{
    http_problem(r, 503, "overloaded", "too many %s wait for the store; try again", what);
    return false;
}

/* One body alone always fits, however large bodies may be. */
bool asks_have_room(struct server *sv, struct http_request *r, size_t bytes)
{
    bool fits = sv->load.asks_bytes == 0 || sv->load.asks_bytes + bytes <= ASKS_BYTES_MAX;

    return (fits && asks_may_grow(sv)) || answer_overloaded(r, "changes");
}

bool asks_may_grow(const struct server *sv)
{
    return sv->load.asks_open < ASKS_MAX;
}

size_t asks_left(const struct server *sv)
{
    return sv->load.asks_open < ASKS_MAX ? ASKS_MAX - sv->load.asks_open : 0;
}

bool reads_have_room(struct server *sv, struct http_request *r)
{
    return sv->load.reads_open < READS_MAX || answer_overloaded(r, "readings");
}

size_t trees_max(const struct server *sv)
{
    size_t half = sv->limits.http.memory_max / 2;

    return half < TREE_MIN ? TREE_MIN : half < TREE_MAX ? half : TREE_MAX;
}

size_t trees_left(const struct server *sv)
{
    size_t held = sv->http ? http_held(sv->http) : 0;
    size_t all = sv->limits.http.memory_max;
    size_t left = held < all ? all - held : 0;

    left = left < TREE_MIN ? TREE_MIN : left;
    return left < trees_max(sv) ? left : trees_max(sv);
}

bool reading_has_room(struct server *sv, struct http_request *r, enum reading_kind kind)
{
    if (!quota_reading(r->account, r) || !reads_have_room(sv, r))
        return false;
    return readings_have_room(sv->readings, sv->caller, kind)
           || answer_overloaded(r, "readings of this token");
}

/* Is there room for an answer of about so many bytes, should its client not take it at once? */
bool answer_has_room(struct server *sv, struct http_request *r, size_t bytes)
{
    size_t held = http_held(sv->http);

    if (bytes <= ANSWER_SMALL || held == 0 || held + bytes <= sv->limits.http.memory_max)
        return true;
    http_problem(r, 503, "busy",
                 "there is not enough memory at present for a response of this size; try again");
    return false;
}

/* ---- whose time it is ---- */

void account_worked(void *arg, void *account, uint64_t now_ns, uint64_t took_ns)
{
    struct server *sv = arg;

    fair_charge(sv->fair, quota_share(account), now_ns, took_ns);
    quota_worked(account, now_ns, took_ns);
}

uint64_t account_rests_until(void *arg, void *account, uint64_t now_ns)
{
    const struct server *sv = arg;

    return fair_rests_until(sv->fair, quota_share(account), now_ns);
}

void reading_begin(struct exchange *x, enum reading_kind kind, struct store_job *j)
{
    struct server *sv = x->server;

    x->reading = j;
    j->account = x->http->account;
    readings_add(sv->readings, sv->caller, kind, j);
}

static bool is_alone(void *arg, void *account)
{
    const struct server *sv = arg;

    return fair_is_alone(sv->fair, quota_share(account));
}

struct changes *pressure_changes(struct server *sv)
{
    const struct changes_config c = {.store = sv->store, .is_alone = is_alone, .arg = sv};

    return changes_new(&sv->loop, &c);
}

void server_ask(struct server *sv, struct ask *a)
{
    sv->load.asks_open++;
    scheduler_ask(sv->scheduler, a);
}
