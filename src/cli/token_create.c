#include <stdio.h>

#include "cli/client.h"
#include "cli/say.h"
#include "cli/verbs.h"

static bool render(const struct invocation *in, struct buf *body)
{
    const char *expires_in = given(in, "expires-in");
    const char *role = NULL;
    int64_t ms = 0;

    if (!given_duration(in, "expires-in", &ms))
        return false;
    if (!given(in, "role")) {
        verb_misused(in, "say what the token may do: --role submit, for example");
        return false;
    }
    json_open(body, '{');
    json_key(body, "name");
    json_string(body, slice_of(in->words[0]));
    json_key(body, "roles");
    json_open(body, '[');
    for (size_t at = 0; (role = given_next(in, "role", &at));)
        json_string(body, slice_of(role));
    json_close(body, ']');
    if (expires_in) {
        json_key(body, "expires_in");
        json_string(body, slice_of(expires_in));
    }
    json_close(body, '}');
    return true;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf body = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    int end = CLI_OK;

    if (!render(in, &body))
        return CLI_USAGE;
    struct intact_client *c = client_begin(in);
    const struct json *answer = client_ask(c, "POST", "/v1/tokens", &body, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer) {
        say_text(stdout, json_get_text(answer, "token"));
        putchar('\n');
    }
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {
    {.name = "role",
     .value = "ROLE",
     .help = "submit, read, operate, agent:NAME, agent:* or admin; at least one",
     .kind = WORD_HINTS,
     .choices = "submit read operate agent: agent:* admin",
     .repeats = true},
    {.name = "expires-in",
     .value = "TIME",
     .help = "such as 12h or 30d",
     .initial = "it is good until it is deleted"},
    {0},
};

const struct verb verb_token_create = {
    .noun = "token",
    .name = "create",
    .summary = "make an access token and print it",
    .about = "Makes a token and prints it. It is shown this once: the server keeps only what it "
             "takes to know it again.",
    .arguments = {{.name = "NAME"}},
    .flags = flags,
    .examples = {{"intact token create ci --role submit --expires-in 30d", "for a build machine"},
                 {"intact token create payment --role agent:payment", "for an agent"},
                 {"intact token create ann --role read --role operate", "for an operator"}},
    .run = run,
};
