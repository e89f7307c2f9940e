/* Counts the basic blocks that an evaluation executes (effort.h), for the tests of its budget.
 * Only for the library `counted` of meson.build, which is the evaluator compiled with coverage
 * callbacks: the __wrap functions here replace those callbacks and calls into libraries, which
 * are counted by their bytes. effort_fuzz.c and effort_test.c use it. */

#include "definition/expression/effort.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "definition/expression/recorded.h"
#include "definition/template/reference.h"

static size_t blocks;

/* ---- counters ---- */

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's --wrap
 * prescribes these names. */
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

/* Bytes are moved at least 32 at a time. */
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

/* Counts up to the first difference. */
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

/* Patterns of medium length are the slowest in glibc: about five nanoseconds per byte at worst. */
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

/* If a double is far from 1, its power of two has many digits. */
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
    blocks += 20 + n / 128; /* the size doubles: half of it may be moved */
    return __real_realloc(p, n);
}

/* The library allocates memory first. */
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
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/* ---- the document ---- */

enum { SHRUNK = 20, TEXT_LEN = 1000000, MANY = 20000, SOME = 2000, DIGITS = 100000, DEEP = 40 };

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

/* An array that takes its members from the two values alternately. */
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

/* Values that are expensive to skip or to read. */
static void add_for_reading(struct buf *b)
{
    json_key(b, "brackets");
    json_open(b, '[');
    many(b, "[],", SOME);
    buf_str(b, "0]");
    json_key(b, "spaces");
    buf_str(b, "[1");
    many(b, "\n", TEXT_LEN / SHRUNK);
    buf_str(b, "]");
    add_list(b, "empties", SOME, "\"\"", "\"\\\\\"");
    json_key(b, "names");
    json_open(b, '{');
    for (size_t i = 0; i < SOME; i++)
        buf_fmt(b, "%s\"\\u0061%05zu\" : {\"a\":%zu}", i ? " , " : "", i, i);
    json_close(b, '}');
    add_text(b, "slashes", "\\\\", TEXT_LEN / SHRUNK);
}

static void write_document(struct buf *b, size_t shrink)
{
    json_open(b, '{');
    add_text(b, "quotes", "\\\"", TEXT_LEN / shrink);
    add_text(b, "plain", "a", TEXT_LEN / shrink);
    add_text(b, "accents", "\xc3\xa9", TEXT_LEN / 2 / shrink);
    add_text(b, "controls", "\\u0001", 50000 / shrink);
    add_text(b, "json", "[1,{\\\"a\\\":[]}", 1000);
    add_list(b, "many", MANY / shrink, "1", "2");
    add_list(b, "nulls", MANY / shrink, "null", "null");
    add_list(b, "texts", MANY / shrink, "\"a\"", "\"b\"");
    add_list(b, "mixed", MANY / shrink, "null", "\"x\"");
    add_list(b, "decimals", SOME, "1.5", "2.25");
    add_list(b, "lists", SOME, "[1,2,3]", "[]");
    add_list(b, "objects", SOME, "{\"a\":1,\"b\":2}", "{\"b\":1}");
    add_list(b, "entries", SOME, "{\"key\":\"a\",\"value\":1}", "{\"name\":\"b\"}");
    add_object(b, "object", SOME);
    add_numbers(b);
    add_deep(b);
    if (shrink > 1)
        add_for_reading(b);
    json_close(b, '}');
}

const struct json *effort_document(struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;
    struct json_fault fault = {0};

    write_document(&b, 1);
    struct slice text = arena_copy(a, buf_view(&b));
    enum err err = json_parse(a, text, &j, &fault);
    ASSERT(err == ERR_OK);
    return j;
}

struct slice effort_recorded(struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;

    write_document(&b, SHRUNK);
    enum err err = json_parse(a, buf_view(&b), &j, NULL);
    ASSERT(err == ERR_OK);
    return arena_copy(a, buf_view(&b));
}

/* ---- an evaluation ---- */

static enum err run(const struct expression *x, const struct json *root, struct arena *a,
                    struct budget *budget, struct effort *ret)
{
    const struct json *value = NULL;

    return machine_run(x, root, a, budget, &value, &ret->e);
}

/* As scope.c does it. */
static enum err read_and_run(const struct expression *x, struct slice recorded, struct arena *a,
                             struct budget *budget, struct effort *ret)
{
    struct machine m = machine_begin(a, budget);
    struct json root = {.type = JSON_OBJECT};
    bool is_corrupt = false;

    struct json *input = recorded_read(&m, recorded, &x->needs.of_input, &is_corrupt);
    machine_end(&m, budget);
    ASSERT(!is_corrupt);
    if (!input)
        return error_set(&ret->e, ERR_INVALID, "%s", m.what);
    input->key = SLICE("input");
    root.child = input;
    root.count = 1;
    return run(x, &root, a, budget, ret);
}

static bool take(const char *text, const struct json *document, struct slice recorded,
                 struct effort *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
    struct wanted of_input = {0};
    struct references refs = {.of_input = &of_input};
    struct expression *x = NULL;
    size_t column = 0;

    *ret = (struct effort){0};
    if (expression_compile(slice_of(text), &a, &x, &column, &ret->e) != ERR_OK)
        return false;
    references_collect(x, false, &a, &refs);
    x->needs.of_input = of_input;
    size_t before = blocks;
    ret->err =
        document ? run(x, document, &a, &budget, ret) : read_and_run(x, recorded, &a, &budget, ret);
    ret->blocks = blocks - before;
    ret->paid = (EXPRESSION_STEPS_MAX - budget.steps)
                + (EXPRESSION_BYTES_MAX - budget.bytes) / EFFORT_BYTES;
    return true;
}

bool effort_take(const char *text, const struct json *document, struct effort *ret)
{
    return take(text, document, SLICE_NONE, ret);
}

bool effort_take_recorded(const char *text, struct slice recorded, struct effort *ret)
{
    return take(text, NULL, recorded, ret);
}

size_t effort_rate(const struct effort *f)
{
    return f->blocks / (f->paid + EFFORT_FREE);
}
