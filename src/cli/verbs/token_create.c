/* `intact token create`: a token with its role, its agent or workflows, and its limits. The text of
 * the token is shown once; the server keeps a hash. */

#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/token_text.h"

enum { VALUE_MAX = 15 /* digits: fits a JSON number */ };

/* "calls=50"; the server validates the names and values. */
static bool render_limits(const struct invocation *in, struct buf *body)
{
    const char *limit = NULL;

    json_key(body, "limits");
    json_open(body, '{');
    for (size_t at = 0; (limit = given_next(in, "limit", &at));) {
        size_t len = strcspn(limit, "=");
        const char *value = limit[len] ? limit + len + 1 : "";
        if (len == 0 || !*value || value[strspn(value, "0123456789")]
            || strlen(value) > VALUE_MAX) {
            verb_misused(in, "--limit is \"%s\", expected NAME=NUMBER, such as calls=50", limit);
            return false;
        }
        json_key_slice(body, (struct slice){limit, len});
        json_number(body, strtoll(value, NULL, 10));
    }
    json_close(body, '}');
    return true;
}

static void render_groups(const struct invocation *in, struct buf *body)
{
    const char *group = NULL;

    if (!given(in, "group"))
        return;
    json_key(body, "groups");
    json_open(body, '[');
    for (size_t at = 0; (group = given_next(in, "group", &at));)
        json_string(body, slice_of(group));
    json_close(body, ']');
}

static bool render(const struct invocation *in, struct buf *body)
{
    const char *expires_in = given(in, "expires-in");
    const char *role = NULL;
    int64_t ms = 0;

    bool never = expires_in && strcmp(expires_in, "never") == 0;
    if (!never && !given_duration(in, "expires-in", &ms))
        return false;
    if (!given(in, "role")) {
        verb_misused(in, "say what the token may do: --role submit, for example");
        return false;
    }
    json_open(body, '{');
    json_member_text(body, "name", slice_of(in->words[0]));
    json_key(body, "roles");
    json_open(body, '[');
    for (size_t at = 0; (role = given_next(in, "role", &at));)
        json_string(body, slice_of(role));
    json_close(body, ']');
    if (given(in, "person"))
        json_member_text(body, "person", slice_of(given(in, "person")));
    render_groups(in, body);
    if (expires_in) {
        json_member_text(body, "expires_in", slice_of(expires_in));
    }
    if (given(in, "limit") && !render_limits(in, body))
        return false;
    json_close(body, '}');
    return true;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf body = {0};

    if (!render(in, &body))
        return CLI_USAGE;
    return token_text_ask(in, "/v1/tokens", &body);
}

static const struct flag flags[] = {
    {.name = "role",
     .value = "ROLE",
     .help =
         "submit, submit:WORKFLOW, read, read:WORKFLOW, define, repair, operate, approve, link, "
         "agent:NAME, agent:*, signal:WORKFLOW/NAME or admin; at least one",
     .kind = WORD_HINTS,
     .choices = "submit submit: read read: define repair operate approve link agent: agent:* "
                "signal: admin",
     .repeats = true},
    {.name = "person",
     .value = "NAME",
     .help = "whose token it is, for approvals; without it, the name of the token"},
    {.name = "group",
     .value = "GROUP",
     .help = "group that the person belongs to, for approvals",
     .repeats = true},
    {.name = "expires-in",
     .value = "TIME",
     .help = "lifetime, such as 12h or 30d, or never",
     .initial = "90d"},
    {.name = "limit",
     .value = "NAME=NUMBER",
     .help = "calls, submissions, readings, bytes, waiting, cpu or open_tasks, at "
             "each node",
     .kind = WORD_HINTS,
     .choices = "calls= submissions= bytes= waiting= cpu= readings= open_tasks=",
     .repeats = true},
    {0},
};

const struct verb verb_token_create = {
    .noun = "token",
    .name = "create",
    .summary = "create a token and print it",
    .about = "Creates a token and prints it once: the server stores only a hash.",
    .arguments = {{.name = "NAME"}},
    .flags = flags,
    .examples = {{"intact token create shop --role submit:order --expires-in 30d",
                  "for a program that submits orders"},
                 {"intact token create payment --role agent:payment --expires-in never",
                  "for an agent, without an end"},
                 {"intact token create ci --role submit --limit calls=50 --limit submissions=20",
                  "for a program with limits"},
                 {"intact token create ann --role operate", "for an operator, for 90 days"},
                 {"intact token create eve --role approve --group finance",
                  "for a person of finance"}},
    .run = run,
};
