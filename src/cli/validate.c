#include <stdio.h>
#include <stdlib.h>

#include "cli/client.h"
#include "cli/mistakes.h"
#include "json/text.h"

static const char usage[] =
    "usage: intact validate [--json] [--warnings-are-errors] FILE...\n"
    "\n"
    "Checks workflow definitions, YAML or JSON (- for standard input), without a server, and lists "
    "all\n"
    "mistakes of each: FILE:LINE:COLUMN: error: what was found, what was expected. Warnings are of "
    "what is\n"
    "allowed and hardly meant. Exit status 0 if all are right, 1 if one has mistakes, 2 if one "
    "cannot be read.\n"
    "\n"
    "  --json                  one JSON document of all files, on standard output\n"
    "  --warnings-are-errors   exit status 1 for warnings, too\n";

static const struct option flags[] = {{"json", no_argument, NULL, 'J'},
                                      {"warnings-are-errors", no_argument, NULL, 'W'},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

struct validation {
    bool json, is_strict;
    struct buf document;
    struct mistakes errors, warnings; /* of the file at hand */
};

/* What is expected is mostly a thing, but for some keys it is said in a sentence. */
static bool is_sentence(const char *expected)
{
    return strncmp(expected, "did you mean", 12) == 0 || strstr(expected, " is reserved")
           || strstr(expected, " is not known");
}

void mistake_print(const char *file, const char *kind, const struct mistake *m)
{
    fprintf(stderr, "%s:%u:%u: %s: %s%sfound %s%s%s\n", file, m->line, m->column, kind, m->path,
            *m->path ? ": " : "", m->found, is_sentence(m->expected) ? ": " : ", expected ",
            m->expected);
}

void mistakes_print(const char *file, const char *kind, const struct mistakes *list)
{
    for (size_t i = 0; i < list->count; i++)
        mistake_print(file, kind, &list->list[i]);
}

enum definition_format format_of_file(const char *file)
{
    const char *dot = strrchr(file, '.');

    if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0))
        return DEFINITION_YAML;
    return dot && strcmp(dot, ".json") == 0 ? DEFINITION_JSON : DEFINITION_GUESS;
}

static void add_file(struct validation *v, const char *file, bool was_read)
{
    struct buf *b = &v->document;
    struct slice name = slice_of(file);

    name.len = text_utf8_end(name); /* a name of a file may be any bytes, JSON may not */
    json_open(b, '{');
    json_key(b, "file");
    json_string(b, name);
    json_key(b, "was_read");
    json_bool(b, was_read);
    json_key(b, "errors");
    mistakes_render(b, &v->errors);
    json_key(b, "warnings");
    mistakes_render(b, &v->warnings);
    json_close(b, '}');
}

static void tell(const struct validation *v, const char *file)
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
        tell(v, file);
    return end;
}

static int check_all(struct validation *v, int count, char *const *files)
{
    int end = CLI_OK;

    json_open(&v->document, '{');
    json_key(&v->document, "files");
    json_open(&v->document, '[');
    for (int i = 0; i < count; i++) {
        int one = check(v, files[i]);
        end = one > end ? one : end;
    }
    json_close(&v->document, ']');
    json_close(&v->document, '}');
    if (v->json)
        puts(v->document.ptr);
    return end;
}

int cli_validate(int argc, char **argv)
{
    struct validation *v = calloc(1, sizeof *v);
    int end = CLI_USAGE;
    int flag;

    ASSERT(v);
    optind = 1;
    while ((flag = getopt_long(argc, argv, "h", flags, NULL)) == 'J' || flag == 'W') {
        v->json |= flag == 'J';
        v->is_strict |= flag == 'W';
    }
    if (flag == 'h') {
        fputs(usage, stdout);
        end = CLI_OK;
    } else if (flag != -1 || optind == argc) {
        fputs(usage, stderr);
    } else {
        end = check_all(v, argc - optind, argv + optind);
    }
    buf_fini(&v->document);
    free(v);
    return end;
}
