/* Help texts, made from the description of a verb (verb.h) and wrapped for the terminal (help.h).
 * help_list.c lists the verbs. manual/ makes the manual pages and docs/command-line.md from the
 * same descriptions. */

#include "cli/help.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"

enum {
    TEXT_WIDTH_MIN = 40,
    TEXT_WIDTH_MAX = 90, /* wider lines are hard to read */
    FLAG_COLUMN = 22,
};

/* The terminal's width if it is narrower; in a pipe, the default. */
static size_t text_width(FILE *to)
{
    struct winsize w = {0};

    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &w) != 0 || w.ws_col == 0
        || w.ws_col > TEXT_WIDTH_MAX)
        return TEXT_WIDTH_MAX;
    return w.ws_col > TEXT_WIDTH_MIN ? w.ws_col - 1 : TEXT_WIDTH_MIN;
}

void help_synopsis(const struct verb *v, struct buf *b)
{
    char words[64];

    buf_str(b, verb_words(v, words, sizeof words));
    for (size_t i = 0; i < VERB_ARGUMENTS_MAX && v->arguments[i].name; i++) {
        const struct argument *a = &v->arguments[i];
        buf_fmt(b, a->optional ? " [%s]%s" : " %s%s", a->name, a->repeats ? "..." : "");
    }
    if (verb_flag(v, 0))
        buf_str(b, " [FLAG...]");
}

/* Text that is wrapped between words; all lines but the first begin with `indent` blanks. */
struct flow {
    FILE *to;
    size_t column, indent, width;
};

static void flow_line(struct flow *f)
{
    fprintf(f->to, "\n%*s", (int)f->indent, "");
    f->column = f->indent;
}

static void flow_word(struct flow *f, const char *word, size_t len)
{
    bool first = f->column <= f->indent;

    if (!first && f->column + 1 + len > f->width) {
        flow_line(f);
        first = true;
    }
    fprintf(f->to, "%s%.*s", first ? "" : " ", (int)len, word);
    f->column += len + !first;
}

/* '\n' counts as a blank; "\n\n" ends a paragraph. */
static void flow_text(struct flow *f, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, " \n");
        if (len > 0)
            flow_word(f, text, len);
        text += len;
        if (strncmp(text, "\n\n", 2) == 0) {
            fputc('\n', f->to);
            flow_line(f);
        }
        text += strspn(text, " \n");
    }
}

static void print_text(const char *text, FILE *to)
{
    struct flow f = {.to = to, .width = text_width(to)};

    flow_text(&f, text);
    fputc('\n', to);
}

void help_flag_head(const struct flag *f, char ret[64])
{
    int n = f->letter ? snprintf(ret, 64, "-%c, --%s", f->letter, f->name)
                      : snprintf(ret, 64, "--%s", f->name);

    ASSERT(n > 0 && n < 64);
    if (f->value)
        (void)snprintf(ret + n, 64 - (size_t)n, " %s", f->value);
}

static void print_flag(const struct flag *f, FILE *to)
{
    struct flow flow = {.to = to,
                        .column = FLAG_COLUMN + 3,
                        .indent = FLAG_COLUMN + 3,
                        .width = text_width(to)};
    char head[64];

    help_flag_head(f, head);
    fprintf(to, "  %-*s ", FLAG_COLUMN, head);
    if (strlen(head) > FLAG_COLUMN)
        flow_line(&flow);
    flow_text(&flow, f->help);
    if (f->repeats)
        flow_text(&flow, "(repeatable)");
    if (f->initial) {
        CLEANUP(buf_fini) struct buf b = {0};
        buf_fmt(&b, "[%s]", f->initial);
        flow_text(&flow, b.ptr);
    }
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

void help_exits(const struct verb *v, struct buf *b)
{
    buf_fmt(b, "exit status: 0, or %s, 2 for a wrong command line or a file that it names",
            v->exits ? v->exits : "1 if the server refused what was asked");
    if (!v->is_local)
        buf_str(b, ", 3 if the server was not reached or has too much to do");
}

/* Splits a long command with a backslash, as shells read it. */
static void print_command(const char *command, FILE *to)
{
    size_t width = text_width(to) - 4;

    fputs("  ", to);
    while (strlen(command) > width) {
        size_t len = width;
        while (len > 0
               && !(command[len] == ' ' && (command[len + 1] == '-' || command[len + 1] == '|')))
            len--;
        if (len == 0)
            break;
        fprintf(to, "%.*s \\\n      ", (int)len, command);
        command += len + 1;
    }
    fprintf(to, "%s\n", command);
}

void help_print(const struct verb *v, FILE *to)
{
    CLEANUP(buf_fini) struct buf synopsis = {0};

    help_synopsis(v, &synopsis);
    fprintf(to, "usage: %s\n\n", synopsis.ptr);
    print_text(v->about ? v->about : v->summary, to);
    if (v->examples[0].command)
        fputs("\nexamples:\n", to);
    for (size_t i = 0; i < VERB_EXAMPLES_MAX && v->examples[i].command; i++) {
        struct flow f = {.to = to, .indent = 4, .width = text_width(to)};
        fputs("  # ", to);
        f.column = 4;
        flow_text(&f, v->examples[i].what);
        fputc('\n', to);
        print_command(v->examples[i].command, to);
    }
    print_flags("flags:", v->flags, to);
    if (!v->is_local)
        print_flags("flags of all verbs that talk to a server:", client_flag_list, to);
    if (v->more) {
        CLEANUP(buf_fini) struct buf b = {0};
        v->more(&b);
        fprintf(to, "\n%s\n%s", v->more_title, b.ptr);
    }
    CLEANUP(buf_fini) struct buf exits = {0};
    help_exits(v, &exits);
    fputc('\n', to);
    print_text(exits.ptr, to);
}
