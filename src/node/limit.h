#ifndef NODE_LIMIT_H
#define NODE_LIMIT_H

/*
 * What one client, and all of them together, may ask of a server. Each limit has a name, by which
 * it is set from outside, a default, and bounds beyond which the server could not keep its word.
 */

#include "base/buf.h"
#include "base/err.h"
#include "http/http.h"

struct server_limits {
    struct http_limits http;
    size_t json_depth;    /* arrays and objects inside each other */
    size_t waiting_max;   /* requests that may wait for something to happen */
    size_t line_max;      /* readings of many, of one token, that wait for the store */
    size_t instances_max; /* names of instances that one agent may have */
    size_t agents_max;    /* names of agents, by their calls */
};

void limits_init(struct server_limits *l); /* the defaults */

/* Sets one from "NAME=VALUE", where the value is a count, a size ("64KiB", "4MiB", or bytes) or a
 * duration ("30s"). The error says what is wrong and what was expected. */
enum err limits_set(struct server_limits *l, const char *text, struct error *e) MUST_USE;

/* One line for each: name, meaning, default. */
void limits_describe(struct buf *b);

#endif
