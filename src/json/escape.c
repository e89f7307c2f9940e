/* Finds the position in a string's raw text from which a decoded byte came (escape.h), so that a
 * mistake inside a string with escapes is reported at its place. Callers: config/source.c and
 * definition/template/template.c. */

#include "json/escape.h"

/* The size of the escape at p, and how many bytes it decodes to. */
static size_t escape_size(const char *p, size_t *ret_decoded)
{
    unsigned unit = 0;

    *ret_decoded = 1;
    if (p[1] != 'u')
        return 2;
    for (int i = 2; i < 6; i++)
        unit = unit * 16 + ((unsigned)p[i] & 15) + (p[i] > '9' ? 9u : 0u);
    if ((unit & 0xf800) == 0xd800) { /* a surrogate: the parser accepts pairs only */
        *ret_decoded = 4;
        return 12;
    }
    *ret_decoded = unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
    return 6;
}

size_t string_raw_offset(const struct json *string, size_t at)
{
    size_t raw = 1; /* the opening quote */
    size_t decoded = 0;

    ASSERT(string->type == JSON_STRING);
    while (decoded < at && raw + 1 < string->raw.len) {
        const char *p = string->raw.ptr + raw;
        size_t size = 1;
        raw += *p == '\\' ? escape_size(p, &size) : 1;
        decoded += size;
    }
    return raw;
}
