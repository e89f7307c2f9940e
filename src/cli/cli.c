/* From the command line to the verb: finds the verb, or says which one is similar, and handles
 * help (cli_main, cli.h). verb.c reads the flags of the verb and runs it; verbs.c lists all
 * verbs; main.c has the process around it. */

#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/build.h"
#include "cli/help.h"
#include "cli/verbs.h"
#include "config/config_reader.h"

const struct verb *verb_find(char *const *words, size_t count, int *ret_taken)
{
    for (size_t i = 0; i < verb_count; i++) {
        const struct verb *v = verbs[i];
        size_t taken = v->noun ? 2 : 1;
        if (count < taken || strcmp(words[0], v->noun ? v->noun : v->name) != 0
            || (v->noun && strcmp(words[1], v->name) != 0))
            continue;
        *ret_taken = (int)taken;
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

/* What a misspelt word may mean: a verb, or a noun; with `noun`, a verb of it. */
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

static int report_unknown(const char *word, const char *noun)
{
    const char *near = word_near(word, noun);

    fprintf(stderr, "intact%s%s: there is no verb \"%s\"", noun ? " " : "", noun ? noun : "", word);
    if (near)
        fprintf(stderr, ", did you mean \"%s\"?", near);
    fprintf(stderr, "; see intact %s%s--help\n", noun ? noun : "", noun ? " " : "");
    return CLI_USAGE;
}

/* "intact workflow", "intact workflow nonsense" */
static int refuse_noun(int argc, char **argv)
{
    bool asked = argc > 2 && is_help(argv[2]);

    if (argc > 2 && !asked)
        return report_unknown(argv[2], argv[1]);
    help_print_noun(argv[1], asked ? stdout : stderr);
    return asked ? CLI_OK : CLI_USAGE;
}

static int refuse_verb(const char *word)
{
    return report_unknown(word, NULL);
}

/* "intact help get", "intact help workflow put" */
static int help(struct invocation *in)
{
    int taken = 0;

    if (in->word_count == 0) {
        help_print_all(stdout);
        return CLI_OK;
    }
    const struct verb *v = verb_find(in->words, in->word_count, &taken);
    if (v)
        help_print(v, stdout);
    else if (!is_noun(in->words[0]))
        return refuse_verb(in->words[0]);
    else if (in->word_count == 1)
        help_print_noun(in->words[0], stdout);
    else
        return report_unknown(in->words[1], in->words[0]);
    return CLI_OK;
}

const struct verb verb_help = {
    .name = "help",
    .summary = "show help for a verb",
    .about = "Shows what a verb does, with examples; without a verb, lists all verbs. The same as "
             "intact VERB --help.",
    .arguments = {{.name = "VERB", .kind = WORD_VERB, .optional = true, .repeats = true}},
    .examples = {{"intact help submit", "help for submit"},
                 {"intact help workflow", "verbs for workflows"}},
    .exits = "nothing else",
    .is_local = true,
    .run = help,
};

int cli_main(int argc, char **argv)
{
    int words = 0;

    if (argc < 2) {
        help_print_all(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("intact %s\n", build_version);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return verb_run(&verb_help, argc - 1, argv + 1);
    const struct verb *v = verb_find(argv + 1, (size_t)argc - 1, &words);
    if (v)
        return verb_run(v, argc - words, argv + words); /* its name replaces argv[0] */
    return is_noun(argv[1]) ? refuse_noun(argc, argv) : refuse_verb(argv[1]);
}
