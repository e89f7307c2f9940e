/* `intact workflow get`: a stored definition as it was written, or the whole answer as JSON.
 * workflow_put.c stores one. */

#include <stdio.h>

#include "cli/client/client.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"

static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/* Prints the text as written; the whole answer if it has an unknown form. */
static void show(const struct intact_client *c, const struct json *answer)
{
    struct slice definition = json_get_raw(answer, "definition");
    struct slice yaml = json_get_text(answer, "text");

    struct slice text = yaml.ptr ? yaml : definition;

    if (!text.ptr) {
        client_print_body(c);
        return;
    }
    print_text(stdout, text);
    if (text.len == 0 || text.ptr[text.len - 1] != '\n')
        putchar('\n');
}

static int ask(const struct invocation *in, const char *path)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "GET", path, NULL, &a, &end);

    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        show(c, answer);
    intact_client_free(c);
    return end;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};
    const char *name = in->words[0];
    const char *word = in->word_count > 1 ? in->words[1] : NULL; /* the version, as an argument */
    int64_t version = 0;

    if (!name[0] || name[strspn(name, allowed)])
        return verb_misused(in, "\"%s\" is no name of a workflow", name);
    if (word && given(in, "version"))
        return verb_misused(in, "\"%s\" is one word too many beside --version", word);
    if (word ? !number_read(in, "VERSION", word, 1, INT32_MAX, &version)
             : !given_number(in, "version", 1, INT32_MAX, &version))
        return CLI_USAGE;
    buf_fmt(&path, "/v1/workflows/%s", name);
    if (version > 0)
        buf_fmt(&path, "/versions/%" PRId64, version);
    return ask(in, path.ptr);
}

static const struct flag flags[] = {
    {.name = "version", .value = "N", .help = "this version", .initial = "the newest"},
    {0},
};

const struct verb verb_workflow_get = {
    .noun = "workflow",
    .name = "get",
    .summary = "show a workflow definition",
    .about = "Shows a definition as it was stored. With --json also its metadata.",
    .arguments = {{.name = "NAME", .kind = WORD_WORKFLOW}, {.name = "VERSION", .optional = true}},
    .flags = flags,
    .examples = {{"intact workflow get order", "the newest version"},
                 {"intact workflow get order --version 2", "an older version"}},
    .exits = "1 if there is no such workflow",
    .run = run,
};
