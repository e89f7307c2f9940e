#ifndef JSON_ESCAPE_H
#define JSON_ESCAPE_H

#include "json/json.h"

/* Where, in the raw text of a string, the byte stands that is decoded to its byte `at`. */
size_t string_raw_offset(const struct json *string, size_t at);

#endif
