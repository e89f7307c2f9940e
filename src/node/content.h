#ifndef NODE_CONTENT_H
#define NODE_CONTENT_H

/* What a submission says, as tasks keep it to tell "the same again": see struct content. */

#include "core/task.h"
#include "json/json.h"

struct contents;

struct contents *contents_new(void);
void contents_free(struct contents *c); /* NULL: nothing */

/* Of a submission, without its `traceparent`, which is taken out of it: who submits again, not
 * knowing if he was heard, may do so within another span, or trace. The text lies in `a`. */
struct content content_of(struct contents *c, struct json *j, struct arena *a);

#endif
