#ifndef SERVER_HELPER_H
#define SERVER_HELPER_H

/*
 * A child process that is an agent of this server alone: `intact serve --http`. It is started with
 * the server and again when it has ended, told when the server drains, and ends with it, however
 * that ends.
 *
 * It comes in by a door of its own, an abstract Unix socket, where the kernel tells who connects:
 * the child, and nobody else, is let in, without TLS and without a token. A socket pair, the
 * channel, tells it when the server drains and when it has ended (http_agent/inside.h).
 */

#include <uv.h>

#include "base/base.h"

struct server;
struct helper;

/* `argv[0]` is a path, and ends with NULL; `variable` is set to "3:NAME", descriptor and
 * door, in the child's environment, which is ours otherwise, without what is the server's own. */
struct helper_config {
    const char *const *argv;
    const char *variable;
};

/* Never NULL: a child that cannot be started is tried again. */
struct helper *helper_open(struct server *sv, const struct helper_config *c);
void helper_hangup(struct helper *h); /* SIGHUP was sent: for the child, too */
void helper_drain(struct helper *h);  /* it finishes what is under way */
void helper_close(struct helper *h);  /* NULL is fine; run the loop once more after it */

#endif
