/* `intact get`: a task's record; with --wait, after its end. task_show.c shows it, family_show.c
 * its family. list.c lists tasks, watch.c follows one. */

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/family_show.h"
#include "cli/verbs/task_show.h"

static int show(const struct invocation *in, struct intact_client *c, bool judge)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *task = client_answer(c, &a);

    if (!task)
        return CLI_NOT_WELL;
    int end = judge ? client_task_status(task) : CLI_OK;
    if (given(in, "family")) {
        const int shown = family_show(in, c, task);
        return shown == CLI_OK ? end : shown;
    }
    if (given(in, "json"))
        client_print_body(c);
    else
        task_show(in, task);
    return end;
}

static int run(struct invocation *in)
{
    int64_t wait_ms = -1;

    if (!given_duration(in, "wait", &wait_ms))
        return CLI_USAGE;
    if (given(in, "family") && given(in, "json"))
        return verb_misused(in, "--family shows a tree; intact list --root ROOT --all --json has "
                                "the same tasks for programs");
    struct intact_client *c = client_begin(in);
    enum intact_status status = wait_ms < 0 ? intact_client_get(c, in->words[0], 0)
                                            : intact_client_wait(c, in->words[0], wait_ms);
    bool shown = status == INTACT_OK || status == INTACT_TIMEOUT;
    if (status == INTACT_TIMEOUT)
        verb_failed(in, CLI_NOT_WELL, "%s", intact_client_error(c));
    int end = shown ? show(in, c, wait_ms >= 0) : client_complain(c, status);
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {
    {.name = "wait", .value = "TIME", .help = "wait for the end, at most this long"},
    {.name = "family",
     .help = "show the whole family of the task as a tree: its root, and all descendants of that"},
    {0},
};

const struct verb verb_get = {
    .name = "get",
    .summary = "show one task",
    .about = "Shows a task: state, steps, errors.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}},
    .flags = flags,
    .examples = {{"intact get o-17", "current state"},
                 {"intact get o-17 --wait 30s", "wait for the end"},
                 {"intact get o-17 --json | jq .output", "its output"},
                 {"intact get o-17 --family", "with all tasks that its steps started"}},
    .exits = "1 if there is no such task, or with --wait if it did not end as processed",
    .run = run,
};
