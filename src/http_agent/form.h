#ifndef HTTP_AGENT_FORM_H
#define HTTP_AGENT_FORM_H

/*
 * A request as a step says it (the input of a step with `http`), checked, and put into the words of
 * HTTP. What comes from a task is never more than a value: it leads to no other place of the
 * service, and adds no header.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/answer.h"
#include "json/json.h"

/* Of 200 to 599. */
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

/* One list, from JSON. False: it is none. */
bool statuses_read(const struct json *j, struct statuses *ret) MUST_USE;
extern const char *const status_list_names[STATUS_LISTS];

struct form {
    struct slice method;    /* "POST" */
    struct slice path;      /* escaped, "/charges/17" */
    struct slice query;     /* escaped, without its '?'; empty: none */
    struct header *headers; /* those of the step */
    struct slice body;      /* as it is sent; NONE: none is */
    bool has_type;          /* Content-Type is among the headers */
    struct slice output;    /* an expression's text; NONE: .body */
    struct statuses lists[STATUS_LISTS];
};

/* The result lies in `a` and points into the tree. ERR_INVALID: *e says what is wrong, where, and
 * what was expected. */
enum err form_read(const struct json *j, struct arena *a, struct form *ret,
                   struct error *e) MUST_USE;

/* Is it a name that a header may have, and one that is not ours to set? NULL: it is; otherwise
 * why not. */
const char *header_name_fault(struct slice name);

/* As one segment of a path, or as a name or value of a query: all but letters, digits and -._~ is
 * escaped. */
void form_escape(struct buf *b, struct slice text);

/* Is `path` fit to be a part of a URL as it stands: nothing that is not visible, no '?' or '#', no
 * "." or ".." as a segment? */
bool path_is_plain(struct slice path) MUST_USE;

#endif
