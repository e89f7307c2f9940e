/* Parses cron expressions into sets of minutes, hours, days and months, and says what is wrong
 * with those that are refused (cron.h). Pure. cron_next.c finds the next time that fits;
 * schedule/schedule.c is the caller. */

#include "calendar/cron.h"

#include <ctype.h>

enum { TEXT_MAX = 256, FIELDS = 5, NTH_MAX = 5 };

enum field_kind { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

static const struct field {
    const char *name;
    uint8_t least, most;
    uint8_t end;       /* the last value of `*`: Sunday has two numbers */
    bool is_of_days;   /* so `?` is allowed */
    const char *words; /* of three letters each; the first one stands for `least` */
} fields[FIELDS] = {
    [MINUTE] = {"minute", 0, 59, 59, false, ""},
    [HOUR] = {"hour", 0, 23, 23, false, ""},
    [DAY] = {"day of month", 1, 31, 31, true, ""},
    [MONTH] = {"month", 1, 12, 12, false, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
    [WEEKDAY] = {"day of week", 0, 7, 6, true, "SUNMONTUEWEDTHUFRISAT"},
};

static const struct macro {
    const char *name, *text;
} macros[] = {
    {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

/* One item of a list, such as "8-18/2" or "5#2". */
struct item {
    const struct field *field;
    struct slice text; /* of the whole item, for messages */
    struct slice rest; /* that is to be read */
    uint64_t bits;
    bool whole;   /* it begins with a star */
    bool is_last; /* it ends with L */
    int nth;      /* 0: no # */
};

static enum err refuse(const struct item *i, const char *why, struct error *e)
{
    return error_set(e, ERR_INVALID, "cron: \"%.*s\" in field %s: %s",
                     SLICE_ARG(slice_cut(i->text, 40)), i->field->name, why);
}

static bool take(struct item *i, char c)
{
    if (i->rest.len == 0 || toupper((unsigned char)i->rest.ptr[0]) != c)
        return false;
    i->rest = (struct slice){i->rest.ptr + 1, i->rest.len - 1};
    return true;
}

static bool take_number(struct item *i, int *ret)
{
    size_t n = 0;
    int v = 0;

    while (n < i->rest.len && n < 4 && isdigit((unsigned char)i->rest.ptr[n]))
        v = v * 10 + (i->rest.ptr[n++] - '0');
    i->rest = (struct slice){i->rest.ptr + n, i->rest.len - n};
    *ret = v;
    return n > 0;
}

static bool take_word(struct item *i, int *ret)
{
    const char *words = i->field->words;

    for (int n = 0; words[0] && i->rest.len >= 3; n++, words += 3)
        if (strncasecmp(words, i->rest.ptr, 3) == 0) {
            i->rest = (struct slice){i->rest.ptr + 3, i->rest.len - 3};
            *ret = i->field->least + n;
            return true;
        }
    return false;
}

static enum err read_value(struct item *i, int *ret, struct error *e)
{
    if (take_word(i, ret))
        return ERR_OK;
    if (!take_number(i, ret))
        return refuse(i, "this is no value of the field", e);
    if (*ret < i->field->least || *ret > i->field->most)
        return refuse(i, "the value is out of range", e);
    return ERR_OK;
}

/* "/2" after a range. */
static enum err read_step(struct item *i, int *ret, struct error *e)
{
    *ret = 1;
    if (!take(i, '/'))
        return ERR_OK;
    if (!take_number(i, ret) || *ret == 0)
        return refuse(i, "a step is a whole number from 1", e);
    if (*ret > i->field->most)
        return refuse(i, "the step is longer than the field", e);
    return ERR_OK;
}

static enum err read_range(struct item *i, struct error *e)
{
    int first = i->field->least;
    int last = i->field->end;
    int step = 1;
    enum err err = ERR_OK;

    i->whole = take(i, '*') || (i->field->is_of_days && take(i, '?'));
    if (!i->whole) {
        err = read_value(i, &first, e);
        if (!err && take(i, '-'))
            err = read_value(i, &last, e);
        else if (i->rest.len == 0 || i->rest.ptr[0] != '/')
            last = first;
    }
    if (err || (err = read_step(i, &step, e)))
        return err;
    if (first > last)
        return refuse(i, "the range ends before it begins", e);
    for (int v = first; v <= last; v += step)
        i->bits |= UINT64_C(1) << v;
    return ERR_OK;
}

/* The suffix of a day of week: "5L" and "5#2". */
static enum err read_suffix(struct item *i, struct error *e)
{
    i->is_last = take(i, 'L');
    if (!i->is_last && take(i, '#'))
        if (!take_number(i, &i->nth) || i->nth < 1 || i->nth > NTH_MAX)
            return refuse(i, "after # a number from 1 to 5 is expected", e);
    if ((i->is_last || i->nth) && (i->whole || (i->bits & (i->bits - 1))))
        return refuse(i, "L and # need a single day", e);
    return ERR_OK;
}

static void add_weekdays(struct cron *c, const struct item *i)
{
    uint8_t days = (uint8_t)((i->bits | i->bits >> 7) & 0x7f); /* 7 is Sunday, too */

    if (i->is_last)
        c->last_weekdays |= days;
    else if (i->nth)
        c->nth_weekdays[i->nth] |= days;
    else
        c->weekdays |= days;
}

static void add(struct cron *c, enum field_kind kind, const struct item *i)
{
    switch (kind) {
    case MINUTE:
        c->minutes |= i->bits;
        c->follows_real_time |= i->whole;
        break;
    case HOUR:
        c->hours |= (uint32_t)i->bits;
        c->follows_real_time |= i->whole;
        break;
    case DAY:
        c->days |= (uint32_t)i->bits;
        break;
    case MONTH:
        c->months |= (uint16_t)i->bits;
        break;
    case WEEKDAY:
        add_weekdays(c, i);
        break;
    default:
        UNREACHABLE();
    }
}

static enum err read_item(struct cron *c, enum field_kind kind, struct slice text, struct error *e)
{
    struct item i = {.field = &fields[kind], .text = text, .rest = text};
    enum err err;

    if (kind == DAY && text.len == 1 && take(&i, 'L')) {
        c->last_day = true;
        return ERR_OK;
    }
    err = read_range(&i, e);
    if (!err && kind == WEEKDAY)
        err = read_suffix(&i, e);
    if (!err && i.rest.len > 0)
        err = refuse(&i, "the end is not understood", e);
    if (!err)
        add(c, kind, &i);
    return err;
}

static enum err read_field(struct cron *c, enum field_kind kind, struct slice text, struct error *e)
{
    enum err err = ERR_OK;

    while (!err) {
        const char *comma = memchr(text.ptr, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;
        err = read_item(c, kind, (struct slice){text.ptr, len}, e);
        if (!comma)
            break;
        text = (struct slice){comma + 1, text.len - len - 1};
    }
    return err;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Splits at spaces. False: there are not five fields. */
static bool split(struct slice text, struct slice parts[FIELDS])
{
    size_t at = 0;

    for (int n = 0;; n++) {
        while (at < text.len && is_space(text.ptr[at]))
            at++;
        if (at == text.len)
            return n == FIELDS;
        if (n == FIELDS)
            return false;
        size_t begin = at;
        while (at < text.len && !is_space(text.ptr[at]))
            at++;
        parts[n] = (struct slice){text.ptr + begin, at - begin};
    }
}

/* A list with all values, such as 1-31, does restrict: so others take it, too. */
static bool restricts_nothing(struct slice field)
{
    return slice_is(field, "*") || slice_is(field, "?");
}

/* Days of the month alone can ask for a date that no year has. */
static bool can_fire(const struct cron *c)
{
    static const int month_days[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (c->any_day || !c->any_weekday || c->last_day)
        return true;
    for (int m = 1; m <= 12; m++) {
        uint32_t first_days = (uint32_t)((UINT64_C(2) << month_days[m]) - 1);
        if ((c->months & BIT(m)) && (c->days & first_days))
            return true;
    }
    return false;
}

static struct slice macro_text(struct slice text)
{
    for (size_t i = 0; i < COUNT_OF(macros); i++)
        if (text.len == strlen(macros[i].name)
            && strncasecmp(text.ptr, macros[i].name, text.len) == 0)
            return slice_of(macros[i].text);
    return text;
}

enum err cron_parse(struct slice text, struct cron *c, struct error *e)
{
    struct slice parts[FIELDS];
    enum err err = ERR_OK;

    if (text.len > TEXT_MAX)
        return error_set(e, ERR_INVALID, "cron: the expression is longer than %d bytes", TEXT_MAX);
    if (!text.ptr || !split(macro_text(text), parts))
        return error_set(e, ERR_INVALID,
                         "cron: five fields are expected: minute, hour, day of month, month, day "
                         "of week; or a macro such as @daily");
    *c = (struct cron){0};
    for (int n = 0; n < FIELDS && !err; n++)
        err = read_field(c, (enum field_kind)n, parts[n], e);
    if (err)
        return err;
    c->any_day = restricts_nothing(parts[DAY]);
    c->any_weekday = restricts_nothing(parts[WEEKDAY]);
    if (!can_fire(c))
        return error_set(e, ERR_INVALID, "cron: \"%.*s\" never fires: no such month has such a day",
                         SLICE_ARG(text));
    return ERR_OK;
}
