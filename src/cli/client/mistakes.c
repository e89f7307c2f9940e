/* Prints mistakes in definitions and configurations as compilers do: FILE:LINE:COLUMN, which
 * editors understand (mistakes.h). config/mistakes.c collects those that are found here; the
 * server's answers bring others. */

#include "cli/client/mistakes.h"

#include <stdio.h>
#include <string.h>

#include "cli/terminal/print.h"

/* Most texts name what was expected, but some are a sentence. */
static bool is_sentence(const char *expected)
{
    return strncmp(expected, "did you mean", 12) == 0 || strstr(expected, " is reserved")
           || strstr(expected, "\" is unknown");
}

void mistake_print(const char *file, const char *kind, const struct mistake *m)
{
    print_line(stderr, "%s:%u:%u: %s: %s%sfound %s%s%s", file, m->line, m->column, kind, m->path,
               *m->path ? ": " : "", m->found, is_sentence(m->expected) ? ": " : ", expected ",
               m->expected);
    (void)fputc('\n', stderr);
}

void mistakes_print(const char *file, const char *kind, const struct mistakes *list)
{
    for (size_t i = 0; i < list->count; i++)
        mistake_print(file, kind, &list->list[i]);
}

enum definition_format format_of_file(const char *file)
{
    const char *dot = strrchr(file, '.');

    if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0))
        return DEFINITION_YAML;
    return dot && strcmp(dot, ".json") == 0 ? DEFINITION_JSON : DEFINITION_GUESS;
}
