#ifndef CLI_VERBS_WATCH_H
#define CLI_VERBS_WATCH_H

/*
 * What `intact watch` knows of a task, and how it is drawn. Calls no server, reads no clock: the
 * result depends on the record, `now` and the terminal only.
 */

#include "base/arena.h"
#include "cli/terminal/term.h"
#include "json/json.h"

/* The last heartbeat of a step in work. */
struct watched_beat {
    struct buf step, direction, progress, message;
    int64_t attempt;
};

struct watched {
    struct buf texts[2];
    struct arena arenas[2];
    int current;
    const struct json *task, *before; /* the latest record and the previous one; NULL: none */
    struct watched_beat *beats;
    size_t beat_count;
    struct buf why; /* why it waits, in a sentence; empty: unknown */
};

void watched_fini(struct watched *w);
/* Takes a record from the server. False: invalid. */
bool watched_record(struct watched *w, struct slice json);
/* Takes a heartbeat from the stream. */
void watched_progress(struct watched *w, struct slice json);
/* Takes the answer of .../why. */
void watched_why(struct watched *w, struct slice json);
bool watched_has_ended(const struct watched *w);
const struct watched_beat *watched_beat_of(const struct watched *w, struct slice step,
                                           const struct json *attempt);

int64_t watched_time(const struct json *j, const char *key); /* ms UTC; 0: null or missing */

/* Draws the whole view. `trouble`: of the connection, or ""; `last`: not drawn again, so it may be
 * of any length. */
struct watch_view {
    const struct term *term;
    int64_t now; /* the server's */
    const char *trouble;
    bool last;
};
void watch_draw(const struct watched *w, const struct watch_view *v, struct buf *b);

/* A line for each difference from the previous record, in the order of their times. */
void watch_lines(const struct watched *w, const struct term *t, int64_t now, struct buf *b);

/* "o-17 order processing": a line from an event of the stream of all tasks. */
void watch_line_of_all(struct slice json, const struct term *t, int64_t now, struct buf *b);

#endif
