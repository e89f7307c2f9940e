#ifndef NET_WATCHDOG_H
#define NET_WATCHDOG_H

/*
 * A peer that endlessly sends what libcurl answers by itself (HTTP/2 pings and settings) keeps
 * libcurl from returning, and blocks all other services and every time limit. So one turn may cost
 * a few seconds of processor time; then the connections of that service are shut down, and libcurl
 * detects their end. The limit counts processor time only, so neither waiting nor a slow machine
 * triggers it.
 */

#include "base/base.h"

/* Watches the processor time of the calling thread; one per process. Uses SIGPROF. */
bool watchdog_start(void) MUST_USE;
void watchdog_stop(void); /* by the same thread, before it ends */

/* Begins a turn for the owner that was given with its sockets. */
void watchdog_begin(const void *whose);
void watchdog_end(void);
bool watchdog_bit(void); /* whether connections were shut down in this turn */

void watchdog_opened(int fd, const void *whose);
void watchdog_closes(int fd);

#endif
