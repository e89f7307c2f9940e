#ifndef CONFIG_MISTAKES_H
#define CONFIG_MISTAKES_H

/* A mistake in a text that people write: where, what is there, and what was expected. */

#include "base/buf.h"

struct mistake {
    uint32_t line, column; /* from 1; columns in bytes */
    char path[80];         /* "steps[1].retry.attempts" */
    char found[100];       /* "\"5 s\"" */
    char expected[200];    /* "a duration such as 200ms, 30s, 15m, 2h or 7d" */
};

enum { MISTAKES_MAX = 100 };

/* In the order of the text. */
struct mistakes {
    struct mistake list[MISTAKES_MAX];
    size_t count; /* further ones are not kept */
};

void mistakes_sort(struct mistakes *m); /* into the order of the text */

/* [{"line", "column", "path", "found", "expected"}, ...], as a JSON value. */
void mistakes_render(struct buf *b, const struct mistakes *m);

#endif
