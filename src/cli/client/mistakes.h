#ifndef CLI_CLIENT_MISTAKES_H
#define CLI_CLIENT_MISTAKES_H

/* Mistakes in definitions and configurations, in the format of compilers, which editors
 * understand. */

#include "base/buf.h"
#include "definition/definition.h"

/* Prints "FILE:LINE:COLUMN: KIND: PATH: found this, expected that" on standard error. */
void mistake_print(const char *file, const char *kind, const struct mistake *m);
void mistakes_print(const char *file, const char *kind, const struct mistakes *list);

/* The format by the file's name; otherwise its content decides. */
enum definition_format format_of_file(const char *file);

#endif
