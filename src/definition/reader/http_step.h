#ifndef DEFINITION_READER_HTTP_STEP_H
#define DEFINITION_READER_HTTP_STEP_H

/*
 * `http` of a step or an undo: a request that the HTTP agent sends. It replaces `input`: the agent
 * receives method, path, query, headers and body with their expressions evaluated, and unchanged
 * how to interpret the response (`output`, the lists of statuses).
 */

#include "definition/reader/definition_reader.h"

/* The default action of such a step. */
#define HTTP_ACTION "http"

/* A function of struct field; the target is a struct template *, as in read_template. */
void read_http_step(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
