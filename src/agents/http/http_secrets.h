#ifndef AGENTS_HTTP_HTTP_SECRETS_H
#define AGENTS_HTTP_HTTP_SECRETS_H

/* The values of secrets. They exist only in memory and in requests: everything that is logged,
 * reported or stored passes through secrets_hide. */

#include "agents/http/http_config.h"
#include "base/buf.h"

struct secrets;

/* Reads all secrets. NULL: some cannot be read; *ret_faults has a line for each, with name, place
 * and reason. */
struct secrets *secrets_load(const struct http_config *c, struct buf *ret_faults);
void secrets_free(struct secrets *s); /* NULL is allowed; the values are wiped */

/* Appends the value of a header or query, with its secrets filled in. */
void secrets_fill(const struct secrets *s, struct slice value, struct buf *b);

/* Replaces the secrets. The old ones stay hidden until the next replacement, because answers to
 * requests with them may still arrive. */
void secrets_replace(struct secrets **s, struct secrets *fresh);

/* Replaces each secret, plain or escaped as in JSON or a URL, by ***. NULL: no secrets. */
void secrets_hide(const struct secrets *s, struct buf *text);

#endif
