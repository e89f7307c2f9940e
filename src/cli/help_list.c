/* The part of help.h that lists: all verbs in groups (`intact help`), and the verbs of a noun
 * (`intact help workflow`). help.c has the help of a single verb, verbs.h the list of all. */

#include "cli/help.h"

#include <string.h>

#include "base/base.h"
#include "cli/verbs.h"

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
        if (verbs[i]->noun && !verbs[i]->is_hidden && strcmp(verbs[i]->noun, noun) == 0)
            print_line(verbs[i], to);
    fprintf(to, "\nintact %s VERB --help shows its flags.\n", noun);
}

/* Groups of verbs: each begins with this verb. */
static const struct {
    const struct verb *first;
    const char *title;
} groups[] = {
    {&verb_serve, "The server"},
    {&verb_submit, "Tasks"},
    {&verb_retry, "Tasks that need an operator"},
    {&verb_workflow_put, "Workflows"},
    {&verb_top, "The installation"},
    {&verb_completion, "This program"},
};

const char *help_group(const struct verb *v)
{
    for (size_t g = 0; g < COUNT_OF(groups); g++)
        if (groups[g].first == v)
            return groups[g].title;
    return NULL;
}

void help_print_all(FILE *to)
{
    fputs("usage: intact VERB [ARGUMENT...] [FLAG...]\n", to);
    for (size_t i = 0; i < verb_count; i++) {
        if (help_group(verbs[i]))
            fprintf(to, "\n%s:\n", help_group(verbs[i]));
        if (!verbs[i]->is_hidden)
            print_line(verbs[i], to);
    }
    fputs("\nFirst steps:\n"
          "  intact serve &                                a server on this machine\n"
          "  intact workflow put order.yaml                what is to be done\n"
          "  intact submit order --input '{\"sku\": 5}'      do it\n"
          "  intact list                                   how is it?\n"
          "\nintact VERB --help shows flags and examples. Clients find the server by --server or "
          "INTACT_SERVER\n[http://127.0.0.1:7420].\n",
          to);
}
