/* Writes idempotency keys: TASK/STEP with the marks of direction, generation and round (key.h).
 * Pure and without heap: the caller provides the room, which idempotency_key_len measures.
 * scheduler/work.c is the caller. */

#include "core/key.h"

#include <string.h>

#define UNDO "/undo"

/* The first generation has no number, the second one is number 2. */
static size_t digits_of(uint64_t n)
{
    size_t digits = 1;

    while (n >= 10) {
        n /= 10;
        digits++;
    }
    return digits;
}

static uint64_t number_of(const struct idempotency_key *k)
{
    return (uint64_t)k->generation + 1;
}

size_t idempotency_key_len(const struct idempotency_key *k)
{
    size_t len = k->prefix.len + k->task.len + 1 + k->step.len;

    ASSERT(k->task.len > 0);
    ASSERT(k->step.len > 0);
    if (k->generation > 0)
        len += 1 + digits_of(number_of(k));
    if (k->round > 1)
        len += 1 + digits_of(k->round);
    return k->direction == DIRECTION_UNDO ? len + sizeof UNDO - 1 : len;
}

static char *put(char *at, struct slice s)
{
    if (s.len > 0)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static char *put_number(char *at, uint64_t n)
{
    char *end = at + digits_of(n);

    for (char *p = end; p > at; n /= 10)
        *--p = (char)('0' + n % 10);
    return end;
}

void idempotency_key_write(const struct idempotency_key *k, char *to)
{
    char *at = put(put(to, k->prefix), k->task);

    *at++ = '/';
    at = put(at, k->step);
    if (k->generation > 0) {
        *at++ = '~';
        at = put_number(at, number_of(k));
    }
    if (k->round > 1) {
        *at++ = '@';
        at = put_number(at, k->round);
    }
    if (k->direction == DIRECTION_UNDO)
        at = put(at, SLICE(UNDO));
    ASSERT((size_t)(at - to) == idempotency_key_len(k));
}
