#ifndef BASE_BASE_H
#define BASE_BASE_H

/* Included by every file: attributes, assertions, slices. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define MUST_USE     __attribute__((warn_unused_result))
#define PACKED       __attribute__((packed)) /* an enum: as small as its values allow */
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
/* For a case that continues with the next one: unlike gcc, clang ignores comments. */
#define FALL_THROUGH __attribute__((fallthrough))
#define COUNT_OF(a)  (sizeof(a) / sizeof((a)[0]))
#define BIT(n)       (UINT32_C(1) << (n))

/* The struct of `type` whose field `field` is at `ptr`. */
#define CONTAINER_OF(ptr, type, field) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, field))) /* for intrusive lists and heaps */

/* ASSERT states an invariant of this code. It is never compiled out, so its condition must have no
 * side effects. External errors are not asserted; they are returned. */
#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(#cond, __FILE__, __LINE__))

/* MAYBE documents that a condition can be either; the code below handles both. */
#define MAYBE(cond)   ((void)sizeof(!!(cond)))

#define UNREACHABLE() assert_failed("unreachable", __FILE__, __LINE__)

_Noreturn void assert_failed(const char *cond, const char *file, int line);

/* Reports that memory ran out and aborts: acknowledged data is durable, and a new process starts
 * with fresh memory. */
_Noreturn void out_of_memory(size_t wanted);

/* If set, assert_failed calls it before it aborts: the simulator prints its seed here. */
extern void (*assert_story)(void);

/* Borrowed bytes. `ptr` is NULL for "absent", which differs from empty. Not terminated. */
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

/* The identical bytes, not merely equal ones. NONE is identical to nothing. */
static inline bool slice_same(struct slice a, struct slice b)
{
    return a.ptr && a.ptr == b.ptr && a.len == b.len;
}

/* Bytewise, a prefix before the longer text: the order of SQLite's BINARY. */
static inline int slice_order(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* The longest prefix of at most `max` bytes that does not split a character. */
static inline struct slice slice_cut(struct slice s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
        max--;
    return (struct slice){s.ptr, max};
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
