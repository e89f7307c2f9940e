#ifndef CLI_STREAM_H
#define CLI_STREAM_H

/*
 * What live verbs ask a server: one stream of events that is followed through broken connections
 * and restarts of the server, and calls beside it, all of them on one thread that is never blocked
 * for longer than it wants to be.
 *
 * A stream that ends without having said that it is over is asked for again, with the id of the
 * last event, after the time that the server named, and then less and less often, for ever. A
 * connection on which even the sign of life is missing counts as broken.
 */

#include "base/buf.h"

/* ---- events as they come: text/event-stream ---- */

struct event {
    struct slice name, id, data; /* name NONE: "message"; id: the last one that was said, or NONE */
};

struct event_parser {
    struct buf line, name, data, id;
    int64_t retry_ms; /* as the server said; -1: nothing */
    bool after_cr, has_data;
};

/* `take` is called for each event that is complete; its texts are valid during the call. */
void event_parser_feed(struct event_parser *p, struct slice bytes,
                       void (*take)(void *arg, const struct event *e), void *arg);
/* A new connection: what was not complete is forgotten, the id stays. */
void event_parser_cut(struct event_parser *p);
void event_parser_fini(struct event_parser *p);

/* ---- one server, or several that share a store ---- */

enum live_state {
    LIVE_CONNECTING, /* live_trouble() says why not yet, if it was connected or tried before */
    LIVE_FOLLOWING,
    LIVE_OVER,    /* the server says that there is nothing more to come */
    LIVE_REFUSED, /* for good; live_trouble() says why */
};

struct live;

/* `servers`: one, or several with commas between: when a stream breaks, or without one an answer
 * stays away, the next one is asked. First the one that is named `first`. `token` and `ca` may be
 * NULL. `installation`: whose servers they have to be; "": any. NULL: libcurl cannot be used.
 */
struct live *live_new(const char *servers, const char *first, const char *token, const char *ca,
                      const char *installation);
void live_free(struct live *l);
const char *live_server(const struct live *l); /* that is asked now */

/* Once: begins to follow. */
void live_follow(struct live *l, const char *path, void (*take)(void *arg, const struct event *e),
                 void *arg);
enum live_state live_state(const struct live *l);
const char *live_trouble(const struct live *l); /* one line, for people; "" if there is none */

/* An answer to live_get. `status` is 0 if there was none, then the body says why. */
struct live_answer {
    int status;
    struct slice body;
};

/* Asks for one thing; the answer comes during a later live_wait. At most LIVE_GETS at a time:
 * false, and nothing is asked. */
enum { LIVE_GETS = 8 };
bool live_get(struct live *l, const char *path,
              void (*take)(void *arg, const struct live_answer *a), void *arg);
bool live_is_asking(const struct live *l); /* some live_get has no answer yet */

/* Does what there is to do, and waits for more of it: until one of the descriptors can be read, an
 * answer or event came, or the time is over. */
void live_wait(struct live *l, const int *fds, int fd_count, int64_t wait_ms);

#endif
