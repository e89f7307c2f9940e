#ifndef NODE_JSON_ANSWER_H
#define NODE_JSON_ANSWER_H

/* Answers in JSON, and failures of the store as problem documents. */

#include "core/reason.h"
#include "http/http.h"

void answer_json(struct http_request *r, int status, const struct buf *b, const char *headers);
/* Takes the bytes of `b`, which is empty afterwards: what has to be kept of them is not copied. */
void answer_json_taken(struct http_request *r, int status, struct buf *b);
const char *trouble_type(enum err err);      /* as problem documents name it */
const char *signal_problem(enum obstacle o); /* the same, for a signal that was refused */
void answer_trouble(struct http_request *r, enum err err, const char *story);

#endif
