#ifndef HTTP_AGENT_SECRETS_H
#define HTTP_AGENT_SECRETS_H

/* The values of secrets, and what is made with them. They are in memory and in requests, and
 * nowhere else: what is told or kept goes through secrets_hide. */

#include "base/buf.h"
#include "http_agent/config.h"

struct secrets;

/* Reads all of them. NULL: some cannot be read; a line for each says which, where and why. */
struct secrets *secrets_load(const struct http_config *c, struct buf *ret_faults);
void secrets_free(struct secrets *s); /* NULL is fine; the values are wiped */

/* The value of a header or of a query, with its secrets filled in. */
void secrets_fill(const struct secrets *s, struct slice value, struct buf *b);

/* Those that hold from now on. What they replace is hidden until the next time: answers to what was
 * sent with it are still to come. */
void secrets_replace(struct secrets **s, struct secrets *fresh);

/* Puts *** in place of each secret, as it is and as JSON or a URL may have it. NULL: there are
 * none. */
void secrets_hide(const struct secrets *s, struct buf *text);

#endif
