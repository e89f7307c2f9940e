/* Answers that list what is in memory: one at a time, in slices. Those of other tokens come first
 * when one has ended. */

#include "api/listing.h"

#include <stdlib.h>

#include "api/room.h"
#include "api/visit.h"
#include "base/map.h"
#include "node/json_answer.h"
#include "node/pressure.h"
#include "json/json.h"

struct listings {
    struct link all;
    struct listing *current; /* the one that was begun; or NULL */
    const void *last;        /* whose the latest one was; only to compare */
};

static void end(struct listing *l)
{
    struct listings *ls = l->x.server->api->listings;
    struct arena a = l->arena;

    if (ls->current == l)
        ls->current = NULL;
    link_remove(&l->link);
    l->x.server->load.exchanges--;
    buf_fini(&l->out);
    if (l->kind->end)
        l->kind->end(l->state);
    arena_fini(&a);
}

static void gone(struct exchange *x)
{
    end(CONTAINER_OF(x, struct listing, x));
}

void listing_begin(struct server *sv, struct http_request *r, const struct listing_kind *kind,
                   struct slice one, void *state)
{
    struct arena a = {0};
    struct listing *l = arena_alloc(&a, sizeof *l);

    *l = (struct listing){.arena = a, .kind = kind, .state = state};
    l->one = one.ptr ? arena_copy(&l->arena, one) : SLICE_NONE;
    exchange_begin(&l->x, sv, r);
    l->x.gone = gone;
    sv->load.exchanges++;
    list_push(&sv->api->listings->all, &l->link);
}

static int by_bytes(const void *a, const void *b)
{
    return slice_order(*(const struct slice *)a, *(const struct slice *)b);
}

void listing_snapshot(struct listing *l, struct listed_names *ret, const struct map *m,
                      bool (*is_listed)(const void *arg, struct slice name), const void *arg)
{
    *ret = (struct listed_names){.list = arena_alloc(&l->arena, (m->len + 1) * sizeof *ret->list)};
    for (size_t i = 0; i < m->cap; i++) {
        const struct map_entry *e = &m->entries[i];
        if (e->value && (!is_listed || is_listed(arg, e->key)))
            ret->list[ret->count++] = arena_copy(&l->arena, e->key);
    }
    qsort(ret->list, ret->count, sizeof *ret->list, by_bytes);
}

/* ---- turns ---- */

static const void *whose(const struct listing *l)
{
    return l->x.http->account;
}

/* The next one that is of another token than the last; if there is none, the next. */
static struct listing *next_of(struct listings *ls)
{
    struct listing *first = CONTAINER_OF(ls->all.next, struct listing, link);

    LIST_FOREACH (at, after, &ls->all) {
        struct listing *l = CONTAINER_OF(at, struct listing, link);
        if (whose(l) != ls->last)
            return l;
    }
    return first;
}

/* False: it needs no answer any more. */
static bool begin(struct listings *ls)
{
    struct listing *l = next_of(ls);
    struct http_request *r = l->x.http;
    struct server *sv = l->x.server;

    ls->last = whose(l);
    if (!l->kind->names) {
        l->names = (struct listed_names){.list = &l->one, .count = 1};
        ls->current = l;
        return true;
    }
    exchange_untie(&l->x);
    if (!l->kind->names(l, r)) {
        end(l);
        return false;
    }
    exchange_begin(&l->x, sv, r);
    ls->current = l;
    json_open(&l->out, '{');
    if (l->kind->head)
        l->kind->head(l);
    json_key(&l->out, l->kind->key);
    json_open(&l->out, '[');
    return true;
}

static void answer(struct listing *l)
{
    struct http_request *r = l->x.http;

    if (l->kind->names) {
        json_close(&l->out, ']');
        json_close(&l->out, '}');
    }
    exchange_untie(&l->x);
    answer_json_taken(r, 200, &l->out);
    end(l);
}

/* True: the present one is complete. */
static bool render_some(struct listing *l, struct visit *v)
{
    struct listed_names *n = &l->names;

    while (n->at < n->count && visit_goes_on(v)) {
        visit_counts(l->x.server);
        if (l->kind->render(l, n->list[n->at]))
            n->at++;
    }
    return n->at == n->count;
}

static int64_t listings_turn(struct server *sv)
{
    struct listings *ls = sv->api->listings;
    struct visit v = visit_begin();
    uint64_t began_ns = uv_hrtime();

    if (list_empty(&ls->all) || (!ls->current && !begin(ls)))
        return 0;
    struct listing *l = ls->current;
    void *account = l->x.http->account;
    if (render_some(l, &v))
        answer(l);
    uint64_t ended_ns = uv_hrtime();
    if (account)
        account_worked(sv, account, ended_ns, ended_ns - began_ns);
    return 0;
}

static bool listings_go_on(const struct server *sv)
{
    return !list_empty(&sv->api->listings->all);
}

/* ---- the part ---- */

static enum err listings_open(struct server *sv, struct error *e)
{
    (void)e;
    sv->api->listings = calloc(1, sizeof *sv->api->listings);
    ASSERT(sv->api->listings);
    list_init(&sv->api->listings->all);
    return ERR_OK;
}

static void listings_free(struct server *sv)
{
    ASSERT(!sv->api->listings || list_empty(&sv->api->listings->all));
    free(sv->api->listings);
}

const struct part listings_part = {
    .name = "listings",
    .open = listings_open,
    .turn = listings_turn,
    .goes_on = listings_go_on,
    .free = listings_free,
};
