#ifndef NET_HOLES_H
#define NET_HOLES_H

/* Holes of libcurl that concern what we use of it, by version. Distributions mend them without
 * another number, so the version alone does not tell: it is a warning. */

#include "base/buf.h"

enum {
    HOLES_HTTP = 1, /* any service: names are looked up, answers may be packed */
    HOLES_SOCKS = 2 /* a proxy with socks5h:// */
};

/* Adds "CVE-..., CVE-...", those of a version (CURLVERSION_NUM's form) that concern what is used.
 */
void holes_find(unsigned version, unsigned used, struct buf *ret);

/* Logs those of the libcurl that runs, in one line, if there are any. */
void holes_warn(unsigned used);

#endif
