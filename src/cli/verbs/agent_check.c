/* `intact agent check`: runs the scenarios of src/agents/check against an agent, and reports them
 * on the terminal, as JSON, or as JUnit XML. */

#include "agents/check/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

#include "base/when.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "config/config_reader.h"
#include "json/json.h"

enum { NAMES_MAX = 128 };

/* The outputs of a run. */
struct report {
    const struct invocation *in;
    struct buf json, junit;
    unsigned count;
};

static void on_verdict(void *arg, const struct check_verdict *v)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct report *r = arg;

    check_write_junit(&r->junit, v);
    check_write_json(&r->json, v);
    r->count++;
    if (given(r->in, "json"))
        return;
    check_write_text(&b, v);
    print_text(stdout, buf_view(&b));
    (void)fflush(stdout);
}

/* ---- arguments ---- */

static bool read_names(const struct invocation *in, const char *flag, const char *names[NAMES_MAX])
{
    const char *name = NULL;
    size_t n = 0;

    for (size_t at = 0; (name = given_next(in, flag, &at)); n++) {
        const char *near = NULL;
        for (size_t i = 0; i < check_scenario_count; i++)
            if (name_is_near(slice_of(name), slice_of(check_scenarios[i].name)))
                near = check_scenarios[i].name;
        if (!check_scenario_find(name)) {
            verb_misused(in, "--%s: there is no scenario \"%s\"%s%s; --list shows them", flag, name,
                         near ? ", did you mean " : "", near ? near : "");
            return false;
        }
        if (n + 1 >= NAMES_MAX) {
            verb_misused(in, "--%s was given more than %d times", flag, NAMES_MAX - 1);
            return false;
        }
        names[n] = name;
    }
    return true;
}

static bool check_input(const struct invocation *in, const char *input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (!input || json_parse_within(&a, slice_of(input), JSON_DEPTH_OUTSIDE, &j, &fault) == ERR_OK)
        return true;
    verb_misused(in, "--input is no JSON: line %u, column %u: %s", fault.line, fault.column,
                 fault.what);
    return false;
}

/* "http://127.0.0.1:7421": an address of this machine that the agent must call. */
static const char *address_of(const char *word, char *to, size_t size)
{
    static const char scheme[] = "http://";

    if (strncmp(word, scheme, strlen(scheme)) != 0)
        return NULL;
    (void)snprintf(to, size, "%s", word + strlen(scheme));
    size_t len = strlen(to);
    if (len > 0 && to[len - 1] == '/')
        to[len - 1] = 0;
    return to;
}

static bool read_target(const struct invocation *in, struct check_settings *set, char *address,
                        size_t size)
{
    if (in->word_count == 0) {
        verb_misused(in, "a command, behind --, or an address to listen at is missing");
        return false;
    }
    set->listen = address_of(in->words[0], address, size);
    if (!set->listen && strncmp(in->words[0], "https://", 8) == 0) {
        verb_misused(in, "%s: agents are checked by http:// alone", in->words[0]);
        return false;
    }
    if (set->listen && in->word_count > 1) {
        verb_misused(in, "\"%s\" is one word too many behind an address", in->words[1]);
        return false;
    }
    set->command = set->listen ? NULL : in->words;
    return true;
}

static bool read_settings(const struct invocation *in, struct check_settings *set,
                          const char *only[NAMES_MAX], const char *except[NAMES_MAX])
{
    set->agent = given(in, "agent");
    set->action = given(in, "action");
    set->undo = given(in, "undo");
    set->input = given(in, "input");
    set->effects = given(in, "effects");
    set->only = only;
    set->except = except;
    set->verbose = given(in, "verbose") != NULL;
    if (set->undo && !set->action) {
        verb_misused(in, "--undo needs --action, the action that it undoes");
        return false;
    }
    if (set->input && !set->action) {
        verb_misused(in, "--input needs --action, the action that it is for");
        return false;
    }
    if (set->effects && !set->action) {
        verb_misused(in, "--effects needs --action, the action whose effects it counts");
        return false;
    }
    if (!given_duration(in, "patience", &set->patience_ms)
        || !given_duration(in, "limit", &set->limit_ms) || !check_input(in, set->input))
        return false;
    return read_names(in, "only", only) && read_names(in, "except", except);
}

/* ---- results ---- */

static int write_junit(const struct report *r, const struct check_sum *sum, int64_t took_ms)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *path = given(r->in, "junit");
    FILE *f = path ? fopen(path, "we") : NULL;

    if (!path)
        return CLI_OK;
    check_junit_head(&b, sum, took_ms);
    buf_slice(&b, buf_view(&r->junit));
    check_junit_tail(&b);
    bool ok = f && fwrite(b.ptr, 1, b.len, f) == b.len;
    ok = (!f || fclose(f) == 0) && ok;
    return ok ? CLI_OK : verb_failed(r->in, CLI_USAGE, "%s: %s", path, strerror(errno));
}

