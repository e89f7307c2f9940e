/* Validates a submission's W3C traceparent, and makes those of requests. Pure: nothing is drawn at
 * random, so a repeated request has the same span. */

#include "dispatch/trace.h"

#include "base/map.h"

enum {
    TRACE_AT = 3,
    TRACE_DIGITS = 32,
    PARENT_AT = 36,
    PARENT_DIGITS = 16,
    FLAGS_AT = 53,
    FLAG_SAMPLED = 1,
    FLAG_RANDOM = 2
};

/* The value of a lower-case digit, or -1. */
static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool are_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (digit(text[i]) < 0)
            return false;
    return true;
}

/* All zeros mean "none". */
static bool is_id(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text[i] != '0')
            return are_digits(text, count);
    return false;
}

static bool is_trace(struct slice t)
{
    return t.len >= TRACE_SIZE && are_digits(t.ptr, 2) && memcmp(t.ptr, "ff", 2) != 0
           && t.ptr[2] == '-' && is_id(t.ptr + TRACE_AT, TRACE_DIGITS)
           && t.ptr[PARENT_AT - 1] == '-' && is_id(t.ptr + PARENT_AT, PARENT_DIGITS)
           && t.ptr[FLAGS_AT - 1] == '-' && are_digits(t.ptr + FLAGS_AT, 2)
           && (t.len == TRACE_SIZE || (memcmp(t.ptr, "00", 2) != 0 && t.ptr[TRACE_SIZE] == '-'));
}

static struct slice trimmed(struct slice t)
{
    while (t.len > 0 && (t.ptr[0] == ' ' || t.ptr[0] == '\t'))
        t = (struct slice){t.ptr + 1, t.len - 1};
    while (t.len > 0 && (t.ptr[t.len - 1] == ' ' || t.ptr[t.len - 1] == '\t'))
        t.len--;
    return t;
}

struct slice trace_read(struct arena *a, struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};

    text = trimmed(text);
    if (!is_trace(text))
        return SLICE_NONE;
    buf_str(&b, "00");
    buf_add(&b, text.ptr + 2, FLAGS_AT - 2);
    buf_fmt(&b, "0%d", digit(text.ptr[FLAGS_AT + 1]) & (FLAG_SAMPLED | FLAG_RANDOM));
    return arena_copy(a, buf_view(&b));
}

static void put_hex(char *into, uint64_t v)
{
    for (size_t i = 16; i-- > 0; v >>= 4)
        into[i] = "0123456789abcdef"[v & 15];
}

struct slice trace_of_request(struct arena *a, struct slice trace, struct slice task, uint64_t span)
{
    char *text = arena_bytes(a, TRACE_SIZE);

    if (trace.len == TRACE_SIZE && is_trace(trace)) {
        memcpy(text, trace.ptr, TRACE_SIZE);
    } else {
        uint64_t id = hash_stable(task.ptr, task.len);
        memcpy(text, "00-", TRACE_AT);
        put_hex(text + TRACE_AT, id);
        put_hex(text + TRACE_AT + 16, ~id * UINT64_C(0x9e3779b97f4a7c15));
        memcpy(text + FLAGS_AT - 1, "-01", TRACE_SIZE - FLAGS_AT + 1);
    }
    text[PARENT_AT - 1] = '-';
    put_hex(text + PARENT_AT, span ? span : 1);
    return (struct slice){text, TRACE_SIZE};
}
