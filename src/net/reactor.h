#ifndef NET_REACTOR_H
#define NET_REACTOR_H

/*
 * libcurl's transfers and a few descriptors of our own behind one epoll descriptor, so that any
 * loop can wait for all of them. Nothing here waits.
 */

#include <curl/curl.h>

#include "base/base.h"

/* Initialises libcurl, once per process. False: it cannot be used. */
bool wire_init(void) MUST_USE;

int64_t wire_now_ms(void); /* CLOCK_BOOTTIME: goes on while the machine sleeps */

struct reactor {
    int fd; /* epoll; -1: closed */
    CURLM *multi;
    int64_t timer_at; /* when libcurl wants to be called although nothing came; INT64_MAX: never */
    int wake_fd;      /* an eventfd that is emptied when it is readable; -1: none */
    bool is_tls;      /* a broken connection may raise SIGPIPE */
};

bool reactor_open(struct reactor *r) MUST_USE; /* false: nothing is open */
/* No transfer is in it any more. The descriptor stays, and is never readable again. */
void reactor_stop(struct reactor *r);
void reactor_close(struct reactor *r); /* harmless if it is closed */

/* Closes the connections that are kept for later. No transfer is in it. False: all is as it was. */
bool reactor_forget(struct reactor *r) MUST_USE;

bool reactor_watch(struct reactor *r, int fd) MUST_USE; /* for reading */
void reactor_unwatch(struct reactor *r, int fd);

void reactor_turn(struct reactor *r); /* what has come, and what is due */
void reactor_due(struct reactor *r); /* what is due by time alone: transfers that were just added */

#endif
