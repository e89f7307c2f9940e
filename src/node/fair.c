/* Fair shares of the loop's time among tokens: deficit round robin, after Shreedhar and Varghese,
 * "Efficient Fair Queuing using Deficit Round Robin", 1995, with time in the place of bytes. */

#include "node/fair.h"

#include <stdlib.h>

#include "base/list.h"
#include "node/exchange.h"
#include "node/node.h"

#define ALONE_NS    UINT64_C(1000000000) /* so long without a call of another token */
#define REST_MAX_NS UINT64_C(250000000)  /* of one call */

struct fair {
    struct server *server;
    void (*serve)(struct server *sv, struct http_request *r);
    uv_idle_t idle;   /* active while something waits that may go on at once */
    uv_timer_t timer; /* the end of the first rest */
    struct link active;
    size_t count;
    uint64_t round;
    /* Tokens that called or were served: the latest one, and the latest of all others. */
    struct fair_call {
        const struct fair_share *share;
        uint64_t at_ns; /* 0: none did */
    } recent[2];
};

struct held {
    struct exchange x;
    struct link link;
    struct fair *fair;
    struct fair_share *share;
};

static void on_idle(uv_idle_t *h)
{
    (void)h; /* it only keeps the loop from waiting */
}

static void on_timer(uv_timer_t *h)
{
    (void)h; /* the round that follows does all */
}

struct fair *fair_new(struct server *sv, uv_loop_t *loop,
                      void (*serve)(struct server *sv, struct http_request *r))
{
    struct fair *f = calloc(1, sizeof *f);

    ASSERT(f);
    f->server = sv;
    f->serve = serve;
    f->round = 1;
    list_init(&f->active);
    int rc = uv_idle_init(loop, &f->idle) | uv_timer_init(loop, &f->timer);
    ASSERT(rc == 0);
    return f;
}

void fair_close(struct fair *f)
{
    ASSERT(f->count == 0 && list_empty(&f->active));
    uv_close((uv_handle_t *)&f->idle, NULL);
    uv_close((uv_handle_t *)&f->timer, NULL);
}

void fair_free(struct fair *f)
{
    free(f);
}

size_t fair_waiting(const struct fair *f)
{
    return f->count;
}

uint64_t fair_round(const struct fair *f)
{
    return f->round;
}

/* ---- whose turn it is ---- */

static void note_call(struct fair *f, const struct fair_share *s, uint64_t now)
{
    if (f->recent[0].share != s)
        f->recent[1] = f->recent[0];
    f->recent[0] = (struct fair_call){s, now};
}

static bool is_recent(const struct fair_call *r, uint64_t now)
{
    return r->at_ns != 0 && now - r->at_ns <= ALONE_NS;
}

/* Those that wait are there, however long ago they called: they may be resting. */
static bool is_alone(const struct fair *f, const struct fair_share *s, uint64_t now)
{
    for (size_t i = 0; i < COUNT_OF(f->recent); i++)
        if (f->recent[i].share != s && is_recent(&f->recent[i], now))
            return false;
    for (struct link *l = f->active.next; l != &f->active; l = l->next)
        if (CONTAINER_OF(l, struct fair_share, link) != s)
            return false;
    return true;
}

bool fair_is_alone(const struct fair *f, const struct fair_share *s)
{
    return is_alone(f, s, uv_hrtime());
}

/* What was spent beyond the slice of a round is carried into the next ones. */
static uint64_t spent(const struct fair *f, struct fair_share *s)
{
    uint64_t rounds = f->round - s->round;

    if (rounds > 0) {
        s->spent_ns =
            rounds > s->spent_ns / FAIR_SLICE_NS ? 0 : s->spent_ns - rounds * FAIR_SLICE_NS;
        s->round = f->round;
    }
    return s->spent_ns;
}

static bool may_go_on(const struct fair *f, struct fair_share *s, uint64_t now)
{
    return is_alone(f, s, now) || (spent(f, s) < FAIR_SLICE_NS && now >= s->rests_until_ns);
}

