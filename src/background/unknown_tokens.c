/*
 * Requests with a token that this node does not know. Another node may have created it a moment
 * ago, so the store is asked before such a request is refused. A client without a good token must
 * not be able to load the store, or to take memory: the store is asked for all of them together, a
 * few times a second at most, and few requests are held. Requests for the list of tokens take the
 * same way.
 */

#include "background/unknown_tokens.h"

#include <stdlib.h>

#include "background/room.h"
#include "background/token_list.h"
#include "base/list.h"
#include "node/door.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/part.h"
#include "store/job.h"

enum { PAUSE_MS = 200, HELD_MAX = 64 };

struct held_request {
    struct exchange x;
    struct link link;
    void (*again)(struct server *sv, struct http_request *r);
};

struct unknown_tokens {
    struct server *server;
    uv_timer_t timer;
    bool timer_open, reading;
    int64_t ask_at;                   /* steady: not before */
    struct link waiting, being_asked; /* held requests: for the next read, for this one */
    size_t count;
    /* State of the read: */
    struct store_job job;
    struct arena arena;
    struct generations known, now;
    struct token_list tokens;
    enum err err;
    struct error error;
};

/* ---- reading ---- */

static void read_run(struct store_job *j, struct store *s)
{
    struct unknown_tokens *st = CONTAINER_OF(j, struct unknown_tokens, job);

    st->now = st->known;
    st->err = s->ops->nodes->generations(s, &st->now, &st->error);
    if (st->err == ERR_OK && st->now.tokens != st->known.tokens)
        token_list_read(s, &st->arena, &st->tokens);
}

/* Or not; but that is found out again. */
static void let_in(struct unknown_tokens *st)
{
    for (struct link *l = NULL; (l = list_first(&st->being_asked));) {
        struct held_request *who = CONTAINER_OF(l, struct held_request, link);
        struct http_request *r = who->x.http;
        void (*again)(struct server *, struct http_request *) = who->again;
        link_remove(l);
        exchange_untie(&who->x);
        free(who);
        st->count--;
        if (st->err == ERR_OK)
            again(st->server, r);
        else
            answer_trouble(r, st->err, st->error.text);
    }
}

static void arm(struct unknown_tokens *st);

static void read_done(struct store_job *j)
{
    struct unknown_tokens *st = CONTAINER_OF(j, struct unknown_tokens, job);
    struct server *sv = st->server;

    st->reading = false;
    ASSERT(sv->load.exchanges > 0);
    sv->load.exchanges--;
    if (st->now.tokens != st->known.tokens) {
        token_list_set_generation(sv, st->now.tokens);
        token_list_apply(sv, &st->tokens);
    }
    arena_fini(&st->arena);
    st->arena = (struct arena){0};
    let_in(st);
    arm(st);
}

static void timer_fired(uv_timer_t *t)
{
    struct unknown_tokens *st = t->data;

    ASSERT(!st->reading);
    for (struct link *l = NULL; (l = list_first(&st->waiting));) {
        link_remove(l);
        list_push(&st->being_asked, l);
    }
    st->ask_at = server_steady(NULL) + PAUSE_MS;
    st->reading = true;
    st->known = (struct generations){.tokens = token_list_generation(st->server)};
    st->server->load.exchanges++;
    st->job = (struct store_job){.run = read_run, .done = read_done};
    st->server->store->submit(st->server->store, &st->job);
}

static void arm(struct unknown_tokens *st)
{
    if (!st->timer_open || st->reading || list_empty(&st->waiting))
        return;
    int64_t left = max_i64(0, st->ask_at - server_steady(NULL));
    uv_update_time(&st->server->loop);
    (void)uv_timer_start(&st->timer, timer_fired, (uint64_t)left, 0);
}

/* ---- requests ---- */

static void held_request_gone(struct exchange *x)
{
    struct held_request *who = CONTAINER_OF(x, struct held_request, x);

    link_remove(&who->link);
    who->x.server->background->unknown_tokens->count--;
    free(who);
}

bool unknown_tokens_may_hold(const struct server *sv)
{
    return sv->config.store->shared && !sv->draining
           && sv->background->unknown_tokens->count < HELD_MAX && door_may_wait(sv);
}

bool unknown_tokens_hold(struct server *sv, struct http_request *r,
                         void (*again)(struct server *sv, struct http_request *r))
{
    struct unknown_tokens *st = sv->background->unknown_tokens;

    if (!unknown_tokens_may_hold(sv))
        return false;
    struct held_request *who = calloc(1, sizeof *who);
    ASSERT(who);
    who->again = again;
    exchange_begin(&who->x, sv, r);
    who->x.gone = held_request_gone;
    list_push(&st->waiting, &who->link);
    st->count++;
    arm(st);
    return true;
}

/* ---- life ---- */

static enum err unknown_tokens_open(struct server *sv, struct error *e)
{
    struct unknown_tokens *st = calloc(1, sizeof *st);
    (void)e;

    ASSERT(st);
    st->server = sv;
    list_init(&st->waiting);
    list_init(&st->being_asked);
    int rc = uv_timer_init(&sv->loop, &st->timer);
    ASSERT(rc == 0);
    st->timer.data = st;
    st->timer_open = true;
    sv->background->unknown_tokens = st;
    return ERR_OK;
}

static void unknown_tokens_close(struct server *sv)
{
    struct unknown_tokens *st = sv->background->unknown_tokens;

    st->timer_open = false;
    uv_close((uv_handle_t *)&st->timer, NULL);
}

static void unknown_tokens_free(struct server *sv)
{
    struct unknown_tokens *st = sv->background->unknown_tokens;

    ASSERT(st->count == 0 && !st->reading);
    free(st);
}

const struct part unknown_tokens_part = {
    .name = "unknown tokens",
    .open = unknown_tokens_open,
    .close = unknown_tokens_close,
    .free = unknown_tokens_free,
};
