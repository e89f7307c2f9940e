#ifndef NODE_NOTIFY_H
#define NODE_NOTIFY_H

/*
 * Notifies the service manager: one datagram to the socket in NOTIFY_SOCKET, as sd_notify(3) does.
 * Without a manager nothing happens. Errors are ignored: the node works without a manager.
 */

#include <stdint.h>

#include "base/base.h"

/* "READY=1", "STOPPING=1", "RELOADING=1", "WATCHDOG=1", "STATUS=..."; several are parted by
 * newlines. Does not block. */
void notify(const char *state);

/* The interval of "WATCHDOG=1", ms: half of what the manager allows; 0: it expects none. */
int64_t notify_watchdog_ms(void);

#endif
