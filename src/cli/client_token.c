#include "cli/client.h"

#include <stdio.h>

#include "base/when.h"

static const char usage[] =
    "usage: intact token create NAME --role ROLE... [--expires-in TIME]\n"
    "       intact token list\n"
    "       intact token delete NAME\n"
    "\n"
    "Makes a token and prints it (it is shown this once), lists those that there are, deletes "
    "one.\n"
    "\n"
    "  --role ROLE       submit, read, operate, agent:NAME, agent:* or admin; may be repeated\n"
    "  --expires-in TIME such as 12h or 30d; without it, it is good until it is "
    "deleted\n" CLIENT_USAGE;

struct token {
    struct buf roles; /* of an array */
    const char *expires_in;
};

static bool take(void *arg, int flag, const char *value)
{
    struct token *t = arg;
    int64_t ms = 0;

    switch (flag) {
    case 'r':
        if (t->roles.len == 0)
            json_open(&t->roles, '[');
        json_string(&t->roles, slice_of(value));
        return true;
    case 'e':
        t->expires_in = value;
        return client_duration("--expires-in", value, &ms);
    default:
        fputs(usage, stderr);
        return false;
    }
}

/* The path of a token; false: nothing can be called so, and it has been said. */
static bool path_of(const char *name, struct buf *ret)
{
    if (!name[0]
        || name[strspn(name,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-")]) {
        fprintf(stderr, "intact: \"%s\" is no name of a token\n", name);
        return false;
    }
    buf_fmt(ret, "/v1/tokens/%s", name);
    return true;
}

static int create(struct intact_client *c, const struct client_flags *f, struct token *t,
                  const char *name)
{
    CLEANUP(buf_fini) struct buf body = {0};
    CLEANUP(arena_fini) struct arena a = {0};

    if (t->roles.len == 0) {
        fputs("intact: say what the token may do: --role submit, for example\n", stderr);
        return CLI_USAGE;
    }
    json_close(&t->roles, ']');
    json_open(&body, '{');
    json_key(&body, "name");
    json_string(&body, slice_of(name));
    json_key(&body, "roles");
    json_raw(&body, buf_view(&t->roles));
    if (t->expires_in) {
        json_key(&body, "expires_in");
        json_string(&body, slice_of(t->expires_in));
    }
    json_close(&body, '}');
    enum intact_status status =
        intact_client_call(c, "POST", "/v1/tokens", "application/json", body.ptr, body.len);
    const struct json *answer = status == INTACT_OK ? client_answer(c, &a) : NULL;
    if (!answer)
        return status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    if (f->json)
        client_print_body(c);
    else
        printf("%.*s\n", SLICE_ARG(json_get_text(answer, "token")));
    return CLI_OK;
}

static void add_roles(struct table *t, const struct json *roles)
{
    CLEANUP(buf_fini) struct buf text = {0};

    for (const struct json *j = roles ? roles->child : NULL; j; j = j->next)
        buf_fmt(&text, "%s%.*s", text.len ? " " : "", SLICE_ARG(j->text));
    table_add(t, buf_view(&text));
}

static int list(struct intact_client *c, const struct client_flags *f)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(table_fini) struct table t = {.columns = 4};
    enum intact_status status = intact_client_call(c, "GET", "/v1/tokens", NULL, NULL, 0);
    const struct json *answer = status == INTACT_OK ? client_answer(c, &a) : NULL;

    if (!answer)
        return status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    if (f->json) {
        client_print_body(c);
        return CLI_OK;
    }
    const struct json *tokens = json_get(answer, "tokens");
    table_add(&t, SLICE("NAME"));
    table_add(&t, SLICE("ROLES"));
    table_add(&t, SLICE("CREATED"));
    table_add(&t, SLICE("EXPIRES"));
    for (const struct json *j = tokens ? tokens->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "name"));
        add_roles(&t, json_get(j, "roles"));
        table_add(&t, json_get_text(j, "created_at"));
        table_add(&t, json_get_text(j, "expires_at"));
    }
    table_print(&t);
    return CLI_OK;
}

static int delete (struct intact_client *c, const char *name)
{
    CLEANUP(buf_fini) struct buf path = {0};

    if (!path_of(name, &path))
        return CLI_USAGE;
    enum intact_status status = intact_client_call(c, "DELETE", path.ptr, NULL, NULL, 0);
    return status == INTACT_OK ? CLI_OK : client_complain(c, status);
}

int cli_token(int argc, char **argv)
{
    static const struct option flags[] = {CLIENT_FLAGS,
                                          {"role", required_argument, NULL, 'r'},
                                          {"expires-in", required_argument, NULL, 'e'},
                                          {NULL, 0, NULL, 0}};
    struct client_flags common = {0};
    struct token t = {0};
    const struct flag_reader reader = {usage, flags, take, &t};
    int end = client_read_flags(argc, argv, &reader, &common);

    if (end == CLI_OK) {
        int count = argc - optind;
        const char *verb = count > 0 ? argv[optind] : "";
        struct intact_client *c = client_open(&common);
        end = CLI_USAGE;
        if (strcmp(verb, "create") == 0 && count == 2)
            end = create(c, &common, &t, argv[optind + 1]);
        else if (strcmp(verb, "list") == 0 && count == 1)
            end = list(c, &common);
        else if (strcmp(verb, "delete") == 0 && count == 2)
            end = delete (c, argv[optind + 1]);
        else
            fputs(usage, stderr);
        intact_client_free(c);
    }
    buf_fini(&t.roles);
    return end < 0 ? CLI_OK : end;
}
