#ifndef AGENTS_HTTP_HTTP_ANSWER_H
#define AGENTS_HTTP_HTTP_ANSWER_H

/* Interprets a service's answer. Pure: reads no clock, calls nothing. */

#include "agents/http/form.h"
#include "base/arena.h"
#include "base/err.h"
#include "definition/expression/expression.h"
#include "net/received_answer.h"

enum answer_kind {
    ANSWER_COMPLETED,
    ANSWER_PERMANENT,
    ANSWER_RETRYABLE,
    ANSWER_WORKING,   /* not ended: ask again */
    ANSWER_ELSEWHERE, /* the result will come later, from elsewhere */
    ANSWER_REDIRECT,
};

/* `first` and `then` are the lists of the step and of the service: the first list with the status
 * decides. */
enum answer_kind answer_kind(const struct http_answer *a, const struct statuses *first,
                             const struct statuses *then);

/* Does this status prove that the request had no effect? */
bool answer_denies_effect(long status);

/* The body as JSON: parsed, as a text, or null if it is empty. ERR_INVALID: *e says why it is
 * neither. */
enum err answer_body(const struct http_answer *a, struct arena *arena, const struct json **ret,
                     struct error *e) MUST_USE;

/* The step's output: the value of the expression (NULL: .body) on {status, headers, body}.
 * NUL-terminated. */
enum err answer_output(const struct http_answer *a, const struct expression *x, struct arena *arena,
                       struct slice *ret, struct error *e) MUST_USE;

#endif
