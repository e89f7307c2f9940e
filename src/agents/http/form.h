#ifndef AGENTS_HTTP_FORM_H
#define AGENTS_HTTP_FORM_H

/*
 * A request as the input of a step with `http`, checked and put in terms of HTTP. Data of a task
 * can only be a value: it cannot lead to another place of the service or add a header.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/received_answer.h"
#include "json/json.h"

/* Statuses from 200 to 599. */
struct statuses {
    uint64_t bits[10];
};

enum status_list { STATUS_COMPLETED, STATUS_PERMANENT, STATUS_RETRYABLE, STATUS_ELSEWHERE };
enum { STATUS_LISTS = STATUS_ELSEWHERE + 1 };

static inline bool statuses_has(const struct statuses *s, long status)
{
    return status >= 0 && status < 640 && (s->bits[status / 64] >> (status % 64) & 1) != 0;
}

static inline void statuses_add(struct statuses *s, long status)
{
    s->bits[status / 64] |= UINT64_C(1) << (status % 64);
}

static inline bool statuses_any(const struct statuses *s)
{
    uint64_t any = 0;

    for (size_t i = 0; i < 10; i++)
        any |= s->bits[i];
    return any != 0;
}

/* Reads one list from JSON. False: invalid. */
bool statuses_read(const struct json *j, struct statuses *ret) MUST_USE;
extern const char *const status_list_names[STATUS_LISTS];

struct form {
    struct slice method;    /* "POST" */
    struct slice path;      /* escaped, "/charges/17" */
    struct slice query;     /* escaped, without the '?'; empty: none */
    struct header *headers; /* of the step */
    struct slice body;      /* as sent; NONE: no body */
    bool has_type;          /* Content-Type is among the headers */
    struct slice output;    /* an expression's text; NONE: .body */
    struct statuses lists[STATUS_LISTS];
};

/* The result lies in `a` and points into the tree. ERR_INVALID: *e says where the error is, what
 * was found and what was expected. */
enum err form_read(const struct json *j, struct arena *a, struct form *ret,
                   struct error *e) MUST_USE;

/* NULL if a step may set a header of this name; otherwise the reason why not. */
const char *header_name_fault(struct slice name);

/* Escapes a path segment, or a name or value of a query: everything but letters, digits and
 * -._~. */
void form_escape(struct buf *b, struct slice text);

/* May `path` be used in a URL as it is: only visible characters, no '?' or '#', no "." or ".."
 * segment? */
bool path_is_plain(struct slice path) MUST_USE;

#endif
