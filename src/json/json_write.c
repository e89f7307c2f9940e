/* Writes JSON into a buf, and adds the commas itself by looking at the byte before (json.h).
 * Strings that need no escapes, which are most, are copied at once. The caller closes what it
 * opened. json.c parses. */

#include "json/json.h"

#include "base/when.h"
#include "json/text.h"

/* Bytes that can end a value. */
static const bool ends_value[256] = {
    ['}'] = true, [']'] = true, ['"'] = true, ['0'] = true, ['1'] = true,
    ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true, ['6'] = true,
    ['7'] = true, ['8'] = true, ['9'] = true, ['e'] = true, ['l'] = true,
};

/* A comma follows the end of a value, and nothing else. */
static void comma(struct buf *b)
{
    if (b->len > 0 && ends_value[(unsigned char)b->ptr[b->len - 1]])
        buf_byte(b, ',');
}

void json_open(struct buf *b, char bracket)
{
    ASSERT(bracket == '{' || bracket == '[');
    comma(b);
    buf_byte(b, bracket);
}

void json_close(struct buf *b, char bracket)
{
    ASSERT(bracket == '}' || bracket == ']');
    buf_byte(b, bracket);
}

void json_key_of(struct buf *b, const char *key, size_t len)
{
    comma(b);
    char *at = buf_room(b, len + 3); /* and a NUL */
    if (!at)
        return;
    at[0] = '"';
    memcpy(at + 1, key, len);
    at[len + 1] = '"';
    at[len + 2] = ':';
    at[len + 3] = 0;
    b->len += len + 3;
}

/* The letter of the short escape, or NUL if there is none. */
static char short_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
        return c;
    case '\n':
        return 'n';
    case '\t':
        return 't';
    case '\r':
        return 'r';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    default:
        return '\0';
    }
}

static void escape(struct buf *b, char c)
{
    static const char hex[] = "0123456789abcdef";
    unsigned value = (unsigned char)c;
    char text[6] = {'\\', 'u', '0', '0', hex[value >> 4], hex[value & 15]};
    char letter = short_escape(c);

    if (letter) {
        text[1] = letter;
        buf_add(b, text, 2);
    } else {
        buf_add(b, text, sizeof text);
    }
}

/* Fast path: the text needs no escapes, like most. */
static void quoted_plain(struct buf *b, struct slice s)
{
    char *at = buf_room(b, s.len + 2); /* and a NUL */

    if (!at)
        return;
    at[0] = '"';
    memcpy(at + 1, s.ptr, s.len);
    at[s.len + 1] = '"';
    at[s.len + 2] = 0;
    b->len += s.len + 2;
}

void json_plain(struct buf *b, struct slice s)
{
    ASSERT(s.ptr);
    comma(b);
    quoted_plain(b, s);
}

/* Adds the characters that fit into the buffer. */
static void add_what_fits(struct buf *b, struct slice s)
{
    if (!b->max) {
        buf_slice(b, s);
        return;
    }
    size_t room = b->max - b->len;
    buf_slice(b, slice_cut(s, room));
    if (room < s.len)
        buf_end(b);
}

/* For a buffer with a maximum: what does not fit is not scanned either. */
static void quoted_within(struct buf *b, struct slice s)
{
    struct slice fit = slice_cut(s, b->max - b->len);
    size_t at = 0;

    buf_byte(b, '"');
    while (at < fit.len && !b->overflow) {
        size_t run = text_plain_run(fit.ptr + at, fit.len - at);
        add_what_fits(b, (struct slice){fit.ptr + at, run});
        at += run;
        if (at < fit.len)
            escape(b, fit.ptr[at++]);
    }
    if (fit.len < s.len)
        buf_end(b);
    buf_byte(b, '"');
}

static void quoted(struct buf *b, struct slice s)
{
    if (b->max && s.len + 2 > b->max - b->len) {
        quoted_within(b, s);
        return;
    }
    size_t run = text_plain_run(s.ptr, s.len);
    size_t at = 0;
    if (run == s.len) {
        quoted_plain(b, s);
        return;
    }
    buf_byte(b, '"');
    for (;;) {
        buf_add(b, s.ptr + at, run);
        at += run;
        if (at == s.len)
            break;
        escape(b, s.ptr[at++]);
        run = text_plain_run(s.ptr + at, s.len - at);
    }
    buf_byte(b, '"');
}

void json_key_slice(struct buf *b, struct slice key)
{
    ASSERT(key.ptr);
    comma(b);
    quoted(b, key);
    buf_byte(b, ':');
}

void json_string(struct buf *b, struct slice s)
{
    if (!s.ptr) {
        json_null(b);
        return;
    }
    comma(b);
    quoted(b, s);
}

/* White space after a value would hide its end from the comma rule. */
static struct slice trimmed(struct slice s)
{
    while (s.len > 0 && (unsigned char)s.ptr[s.len - 1] <= ' ')
        s.len--;
    return s;
}

void json_raw(struct buf *b, struct slice json)
{
    if (!json.ptr) {
        json_null(b);
        return;
    }
    ASSERT(json.len > 0);
    comma(b);
    add_what_fits(b, trimmed(json));
}

void json_number(struct buf *b, int64_t v)
{
    comma(b);
    buf_i64(b, v);
}

void json_bool(struct buf *b, bool v)
{
    comma(b);
    buf_str(b, v ? "true" : "false");
}

void json_null(struct buf *b)
{
    comma(b);
    buf_str(b, "null");
}

void json_time(struct buf *b, int64_t at)
{
    if (at == 0) {
        json_null(b);
        return;
    }
    comma(b);
    buf_byte(b, '"');
    time_write(b, at);
    buf_byte(b, '"');
}

void json_member_text(struct buf *b, const char *key, struct slice text)
{
    json_key(b, key);
    json_string(b, text);
}

void json_member_raw(struct buf *b, const char *key, struct slice json)
{
    json_key(b, key);
    json_raw(b, json);
}

void json_member_bool(struct buf *b, const char *key, bool v)
{
    json_key(b, key);
    json_bool(b, v);
}

void json_member_time(struct buf *b, const char *key, int64_t at)
{
    json_key(b, key);
    json_time(b, at);
}
