#ifndef JSON_SORTED_H
#define JSON_SORTED_H

/* The members of an object ordered by name, for the reader and for canonical bytes. */

#include "json/json.h"

struct json_named {
    uint64_t head; /* 8 bytes of the name */
    const struct json *member;
};

/* Ordered bytewise; members with the same name in the order of the text. To be freed. */
struct json_named *json_sorted(const struct json *object);

#endif
