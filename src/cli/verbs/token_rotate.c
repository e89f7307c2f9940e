/* `intact token rotate`: gives a token a new text; programs change over while the old text is still
 * valid. */

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/token_text.h"

static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

static bool render(const struct invocation *in, struct buf *body)
{
    static const struct {
        const char *flag, *member;
    } times[] = {{"keep", "keep"}, {"expires-in", "expires_in"}};
    int64_t ms = 0;

    json_open(body, '{');
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        const char *text = given(in, times[i].flag);
        if (!text)
            continue;
        bool never = i == 1 && strcmp(text, "never") == 0;
        if (!never && !given_duration(in, times[i].flag, &ms))
            return false;
        json_member_text(body, times[i].member, slice_of(text));
    }
    json_close(body, '}');
    return true;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    const char *name = in->words[0];

    if (!name[0] || name[strspn(name, allowed)])
        return verb_misused(in, "\"%s\" is no name of a token", name);
    if (!render(in, &body))
        return CLI_USAGE;
    buf_fmt(&path, "/v1/tokens/%s/rotate", name);
    return token_text_ask(in, path.ptr, &body);
}

static const struct flag flags[] = {
    {.name = "keep",
     .value = "TIME",
     .help = "how long the old text stays valid; 0s: not at all",
     .initial = "1h"},
    {.name = "expires-in",
     .value = "TIME",
     .help = "lifetime, such as 12h or 30d, or never",
     .initial = "the lifetime of the old text"},
    {0},
};

const struct verb verb_token_rotate = {
    .noun = "token",
    .name = "rotate",
    .summary = "replace the text of a token, and print it",
    .about = "Replaces the text of a token and prints the new one once. The old "
             "text stays valid for a while. Name, roles and tasks stay.",
    .arguments = {{.name = "NAME", .kind = WORD_TOKEN}},
    .flags = flags,
    .examples = {{"intact token rotate shop", "keep the old text for an hour"},
                 {"intact token rotate ci --keep 0s", "a disclosed text"}},
    .run = run,
};
