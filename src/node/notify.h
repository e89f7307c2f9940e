#ifndef NODE_NOTIFY_H
#define NODE_NOTIFY_H

/*
 * Tells the service manager how it goes: one datagram to the socket that it names in
 * NOTIFY_SOCKET (sd_notify(3), of which this is all that is needed). Without a manager nothing
 * happens. A manager that does not listen is no reason to fail: errors are ignored.
 */

#include <stdint.h>

#include "base/base.h"

/* "READY=1", "STOPPING=1", "RELOADING=1", "WATCHDOG=1", "STATUS=..."; several are parted by
 * newlines. Does not block. */
void notify(const char *state);

/* How often the manager wants to hear "WATCHDOG=1", ms, half of what it allows; 0: not at all. */
int64_t notify_watchdog_ms(void);

#endif
