#include "cli/client.h"

#include <stdio.h>

static const char usage[] = "usage: intact workflow put FILE\n"
                            "       intact workflow list\n"
                            "       intact workflow get NAME [VERSION]\n"
                            "\n"
                            "Stores a definition (a file, or - for standard input) under the next "
                            "version of its name, lists\n"
                            "those that are stored, shows one.\n"
                            "\n" CLIENT_USAGE;

static const char validate_usage[] =
    "usage: intact validate FILE\n"
    "\n"
    "Checks a workflow definition (a file, or - for standard input) without storing it. Exit "
    "status 0\n"
    "if it is right, 1 if it has mistakes: all of them are listed.\n"
    "\n" CLIENT_USAGE;

static const struct option flags[] = {CLIENT_FLAGS, {NULL, 0, NULL, 0}};

/* FILE:LINE:COLUMN, as compilers do it, so that editors find the place. */
static bool print_mistakes(const struct intact_client *c, const char *file)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice body = {intact_client_body(c), intact_client_body_size(c)};
    struct json *answer = NULL;
    enum err err = json_parse(&a, body, &answer, NULL);
    const struct json *errors = err == ERR_OK ? json_get(answer, "errors") : NULL;

    for (const struct json *j = errors ? errors->child : NULL; j; j = j->next) {
        struct slice path = json_get_text(j, "path");
        struct slice found = json_get_text(j, "found");
        fprintf(stderr, "%s:%" PRId64 ":%" PRId64 ": %.*s%sfound %.*s, expected %.*s\n", file,
                json_get_int(j, "line", 1), json_get_int(j, "column", 1), SLICE_ARG(path),
                path.len ? ": " : "", SLICE_ARG(found), SLICE_ARG(json_get_text(j, "expected")));
    }
    return errors && errors->child;
}

static int complain(const struct intact_client *c, enum intact_status status, const char *file)
{
    if (status == INTACT_REFUSED && print_mistakes(c, file))
        return CLI_NOT_WELL;
    return client_complain(c, status);
}

/* The name that stands in the definition: in JSON a member, in YAML a line of its own. */
static bool name_of(const struct buf *definition, const char *file, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const char *text = definition->len ? definition->ptr : "";
    struct json *j = NULL;
    struct json_fault fault = {0};

    if (text[strspn(text, " \t\r\n")] == '{') {
        if (json_parse(&a, buf_view(definition), &j, &fault) != ERR_OK) {
            fprintf(stderr, "%s:%u:%u: %s\n", file, fault.line, fault.column, fault.what);
            return false;
        }
        buf_slice(ret, json_get_text(j, "workflow"));
    } else {
        const char *line = strncmp(text, "workflow:", 9) == 0 ? text : strstr(text, "\nworkflow:");
        const char *at = line ? strchr(line, ':') + 1 : "";
        at += strspn(at, " \t\"'");
        buf_add(ret, at, strcspn(at, " \t\r\n\"'#"));
    }
    if (ret->len)
        return true;
    fprintf(stderr, "%s: found no name, expected \"workflow\": \"...\"\n", file);
    return false;
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
    enum intact_status status = intact_client_put_workflow(c, name.ptr, definition.ptr);
    if (status != INTACT_OK)
        return complain(c, status, file);
    const struct json *answer = client_answer(c, &a);
    if (!answer)
        return CLI_NOT_WELL;
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
    if (f->json || !definition.ptr)
        client_print_body(c);
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

int cli_validate(int argc, char **argv)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct client_flags common = {0};
    const struct flag_reader reader = {.usage = validate_usage, .flags = flags};
    int end = client_read_flags(argc, argv, &reader, &common);

    if (end)
        return end < 0 ? CLI_OK : end;
    if (argc - optind != 1) {
        fputs(validate_usage, stderr);
        return CLI_USAGE;
    }
    if (!client_read_file(argv[optind], &text))
        return CLI_USAGE;
    const char *start = text.len ? text.ptr : "";
    bool is_json = start[strspn(start, " \t\r\n")] == '{';
    struct intact_client *c = client_open(&common);
    enum intact_status status =
        intact_client_call(c, "POST", "/v1/validate",
                           is_json ? "application/json" : "application/yaml", start, text.len);
    if (common.json && (status == INTACT_OK || status == INTACT_REFUSED)) {
        client_print_body(c);
        end = status == INTACT_OK ? CLI_OK : CLI_NOT_WELL;
    } else if (status != INTACT_OK) {
        end = complain(c, status, argv[optind]);
    } else {
        printf("%s: no mistakes\n", argv[optind]);
    }
    intact_client_free(c);
    return end;
}
