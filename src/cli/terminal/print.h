#ifndef CLI_TERMINAL_PRINT_H
#define CLI_TERMINAL_PRINT_H

/*
 * Prints text that others wrote: a server's message, a definition, a raw answer. Control characters
 * do not reach a terminal, because it would obey them.
 */

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"

/* Any number of lines. On a terminal, control characters except newlines and tabs become '?';
 * elsewhere all bytes are kept. */
void print_text(FILE *to, struct slice text);

/* One line without a newline, always cleaned. */
void print_line(FILE *to, const char *fmt, ...) PRINTF(2, 3);
void print_row(FILE *to, const char *fmt, ...) PRINTF(2, 3); /* the same with a newline */
void print_line_of(FILE *to, const char *fmt, va_list args) PRINTF(2, 0);

#endif
