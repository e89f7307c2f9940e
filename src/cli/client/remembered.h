#ifndef CLI_CLIENT_REMEMBERED_H
#define CLI_CLIENT_REMEMBERED_H

/*
 * Remembers the installation of servers that were given in a list. Otherwise a list could mean one
 * installation today and another one tomorrow, when the servers of the first are unavailable, and a
 * task would be started again in the second. Stored in a file of the user; if that cannot be read
 * or written, nothing is remembered.
 */

#include "libintact/client.h"

/* Sets the installation that the client's servers must belong to: `stated`, or else the remembered
 * one. A new one is remembered. A single server is used as it is. */
void remembered_use(struct intact_client *c, const char *stated);

#endif
