/*
 * Keeps the tokens and sessions in memory equal to those in the store: reads all of them again
 * whenever they have changed, until that succeeds. Changes themselves are made by api/tokens.c and
 * api/sessions.c.
 */

#include "background/token_list.h"

#include <stdlib.h>

#include "background/room.h"
#include "node/access.h"
#include "node/node.h"
#include "node/part.h"
#include "node/sessions.h"
#include "store/job.h"

enum { RELOAD_MS = 500 };

void token_list_read(struct store *st, struct arena *a, struct token_list *ret)
{
    struct error e = {0};

    ret->err = st->ops->token_list(st, a, &ret->rows, &ret->count, &e);
    if (ret->err == ERR_OK && st->ops->sessions)
        ret->err = st->ops->sessions->list(st, a, &ret->sessions, &ret->session_count, &e);
}

struct token_reload {
    uv_timer_t timer; /* reads the tokens again ... */
    bool stale;       /* ... until that succeeds */
    uint64_t generation;
};

struct reload {
    struct store_job job;
    struct server *server;
    struct arena arena;
    struct token_list list;
};

static void timer_fired(uv_timer_t *t);

static void reload_due(struct server *sv)
{
    struct token_reload *t = sv->background->token_reload;

    t->stale = true;
    if (!uv_is_active((uv_handle_t *)&t->timer)) /* it cannot fail: it has a callback */
        (void)uv_timer_start(&t->timer, timer_fired, RELOAD_MS, 0);
}

/* Whatever the result of a change, the store knows which tokens are good. If it cannot be read now,
 * it is read later, until it succeeds. */
void token_list_apply(struct server *sv, const struct token_list *list)
{
    if (list->err != ERR_OK) {
        reload_due(sv);
        return;
    }
    sv->background->token_reload->stale = false;
    access_load(sv->access, list->rows, list->count);
    sessions_load(sv->sessions, list->sessions, list->session_count);
    sv->tokens_changed(sv);
}

static void reload_run(struct store_job *j, struct store *store)
{
    struct reload *rl = CONTAINER_OF(j, struct reload, job);

    token_list_read(store, &rl->arena, &rl->list);
}

static void reload_done(struct store_job *j)
{
    struct reload *rl = CONTAINER_OF(j, struct reload, job);

    token_list_apply(rl->server, &rl->list);
    ASSERT(rl->server->load.exchanges > 0);
    rl->server->load.exchanges--;
    arena_fini(&rl->arena);
    free(rl);
}

static void reload(struct server *sv)
{
    struct reload *rl = NULL;

    if (!sv->background->token_reload->stale || sv->ended)
        return;
    rl = calloc(1, sizeof *rl);
    ASSERT(rl);
    rl->server = sv;
    rl->job = (struct store_job){.run = reload_run, .done = reload_done};
    sv->load.exchanges++;
    sv->store->submit(sv->store, &rl->job);
}

static void timer_fired(uv_timer_t *t)
{
    reload(t->data);
}

uint64_t token_list_generation(const struct server *sv)
{
    return sv->background->token_reload->generation;
}

void token_list_set_generation(struct server *sv, uint64_t generation)
{
    sv->background->token_reload->generation = generation;
}

/* At once, and then until it succeeds. What this node changed itself comes back here, too. */
void token_list_check_generation(struct server *sv, uint64_t generation)
{
    struct token_reload *t = sv->background->token_reload;

    if (generation == t->generation)
        return;
    t->generation = generation;
    t->stale = true;
    reload(sv);
}

enum err token_list_load(struct server *sv, struct error *e)
{
    struct store *st = sv->config.store;
    struct session_row *sessions = NULL;
    struct token_row *rows = NULL;
    struct arena a = {0};
    size_t session_count = 0;
    size_t count = 0;

    enum err err = st->ops->token_list(st, &a, &rows, &count, e);
    if (err == ERR_OK && st->ops->sessions)
        err = st->ops->sessions->list(st, &a, &sessions, &session_count, e);
    if (err == ERR_OK) {
        access_load(sv->access, rows, count);
        sessions_load(sv->sessions, sessions, session_count);
    }
    arena_fini(&a);
    return err;
}

static enum err token_list_open(struct server *sv, struct error *e)
{
    struct token_reload *t = calloc(1, sizeof *t);
    (void)e;

    ASSERT(t);
    int rc = uv_timer_init(&sv->loop, &t->timer);
    ASSERT(rc == 0);
    t->timer.data = sv;
    sv->background->token_reload = t;
    return ERR_OK;
}

static void token_list_close(struct server *sv)
{
    struct token_reload *t = sv->background->token_reload;

    uv_close((uv_handle_t *)&t->timer, NULL);
}

static void token_list_free(struct server *sv)
{
    struct token_reload *t = sv->background->token_reload;

    free(t);
}

const struct part token_list_part = {
    .name = "token list",
    .open = token_list_open,
    .close = token_list_close,
    .free = token_list_free,
};
