#ifndef API_OPERATIONS_H
#define API_OPERATIONS_H

/* What the files of /v1/operations share. */

#include "base/arena.h"

struct http_request;
struct operation; /* operations/operation.h */
struct server;

/* Answers with the result of a dry run. Takes the arena, in which the operation is. */
void operation_dry_run(struct server *sv, struct http_request *r, struct arena *a,
                       const struct operation *op);

#endif
