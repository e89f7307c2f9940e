/* Reads a text that people write field by field, and records every mistake instead of stopping at
 * the first (config_reader.h): objects, durations, names, unknown keys with a suggestion.
 * source.c parses the text before, field.c reads the fields that are declared in tables,
 * mistakes.c sorts and renders what is found. */

#include "config/config_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"

enum { STEP_NAME_MAX = 64, ACTION_MAX = 128 };

void path_write(struct buf *b, const struct path *path)
{
    if (!path || (!path->up && !path->name.ptr))
        return;
    path_write(b, path->up);
    if (!path->name.ptr) {
        buf_byte(b, '[');
        buf_i64(b, (int64_t)path->index);
        buf_byte(b, ']');
        return;
    }
    if (b->len > 0)
        buf_byte(b, '.');
    buf_slice(b, path->name);
}

/* Copies the part of the text that fits, without splitting a character. */
static void put_text(char *to, size_t size, struct slice text)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;

    while (len < text.len && len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
        len--;
    memcpy(to, text.ptr, len);
    to[len] = 0;
}

static PRINTF(6, 0) void add_mistake(const struct reader *r, struct mistakes *to,
                                     const struct path *path, size_t offset, struct slice found,
                                     const char *expected, va_list ap)
{
    CLEANUP(buf_fini) struct buf where = {0};
    char text[400];

    if (to->count == MISTAKES_MAX)
        return;
    struct mistake *m = &to->list[to->count++];
    *m = (struct mistake){0};
    json_position(r->text, offset, &m->line, &m->column);
    path_write(&where, path);
    put_text(m->path, sizeof m->path, buf_view(&where));
    put_text(m->found, sizeof m->found, found);
    text_format(text, sizeof text, expected, ap);
    put_text(m->expected, sizeof m->expected, slice_of(text));
}

void mistake_at(struct reader *r, const struct path *path, size_t offset, const char *found,
                const char *expected, ...)
{
    va_list ap;

    va_start(ap, expected);
    add_mistake(r, r->mistakes, path, offset, slice_of(found), expected, ap);
    va_end(ap);
}

void mistake_in(struct reader *r, const struct path *path, const struct json *j,
                const char *expected, ...)
{
    bool is_container = j->type == JSON_ARRAY || j->type == JSON_OBJECT;
    va_list ap;

    va_start(ap, expected);
    add_mistake(r, r->mistakes, path, j->at,
                is_container ? slice_of(json_type_text(j->type)) : j->raw, expected, ap);
    va_end(ap);
}

void warn_at(struct reader *r, const struct path *path, size_t offset, struct slice found,
             const char *expected, ...)
{
    va_list ap;

    if (!r->warnings)
        return;
    va_start(ap, expected);
    add_mistake(r, r->warnings, path, offset, found, expected, ap);
    va_end(ap);
}

bool name_is_near(struct slice text, struct slice name)
{
    size_t i = 0;
    size_t a = text.len;
    size_t b = name.len;

    if (a > b + 1 || b > a + 1 || a + b < 5) /* short names are all similar */
        return false;
    while (i < a && i < b && text.ptr[i] == name.ptr[i])
        i++;
    while (a > i && b > i && text.ptr[a - 1] == name.ptr[b - 1]) {
        a--;
        b--;
    }
    if (a - i <= 1 && b - i <= 1)
        return true;
    return a - i == 2 && b - i == 2 && text.ptr[i] == name.ptr[i + 1]
           && text.ptr[i + 1] == name.ptr[i];
}

static void list_fields(struct buf *b, const struct field *fields, size_t count)
{
    buf_str(b, "one of ");
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%s%s", i ? ", " : "", fields[i].name);
}

static void unknown_key(struct reader *r, const struct json *member, const struct path *path,
                        const struct field *fields, size_t count)
{
    CLEANUP(buf_fini) struct buf known = {0};
    char found[100];

    if (r->mistakes->count == MISTAKES_MAX)
        return; /* further mistakes are not kept, so their explanations are not needed */
    (void)snprintf(found, sizeof found, "key \"%.*s\"", SLICE_ARG(slice_cut(member->key, 80)));
    for (size_t i = 0; i < r->reserved_count; i++)
        if (slice_is(member->key, r->reserved[i].name)) {
            bool at_top = path->up && !path->up->up && !path->up->name.ptr;
            const char *more = at_top ? r->reserved[i].at_top : NULL;
            mistake_at(r, path, member->key_at, found, "%s%s", r->reserved[i].why,
                       more ? more : "");
            return;
        }
    for (size_t i = 0; i < count; i++)
        if (name_is_near(member->key, slice_of(fields[i].name))) {
            mistake_at(r, path, member->key_at, found, "did you mean \"%s\"?", fields[i].name);
            return;
        }
    list_fields(&known, fields, count);
    mistake_at(r, path, member->key_at, found, "%s", known.ptr);
}

