#ifndef NODE_CONTENT_H
#define NODE_CONTENT_H

/*
 * The content of a submission, by which a repeated submission is recognised: see struct content.
 *
 * It is the SHA-256 of a canonical form. Versions before knew only a 64-bit hash, for which a
 * client can make collisions: other content would be taken for the same, and never be executed.
 * Both are written, and the hash decides only if one side has no SHA-256: a task of such a version,
 * or one that an older node wrote again. So an upgrade causes no conflicts. The SHA-256 of a
 * reserved id in PostgreSQL begins with the hash, because an older node that reserves the id again
 * writes the hash and leaves the SHA-256 of another task beside it.
 */

#include "core/task.h"
#include "json/json.h"

struct contents;

struct contents *contents_new(void);
void contents_free(struct contents *c); /* NULL: nothing */

/* The content of a submission, without `traceparent` and `signals`, which are removed from it: a
 * client that submits again after a timeout may do so in another span, or trace, and with other
 * signals. The text is in `a`. */
struct content content_of(struct contents *c, struct json *j, struct arena *a);

/* The SHA-256 of any value. */
struct slice content_of_value(struct contents *c, const struct json *j, struct arena *a);

#endif
