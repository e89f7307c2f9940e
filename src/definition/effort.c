#include "definition/effort.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

static size_t blocks;

/* ---- what is counted ---- */

void __wrap___sanitizer_cov_trace_pc(void);
void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__real_memset(void *to, int c, size_t n);
int __real_memcmp(const void *a, const void *b, size_t n);
void *__real_memchr(const void *p, int c, size_t n);
void *__real_memmem(const void *p, size_t n, const void *part, size_t part_len);
double __real_strtod(const char *p, char **end);
int __real_vsnprintf(char *to, size_t size, const char *fmt, va_list ap) PRINTF(3, 0);
void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
yajl_status __real_yajl_parse(yajl_handle y, const unsigned char *p, size_t n);
unsigned char *__real_yajl_get_error(yajl_handle y, int verbose, const unsigned char *p, size_t n);

void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memset(void *to, int c, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);
void *__wrap_memchr(const void *p, int c, size_t n);
void *__wrap_memmem(const void *p, size_t n, const void *part, size_t part_len);
double __wrap_strtod(const char *p, char **end);
int __wrap_snprintf(char *to, size_t size, const char *fmt, ...) PRINTF(3, 4);
int __wrap_vsnprintf(char *to, size_t size, const char *fmt, va_list ap) PRINTF(3, 0);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);
yajl_status __wrap_yajl_parse(yajl_handle y, const unsigned char *p, size_t n);
unsigned char *__wrap_yajl_get_error(yajl_handle y, int verbose, const unsigned char *p, size_t n);

void __wrap___sanitizer_cov_trace_pc(void)
{
    blocks++;
}

/* Bytes are moved 32 at a time and more. */
static void moved(size_t n)
{
    blocks += 2 + n / 64;
}

void *__wrap_memcpy(void *to, const void *from, size_t n)
{
    moved(n);
    return __real_memcpy(to, from, n);
}

void *__wrap_memmove(void *to, const void *from, size_t n)
{
    moved(n);
    return __real_memmove(to, from, n);
}

void *__wrap_memset(void *to, int c, size_t n)
{
    moved(n);
    return __real_memset(to, c, n);
}

/* As far as they are the same. */
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
    const char *x = a;
    const char *y = b;
    size_t same = 0;

    while (same < n && x[same] == y[same])
        same++;
    moved(same);
    return __real_memcmp(a, b, n);
}

void *__wrap_memchr(const void *p, int c, size_t n)
{
    const char *found = __real_memchr(p, c, n);

    moved(found ? (size_t)(found - (const char *)p) : n);
    return __real_memchr(p, c, n);
}

/* Parts of medium length are the dearest in glibc: some five nanoseconds for a byte at worst. */
void *__wrap_memmem(const void *p, size_t n, const void *part, size_t part_len)
{
    char *found = __real_memmem(p, n, part, part_len);
    size_t seen = found ? (size_t)(found - (const char *)p) + part_len : n;

    blocks += 20 + seen * (part_len > 2 && part_len <= 256 ? 3 : 1) + part_len;
    return found;
}

double __wrap_strtod(const char *p, char **end)
{
    blocks += 60 + 2 * strlen(p);
    return __real_strtod(p, end);
}

/* Of a double far from 1 the power of two has many digits. */
static bool is_far(const char *fmt, va_list ap)
{
    if (strcmp(fmt, "%.*e") != 0)
        return false;
    (void)va_arg(ap, int);
    double v = va_arg(ap, double);
    return v > 1e30 || v < 1e-30;
}

int __wrap_vsnprintf(char *to, size_t size, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    blocks += is_far(fmt, again) ? 600 : 200;
    va_end(again);
    return __real_vsnprintf(to, size, fmt, ap);
}

int __wrap_snprintf(char *to, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = __wrap_vsnprintf(to, size, fmt, ap);
    va_end(ap);
    return n;
}

void *__wrap_malloc(size_t n)
{
    blocks += 20;
    return __real_malloc(n);
}

void *__wrap_realloc(void *p, size_t n)
{
    blocks += 20 + n / 128; /* it doubles: half of it may be moved */
    return __real_realloc(p, n);
}

/* The library takes some memory first. */
yajl_status __wrap_yajl_parse(yajl_handle y, const unsigned char *p, size_t n)
{
    blocks += 400 + 4 * n;
    return __real_yajl_parse(y, p, n);
}

