#ifndef CONFIG_READER_H
#define CONFIG_READER_H

/*
 * Reads a text that people write, YAML or JSON, field by field, and writes down every mistake on
 * the way: definitions of workflows, configuration of agents. Past read_source it knows a tree of
 * struct json, and nothing of the syntax it was read from: `at` of a value and `key_at` of a member
 * say where they stand in the text, reader_string_offset knows the rest.
 */

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/mistakes.h"
#include "config/source.h"
#include "json/json.h"

/* How one got to a value. */
struct path {
    const struct path *up;
    struct slice name; /* NONE: the index counts */
    size_t index;
};

/* A key that has no meaning here, and what to say of it. */
struct reserved {
    const char *name, *why;
};

struct reader {
    struct arena *arena; /* of what is read */
    struct mistakes *mistakes;
    struct mistakes *warnings; /* NULL: nobody wants them */
    struct slice text;         /* what offsets count in */
    bool is_yaml;
    const struct reserved *reserved;
    size_t reserved_count;
    void *subject; /* what those know who read this kind of text */
};

/* One field of an object: `read` puts it at `offset` into the target. */
struct field {
    const char *name;
    void (*read)(struct reader *r, const struct json *j, const struct path *path, void *target);
    size_t offset;
    bool is_required;
};

void path_write(struct buf *b, const struct path *path);

/* Adds a mistake: at an offset of the text, or at a value, which then is what was found. */
void mistake_at(struct reader *r, const struct path *path, size_t offset, const char *found,
                const char *expected, ...) PRINTF(5, 6);
void mistake_in(struct reader *r, const struct path *path, const struct json *j,
                const char *expected, ...) PRINTF(4, 5);

/* The same for what is allowed, and hardly meant. */
void warn_at(struct reader *r, const struct path *path, size_t offset, struct slice found,
             const char *expected, ...) PRINTF(5, 6);

/* Where in the text the byte stands that is byte `at` of a string's value. */
size_t reader_string_offset(const struct reader *r, const struct json *string, size_t at);

/* Reads a text into a tree, and tells of all that no text may have, whatever it means: what is
 * neither JSON nor YAML (ERR_PARSE), what we do not take of YAML, and keys that stand twice. Sets
 * r->text (that of the tree; the same, or without its byte order mark) and r->is_yaml. */
enum err read_source(struct reader *r, struct slice text, enum source_format format,
                     struct json **ret) MUST_USE;

/* Every member is read by its field; others are mistakes, names that are reserved are explained. */
void read_object(struct reader *r, const struct json *j, const struct path *path,
                 const struct field *fields, size_t count, void *target);

/* Of values. A mistake leaves *target as it was. */
void read_duration(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_length(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_name(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_action(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_bool(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_node(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_version(struct reader *r, const struct json *j, const struct path *path, void *target);

/* A whole number; false: it was a mistake, and *ret is as it was. */
bool read_whole(struct reader *r, const struct json *j, const struct path *path, int64_t least,
                int64_t most, int64_t *ret);
/* A number of bytes, or "64KiB", "1MiB", "2GiB"; more than none. */
bool size_parse(const struct json *j, int64_t *ret) MUST_USE;

/* Is `text` but one letter from `name`? */
bool name_is_near(struct slice text, struct slice name);

#endif
