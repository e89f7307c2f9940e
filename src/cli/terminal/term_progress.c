/* The progress bar of long verbs such as `intact backup` (the term_progress functions of term.h).
 * On a stream that is no terminal nothing is shown. */

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/terminal/term.h"

enum {
    DRAW_EVERY_MS = 100,
    TELL_EVERY_MS = 10000, /* without a terminal */
    BAR_WIDTH = 20,
    RATE_FROM_MS = 1000, /* before that a rate would be a guess */
};

static void put_amount(const struct term_progress *p, struct buf *b, int64_t n)
{
    if (p->unit == PROGRESS_BYTES)
        people_bytes(b, n);
    else
        buf_i64(b, n);
}

static void put_bar(struct buf *b, int64_t done, int64_t total)
{
    int full = (int)(done * BAR_WIDTH / total);

    buf_byte(b, '[');
    for (int i = 0; i < BAR_WIDTH; i++)
        buf_byte(b, i < full ? '#' : '-');
    buf_fmt(b, "] %3d %%  ", (int)(done * 100 / total));
}

static void put_rate(const struct term_progress *p, struct buf *b, int64_t done, int64_t took_ms)
{
    double rate = (double)done * 1000 / (double)took_ms;

    buf_str(b, "  ");
    if (p->unit == PROGRESS_BYTES)
        people_bytes(b, (int64_t)rate);
    else
        people_rate(b, rate);
    buf_str(b, "/s");
    if (p->total == 0 || done >= p->total || rate <= 0)
        return;
    buf_str(b, "  ");
    people_duration(b, (int64_t)((double)(p->total - done) * 1000 / rate));
    buf_str(b, " left");
}

void term_progress_write(const struct term_progress *p, struct buf *b, int64_t done,
                         int64_t took_ms)
{
    int64_t shown = p->total > 0 && done > p->total ? p->total : done;

    buf_fmt(b, "%s  ", p->what);
    if (p->total > 0)
        put_bar(b, shown, p->total);
    put_amount(p, b, done);
    if (p->total > 0) {
        buf_str(b, " of ");
        put_amount(p, b, p->total);
    }
    if (took_ms >= RATE_FROM_MS)
        put_rate(p, b, done, took_ms);
}

void term_progress_begin(struct term_progress *p, const char *what, enum progress_unit unit,
                         int64_t total, enum term_color when)
{
    *p = (struct term_progress){.what = what, .unit = unit, .total = total};
    term_begin(&p->term, STDERR_FILENO, when);
    p->began_ms = p->told_ms = clock_steady_ms();
}

static void show(struct term_progress *p, const struct buf *text)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct line l = line_begin(&p->term, &b);

    if (p->term.live) {
        term_measure(&p->term);
        l.width = p->term.width - 1; /* the cursor stays behind it */
        buf_byte(&b, '\r');
    }
    line_text(&l, LOOK_PLAIN, buf_view(text));
    buf_str(&b, p->term.live ? "\x1b[K" : "\n");
    (void)fwrite(b.ptr, 1, b.len, stderr);
    (void)fflush(stderr);
    p->shown = p->term.live;
}

void term_progress_at(struct term_progress *p, int64_t done)
{
    CLEANUP(buf_fini) struct buf text = {0};
    int64_t now = clock_steady_ms();

    if (now - p->told_ms < (p->term.live ? DRAW_EVERY_MS : TELL_EVERY_MS))
        return;
    p->told_ms = now;
    term_progress_write(p, &text, done, now - p->began_ms);
    show(p, &text);
}

void term_progress_label(struct term_progress *p, const char *what)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_str(&text, what);
    if (p->term.live)
        show(p, &text);
}

void term_progress_end(struct term_progress *p)
{
    if (p->shown) {
        (void)fputs("\r\x1b[K", stderr);
        (void)fflush(stderr);
    }
    p->shown = false;
}
