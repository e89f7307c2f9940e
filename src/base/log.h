#ifndef BASE_LOG_H
#define BASE_LOG_H

/*
 * One line for each thing that happened, key=value, on standard error:
 *
 *     2026-01-31T10:00:00.000Z info event=started listen=127.0.0.1:7420
 *
 * `error` means that a person must act. Library layers never log; the layer that gives up logs,
 * once. Thread-safe: one write(2) for each line.
 */

#include "base/buf.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

void log_level_set(enum log_level level); /* lines below it are dropped; default LOG_INFO */
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

/* An untrusted value: as it is if it is one word, otherwise quoted, so that it cannot pass for
 * further fields of the line. */
void log_word(struct buf *b, struct slice s);

enum { LOG_BURST = 10 };

/* Limits frequent lines of one kind: LOG_BURST of them a minute are logged, the others counted.
 * Initially zero; not thread-safe. */
struct log_burst {
    int64_t until; /* end of the current minute */
    unsigned lines;
    uint64_t left_out; /* since the last line that was logged */
};

/* Whether one more may be logged. If so, *ret_left_out is the number left out before it. */
bool log_burst_has_room(struct log_burst *b, int64_t now_ms, uint64_t *ret_left_out);

#endif
