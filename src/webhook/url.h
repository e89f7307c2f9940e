#ifndef WEBHOOK_URL_H
#define WEBHOOK_URL_H

/*
 * Which URLs may be called: those below one in the configuration. The texts come from submitters,
 * so everything ambiguous is refused.
 */

#include "base/base.h"
#include "base/buf.h"

enum { URL_MAX = 2048 };

/* Parts of a URL's text, which they refer to. */
struct url {
    bool is_https;
    struct slice host; /* as written; "[::1]" with its brackets */
    uint32_t port;     /* the scheme's default if none is given */
    struct slice path; /* "/hooks/17?x=1"; "/" if there is none */
};

/* NULL, or what is expected. `is_pattern`: '*' may be a label of the host, and '?' is not
 * allowed. */
const char *url_parse(struct slice text, bool is_pattern, struct url *ret);

/* Whether scheme, host and port match, and the path is below the pattern's. '*' matches any one
 * label. A pattern whose path ends with '/' matches all paths with that prefix; another one matches
 * itself and what is below it. */
bool url_is_below(const struct url *u, const struct url *pattern) MUST_USE;

/* Scheme, host in lower case and port: URLs with the same origin are one server's. */
void url_origin(const struct url *u, struct buf *b);

#endif
