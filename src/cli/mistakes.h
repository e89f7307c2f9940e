#ifndef CLI_MISTAKES_H
#define CLI_MISTAKES_H

/* Mistakes of definitions and configurations as compilers write them, so that editors find the
 * place. */

#include "base/buf.h"
#include "definition/definition.h"

/* "FILE:LINE:COLUMN: KIND: PATH: found this, expected that" on standard error. */
void mistake_print(const char *file, const char *kind, const struct mistake *m);
void mistakes_print(const char *file, const char *kind, const struct mistakes *list);

/* What a file is by its name; otherwise its content tells. */
enum definition_format format_of_file(const char *file);

#endif
