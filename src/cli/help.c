#include "cli/help.h"

#include <string.h>

#include "base/base.h"

enum { TEXT_WIDTH = 90, FLAG_COLUMN = 22 };

static void print_arguments(const struct verb *v, FILE *to)
{
    for (size_t i = 0; i < VERB_ARGUMENTS_MAX && v->arguments[i].name; i++) {
        const struct argument *a = &v->arguments[i];
        fprintf(to, a->optional ? " [%s]" : " %s", a->name);
        if (a->repeats)
            fputs("...", to);
    }
}

void help_print_synopsis(const struct verb *v, FILE *to)
{
    char words[64];

    fputs(verb_words(v, words, sizeof words), to);
    print_arguments(v, to);
    if (verb_flag(v, 0))
        fputs(" [FLAG...]", to);
}

/* Paragraphs, wrapped between words. */
static void print_text(const char *text, FILE *to)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column > 0 && column + 1 + word > TEXT_WIDTH) {
            fputc('\n', to);
            column = 0;
        }
        fprintf(to, "%s%.*s", column ? " " : "", (int)word, text);
        column += word + (column ? 1 : 0);
        text += word;
        if (strncmp(text, "\n\n", 2) == 0) {
            fputs("\n\n", to);
            column = 0;
        }
        text += strspn(text, " \n");
    }
    fputc('\n', to);
}

static void print_flag(const struct flag *f, FILE *to)
{
    char head[64];
    const char *line = f->help;

    int n = f->letter ? snprintf(head, sizeof head, "-%c, --%s", f->letter, f->name)
                      : snprintf(head, sizeof head, "--%s", f->name);
    ASSERT(n > 0 && (size_t)n < sizeof head);
    if (f->value)
        (void)snprintf(head + n, sizeof head - (size_t)n, " %s", f->value);
    fprintf(to, "  %-*s ", FLAG_COLUMN, head);
    if (strlen(head) > FLAG_COLUMN)
        fprintf(to, "\n  %-*s ", FLAG_COLUMN, "");
    for (;;) {
        size_t len = strcspn(line, "\n");
        fprintf(to, "%.*s", (int)len, line);
        line += len;
        if (!*line++)
            break;
        fprintf(to, "\n  %-*s ", FLAG_COLUMN, "");
    }
    if (f->repeats)
        fputs("; repeatable", to);
    if (f->initial)
        fprintf(to, "  [%s]", f->initial);
    fputc('\n', to);
}

static void print_flags(const char *title, const struct flag *flags, FILE *to)
{
    if (!flags || !flags->name)
        return;
    fprintf(to, "\n%s\n", title);
    for (const struct flag *f = flags; f->name; f++)
        print_flag(f, to);
}

void help_print(const struct verb *v, FILE *to)
{
    fputs("usage: ", to);
    help_print_synopsis(v, to);
    fputs("\n\n", to);
    print_text(v->about ? v->about : v->summary, to);
    if (v->examples[0].command)
        fputs("\nexamples:\n", to);
    for (size_t i = 0; i < VERB_EXAMPLES_MAX && v->examples[i].command; i++)
        fprintf(to, "  # %s\n  %s\n", v->examples[i].what, v->examples[i].command);
    print_flags("flags:", v->flags, to);
    if (!v->is_local)
        print_flags("flags of all verbs that talk to a server:", client_flag_list, to);
    if (v->more) {
        CLEANUP(buf_fini) struct buf b = {0};
        v->more(&b);
        fprintf(to, "\n%s\n%s", v->more_title, b.ptr);
    }
    fprintf(to, "\nexit status: 0, or %s%s\n",
            v->exits ? v->exits : "1 if the server refused what was asked",
            v->is_local ? ", 2 for a wrong command line"
                        : ", 2 for a wrong command line, 3 if the server was not reached");
}
