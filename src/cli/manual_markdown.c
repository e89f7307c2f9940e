/* docs/command-line.md, from the descriptions of the verbs. */

#include <string.h>

#include "cli/help.h"
#include "cli/manual.h"

#define FLAGS_HEAD "| flag | meaning | default |\n|---|---|---|\n"

enum { SHARED_MIN = 8 }; /* verbs */

/* Text in a table cell or a line. */
static void put(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (strchr("|<*_[", *text))
            buf_byte(b, '\\');
        buf_byte(b, (char)(*text == '\n' ? ' ' : *text));
    }
}

/* Code in a table cell. */
static void put_code(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            buf_byte(b, '\\');
        buf_byte(b, *text);
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

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool has_same_flag(const struct verb *v, const struct flag *f)
{
    for (const struct flag *own = v->flags; !v->is_hidden && own && own->name; own++)
        if (strcmp(own->name, f->name) == 0)
            return is_same_text(own->value, f->value) && is_same_text(own->help, f->help)
                   && is_same_text(own->initial, f->initial) && own->repeats == f->repeats;
    return false;
}

/* The first verb that has it; *ret_count: how many do. */
static const struct verb *first_with(const struct flag *f, size_t *ret_count)
{
    const struct verb *first = NULL;

    *ret_count = 0;
    for (size_t i = 0; i < verb_count; i++)
        if (has_same_flag(verbs[i], f)) {
            first = first ? first : verbs[i];
            ++*ret_count;
        }
    return first;
}

/* Described once, for all verbs that have it. */
static bool is_shared(const struct flag *f)
{
    size_t count = 0;

    (void)first_with(f, &count);
    return count >= SHARED_MIN;
}

static void put_flag(struct buf *b, const struct flag *f)
{
    char head[64];

    help_flag_head(f, head);
    buf_str(b, "| `");
    put_code(b, head);
    buf_str(b, "` | ");
    put(b, f->help);
    buf_str(b, f->repeats ? "; may be repeated | " : " | ");
    put(b, f->initial ? f->initial : "");
    buf_str(b, " |\n");
}

/* The verb's own in a table, the shared ones by name. */
static void put_flags(struct buf *b, const struct flag *flags)
{
    size_t own = 0;
    size_t shared = 0;

    for (const struct flag *f = flags; f && f->name; f++) {
        if (is_shared(f))
            continue;
        if (own++ == 0)
            buf_str(b, FLAGS_HEAD);
        put_flag(b, f);
    }
    if (own > 0)
        buf_byte(b, '\n');
    for (const struct flag *f = flags; f && f->name; f++)
        if (is_shared(f))
            buf_fmt(b, "%s`--%s`", shared++ == 0 ? "[Shared flags](#shared-flags): " : ", ",
                    f->name);
    if (shared > 0)
        buf_str(b, ".\n\n");
}

static void put_shared_flags(struct buf *b)
{
    size_t count = 0;

    buf_str(b, "## Shared flags\n\nMost of these flags select tasks. Each verb lists which of them "
               "it has.\n\n" FLAGS_HEAD);
    for (size_t i = 0; i < verb_count; i++)
        for (const struct flag *f = verbs[i]->flags; !verbs[i]->is_hidden && f && f->name; f++)
            if (first_with(f, &count) == verbs[i] && count >= SHARED_MIN)
                put_flag(b, f);
    buf_byte(b, '\n');
}

static void put_verb(struct buf *b, const struct verb *v)
{
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
    if (v->exits)
        buf_fmt(b, "Exit status: %s.\n\n", v->exits);
}

void manual_markdown(struct buf *b)
{
    char words[64];

    buf_str(b, "# The command line\n\n"
               "This page lists all verbs of `intact` with their flags. It is generated from the "
               "texts of `--help` and the manual pages, by `intact-document page`.\n\n"
               "| verb | purpose |\n|---|---|\n");
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
            "\n## Common flags and exit status\n\n"
            "Results go to standard output, messages and progress to standard error. Colours and "
            "progress bars appear on terminals only; `NO_COLOR` and `--color never` disable "
            "colours. Verbs that connect to a server have these flags:\n\n");
    buf_str(b, FLAGS_HEAD);
    for (const struct flag *f = client_flag_list; f->name; f++)
        put_flag(b, f);
    buf_byte(b, '\n');
    buf_str(b, "| exit status | meaning |\n|---|---|\n"
               "| 0 | success |\n"
               "| 1 | the task was not processed, or the server refused the request |\n"
               "| 2 | the command line, or a file that it names, is invalid |\n"
               "| 3 | the server was not reached, or is overloaded |\n\n"
               "Verbs describe status 1 if it means more than a refusal by the server.\n\n");
    put_shared_flags(b);
    for (size_t i = 0; i < verb_count; i++)
        if (!verbs[i]->is_hidden)
            put_verb(b, verbs[i]);
    b->len--; /* only one newline at the end */
    b->ptr[b->len] = 0;
}
