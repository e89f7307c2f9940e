#ifndef BASE_LOG_H
#define BASE_LOG_H

/*
 * One line for each thing that happened, key=value, on standard error:
 *
 *     2026-01-31T10:00:00.000Z info event=started listen=127.0.0.1:7420
 *
 * `error` means that a person must act. Library layers never log; the layer that
 * gives up logs, once. Thread-safe: one write(2) a line.
 */

#include "base/buf.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

void log_level_set(enum log_level level); /* lines below it are dropped; default LOG_INFO */
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

/* A value that somebody else chose: as it is if it is one word, else in quotes, so that it cannot
 * pass for further fields of the line. */
void log_word(struct buf *b, struct slice s);

enum { LOG_BURST = 10 };

/* For lines of one kind of which many may come at once: LOG_BURST of them a minute are logged, the
 * others counted. All zero at first; not thread-safe. */
struct log_burst {
    int64_t until; /* of the minute that goes on */
    unsigned lines;
    uint64_t left_out; /* since the last one that was logged */
};

/* May one more be logged? Then *ret_left_out is how many were not before it. */
bool log_burst_has_room(struct log_burst *b, int64_t now_ms, uint64_t *ret_left_out);

#endif
