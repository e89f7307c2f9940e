/* Prints text that others wrote, such as a server's messages, without control characters, which a
 * terminal would obey (print.h). term.c does the cleaning. Verbs use this for everything that is
 * not their own text. */

#include "cli/terminal/print.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/terminal/term.h"

static void clean(const struct term *t, FILE *to, struct slice line)
{
    CLEANUP(buf_fini) struct buf b = {0};

    term_clean(t, &b, line);
    if (b.len > 0)
        (void)fwrite(b.ptr, 1, b.len, to);
}

void print_text(FILE *to, struct slice text)
{
    struct term t = {0};

    if (!isatty(fileno(to))) {
        if (text.len > 0)
            (void)fwrite(text.ptr, 1, text.len, to);
        return;
    }
    term_begin(&t, fileno(to), TERM_NEVER);
    while (text.len > 0) {
        size_t len = 0;
        while (len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\t')
            len++;
        clean(&t, to, (struct slice){text.ptr, len});
        if (len < text.len)
            (void)fputc(text.ptr[len++], to);
        text = (struct slice){text.ptr + len, text.len - len};
    }
}

void print_line_of(FILE *to, const char *fmt, va_list args)
{
    struct term t = {0};
    char *line = NULL;

    if (vasprintf(&line, fmt, args) < 0)
        return;
    term_begin(&t, fileno(to), TERM_NEVER);
    clean(&t, to, slice_of(line));
    free(line);
}

void print_line(FILE *to, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_line_of(to, fmt, args);
    va_end(args);
}

void print_row(FILE *to, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_line_of(to, fmt, args);
    va_end(args);
    (void)fputc('\n', to);
}
