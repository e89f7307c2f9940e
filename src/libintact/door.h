#ifndef LIBINTACT_DOOR_H
#define LIBINTACT_DOOR_H

/*
 * Connections to a server whose child we are. The child may make no Unix socket that could connect
 * to anybody, so the server makes them: a byte on the door, a socket that both hold, asks for one,
 * and the answer is a byte with one end of a pair (SCM_RIGHTS), or without if the server has none.
 * A process has one door, and uses it from one thread.
 */

#include <curl/curl.h>

#include "base/base.h"

/* Before the process gives up its rights, and before door_use. False with errno. */
bool door_prepare(void) MUST_USE;

/* The handle's connections come through the door: a SOCK_SEQPACKET socket. Behind wire_prepare. */
bool door_use(CURL *easy, int door) MUST_USE;

/* One connection, or -1. Waits for a server that is busy, a few seconds at most. */
int door_ask(int door);

#endif
