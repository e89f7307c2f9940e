#ifndef JSON_YAML_READ_H
#define JSON_YAML_READ_H

/*
 * Reads YAML texts with libyaml into the trees of json.h: one document, whose plain scalars follow
 * the core schema of YAML 1.2. `no`, `yes`, `on` and `off` are strings; `~`, `null` and an empty
 * value are null; a number must be valid JSON, and is kept as text.
 *
 * Each value's `raw` is JSON made from it, so that later code need not know the source format; `at`
 * and `key_at` are positions in the YAML text.
 *
 * Refused, each with its position: anchors, aliases, tags, merge keys, keys that are not scalars,
 * numbers that JSON writes differently (0o17, 0x1f, 007, .5, +1, .inf), a second document, versions
 * of YAML other than 1.2, nesting deeper than the limit, bytes that are not UTF-8, NUL characters
 * in any notation, control characters, and the line separators that only YAML 1.1 has. Repeated
 * keys are kept: the caller sees them in the tree.
 */

#include "json/json.h"

/* Receives every fault: where, what was found there, and what was expected. */
struct yaml_watch {
    void *arg;
    void (*fault)(void *arg, size_t offset, const char *found, const char *expected);
};

/* Reads the whole text. ERR_PARSE: there is no tree. ERR_OK: *ret is in `a`. There may have been
 * faults nevertheless (a tag, an anchor); the caller should then refuse the text after further
 * checks. */
enum err yaml_read(struct arena *a, struct slice text, uint32_t depth_max, struct json **ret,
                   const struct yaml_watch *w) MUST_USE;

/* The position in the text of the byte that became byte `at` of a string's value, in any style; at
 * its end, and for blanks, a nearby position. `text` is what was read. */
size_t yaml_string_offset(struct slice text, const struct json *string, size_t at);

#endif
