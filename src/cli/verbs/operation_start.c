/* `intact operation start`, and operators' verbs with --all: makes the filter, does a dry run,
 * asks for confirmation, starts the operation and follows it (operation_start.h). operate.c has
 * the same verbs for one task. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_show.h"
#include "cli/verbs/operation_start.h"

enum { ASK_FROM = 100 /* tasks: confirmation on a terminal for more */ };

/* "a,b" as ["a", "b"] */
static void put_words(struct buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    json_key(b, key);
    json_open(b, '[');
    for (const char *at = value; at;) {
        const char *comma = strchr(at, ',');
        json_string(b, (struct slice){at, comma ? (size_t)(comma - at) : strlen(at)});
        at = comma ? comma + 1 : NULL;
    }
    json_close(b, ']');
}

static bool put_tags(const struct invocation *in, struct buf *b)
{
    const char *tag = NULL;
    bool any = false;

    for (size_t at = 0; (tag = given_next(in, "tag", &at)); any = true) {
        const char *equals = strchr(tag, '=');
        if (!equals) {
            verb_misused(in, "--tag is \"%s\", expected KEY=VALUE", tag);
            return false;
        }
        if (!any) {
            json_key(b, "tag");
            json_open(b, '{');
        }
        json_key_slice(b, (struct slice){tag, (size_t)(equals - tag)});
        json_string(b, slice_of(equals + 1));
    }
    if (any)
        json_close(b, '}');
    return true;
}

static void put_choice(const struct invocation *in, struct buf *b, const char *flag)
{
    const char *value = given(in, flag);

    if (!value)
        return;
    json_member_bool(b, flag, strcmp(value, "yes") == 0);
}

static bool put_filter(const struct invocation *in, struct buf *b)
{
    int64_t version = 0;

    if (!given_number(in, "version", 1, INT64_MAX, &version) || !given_moment(in, "after")
        || !given_moment(in, "before") || !given_moment(in, "ended-after")
        || !given_moment(in, "ended-before"))
        return false;
    json_key(b, "filter");
    json_open(b, '{');
    size_t empty = b->len;
    put_words(b, "state", given(in, "state"));
    json_member_text_if(b, "workflow", slice_of(given(in, "workflow")));
    if (version) {
        json_member_number(b, "version", version);
    }
    json_member_text_if(b, "step", slice_of(given(in, "at-step")));
    json_member_text_if(b, "agent", slice_of(given(in, "agent")));
    json_member_text_if(b, "error", slice_of(given(in, "error")));
    json_member_text_if(b, "submitted_after", slice_of(given(in, "after")));
    json_member_text_if(b, "submitted_before", slice_of(given(in, "before")));
    json_member_text_if(b, "ended_after", slice_of(given(in, "ended-after")));
    json_member_text_if(b, "ended_before", slice_of(given(in, "ended-before")));
    put_words(b, "ids", given(in, "ids"));
    json_member_text_if(b, "id_prefix", slice_of(given(in, "id-prefix")));
    put_choice(in, b, "closed");
    put_choice(in, b, "paused");
    if (given(in, "children")) {
        json_member_bool(b, "children", true);
    }
    json_member_text_if(b, "parent", slice_of(given(in, "parent")));
    json_member_text_if(b, "root", slice_of(given(in, "root")));
    if (!put_tags(in, b))
        return false;
    /* A verb that also takes one task needs --all for many; a filter beside it says which. */
    if (given(in, "all") && (in->word_count > 0 || b->len == empty)) {
        json_member_bool(b, "all", true);
    }
    json_close(b, '}');
    return true;
}

static const char *given_if_any(const struct invocation *in, const char *flag)
{
    return verb_has_flag(in->verb, flag) ? given(in, flag) : NULL;
}

static bool put_arguments(const struct invocation *in, struct buf *b)
{
    static const char *const values[] = {"input", "output", "data"};

    json_key(b, "arguments");
    json_open(b, '{');
    json_member_text_if(b, "step", slice_of(given_if_any(in, "step")));
    json_member_text_if(b, "from", slice_of(given_if_any(in, "from")));
    json_member_text_if(b, "effect", slice_of(given_if_any(in, "effect")));
    json_member_text_if(b, "name", slice_of(given_if_any(in, "name")));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const char *value = given_if_any(in, values[i]);
        if (value && !operate_value(in, values[i], value, b))
            return false;
    }
    json_close(b, '}');
    return true;
}

static bool is_rate(const struct invocation *in, const char *text)
{
    size_t digits = text ? strspn(text, "0123456789") : 0;

    if (text && (digits == 0 || strcmp(text + digits, "/s") != 0)) {
        verb_misused(in, "--rate is \"%s\", expected so many a second, as 200/s", text);
        return false;
    }
    return true;
}

static bool render(const struct invocation *in, const char *verb, bool dry, struct buf *b)
{
    const char *reason = given(in, "reason");
    int64_t limit = 0;

    if (!reason || !*reason) {
        verb_misused(in, "--reason TEXT is required");
        return false;
    }
    if (!given_number(in, "limit", 1, INT64_MAX, &limit) || !is_rate(in, given(in, "rate")))
        return false;
    json_open(b, '{');
    json_member_text_if(b, "verb", slice_of(verb));
    json_member_text_if(b, "reason", slice_of(reason));
    if (!put_filter(in, b) || !put_arguments(in, b))
        return false;
    if (limit) {
        json_member_number(b, "limit", limit);
    }
    json_member_text_if(b, "rate", slice_of(given(in, "rate")));
    if (dry) {
        json_member_bool(b, "dry_run", true);
    }
    json_close(b, '}');
    return true;
}

