#ifndef CLI_CLIENT_LIVE_STREAM_H
#define CLI_CLIENT_LIVE_STREAM_H

/*
 * Connections of live verbs: one stream of events, followed across broken connections and restarts
 * of the server, and calls beside it. All of it runs on one thread and blocks only as long as
 * asked.
 *
 * A stream that ends without a final event is opened again, with the id of the last event, after
 * the time that the server named, and then ever less often, without limit. A connection without a
 * sign of life counts as broken.
 */

#include "base/buf.h"

/* ---- events: text/event-stream ---- */

struct event {
    struct slice name, id, data; /* name NONE: "message"; id: the last one seen, or NONE */
};

struct event_parser {
    struct buf line, name, data, id;
    int64_t retry_ms; /* from the server; -1: none */
    bool after_cr, has_data;
};

/* Calls `take` for each complete event; its texts are valid during the call. */
void event_parser_feed(struct event_parser *p, struct slice bytes,
                       void (*take)(void *arg, const struct event *e), void *arg);
/* A new connection: drops an incomplete event, keeps the id. */
void event_parser_cut(struct event_parser *p);
void event_parser_fini(struct event_parser *p);

/* ---- one server, or several on one store ---- */

enum live_state {
    LIVE_CONNECTING, /* live_trouble() says why, if it was connected or tried before */
    LIVE_FOLLOWING,
    LIVE_OVER,    /* the server says that the stream is complete */
    LIVE_REFUSED, /* for good; live_trouble() says why */
};

struct live;

/* `servers`: one, or several separated by commas. If a stream breaks, or without a stream a call
 * fails, the next one is used; the first is `first`. `token` and `ca` may be NULL. `installation`:
 * the one they must belong to; "": any. NULL: libcurl cannot be used. */
struct live *live_new(const char *servers, const char *first, const char *token, const char *ca,
                      const char *installation);
void live_free(struct live *l);
const char *live_server(const struct live *l); /* the current server */

/* Starts the stream. Only once. */
void live_follow(struct live *l, const char *path, void (*take)(void *arg, const struct event *e),
                 void *arg);
enum live_state live_state(const struct live *l);
const char *live_trouble(const struct live *l); /* one line, for people; "" if there is none */

/* The answer of live_get. `status` 0: none; then the body has the reason. */
struct live_answer {
    int status;
    struct slice body;
};

/* Starts a GET; its answer arrives during a later live_wait. At most LIVE_GETS at a time: beyond
 * that returns false and does nothing. */
enum { LIVE_GETS = 8 };
bool live_get(struct live *l, const char *path,
              void (*take)(void *arg, const struct live_answer *a), void *arg);
bool live_is_asking(const struct live *l); /* some live_get has no answer yet */

/* Does pending work and waits: until a descriptor is readable, an answer or event arrives, or the
 * time is over. */
void live_wait(struct live *l, const int *fds, int fd_count, int64_t wait_ms);

#endif
