#ifndef API_BODY_H
#define API_BODY_H

/*
 * Reading JSON bodies. What a body says by itself is found out by body_parse, on the loop if the
 * body is small, else on a thread (body_aside.c).
 */

#include "node/internal.h"
#include "json/json.h"

enum {
    BODY_SMALL = 64 << 10, /* up to so many bytes the loop parses them, a few milliseconds */
    BODIES_MAX = 1024,     /* larger ones that wait for the thread */
};

struct parsed_body {
    enum err err; /* ERR_OK, ERR_PARSE, ERR_TOO_BIG */
    struct json *json;
    struct buf story; /* of ERR_PARSE */
};

/* Any thread. The tree lies in `tree`, points into `text`, and takes `left` bytes at most. */
void body_parse(struct arena *tree, struct slice text, unsigned depth, size_t left,
                struct parsed_body *ret);

/* What is attached to a request whose body was parsed aside. */
struct large_body {
    struct exchange x;
    struct aside_job job;
    struct buf text; /* the request may end before the thread has done with it */
    struct arena tree;
    unsigned depth;
    size_t left;
    struct parsed_body parsed;
};

/* If the body is large: has the caller's line room for it? False: answered. */
bool body_may_be_read(struct server *sv, struct http_request *r);

#endif
