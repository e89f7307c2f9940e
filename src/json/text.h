#ifndef JSON_TEXT_H
#define JSON_TEXT_H

/* What stands in texts: strict UTF-8, and the escapes of JSON. */

#include "base/base.h"

/* Offset of the first byte that is not strict UTF-8 (RFC 3629), or s.len. */
size_t text_utf8_end(struct slice s);

/* Offset of the first \u escape that names NUL or half a surrogate pair, or s.len. `s` is the
 * inside of a string that is otherwise well-formed. */
size_t text_escapes_end(struct slice s, const char **ret_why);

/* Writes the inside of a string that both are content with to `to`, which has room for s.len bytes.
 * Returns how many it became. */
size_t text_unescape(struct slice s, char *to);

/* The length of the run that may stand in a string as it is: up to a quote, a backslash or a
 * control character. */
size_t text_plain_run(const char *ptr, size_t len);

/* How many characters of it may not stand in a string as they are. */
size_t text_escapes(struct slice s);

/* Where the line ends that the place is in. */
size_t text_line_end(struct slice text, size_t at);

/* For messages: what stands at a place, to the end of its line, in quotes and cut short; or that
 * there is nothing more. */
void text_quote(struct slice text, size_t at, char *to, size_t size);

#endif
