/* `intact agent set`: changes some settings of an agent. The API replaces all of them, so this
 * reads the present ones, changes those that flags name, and sends everything. agent_show.c shows
 * the result. */

#include <stdio.h>
#include <stdlib.h>

#include "cli/verbs.h"
#include "cli/verbs/agent_show.h"

enum group { LIMITS, BREAKER };

/* A flag for each member, with the same text as a number or a string. */
static const struct setting {
    const char *flag;
    const char *member;
    enum group group;
    bool is_number;
} settings[] = {
    {"concurrency", "concurrency", LIMITS, true},
    {"rate", "rate", LIMITS, false},
    {"calls", "calls", BREAKER, true},
    {"failures", "failures", BREAKER, true},
    {"slow", "slow", BREAKER, false},
    {"slow-calls", "slow_calls", BREAKER, true},
    {"window", "window", BREAKER, false},
    {"wait", "wait", BREAKER, false},
    {"max-wait", "max_wait", BREAKER, false},
    {"trials", "trials", BREAKER, true},
};

static const struct flag flags[] = {
    {.name = "concurrency",
     .value = "N",
     .help = "concurrent attempts of all instances; \"none\": no limit"},
    {.name = "rate", .value = "RATE", .help = "rate of attempts: 100/s, 600/m, 5000/h; \"none\""},
    {.name = "action",
     .value = "ACTION=LIMIT",
     .help = "the same for one action: charge=5, charge=600/m, charge=5,600/m;\n"
             "charge=none",
     .repeats = true},
    {.name = "breaker",
     .value = "SWITCH",
     .help = "whether the breaker opens by itself: on, off",
     .kind = WORD_CHOICE,
     .choices = "on off"},
    {.name = "calls", .value = "N", .help = "minimum number of attempts for a decision"},
    {.name = "failures", .value = "PERCENT", .help = "share that opens the breaker"},
    {.name = "slow",
     .value = "TIME",
     .help = "an attempt that takes longer is slow; \"none\": never"},
    {.name = "slow-calls", .value = "PERCENT", .help = "share that opens the breaker"},
    {.name = "window", .value = "TIME", .help = "older attempts do not count"},
    {.name = "wait",
     .value = "TIME",
     .help = "wait before the first trials; doubled with each failure"},
    {.name = "max-wait", .value = "TIME", .help = "longest wait"},
    {.name = "trials", .value = "N", .help = "concurrent attempts while half-open"},
    {.name = "file",
     .value = "FILE",
     .letter = 'f',
     .help = "all settings as JSON; \"-\" is standard input. Missing\nsettings get their default",
     .kind = WORD_FILE},
    {0},
};

static bool is_none(const char *text)
{
    return strcmp(text, "none") == 0;
}

static bool is_count(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

/* The server validates the value; here it only needs the right JSON type. */
static void put_value(struct buf *b, const char *text, bool is_number)
{
    if (is_none(text))
        json_null(b);
    else if (is_number && is_count(text))
        json_raw(b, slice_of(text));
    else
        json_string(b, slice_of(text));
}

/* The members of one group: from flags, otherwise as they are. */
static void put_members(struct buf *b, const struct invocation *in, const struct json *was,
                        enum group group)
{
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        const struct setting *s = &settings[i];
        const char *text = given(in, s->flag);
        if (s->group != group)
            continue;
        json_key(b, s->member);
        if (text)
            put_value(b, text, s->is_number);
        else
            json_raw(b, json_get_raw(was, s->member));
    }
}

/* "5,600/m" */
static void put_limit(struct buf *b, const char *text)
{
    const char *comma = strchr(text, ',');
    struct slice first = {text, comma ? (size_t)(comma - text) : strlen(text)};
    CLEANUP(buf_fini) struct buf concurrency = {0};

    buf_slice(&concurrency, first);
    bool counts = first.len > 0 && is_count(concurrency.ptr);
    json_open(b, '{');
    if (counts) {
        json_member_raw(b, "concurrency", first);
    }
    if (!counts || comma) {
        json_member_text(b, "rate", counts ? slice_of(comma + 1) : slice_of(text));
    }
    json_close(b, '}');
}

/* The limit that the flags give an action; NULL: none. The last one counts. */
static const char *said_of(const struct invocation *in, struct slice action)
{
    const char *text = NULL;
    const char *last = NULL;

    for (size_t at = 0; (text = given_next(in, "action", &at));) {
        const char *equals = strchr(text, '=');
        if (slice_eq((struct slice){text, (size_t)(equals - text)}, action))
            last = equals + 1;
    }
    return last;
}

static void put_action(struct buf *b, struct slice action, const char *limit)
{
    if (is_none(limit))
        return;
    json_key_slice(b, action);
    put_limit(b, limit);
}

