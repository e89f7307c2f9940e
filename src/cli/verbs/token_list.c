/* `intact token list`: tokens with their roles and their recent use, never their texts, which the
 * server does not have. client/table.c makes the call and the table. */

#include "cli/client/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"NAME",  "ROLES",       "GROUPS", "CREATED", "EXPIRES", "USED",
                                    "CALLS", "SUBMISSIONS", "BYTES",  "REFUSED", NULL};

/* in the last one or two minutes, at the answering node */
static const char *const uses[] = {"calls", "submissions", "bytes", "refused"};

static void add_list(struct table *t, const struct json *list)
{
    CLEANUP(buf_fini) struct buf text = {0};

    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        buf_fmt(&text, "%s%.*s", text.len ? " " : "", SLICE_ARG(j->text));
    table_add(t, text.len ? buf_view(&text) : SLICE_NONE);
}

static void add(struct table *t, const struct json *token)
{
    table_add(t, json_get_text(token, "name"));
    add_list(t, json_get(token, "roles"));
    add_list(t, json_get(token, "groups"));
    table_add_time(t, json_get_text(token, "created_at"));
    table_add_time(t, json_get_text(token, "expires_at"));
    table_add_time(t, json_get_text(token, "last_used_at"));
    for (size_t i = 0; i < COUNT_OF(uses); i++)
        table_add(t, json_get_raw(json_get(token, "recent"), uses[i]));
}

static int run(struct invocation *in)
{
    static const struct table_view view = {"/v1/tokens", "tokens", heads, add, NULL};

    return table_show(in, &view);
}

const struct verb verb_token_list = {
    .noun = "token",
    .name = "list",
    .summary = "list tokens",
    .about = "Lists tokens: roles, groups, expiry, last use, and use in the last "
             "one or two minutes at the node that answers.",
    .examples = {{"intact token list", "tokens, their roles and groups"}},
    .run = run,
};
