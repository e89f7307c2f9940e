/* Checks and decodes the inside of strings: UTF-8, escapes, characters that need escaping. See
 * text.h. */
#include "json/text.h"

#include <stdio.h>

/* The size of the character at p, or 0 if it is invalid. `left` > 0. */
static size_t character_size(const unsigned char *p, size_t left)
{
    size_t size = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (size == 0 || size > left || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) /* overlong */
        return 0;
    if (p[0] == 0xed && p[1] > 0x9f) /* half a surrogate pair */
        return 0;
    if (p[0] == 0xf0 && p[1] < 0x90)
        return 0;
    if (p[0] == 0xf4 && p[1] > 0x8f) /* above U+10FFFF */
        return 0;
    return size;
}

static uint64_t high_bits(const char *ptr)
{
    uint64_t eight;

    memcpy(&eight, ptr, sizeof eight);
    return eight & UINT64_C(0x8080808080808080);
}

/* Most strings are short, and all of them ASCII: what is left over is read again with what is
 * before it. */
static size_t ascii_run(const char *ptr, size_t len)
{
    size_t i = 0;

    for (; i + 8 <= len; i += 8)
        if (high_bits(ptr + i))
            break;
    if (len >= 8 && i + 8 > len && !high_bits(ptr + len - 8))
        return len;
    while (i < len && (unsigned char)ptr[i] < 0x80)
        i++;
    return i;
}

size_t text_utf8_end(struct slice s)
{
    size_t at = 0;

    for (;;) {
        at += ascii_run(s.ptr + at, s.len - at);
        if (at == s.len)
            return at;
        size_t size = character_size((const unsigned char *)s.ptr + at, s.len - at);
        if (size == 0)
            return at;
        at += size;
    }
}

static unsigned hex4(const char *p)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++)
        v = v * 16 + ((unsigned)p[i] & 15) + (p[i] > '9' ? 9u : 0u);
    return v;
}

static bool is_low_escape(const char *p, const char *end)
{
    return end - p >= 6 && p[0] == '\\' && p[1] == 'u' && (hex4(p + 2) & 0xfc00) == 0xdc00;
}

size_t text_escapes_end(struct slice s, const char **ret_why)
{
    const char *end = s.ptr + s.len;
    const char *p = s.ptr;

    while (p < end && (p = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        if (p[1] != 'u') {
            p += 2;
            continue;
        }
        ASSERT(end - p >= 6); /* the parser checked for four digits */
        unsigned unit = hex4(p + 2);
        bool high = (unit & 0xfc00) == 0xd800;
        bool low = (unit & 0xfc00) == 0xdc00;
        if (unit == 0 || low || (high && !is_low_escape(p + 6, end))) {
            *ret_why = unit ? "half of a surrogate pair" : "\\u0000 is not allowed";
            return (size_t)(p - s.ptr);
        }
        p += high ? 12 : 6;
    }
    return s.len;
}

/* Encodes one character of up to three bytes. */
static char *put_unit(unsigned unit, char *to)
{
    if (unit < 0x80) {
        *to++ = (char)unit;
        return to;
    }
    if (unit >= 0x800) {
        *to++ = (char)(0xe0 | unit >> 12);
        *to++ = (char)(0x80 | (unit >> 6 & 0x3f));
    } else {
        *to++ = (char)(0xc0 | unit >> 6);
    }
    *to++ = (char)(0x80 | (unit & 0x3f));
    return to;
}

static char *put_pair(unsigned high, unsigned low, char *to)
{
    unsigned c = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);

    *to++ = (char)(0xf0 | c >> 18);
    *to++ = (char)(0x80 | (c >> 12 & 0x3f));
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

static char plain_escape(char c)
{
    static const char letters[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    const char *found = strchr(letters, c);

    return found ? meant[found - letters] : c;
}

size_t text_unescape(struct slice s, char *to)
{
    const char *end = s.ptr + s.len;
    const char *p = s.ptr;
    char *begin = to;

    while (p < end) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] != 'u') {
            *to++ = plain_escape(p[1]);
            p += 2;
        } else if ((hex4(p + 2) & 0xfc00) == 0xd800) {
            to = put_pair(hex4(p + 2), hex4(p + 8), to);
            p += 12;
        } else {
            to = put_unit(hex4(p + 2), to);
            p += 6;
        }
    }
    return (size_t)(to - begin);
}

static bool is_special(char c)
{
    return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

/* Compilers turn this into vector instructions of any processor. */
typedef unsigned char sixteen __attribute__((vector_size(16)));

/* Sets all bits of each special byte, and none of the others. */
static void find_special(sixteen s, uint64_t found[2])
{
    sixteen all = (sixteen)(s < 0x20) | (sixteen)(s == '"') | (sixteen)(s == '\\');

    memcpy(found, &all, sizeof all);
}

size_t text_plain_run(const char *ptr, size_t len)
{
    size_t i = 0;
    uint64_t found[2];
    sixteen s;

    for (; i + sizeof s <= len; i += sizeof s) {
        memcpy(&s, ptr + i, sizeof s);
        find_special(s, found);
        if (found[0] | found[1])
            break;
    }
    while (i < len && !is_special(ptr[i]))
        i++;
    return i;
}

size_t text_escapes(struct slice text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t count = 0;
    size_t i = 0;
    uint64_t found[2];
    sixteen s;

    for (; i + sizeof s <= text.len; i += sizeof s) {
        memcpy(&s, text.ptr + i, sizeof s);
        find_special(s, found);
        uint64_t pairs = (found[0] & ones) + (found[1] & ones); /* a sum of 16 fits a byte */
        count += (pairs * ones) >> 56;
    }
    for (; i < text.len; i++)
        count += is_special(text.ptr[i]);
    return count;
}

size_t text_line_end(struct slice text, size_t at)
{
    while (at < text.len && text.ptr[at] != '\n' && text.ptr[at] != '\r')
        at++;
    return at;
}

void text_quote(struct slice text, size_t at, char *to, size_t size)
{
    size_t end = text_line_end(text, at);
    struct slice s = slice_cut((struct slice){text.ptr + at, end - at}, 40);
    size_t shown = 0;

    ASSERT(size > 50);
    s.len = text_utf8_end(s);
    while (shown < s.len && ((unsigned char)s.ptr[shown] >= 0x20 || s.ptr[shown] == '\t'))
        shown++;
    if (shown > 0)
        (void)snprintf(to, size, "\"%.*s\"%s", (int)shown, s.ptr, shown < end - at ? "..." : "");
    else if (at < end)
        (void)snprintf(to, size, "a byte that is not text");
    else
        (void)snprintf(to, size, "%s",
                       at == text.len ? "the end of the text" : "the end of the line");
}
