/* Numbers of expressions: reading and writing decimals, arithmetic, exact comparison. See
 * number.h. Costs are paid to the machine before the work is done. */
#include "definition/expression/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Integers below this are exact as doubles, and so are these powers of ten. The quotient of two
 * exact doubles is correctly rounded, so it is what strtod would return. */
static const double whole_max = 1e15;
static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                              1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};

/* Reads a decimal with few digits and no exponent. False: it is of another form. */
static bool few_digits_read(struct slice text, double *ret)
{
    size_t at = text.len > 0 && text.ptr[0] == '-';
    size_t point = text.len;
    int64_t v = 0;

    if (text.len > 17)
        return false;
    for (size_t i = at; i < text.len; i++) {
        if (text.ptr[i] == '.')
            point = i;
        else if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        else
            v = v * 10 + (text.ptr[i] - '0');
    }
    if ((double)v >= whole_max || point == text.len)
        return false;
    double d = (double)v / tens[text.len - point - 1];
    *ret = at ? -d : d;
    return true;
}

/* The text is not terminated by a NUL. */
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

/* ---- arithmetic ---- */

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

/* A double does not distinguish more digits. */
enum { DIGITS_MAX = 17 };

/* The number of significant digits: without leading and trailing zeros. */
static size_t digits_of(struct slice text)
{
    size_t count = 0;
    size_t zeros = 0;

    for (size_t i = 0; i < text.len && text.ptr[i] != 'e' && text.ptr[i] != 'E'; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || (text.ptr[i] == '0' && count == 0))
            continue;
        zeros = text.ptr[i] == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

static bool refuse(struct machine *m, const struct json *j, const char *why)
{
    char buf[32];

    (void)machine_fail(m, "number %s %s to calculate with", shown(j->text, buf), why);
    return false;
}

/* Parts of steps charged for reading a decimal. */
enum { FEW_DIGITS_PARTS = 2, DOUBLE_READ_PARTS = 16 };

/* Reads a text that is no 64-bit integer. */
static bool read_double(struct machine *m, struct slice text, double *ret)
{
    if (!machine_pay(m, FEW_DIGITS_PARTS))
        return false;
    if (few_digits_read(text, ret))
        return true;
    if (!machine_pay(m, DOUBLE_READ_PARTS + text.len / 2))
        return false;
    *ret = text_double(text);
    return true;
}

bool number_of(struct machine *m, const struct json *j, struct number *ret)
{
    struct number n = {0};

    ASSERT(j->type == JSON_NUMBER);
    n.is_int = json_int(j, &n.i);
    n.d = (double)n.i;
    if (!n.is_int && !read_double(m, j->text, &n.d))
        return false;
    if ((!n.is_int && is_whole(j->text)) || !isfinite(n.d))
        return refuse(m, j, "is too large");
    if (!n.is_int && j->text.len > DIGITS_MAX && digits_of(j->text) > DIGITS_MAX)
        return refuse(m, j, "has too many digits");
    if (n.d == 0 && !n.is_int && digits_of(j->text) > 0)
        return refuse(m, j, "is too close to zero");
    *ret = n;
    return true;
}

/* For two numbers that are combined as doubles. Fails for an integer that no double equals, which
 * would be rounded silently. */
static bool check_double(struct machine *m, const struct json *j, const struct number *n)
{
    bool is_exact = !n->is_int || (n->d < 0x1p63 && (int64_t)n->d == n->i);

    return is_exact || refuse(m, j, "is too large for a fraction");
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
    char *p = text + sizeof text;
    uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;

    do {
        *--p = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (v < 0)
        *--p = '-';
    return number_text(m, p, (size_t)(text + sizeof text - p));
}

bool builder_add_int(struct builder *b, size_t v)
{
    const struct json *j = number_int(b->machine, (int64_t)v);

    return j && builder_add(b, j);
}

/* Parts of steps charged for finding the digits of a number: if they are few; for each precision
 * tried; the same for a number so large or small that its power of two has many digits. */
enum { FEW_PARTS = 16, DIGITS_PARTS = 48, DIGITS_PARTS_FAR = 96 };

static size_t digits_parts(double v)
{
    return v > 1e-30 && v < 1e30 ? DIGITS_PARTS : DIGITS_PARTS_FAR;
}

static bool may_have_few_digits(double v)
{
    return v >= 1e-5 && v < whole_max;
}

/* The digits of such a number if there are at most fifteen, perhaps with trailing zeros; 0: there
 * are more. The smallest sufficient power of ten gives the fewest digits. */
static int few_digits(double v, char digits[24], int *ret_point)
{
    for (size_t k = 0; k < COUNT_OF(tens) && v * tens[k] < whole_max; k++) {
        int64_t whole = (int64_t)(v * tens[k] + 0.5);
        if ((double)whole / tens[k] != v)
            continue;
        int len = snprintf(digits, 24, "%" PRId64, whole);
        *ret_point = len - (int)k;
        return len;
    }
    return 0;
}

/* With the least precision that reads back as v, at most seventeen. 0: failed. */
static int many_digits(struct machine *m, double v, char digits[24], int *ret_point)
{
    char text[40];
    int len = 0;
    /* Fifteen digits suffice for every number with at most fifteen (trailing zeros are cut), except
     * for denormal numbers, which have fewer bits. */
    int precision = v < DBL_MIN ? 1 : may_have_few_digits(v) ? DBL_DIG + 1 : DBL_DIG;

    do {
        if (!machine_pay(m, digits_parts(v)))
            return 0;
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, v);
    } while (strtod(text, NULL) != v && ++precision <= 17);
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9')
            digits[len++] = *p;
    *ret_point = (int)strtol(e + 1, NULL, 10) + 1;
    return len;
}

/* The shortest digits that read back as v, without trailing zeros. Returns their number, and in
 * *ret_point the position of the decimal point after the first digit's. 0: failed. */
static int shortest_digits(struct machine *m, double v, char digits[24], int *ret_point)
{
    int len = 0;

    if (!machine_pay(m, FEW_PARTS))
        return 0;
    if (may_have_few_digits(v))
        len = few_digits(v, digits, ret_point);
    if (len == 0)
        len = many_digits(m, v, digits, ret_point);
    while (len > 1 && digits[len - 1] == '0')
        len--;
    return len;
}

/* Decimal notation unless it is too long, else with an exponent; the limits are those of jq 1.6. */
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
    int count = shortest_digits(m, fabs(v), digits, &point);
    if (count == 0)
        return NULL;
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
    } else if (point > DBL_DIG && point >= count && fabs(v) < 0x1p63) {
        buf_fmt(&b, "%.0f", fabs(v)); /* an integer: all of its digits */
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

/* INT64_MIN / -1 would trap. */
static bool divides(int64_t a, int64_t b)
{
    return b != -1 && a % b == 0;
}

static const struct json *divide(struct machine *m, const struct json *a, const struct json *b,
                                 const struct number *x, const struct number *y)
{
    if (y->d == 0)
        return by_zero(m);
    if (x->is_int && y->is_int && y->i == -1)
        return number_negate(m, a);
    if (x->is_int && y->is_int && divides(x->i, y->i))
        return number_int(m, x->i / y->i);
    if (!check_double(m, a, x) || !check_double(m, b, y))
        return NULL;
    return number_double(m, x->d / y->d);
}

/* The fraction is cut first, as in jq. */
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
        return divide(m, a, b, &x, &y);
    if (op == OP_MODULO)
        return modulo(m, &x, &y);
    if (x.is_int && y.is_int)
        return int_apply(m, op, x.i, y.i);
    if (!check_double(m, a, &x) || !check_double(m, b, &y))
        return NULL;
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

/* ---- comparison of decimals as written, without rounding ---- */

/* 0.DIGITS * 10^exponent. Neither the first nor the last digit is 0. */
struct decimal {
    bool is_negative;
    struct slice digits; /* may contain the point; empty: zero */
    int64_t exponent;
};

/* Longer exponents would have to be compared as texts. */
enum { EXPONENT_DIGITS_MAX = 15 };

/* The offset of the exponent; text.len: there is none. */
static size_t exponent_at(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == 'e' || text.ptr[i] == 'E')
            return i;
    return text.len;
}