void read_object(struct reader *r, const struct json *j, const struct path *path,
                 const struct field *fields, size_t count, void *target)
{
    uint32_t seen = 0;

    ASSERT(count <= 32);
    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        size_t i = 0;
        while (i < count && !slice_is(m->key, fields[i].name))
            i++;
        if (i == count) {
            unknown_key(r, m, &at, fields, count);
            continue;
        }
        seen |= BIT(i);
        read_field(r, &fields[i], m, &at, (char *)target + fields[i].offset);
    }
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].is_required || seen & BIT(i))
            continue;
        struct path at = {path, slice_of(fields[i].name), 0};
        mistake_at(r, &at, j->at, "nothing", "a key \"%s\"", fields[i].name);
    }
}

void read_duration(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    int64_t ms = 0;

    if (j->type != JSON_STRING || !duration_parse(j->text, &ms))
        mistake_in(r, path, j, "a duration such as 200ms, 30s, 15m, 2h or 7d");
    else
        *(int64_t *)target = ms;
}

void read_length(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    int64_t ms = -1;

    read_duration(r, j, path, &ms);
    if (ms == 0)
        mistake_in(r, path, j, "a duration longer than 0");
    else if (ms > 0)
        *(int64_t *)target = ms;
}

static bool is_made_of(struct slice text, const char *allowed, size_t max)
{
    if (text.len == 0 || text.len > max)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(allowed, text.ptr[i])) /* no NUL: the parser refuses it */
            return false;
    return true;
}

/* In YAML an unquoted 42 is a number, not a text. */
static const char *quotes_hint(const struct reader *r, const struct json *j)
{
    bool is_word = j->type == JSON_NUMBER || j->type == JSON_TRUE || j->type == JSON_FALSE
                   || j->type == JSON_NULL;

    return r->is_yaml && is_word ? "; as a text, in quotes" : "";
}

void read_name(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    if (j->type != JSON_STRING
        || !is_made_of(j->text, "abcdefghijklmnopqrstuvwxyz0123456789_-", STEP_NAME_MAX))
        mistake_in(r, path, j, "a name: 1 to %d of a-z, 0-9, _ and -%s", STEP_NAME_MAX,
                   quotes_hint(r, j));
    else
        *(struct slice *)target = j->text;
}

void read_action(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

    if (j->type != JSON_STRING || !is_made_of(j->text, allowed, ACTION_MAX))
        mistake_in(r, path, j, "an action: 1 to %d of A-Z, a-z, 0-9, and . _ : -%s", ACTION_MAX,
                   quotes_hint(r, j));
    else
        *(struct slice *)target = j->text;
}

void read_bool(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    if (j->type != JSON_TRUE && j->type != JSON_FALSE)
        mistake_in(r, path, j, "true or false");
    else
        *(bool *)target = j->type == JSON_TRUE;
}

void read_node(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    (void)r;
    (void)path;
    *(const struct json **)target = j;
}

void read_version(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    int64_t v = 0;

    (void)target;
    if (!json_int(j, &v) || v != 1)
        mistake_in(r, path, j, "1, the version of this grammar");
}

bool read_whole(struct reader *r, const struct json *j, const struct path *path, int64_t least,
                int64_t most, int64_t *ret)
{
    int64_t v = 0;

    if (json_int(j, &v) && v >= least && v <= most) {
        *ret = v;
        return true;
    }
    mistake_in(r, path, j, "a whole number from %" PRId64 " to %" PRId64, least, most);
    return false;
}

bool size_parse(const struct json *j, int64_t *ret)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    enum { DIGITS_MAX = 10 }; /* the limit for GiB */
    size_t digits = 0;
    int64_t v = 0;

    if (j->type == JSON_NUMBER && json_int(j, &v) && v > 0) {
        *ret = v;
        return true;
    }
    v = 0;
    struct slice text = j->type == JSON_STRING ? j->text : SLICE("");
    while (digits < text.len && digits < DIGITS_MAX && text.ptr[digits] >= '0'
           && text.ptr[digits] <= '9')
        v = v * 10 + (text.ptr[digits++] - '0');
    struct slice unit = {text.ptr + digits, text.len - digits};
    for (size_t i = 0; v > 0 && i < COUNT_OF(units); i++)
        if (slice_is(unit, units[i].unit) && v <= INT64_MAX >> units[i].shift) {
            *ret = v << units[i].shift;
            return true;
        }
    return false;
}
