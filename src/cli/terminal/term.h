#ifndef CLI_TERMINAL_TERM_H
#define CLI_TERMINAL_TERM_H

/*
 * What the command line needs of a terminal: its colours and width, lines that are cut at the
 * width, a view that is redrawn, a progress bar.
 *
 * Uses a dozen plain ECMA-48 sequences that all terminals know: cursor up and home, erase, colours,
 * the alternate screen. So a terminal library is not needed.
 *
 * Text from servers and agents goes through line_text: no control character of it reaches the
 * terminal, and it takes only its own columns.
 *
 * Single-threaded. All text is UTF-8; in another locale, characters beyond ASCII become '?'.
 */

#include <sys/types.h>

#include "base/buf.h"

/* ---- properties of a stream ---- */

enum term_color { TERM_AUTO, TERM_ALWAYS, TERM_NEVER };

struct term {
    int fd;
    bool live;         /* a terminal with a movable cursor */
    bool colors;       /* colours are allowed, with --color even without a terminal */
    bool utf8;         /* the locale has more than ASCII */
    int width, height; /* 80 and 24 if unknown */
};

/* TERM_AUTO: colours if it is a terminal, TERM is set and not "dumb", and NO_COLOR is empty. */
void term_begin(struct term *t, int fd, enum term_color when);
void term_measure(struct term *t); /* reads width and height again */

/* ---- colours by meaning ---- */

enum term_look {
    LOOK_PLAIN,
    LOOK_GOOD,  /* processed, completed */
    LOOK_BACK,  /* compensated, undone */
    LOOK_BAD,   /* error, failed */
    LOOK_BUSY,  /* at work */
    LOOK_FAINT, /* less important */
    LOOK_STRONG,
    LOOK_TITLE, /* table heads */
};

enum term_look term_state_look(struct slice state); /* for a task, a step or an attempt */

/* ---- lines ---- */

/* A line being written at the end of `b`; not cut without a width. */
struct line {
    const struct term *term;
    struct buf *b;
    int column, width;
    bool cut; /* something was cut, so the rest is, too */
};

struct line line_begin(const struct term *t, struct buf *b); /* cut at the terminal's width */
void line_text(struct line *l, enum term_look look, struct slice text);
void line_fmt(struct line *l, enum term_look look, const char *fmt, ...) PRINTF(3, 4);
/* In exactly `width` columns, cut or padded: a table cell. */
void line_cell(struct line *l, enum term_look look, struct slice text, int width);
void line_cell_right(struct line *l, enum term_look look, struct slice text, int width);
void line_to(struct line *l, int column); /* pads with blanks up to that column */
void line_end(struct line *l);

/* The columns of a text as line_text writes it; colour sequences take none. */
int term_width(const struct term *t, struct slice text);
/* The text without control characters and invalid bytes. */
void term_clean(const struct term *t, struct buf *b, struct slice text);

/* ---- for people ---- */

/* As duration_tell; a negative duration (clocks may differ a little) counts as 0. */
void people_duration(struct buf *b, int64_t ms);
/* 10:32:07 on the day of `now`, else 2026-11-20 10:32; local time. "-" for 0. */
void people_time(struct buf *b, int64_t at, int64_t now);
void people_bytes(struct buf *b, int64_t bytes);  /* 512 B, 3.4 KiB, 120 MiB */
void people_rate(struct buf *b, double a_second); /* 0, 0.3, 12, 3400 */

/* ---- views ---- */

/*
 * A block of lines that is redrawn, in place or on the alternate screen. There is one at a time:
 * the terminal and the signals belong to the process.
 *
 * While it is open, keys arrive one by one without echo, and the cursor is hidden. The terminal is
 * restored by view_close, at exit(), at an abort, and while the process is stopped. SIGINT,
 * SIGTERM, SIGHUP and SIGQUIT become VIEW_SIGNAL, whose receiver closes the view and calls
 * view_die.
 */
enum view_event {
    VIEW_NOTHING,
    VIEW_KEY,    /* view_key() has it */
    VIEW_RESIZE, /* resized, or continued after a stop: draw again */
    VIEW_SIGNAL,
};

enum { VIEW_FDS = 2 };

void view_open(struct term *t, bool full_screen);
/* Lines, each ended by '\n'. Lines that do not fit on the screen are left out, unless `last` says
 * that no drawing follows. */
void view_draw(struct slice lines, bool last);
/* The next event; does not wait. */
enum view_event view_next(void);
int view_key(void);              /* a byte */
int view_fds(int ret[VIEW_FDS]); /* to wait for before view_next; returns how many */
void view_close(void);
void view_die(void); /* by the signal of VIEW_SIGNAL; does not return */

/* ---- progress ---- */

/*
 *     restore  [##########----------]  52 %  1.3 GiB of 2.5 GiB  120 MiB/s  10s left
 *
 * On a terminal one line, redrawn and finally removed; elsewhere a line every 10 s.
 */
enum progress_unit { PROGRESS_BYTES, PROGRESS_ITEMS };

struct term_progress {
    struct term term;
    const char *what;
    enum progress_unit unit;
    int64_t total; /* 0: unknown */
    int64_t began_ms, told_ms;
    bool shown;
};

/* On standard error. */
void term_progress_begin(struct term_progress *p, const char *what, enum progress_unit unit,
                         int64_t total, enum term_color when);
void term_progress_at(struct term_progress *p, int64_t done); /* cheap: may be called often */
/* A part of unknown length: on a terminal shows only `what`, at once. */
void term_progress_label(struct term_progress *p, const char *what);
void term_progress_end(struct term_progress *p);
/* Writes the line without a newline, `took_ms` after the start: for tests and other lines. */
void term_progress_write(const struct term_progress *p, struct buf *b, int64_t done,
                         int64_t took_ms);

#endif
