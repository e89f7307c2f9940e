#ifndef NET_REACTOR_H
#define NET_REACTOR_H

/*
 * libcurl's transfers and a few other descriptors behind one epoll descriptor, so that any loop can
 * wait for all of them. Nothing here blocks.
 */

#include <curl/curl.h>

#include "base/base.h"

/* Initialises libcurl, once per process. False: it is unusable. */
bool wire_init(void) MUST_USE;

struct reactor {
    int fd; /* epoll; -1: closed */
    CURLM *multi;
    int64_t timer_at; /* when libcurl wants a call even without input; INT64_MAX: never */
    int wake_fd;      /* an eventfd that is emptied when it is readable; -1: none */
    bool is_tls;      /* libssl is used: a broken connection may raise SIGPIPE */
};

bool reactor_open(struct reactor *r) MUST_USE; /* false: nothing is open */
/* Requires that no transfer is left. The descriptor stays, and is never readable again. */
void reactor_stop(struct reactor *r);
void reactor_close(struct reactor *r); /* harmless if it is closed */

/* Closes the connections that are kept for reuse. Requires that no transfer is left. False: nothing
 * changed. */
bool reactor_forget(struct reactor *r) MUST_USE;

bool reactor_watch(struct reactor *r, int fd) MUST_USE; /* for reading */
void reactor_unwatch(struct reactor *r, int fd);

void reactor_turn(struct reactor *r); /* handles input and due timers */
void reactor_due(struct reactor *r);  /* handles due timers only: for transfers that were just
                                       * added */

#endif
