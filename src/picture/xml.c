/* Escapes text for XML 1.0 (xml.h): the production Char of its specification says which characters
 * there may be. */

#include "picture/xml.h"

#include "json/text.h"

static const char replacement[] = "\xef\xbf\xbd";

/* NULL: it stands for itself. */
static const char *escape_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
        return "&#9;";
    case '\n':
        return "&#10;";
    case '\r':
        return "&#13;";
    default:
        return (unsigned char)c < ' ' ? replacement : NULL;
    }
}

/* U+FFFE or U+FFFF. */
static bool is_no_character(const char *p, size_t len)
{
    return len >= 3 && memcmp(p, "\xef\xbf", 2) == 0
           && ((unsigned char)p[2] == 0xbe || (unsigned char)p[2] == 0xbf);
}

static void write_valid(struct buf *b, struct slice text)
{
    for (size_t i = 0; i < text.len;) {
        const char *escape = escape_of(text.ptr[i]);
        if (is_no_character(text.ptr + i, text.len - i)) {
            buf_str(b, replacement);
            i += 3;
            continue;
        }
        if (escape)
            buf_str(b, escape);
        else
            buf_byte(b, text.ptr[i]);
        i++;
    }
}

void xml_text(struct buf *b, struct slice text)
{
    while (text.len > 0) {
        size_t end = text_utf8_end(text);
        write_valid(b, (struct slice){text.ptr, end});
        if (end == text.len)
            return;
        buf_str(b, replacement);
        text = (struct slice){text.ptr + end + 1, text.len - end - 1};
    }
}
