#ifndef JSON_JSON_H
#define JSON_JSON_H

/*
 * JSON texts as trees in an arena, read by YAJL. Every node knows its exact text (`raw`), so values
 * are passed on unchanged instead of being printed again; numbers are kept as text.
 *
 * Refused: bytes that are not UTF-8, duplicate keys, lone surrogates, NUL characters (as bytes or
 * as \u0000: PostgreSQL cannot hold them), nesting deeper than the limit, anything after the value,
 * texts of 4 GiB and more.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

enum {
    JSON_DEPTH_MAX = 64,
    JSON_DEPTH_OUTSIDE = 48, /* for texts from outside: they are stored and sent inside larger
                              * ones */
    JSON_DEPTH_IN_CALL = JSON_DEPTH_OUTSIDE - 4, /* for a value in a result or a heartbeat, which is
                                                  * a text from outside when the call is read */
};

struct json {
    enum json_type type;
    uint32_t count;     /* members of an array or object */
    struct slice raw;   /* the value as in the input */
    struct slice text;  /* number: its text; string: decoded, followed by a NUL */
    struct slice key;   /* in an object: decoded name of this member */
    uint32_t at;        /* offset of the value in the text it was read from */
    uint32_t key_at;    /* of its name */
    struct json *child; /* first member */
    struct json *next;  /* next member of the same parent */
};

/* Where and why a text was refused. Lines and columns count from 1, columns in bytes. */
struct json_fault {
    size_t offset;
    uint32_t line, column;
    char what[160];
};

/* Parses the whole text. The tree is in `a` and points into `text`, which must outlive it.
 * ERR_PARSE sets *fault (fault may be NULL). */
enum err json_parse(struct arena *a, struct slice text, struct json **ret,
                    struct json_fault *fault) MUST_USE;

/* The same for texts from outside, with a lower nesting limit. */
enum err json_parse_within(struct arena *a, struct slice text, uint32_t depth_max,
                           struct json **ret, struct json_fault *fault) MUST_USE;

/* The same for a tree with a memory limit: ERR_TOO_BIG beyond it, with *fault. */
enum err json_parse_bounded(struct arena *a, struct slice text, uint32_t depth_max, size_t size_max,
                            struct json **ret, struct json_fault *fault) MUST_USE;

/* Like json_parse_within, but members with a repeated name are kept: for a caller that reports all
 * of them. */
enum err json_parse_twice(struct arena *a, struct slice text, uint32_t depth_max, struct json **ret,
                          struct json_fault *fault) MUST_USE;

/* Whether `j` has at most so many lists and objects in each other, itself included. */
bool json_is_within(const struct json *j, uint32_t depth);

/* The first member with the name of an earlier one; NULL: there is none. */
const struct json *json_twice(const struct json *object);

void json_position(struct slice text, size_t offset, uint32_t *ret_line, uint32_t *ret_column);
const char *json_type_text(enum json_type t); /* "an object", "a string", ... */

/* The member with that name; NULL if `j` is NULL, not an object, or has none. */
const struct json *json_get(const struct json *j, const char *key);
struct slice json_get_text(const struct json *j, const char *key); /* a string member, or NONE */
struct slice json_get_raw(const struct json *j, const char *key);  /* any member's text, or NONE */
bool json_get_bool(const struct json *j, const char *key, bool otherwise);

/* A number without fraction or exponent that fits int64_t. */
bool json_int(const struct json *j, int64_t *ret) MUST_USE;
int64_t json_get_int(const struct json *j, const char *key, int64_t otherwise);

/* Equal for equal values, whatever their white space, order of keys and escapes. Collisions are
 * easy to construct, so it is not an identity. */
uint64_t json_hash(const struct json *j);

/* Passes on, piece by piece, bytes that are the same for equal values (as above) and differ for
 * others: the input of a digest that is an identity. The pieces are in `b`, which the caller owns
 * and may reuse. */
typedef void json_sink(void *arg, struct slice piece);
void json_canonical(const struct json *j, struct buf *b, json_sink *take, void *arg);

/*
 * Writing. A writer adds commas itself:
 *
 *     json_open(b, '{');  json_key(b, "id");  json_string(b, id);  json_close(b, '}');
 *     json_open(b, '{');  json_member_text(b, "id", id);             json_close(b, '}');
 *
 * json_key takes literal names that need no escaping. The comma rule checks the last byte written,
 * so these functions can be mixed with buf_* as long as whole values are added. If a string or
 * number exceeds the buffer's maximum, the characters that fit are written.
 */
void json_open(struct buf *b, char bracket);
void json_close(struct buf *b, char bracket);
void json_key_of(struct buf *b, const char *key, size_t len);
void json_key_slice(struct buf *b, struct slice key); /* escaped */
void json_string(struct buf *b, struct slice s);      /* null for NONE; bytes must be UTF-8 */
void json_raw(struct buf *b, struct slice json);      /* null for NONE */
void json_number(struct buf *b, int64_t v);
void json_bool(struct buf *b, bool v);
void json_null(struct buf *b);
void json_time(struct buf *b, int64_t at); /* RFC 3339; null for 0 */

void json_plain(struct buf *b, struct slice s); /* a string that needs no escaping */

/* Inline, so that the length of a literal is known: a document has hundreds of keys, and is written
 * at each change. The same is true of the members below. */
static inline void json_key(struct buf *b, const char *key)
{
    json_key_of(b, key, strlen(key));
}

/* A member of an object: json_key() and its value. */
void json_member_text(struct buf *b, const char *key, struct slice text); /* null for NONE */
void json_member_raw(struct buf *b, const char *key, struct slice json);  /* null for NONE */
void json_member_bool(struct buf *b, const char *key, bool v);
void json_member_time(struct buf *b, const char *key, int64_t at); /* null for 0 */

static inline void json_member_plain(struct buf *b, const char *key, struct slice text)
{
    json_key(b, key);
    json_plain(b, text);
}

static inline void json_member_number(struct buf *b, const char *key, int64_t v)
{
    json_key(b, key);
    json_number(b, v);
}

/* The same for a value that may be missing; nothing for NONE. */
static inline void json_member_text_if(struct buf *b, const char *key, struct slice text)
{
    if (!text.ptr)
        return;
    json_key(b, key);
    json_string(b, text);
}

static inline void json_member_raw_if(struct buf *b, const char *key, struct slice json)
{
    if (!json.ptr)
        return;
    json_key(b, key);
    json_raw(b, json);
}

#endif
