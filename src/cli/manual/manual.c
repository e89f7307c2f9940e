/* Manual pages in man(7), from the descriptions of the verbs (manual.h). document.c writes them
 * into files; manual_markdown.c makes docs/command-line.md from the same descriptions. */

#include "cli/manual/manual.h"

#include <stdio.h>
#include <string.h>

#include "cli/help.h"

void manual_name(const struct verb *v, char ret[80])
{
    (void)snprintf(ret, 80, "%s", "intact");
    if (v)
        (void)verb_words(v, ret, 80);
    for (char *at = ret; *at; at++)
        *at = (char)(*at == ' ' ? '-' : *at);
}

/* Escapes what man(7) would interpret. */
static void put(struct buf *b, const char *text)
{
    bool at_start = b->len == 0 || b->ptr[b->len - 1] == '\n';

    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            buf_str(b, "\\&");
        if (*text == '\\')
            buf_str(b, "\\e");
        else if (*text == '-')
            buf_str(b, "\\-");
        else if (*text == '\'')
            buf_str(b, "\\(aq");
        else if (*text == '^')
            buf_str(b, "\\(ha");
        else if (*text == '~')
            buf_str(b, "\\(ti");
        else if (*text == '`')
            buf_str(b, "\\(ga");
        else
            buf_byte(b, *text);
        at_start = *text == '\n';
    }
}

/* A paragraph, wrapped between words. */
static void put_filled(struct buf *b, const char *text, size_t len)
{
    enum { WIDTH = 68 }; /* escaped words may be longer */
    size_t column = 0;

    for (size_t i = 0; i < len;) {
        char word[200];
        size_t n = strcspn(text + i, " \n");
        if (n > len - i)
            n = len - i;
        if (column > 0 && column + n > WIDTH) {
            buf_byte(b, '\n');
            column = 0;
        }
        if (column > 0)
            buf_byte(b, ' ');
        (void)snprintf(word, sizeof word, "%.*s", (int)n, text + i);
        put(b, word);
        column += n + 1;
        i += n;
        i += strspn(text + i, " \n");
    }
}

/* "\n\n" ends a paragraph. */
static void put_text(struct buf *b, const char *text)
{
    for (;;) {
        const char *end = strstr(text, "\n\n");
        put_filled(b, text, end ? (size_t)(end - text) : strlen(text));
        buf_byte(b, '\n');
        if (!end)
            return;
        buf_str(b, ".PP\n");
        text = end + 2;
    }
}

static void put_flag(struct buf *b, const struct flag *f)
{
    char head[64];

    help_flag_head(f, head);
    buf_str(b, ".TP\n.B ");
    put(b, head);
    buf_byte(b, '\n');
    put_filled(b, f->help, strlen(f->help));
    if (f->repeats)
        buf_str(b, " (repeatable)");
    buf_byte(b, '.');
    if (f->initial) {
        buf_str(b, "\nDefault: ");
        put(b, f->initial);
        buf_byte(b, '.');
    }
    buf_byte(b, '\n');
}

static void put_arguments(struct buf *b, const struct verb *v)
{
    for (size_t i = 0; i < VERB_ARGUMENTS_MAX && v->arguments[i].name; i++) {
        const struct argument *a = &v->arguments[i];
        buf_fmt(b, "%s\\fI", a->optional ? " [" : " ");
        put(b, a->name);
        buf_fmt(b, "\\fR%s%s", a->optional ? "]" : "", a->repeats ? "..." : "");
    }
}

static void put_synopsis(struct buf *b, const struct verb *v)
{
    char words[64];

    buf_str(b, ".SH SYNOPSIS\n\\fB");
    put(b, verb_words(v, words, sizeof words));
    buf_str(b, "\\fR");
    put_arguments(b, v);
    if (verb_flag(v, 0))
        buf_str(b, " [\\fIFLAG\\fR...]");
    buf_byte(b, '\n');
}

