#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/when.h"

static enum log_level threshold = LOG_INFO;

void log_level_set(enum log_level level)
{
    threshold = level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct timespec ts;
    char text[1500];
    va_list ap;

    if (level < threshold || level >= LOG_OFF)
        return;
    CLEANUP(buf_fini) struct buf b = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    time_write(&b, (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* longer lines are cut */
    va_end(ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) /* one line, and no orders to a terminal */
            *p = ' ';
    buf_fmt(&b, " %s %s\n", names[level], text);
    ssize_t written = write(STDERR_FILENO, b.ptr, b.len);
    (void)written; /* nobody is left to tell */
}
