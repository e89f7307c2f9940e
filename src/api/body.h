#ifndef API_BODY_H
#define API_BODY_H

/*
 * Reading JSON bodies. A body is parsed by body_parse, on the loop if the body is small, else on a
 * thread (body_offload.c).
 */

#include "node/exchange.h"
#include "node/offload.h"
#include "node/part.h"
#include "json/json.h"

enum { BODIES_MAX = 1024 /* larger ones that wait for the thread */ };

struct parsed_body {
    enum err err; /* ERR_OK, ERR_PARSE, ERR_TOO_BIG */
    struct json *json;
    struct buf story; /* of ERR_PARSE */
};

/* Any thread. The tree lies in `tree`, points into `text`, and takes `left` bytes at most. */
void body_parse(struct arena *tree, struct slice text, unsigned depth, size_t left,
                struct parsed_body *ret);

/* What is attached to a request whose body was parsed off the loop. */
struct large_body {
    struct exchange x;
    struct offload_job job;
    struct buf text; /* the request may end before the thread has done with it */
    struct arena tree;
    unsigned depth;
    size_t left;
    struct parsed_body parsed;
    void (*again)(struct server *sv, struct http_request *r);
};

/* Within route_head: sets a place among those of `line` aside for a large body that is announced.
 * False: there is none, and the request was answered without its body. */
bool body_may_come(struct http_request *r, struct offload *o, struct slice line,
                   enum offload_rank rank);
void body_came(struct http_request *r); /* the place is free for the job that reads the body */

/* The tree of a body. NULL: answered with a problem. Trees are many times as large as their texts:
 * a handler whose request may wait keeps the tree in memory of its own, and no longer than needed.
 */
struct json *body_json(struct http_request *r, struct arena *tree);

/* The same for a call with a list of results or heartbeats, each of which is refused alone: the
 * text may nest deeper than other bodies, and an entry as deep as it could if the call were one. */
struct json *body_json_of_list(struct http_request *r, struct arena *tree);
uint32_t body_entry_depth(const struct server *sv);         /* for json_is_within() */
unsigned body_depth(const struct server *sv, bool is_list); /* of the text */

/* True: the body is large, and is parsed on a thread; then `again` is called. Or it was answered.
 * `line`: the token in whose turns it is done. */
bool body_is_parsed_first(struct server *sv, struct http_request *r, struct slice line,
                          unsigned depth, void (*again)(struct server *sv, struct http_request *r));
void body_is_used(struct server *sv, struct http_request *r); /* the tree is not needed any more */

/* If the body is large: has the caller's line room for it? False: answered. */
bool body_may_be_read(struct server *sv, struct http_request *r);

/* Parameters of the query. False: answered, but for count_of. */
bool wait_of(struct http_request *r, int64_t *ret_ms); /* ?wait= */
/* "error,pending" as bits of (1 << enum task_state) */
bool states_of(struct http_request *r, struct slice text, uint32_t *ret);
bool count_of(struct slice text, int64_t max, int64_t *ret); /* digits only, from 1 to max */

extern const struct part bodies_part;

#endif
