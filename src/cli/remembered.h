#ifndef CLI_REMEMBERED_H
#define CLI_REMEMBERED_H

/*
 * What earlier invocations learnt of servers that were given in a list: the installation to which
 * each belongs. Without it a list would mean one installation today and another tomorrow, when the
 * servers of the first are gone, and a task would be begun again in the second. Kept in a file of
 * the user; where that cannot be read or written, it is as if nothing had been learnt.
 */

#include "libintact/client.h"

/* Tells the client to which installation its servers have to belong: the one that was `stated`,
 * else what is remembered of them. What it learns is remembered. One server alone is taken as it
 * is. */
void remembered_use(struct intact_client *c, const char *stated);

#endif
