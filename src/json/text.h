#ifndef JSON_TEXT_H
#define JSON_TEXT_H

/* Strings: strict UTF-8, and the escapes of JSON. */

#include "base/base.h"

/* Offset of the first byte that is not strict UTF-8 (RFC 3629), or s.len. */
size_t text_utf8_end(struct slice s);

/* Offset of the first \u escape for NUL or half a surrogate pair, or s.len. `s` is the inside of an
 * otherwise well-formed string. */
size_t text_escapes_end(struct slice s, const char **ret_why);

/* Decodes the inside of a string that passed both checks above into `to`, which has room for s.len
 * bytes. Returns the decoded length. */
size_t text_unescape(struct slice s, char *to);

/* The length of the run without characters that need escaping: up to a quote, a backslash or a
 * control character. */
size_t text_plain_run(const char *ptr, size_t len);

/* The number of characters that need escaping. */
size_t text_escapes(struct slice s);

/* The end of the line that contains the position. */
size_t text_line_end(struct slice text, size_t at);

/* For messages: the rest of the line at a position, quoted and shortened; or that the text ends
 * there. */
void text_quote(struct slice text, size_t at, char *to, size_t size);

#endif
