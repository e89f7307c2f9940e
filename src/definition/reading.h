#ifndef DEFINITION_READING_H
#define DEFINITION_READING_H

/*
 * Reads recorded values for an evaluation, which pays for it. Members that are not needed are
 * skipped without building a tree. Values that are passed on unchanged remain texts.
 *
 * The texts were parsed before they were recorded, so errors in them are not explained.
 */

#include "definition/machine.h"

/* The needed parts of `text`. NULL: m failed, or the text is no JSON (*ret_corrupt). */
struct json *reading_take(struct machine *m, struct slice text, const struct wanted *w,
                          bool *ret_corrupt);

/* The nesting depth of a JSON text; m may have failed. */
uint32_t reading_depth(struct machine *m, struct slice text);

#endif
