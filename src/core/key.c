/* Writes idempotency keys: TASK/STEP with the marks of direction, generation and round; and the ids
 * of children (key.h). Pure and without heap: the caller provides the room, which the functions
 * with _len measure. scheduler/work.c and tasks/child_id.c are the callers. */

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

static uint64_t number_of(uint32_t generation)
{
    return (uint64_t)generation + 1;
}

size_t idempotency_key_len(const struct idempotency_key *k)
{
    size_t len = k->prefix.len + k->task.len + 1 + k->step.len;

    ASSERT(k->task.len > 0);
    ASSERT(k->step.len > 0);
    if (k->generation > 0)
        len += 1 + digits_of(number_of(k->generation));
    if (k->of_item)
        len += 1 + digits_of(k->item);
    if (k->of_item && k->item_generation > 0)
        len += 1 + digits_of(number_of(k->item_generation));
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
        at = put_number(at, number_of(k->generation));
    }
    if (k->of_item) {
        *at++ = '.';
        at = put_number(at, k->item);
    }
    if (k->of_item && k->item_generation > 0) {
        *at++ = '~';
        at = put_number(at, number_of(k->item_generation));
    }
    if (k->round > 1) {
        *at++ = '@';
        at = put_number(at, k->round);
    }
    if (k->direction == DIRECTION_UNDO)
        at = put(at, SLICE(UNDO));
    ASSERT((size_t)(at - to) == idempotency_key_len(k));
}

size_t child_id_len(struct slice parent, struct slice step, uint32_t number)
{
    ASSERT(parent.len > 0);
    ASSERT(step.len > 0);
    ASSERT(number > 0);
    return parent.len + 1 + step.len + (number > 1 ? 1 + digits_of(number) : 0);
}

void child_id_write(struct slice parent, struct slice step, uint32_t number, char *to)
{
    char *at = put(to, parent);

    *at++ = '@';
    at = put(at, step);
    if (number > 1) {
        *at++ = ':';
        at = put_number(at, number);
    }
    ASSERT((size_t)(at - to) == child_id_len(parent, step, number));
}
