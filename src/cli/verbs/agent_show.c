/* Calls the server about one agent, and shows the agent's limits, breaker and rule from the
 * answer (agent_show.h). For the verbs agent get, set, open, close and reset. */

#include "cli/verbs/agent_show.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/terminal/print.h"

/* False: there is no limit, and nothing was written. */
static bool limit_line(const struct json *l, const char *what)
{
    struct slice rate = json_get_text(l, "rate");
    int64_t at_once = json_get_int(l, "concurrency", 0);

    if (at_once == 0 && !rate.ptr)
        return false;
    print_line(stdout, "%-12s", what);
    if (at_once > 0)
        printf("%" PRId64 " at a time%s", at_once, rate.ptr ? ", " : "");
    if (rate.ptr)
        print_line(stdout, "%.*s", SLICE_ARG(rate));
    putchar('\n');
    return true;
}

static void show_limits(const struct json *limits)
{
    const struct json *actions = json_get(limits, "actions");

    if (!limit_line(limits, "limits") && actions && actions->child)
        puts("limits      of actions alone");
    for (const struct json *a = actions ? actions->child : NULL; a; a = a->next) {
        CLEANUP(buf_fini) struct buf what = {0};
        buf_fmt(&what, "  %.*s ", SLICE_ARG(a->key));
        limit_line(a, what.ptr);
    }
}

static void show_breaker(const struct json *b)
{
    struct slice until = json_get_text(b, "until");
    struct slice reason = json_get_text(b, "reason");

    print_line(stdout, "breaker     %.*s%s", SLICE_ARG(json_get_text(b, "state")),
               json_get_bool(b, "by_hand", false) ? ", by hand" : "");
    if (until.ptr)
        print_line(stdout, ", trials at %.*s", SLICE_ARG(until));
    if (reason.ptr)
        print_line(stdout, ": %.*s", SLICE_ARG(reason));
    putchar('\n');
}

static void show_rule(const struct json *b)
{
    struct slice slow = json_get_text(b, "slow");

    if (!json_get_bool(b, "enabled", true)) {
        puts("            it never opens by itself");
        return;
    }
    print_line(stdout, "            opens if of %" PRId64 " attempts or more in %.*s",
               json_get_int(b, "calls", 0), SLICE_ARG(json_get_text(b, "window")));
    print_line(stdout, " %" PRId64 "%% failed", json_get_int(b, "failures", 0));
    if (slow.ptr)
        print_line(stdout, ", or %" PRId64 "%% took longer than %.*s",
                   json_get_int(b, "slow_calls", 0), SLICE_ARG(slow));
    putchar('\n');
    print_line(stdout, "            waits %.*s to %.*s, then %" PRId64 " trials at a time",
               SLICE_ARG(json_get_text(b, "wait")), SLICE_ARG(json_get_text(b, "max_wait")),
               json_get_int(b, "trials", 0));
    putchar('\n');
}

static void show(const struct json *a)
{
    const struct json *settings = json_get(a, "settings");
    const struct json *instances = json_get(a, "instances");

    print_line(stdout, "agent       %.*s", SLICE_ARG(json_get_text(a, "agent")));
    putchar('\n');
    printf("instances   %u%s\n", instances ? instances->count : 0,
           json_get_bool(a, "connected", false) ? "" : ", not connected");
    show_limits(json_get(settings, "limits"));
    show_breaker(json_get(a, "breaker"));
    show_rule(json_get(settings, "breaker"));
}

bool agent_path(const struct invocation *in, const char *end, struct buf *ret)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
    const char *name = in->words[0];

    if (!name[0] || name[strspn(name, allowed)]) {
        verb_misused(in, "\"%s\" is no name of an agent", name);
        return false;
    }
    buf_fmt(ret, "/v1/agents/%s%s", name, end);
    return true;
}

int agent_ask(struct invocation *in, const char *method, const char *path, const struct buf *body)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;

    const struct json *answer = client_ask(c, method, path, body, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        show(answer);
    intact_client_free(c);
    return end;
}
