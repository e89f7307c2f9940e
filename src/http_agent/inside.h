#ifndef HTTP_AGENT_INSIDE_H
#define HTTP_AGENT_INSIDE_H

/*
 * The agent as a child of a server (`intact serve --http`). The server listens for it on an
 * abstract Unix socket and takes nobody else's connections there: so there is no token and no
 * certificate between the two. A socket that both hold, the channel, tells when the server drains
 * (a byte), and when it has ended (its end).
 */

#include "base/base.h"

/* In the environment of the child: "3:NAME", the channel's descriptor and the socket's name. */
#define INSIDE_VARIABLE      "INTACT_HTTP_INSIDE"
#define INSIDE_VARIABLE_AMQP "INTACT_AMQP_INSIDE"

struct inside {
    int channel; /* -1: we are no child of a server */
    char door[108];
};

/* Takes that variable out of the environment. */
struct inside inside_find(const char *variable);

#endif
