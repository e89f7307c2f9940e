/* `intact validate`: checks definition files without a server, by the same compiler as the
 * server's (definition/definition.h), and prints mistakes as compilers do. workflow_put.c stores
 * definitions. */

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "json/text.h"

struct validation {
    bool json, is_strict;
    struct buf document;
    struct mistakes errors, warnings; /* of the current file */
};

static void add_file(struct validation *v, const char *file, bool was_read)
{
    struct buf *b = &v->document;
    struct slice name = slice_of(file);

    name.len = text_utf8_end(name); /* a file's name may be any bytes, but JSON is UTF-8 */
    json_open(b, '{');
    json_member_text(b, "file", name);
    json_member_bool(b, "was_read", was_read);
    json_key(b, "errors");
    mistakes_render(b, &v->errors);
    json_key(b, "warnings");
    mistakes_render(b, &v->warnings);
    json_close(b, '}');
}

static void print_result(const struct validation *v, const char *file)
{
    mistakes_print(file, "error", &v->errors);
    mistakes_print(file, "warning", &v->warnings);
    if (v->errors.count == 0 && v->warnings.count == 0)
        printf("%s: no mistakes\n", file);
}

static int check(struct validation *v, const char *file)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct definition *d = NULL;
    int end = CLI_USAGE;

    v->errors.count = v->warnings.count = 0;
    bool was_read = client_read_file(file, &text);
    if (was_read) {
        enum err err =
            definition_parse(buf_view(&text), format_of_file(file), &d, &v->errors, &v->warnings);
        end = err != ERR_OK || (v->is_strict && v->warnings.count > 0) ? CLI_NOT_WELL : CLI_OK;
        definition_free(d);
    }
    if (v->json)
        add_file(v, file, was_read);
    else if (was_read)
        print_result(v, file);
    return end;
}

static int check_all(struct validation *v, char *const *files, size_t count)
{
    int end = CLI_OK;

    json_open(&v->document, '{');
    json_key(&v->document, "files");
    json_open(&v->document, '[');
    for (size_t i = 0; i < count; i++) {
        int one = check(v, files[i]);
        end = one > end ? one : end;
    }
    json_close(&v->document, ']');
    json_close(&v->document, '}');
    if (v->json) {
        buf_byte(&v->document, '\n');
        print_text(stdout, buf_view(&v->document)); /* it quotes the files */
    }
    return end;
}

static int run(struct invocation *in)
{
    struct validation *v = calloc(1, sizeof *v);

    ASSERT(v);
    v->json = given(in, "json");
    v->is_strict = given(in, "warnings-are-errors");
    int end = check_all(v, in->words, in->word_count);
    buf_fini(&v->document);
    free(v);
    return end;
}

static const struct flag flags[] = {
    {.name = "json", .help = "one JSON document for all files, on standard output"},
    {.name = "warnings-are-errors", .help = "exit status 1 for warnings too"},
    {0},
};

const struct verb verb_validate = {
    .name = "validate",
    .summary = "check workflow definitions without a server",
    .about = "Checks workflow definitions, YAML or JSON (- for standard input), "
             "without a server, and lists all mistakes with their places, and "
             "warnings.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE, .repeats = true}},
    .flags = flags,
    .examples = {{"intact validate order.yaml", "check a file"},
                 {"intact validate --warnings-are-errors *.yaml", "before a commit"}},
    .exits = "1 if one has mistakes",
    .is_local = true,
    .run = run,
};
