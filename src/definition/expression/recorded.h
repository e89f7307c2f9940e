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

/* The nesting depth of a JSON text; m may have failed. */
uint32_t recorded_depth(struct machine *m, struct slice text);

#endif
