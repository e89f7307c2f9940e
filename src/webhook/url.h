#ifndef WEBHOOK_URL_H
#define WEBHOOK_URL_H

/*
 * Which URLs may be called: those below one that the configuration names. Texts come from whoever
 * submits tasks, so what could be read in two ways is refused.
 */

#include "base/base.h"
#include "base/buf.h"

enum { URL_MAX = 2048 };

/* Parts of a URL's text, which stays its owner's. */
struct url {
    bool is_https;
    struct slice host; /* as it stands there; "[::1]" with its brackets */
    uint32_t port;     /* that of the scheme, if none is named */
    struct slice path; /* "/hooks/17?x=1"; "/" if there is none */
};

/* NULL, or what is expected. `is_pattern`: '*' may be a label of the host, and no '?' may follow.
 */
const char *url_parse(struct slice text, bool is_pattern, struct url *ret);

/* Is it the same scheme, host and port, and a path below the pattern's? '*' is any one label. A
 * pattern whose path ends with '/' takes what begins like it; another one itself, and what lies
 * below it. */
bool url_is_below(const struct url *u, const struct url *pattern) MUST_USE;

/* Scheme, host in lower case and port: those who share it are one server. */
void url_origin(const struct url *u, struct buf *b);

#endif
