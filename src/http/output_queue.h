#ifndef HTTP_OUTPUT_QUEUE_H
#define HTTP_OUTPUT_QUEUE_H

/* Bytes in the order in which they will be sent: copies, and one text that is shared. */

#include "base/buf.h"

struct http_text;

struct http_queue {
    struct buf waiting; /* its first `waiting_at` bytes are sent */
    size_t waiting_at;
    struct http_text *text; /* behind that, and not copied; NULL: nothing is */
    size_t text_at;
    struct buf behind; /* behind the text */
};

size_t http_queue_len(const struct http_queue *q);

/* Appends the parts but for their first `skip` bytes. They are copied, but for a part that is all
 * of `lent`: it is held, if no other text is in the queue. NULL: nothing is lent. */
void http_queue_add(struct http_queue *q, const struct slice *parts, unsigned count, size_t skip,
                    struct http_text *lent);

struct buf *http_queue_end(struct http_queue *q); /* to append to it; there must be no text */

/* The first bytes that lie in one place, `max` at most. */
struct slice http_queue_first(const struct http_queue *q, size_t max);
void http_queue_taken(struct http_queue *q, size_t len); /* removes so many of those */
void http_queue_fini(struct http_queue *q);

#endif
