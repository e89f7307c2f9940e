/* The webhook channel: passes deliveries from the loop to its thread and back. The thread sends
 * them through receiver.c. See webhook.h. */
#include "webhook/webhook.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/watchdog.h"
#include "webhook/receiver.h"

enum { EVENTS_MAX = 64 };

struct webhook {
    struct channel channel; /* first: it is the base */
    const struct webhook_config *config;
    uv_async_t back; /* some posts have ended */
    pthread_t thread;
    int wake; /* an eventfd: there is something for the thread */

    pthread_mutex_t mutex;         /* protects: */
    struct link taken;             /* posts new to the thread */
    struct link ended;             /* posts new to the loop */
    struct webhook_secrets *fresh; /* new to the thread; NULL: none */
    bool is_closing;

    /* Used by the thread: */
    int epoll;
    struct receiver *receivers; /* one for each target */
    size_t receiver_count;
    struct webhook_secrets *secrets;
};

static struct webhook *webhook_of(struct channel *c)
{
    return CONTAINER_OF(c, struct webhook, channel);
}

static void lock(struct webhook *w)
{
    int rc = pthread_mutex_lock(&w->mutex);
    ASSERT(rc == 0);
}

static void unlock(struct webhook *w)
{
    int rc = pthread_mutex_unlock(&w->mutex);
    ASSERT(rc == 0);
}

static void wake_thread(struct webhook *w)
{
    const uint64_t one = 1;

    (void)!write(w->wake, &one, sizeof one); /* can only fail if it is readable already */
}

/* ---- the thread ---- */

static void use_secrets(struct webhook *w, struct webhook_secrets *fresh)
{
    struct webhook_secrets *before = w->secrets;

    w->secrets = fresh;
    for (size_t i = 0; i < w->receiver_count; i++)
        w->receivers[i].secret = &fresh->of[i];
    webhook_secrets_free(before);
}

/* False: it must end. */
static bool look(struct webhook *w)
{
    struct webhook_secrets *fresh = NULL;
    struct link posts;
    bool goes_on = true;

    list_init(&posts);
    lock(w);
    list_take_all(&posts, &w->taken);
    fresh = w->fresh;
    w->fresh = NULL;
    goes_on = !w->is_closing;
    unlock(w);
    if (fresh)
        use_secrets(w, fresh);
    LIST_FOREACH (l, after, &posts) {
        struct post *p = CONTAINER_OF(l, struct post, link);
        link_remove(l);
        receiver_take(&w->receivers[p->index], p);
    }
    return goes_on;
}

static void give_back(struct webhook *w)
{
    bool any = false;

    lock(w);
    for (size_t i = 0; i < w->receiver_count; i++) {
        any |= !list_empty(&w->receivers[i].ended);
        list_take_all(&w->ended, &w->receivers[i].ended);
    }
    unlock(w);
    if (any)
        (void)uv_async_send(&w->back); /* cannot fail with a handle that is open */
}

static void wait_for_events(struct webhook *w)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t at = INT64_MAX;
    uint64_t ignored;

    for (size_t i = 0; i < w->receiver_count; i++)
        at = w->receivers[i].is_ready ? 0 : min_i64(at, w->receivers[i].reactor.timer_at);
    int64_t ms = min_i64(max_i64(at - clock_boot_ms(), 0), 60000);
    int n = epoll_wait(w->epoll, events, EVENTS_MAX, (int)ms);
    for (int i = 0; i < n; i++) {
        struct receiver *r = events[i].data.ptr;
        if (r)
            r->is_ready = true;
        else
            (void)!read(w->wake, &ignored, sizeof ignored); /* it may be empty */
    }
}

static void close_receivers(struct webhook *w)
{
    for (size_t i = 0; i < w->receiver_count; i++)
        receiver_close(&w->receivers[i]);
}

static void *run(void *arg)
{
    struct webhook *w = arg;
    bool has_watchdog = watchdog_start();

    ASSERT(has_watchdog); /* it needs one kernel timer, which is available */
    while (look(w)) {
        for (size_t i = 0; i < w->receiver_count; i++)
            if (w->receivers[i].is_ready || w->receivers[i].reactor.timer_at <= clock_boot_ms())
                receiver_turn(&w->receivers[i]);
        give_back(w);
        wait_for_events(w);
    }
    close_receivers(w);
    watchdog_stop();
    return NULL;
}

/* ---- the loop ---- */

static void on_back(uv_async_t *back)
{
    struct webhook *w = back->data;
    struct link posts;

    list_init(&posts);
    lock(w);
    list_take_all(&posts, &w->ended);
    unlock(w);
    LIST_FOREACH (l, after, &posts) {
        struct post *p = CONTAINER_OF(l, struct post, link);
        link_remove(l);
        p->done(p->arg, p->list, p->count);
        post_free(p);
    }
}

static bool takes(struct channel *channel, struct slice target, struct error *e)
{
    return webhook_target_find(webhook_of(channel)->config, target, e) != NULL;
}

static size_t batch_max(struct channel *channel, struct slice target)
{
    struct error e;
    const struct webhook_target *t = webhook_target_find(webhook_of(channel)->config, target, &e);

    return t ? t->batch : 1;
}