static void put_examples(struct buf *b, const struct verb *v)
{
    buf_str(b, ".SH EXAMPLES\n");
    for (size_t i = 0; i < VERB_EXAMPLES_MAX && v->examples[i].command; i++) {
        buf_str(b, ".TP\n.B ");
        put(b, v->examples[i].command);
        buf_byte(b, '\n');
        put(b, v->examples[i].what);
        buf_byte(b, '\n');
    }
}

static void put_more(struct buf *b, const struct verb *v)
{
    CLEANUP(buf_fini) struct buf more = {0};

    if (!v->more)
        return;
    v->more(&more);
    buf_str(b, ".SH ");
    for (const char *at = v->more_title; *at && *at != ':'; at++)
        buf_byte(b, (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at));
    buf_str(b, "\n.nf\n");
    put(b, more.ptr);
    buf_str(b, ".fi\n");
}

static void put_flags(struct buf *b, const struct verb *v)
{
    for (size_t i = 0; verb_flag(v, i); i++) {
        if (i == 0)
            buf_str(b, ".SH OPTIONS\n");
        put_flag(b, verb_flag(v, i));
    }
}

static void put_title(struct buf *b, const struct verb *v)
{
    char name[80];

    manual_name(v, name);
    buf_str(b, ".TH ");
    for (const char *at = name; *at; at++)
        buf_byte(b, (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at));
    buf_str(b, " 1 2026-01-31 \"Intact " INTACT_VERSION "\" \"Intact\"\n.SH NAME\n");
    put(b, name);
    buf_str(b, " \\- ");
    put(b, v ? v->summary : "run long tasks of several steps, and keep them whole");
    buf_byte(b, '\n');
}

static void put_verb(struct buf *b, const struct verb *v)
{
    CLEANUP(buf_fini) struct buf exits = {0};

    put_synopsis(b, v);
    buf_str(b, ".SH DESCRIPTION\n");
    put_text(b, v->about ? v->about : v->summary);
    put_flags(b, v);
    put_more(b, v);
    if (v->examples[0].command)
        put_examples(b, v);
    help_exits(v, &exits);
    buf_str(b, ".SH \"EXIT STATUS\"\n");
    const char *text = exits.ptr + strlen("exit status: ");
    put_filled(b, text, strlen(text));
    buf_str(b, ".\n.SH \"SEE ALSO\"\n.BR intact (1)\n");
}

static void put_program(struct buf *b)
{
    char name[80];

    buf_str(b, ".SH SYNOPSIS\n\\fBintact\\fR \\fIVERB\\fR [\\fIARGUMENT\\fR...] [\\fIFLAG\\fR...]\n"
               ".SH DESCRIPTION\n"
               "Each verb has a page of its own.\n");
    for (size_t i = 0; i < verb_count; i++) {
        if (verbs[i]->is_hidden)
            continue;
        manual_name(verbs[i], name);
        buf_str(b, ".TP\n.BR ");
        put(b, name);
        buf_str(b, " (1)\n");
        put(b, verbs[i]->summary);
        buf_byte(b, '\n');
    }
    buf_str(b, ".SH ENVIRONMENT\n"
               ".TP\n.B INTACT_SERVER\nwhere clients find the server, such as "
               "http://127.0.0.1:7420\n"
               ".TP\n.B INTACT_TOKEN\nthe token that they show\n"
               ".TP\n.B INTACT_CA\na file of certificates that an https server\\(aqs is signed by\n"
               ".TP\n.B NO_COLOR\nif it is set and not empty: no colours\n"
               ".SH \"EXIT STATUS\"\n"
               "0, as asked; 1 if a task did not end well,\nor the server refused what was asked;\n"
               "2 for a wrong command line or a file that it names;\n"
               "3 if the server was not reached or has too much to do.\n"
               ".SH \"SEE ALSO\"\n.BR intact\\-serve (1),\n.BR intact\\-submit (1)\n");
}

void manual_page(const struct verb *v, struct buf *b)
{
    put_title(b, v);
    if (v)
        put_verb(b, v);
    else
        put_program(b);
}