static void print_json(const struct report *r, const struct check_sum *sum)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "agent", slice_of(sum->agent));
    json_member_number(&b, "ok", sum->ok);
    json_member_number(&b, "wrong", sum->wrong);
    json_member_number(&b, "skipped", sum->skipped);
    json_member_bool(&b, "complete", !sum->is_broken_off);
    json_key(&b, "scenarios");
    buf_fmt(&b, "[%.*s]", SLICE_ARG(buf_view(&r->json)));
    json_close(&b, '}');
    buf_byte(&b, '\n');
    print_text(stdout, buf_view(&b)); /* it quotes the agent */
}

static int list(const struct invocation *in)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (given(in, "json")) {
        check_list_json(&b);
        puts(b.ptr);
        return CLI_OK;
    }
    for (size_t i = 0; i < check_scenario_count; i++)
        printf("%-20s %-7s %s\n", check_scenarios[i].name,
               check_level_text(check_scenarios[i].level), check_scenarios[i].must);
    return CLI_OK;
}

static int finish(const struct report *r, const struct check_sum *sum, int64_t took_ms)
{
    int end = write_junit(r, sum, took_ms);

    if (given(r->in, "json"))
        print_json(r, sum);
    else
        printf("%u ok, %u wrong, %u skipped\n", sum->ok, sum->wrong, sum->skipped);
    if (sum->is_broken_off || sum->wrong > 0 || sum->ok == 0)
        return end ? end : CLI_NOT_WELL;
    return end;
}

static int run(struct invocation *in)
{
    struct report r = {.in = in};
    const char *only[NAMES_MAX] = {0};
    const char *except[NAMES_MAX] = {0};
    char address[128];
    struct error e = {0};
    struct check_sum sum;
    struct check_settings set = {.patience_ms = MS_PER_MIN, .limit_ms = MS_PER_H};
    int64_t began = clock_steady_ms();

    if (!read_settings(in, &set, only, except))
        return CLI_USAGE;
    if (given(in, "list"))
        return list(in);
    if (!read_target(in, &set, address, sizeof address))
        return CLI_USAGE;
    if (set.listen && !given(in, "json")) {
        printf("waiting for an agent to call http://%s\n", set.listen);
        (void)fflush(stdout);
    }
    enum err err = check_run(&set, on_verdict, &r, &sum, &e);
    int end = err == ERR_OK ? finish(&r, &sum, clock_steady_ms() - began)
                            : verb_failed(in, CLI_USAGE, "%s", e.text);
    buf_fini(&r.json);
    buf_fini(&r.junit);
    return end;
}

static const struct flag flags[] = {
    {"agent", "NAME", "agent name in its calls", "the first one that it uses", WORD_AGENT, NULL, 0,
     false},
    {"action", "ACTION", "action to request; it completes with --input",
     "the actions of docs/agent-check.md", WORD_ANY, NULL, 0, false},
    {"undo", "ACTION", "action that undoes it", "scenarios with undo are skipped", WORD_ANY, NULL,
     0, false},
    {"input", "JSON", "input of the action", "{}", WORD_ANY, NULL, 0, false},
    {"effects", "COMMAND",
     "command that prints a whole number: each effect of the action changes it by the same amount, "
     "its undo changes it back",
     "scenarios that count effects are skipped", WORD_ANY, NULL, 0, false},
    {"only", "SCENARIO", "run this scenario", NULL, WORD_ANY, NULL, 0, true},
    {"except", "SCENARIO", "skip this scenario", NULL, WORD_ANY, NULL, 0, true},
    {"patience", "TIME", "how long to wait for an expected event", "1m", WORD_ANY, NULL, 0, false},
    {"limit", "TIME", "upper bound on the whole run", "1h", WORD_ANY, NULL, 0, false},
    {"list", NULL, "list the scenarios only", NULL, WORD_ANY, NULL, 0, false},
    {"json", NULL, "verdicts as JSON", NULL, WORD_ANY, NULL, 0, false},
    {"junit", "FILE", "also write verdicts to this file, as JUnit XML", NULL, WORD_FILE, NULL, 0,
     false},
    {"verbose", NULL, "show the agent's output on standard error", NULL, WORD_ANY, NULL, 'v',
     false},
    {0},
};

const struct verb verb_agent_check = {
    .noun = "agent",
    .name = "check",
    .summary = "test an agent",
    .about = "Plays the server against an agent, and reports for each scenario "
             "whether the agent does what docs/agents.md requires. The agent is a "
             "command, started for each scenario with INTACT_SERVER and "
             "INTACT_TOKEN set, or an address to listen on, which a running agent "
             "calls.\n\nFor any agent, pass one action, an input that completes, "
             "and the action that undoes it. Use test accounts. An agent with the "
             "actions of docs/agent-check.md gets more scenarios. No server is "
             "needed.",
    .arguments = {{.name = "COMMAND|URL", .kind = WORD_FILE, .optional = true, .repeats = true}},
    .flags = flags,
    .examples =
        {{"intact agent check --action charge --undo refund --input '{\"amount\": 7}' -- ./payment",
          "an agent of your own"},
         {"intact agent check -- python3 conformance.py", "an agent with the known actions"},
         {"intact agent check http://127.0.0.1:7421 --action charge",
          "an agent that was started separately"},
         {"intact agent check --list", "all scenarios"}},
    .exits = "1 if a scenario failed, or not all could be run",
    .is_local = true,
    .run = run,
};
