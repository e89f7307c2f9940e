#ifndef CLI_SAY_H
#define CLI_SAY_H

/*
 * What others wrote, shown: a server's sentence, a definition, an answer as it came. A terminal
 * obeys what it is sent, so what is none of its business does not reach it.
 */

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"

/* A text of any number of lines. On a terminal control characters show as '?', but for ends of
 * lines and tabs; elsewhere it goes out byte by byte as it is. */
void say_text(FILE *to, struct slice text);

/* One line, without an end, cleaned wherever it goes. */
void say_line(FILE *to, const char *fmt, ...) PRINTF(2, 3);
void say_row(FILE *to, const char *fmt, ...) PRINTF(2, 3); /* the same, with its end */
void say_line_of(FILE *to, const char *fmt, va_list args) PRINTF(2, 0);

#endif
