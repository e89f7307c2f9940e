#ifndef NET_ANSWER_H
#define NET_ANSWER_H

/* The answer to a request, as it came. Pure: nothing here reads a clock or calls anybody. */

#include "base/arena.h"
#include "base/buf.h"

enum { HEADER_VALUE_MAX = 8 << 10 /* bytes */ };

struct header {
    struct header *next;
    struct slice name, value;
};

struct http_answer {
    long status;
    struct header *headers; /* names in lower case; of a name that occurs twice, values joined */
    struct slice body;      /* decoded, as it came */
};

/* Reads the lines of an answer's head (of the last one, if several came). */
void answer_read_head(struct http_answer *a, struct slice head, struct arena *arena);
struct slice answer_header(const struct http_answer *a, const char *name); /* NONE: there is none */

/* One line of visible characters, blanks and tabs, and not too long? */
bool header_value_is_sound(struct slice value) MUST_USE;

/* Retry-After: seconds, or a date; -1: none that can be understood. More than a day counts as a
 * day: whoever asks for more may be mistaken, and is asked again once a day. `now`: wall clock. */
int64_t answer_retry_after(struct slice value, int64_t now);

/* Some of a text for people: one line, valid, and no longer than `max` bytes. */
void answer_quote(struct buf *b, struct slice text, size_t max);

#endif
