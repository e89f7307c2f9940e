#ifndef BACKGROUND_HELPER_H
#define BACKGROUND_HELPER_H

/*
 * A child process that is an agent of this server alone: `intact serve --http`. It is started with
 * the server and again when it has ended, told when the server drains, and ends with it, however
 * that ends.
 *
 * It comes in by a door of its own, a socket pair that nobody else has an end of: it asks there
 * for connections, and is sent ends of further pairs (libintact/door.h), without TLS and without a
 * token. Another pair, the channel, tells it when the server drains and when it has ended
 * (http_agent/inside.h).
 */

#include <uv.h>

#include "base/base.h"
#include "node/part.h"

struct bearer;
struct server;
struct helper;

/* `argv[0]` is a path, and ends with NULL; `variable` is set to "3:4", the
 * descriptors of channel and door, in the child's environment, which has of ours
 * what libraries need, and `kept`: names that end with NULL; NULL: none. */
struct helper_config {
    const char *const *argv;
    const char *variable;
    const char *const *kept;
    bool submits; /* it may submit tasks, and not only be an agent */
    /* Whoever talks with it over the channel, a packet at a time; NULL: nobody. */
    const struct helper_ears *ears;
};

/* Called on the loop's thread, never from within a function of this header. */
struct helper_ears {
    void (*opened)(void *arg, struct helper *h); /* by helper_open; with NULL by helper_close */
    void (*heard)(void *arg, struct slice packet);
    void (*room)(void *arg);  /* after helper_say said no: it may say yes now; or helper_wake */
    void (*ended)(void *arg); /* the child is gone: the next one knows nothing of what was said */
    void *arg;
};

enum { HELPER_PACKET_MAX = 384 << 10 /* bytes: a socket's buffer takes it as it is */ };
void helper_hangup(struct helper *h); /* SIGHUP was sent: for the child, too */
/* A packet for the child, all of it or nothing. False: it has no room now, or there is no child. */
bool helper_say(struct helper *h, struct slice packet) MUST_USE;
void helper_wake(struct helper *h); /* `room` will be called, whether there is a child or not */
bool helper_is_there(const struct helper *h); /* a child that listens */
/* Who a request came from that http_adopted says that of. */
const struct bearer *helper_bearer(unsigned whose);

extern const struct part helpers_part;

#endif
