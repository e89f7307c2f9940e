#ifndef DEFINITION_EXPRESSION_VALUE_H
#define DEFINITION_EXPRESSION_VALUE_H

/*
 * Values built by expressions: nodes as json_parse makes them, without `raw`. A node that is a
 * member is never changed. To become a member of another value it is copied, and the copy shares
 * its members. Functions that return a pointer return NULL after a failure; the machine has the
 * message.
 */

#include "definition/expression/machine.h"

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
                              struct slice text); /* borrows the text, which must end with a NUL */
const struct json *value_text_copy(struct machine *m, struct slice text);
const struct json *value_concat(struct machine *m, struct slice a, struct slice b);
char *value_bytes(struct machine *m, size_t len); /* for a text: len bytes and a NUL */

/* Builds arrays and objects. */
struct builder {
    struct machine *machine;
    struct json *container; /* NULL: failed */
    struct json **end;
};

struct builder builder_begin(struct machine *m, enum json_type type);
bool builder_add(struct builder *b, const struct json *member); /* appends to an array */
bool builder_set(struct builder *b, struct slice key, const struct json *member); /* or replaces */
bool builder_set_new(struct builder *b, struct slice key,
                     const struct json *member); /* the name must be new */

const struct json *value_get(struct machine *m, const struct json *object, struct slice key);

/* jq's order: null, false, true, numbers, strings, arrays, objects. The caller must check
 * machine.is_fatal afterwards. */
int value_compare(struct machine *m, const struct json *a, const struct json *b);

/* The members of a container as an array of pointers; `by_key`: those of an object sorted by key.
 * NULL: failed, or there are none. */
const struct json **value_members(struct machine *m, const struct json *container, bool by_key);
bool value_sort(struct machine *m, const struct json **values, size_t count);

/* Compact text as jq writes it. False: too deep, or longer than b->max; the rest is not visited. */
bool value_write(struct buf *b, const struct json *j);
bool value_pay_text(struct machine *m, struct slice text); /* pays for writing it as a string */
bool value_write_paid(struct machine *m, struct buf *b, const struct json *j); /* or m failed */
const struct json *value_to_json(struct machine *m, const struct json *j);
const struct json *value_to_text(struct machine *m,
                                 const struct json *j); /* strings stay as they are */

/* Pays for parsing a text as JSON, except for memory. *ret_values: the most values that it can
 * have. */
bool value_pay_tree(struct machine *m, struct slice text, size_t *ret_values);

const char *value_kind(const struct json *j); /* "string", "number", ... */

/* "string (\"abc\")" for messages, truncated; empty if no message is needed. */
struct value_summary {
    char text[60];
};
struct value_summary value_summary(const struct machine *m, const struct json *j);

#endif
