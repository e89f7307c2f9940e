#include <string.h>

#include "cli/help.h"

static void print_line(const struct verb *v, FILE *to)
{
    char words[32];

    (void)snprintf(words, sizeof words, "%s%s%s", v->noun ? v->noun : "", v->noun ? " " : "",
                   v->name);
    fprintf(to, "  %-16s %s\n", words, v->summary);
}

void help_print_noun(const char *noun, FILE *to)
{
    fprintf(to, "usage: intact %s VERB [FLAG...]\n\n", noun);
    for (size_t i = 0; i < verb_count; i++)
        if (verbs[i]->noun && strcmp(verbs[i]->noun, noun) == 0)
            print_line(verbs[i], to);
    fprintf(to, "\nintact %s VERB --help tells more.\n", noun);
}

void help_print_all(FILE *to)
{
    fputs("usage: intact VERB [ARGUMENT...] [FLAG...]\n\n", to);
    for (size_t i = 0; i < verb_count; i++)
        print_line(verbs[i], to);
    fputs("\nintact VERB --help tells more, with examples. Clients find the server by --server or "
          "INTACT_SERVER\n[http://127.0.0.1:7420].\n",
          to);
}
