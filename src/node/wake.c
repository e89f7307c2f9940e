/* Wakes the event loop from other threads by an eventfd (wake.h says why not by uv_async_t).
 * wake_send may be called by any thread, the others only on the loop. Used by store_thread.c and
 * readings.c. */

#include "node/wake.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"

/* What is sent from now on wakes the loop again, and what was sent before is looked at below. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct wake *w = CONTAINER_OF(poll, struct wake, poll);
    uint64_t count = 0;

    (void)status; /* a descriptor that is broken is read in vain */
    (void)events;
    (void)!read(w->fd, &count, sizeof count); /* there is nobody else who reads */
    atomic_store(&w->sent, false);
    w->woken(w);
}

int wake_open(struct wake *w, uv_loop_t *loop, void (*woken)(struct wake *w))
{
    w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (w->fd < 0)
        return uv_translate_sys_error(errno);
    atomic_init(&w->sent, false);
    w->woken = woken;
    int rc = uv_poll_init(loop, &w->poll, w->fd);
    if (rc != 0) {
        (void)close(w->fd);
        return rc;
    }
    rc = uv_poll_start(&w->poll, UV_READABLE, on_readable);
    ASSERT(rc == 0); /* it has a callback, and is not closing */
    return 0;
}

void wake_send(struct wake *w)
{
    const uint64_t one = 1;

    if (!atomic_exchange(&w->sent, true))
        (void)!write(w->fd, &one, sizeof one); /* the counter is far from its maximum */
}

void wake_close(struct wake *w, uv_close_cb closed)
{
    uv_close((uv_handle_t *)&w->poll, closed); /* it polls no more: the descriptor is ours */
    (void)close(w->fd);
}
