#ifndef API_QUERY_H
#define API_QUERY_H

/*
 * A request that is answered by one reading of the store: its memory, its way there and back, and
 * what lists have in common, which come in pages.
 */

#include "node/exchange.h"
#include "store/job.h"

/* The first member of what hangs on the request, which lies in `arena`. */
struct store_query {
    struct exchange x;
    struct store_job job;
    void (*run)(struct store_job *j, struct store *store);
    struct arena arena;
    enum err err; /* set by `run`, with the error's text */
    struct error error;
    void (*answer)(struct http_request *r, struct store_query *it);
};

/* One of `size` bytes, zero behind the head; it counts among those that are open. `answer` is
 * called if the store answered, and the client is still there; errors are answered without it. Ask
 * reading_has_room(READING_MANY) before. */
struct store_query *store_query_new(struct server *sv, struct http_request *r, size_t size,
                                    void (*answer)(struct http_request *r, struct store_query *it));
/* `run` is on the thread that reads. What comes of it is answered, and it is freed. */
void store_query_start(struct store_query *it,
                       void (*run)(struct store_job *j, struct store *store));

enum { PAGE_USUAL = 50, PAGE_MAX = 500 };

/* `limit`, from 1 to `most` (`usual` if it is missing), and `cursor` (0) of the request. False: it
 * was answered. */
bool page_query(struct http_request *r, size_t usual, size_t most, size_t *ret_limit,
                int64_t *ret_cursor);
/* The member `next` of an answer: the cursor, or null if there is no more. */
void page_next(struct buf *b, bool more, int64_t cursor);

#endif
