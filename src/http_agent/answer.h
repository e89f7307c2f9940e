#ifndef HTTP_AGENT_ANSWER_H
#define HTTP_AGENT_ANSWER_H

/* What a service's answer means. Pure: nothing here reads a clock or calls anybody. */

#include "base/arena.h"
#include "base/err.h"
#include "definition/expression.h"
#include "http_agent/form.h"
#include "net/answer.h"

enum answer_kind {
    ANSWER_COMPLETED,
    ANSWER_PERMANENT,
    ANSWER_RETRYABLE,
    ANSWER_WORKING,   /* it has not ended: ask again */
    ANSWER_ELSEWHERE, /* what comes of it is told by somebody else, later */
    ANSWER_REDIRECT,
};

/* `first` and `then` are the lists of the step and of the service: the first that names a status
 * decides. */
enum answer_kind answer_kind(const struct http_answer *a, const struct statuses *first,
                             const struct statuses *then);

/* Has a request that was answered so certainly changed nothing? */
bool answer_denies_effect(long status);

/* The body as JSON: as it is, a text, or null if there is none. ERR_INVALID: *e says why it cannot
 * be one. */
enum err answer_body(const struct http_answer *a, struct arena *arena, const struct json **ret,
                     struct error *e) MUST_USE;

/* The output of a step: what the expression (NULL: .body) makes of {status, headers, body}.
 * Terminated by a NUL. */
enum err answer_output(const struct http_answer *a, const struct expression *x, struct arena *arena,
                       struct slice *ret, struct error *e) MUST_USE;

#endif
