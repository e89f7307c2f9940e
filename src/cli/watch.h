#ifndef CLI_WATCH_H
#define CLI_WATCH_H

/*
 * What `intact watch` knows of a task, and how it shows it. Nothing here asks a server or reads a
 * clock: what is shown is a function of the record, of `now` and of the terminal.
 */

#include "base/arena.h"
#include "cli/term.h"
#include "json/json.h"

/* What an agent last said of a step on which it works. */
struct watched_beat {
    struct buf step, direction, progress, message;
    int64_t attempt;
};

struct watched {
    struct buf texts[2];
    struct arena arenas[2];
    int current;
    const struct json *task, *before; /* the latest record and the one before it; NULL: none */
    struct watched_beat *beats;
    size_t beat_count;
    struct buf why; /* what it waits for, in a sentence; empty: not known */
};

void watched_fini(struct watched *w);
/* A record, as the server has it. False: it is none. */
bool watched_record(struct watched *w, struct slice json);
/* A heartbeat, as the stream tells it. */
void watched_progress(struct watched *w, struct slice json);
/* The answer of .../why. */
void watched_why(struct watched *w, struct slice json);
bool watched_has_ended(const struct watched *w);
const struct watched_beat *watched_beat_of(const struct watched *w, struct slice step,
                                           const struct json *attempt);

int64_t watched_time(const struct json *j, const char *key); /* ms UTC; 0: null, or not there */

/* The whole view. `trouble`: with the connection, "" for none; `last`: it will not be drawn again,
 * and may be as long as it likes. */
struct watch_view {
    const struct term *term;
    int64_t now; /* of the server */
    const char *trouble;
    bool last;
};
void watch_draw(const struct watched *w, const struct watch_view *v, struct buf *b);

/* A line for each thing that is different from the record before, in the order of their times. */
void watch_lines(const struct watched *w, const struct term *t, int64_t now, struct buf *b);

/* "o-17 order processing": a line of all tasks, out of an event. */
void watch_line_of_all(struct slice json, const struct term *t, int64_t now, struct buf *b);

#endif
