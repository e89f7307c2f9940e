#ifndef NET_RECEIVED_ANSWER_H
#define NET_RECEIVED_ANSWER_H

/* An HTTP response as received. Pure: nothing here reads a clock or makes a call. */

#include "base/arena.h"
#include "base/buf.h"

enum { HEADER_VALUE_MAX = 8 << 10 /* bytes */ };

struct header {
    struct header *next;
    struct slice name, value;
};

struct http_answer {
    long status;
    struct header *headers; /* names in lower case; values of a repeated name are joined */
    struct slice body;      /* decoded */
};

/* Reads the lines of a response's head (of the last one, if several came). */
void answer_read_head(struct http_answer *a, struct slice head, struct arena *arena);
struct slice answer_header(const struct http_answer *a, const char *name); /* NONE if absent */

/* Whether it is one line of visible characters, blanks and tabs, within the size limit. */
bool header_value_is_sound(struct slice value) MUST_USE;

/* Retry-After: seconds, or a date; -1: none, or invalid. At most a day: a longer value may be a
 * mistake, and the service is asked again once a day. `now`: wall clock. */
int64_t answer_retry_after(struct slice value, int64_t now);

/* An excerpt of a text for people: one line, valid UTF-8, at most `max` bytes. */
void answer_quote(struct buf *b, struct slice text, size_t max);

#endif
