#ifndef AGENTS_AMQP_AMQP_AGENT_H
#define AGENTS_AMQP_AMQP_AGENT_H

/* `intact agent amqp`: runs the section `amqp` of a server's configuration. */

#include "amqp/amqp_config.h"

struct amqp_agent_options {
    const char *server, *token, *ca; /* as for intact_agent_set_server and the like; may be NULL */
    const char *instance;            /* stable over restarts */
    const char *node;                /* for the name of the reply queue */
};

/* Runs until SIGTERM or SIGINT, or as a child of a server until the server says so. Returns the
 * exit status. */
int amqp_agent_run(const struct amqp_config *c, const struct amqp_agent_options *o);

#endif
