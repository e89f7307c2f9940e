/* Makes docs/command-line.md from the descriptions of the verbs: an index, flags that several
 * verbs share described once, and a section for each verb (manual.h). document.c prints it. The
 * page is committed, and a test compares it. */

#include <string.h>

#include "cli/help.h"
#include "cli/manual/manual.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

enum { SHARED_MIN = 3 /* verbs */, COLUMNS = 120 };

static const struct flag many_flag_list[] = {MANY_FLAGS, {0}};

/* Text in a line. */
static void put(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (strchr("<*_[", *text))
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

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_flag(const struct flag *a, const struct flag *b)
{
    return strcmp(a->name, b->name) == 0 && is_same_text(a->value, b->value)
           && is_same_text(a->help, b->help) && is_same_text(a->initial, b->initial)
           && a->repeats == b->repeats;
}

static bool is_in(const struct flag *f, const struct flag *list)
{
    for (; list && list->name; list++)
        if (is_same_flag(f, list))
            return true;
    return false;
}

/* Does the verb have all flags for many tasks, perhaps --all with another meaning? */
static bool is_for_many(const struct verb *v)
{
    for (const struct flag *f = many_flag_list; f->name; f++)
        if (!is_in(f, v->flags) && strcmp(f->name, "all") != 0)
            return false;
    return true;
}

/* The first verb that has it; *ret_count: how many do. */
static const struct verb *first_with(const struct flag *f, size_t *ret_count)
{
    const struct verb *first = NULL;

    *ret_count = 0;
    for (size_t i = 0; i < verb_count; i++)
        if (!verbs[i]->is_hidden && is_in(f, verbs[i]->flags)) {
            first = first ? first : verbs[i];
            ++*ret_count;
        }
    return first;
}

/* How many verbs mean by the flag's name what most of them do. */
static size_t most_with(const char *name)
{
    size_t count = 0;
    size_t most = 0;

    for (size_t i = 0; i < verb_count; i++)
        for (const struct flag *f = verbs[i]->flags; f && f->name; f++)
            if (strcmp(f->name, name) == 0 && !is_in(f, many_flag_list)) {
                (void)first_with(f, &count);
                most = count > most ? count : most;
            }
    return most;
}

/* Described in another section, for all verbs that have it: one meaning for a name. */
static bool is_shared(const struct flag *f)
{
    size_t count = 0;

    (void)first_with(f, &count);
    return count >= SHARED_MIN && count == most_with(f->name);
}

static bool is_described(const struct flag *f)
{
    return is_in(f, many_flag_list) || is_in(f, client_flag_list) || is_shared(f);
}

static void put_flag(struct buf *b, const struct flag *f)
{
    char head[64];

    help_flag_head(f, head);
    buf_fmt(b, "* `%s`: ", head);
    put(b, f->help);
    if (f->repeats)
        buf_str(b, "; may be repeated");
    if (f->initial) {
        buf_str(b, " \\[");
        put(b, f->initial);
        buf_byte(b, ']');
    }
    buf_byte(b, '\n');
}

static void put_flag_list(struct buf *b, const struct flag *f)
{
    for (; f->name; f++)
        put_flag(b, f);
    buf_byte(b, '\n');
}

/* The verb's own, then the others by name. */
static void put_flags(struct buf *b, const struct verb *v)
{
    bool is_many = is_for_many(v);
    size_t described = 0;

    for (const struct flag *f = v->flags; f && f->name; f++)
        if (!is_described(f))
            put_flag(b, f);
    for (const struct flag *f = v->flags; f && f->name; f++)
        if (is_described(f) && !(is_many && is_in(f, many_flag_list)))
            buf_fmt(b, "%s`--%s`", described++ == 0 ? "* [shared](#shared-flags): " : ", ",
                    f->name);
    if (described > 0)
        buf_byte(b, '\n');
    if (is_many)
        buf_str(b, "* [flags for many tasks](#flags-for-many-tasks)\n");
    if (v->flags && v->flags->name)
        buf_byte(b, '\n');
}

static void put_shared_flags(struct buf *b)
{
    size_t count = 0;

    buf_str(b, "## Shared flags\n\nSeveral verbs have these flags; each verb lists which.\n\n");
    for (size_t i = 0; i < verb_count; i++)
        for (const struct flag *f = verbs[i]->flags; !verbs[i]->is_hidden && f && f->name; f++)
            if (is_shared(f) && !is_in(f, many_flag_list) && !is_in(f, client_flag_list)
                && first_with(f, &count) == verbs[i])
                put_flag(b, f);
    buf_str(b,
            "\n## Flags for many tasks\n\nThey select tasks, and say how an operation runs.\n\n");
    put_flag_list(b, many_flag_list);
}

/* What an example does is said where there are several. One that is only the verb shows nothing. */
static void put_examples(struct buf *b, const struct verb *v)
{
    char words[64];

    (void)verb_words(v, words, sizeof words);
    if (!v->examples[0].command
        || (!v->examples[1].command && strcmp(v->examples[0].command, words) == 0))
        return;
    buf_str(b, "```sh\n");
    for (size_t i = 0; i < VERB_EXAMPLES_MAX && v->examples[i].command; i++) {
        if (v->examples[1].command)
            buf_fmt(b, "# %s\n", v->examples[i].what);
        buf_fmt(b, "%s\n", v->examples[i].command);
    }
    buf_str(b, "```\n\n");
}

/* Does the table of the common part cover it? */
static bool is_common_exits(const char *exits)
{
    static const char missing[] = "1 if there is no such ";

    return strcmp(exits, WAIT_EXITS) == 0 || strcmp(exits, "nothing else") == 0
           || (strncmp(exits, missing, sizeof missing - 1) == 0 && !strchr(exits, ','));
}

static void put_verb(struct buf *b, const struct verb *v)
{
    char words[64];

    (void)verb_words(v, words, sizeof words);
    buf_fmt(b, "## %s\n\n", words);
    if (v->arguments[0].name) {
        buf_byte(b, '`');
        help_synopsis(v, b);
        buf_str(b, "`\n\n");
    }
    put_about(b, v->about ? v->about : v->summary);
    put_examples(b, v);
    put_flags(b, v);
    if (v->more) /* of intact serve */
        buf_str(b, "The limits: [limits](limits.md#limits).\n\n");
    if (v->exits && !is_common_exits(v->exits))
        buf_fmt(b, "Exit status: %s.\n\n", v->exits);
}

/* The verbs in groups, as in `intact help`. */
static void put_index(struct buf *b)
{
    char words[64];

    for (size_t i = 0; i < verb_count; i++) {
        const char *title = help_group(verbs[i]);

        if (title)
            buf_fmt(b, "%s**%s**: ", i == 0 ? "" : "\n\n", title);
        if (verbs[i]->is_hidden)
            continue;
        const char *noun = verbs[i]->noun ? verbs[i]->noun : "";
        bool is_first = *noun && (title || !is_same_text(noun, verbs[i - 1]->noun));

        buf_fmt(b, "%s%s%s[%s](#", title ? "" : ", ", is_first ? noun : "", is_first ? " " : "",
                verbs[i]->name);
        (void)verb_words(verbs[i], words, sizeof words);
        for (const char *at = words; *at; at++)
            buf_byte(b, (char)(*at == ' ' ? '-' : *at));
        buf_byte(b, ')');
    }
    buf_str(b, "\n\n");
}

/* A line in lines of COLUMNS. No line begins with what Markdown takes for a list. */
static void put_wrapped(struct buf *b, const char *line, size_t len)
{
    const char *indent = len > 0 && line[0] == '*' && line[1] == ' ' ? "\n  " : "\n";
    size_t column = 0;

    for (size_t at = 0, end = 0; at < len; at = end) {
        end = at + 1;
        while (end < len && line[end] != ' ')
            end++;
        if (column + (end - at) > COLUMNS && line[at] == ' '
            && (end - at > 4 || !strchr("-+*#>0123456789", line[at + 1]))) {
            buf_str(b, indent);
            column = strlen(indent) - 1;
            at++;
        }
        buf_add(b, line + at, end - at);
        column += end - at;
    }
    buf_byte(b, '\n');
}

/* Prose only: code and tables stay as they are. */
static void put_all_wrapped(struct buf *b, const char *text)
{
    bool is_code = false;

    for (const char *end; *text; text = end + 1) {
        end = strchr(text, '\n');
        ASSERT(end);
        is_code = is_code != (strncmp(text, "```", 3) == 0);
        if (is_code || text[0] == '|' || strncmp(text, "```", 3) == 0)
            buf_add(b, text, (size_t)(end - text + 1));
        else
            put_wrapped(b, text, (size_t)(end - text));
    }
}

static void put_page(struct buf *b)
{
    buf_str(b, "# The command line\n\n"
               "All verbs of `intact`. This page is made from the texts of `--help` by "
               "`intact-document page`; defaults are in \\[brackets].\n\n");
    put_index(b);
    buf_str(b, "## Common flags and exit status\n\n"
               "Results go to standard output, messages and progress to standard error. Verbs that "
               "connect to a server have these flags:\n\n");
    put_flag_list(b, client_flag_list);
    buf_str(b, "| exit status | meaning |\n|---|---|\n"
               "| 0 | success |\n"
               "| 1 | the task was not processed, or the server refused the request |\n"
               "| 2 | the command line, or a file that it names, is invalid |\n"
               "| 3 | the server was not reached, or is overloaded |\n\n"
               "With `--wait`, status 1 also means that the task did not end as processed "
               "(compensated after an undo). Verbs describe other meanings of status 1.\n\n");
    put_shared_flags(b);
    for (size_t i = 0; i < verb_count; i++)
        if (!verbs[i]->is_hidden)
            put_verb(b, verbs[i]);
    b->len--; /* only one newline at the end */
    b->ptr[b->len] = 0;
}

void manual_markdown(struct buf *b)
{
    CLEANUP(buf_fini) struct buf page = {0};

    put_page(&page);
    put_all_wrapped(b, page.ptr);
}
