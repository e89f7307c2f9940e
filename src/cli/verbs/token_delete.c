/* `intact token delete`: deletes a token by its name. token_list.c lists tokens, token_create.c
 * and token_rotate.c make them. */

#include "cli/client/client.h"
#include "cli/verbs.h"

static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};
    const char *name = in->words[0];

    if (!name[0] || name[strspn(name, allowed)])
        return verb_misused(in, "\"%s\" is no name of a token", name);
    buf_fmt(&path, "/v1/tokens/%s", name);
    struct intact_client *c = client_begin(in);
    enum intact_status status = intact_client_call(c, "DELETE", path.ptr, NULL, NULL, 0);
    int end = status == INTACT_OK ? CLI_OK : client_complain(c, status);
    intact_client_free(c);
    return end;
}

const struct verb verb_token_delete = {
    .noun = "token",
    .name = "delete",
    .summary = "delete a token",
    .about = "Deletes a token. The last token with the role admin cannot be deleted.",
    .arguments = {{.name = "NAME", .kind = WORD_TOKEN}},
    .examples = {{"intact token delete ci", "revoke it"}},
    .run = run,
};
