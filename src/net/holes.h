#ifndef NET_HOLES_H
#define NET_HOLES_H

/* Vulnerabilities of libcurl that affect the features used here, by version. Distributions fix them
 * without changing the version, so a match is only a warning. */

#include "base/buf.h"

enum {
    HOLES_HTTP = 1, /* any service: names are looked up, responses may be compressed */
    HOLES_SOCKS = 2 /* a proxy with socks5h:// */
};

/* Adds "CVE-..., CVE-...": those of a version (in the form of CURLVERSION_NUM) that affect what is
 * used. */
void holes_find(unsigned version, unsigned used, struct buf *ret);

/* Logs those of the running libcurl in one line, if there are any. */
void holes_warn(unsigned used);

#endif
