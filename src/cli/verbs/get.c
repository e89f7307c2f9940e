/* `intact get`: a task's record; with --wait, after its end. task_show.c shows it. list.c lists
 * tasks, watch.c follows one. */

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/task_show.h"

static int show(const struct invocation *in, struct intact_client *c, bool judge)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *task = client_answer(c, &a);

    if (!task)
        return CLI_NOT_WELL;
    if (given(in, "json"))
        client_print_body(c);
    else
        task_show(in, task);
    return judge ? client_task_status(task) : CLI_OK;
}

static int run(struct invocation *in)
{
    int64_t wait_ms = -1;

    if (!given_duration(in, "wait", &wait_ms))
        return CLI_USAGE;
    struct intact_client *c = client_begin(in);
    enum intact_status status = wait_ms < 0 ? intact_client_get(c, in->words[0], 0)
                                            : intact_client_wait(c, in->words[0], wait_ms);
    int end = status == INTACT_OK || status == INTACT_TIMEOUT ? show(in, c, wait_ms >= 0)
                                                              : client_complain(c, status);
    if (status == INTACT_TIMEOUT)
        verb_failed(in, end, "%s", intact_client_error(c));
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {
    {.name = "wait", .value = "TIME", .help = "wait for the end, at most this long"},
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
                 {"intact get o-17 --json | jq .output", "its output"}},
    .exits = "1 if there is no such task, or with --wait if it did not end as processed",
    .run = run,
};
