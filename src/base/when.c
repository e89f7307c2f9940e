/* Times and durations as text: parses and writes both, and converts days to dates and back
 * (when.h). Pure: no clock is read here (clock.c), and no time zone is known but UTC (calendar/
 * has the others). */

#include "base/when.h"

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {{"d", MS_PER_D}, {"h", MS_PER_H}, {"m", MS_PER_MIN}, {"s", MS_PER_S}, {"ms", 1}};

static bool digits(struct slice *text, size_t count_max, int64_t *ret)
{
    int64_t v = 0;
    size_t n = 0;

    while (n < text->len && n < count_max && text->ptr[n] >= '0' && text->ptr[n] <= '9')
        v = v * 10 + (text->ptr[n++] - '0');
    *text = (struct slice){text->ptr + n, text->len - n};
    *ret = v;
    return n > 0;
}

bool duration_parse(struct slice text, int64_t *ret_ms)
{
    int64_t v = 0;

    if (!text.ptr || !digits(&text, 13, &v))
        return false;
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (slice_is(text, units[i].name)) {
            if (v > 10000 * MS_PER_D / units[i].ms)
                return false;
            *ret_ms = v * units[i].ms;
            return true;
        }
    return false;
}

void duration_write(struct buf *b, int64_t ms)
{
    size_t i = 0;

    ASSERT(ms >= 0);
    if (ms == 0) {
        buf_str(b, "0s");
        return;
    }
    while (ms % units[i].ms != 0)
        i++;
    buf_i64(b, ms / units[i].ms);
    buf_str(b, units[i].name);
}

void duration_tell(struct buf *b, int64_t ms)
{
    int64_t s = ms / MS_PER_S;

    ASSERT(ms >= 0);
    if (s == 0)
        buf_fmt(b, "%dms", (int)ms);
    else if (s < 10)
        buf_fmt(b, "%d.%ds", (int)s, (int)(ms % MS_PER_S / 100));
    else if (ms < MS_PER_MIN)
        buf_fmt(b, "%ds", (int)s);
    else if (ms < MS_PER_H)
        buf_fmt(b, "%dm %02ds", (int)(s / 60), (int)(s % 60));
    else if (ms < MS_PER_D)
        buf_fmt(b, "%dh %02dm", (int)(s / 3600), (int)(s % 3600 / 60));
    else
        buf_fmt(b, "%" PRId64 "d %dh", s / 86400, (int)(s % 86400 / 3600));
}

int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

void civil_from_days(int64_t days, int64_t *y, int64_t *m, int64_t *d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = yoe + era * 400 + (*m <= 2);
}

static bool expect(struct slice *text, char c)
{
    if (text->len == 0 || (text->ptr[0] | 0x20) != (c | 0x20))
        return false;
    *text = (struct slice){text->ptr + 1, text->len - 1};
    return true;
}

static bool number(struct slice *text, size_t width, int64_t min, int64_t max, int64_t *ret)
{
    size_t before = text->len;

    return digits(text, width, ret) && before - text->len == width && *ret >= min && *ret <= max;
}

static bool zone(struct slice *text, int64_t *ret_ms)
{
    int64_t h = 0;
    int64_t m = 0;

    *ret_ms = 0;
    if (expect(text, 'Z'))
        return true;
    if (text->len == 0 || (text->ptr[0] != '+' && text->ptr[0] != '-'))
        return false;
    int64_t sign = text->ptr[0] == '+' ? 1 : -1;
    *text = (struct slice){text->ptr + 1, text->len - 1};
    if (!number(text, 2, 0, 23, &h) || !expect(text, ':') || !number(text, 2, 0, 59, &m))
        return false;
    *ret_ms = sign * (h * MS_PER_H + m * MS_PER_MIN);
    return true;
}

static bool decimals(struct slice *text, int64_t *ret_ms)
{
    int64_t v = 0;

    *ret_ms = 0;
    if (text->len == 0 || text->ptr[0] != '.')
        return true;
    *text = (struct slice){text->ptr + 1, text->len - 1};
    size_t before = text->len;
    if (!digits(text, 9, &v))
        return false;
    size_t n = before - text->len;
    for (; n < 3; n++)
        v *= 10;
    for (; n > 3; n--)
        v /= 10;
    *ret_ms = v;
    return true;
}

#define TIME_MAX INT64_C(253402300799999) /* the last millisecond of the year 9999 */

bool time_parse(struct slice text, int64_t *ret_at)
{
    static const int64_t month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, ms = 0, offset = 0;

    if (!text.ptr || !number(&text, 4, 1970, 9999, &y) || !expect(&text, '-')
        || !number(&text, 2, 1, 12, &mo) || !expect(&text, '-')
        || !number(&text, 2, 1, month_days[mo - 1], &d) || !expect(&text, 'T')
        || !number(&text, 2, 0, 23, &h) || !expect(&text, ':') || !number(&text, 2, 0, 59, &mi)
        || !expect(&text, ':') || !number(&text, 2, 0, 60, &s) || !decimals(&text, &ms)
        || !zone(&text, &offset) || text.len != 0)
        return false;
    if (mo == 2 && d == 29 && !(y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)))
        return false;
    int64_t at = days_from_civil(y, mo, d) * MS_PER_D + h * MS_PER_H + mi * MS_PER_MIN
                 + s * MS_PER_S + ms - offset;
    if (at < 0 || at > TIME_MAX) /* its offset, or a leap second, moved it out of range */
        return false;
    *ret_at = at;
    return true;
}

static char *put_digits(char *at, int64_t v, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + v % 10);
        v /= 10;
    }
    return at + width;
}

enum { SECOND_LEN = 20 };

/* Writes up to the point before the milliseconds. */
static void put_second(char *p, int64_t at)
{
    int64_t y = 0, m = 0, d = 0;
    int64_t ms = at % MS_PER_D;

    civil_from_days(at / MS_PER_D, &y, &m, &d);
    p = put_digits(p, y, 4);
    *p++ = '-';
    p = put_digits(p, m, 2);
    *p++ = '-';
    p = put_digits(p, d, 2);
    *p++ = 'T';
    p = put_digits(p, ms / MS_PER_H, 2);
    *p++ = ':';
    p = put_digits(p, ms / MS_PER_MIN % 60, 2);
    *p++ = ':';
    p = put_digits(p, ms / MS_PER_S % 60, 2);
    *p = '.';
}

/* Caches recent seconds: the same times are written again and again. */
void time_write(struct buf *b, int64_t at)
{
    static _Thread_local struct {
        int64_t second; /* plus 1; 0: none */
        char text[SECOND_LEN];
    } known[4], *k;
    int64_t second = at / MS_PER_S;
    char text[SECOND_LEN + 4];

    ASSERT(at >= 0);
    k = &known[second % (int64_t)COUNT_OF(known)];
    if (k->second != second + 1) {
        put_second(k->text, at);
        k->second = second + 1;
    }
    memcpy(text, k->text, SECOND_LEN);
    *put_digits(text + SECOND_LEN, at % MS_PER_S, 3) = 'Z';
    buf_add(b, text, sizeof text);
}
