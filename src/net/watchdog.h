#ifndef NET_WATCHDOG_H
#define NET_WATCHDOG_H

/*
 * Who sends without end what libcurl answers by itself (pings and settings of HTTP/2) keeps it from
 * ever coming back, and with it all other services and every time limit. So a turn may cost a few
 * seconds of processor time and no more: then the connections of that service are broken, and
 * libcurl finds them at their end. Nothing happens while nothing is done, and a slow machine is
 * none of its business.
 */

#include "base/base.h"

/* Watches the calling thread, by its own processor time; one in a process. Takes SIGPROF. */
bool watchdog_start(void) MUST_USE;
void watchdog_stop(void); /* by the same thread, before it ends */

/* A turn for the one whose sockets were said with that word. */
void watchdog_begin(const void *whose);
void watchdog_end(void);
bool watchdog_bit(void); /* in this turn? */

void watchdog_opened(int fd, const void *whose);
void watchdog_closes(int fd);

#endif
