#include "definition/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The text is not terminated: it may lie in a larger one. */
static double text_double(struct slice text)
{
    char few[64];
    char *copy = few;

    if (text.len >= sizeof few) {
        copy = malloc(text.len + 1);
        ASSERT(copy);
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    double d = strtod(copy, NULL);
    if (copy != few)
        free(copy);
    return d;
}

static bool is_whole(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '.' || text.ptr[i] == 'e' || text.ptr[i] == 'E')
            return false;
    return true;
}

static const char *shown(struct slice text, char buf[32])
{
    (void)snprintf(buf, 32, "%.*s%s", SLICE_ARG(slice_cut(text, 24)), text.len > 24 ? "..." : "");
    return buf;
}

bool number_of(struct machine *m, const struct json *j, struct number *ret)
{
    char buf[32];
    struct number n = {0};

    ASSERT(j->type == JSON_NUMBER);
    if (!machine_spend(m, j->text.len / 64))
        return false;
    n.is_int = json_int(j, &n.i);
    n.d = n.is_int ? (double)n.i : text_double(j->text);
    if ((!n.is_int && is_whole(j->text)) || !isfinite(n.d)) {
        (void)machine_fail(m, "number %s is too large to calculate with", shown(j->text, buf));
        return false;
    }
    *ret = n;
    return true;
}

static const struct json *number_text(struct machine *m, const char *text, size_t len)
{
    char *ptr = value_bytes(m, len);
    struct json *j = ptr ? value_new(m, JSON_NUMBER) : NULL;

    if (!j)
        return NULL;
    memcpy(ptr, text, len);
    j->text = j->raw = (struct slice){ptr, len};
    return j;
}

const struct json *number_int(struct machine *m, int64_t v)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, v);

    return number_text(m, text, (size_t)len);
}

/* Finding the digits of a number takes as long as so many steps do otherwise. */
enum { DOUBLE_STEPS = 4 };

/* The shortest digits that read back as v, without zeros at the end; returns their count, and where
 * the point stands, counted from the first digit. */
static int shortest_digits(double v, char digits[24], int *ret_point)
{
    char text[40];
    int len = 0;
    /* Fifteen digits are always enough for a number that has fewer (zeros at its end are cut),
     * unless it is so small that it has fewer bits than others. */
    int precision = v < DBL_MIN ? 1 : DBL_DIG;

    do
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, v);
    while (strtod(text, NULL) != v && ++precision <= 17);
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9')
            digits[len++] = *p;
    while (len > 1 && digits[len - 1] == '0')
        len--;
    *ret_point = (int)strtol(e + 1, NULL, 10) + 1;
    return len;
}

/* Decimal where it is not too long, otherwise with an exponent; the borders are those of jq 1.6. */
const struct json *number_double(struct machine *m, double v)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char digits[24];
    int point = 0;

    if (!isfinite(v)) {
        (void)machine_fail(m, "the result is too large for a number");
        return NULL;
    }
    if (v == 0)
        return number_text(m, "0", 1);
    if (!machine_spend(m, DOUBLE_STEPS))
        return NULL;
    int count = shortest_digits(fabs(v), digits, &point);
    if (v < 0)
        buf_byte(&b, '-');
    if (point <= -4 || point > count + 15) {
        buf_add(&b, digits, 1);
        if (count > 1)
            buf_byte(&b, '.');
        buf_add(&b, digits + 1, (size_t)count - 1);
        buf_fmt(&b, "e%+.2d", point - 1);
    } else if (point <= 0) {
        buf_str(&b, "0.");
        for (int i = point; i < 0; i++)
            buf_byte(&b, '0');
        buf_add(&b, digits, (size_t)count);
    } else {
        for (int i = 0; i < count || i < point; i++) {
            if (i == point)
                buf_byte(&b, '.');
            buf_str(&b, i < count ? (char[]){digits[i], 0} : "0");
        }
    }
    return number_text(m, b.ptr, b.len);
}

