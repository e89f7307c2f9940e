#ifndef BASE_BASE_H
#define BASE_BASE_H

/* The vocabulary of every file: attributes, assertions, slices. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define MUST_USE     __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Of a case that goes on into the next one: clang reads no comment, as gcc does. */
#define FALL_THROUGH __attribute__((fallthrough))
#define COUNT_OF(a)  (sizeof(a) / sizeof((a)[0]))
#define BIT(n)       (UINT32_C(1) << (n))

/* The struct of `type` whose field `field` lies at `ptr`. */
#define CONTAINER_OF(ptr, type, field) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, field))) /* intrusive lists and heaps */

/* ASSERT states what our own code guarantees. It is never compiled out, so its
 * condition must be free of side effects. Errors of the outside world are not
 * asserted; they are returned. */
#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(#cond, __FILE__, __LINE__))

/* MAYBE says "yes, this can be either; the code below copes with both". */
#define MAYBE(cond)   ((void)sizeof(!!(cond)))

#define UNREACHABLE() assert_failed("unreachable", __FILE__, __LINE__)

_Noreturn void assert_failed(const char *cond, const char *file, int line);

/* The system gives us no more. Says so and aborts: what was acknowledged is durable, and a new
 * process begins with memory of its own. */
_Noreturn void out_of_memory(size_t wanted);

/* Called by assert_failed before it aborts, if set: the simulator prints its seed here. */
extern void (*assert_story)(void);

/* Bytes that somebody else owns. `ptr` is NULL for "not there", which is not the
 * same as empty. Not terminated. */
struct slice {
    const char *ptr;
    size_t len;
};

#define SLICE_NONE   ((struct slice){NULL, 0})
#define SLICE(lit)   ((struct slice){"" lit, sizeof(lit) - 1})
#define SLICE_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : "" /* for "%.*s" */

static inline struct slice slice_of(const char *str)
{
    return str ? (struct slice){str, strlen(str)} : SLICE_NONE;
}

static inline bool slice_is(struct slice s, const char *str)
{
    return s.ptr && s.len == strlen(str) && memcmp(s.ptr, str, s.len) == 0;
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    if (!a.ptr || !b.ptr)
        return a.ptr == b.ptr;
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* The very same bytes, and not only equal ones. None is nothing's. */
static inline bool slice_same(struct slice a, struct slice b)
{
    return a.ptr && a.ptr == b.ptr && a.len == b.len;
}

/* Bytewise, a shorter text before a longer one that begins with it: the order of SQLite's BINARY.
 */
static inline int slice_order(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* As much of the text as `max` bytes hold, and never half a character. */
static inline struct slice slice_cut(struct slice s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
        max--;
    return (struct slice){s.ptr, max};
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
