/* Sends the posts of one configured target, fairly between hosts: see receiver.h. Runs on the
 * thread of webhook.c. */
#include "webhook/receiver.h"

#include <stdlib.h>

#include "net/watchdog.h"
#include "webhook/post.h"

enum { IN_FLIGHT_MAX = 256, CONNECTIONS_KEPT = 64 };

struct host {
    struct link link; /* among those that may start another request */
    char *origin;
    struct link waiting; /* posts */
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
    list_init(&r->posts);
    list_init(&r->ended);
    return reactor_open(&r->reactor) && set_connections(r->reactor.multi, t);
}

static void free_posts(struct link *list)
{
    LIST_FOREACH (l, after, list) {
        struct post *p = CONTAINER_OF(l, struct post, link);
        link_remove(l);
        post_free(p);
    }
}

void receiver_close(struct receiver *r)
{
    LIST_FOREACH (l, after, &r->posts) {
        struct transfer *t = post_transfer(CONTAINER_OF(l, struct post, link));
        transfer_stop(t, r->reactor.multi);
        transfer_free(t);
    }
    free_posts(&r->posts);
    free_posts(&r->ended);
    struct host *h = NULL;
    for (size_t i = 0; (h = map_next(&r->hosts, &i));) {
        free_posts(&h->waiting);
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

/* Puts it into the right list, or frees it if it is unused. */
static void host_settle(struct receiver *r, struct host *h)
{
    if (h->in_flight == 0 && list_empty(&h->waiting)) {
        link_remove(&h->link);
        (void)map_remove(&r->hosts, slice_of(h->origin)); /* it is in the map */
        free(h->origin);
        free(h);
    } else if (list_empty(&h->waiting) || h->in_flight >= r->target->connections) {
        link_remove(&h->link);
    } else if (!link_is_in(&h->link)) {
        list_push(&r->ready, &h->link);
    }
}

/* ---- posts ---- */

void receiver_take(struct receiver *r, struct post *p)
{
    p->receiver = r;
    p->host = host_of(r, p->origin);
    list_push(&p->host->waiting, &p->link);
    host_settle(r, p->host);
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

static void end_post(struct receiver *r, struct post *p)
{
    struct host *h = p->host;

    list_push(&r->ended, &p->link);
    host_settle(r, h);
}

static void start(struct receiver *r, struct post *p)
{
    struct transfer *t = take_transfer(r);

    if (t && post_start(p, t, r->reactor.multi)) {
        list_push(&r->posts, &p->link);
        p->host->in_flight++;
        r->in_flight++;
        return;
    }
    if (t)
        rest(r, t);
    post_end_all(p, DELIVERY_RETRY, "no memory, or no cryptography, for the request");
    end_post(r, p);
}

static void start_waiting(struct receiver *r)
{
    struct link *l = NULL;

    while (r->in_flight < IN_FLIGHT_MAX && (l = list_first(&r->ready))) {
        struct host *h = CONTAINER_OF(l, struct host, link);
        struct link *first = list_first(&h->waiting);
        ASSERT(first); /* r->ready contains only hosts with waiting posts */
        struct post *p = CONTAINER_OF(first, struct post, link);
        link_remove(&h->link); /* re-queued behind the others */
        link_remove(&p->link);
        bool more = !list_empty(&h->waiting);
        start(r, p); /* may free a host without further posts */
        if (more)
            host_settle(r, h);
    }
}

static void conclude(struct receiver *r, struct transfer *t, CURLcode code)
{
    struct post *p = t->owner;
    struct host *h = p->host;

    link_remove(&p->link);
    h->in_flight--;
    r->in_flight--;
    bool is_over = post_conclude(p, t, code);
    transfer_stop(t, r->reactor.multi);
    rest(r, t);
    if (is_over) {
        end_post(r, p);
    } else {
        list_push_front(&h->waiting, &p->link);
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
        CURLcode code = m->data.result; /* m is invalid once its handle is removed */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private); /* set at creation */
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