static void put_actions(struct buf *b, const struct invocation *in, const struct json *was)
{
    const char *text = NULL;

    json_key(b, "actions");
    json_open(b, '{');
    for (const struct json *a = was ? was->child : NULL; a; a = a->next) {
        if (said_of(in, a->key))
            continue;
        json_key_slice(b, a->key);
        json_raw(b, a->raw);
    }
    for (size_t at = 0; (text = given_next(in, "action", &at));) {
        const char *equals = strchr(text, '=');
        const struct slice action = {text, (size_t)(equals - text)};
        if (said_of(in, action) == equals + 1)
            put_action(b, action, equals + 1);
    }
    json_close(b, '}');
}

static void put_all(struct buf *b, const struct invocation *in, const struct json *was)
{
    const struct json *limits = json_get(was, "limits");
    const struct json *breaker = json_get(was, "breaker");
    const char *on = given(in, "breaker");

    json_open(b, '{');
    json_key(b, "limits");
    json_open(b, '{');
    put_members(b, in, limits, LIMITS);
    put_actions(b, in, json_get(limits, "actions"));
    json_close(b, '}');
    json_key(b, "breaker");
    json_open(b, '{');
    json_member_bool(b, "enabled",
                     on ? strcmp(on, "on") == 0 : json_get_bool(breaker, "enabled", true));
    put_members(b, in, breaker, BREAKER);
    json_close(b, '}');
    json_close(b, '}');
}

/* Rejects what the server would refuse. "none" is only valid for members that may be empty. */
static bool value_ok(const struct invocation *in, const struct setting *s)
{
    const char *text = given(in, s->flag);
    bool may_be_none = s->group == LIMITS || strcmp(s->flag, "slow") == 0;
    int64_t ignored = 0;

    if (!text || (may_be_none && is_none(text)))
        return true;
    if (s->is_number)
        return given_number(in, s->flag, 1, 1000000, &ignored);
    if (s->group == BREAKER)
        return given_duration(in, s->flag, &ignored);
    if (strchr(text, '/'))
        return true;
    verb_misused(in, "--%s is \"%s\", expected a count and a unit such as 100/s", s->flag, text);
    return false;
}

static bool flags_ok(const struct invocation *in)
{
    const char *text = NULL;
    bool any = given(in, "breaker") || given(in, "action");

    for (size_t at = 0; (text = given_next(in, "action", &at));)
        if (!strchr(text, '=') || *text == '=') {
            verb_misused(in, "--action is \"%s\", expected ACTION=LIMIT such as charge=5", text);
            return false;
        }
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        any |= given(in, settings[i].flag) != NULL;
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        if (!value_ok(in, &settings[i]))
            return false;
    if (any && given(in, "file")) {
        verb_misused(in, "say either --file, which sets all, or single settings");
        return false;
    }
    if (!any && !given(in, "file")) {
        verb_misused(in, "say what to set, such as --concurrency 10");
        return false;
    }
    return true;
}

/* The current settings; an unknown agent has none. False: *ret_end is the status. */
static bool read_now(struct invocation *in, const char *path, struct buf *ret, int *ret_end)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    enum intact_status status = intact_client_call(c, "GET", path, NULL, NULL, 0);
    bool unknown = status == INTACT_REFUSED && intact_client_http_status(c) == 404;

    if (status == INTACT_OK) {
        const struct json *now = client_answer(c, &a);
        buf_slice(ret, json_get_raw(now, "settings"));
    } else if (!unknown) {
        *ret_end = client_complain(c, status);
    }
    intact_client_free(c);
    return status == INTACT_OK || unknown;
}

static int set_some(struct invocation *in, const char *path)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf now = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    struct json *was = NULL;
    int end = CLI_OK;

    if (!read_now(in, path, &now, &end))
        return end;
    if (now.len > 0 && json_parse(&a, buf_view(&now), &was, NULL) != ERR_OK)
        return verb_failed(in, CLI_NOT_WELL, "the server's answer has no settings");
    put_all(&body, in, was);
    return agent_ask(in, "PUT", path, &body);
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    const char *file = given(in, "file");

    if (!agent_path(in, "", &path) || !flags_ok(in))
        return CLI_USAGE;
    if (!file)
        return set_some(in, path.ptr);
    if (!client_read_file(file, &body))
        return CLI_USAGE;
    return agent_ask(in, "PUT", path.ptr, &body);
}

const struct verb verb_agent_set = {
    .noun = "agent",
    .name = "set",
    .summary = "set limits and breaker of an agent",
    .about = "Sets concurrency, rate and breaker of an agent. Settings without a "
             "flag stay unchanged.",
    .arguments = {{.name = "NAME", .kind = WORD_AGENT}},
    .flags = flags,
    .examples = {{"intact agent set payment --concurrency 20 --rate 100/s",
                  "limit the load on the service"},
                 {"intact agent set payment --action charge=5 --action refund=600/m",
                  "limits for single actions"},
                 {"intact agent set payment --calls 10 --failures 50 --window 10s",
                  "a more sensitive breaker"},
                 {"intact agent set payment --breaker off", "a breaker that never opens by itself"},
                 {"intact agent set payment --file payment.json", "all settings from a file"}},
    .run = run,
};
