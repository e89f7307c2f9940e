/* The log: one line for each event on standard error, see log.h. A slow reader never blocks the
 * program. */
#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/when.h"

enum { PATIENCE_MS = 100 };

static enum log_level threshold = LOG_INFO;
static atomic_uint lost; /* lines lost since the last one that was written */

void log_level_set(enum log_level level)
{
    threshold = level;
}

/* A reader that blocks (a terminal, a pipe, a journal) must not delay the program: after one wait,
 * lines are dropped until the reader accepts output again. Files always accept it. */
static bool is_taken(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&p, 1, atomic_load(&lost) ? 0 : PATIENCE_MS) != 0;
}

static void write_out(const struct buf *b)
{
    ssize_t written = write(STDERR_FILENO, b->ptr, b->len);
    (void)written; /* there is nowhere left to report to */
}

static void report_lost(const struct buf *line, size_t time_len)
{
    unsigned count = atomic_exchange(&lost, 0);

    if (count == 0)
        return;
    CLEANUP(buf_fini) struct buf b = {0};
    buf_add(&b, line->ptr, time_len);
    buf_fmt(&b, " warn event=log_lost lines=%u\n", count);
    write_out(&b);
}

/* The bytes of a character that reverses the order of a line or is invisible: U+200B to U+200F,
 * U+2028 to U+202E, U+2060 to U+206F, U+061C, U+FEFF; 0: it is none. */
static size_t misleads(const unsigned char *p)
{
    if (*p == 0xe2 && p[1] == 0x80)
        return (p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae) ? 3 : 0;
    if (*p == 0xe2 && p[1] == 0x81)
        return p[2] >= 0xa0 && p[2] <= 0xaf ? 3 : 0;
    if (*p == 0xef && p[1] == 0xbb)
        return p[2] == 0xbf ? 3 : 0;
    return *p == 0xd8 && p[1] == 0x9c ? 2 : 0;
}

/* Makes one line without terminal control: replaces control characters, U+0080 to U+009F, what
 * misleads the reader, and bytes that are not valid UTF-8 and might be taken for one of these. */
static void clean(char *text)
{
    size_t follow = 0; /* continuation bytes expected */

    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        size_t len = misleads(p);
        if (len > 0)
            follow = 0; /* so its last byte is replaced, too */
        for (; len > 1; len--)
            *p++ = ' ';
        bool follows = (*p & 0xc0) == 0x80;
        bool is_order = *p < ' ' || *p == 0x7f || (follows && follow == 0);
        if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) {
            *p = ' ';
            is_order = true;
            p++;
        }
        if (is_order)
            *p = ' ';
        if (follows)
            follow -= follow > 0;
        else
            follow = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc2 ? 1 : 0;
    }
}

void log_word(struct buf *b, struct slice s)
{
    bool plain = s.len > 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        plain = plain
                && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                    || (c && strchr("._:/+-", c)));
    }
    if (plain) {
        buf_slice(b, s);
        return;
    }
    buf_byte(b, '"');
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '"' || c == '\\')
            buf_byte(b, '\\');
        if (!c)
            c = ' ';
        buf_byte(b, c);
    }
    buf_byte(b, '"');
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    char text[1500];
    va_list ap;

    if (level < threshold || level >= LOG_OFF)
        return;
    CLEANUP(buf_fini) struct buf b = {0};
    time_write(&b, clock_wall_ms());
    size_t time_len = b.len;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* longer lines are cut */
    va_end(ap);
    clean(text);
    buf_fmt(&b, " %s %s\n", names[level], text);
    if (!is_taken()) {
        (void)atomic_fetch_add(&lost, 1);
        return;
    }
    report_lost(&b, time_len);
    write_out(&b);
}

bool log_burst_has_room(struct log_burst *b, int64_t now_ms, uint64_t *ret_left_out)
{
    if (now_ms >= b->until) {
        b->until = now_ms + 60000;
        b->lines = 0;
    }
    if (b->lines == LOG_BURST) {
        b->left_out++;
        return false;
    }
    b->lines++;
    *ret_left_out = b->left_out;
    b->left_out = 0;
    return true;
}
