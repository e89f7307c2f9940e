/* docs/command-line.md, from the descriptions of the verbs. */

#include <string.h>

#include "cli/help.h"
#include "cli/manual.h"

/* Text in a table cell or a line. */
static void put(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (strchr("|<*_[", *text))
            buf_byte(b, '\\');
        buf_byte(b, (char)(*text == '\n' ? ' ' : *text));
    }
}

/* Paragraphs as they are; JSON in a text becomes code. */
static void put_about(struct buf *b, const char *text)
{
    size_t depth = 0;

    for (; *text; text++) {
        if (*text == '{' && depth++ == 0)
            buf_byte(b, '`');
        buf_byte(b, *text);
        if (*text == '}' && --depth == 0)
            buf_byte(b, '`');
    }
    buf_str(b, "\n\n");
}

static void put_flags(struct buf *b, const struct flag *flags)
{
    char head[64];

    if (!flags || !flags->name)
        return;
    buf_str(b, "| flag | what | without it |\n|---|---|---|\n");
    for (const struct flag *f = flags; f->name; f++) {
        help_flag_head(f, head);
        buf_fmt(b, "| `%s` | ", head);
        put(b, f->help);
        buf_str(b, f->repeats ? "; may be repeated | " : " | ");
        put(b, f->initial ? f->initial : "");
        buf_str(b, " |\n");
    }
    buf_byte(b, '\n');
}

static void put_verb(struct buf *b, const struct verb *v)
{
    CLEANUP(buf_fini) struct buf exits = {0};
    char words[64];

    buf_fmt(b, "## %s\n\n`", verb_words(v, words, sizeof words));
    help_synopsis(v, b);
    buf_str(b, "`\n\n");
    put_about(b, v->about ? v->about : v->summary);
    if (v->examples[0].command)
        buf_str(b,
                "<!-- not run: examples of --help, which tests/e2e/cli_test.py reads -->\n```sh\n");
    for (size_t i = 0; i < VERB_EXAMPLES_MAX && v->examples[i].command; i++)
        buf_fmt(b, "# %s\n%s\n", v->examples[i].what, v->examples[i].command);
    if (v->examples[0].command)
        buf_str(b, "```\n\n");
    put_flags(b, v->flags);
    if (v->more) {
        buf_fmt(b, "%s\n\n```text\n", v->more_title);
        v->more(b);
        buf_str(b, "```\n\n");
    }
    help_exits(v, &exits);
    exits.ptr[0] = 'E';
    buf_fmt(b, "%s.\n\n", exits.ptr);
}

void manual_markdown(struct buf *b)
{
    char words[64];

    buf_str(b, "# The command line\n\n"
               "This page is made of the descriptions that `--help`, the manual pages and the "
               "completions come from too: `intact-document page`.\n\n"
               "| verb | what it does |\n|---|---|\n");
    for (size_t i = 0; i < verb_count; i++) {
        if (verbs[i]->is_hidden)
            continue;
        (void)verb_words(verbs[i], words, sizeof words);
        buf_fmt(b, "| [`%s`](#", words);
        for (const char *at = words; *at; at++)
            buf_byte(b, (char)(*at == ' ' ? '-' : *at));
        buf_str(b, ") | ");
        put(b, verbs[i]->summary);
        buf_str(b, " |\n");
    }
    buf_str(b,
            "\n## What all have in common\n\n"
            "Results go to standard output, remarks and progress to standard error. Colours and "
            "progress bars are for terminals; `NO_COLOR` and `--color never` switch colours off. "
            "Verbs that talk to a server have these flags:\n\n");
    put_flags(b, client_flag_list);
    buf_str(b, "| exit status | what it means |\n|---|---|\n"
               "| 0 | as asked |\n"
               "| 1 | the task did not end well, or the server refused |\n"
               "| 2 | the command line is wrong, or a file that it names |\n"
               "| 3 | the server was not reached, or has too much to do |\n\n");
    for (size_t i = 0; i < verb_count; i++)
        if (!verbs[i]->is_hidden)
            put_verb(b, verbs[i]);
    b->len--; /* only one newline at the end */
    b->ptr[b->len] = 0;
}
