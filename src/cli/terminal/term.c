/* The terminal: its width and colours, and lines of known width whose text is cleaned of control
 * characters (term.h). term_view.c redraws a view, term_progress.c a progress bar. Nothing here
 * reads keys or changes modes. */

#include "cli/terminal/term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/when.h"

/* ---- properties of a stream ---- */

enum { WIDTH_MAX = 1000, HEIGHT_MAX = 1000 };

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

void term_measure(struct term *t)
{
    struct winsize w = {0};

    t->width = 80;
    t->height = 24;
    if (isatty(t->fd) && ioctl(t->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0) {
        t->width = w.ws_col < WIDTH_MAX ? w.ws_col : WIDTH_MAX;
        t->height = w.ws_row < HEIGHT_MAX ? w.ws_row : HEIGHT_MAX;
    }
}

void term_begin(struct term *t, int fd, enum term_color when)
{
    const char *kind = getenv("TERM");

    *t = (struct term){.fd = fd};
    (void)setlocale(LC_CTYPE, ""); /* an unknown locale is "C" */
    t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    t->live = isatty(fd) && kind && *kind && strcmp(kind, "dumb") != 0;
    t->colors = when == TERM_ALWAYS || (when == TERM_AUTO && t->live && !is_set("NO_COLOR"));
    term_measure(t);
}

/* ---- colours ---- */

static const char *const sequences[] = {
    [LOOK_PLAIN] = "",         [LOOK_GOOD] = "\x1b[32m", [LOOK_BACK] = "\x1b[33m",
    [LOOK_BAD] = "\x1b[31m",   [LOOK_BUSY] = "\x1b[36m", [LOOK_FAINT] = "\x1b[2m",
    [LOOK_STRONG] = "\x1b[1m", [LOOK_TITLE] = "\x1b[4m",
};

enum term_look term_state_look(struct slice state)
{
    static const struct {
        const char *state;
        enum term_look look;
    } looks[] = {
        {"processed", LOOK_GOOD},  {"completed", LOOK_GOOD},    {"compensated", LOOK_BACK},
        {"undone", LOOK_BACK},     {"error", LOOK_BAD},         {"failed", LOOK_BAD},
        {"processing", LOOK_BUSY}, {"compensating", LOOK_BUSY}, {"running", LOOK_BUSY},
        {"undoing", LOOK_BUSY},    {"open", LOOK_BUSY},         {"skipped", LOOK_FAINT},
        {"timed_out", LOOK_BAD},   {"late", LOOK_FAINT},        {"not_sent", LOOK_FAINT},
    };

    for (size_t i = 0; i < COUNT_OF(looks); i++)
        if (slice_is(state, looks[i].state))
            return looks[i].look;
    return LOOK_PLAIN;
}

/* ---- characters ---- */

/* The first character of a text that is not empty, and its length; -1: invalid. */
static int32_t character(struct slice s, size_t *ret_len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)s.ptr[0];
    size_t len = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
    uint32_t v = len <= 1 ? c : c & (0x7fu >> len);

    *ret_len = 1;
    if (len == 0 || len > s.len)
        return -1;
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)s.ptr[i] & 0xc0) != 0x80)
            return -1;
        v = v << 6 | ((unsigned char)s.ptr[i] & 0x3f);
    }
    if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return -1;
    *ret_len = len;
    return (int32_t)v;
}

/* Characters that reverse the order of text, or are invisible: they make names look like others. */
static bool misleads(int32_t c)
{
    return c == 0x61c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e)
           || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

/* The replacement of a character, NULL: none; and its columns. */
static const char *instead(const struct term *t, int32_t c, int *ret_columns)
{
    *ret_columns = 1;
    if (c == '\n' || c == '\t' || c == '\r')
        return " ";
    if (c >= ' ' && c < 0x7f)
        return NULL;
    if (c < 0xa0 || misleads(c) || (t->live && !t->utf8))
        return "?";
    if (!t->utf8)
        return NULL; /* to a file or pipe: unchanged, with an unknown width */
    int columns = wcwidth((wchar_t)c);
    if (columns < 0)
        return "?";
    *ret_columns = columns;
    return NULL;
}

/* Appends what fits into `columns`; returns the columns used. *ret_all: nothing was cut. */
static int put_clean(const struct term *t, struct buf *b, struct slice s, int columns,
                     bool *ret_all)
{
    int taken = 0;

    *ret_all = true;
    while (s.len > 0) {
        size_t len = 0;
        int wide = 0;
        int32_t c = character(s, &len);
        const char *other = instead(t, c, &wide);
        if (taken + wide > columns) {
            *ret_all = false;
            break;
        }
        if (b && other)
            buf_str(b, other);
        else if (b)
            buf_add(b, s.ptr, len);
        taken += wide;
        s = (struct slice){s.ptr + len, s.len - len};
    }
    return taken;
}