static void address(struct post *p, const struct webhook_config *config, struct error *e)
{
    CLEANUP(buf_fini) struct buf origin = {0};
    struct slice text = p->list[0]->target;
    struct url u;

    p->target = webhook_target_find(config, text, e);
    if (!p->target)
        return;
    for (const struct webhook_target *t = config->targets; t != p->target; t = t->next)
        p->index++;
    p->url = malloc(text.len + 1);
    ASSERT(p->url);
    memcpy(p->url, text.ptr, text.len);
    p->url[text.len] = 0;
    const char *fault = url_parse(text, false, &u);
    ASSERT(!fault); /* it was found by that URL */
    url_origin(&u, &origin);
    p->origin = strdup(origin.ptr);
    ASSERT(p->origin);
}

static void send_list(struct channel *channel, struct delivery **list, size_t count,
                      delivery_done_fn *done, void *arg)
{
    struct webhook *w = webhook_of(channel);
    struct post *p = post_new(list, count, done, arg);
    struct error e = {0};

    address(p, w->config, &e);
    if (!p->target)
        post_end_all(p, DELIVERY_AWAY, e.text); /* a later configuration may accept it */
    lock(w);
    list_push(p->target ? &w->taken : &w->ended, &p->link);
    unlock(w);
    if (p->target)
        wake_thread(w);
    else
        (void)uv_async_send(&w->back); /* cannot fail with a handle that is open */
}

bool webhook_reload(struct channel *channel, struct buf *ret_faults)
{
    struct webhook *w = webhook_of(channel);
    struct webhook_secrets *fresh = webhook_secrets_load(w->config, ret_faults);

    if (!fresh)
        return false;
    lock(w);
    struct webhook_secrets *unseen = w->fresh;
    w->fresh = fresh;
    unlock(w);
    webhook_secrets_free(unseen);
    wake_thread(w);
    return true;
}

/* ---- opening and closing ---- */

static void free_posts(struct link *list)
{
    LIST_FOREACH (l, after, list) {
        struct post *p = CONTAINER_OF(l, struct post, link);
        link_remove(l);
        post_free(p);
    }
}

static void on_closed(uv_handle_t *h)
{
    struct webhook *w = h->data;

    free_posts(&w->taken);
    free_posts(&w->ended);
    webhook_secrets_free(w->secrets);
    webhook_secrets_free(w->fresh);
    (void)pthread_mutex_destroy(&w->mutex); /* nobody holds it */
    (void)close(w->epoll);
    (void)close(w->wake);
    free(w->receivers);
    free(w);
}

static void close_channel(struct channel *channel)
{
    struct webhook *w = webhook_of(channel);

    lock(w);
    w->is_closing = true;
    unlock(w);
    wake_thread(w);
    int rc = pthread_join(w->thread, NULL);
    ASSERT(rc == 0);
    uv_close((uv_handle_t *)&w->back, on_closed);
}

static bool watch(const struct webhook *w, int fd, struct receiver *r)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = r};

    return fd >= 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool open_receivers(struct webhook *w)
{
    w->receivers = calloc(w->config->count + 1, sizeof *w->receivers);
    ASSERT(w->receivers);
    for (const struct webhook_target *t = w->config->targets; t; t = t->next) {
        struct receiver *r = &w->receivers[w->receiver_count];
        bool ok = receiver_open(r, t);
        r->secret = &w->secrets->of[w->receiver_count++];
        if (!ok || !watch(w, r->reactor.fd, r))
            return false;
    }
    return watch(w, w->wake, NULL);
}

/* Signals go to the loop's thread; the watchdog unblocks SIGPROF. */
static bool start_thread(struct webhook *w)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail with valid pointers */
    int rc = pthread_create(&w->thread, NULL, run, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* the same */
    return rc == 0;
}

static void undo_open(struct webhook *w)
{
    close_receivers(w);
    webhook_secrets_free(w->secrets);
    (void)pthread_mutex_destroy(&w->mutex); /* nobody holds it */
    if (w->epoll >= 0)
        (void)close(w->epoll);
    if (w->wake >= 0)
        (void)close(w->wake);
    free(w->receivers);
    free(w);
}

struct channel *webhook_open(uv_loop_t *loop, const struct webhook_config *config, struct error *e)
{
    static const struct channel_ops ops = {takes, batch_max, send_list, close_channel};
    CLEANUP(buf_fini) struct buf faults = {0};
    struct webhook *w = calloc(1, sizeof *w);

    ASSERT(w);
    w->channel.ops = &ops;
    w->config = config;
    w->back.data = w;
    list_init(&w->taken);
    list_init(&w->ended);
    (void)pthread_mutex_init(&w->mutex, NULL); /* cannot fail on Linux */
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->secrets = webhook_secrets_load(config, &faults);
    if (!w->secrets)
        (void)error_set(e, ERR_INVALID, "webhooks: %s", faults.ptr);
    else if (w->epoll < 0 || w->wake < 0 || !open_receivers(w))
        (void)error_set(e, ERR_IO, "webhooks: no more descriptors, or libcurl cannot be used");
    else if (uv_async_init(loop, &w->back, on_back) != 0)
        (void)error_set(e, ERR_IO, "webhooks: no more descriptors");
    else if (start_thread(w))
        return &w->channel;
    else {
        (void)error_set(e, ERR_IO, "webhooks: no more threads");
        close_receivers(w);
        uv_close((uv_handle_t *)&w->back, on_closed);
        return NULL;
    }
    undo_open(w);
    return NULL;
}
