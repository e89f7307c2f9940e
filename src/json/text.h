#ifndef JSON_TEXT_H
#define JSON_TEXT_H

/* What YAJL does not look at in a text: strict UTF-8 and the escapes of surrogates and NUL. */

#include "base/base.h"

/* Offset of the first byte that is not strict UTF-8 (RFC 3629), or s.len. */
size_t text_utf8_end(struct slice s);

/* Offset of the first \u escape that names NUL or half a surrogate pair, or s.len. `s` is the
 * inside of a string that is otherwise well-formed. */
size_t text_escapes_end(struct slice s, const char **ret_why);

/* Where the line ends that the place is in. */
size_t text_line_end(struct slice text, size_t at);

/* For messages: what stands at a place, to the end of its line, in quotes and cut short; or that
 * there is nothing more. */
void text_quote(struct slice text, size_t at, char *to, size_t size);

#endif
