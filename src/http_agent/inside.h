#ifndef HTTP_AGENT_INSIDE_H
#define HTTP_AGENT_INSIDE_H

/*
 * The agent as a child of a server (`intact serve --http`). Two sockets that both hold lead to the
 * server. The channel tells when the server drains (a byte), and when it has ended (its end).
 * Through the door come connections (libintact/door.h), which nobody else can get: so there is no
 * token and no certificate between the two.
 */

#include "base/base.h"

/* In the environment of the child: "3:4", the descriptors of channel and door. */
#define INSIDE_VARIABLE      "INTACT_HTTP_INSIDE"
#define INSIDE_VARIABLE_AMQP "INTACT_AMQP_INSIDE"

struct inside {
    int channel; /* -1: we are no child of a server */
    int door;
};

/* Takes that variable out of the environment. */
struct inside inside_find(const char *variable);

#endif
