#ifndef JSON_SORTED_H
#define JSON_SORTED_H

/* The members of an object by their names, for the reader and for canonical bytes. */

#include "json/json.h"

struct json_named {
    uint64_t head; /* 8 bytes of the name */
    const struct json *member;
};

/* In the order of their bytes, those of the same name as they stand in the text; to be freed. */
struct json_named *json_sorted(const struct json *object);

#endif
