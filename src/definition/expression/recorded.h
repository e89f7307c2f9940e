#ifndef DEFINITION_EXPRESSION_RECORDED_H
#define DEFINITION_EXPRESSION_RECORDED_H

/*
 * Reads recorded values for an evaluation, which pays for it. Members that are not needed are
 * skipped without building a tree. Values that are passed on unchanged remain texts.
 *
 * The texts were parsed before they were recorded, so errors in them are not explained.
 */

#include "definition/expression/machine.h"

/* The needed parts of `text`. NULL: m failed, or the text is no JSON (*ret_corrupt). */
struct json *recorded_read(struct machine *m, struct slice text, const struct wanted *w,
                           bool *ret_corrupt);

/* Goes through the members of an array or object, as texts, without building a tree. The caller
 * fills in the machine, which pays for each member, and the text. */
struct recorded_walk {
    struct machine *machine;
    struct slice rest; /* of the text; white space at its ends does not matter */
    bool has_begun, is_object;
    bool is_corrupt;
};

/* False: there are no more, or it failed: the text is neither (is_corrupt), or the machine failed.
 * *ret_name is the text of a member's name, with its quotes; NONE in an array. */
bool recorded_next(struct recorded_walk *w, struct slice *ret_name, struct slice *ret_value);

/* The nesting depth of a JSON text; m may have failed. */
uint32_t recorded_depth(struct machine *m, struct slice text);

#endif
