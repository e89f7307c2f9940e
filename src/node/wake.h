#ifndef NODE_WAKE_H
#define NODE_WAKE_H

/*
 * Other threads wake the loop: `woken` is called on the loop's thread, once or more, after each
 * call of wake_send. Several calls may be answered by one.
 *
 * uv_async_t does the same, but the loop that it wakes waits for the sender to return from its
 * system call, and spins meanwhile. On a machine with fewer free processors than threads that is
 * thousands of instructions for each wake-up.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct wake {
    uv_poll_t poll; /* `data` is the owner's */
    int fd;
    atomic_bool sent; /* and the loop has not noticed yet */
    void (*woken)(struct wake *w);
};

/* 0, or why the system does not provide a descriptor, as libuv's (negative) code. */
int wake_open(struct wake *w, uv_loop_t *loop, void (*woken)(struct wake *w));
void wake_send(struct wake *w); /* any thread */
/* Nobody sends any more. The memory may be freed in `closed`. */
void wake_close(struct wake *w, uv_close_cb closed);

#endif
