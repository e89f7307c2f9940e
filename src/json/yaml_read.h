#ifndef JSON_YAML_READ_H
#define JSON_YAML_READ_H

/*
 * YAML texts as the same trees that json.h reads, with libyaml: one document, whose plain scalars
 * mean what the core schema of YAML 1.2 says. `no`, `yes`, `on` and `off` are strings; `~`, `null`
 * and nothing at all are null; a number is one if JSON would write it so, and is kept as text.
 *
 * Each value's `raw` is JSON made from it, so that nobody behind this needs to know where a value
 * came from; `at` and `key_at` are its place in the YAML text.
 *
 * Refused, each with its place: anchors, aliases, tags, merge keys, keys that are not scalars,
 * numbers that JSON writes otherwise (0o17, 0x1f, 007, .5, +1, .inf), a second document, versions
 * of YAML other than 1.2, nesting deeper than the limit, bytes that are not UTF-8, NUL characters
 * however they are written, control characters, and the line separators of YAML 1.1 that 1.2 does
 * not know. Keys that stand twice are kept: the caller sees them in the tree.
 */

#include "json/json.h"

/* Gets every fault: where, what was found there, and what was expected. */
struct yaml_watch {
    void *arg;
    void (*fault)(void *arg, size_t offset, const char *found, const char *expected);
};

/* Reads the whole text. ERR_PARSE: there is no tree. ERR_OK: *ret lies in `a`; there may have been
 * faults nevertheless (a tag, an anchor), with which the text should be refused, once it has been
 * looked at further.
 */
enum err yaml_read(struct arena *a, struct slice text, uint32_t depth_max, struct json **ret,
                   const struct yaml_watch *w) MUST_USE;

/* Where in the text the byte stands that became byte `at` of a string's value, whatever the
 * string's style; at its end, and for blanks, a place near to it. `text` is what was read. */
size_t yaml_string_offset(struct slice text, const struct json *string, size_t at);

#endif
