#ifndef AMQP_AGENT_RUN_H
#define AMQP_AGENT_RUN_H

/* `intact agent amqp`: the section `amqp` of a server's configuration, carried out. */

#include "amqp/config.h"

struct amqp_agent_options {
    const char *server, *token, *ca; /* as of intact_agent_set_server and the like; may be NULL */
    const char *instance;            /* the same after a restart */
    const char *node;                /* for the name of the reply queue */
};

/* Runs until SIGTERM or SIGINT, or as a child of a server until that says so. The status that the
 * process is to end with. */
int amqp_agent_run(const struct amqp_config *c, const struct amqp_agent_options *o);

#endif
