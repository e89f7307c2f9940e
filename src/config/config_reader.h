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
    const char *at_top; /* what is to be added at the top of the text; NULL: nothing */
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

/* Reads a value into `target`. A mistake leaves *target unchanged. */
typedef void read_fn(struct reader *r, const struct json *j, const struct path *path, void *target);

/* What a field holds. FIELD_OWN: what `read` makes of it. */
enum field_kind { FIELD_OWN, FIELD_TEXT, FIELD_WORD, FIELD_NUMBER, FIELD_SIZE, FIELD_LIST };

/* One field of an object: its value is stored at `offset` in the target. Made by the macros below.
 */
struct field {
    const char *name;
    enum field_kind kind;
    bool is_required;
    size_t offset, width; /* width: the size of a number or an enum */
    read_fn *read;        /* FIELD_OWN; FIELD_LIST: reads one item, into the target of the list */
    int64_t least, most; /* FIELD_NUMBER; bytes of FIELD_TEXT and FIELD_SIZE, items of FIELD_LIST */
    const char *const *words; /* FIELD_WORD: ends with NULL; the value is the index */
    const char *expected;     /* for the mistake; NULL: made of the rest */
};

#define FIELD(name_, read_, offset_)                          \
    {                                                         \
        .name = (name_), .read = (read_), .offset = (offset_) \
    }
#define REQUIRED(name_, read_, offset_)                                            \
    {                                                                              \
        .name = (name_), .read = (read_), .offset = (offset_), .is_required = true \
    }
#define FIELD_PLACE(name_, kind_, offset_, type, member)                            \
    .name = (name_), .kind = (kind_), .offset = (offset_) + offsetof(type, member), \
    .width = sizeof(((type *)NULL)->member)

/* A copy of a text of 1 to most_ bytes, as a const char *; most_ 0: of any length. */
#define TEXT_FIELD(name_, type, member, most_)                           \
    {                                                                    \
        FIELD_PLACE(name_, FIELD_TEXT, 0, type, member), .most = (most_) \
    }
/* One of some words, as an enum or bool. `at`: where the struct is in the target. */
#define WORD_FIELD(name_, at, type, member, words_, expected_)                    \
    {                                                                             \
        FIELD_PLACE(name_, FIELD_WORD, at, type, member), .words = (words_),      \
                                                          .expected = (expected_) \
    }
/* A whole number from least_ to most_. */
#define NUMBER_FIELD(name_, type, member, least_, most_)                                      \
    {                                                                                         \
        FIELD_PLACE(name_, FIELD_NUMBER, 0, type, member), .least = (least_), .most = (most_) \
    }
/* A number of bytes, at most most_. */
#define SIZE_FIELD(name_, type, member, most_, expected_)                                         \
    {                                                                                             \
        FIELD_PLACE(name_, FIELD_SIZE, 0, type, member), .most = (most_), .expected = (expected_) \
    }
/* An array, of which item_ reads each item. most_ 0: of any length. */
#define LIST_FIELD(name_, required_, item_, most_, expected_)                             \
    {                                                                                     \
        .name = (name_), .kind = FIELD_LIST, .is_required = (required_), .read = (item_), \
        .most = (most_), .expected = (expected_)                                          \
    }

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

/* Reads a value as its field says; FIELD_OWN: by its function. */
void read_field(struct reader *r, const struct field *f, const struct json *j,
                const struct path *path, void *target);

/* Readers of values. */
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
