#ifndef BACKGROUND_HELPER_H
#define BACKGROUND_HELPER_H

/*
 * A child process that is an agent of this server alone: `intact serve --http`. It is started with
 * the server, restarted when it has ended, notified when the server drains, and ends with the
 * server, however that ends.
 *
 * It connects by a socket pair of its own: it asks there for connections, and receives ends of
 * further pairs (libintact/door.h), without TLS and without a token. Another pair, the channel,
 * tells it when the server drains and when it has ended (agents/http/inside.h).
 */

#include <uv.h>

#include "base/base.h"
#include "node/part.h"

struct bearer;
struct server;
struct helper;

/* `argv[0]` is a path; `argv` ends with NULL. The child's environment has `variable`, set to "3:4",
 * the descriptors of channel and door. From our environment it has what libraries need, and the
 * names in `kept`, which ends with NULL; NULL: none. */
struct helper_config {
    const char *const *argv;
    const char *variable;
    const char *const *kept;
    bool submits; /* it may submit tasks, and not only be an agent */
    /* The user of the channel, a packet at a time; may be NULL. */
    const struct helper_listener *listener;
};

/* Called on the loop's thread, never from within a function of this header. */
struct helper_listener {
    void (*opened)(void *arg, struct helper *h); /* by helper_open; with NULL by helper_close */
    void (*received)(void *arg, struct slice packet);
    void (*room)(
        void *arg); /* after helper_send returned false: there is room now; or helper_wake */
    void (*ended)(void *arg); /* the child is gone: the next one knows nothing of earlier packets */
    void *arg;
};

enum { HELPER_PACKET_MAX = 384 << 10 /* bytes: a socket's buffer takes it as it is */ };
void helpers_read_again(struct server *sv); /* SIGHUP was sent: for the children, too */
/* A packet for the child, all of it or nothing. False: it has no room now, or there is no child. */
bool helper_send(struct helper *h, struct slice packet) MUST_USE;
void helper_wake(struct helper *h); /* `room` will be called, whether there is a child or not */
bool helper_is_there(const struct helper *h); /* a child that listens */
/* The token of a request over a connection of a helper (http_adopted). */
const struct bearer *helper_bearer(unsigned whose);

extern const struct part helpers_part;

#endif