void term_clean(const struct term *t, struct buf *b, struct slice text)
{
    bool all = true;

    (void)put_clean(t, b, text, INT32_MAX / 2, &all);
}

/* The length of a colour sequence at the start; 0: none. */
static size_t color_length(struct slice s)
{
    size_t i = 2;

    if (s.len < 3 || s.ptr[0] != '\x1b' || s.ptr[1] != '[')
        return 0;
    while (i < s.len && ((s.ptr[i] >= '0' && s.ptr[i] <= '9') || s.ptr[i] == ';'))
        i++;
    return i < s.len && s.ptr[i] == 'm' ? i + 1 : 0;
}

int term_width(const struct term *t, struct slice text)
{
    int taken = 0;

    while (text.len > 0) {
        size_t len = color_length(text);
        int wide = 0;
        if (len == 0)
            (void)instead(t, character(text, &len), &wide);
        taken += wide;
        text = (struct slice){text.ptr + len, text.len - len};
    }
    return taken;
}

/* ---- lines ---- */

struct line line_begin(const struct term *t, struct buf *b)
{
    return (struct line){.term = t, .b = b, .width = t->live ? t->width : INT32_MAX / 2};
}

/* Writes at most `columns`; the last one shows a cut. */
static void put_within(struct line *l, enum term_look look, struct slice text, int columns)
{
    const struct term *t = l->term;
    bool colored = t->colors && look != LOOK_PLAIN;
    bool all = true;

    if (columns <= 0 || text.len == 0)
        return;
    if (colored)
        buf_str(l->b, sequences[look]);
    (void)put_clean(t, NULL, text, columns, &all);
    int taken = put_clean(t, l->b, text, all ? columns : columns - 1, &(bool){false});
    if (!all) {
        buf_str(l->b, t->utf8 ? "…" : "~");
        taken++;
    }
    if (colored)
        buf_str(l->b, "\x1b[0m");
    l->column += taken;
}

void line_text(struct line *l, enum term_look look, struct slice text)
{
    int left = l->width - l->column;
    bool all = true;

    if (l->cut)
        return;
    (void)put_clean(l->term, NULL, text, left, &all);
    put_within(l, look, text, left);
    l->cut = !all;
}

void line_fmt(struct line *l, enum term_look look, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    line_text(l, look, slice_of(text));
}

void line_to(struct line *l, int column)
{
    while (l->column < column && l->column < l->width) {
        buf_byte(l->b, ' ');
        l->column++;
    }
}

void line_cell(struct line *l, enum term_look look, struct slice text, int width)
{
    int from = l->column;
    int left = l->width - from;

    put_within(l, look, text, width < left ? width : left);
    line_to(l, from + width);
}

void line_cell_right(struct line *l, enum term_look look, struct slice text, int width)
{
    int taken = term_width(l->term, text);

    if (taken < width)
        line_to(l, l->column + width - taken);
    line_cell(l, look, text, taken < width ? taken : width);
}

void line_end(struct line *l)
{
    while (l->b->len > 0 && l->b->ptr[l->b->len - 1] == ' ')
        l->b->ptr[--l->b->len] = 0;
    buf_byte(l->b, '\n');
    l->column = 0;
    l->cut = false;
}

/* ---- for people ---- */

void people_duration(struct buf *b, int64_t ms)
{
    duration_tell(b, max_i64(ms, 0));
}

void people_time(struct buf *b, int64_t at, int64_t now)
{
    time_t seconds[2] = {(time_t)(at / 1000), (time_t)(now / 1000)};
    struct tm t = {0};
    struct tm today = {0};
    char text[32];

    if (at == 0 || !localtime_r(&seconds[0], &t) || !localtime_r(&seconds[1], &today)) {
        buf_byte(b, '-');
        return;
    }
    bool same_day = t.tm_year == today.tm_year && t.tm_yday == today.tm_yday;
    (void)strftime(text, sizeof text, same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &t);
    buf_str(b, text);
}

void people_bytes(struct buf *b, int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t u = 0;

    if (bytes < 1024) {
        buf_fmt(b, "%d B", (int)bytes);
        return;
    }
    for (v /= 1024; v >= 1000 && u + 1 < COUNT_OF(units); u++)
        v /= 1024;
    buf_fmt(b, v < 10 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

void people_rate(struct buf *b, double a_second)
{
    if (a_second > 0 && a_second < 9.95)
        buf_fmt(b, "%.1f", a_second);
    else
        buf_fmt(b, "%.0f", a_second);
}
