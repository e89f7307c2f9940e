#include "cli/client.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/mistakes.h"

static const char usage[] = "usage: intact workflow put FILE\n"
                            "       intact workflow list\n"
                            "       intact workflow get NAME [VERSION]\n"
                            "\n"
                            "Stores a definition (a file, YAML or JSON, or - for standard input) "
                            "under the next version of its\n"
                            "name, lists those that are stored, shows one.\n"
                            "\n" CLIENT_USAGE;

static const struct option flags[] = {CLIENT_FLAGS, {NULL, 0, NULL, 0}};

/* The mistakes or warnings of the server's answer. */
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

static int complain(const struct intact_client *c, enum intact_status status, const char *file)
{
    bool has_errors = status == INTACT_REFUSED && print_list(c, file, "errors", "error");

    if (!has_errors)
        return client_complain(c, status);
    (void)print_list(c, file, "warnings", "warning");
    return CLI_NOT_WELL;
}

/* The path to store it under needs its name. Without one that can stand in a path there is nothing
 * to ask the server: we say ourselves what is wrong. */
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

/* "-" and names that say nothing: the content tells. */
static bool is_yaml_file(const char *file, const struct buf *text)
{
    enum definition_format format = format_of_file(file);

    if (format != DEFINITION_GUESS)
        return format == DEFINITION_YAML;
    return text->ptr[strspn(text->ptr, " \t\r\n")] != '{';
}

static int put(struct intact_client *c, const struct client_flags *f, const char *file)
{
    CLEANUP(buf_fini) struct buf definition = {0};
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(arena_fini) struct arena a = {0};

    if (!client_read_file(file, &definition))
        return CLI_USAGE;
    if (!name_of(&definition, file, &name))
        return CLI_NOT_WELL;
    enum intact_status status = send(c, name.ptr, &definition, is_yaml_file(file, &definition));
    if (status != INTACT_OK)
        return complain(c, status, file);
    const struct json *answer = client_answer(c, &a);
    if (!answer)
        return CLI_NOT_WELL;
    (void)print_list(c, file, "warnings", "warning");
    if (f->json)
        client_print_body(c);
    else
        printf("%s, version %.*s%s\n", name.ptr, SLICE_ARG(json_get_raw(answer, "version")),
               intact_client_http_status(c) == 200 ? " (as it was)" : "");
    return CLI_OK;
}

static int list(struct intact_client *c, const struct client_flags *f)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(table_fini) struct table t = {.columns = 3};
    enum intact_status status = intact_client_call(c, "GET", "/v1/workflows", NULL, NULL, 0);
    const struct json *answer = status == INTACT_OK ? client_answer(c, &a) : NULL;

    if (!answer)
        return status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    if (f->json) {
        client_print_body(c);
        return CLI_OK;
    }
    const struct json *workflows = json_get(answer, "workflows");
    table_add(&t, SLICE("WORKFLOW"));
    table_add(&t, SLICE("VERSION"));
    table_add(&t, SLICE("STEPS"));
    for (const struct json *j = workflows ? workflows->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "name"));
        table_add(&t, json_get_raw(j, "version"));
        table_add(&t, json_get_raw(j, "steps"));
    }
    table_print(&t);
    return CLI_OK;
}

static int get(struct intact_client *c, const struct client_flags *f, const char *name,
               const char *version)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};

    buf_fmt(&path, "/v1/workflows/%s%s%s", name, version ? "/versions/" : "",
            version ? version : "");
    if (path.ptr[strspn(path.ptr, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-./")]) {
        fprintf(stderr, "intact: \"%s\" is no name of a workflow\n", name);
        return CLI_USAGE;
    }
    enum intact_status status = intact_client_call(c, "GET", path.ptr, NULL, NULL, 0);
    const struct json *answer = status == INTACT_OK ? client_answer(c, &a) : NULL;
    if (!answer)
        return status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    struct slice definition = json_get_raw(answer, "definition");
    struct slice yaml = json_get_text(answer, "text");
    if (f->json || (!definition.ptr && !yaml.ptr))
        client_print_body(c);
    else if (yaml.ptr)
        printf("%.*s%s", SLICE_ARG(yaml), yaml.len && yaml.ptr[yaml.len - 1] == '\n' ? "" : "\n");
    else
        printf("%.*s\n", SLICE_ARG(definition));
    return CLI_OK;
}

int cli_workflow(int argc, char **argv)
{
    struct client_flags common = {0};
    const struct flag_reader reader = {.usage = usage, .flags = flags};
    int end = client_read_flags(argc, argv, &reader, &common);

    if (end)
        return end < 0 ? CLI_OK : end;
    int count = argc - optind;
    const char *verb = count > 0 ? argv[optind] : "";
    struct intact_client *c = client_open(&common);
    end = CLI_USAGE;
    if (strcmp(verb, "put") == 0 && count == 2)
        end = put(c, &common, argv[optind + 1]);
    else if (strcmp(verb, "list") == 0 && count == 1)
        end = list(c, &common);
    else if (strcmp(verb, "get") == 0 && (count == 2 || count == 3))
        end = get(c, &common, argv[optind + 1], count == 3 ? argv[optind + 2] : NULL);
    else
        fputs(usage, stderr);
    intact_client_free(c);
    return end;
}