/* False: it has too many digits. */
static bool exponent_of(struct slice text, int64_t *ret)
{
    size_t at = 0;
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    int64_t v = 0;

    while (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+' || text.ptr[at] == '0'))
        at++;
    if (text.len - at > EXPONENT_DIGITS_MAX)
        return false;
    for (; at < text.len; at++)
        v = v * 10 + (text.ptr[at] - '0');
    *ret = is_negative ? -v : v;
    return true;
}

static bool decimal_of(struct slice text, struct decimal *ret)
{
    struct decimal d = {.is_negative = text.ptr[0] == '-'};
    size_t end = exponent_at(text);
    size_t from = d.is_negative ? 1 : 0;
    size_t point = from;

    if (end < text.len
        && !exponent_of((struct slice){text.ptr + end + 1, text.len - end - 1}, &d.exponent))
        return false;
    while (point < end && text.ptr[point] != '.')
        point++;
    while (from < end && (text.ptr[from] == '0' || text.ptr[from] == '.'))
        from++;
    while (end > from && (text.ptr[end - 1] == '0' || text.ptr[end - 1] == '.'))
        end--;
    d.digits = (struct slice){text.ptr + from, end - from};
    d.exponent += (int64_t)point - (int64_t)from + (from > point);
    d.is_negative &= d.digits.len > 0;
    *ret = d;
    return true;
}

/* Returns the digit at *at, 0 beyond the end, and advances. */
static char next_digit(struct slice digits, size_t *at)
{
    if (*at < digits.len && digits.ptr[*at] == '.')
        ++*at;
    return *at < digits.len ? digits.ptr[(*at)++] : '0';
}

/* Compares two nonzero numbers, ignoring their signs. */
static int size_compare(const struct decimal *x, const struct decimal *y)
{
    size_t i = 0;
    size_t k = 0;

    if (x->exponent != y->exponent)
        return x->exponent < y->exponent ? -1 : 1;
    while (i < x->digits.len || k < y->digits.len) {
        char a = next_digit(x->digits, &i);
        char b = next_digit(y->digits, &k);
        if (a != b)
            return a < b ? -1 : 1;
    }
    return 0;
}

/* -1, 0, 1 */
static int sign_of(const struct decimal *d)
{
    if (d->digits.len == 0)
        return 0;
    return d->is_negative ? -1 : 1;
}

static int decimal_compare(struct machine *m, struct slice a, struct slice b)
{
    struct decimal x;
    struct decimal y;

    if (!machine_pay(m, (a.len + b.len) / 2))
        return 0;
    if (!decimal_of(a, &x) || !decimal_of(b, &y)) {
        (void)machine_fail_for_good(m, "a number with such an exponent cannot be compared");
        return 0;
    }
    if (sign_of(&x) != sign_of(&y))
        return sign_of(&x) < sign_of(&y) ? -1 : 1;
    return sign_of(&x) == 0 ? 0 : sign_of(&x) * size_compare(&x, &y);
}

int number_compare(struct machine *m, const struct json *a, const struct json *b)
{
    int64_t i = 0;
    int64_t k = 0;

    if (json_int(a, &i) && json_int(b, &k))
        return (i > k) - (i < k);
    return decimal_compare(m, a->text, b->text);
}
