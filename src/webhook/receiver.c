#include "webhook/receiver.h"

#include <stdlib.h>

#include "net/watchdog.h"
#include "webhook/call.h"

enum { IN_FLIGHT_MAX = 256, CONNECTIONS_KEPT = 64 };

struct host {
    struct link link; /* among those that may make another request */
    char *origin;
    struct link waiting; /* calls */
    size_t in_flight;
};

static bool set_connections(CURLM *multi, const struct webhook_target *t)
{
    return curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)IN_FLIGHT_MAX) == CURLM_OK
           && curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)t->connections)
                  == CURLM_OK
           && curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT) == CURLM_OK;
}

bool receiver_open(struct receiver *r, const struct webhook_target *t)
{
    *r = (struct receiver){.target = t};
    list_init(&r->ready);
    list_init(&r->idle);
    list_init(&r->calls);
    list_init(&r->ended);
    return reactor_open(&r->reactor) && set_connections(r->reactor.multi, t);
}

static void free_calls(struct link *list)
{
    LIST_FOREACH (l, after, list) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        link_remove(l);
        call_free(c);
    }
}

void receiver_close(struct receiver *r)
{
    LIST_FOREACH (l, after, &r->calls) {
        struct transfer *t = call_transfer(CONTAINER_OF(l, struct call, link));
        transfer_stop(t, r->reactor.multi);
        transfer_free(t);
    }
    free_calls(&r->calls);
    free_calls(&r->ended);
    struct host *h = NULL;
    for (size_t i = 0; (h = map_next(&r->hosts, &i));) {
        free_calls(&h->waiting);
        free(h->origin);
        free(h);
    }
    map_fini(&r->hosts);
    LIST_FOREACH (l, after, &r->idle) {
        transfer_free(CONTAINER_OF(l, struct transfer, link));
    }
    reactor_close(&r->reactor);
}

/* ---- hosts ---- */

static struct host *host_of(struct receiver *r, const char *origin)
{
    struct host *h = map_get(&r->hosts, slice_of(origin));

    if (h)
        return h;
    h = calloc(1, sizeof *h);
    ASSERT(h);
    h->origin = strdup(origin);
    ASSERT(h->origin);
    list_init(&h->link);
    list_init(&h->waiting);
    map_put(&r->hosts, slice_of(h->origin), h);
    return h;
}

/* Puts it where it belongs; frees one that nobody needs. */
static void host_settle(struct receiver *r, struct host *h)
{
    if (h->in_flight == 0 && list_empty(&h->waiting)) {
        link_remove(&h->link);
        (void)map_remove(&r->hosts, slice_of(h->origin)); /* it was in there */
        free(h->origin);
        free(h);
    } else if (list_empty(&h->waiting) || h->in_flight >= r->target->connections) {
        link_remove(&h->link);
    } else if (!link_is_in(&h->link)) {
        list_push(&r->ready, &h->link);
    }
}

/* ---- calls ---- */

void receiver_take(struct receiver *r, struct call *c)
{
    c->receiver = r;
    c->host = host_of(r, c->origin);
    list_push(&c->host->waiting, &c->link);
    host_settle(r, c->host);
    r->is_ready = true;
}

static struct transfer *take_transfer(struct receiver *r)
{
    struct link *l = list_first(&r->idle);

    if (!l)
        return transfer_new(&r->target->net);
    link_remove(l);
    return CONTAINER_OF(l, struct transfer, link);
}

static void rest(struct receiver *r, struct transfer *t)
{
    transfer_clear(t);
    list_push_front(&r->idle, &t->link);
}

static void end_call(struct receiver *r, struct call *c)
{
    struct host *h = c->host;

    list_push(&r->ended, &c->link);
    host_settle(r, h);
}

static void start(struct receiver *r, struct call *c)
{
    struct transfer *t = take_transfer(r);

    if (t && call_start(c, t, r->reactor.multi)) {
        list_push(&r->calls, &c->link);
        c->host->in_flight++;
        r->in_flight++;
        return;
    }
    if (t)
        rest(r, t);
    call_end_all(c, DELIVERY_RETRY, "no memory, or no cryptography, for the request");
    end_call(r, c);
}

static void start_waiting(struct receiver *r)
{
    struct link *l = NULL;

    while (r->in_flight < IN_FLIGHT_MAX && (l = list_first(&r->ready))) {
        struct host *h = CONTAINER_OF(l, struct host, link);
        struct call *c = CONTAINER_OF(list_first(&h->waiting), struct call, link);
        link_remove(&h->link); /* the next one has its turn first */
        link_remove(&c->link);
        bool more = !list_empty(&h->waiting);
        start(r, c); /* may free a host that has no more */
        if (more)
            host_settle(r, h);
    }
}

static void conclude(struct receiver *r, struct transfer *t, CURLcode code)
{
    struct call *c = t->owner;
    struct host *h = c->host;

    link_remove(&c->link);
    h->in_flight--;
    r->in_flight--;
    bool is_over = call_conclude(c, t, code);
    transfer_stop(t, r->reactor.multi);
    rest(r, t);
    if (is_over) {
        end_call(r, c);
    } else {
        list_push_front(&h->waiting, &c->link);
        host_settle(r, h);
    }
}

static bool take_answers(struct receiver *r)
{
    bool any = false;
    int left = 0;

    for (CURLMsg *m = curl_multi_info_read(r->reactor.multi, &left); m;
         m = curl_multi_info_read(r->reactor.multi, &left)) {
        char *private = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result; /* m dies when its handle is removed */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private); /* set by its maker */
        conclude(r, (struct transfer *)(void *)private, code);
        any = true;
    }
    return any;
}

void receiver_turn(struct receiver *r)
{
    r->is_ready = false;
    watchdog_begin(&r->target->net);
    reactor_turn(&r->reactor);
    do {
        start_waiting(r);
        reactor_due(&r->reactor);
    } while (take_answers(r));
    watchdog_end();
}
