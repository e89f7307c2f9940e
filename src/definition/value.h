#ifndef DEFINITION_VALUE_H
#define DEFINITION_VALUE_H

/*
 * Values that expressions make. They are nodes as json_parse makes them, but without `raw`. A node
 * that is a member of something is never changed: to be a member of something else it is copied
 * (its own members are shared). Functions that return a pointer return NULL when they failed; the
 * machine then says why.
 */

#include "definition/machine.h"

extern const struct json value_null, value_true, value_false;

static inline const struct json *value_bool(bool b)
{
    return b ? &value_true : &value_false;
}

static inline bool value_is_container(const struct json *j)
{
    return j->type == JSON_ARRAY || j->type == JSON_OBJECT;
}

struct json *value_new(struct machine *m, enum json_type type);
const struct json *value_text(struct machine *m,
                              struct slice text); /* borrows the text, which a NUL ends */
const struct json *value_text_copy(struct machine *m, struct slice text);
const struct json *value_concat(struct machine *m, struct slice a, struct slice b);
char *value_bytes(struct machine *m, size_t len); /* for a text: len bytes and a NUL */

/* Building arrays and objects. */
struct builder {
    struct machine *machine;
    struct json *container; /* NULL: failed */
    struct json **end;
};

struct builder builder_begin(struct machine *m, enum json_type type);
bool builder_add(struct builder *b, const struct json *member);                   /* to an array */
bool builder_set(struct builder *b, struct slice key, const struct json *member); /* replaces */
bool builder_set_new(struct builder *b, struct slice key,
                     const struct json *member); /* not there yet */

const struct json *value_get(struct machine *m, const struct json *object, struct slice key);

/* jq's order: null, false, true, numbers, strings, arrays, objects. After it machine.is_fatal must
 * be looked at. */
int value_compare(struct machine *m, const struct json *a, const struct json *b);

/* The members of a container in an array of pointers; of an object sorted by key on demand. NULL:
 * failed, or there are none. */
const struct json **value_members(struct machine *m, const struct json *container, bool by_key);
bool value_sort(struct machine *m, const struct json **values, size_t count);

/* Compact text as jq writes it; false: deeper than the limit or longer than b->max, behind which
 * nothing is looked at. */
bool value_write(struct buf *b, const struct json *j);
bool value_pay_text(struct machine *m, struct slice text); /* to write it as a string */
bool value_write_paid(struct machine *m, struct buf *b, const struct json *j); /* or m failed */
const struct json *value_to_json(struct machine *m, const struct json *j);
const struct json *value_to_text(struct machine *m,
                                 const struct json *j); /* strings stay as they are */

/* Pays for reading a text as JSON, but for its memory; *ret_values is the most that it has. */
bool value_pay_tree(struct machine *m, struct slice text, size_t *ret_values);

const char *value_kind(const struct json *j); /* "string", "number", ... */

/* "string (\"abc\")" for messages, cut; nothing if nobody will read it. */
struct value_story {
    char text[60];
};
struct value_story value_story(const struct machine *m, const struct json *j);

#endif
