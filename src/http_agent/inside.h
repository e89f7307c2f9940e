#ifndef HTTP_AGENT_INSIDE_H
#define HTTP_AGENT_INSIDE_H

/*
 * The agent as a child of a server (`intact serve --http`). They are joined by a socket that
 * nobody else has: for each connection to the server the agent makes a pair of sockets and sends
 * one of them through it. So there is no address, no token and no certificate between the two, and
 * the end of the server is seen at once.
 */

#include "base/base.h"

/* Names the descriptor of that socket in the environment of the child. */
#define INSIDE_VARIABLE "INTACT_HTTP_INSIDE"

/* The descriptor; -1: we are no child of a server. Takes the variable out of the environment. */
int inside_descriptor(void);

/* A connection to the server; -1: there is none to be had now. */
int inside_connect(int channel);

#endif
