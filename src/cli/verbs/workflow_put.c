/* `intact workflow put`: stores a definition from a file, with mistakes and warnings printed as
 * compilers do (client/mistakes.h). put.h has what schedule_put.c uses of it; validate.c checks
 * without a server. */

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "cli/verbs/put.h"

/* Prints the mistakes or warnings of the server's answer. */
static bool print_list(const struct intact_client *c, const char *file, const char *key,
                       const char *kind)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice body = {intact_client_body(c), intact_client_body_size(c)};
    struct json *answer = NULL;
    enum err err = json_parse(&a, body, &answer, NULL);
    const struct json *list = err == ERR_OK ? json_get(answer, key) : NULL;

    for (const struct json *j = list ? list->child : NULL; j; j = j->next) {
        struct mistake m = {.line = (uint32_t)json_get_int(j, "line", 1),
                            .column = (uint32_t)json_get_int(j, "column", 1)};
        struct slice path = json_get_text(j, "path");
        struct slice found = json_get_text(j, "found");
        struct slice expected = json_get_text(j, "expected");
        (void)snprintf(m.path, sizeof m.path, "%.*s", SLICE_ARG(path));
        (void)snprintf(m.found, sizeof m.found, "%.*s", SLICE_ARG(found));
        (void)snprintf(m.expected, sizeof m.expected, "%.*s", SLICE_ARG(expected));
        mistake_print(file, kind, &m);
    }
    return list && list->child;
}

void put_warnings_print(const struct intact_client *c, const char *file)
{
    (void)print_list(c, file, "warnings", "warning");
}

int put_complain(struct intact_client *c, enum intact_status status, const char *file)
{
    bool has_errors = status == INTACT_REFUSED && print_list(c, file, "errors", "error");

    if (!has_errors)
        return client_complain(c, status);
    (void)print_list(c, file, "warnings", "warning");
    return CLI_NOT_WELL;
}

/* The path contains the workflow's name. Without a valid name the server cannot be asked, and the
 * mistakes are found here. */
static bool name_of(const struct buf *text, const char *file, struct buf *ret)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice name = definition_name(buf_view(text), format_of_file(file), &a);

    if (name.len > 0 && strspn(name.ptr, allowed) == name.len) {
        buf_slice(ret, name);
        return true;
    }
    struct mistakes *m = calloc(1, sizeof *m);
    struct definition *d = NULL;
    ASSERT(m);
    enum err err = definition_parse(buf_view(text), format_of_file(file), &d, m, NULL);
    ASSERT(err != ERR_OK);
    mistakes_print(file, "error", m);
    free(m);
    return false;
}

static enum intact_status send(struct intact_client *c, const char *name, const struct buf *text,
                               bool is_yaml)
{
    CLEANUP(buf_fini) struct buf path = {0};

    buf_fmt(&path, "/v1/workflows/%s", name);
    return intact_client_call(c, "PUT", path.ptr, is_yaml ? "application/yaml" : "application/json",
                              text->ptr, text->len);
}

/* For "-" and unknown suffixes the content decides. */
bool put_is_yaml(const char *file, const struct buf *text)
{
    enum definition_format format = format_of_file(file);

    if (format != DEFINITION_GUESS)
        return format == DEFINITION_YAML;
    return text->ptr[strspn(text->ptr, " \t\r\n")] != '{';
}

static int print_result(const struct invocation *in, const struct intact_client *c,
                        const char *name)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *answer = client_answer(c, &a);

    if (!answer)
        return CLI_NOT_WELL;
    put_warnings_print(c, in->words[0]);
    if (given(in, "json"))
        client_print_body(c);
    else {
        print_line(stdout, "%s, version %.*s%s", name, SLICE_ARG(json_get_raw(answer, "version")),
                   intact_client_http_status(c) == 200 ? " (as it was)" : "");
        putchar('\n');
    }
    return CLI_OK;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf definition = {0};
    CLEANUP(buf_fini) struct buf name = {0};
    const char *file = in->words[0];

    if (!client_read_file(file, &definition))
        return CLI_USAGE;
    if (!name_of(&definition, file, &name))
        return CLI_NOT_WELL;
    struct intact_client *c = client_begin(in);
    enum intact_status status = send(c, name.ptr, &definition, put_is_yaml(file, &definition));
    int end = status == INTACT_OK ? print_result(in, c, name.ptr) : put_complain(c, status, file);
    intact_client_free(c);
    return end;
}

const struct verb verb_workflow_put = {
    .noun = "workflow",
    .name = "put",
    .summary = "store a workflow definition",
    .about = "Stores a definition, YAML or JSON, as the next version of its name. "
             "Running tasks keep their version.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE}},
    .examples = {{"intact workflow put order.yaml", "a new workflow, or a new version"},
                 {"generate | intact workflow put -", "from standard input"}},
    .exits = "1 if the definition has mistakes, or the server refused it",
    .run = run,
};
