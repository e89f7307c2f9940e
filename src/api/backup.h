#ifndef API_BACKUP_H
#define API_BACKUP_H

/* The backup that is being made: one at a time. */

#include "node/part.h"

struct http_request;
struct server;

void backup_flushed(struct server *sv, struct http_request *r); /* its reader has taken all */
extern const struct part backup_part;

#endif
