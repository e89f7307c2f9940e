#ifndef AGENTS_HTTP_HTTP_AGENT_H
#define AGENTS_HTTP_HTTP_AGENT_H

/* The HTTP agent: all services of a configuration in one process and one thread. */

#include "agents/http/http_config.h"

struct http_agent_options {
    const char *server;   /* as in intact_agent_set_server; NULL: the default */
    const char *token;    /* likewise */
    const char *ca;       /* likewise */
    const char *instance; /* likewise */
};

/* Runs until SIGTERM or SIGINT, and then waits for open requests; a second signal ends it at once.
 * SIGHUP reads the secrets again. Returns the exit status of the process. */
int http_agent_run(const struct http_config *c, const struct http_agent_options *o);

#endif
