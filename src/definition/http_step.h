#ifndef DEFINITION_HTTP_STEP_H
#define DEFINITION_HTTP_STEP_H

/*
 * `http` of a step or an undo: a request that the HTTP agent makes. It stands in place of `input`,
 * and becomes one: the agent gets method, path, query, headers and body with their expressions
 * evaluated, and how to read the answer (`output`, the lists of statuses) as it is written.
 */

#include "definition/reader.h"

/* The action of such a step, unless it names one. */
#define HTTP_ACTION "http"

/* A function of struct field; the target is a struct template *, as of read_template. */
void read_http_step(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
