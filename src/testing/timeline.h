#ifndef TESTING_TIMELINE_H
#define TESTING_TIMELINE_H

/* What happened in a test, with times, for people. */

#include "base/arena.h"
#include "base/buf.h"

enum { TIMELINE_MAX = 5000 }; /* lines; further ones are counted */

struct timeline {
    struct timeline_entry {
        int64_t at;
        struct slice text;
    } * list;
    size_t count, cap, left_out;
    int64_t from; /* the submission */
    bool is_off;  /* nothing is collected */
    struct arena *arena;
};

void timeline_fini(struct timeline *t);
void timeline_add(struct timeline *t, int64_t at, const char *fmt, ...) PRINTF(3, 4);

/* "3d 02:05:00": a moment, counted from the submission. */
void timeline_moment(const struct timeline *t, int64_t at, struct buf *b);

/* The first bytes of a JSON value, for a line. */
struct slice timeline_short(struct arena *a, struct slice json);

/* All lines, each after `indent`. */
void timeline_write(const struct timeline *t, const char *indent, struct buf *b);

#endif
