/*
 * Finds the position in a YAML text that a byte of a string value came from. In every YAML style, a
 * value and its text are the same sequence of characters except for blanks, line breaks,
 * indentation and escapes. So the non-blank characters are counted.
 */

#include "json/text.h"
#include "json/yaml_read.h"

struct piece {
    size_t raw;     /* bytes in the text */
    size_t decoded; /* non-blank bytes of the value; 0: blank, or nothing */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static uint32_t hex(const char *p, size_t digits)
{
    uint32_t v = 0;

    for (size_t i = 0; i < digits; i++)
        v = v * 16 + ((unsigned)p[i] & 15) + (p[i] > '9' ? 9u : 0u);
    return v;
}

static struct piece coded(const char *p, size_t digits)
{
    uint32_t c = hex(p + 2, digits);
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    return (struct piece){2 + digits, c < 0x80 && is_blank((char)c) ? 0 : size};
}

/* The escape at p; libyaml has accepted it. */
static struct piece escape(const char *p, size_t left)
{
    char c = p[left > 1]; /* if the text ends: the backslash itself */
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;

    if (digits > 0 && left >= 2 + digits)
        return coded(p, digits);
    switch (c) {
    case 'N':
    case '_':
        return (struct piece){2, 2};
    case 'L':
    case 'P':
        return (struct piece){2, 3};
    case ' ':
    case '\t':
    case '\n':
    case '\r':
    case 'n':
    case 'r':
    case 't':
        return (struct piece){2, 0};
    default:
        return (struct piece){2, 1};
    }
}

static struct piece piece_at(struct slice text, size_t at, char style)
{
    const char *p = text.ptr + at;

    if (style == '"' && *p == '\\')
        return escape(p, text.len - at);
    if (style == '\'' && *p == '\'')
        return (struct piece){2, 1};
    return (struct piece){1, !is_blank(*p)};
}

/* The style, by the first character; 0 at the end of the text. */
static char style_at(struct slice text, size_t at)
{
    if (at >= text.len)
        return 0;
    return text.ptr[at];
}

static size_t content_start(struct slice text, size_t at, char style)
{
    if (style == '"' || style == '\'')
        return at + 1;
    if (style != '|' && style != '>')
        return at;
    while (at < text.len && text.ptr[at] != '\n' && text.ptr[at] != '\r')
        at++;
    return at;
}

size_t yaml_string_offset(struct slice text, const struct json *string, size_t at)
{
    struct slice value = string->text;
    bool is_after_blanks = at < value.len && !is_blank(value.ptr[at]);
    char style = style_at(text, string->at);
    size_t raw = content_start(text, string->at, style);
    size_t left = 0;

    ASSERT(string->type == JSON_STRING);
    ASSERT(at <= value.len);
    for (size_t i = 0; i < at; i++)
        left += !is_blank(value.ptr[i]);
    while (raw < text.len && (left > 0 || is_after_blanks)) {
        struct piece p = piece_at(text, raw, style);
        if (p.decoded > left || (p.decoded > 0 && left == 0))
            break;
        left -= p.decoded;
        raw += p.raw;
    }
    return raw < text.len ? raw : text.len;
}