static const struct json *overflow(struct machine *m)
{
    (void)machine_fail(m, "the result does not fit 64 bits");
    return NULL;
}

static const struct json *int_apply(struct machine *m, enum operator op, int64_t a, int64_t b)
{
    int64_t v = 0;
    bool bad = false;

    if (op == OP_ADD)
        bad = __builtin_add_overflow(a, b, &v);
    else if (op == OP_SUBTRACT)
        bad = __builtin_sub_overflow(a, b, &v);
    else if (op == OP_MULTIPLY)
        bad = __builtin_mul_overflow(a, b, &v);
    else
        UNREACHABLE();
    return bad ? overflow(m) : number_int(m, v);
}

static const struct json *by_zero(struct machine *m)
{
    (void)machine_fail(m, "division by zero");
    return NULL;
}

static const struct json *divide(struct machine *m, const struct number *a, const struct number *b)
{
    if (b->d == 0)
        return by_zero(m);
    if (a->is_int && b->is_int && !(a->i == INT64_MIN && b->i == -1) && a->i % b->i == 0)
        return number_int(m, a->i / b->i);
    return number_double(m, a->d / b->d);
}

/* The fraction is cut before, as jq does it. */
static bool whole_part(struct machine *m, const struct number *n, int64_t *ret)
{
    if (!n->is_int && !(n->d > -9.2e18 && n->d < 9.2e18))
        return overflow(m) != NULL;
    *ret = n->is_int ? n->i : (int64_t)n->d;
    return true;
}

static const struct json *modulo(struct machine *m, const struct number *a, const struct number *b)
{
    int64_t x = 0;
    int64_t y = 0;

    if (!whole_part(m, a, &x) || !whole_part(m, b, &y))
        return NULL;
    if (y == 0)
        return by_zero(m);
    return number_int(m, y == -1 ? 0 : x % y); /* INT64_MIN % -1 would trap */
}

const struct json *number_apply(struct machine *m, enum operator op, const struct json *a,
                                const struct json *b)
{
    struct number x;
    struct number y;

    if (!number_of(m, a, &x) || !number_of(m, b, &y))
        return NULL;
    if (op == OP_DIVIDE)
        return divide(m, &x, &y);
    if (op == OP_MODULO)
        return modulo(m, &x, &y);
    if (x.is_int && y.is_int)
        return int_apply(m, op, x.i, y.i);
    if (op == OP_ADD)
        return number_double(m, x.d + y.d);
    if (op == OP_SUBTRACT)
        return number_double(m, x.d - y.d);
    ASSERT(op == OP_MULTIPLY);
    return number_double(m, x.d * y.d);
}

const struct json *number_negate(struct machine *m, const struct json *a)
{
    struct number n;

    if (!number_of(m, a, &n))
        return NULL;
    if (!n.is_int)
        return number_double(m, -n.d);
    return n.i == INT64_MIN ? overflow(m) : number_int(m, -n.i);
}

/* Of integers of any length. */
static int whole_compare(struct slice a, struct slice b)
{
    bool negative = a.ptr[0] == '-';

    if (negative != (b.ptr[0] == '-'))
        return negative ? -1 : 1;
    int order = a.len != b.len ? (a.len < b.len ? -1 : 1) : memcmp(a.ptr, b.ptr, a.len);
    return negative ? -order : order;
}

int number_compare(struct slice a, struct slice b)
{
    struct json x = {.type = JSON_NUMBER, .text = a};
    struct json y = {.type = JSON_NUMBER, .text = b};
    int64_t i = 0;
    int64_t k = 0;
    bool fits_i = json_int(&x, &i);
    bool fits_k = json_int(&y, &k);

    if (fits_i && fits_k)
        return (i > k) - (i < k);
    if (is_whole(a) && is_whole(b))
        return whole_compare(a, b);
    long double d = fits_i ? (long double)i : (long double)text_double(a);
    long double e = fits_k ? (long double)k : (long double)text_double(b);
    return (d > e) - (d < e);
}
