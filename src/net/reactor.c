/* Runs the transfers of libcurl and some other descriptors behind one epoll descriptor, on the
 * thread that turns it, and never blocks (reactor.h). Used by the clients and agents of
 * libintact, the HTTP agent and the webhooks; wire_init prepares libcurl once for the process. */

#include "net/reactor.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

enum { EVENTS_MAX = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

static void init_once(void)
{
    usable = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

bool wire_init(void)
{
    return pthread_once(&once, init_once) == 0 && usable;
}

/* If the descriptor is registered already, or no longer, libcurl closed and reopened it. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct reactor *r = arg;
    struct epoll_event e = {.data.fd = fd};
    (void)easy;
    (void)of_socket;

    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(r->fd, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
        return 0;
    }
    e.events = ((what & CURL_POLL_IN) ? (uint32_t)EPOLLIN : 0)
               | ((what & CURL_POLL_OUT) ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &e) == 0
        || epoll_ctl(r->fd, EPOLL_CTL_MOD, fd, &e) == 0)
        return 0;
    return -1; /* libcurl fails the transfer */
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
    struct reactor *r = arg;
    (void)multi;

    r->timer_at = ms < 0 ? INT64_MAX : clock_boot_ms() + ms;
    return 0;
}

bool reactor_forget(struct reactor *r)
{
    CURLM *multi = wire_init() ? curl_multi_init() : NULL;
    bool ok = multi && curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK
              && curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, (void *)r) == CURLM_OK
              && curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK
              && curl_multi_setopt(multi, CURLMOPT_TIMERDATA, (void *)r) == CURLM_OK;

    if (!ok) {
        curl_multi_cleanup(multi);
        return false;
    }
    curl_multi_cleanup(r->multi);
    r->multi = multi;
    r->timer_at = INT64_MAX;
    return true;
}

bool reactor_open(struct reactor *r)
{
    *r = (struct reactor){.fd = epoll_create1(EPOLL_CLOEXEC), .wake_fd = -1};
    if (r->fd >= 0 && reactor_forget(r))
        return true;
    reactor_close(r);
    return false;
}

void reactor_unwatch(struct reactor *r, int fd)
{
    (void)epoll_ctl(r->fd, EPOLL_CTL_DEL, fd, NULL); /* it may be absent */
}

void reactor_stop(struct reactor *r)
{
    curl_multi_cleanup(r->multi);
    r->multi = NULL;
    if (r->wake_fd >= 0)
        reactor_unwatch(r, r->wake_fd);
    r->wake_fd = -1;
}

void reactor_close(struct reactor *r)
{
    if (r->fd < 0)
        return;
    reactor_stop(r);
    close(r->fd);
    r->fd = -1;
}

bool reactor_watch(struct reactor *r, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

void reactor_due(struct reactor *r)
{
    int running;

    /* libcurl sets the timer again if there is more; errors show in the transfer. */
    for (int turns = 0; turns < 8 && r->timer_at <= clock_boot_ms(); turns++) {
        r->timer_at = INT64_MAX;
        (void)curl_multi_socket_action(r->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static void act(struct reactor *r, const struct epoll_event *e)
{
    uint64_t ignored;
    int running;
    int what = ((e->events & EPOLLIN) ? CURL_CSELECT_IN : 0)
               | ((e->events & EPOLLOUT) ? CURL_CSELECT_OUT : 0)
               | ((e->events & (EPOLLERR | EPOLLHUP)) ? CURL_CSELECT_ERR : 0);

    if (e->data.fd == r->wake_fd)
        (void)!read(e->data.fd, &ignored, sizeof(ignored)); /* it may be empty */
    else
        (void)curl_multi_socket_action(r->multi, e->data.fd, what, &running);
}

void reactor_turn(struct reactor *r)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(r->fd, events, EVENTS_MAX, 0);

    for (int i = 0; i < count; i++)
        act(r, &events[i]);
    reactor_due(r);
}
