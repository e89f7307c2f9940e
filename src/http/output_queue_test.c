/* The queue of bytes that are sent later: their order, around a shared text, and what it keeps of
 * what was sent. */

#include "http/output_queue.h"

#include "base/test.h"
#include "http/http.h"

/* Takes all of it, `step` bytes at a time. */
static void drain(struct http_queue *q, size_t step, struct buf *ret)
{
    while (http_queue_len(q) > 0) {
        struct slice first = http_queue_first(q, step);
        CHECK(first.len > 0 && first.len <= step, "%zu", first.len);
        buf_slice(ret, first);
        http_queue_taken(q, first.len);
    }
}

static void bytes_come_in_their_order_around_a_text(void **state)
{
    (void)state;
    for (size_t step = 1; step < 12; step++) {
        struct buf bytes = {0};
        struct http_queue q = {0};
        CLEANUP(buf_fini) struct buf got = {0};
        buf_str(&bytes, "TEXT");
        struct http_text *text = http_text_new(&bytes);
        const struct slice parts[] = {SLICE("head "), buf_view(&text->bytes), SLICE(" end")};
        http_queue_add(&q, parts, COUNT_OF(parts), 2, text);
        CHECK(text->refs == 2, "it is held: %u", text->refs);
        http_queue_add(&q, &(struct slice){"; more", 6}, 1, 0, NULL);
        CHECK(http_queue_len(&q) == 17, "%zu", http_queue_len(&q));
        drain(&q, step, &got);
        CHECK(slice_is(buf_view(&got), "ad TEXT end; more"), "step %zu: %s", step, got.ptr);
        CHECK(text->refs == 1, "it is let go: %u", text->refs);
        http_text_drop(text);
        http_queue_fini(&q);
    }
}

/* A reader that is always a little behind does not cost the memory of all that it got. */
static void what_was_sent_is_not_kept(void **state)
{
    char bytes[1000];
    struct http_queue q = {0};
    (void)state;

    memset(bytes, 'x', sizeof bytes);
    const struct slice part = {bytes, sizeof bytes};
    http_queue_add(&q, &part, 1, 0, NULL);
    for (int i = 0; i < 1000; i++) {
        http_queue_add(&q, &part, 1, 0, NULL);
        http_queue_taken(&q, http_queue_first(&q, sizeof bytes).len);
        CHECK(http_queue_len(&q) == sizeof bytes, "%zu", http_queue_len(&q));
    }
    CHECK(q.waiting.cap < 16 * sizeof bytes, "%zu bytes for %zu", q.waiting.cap, sizeof bytes);
    http_queue_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_in_their_order_around_a_text),
        cmocka_unit_test(what_was_sent_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
