#ifndef AGENTS_HTTP_INSIDE_H
#define AGENTS_HTTP_INSIDE_H

/*
 * The agent as a child of a server (`intact serve --http`). Two sockets, which both processes hold,
 * lead to the server. The channel signals when the server drains (a byte) and when it has ended
 * (end of file). The door passes connections (libintact/door.h) that no other process can get: so
 * the two need neither a token nor a certificate.
 */

#include "base/base.h"

/* In the child's environment: "3:4", the descriptors of channel and door. */
#define INSIDE_VARIABLE      "INTACT_HTTP_INSIDE"
#define INSIDE_VARIABLE_AMQP "INTACT_AMQP_INSIDE"

struct inside {
    int channel; /* -1: not a child of a server */
    int door;
};

/* Reads and removes the variable. */
struct inside inside_find(const char *variable);

#endif