uint64_t fair_rests_until(const struct fair *f, struct fair_share *s, uint64_t now)
{
    if (!s || may_go_on(f, s, now))
        return 0;
    return s->rests_until_ns > now ? s->rests_until_ns : now;
}

void fair_charge(struct fair *f, struct fair_share *s, uint64_t now, uint64_t took)
{
    note_call(f, s, now);
    if (!s)
        return;
    s->spent_ns = spent(f, s) + (took < FAIR_SLICE_NS ? took : FAIR_SLICE_NS);
    if (took > FAIR_SLICE_NS) {
        uint64_t rest = 2 * (took - FAIR_SLICE_NS);
        s->rests_until_ns = now + (rest < REST_MAX_NS ? rest : REST_MAX_NS);
    }
}

/* ---- those that wait ---- */

static void held_remove(struct held *h)
{
    link_remove(&h->link);
    if (list_empty(&h->share->waiting))
        link_remove(&h->share->link);
    h->fair->count--;
    free(h);
}

static void held_gone(struct exchange *x)
{
    held_remove(CONTAINER_OF(x, struct held, x));
}

bool fair_holds(struct fair *f, struct fair_share *s, struct http_request *r)
{
    if (!s)
        return false;
    if (!s->waiting.next)
        list_init(&s->waiting);
    if (list_empty(&s->waiting) && may_go_on(f, s, uv_hrtime()))
        return false;
    note_call(f, s, uv_hrtime());
    struct held *h = calloc(1, sizeof *h);
    ASSERT(h);
    h->fair = f;
    h->share = s;
    exchange_begin(&h->x, f->server, r);
    h->x.gone = held_gone;
    list_push(&s->waiting, &h->link);
    if (!link_is_in(&s->link))
        list_push(&f->active, &s->link);
    f->count++;
    (void)uv_idle_start(&f->idle, on_idle);
    return true;
}

static void serve_first(struct fair *f, struct fair_share *s)
{
    struct link *first = list_first(&s->waiting);

    ASSERT(first);
    struct held *h = CONTAINER_OF(first, struct held, link);
    struct http_request *r = h->x.http;

    exchange_untie(&h->x);
    held_remove(h);
    f->serve(f->server, r);
}

/* One round: each active share is served once. Serving may make others active, and may remove any
 * of these from the list. */
static void serve_round(struct fair *f)
{
    struct link todo;
    struct link *l = NULL;

    list_init(&todo);
    list_take_all(&todo, &f->active);
    while ((l = list_first(&todo))) {
        struct fair_share *s = CONTAINER_OF(l, struct fair_share, link);
        link_remove(l);
        while (!list_empty(&s->waiting) && may_go_on(f, s, uv_hrtime()))
            serve_first(f, s);
        if (!list_empty(&s->waiting) && !link_is_in(&s->link))
            list_push(&f->active, &s->link);
    }
}

/* The loop does not block if a share can go on in the next round; otherwise it blocks until a rest
 * ends. */
static void arm(struct fair *f)
{
    uint64_t now = uv_hrtime();
    uint64_t first = UINT64_MAX;

    for (struct link *l = f->active.next; l != &f->active; l = l->next) {
        const struct fair_share *s = CONTAINER_OF(l, struct fair_share, link);
        if (s->rests_until_ns < first)
            first = s->rests_until_ns;
    }
    if (first <= now) {
        (void)uv_idle_start(&f->idle, on_idle);
        return;
    }
    (void)uv_idle_stop(&f->idle);
    if (first == UINT64_MAX)
        return;
    uv_update_time(f->timer.loop);
    (void)uv_timer_start(&f->timer, on_timer, (first - now) / 1000000 + 1, 0);
}

void fair_turn(struct fair *f)
{
    f->round++;
    if (list_empty(&f->active) && !uv_is_active((uv_handle_t *)&f->idle))
        return;
    serve_round(f);
    arm(f);
}
