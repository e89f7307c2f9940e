#ifndef DEFINITION_READING_H
#define DEFINITION_READING_H

/*
 * Reads recorded values for an evaluation, which pays for it. The members that are not looked at
 * are passed over without becoming a tree. What is passed on as it stands stays a text.
 *
 * Texts here were read once before they were recorded, so mistakes in them are not explained.
 */

#include "definition/machine.h"

/* The value of `text` as far as `w` says; NULL: m failed, or the text is no JSON (*ret_corrupt). */
struct json *reading_take(struct machine *m, struct slice text, const struct wanted *w,
                          bool *ret_corrupt);

/* How deep a JSON text nests; m may have failed. */
uint32_t reading_depth(struct machine *m, struct slice text);

#endif
