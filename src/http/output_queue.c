/* Bytes in the order in which they will be sent, copied or of a shared text: see output_queue.h. An
 * output has two: one of bytes as they are sent, and one of bytes that are encrypted later. */
#include "http/output_queue.h"

#include "http/http.h"

static size_t text_left(const struct http_queue *q)
{
    return q->text ? q->text->bytes.len - q->text_at : 0;
}

size_t http_queue_len(const struct http_queue *q)
{
    return q->waiting.len - q->waiting_at + text_left(q) + q->behind.len;
}

/* Without this the memory of a queue that is never empty would grow with all that was ever sent. */
static void drop_sent(struct http_queue *q)
{
    struct buf *b = &q->waiting;

    if (q->waiting_at <= b->len / 2)
        return;
    b->len -= q->waiting_at;
    memmove(b->ptr, b->ptr + q->waiting_at, b->len + 1); /* and its NUL */
    q->waiting_at = 0;
}

struct buf *http_queue_end(struct http_queue *q)
{
    ASSERT(!q->text);
    drop_sent(q);
    return &q->waiting;
}

void http_queue_add(struct http_queue *q, const struct slice *parts, unsigned count, size_t skip,
                    struct http_text *lent)
{
    drop_sent(q);
    for (unsigned i = 0; i < count; i++) {
        size_t skipped = skip < parts[i].len ? skip : parts[i].len;
        skip -= skipped;
        if (skipped == parts[i].len)
            continue;
        if (lent && !q->text && parts[i].ptr == lent->bytes.ptr) {
            q->text = http_text_hold(lent);
            q->text_at = skipped;
            continue;
        }
        buf_add(q->text ? &q->behind : &q->waiting, parts[i].ptr + skipped, parts[i].len - skipped);
    }
}

struct slice http_queue_first(const struct http_queue *q, size_t max)
{
    struct slice s = {q->waiting.ptr + q->waiting_at, q->waiting.len - q->waiting_at};

    if (s.len == 0 && q->text)
        s = (struct slice){q->text->bytes.ptr + q->text_at, text_left(q)};
    return (struct slice){s.ptr, s.len < max ? s.len : max};
}

static void text_let_go(struct http_queue *q)
{
    http_text_drop(q->text);
    q->text = NULL;
    q->text_at = 0;
    ASSERT(q->waiting.len == 0);
    q->waiting = q->behind;
    q->behind = (struct buf){0};
}

void http_queue_taken(struct http_queue *q, size_t len)
{
    if (q->waiting.len > 0) {
        q->waiting_at += len;
        if (q->waiting_at < q->waiting.len)
            return;
        buf_fini(&q->waiting);
        q->waiting_at = 0;
    } else {
        q->text_at += len;
    }
    if (q->text && text_left(q) == 0)
        text_let_go(q);
}

void http_queue_fini(struct http_queue *q)
{
    buf_fini(&q->waiting);
    buf_fini(&q->behind);
    http_text_drop(q->text);
}