unsigned char *__wrap_yajl_get_error(yajl_handle y, int verbose, const unsigned char *p, size_t n)
{
    blocks += 400;
    return __real_yajl_get_error(y, verbose, p, n);
}

/* ---- the document ---- */

enum { TEXT_LEN = 1000000, MANY = 20000, SOME = 2000, DIGITS = 100000, DEEP = 40 };

static void many(struct buf *b, const char *text, size_t count)
{
    while (count-- > 0)
        buf_str(b, text);
}

static void add_text(struct buf *b, const char *key, const char *text, size_t count)
{
    json_key(b, key);
    buf_byte(b, '"');
    many(b, text, count);
    buf_byte(b, '"');
}

/* An array of what the values have by turns. */
static void add_list(struct buf *b, const char *key, size_t count, const char *even,
                     const char *odd)
{
    json_key(b, key);
    json_open(b, '[');
    for (size_t i = 0; i < count; i++)
        json_raw(b, slice_of(i % 2 ? odd : even));
    json_close(b, ']');
}

static void add_object(struct buf *b, const char *key, size_t count)
{
    json_key(b, key);
    json_open(b, '{');
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%s\"name%05zu\":%zu", i ? "," : "", i * 7919 % 100000, i);
    json_close(b, '}');
}

static void add_numbers(struct buf *b)
{
    json_key(b, "digits");
    many(b, "7", DIGITS);
    json_key(b, "decimal");
    buf_str(b, "1.2345");
    json_key(b, "far");
    buf_str(b, "1.2345678901234567e-300");
    json_key(b, "tiny");
    buf_str(b, "1e-310");
    json_key(b, "long");
    buf_str(b, "0.");
    many(b, "0", 290);
    many(b, "7", 600);
    json_key(b, "n");
    buf_str(b, "7");
}

static void add_deep(struct buf *b)
{
    json_key(b, "deep");
    many(b, "[1,", DEEP);
    buf_str(b, "1");
    many(b, "]", DEEP);
}

const struct json *effort_document(struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;
    struct json_fault fault = {0};

    json_open(&b, '{');
    add_text(&b, "quotes", "\\\"", TEXT_LEN);
    add_text(&b, "plain", "a", TEXT_LEN);
    add_text(&b, "accents", "\xc3\xa9", TEXT_LEN / 2);
    add_text(&b, "controls", "\\u0001", 50000);
    add_text(&b, "json", "[1,{\\\"a\\\":[]}", 1000);
    add_list(&b, "many", MANY, "1", "2");
    add_list(&b, "nulls", MANY, "null", "null");
    add_list(&b, "texts", MANY, "\"a\"", "\"b\"");
    add_list(&b, "mixed", MANY, "null", "\"x\"");
    add_list(&b, "decimals", SOME, "1.5", "2.25");
    add_list(&b, "lists", SOME, "[1,2,3]", "[]");
    add_list(&b, "objects", SOME, "{\"a\":1,\"b\":2}", "{\"b\":1}");
    add_list(&b, "entries", SOME, "{\"key\":\"a\",\"value\":1}", "{\"name\":\"b\"}");
    add_object(&b, "object", SOME);
    add_numbers(&b);
    add_deep(&b);
    json_close(&b, '}');
    struct slice text = arena_copy(a, buf_view(&b));
    enum err err = json_parse(a, text, &j, &fault);
    ASSERT(err == ERR_OK);
    return j;
}

/* ---- an evaluation ---- */

bool effort_take(const char *text, const struct json *document, struct effort *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
    struct expression *x = NULL;
    const struct json *value = NULL;
    size_t column = 0;

    *ret = (struct effort){0};
    if (expression_compile(slice_of(text), &a, &x, &column, &ret->e) != ERR_OK)
        return false;
    size_t before = blocks;
    ret->err = machine_run(x, document, &a, &budget, &value, &ret->e);
    ret->blocks = blocks - before;
    ret->paid = (EXPRESSION_STEPS_MAX - budget.steps)
                + (EXPRESSION_BYTES_MAX - budget.bytes) / EFFORT_BYTES;
    return true;
}

size_t effort_rate(const struct effort *f)
{
    return f->blocks / (f->paid + EFFORT_FREE);
}