/* ---- dry run and confirmation ---- */

static const struct json *try_dry(const struct invocation *in, const char *verb,
                                  struct intact_client *c, struct arena *a, int *ret_end)
{
    CLEANUP(buf_fini) struct buf body = {0};

    if (!render(in, verb, true, &body)) {
        *ret_end = CLI_USAGE;
        return NULL;
    }
    return client_ask(c, "POST", "/v1/operations", &body, a, ret_end);
}

/* An incomplete dry run knows only some of the tasks. */
static bool is_meant(const char *verb, const struct json *dry)
{
    int64_t matched = json_get_int(dry, "matched", 0);
    bool complete = json_get_bool(dry, "complete", true);
    char line[16] = {0};

    if (complete && matched <= ASK_FROM)
        return true;
    fprintf(stderr, "%s %s%" PRId64 " tasks? [y/N] ", verb, complete ? "" : "at least ", matched);
    return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static int start(const struct invocation *in, const char *verb, struct intact_client *c,
                 int64_t expected)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    CLEANUP(buf_fini) struct buf id = {0};
    int end = CLI_OK;

    if (!render(in, verb, false, &body))
        return CLI_USAGE;
    const struct json *answer = client_ask(c, "POST", "/v1/operations", &body, &a, &end);
    if (!answer)
        return end;
    buf_slice(&id, json_get_text(answer, "id"));
    if (given(in, "no-wait")) {
        if (given(in, "json"))
            client_print_body(c);
        else
            operation_show(answer);
        return CLI_OK;
    }
    return operation_follow(in, c, buf_view(&id), expected);
}

/* The number of tasks, for a bar; 0: unknown. */
static int64_t expected_of(const struct json *dry)
{
    return dry && json_get_bool(dry, "complete", false) ? json_get_int(dry, "matched", 0) : 0;
}

int operation_start(const struct invocation *in, const char *verb)
{
    CLEANUP(arena_fini) struct arena a = {0};
    bool asks = !given(in, "yes") && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *dry = asks || given(in, "dry-run") ? try_dry(in, verb, c, &a, &end) : NULL;

    if (end == CLI_OK && given(in, "dry-run")) {
        if (given(in, "json"))
            client_print_body(c);
        else
            operation_show_dry(dry);
    } else if (end == CLI_OK && dry && !is_meant(verb, dry)) {
        fputs("nothing was done\n", stderr);
        end = CLI_NOT_WELL;
    } else if (end == CLI_OK) {
        end = start(in, verb, c, expected_of(dry));
    }
    intact_client_free(c);
    return end;
}

static int run(struct invocation *in)
{
    if (given(in, "effect") && !operate_effect_ok(in))
        return CLI_USAGE;
    return operation_start(in, in->words[0]);
}

static const struct flag flags[] = {
    FILTER_FLAGS,
    {.name = "all", .help = "all tasks, without another filter"},
    {.name = "step", .value = "STEP", .help = "step for the verb"},
    {.name = "from", .value = "STEP", .help = "retry: restart this step and all later ones"},
    {.name = "input", .value = "JSON", .help = "correct: new input; @FILE reads a file"},
    {.name = "output",
     .value = "JSON",
     .help = "supply, skip: output of the step; @FILE reads a file"},
    {.name = "effect",
     .value = "EFFECT",
     .help = "resolve: none (the step took no effect)",
     .kind = WORD_HINTS,
     .choices = "none"},
    {.name = "name", .value = "NAME", .help = "signal: its name"},
    {.name = "data",
     .value = "JSON",
     .help = "signal: its value; @FILE reads a file",
     .initial = "null"},
    REASON_FLAG,
    OPERATION_FLAGS,
    {0},
};

const struct verb verb_operation_start = {
    .noun = "operation",
    .name = "start",
    .summary = "apply a verb to many tasks",
    .about = "Applies a verb to all tasks that match all filter flags, newest "
             "first, at lower priority than other work. The operation runs in the "
             "server, across restarts and failovers; this command only shows the "
             "progress. On a terminal it asks before it starts with more than 100 "
             "tasks.",
    .arguments = {{.name = "VERB",
                   .kind = WORD_CHOICE,
                   .choices = "retry undo skip cancel pause resume supply resolve correct close "
                              "reopen signal"}},
    .flags = flags,
    .examples = {{"intact operation start retry --state error --error declined --dry-run "
                  "--reason 'the bank is back'",
                  "count them only"},
                 {"intact operation start retry --agent bank --rate 200/s --reason 'it is back'",
                  "tasks at the agent bank, 200 a second"},
                 {"intact operation start close --state error --before 2026-01-01T00:00:00Z "
                  "--reason 'written off'",
                  "close old tasks in error"},
                 {"intact operation start signal --workflow order --name reopened "
                  "--reason 'the shop is open'",
                  "a signal to all open orders"}},
    .exits = "1 if some tasks were refused or failed, or it was stopped",
    .run = run,
};
