#ifndef NODE_CONTENT_H
#define NODE_CONTENT_H

/* The content of a submission, by which a repeated submission is recognised: see struct content. */

#include "core/task.h"
#include "json/json.h"

struct contents;

struct contents *contents_new(void);
void contents_free(struct contents *c); /* NULL: nothing */

/* Of a submission without its `traceparent`, which is removed from it: a client that submits again
 * after a timeout may do so in another span, or trace. The text is in `a`. */
struct content content_of(struct contents *c, struct json *j, struct arena *a);

#endif
