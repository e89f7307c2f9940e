#ifndef HTTP_AGENT_RUN_H
#define HTTP_AGENT_RUN_H

/* The HTTP agent: all services of a configuration in one process and one thread. */

#include "http_agent/config.h"

struct http_agent_options {
    const char *server;   /* as of intact_agent_set_server; NULL: the default */
    const char *token;    /* the same */
    const char *ca;       /* the same */
    const char *instance; /* the same */
};

/* Runs until SIGTERM or SIGINT: what is under way is waited for, and a second one ends it at once.
 * SIGHUP reads the secrets anew. The status that the process is to end with. */
int http_agent_run(const struct http_config *c, const struct http_agent_options *o);

#endif
