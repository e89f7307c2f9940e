#ifndef LIBINTACT_DOOR_H
#define LIBINTACT_DOOR_H

/*
 * Connections from a child process to its server. The child may not create Unix sockets that could
 * connect anywhere, so the server creates them: a byte on the door, a shared socket, requests one,
 * and the answer is a byte with one end of a pair (SCM_RIGHTS), or without if none is available. A
 * process has one door, and uses it from one thread.
 */

#include <curl/curl.h>

#include "base/base.h"

/* Before the process drops its privileges, and before door_use. False: see errno. */
bool door_prepare(void) MUST_USE;

/* Makes the handle connect through the door, a SOCK_SEQPACKET socket. Call after wire_prepare. */
bool door_use(CURL *easy, int door) MUST_USE;

/* One connection, or -1. Waits a few seconds at most for a busy server. */
int door_ask(int door);

#endif
