#ifndef NODE_INSTALLATION_H
#define NODE_INSTALLATION_H

/* The identity of a node as its clients see it: the installation and the version. */

#include "http/http.h"

struct server;

const char *installation_id(const struct server *sv);
struct slice installation_headers(struct server *sv); /* lines for the head of every answer */
/* True: the request is meant for another installation, and was answered. */
bool installation_is_another(const struct server *sv, struct http_request *r);

void installation_source(struct server *sv); /* sets server.source */

const char *server_version(const struct server *sv); /* with its build, if that is known */

#endif
