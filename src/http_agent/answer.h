#ifndef HTTP_AGENT_ANSWER_H
#define HTTP_AGENT_ANSWER_H

/* What a service's answer means. Pure: nothing here reads a clock or calls anybody. */

#include "base/arena.h"
#include "base/err.h"
#include "definition/expression.h"
#include "http_agent/form.h"

enum answer_kind {
    ANSWER_COMPLETED,
    ANSWER_PERMANENT,
    ANSWER_RETRYABLE,
    ANSWER_WORKING,   /* it has not ended: ask again */
    ANSWER_ELSEWHERE, /* what comes of it is told by somebody else, later */
    ANSWER_REDIRECT,
};

struct answer {
    long status;
    struct header *headers; /* names in lower case; of a name that occurs twice, values joined */
    struct slice body;      /* decoded, as it came */
};

/* Reads the lines of an answer's head (of the last one, if several came). */
void answer_read_head(struct answer *a, struct slice head, struct arena *arena);
struct slice answer_header(const struct answer *a, const char *name); /* NONE: there is none */

/* `first` and `then` are the lists of the step and of the service: the first that names a status
 * decides. */
enum answer_kind answer_kind(const struct answer *a, const struct statuses *first,
                             const struct statuses *then);

/* Has a request that was answered so certainly changed nothing? */
bool answer_denies_effect(long status);

/* Retry-After: seconds, or a date; -1: none that can be understood. `now`: wall clock. */
int64_t answer_retry_after(struct slice value, int64_t now);

/* The body as JSON: as it is, a text, or null if there is none. ERR_INVALID: *e says why it cannot
 * be one. */
enum err answer_body(const struct answer *a, struct arena *arena, const struct json **ret,
                     struct error *e) MUST_USE;

/* The output of a step: what the expression (NULL: .body) makes of {status, headers, body}.
 * Terminated by a NUL. */
enum err answer_output(const struct answer *a, const struct expression *x, struct arena *arena,
                       struct slice *ret, struct error *e) MUST_USE;

/* Some of a text for people: one line, valid, and no longer than `max` bytes. */
void answer_quote(struct buf *b, struct slice text, size_t max);

#endif
