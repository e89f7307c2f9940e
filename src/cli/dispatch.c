#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/help.h"
#include "cli/verb.h"
#include "definition/reader.h"

/* By one word, or by two: the words that it took are *ret_words. */
static const struct verb *find_verb(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; i < verb_count; i++) {
        const struct verb *v = verbs[i];
        *ret_words = v->noun ? 2 : 1;
        if (argc > *ret_words && strcmp(argv[1], v->noun ? v->noun : v->name) == 0
            && (!v->noun || strcmp(argv[2], v->name) == 0))
            return v;
    }
    return NULL;
}

static bool is_noun(const char *word)
{
    for (size_t i = 0; i < verb_count; i++)
        if (verbs[i]->noun && strcmp(verbs[i]->noun, word) == 0)
            return true;
    return false;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* What a misspelt word may stand for: a verb, or a noun; with `noun` a verb of it. */
static const char *word_near(const char *word, const char *noun)
{
    for (size_t i = 0; i < verb_count; i++) {
        const struct verb *v = verbs[i];
        const char *name = !noun && v->noun ? v->noun : v->name;
        bool fits = !noun || (v->noun && strcmp(v->noun, noun) == 0);
        if (fits && name_is_near(slice_of(word), slice_of(name)))
            return name;
    }
    return NULL;
}

static void say_unknown(const char *word, const char *noun)
{
    const char *near = word_near(word, noun);

    fprintf(stderr, "intact%s%s: there is no verb \"%s\"", noun ? " " : "", noun ? noun : "", word);
    if (near)
        fprintf(stderr, ", did you mean \"%s\"?", near);
    fprintf(stderr, "; see intact %s%s--help\n", noun ? noun : "", noun ? " " : "");
}

/* "intact workflow", "intact workflow nonsense" */
static int refuse_noun(int argc, char **argv)
{
    bool asked = argc > 2 && is_help(argv[2]);

    if (argc > 2 && !asked)
        say_unknown(argv[2], argv[1]);
    else
        help_print_noun(argv[1], asked ? stdout : stderr);
    return asked ? CLI_OK : CLI_USAGE;
}

static int refuse_verb(const char *word)
{
    say_unknown(word, NULL);
    return CLI_USAGE;
}

/* "intact help get", "intact help workflow put" */
static int help(int argc, char **argv)
{
    int words = 0;

    if (argc == 2) {
        help_print_all(stdout);
        return CLI_OK;
    }
    const struct verb *v = find_verb(argc - 1, argv + 1, &words);
    if (v)
        help_print(v, stdout);
    else if (is_noun(argv[2]))
        help_print_noun(argv[2], stdout);
    else
        return refuse_verb(argv[2]);
    return CLI_OK;
}

static int dispatch(int argc, char **argv)
{
    int words = 0;

    if (argc < 2) {
        help_print_all(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("intact " INTACT_VERSION);
        return CLI_OK;
    }
    if (is_help(argv[1]))
        return help(argc, argv);
    const struct verb *v = find_verb(argc, argv, &words);
    if (v)
        return verb_run(v, argc - words, argv + words); /* its name stands where argv[0] does */
    return is_noun(argv[1]) ? refuse_noun(argc, argv) : refuse_verb(argv[1]);
}

/* A full disk, or a reader that went away: what was to be shown was not. */
static bool was_written(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "intact: standard output: %s\n", strerror(errno));
    return false;
}

int cli_main(int argc, char **argv)
{
    int end = dispatch(argc, argv);

    return was_written() || end != CLI_OK ? end : CLI_NOT_WELL;
}
