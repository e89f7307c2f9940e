#ifndef JSON_TEXT_H
#define JSON_TEXT_H

/* What YAJL does not look at in a text: strict UTF-8 and the escapes of surrogates and NUL. */

#include "base/base.h"

/* Offset of the first byte that is not strict UTF-8 (RFC 3629), or s.len. */
size_t text_utf8_end(struct slice s);

/* Offset of the first \u escape that names NUL or half a surrogate pair, or s.len. `s` is the
 * inside of a string that is otherwise well-formed. */
size_t text_escapes_end(struct slice s, const char **ret_why);

#endif
