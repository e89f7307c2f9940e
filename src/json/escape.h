#ifndef JSON_ESCAPE_H
#define JSON_ESCAPE_H

#include "json/json.h"

/* The offset in a string's raw text of the byte that is decoded to its byte `at`. */
size_t string_raw_offset(const struct json *string, size_t at);

#endif
