#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"

static void add_roles(struct table *t, const struct json *roles)
{
    CLEANUP(buf_fini) struct buf text = {0};

    for (const struct json *j = roles ? roles->child : NULL; j; j = j->next)
        buf_fmt(&text, "%s%.*s", text.len ? " " : "", SLICE_ARG(j->text));
    table_add(t, buf_view(&text));
}

static void show(const struct json *tokens)
{
    CLEANUP(table_fini) struct table t = {.columns = 4};

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
}

static int run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "GET", "/v1/tokens", NULL, &a, &end);

    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        show(json_get(answer, "tokens"));
    intact_client_free(c);
    return end;
}

const struct verb verb_token_list = {
    .noun = "token",
    .name = "list",
    .summary = "list the access tokens",
    .about = "Lists the access tokens: what each may do, and until when. Not the tokens "
             "themselves: nobody has them but who was given them.",
    .examples = {{"intact token list", "who may do what"}},
    .run = run,
};
