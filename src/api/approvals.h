#ifndef API_APPROVALS_H
#define API_APPROVALS_H

/* What the files of /v1/approvals share. */

#include "node/access.h"

struct http_request;
struct server;

enum { COMMENT_MAX = 1000 /* bytes */ };

/* approval_open.c: lets in who has a link that was made here. False: answered. */
bool approval_link_head(struct server *sv, struct http_request *r);

#endif
