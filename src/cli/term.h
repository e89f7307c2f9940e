#ifndef CLI_TERM_H
#define CLI_TERM_H

/*
 * The terminal, as far as the command line needs one: may it be coloured, how wide is it, lines
 * that are cut at its width, a view that is drawn again and again, a progress bar.
 *
 * Plain ECMA-48 sequences, a dozen of them, which every terminal of the last forty years knows:
 * cursor up and home, erase, colours, the alternate screen. A library with a database of terminals
 * would bring nothing more.
 *
 * Whatever a server or an agent said goes through line_text: no control character of it reaches the
 * terminal, and it takes the columns that it is given.
 *
 * One thread. All text is UTF-8; where the locale is not, what is beyond ASCII shows as '?'.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "cli/verb.h"

/* ---- what a stream is ---- */

enum term_color { TERM_AUTO, TERM_ALWAYS, TERM_NEVER };

struct term {
    int fd;
    bool live;         /* a terminal whose cursor can be moved */
    bool colors;       /* ... or may be coloured, by --color also if it is none */
    bool utf8;         /* the locale has more than ASCII */
    int width, height; /* 80 and 24 if it is no terminal or does not say */
};

/* TERM_AUTO: a terminal, TERM is set and not "dumb", NO_COLOR is empty. */
void term_begin(struct term *t, int fd, enum term_color when);
void term_measure(struct term *t); /* width and height anew */

/* What --color says; TERM_AUTO without it. False: it has been said what is wrong. */
bool term_color_given(const struct invocation *in, enum term_color *ret);

/* ---- colours by what they mean ---- */

enum term_look {
    LOOK_PLAIN,
    LOOK_GOOD,  /* processed, completed */
    LOOK_BACK,  /* compensated, undone */
    LOOK_BAD,   /* error, failed */
    LOOK_BUSY,  /* at work */
    LOOK_FAINT, /* of less weight */
    LOOK_STRONG,
    LOOK_TITLE, /* heads of tables */
};

enum term_look term_state_look(struct slice state); /* of a task, a step or an attempt */

/* ---- lines ---- */

/* A line that is being written at the end of `b`; without a width it is not cut. */
struct line {
    const struct term *term;
    struct buf *b;
    int column, width;
    bool cut; /* something was left out: all that follows is, too */
};

struct line line_begin(const struct term *t, struct buf *b); /* cut at the terminal's width */
void line_text(struct line *l, enum term_look look, struct slice text);
void line_fmt(struct line *l, enum term_look look, const char *fmt, ...) PRINTF(3, 4);
/* In exactly so many columns, cut or filled up: a cell of a table. */
void line_cell(struct line *l, enum term_look look, struct slice text, int width);
void line_cell_right(struct line *l, enum term_look look, struct slice text, int width);
void line_to(struct line *l, int column); /* blanks up to there */
void line_end(struct line *l);

/* The columns that a text takes as line_text writes it; sequences of colours take none. */
int term_width(const struct term *t, struct slice text);
/* The text as it may be shown: no control characters, no bytes that are no characters. */
void term_clean(const struct term *t, struct buf *b, struct slice text);

/* ---- for people ---- */

/* As duration_tell; clocks may differ a little, so what would be less than nothing is nothing. */
void people_duration(struct buf *b, int64_t ms);
/* 10:32:07 if that is the day of `now`, else 2026-11-20 10:32; local time. "-" for 0. */
void people_time(struct buf *b, int64_t at, int64_t now);
void people_bytes(struct buf *b, int64_t bytes);  /* 512 B, 3.4 KiB, 120 MiB */
void people_rate(struct buf *b, double a_second); /* 0, 0.3, 12, 3400 */

/* ---- views ---- */

/*
 * A block of lines that is drawn again and again, in place or on the alternate screen. There is one
 * at a time: the terminal and the signals are the process's.
 *
 * While it is open keys come one by one and are not echoed, and the cursor is hidden. The terminal
 * is as it was after view_close, at exit(), at an abort, and while the process is stopped. SIGINT,
 * SIGTERM, SIGHUP and SIGQUIT are told as VIEW_SIGNAL: whoever gets it closes the view and calls
 * view_die.
 */
enum view_event {
    VIEW_NOTHING,
    VIEW_KEY,    /* view_key() says which */
    VIEW_RESIZE, /* size, or coming back after a stop: draw again */
    VIEW_SIGNAL,
};

enum { VIEW_FDS = 2 };

void view_open(struct term *t, bool full_screen);
/* Lines, each ended by '\n'. What does not fit on the screen is left out, unless `last` says that
 * nothing is drawn after this. */
void view_draw(struct slice lines, bool last);
/* The next thing that happened; without waiting. */
enum view_event view_next(void);
int view_key(void);              /* a byte */
int view_fds(int ret[VIEW_FDS]); /* to wait for before view_next; how many */
void view_close(void);
void view_die(void); /* of the signal that VIEW_SIGNAL told of; does not return */

/* ---- progress of something long ---- */

/*
 *     restore  [##########----------]  52 %  1.3 GiB of 2.5 GiB  120 MiB/s  10s left
 *
 * On a terminal one line that is drawn again and removed at the end, else a line every 10 s.
 */
enum progress_unit { PROGRESS_BYTES, PROGRESS_ITEMS };

struct term_progress {
    struct term term;
    const char *what;
    enum progress_unit unit;
    int64_t total; /* 0: nobody knows */
    int64_t began_ms, told_ms;
    bool shown;
};

/* On standard error. */
void term_progress_begin(struct term_progress *p, const char *what, enum progress_unit unit,
                         int64_t total, enum term_color when);
void term_progress_at(struct term_progress *p,
                      int64_t done); /* cheap: call it as often as you like */
/* A part of which nobody knows how long it takes: on a terminal `what` alone, at once. */
void term_progress_say(struct term_progress *p, const char *what);
void term_progress_end(struct term_progress *p);
/* The line itself, without an end, `took_ms` after the beginning: for tests, and lines of others.
 */
void term_progress_write(const struct term_progress *p, struct buf *b, int64_t done,
                         int64_t took_ms);

int64_t term_now_ms(void); /* CLOCK_MONOTONIC */

#endif
