#ifndef CONFIG_CONFIG_READER_H
#define CONFIG_CONFIG_READER_H

/*
 * Reads a text that people write, YAML or JSON, field by field, and records every mistake:
 * definitions of workflows, configurations. After read_source it only knows a tree of struct json,
 * independent of the syntax: `at` of a value and `key_at` of a member are positions in the text,
 * reader_string_offset finds the others.
 */

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/mistakes.h"
#include "config/source.h"
#include "json/json.h"

/* The path to a value. */
struct path {
    const struct path *up;
    struct slice name; /* NONE: use the index */
    size_t index;
};

/* A key that is not allowed here, with an explanation. */
struct reserved {
    const char *name, *why;
};

struct reader {
    struct arena *arena; /* for results */
    struct mistakes *mistakes;
    struct mistakes *warnings; /* NULL: not wanted */
    struct slice text;         /* the text that offsets refer to */
    bool is_yaml;
    const struct reserved *reserved;
    size_t reserved_count;
    void *subject; /* context of the fields' functions */
};

/* One field of an object: `read` stores it at `offset` in the target. */
struct field {
    const char *name;
    void (*read)(struct reader *r, const struct json *j, const struct path *path, void *target);
    size_t offset;
    bool is_required;
};

void path_write(struct buf *b, const struct path *path);

/* Adds a mistake at an offset of the text, or at a value, which is then shown as found. */
void mistake_at(struct reader *r, const struct path *path, size_t offset, const char *found,
                const char *expected, ...) PRINTF(5, 6);
void mistake_in(struct reader *r, const struct path *path, const struct json *j,
                const char *expected, ...) PRINTF(4, 5);

/* The same for something valid but probably unintended. */
void warn_at(struct reader *r, const struct path *path, size_t offset, struct slice found,
             const char *expected, ...) PRINTF(5, 6);

/* The position in the text of byte `at` of a string's value. */
size_t reader_string_offset(const struct reader *r, const struct json *string, size_t at);

/* Parses a text into a tree, and reports everything that no text may contain: invalid JSON or YAML
 * (ERR_PARSE), unsupported YAML features, repeated keys. Sets r->text (the tree's text, without a
 * byte order mark) and r->is_yaml. */
enum err read_source(struct reader *r, struct slice text, enum source_format format,
                     struct json **ret) MUST_USE;

/* Reads every member by its field; unknown members are mistakes, reserved names are explained. */
void read_object(struct reader *r, const struct json *j, const struct path *path,
                 const struct field *fields, size_t count, void *target);

/* Readers of values. A mistake leaves *target unchanged. */
void read_duration(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_length(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_name(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_action(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_bool(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_node(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_version(struct reader *r, const struct json *j, const struct path *path, void *target);

/* A whole number; false: a mistake, and *ret is unchanged. */
bool read_whole(struct reader *r, const struct json *j, const struct path *path, int64_t least,
                int64_t most, int64_t *ret);
/* A number of bytes, or "64KiB", "1MiB", "2GiB"; above 0. */
bool size_parse(const struct json *j, int64_t *ret) MUST_USE;

/* Whether the names differ by one letter. */
bool name_is_near(struct slice text, struct slice name);

#endif
