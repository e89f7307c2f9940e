#include "cli/client.h"

#include <stdio.h>

static const char usage[] =
    "usage: intact get ID [--wait TIME]\n"
    "\n"
    "Shows one task: its state, its steps, what went wrong. Exit status 0; with --wait 1 if it did "
    "not\n"
    "end, or did not end processed.\n"
    "\n"
    "  --wait TIME       until it has ended, at most so long\n" CLIENT_USAGE;

static bool take(void *arg, int flag, const char *value)
{
    int64_t *wait_ms = arg;

    return flag == 'w' && client_duration("--wait", value, wait_ms);
}

static int show(struct intact_client *c, const struct client_flags *f, bool judge)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *task = client_answer(c, &a);

    if (!task)
        return CLI_NOT_WELL;
    if (f->json)
        client_print_body(c);
    else
        client_print_task(task);
    return judge ? client_task_status(task) : CLI_OK;
}

int cli_get(int argc, char **argv)
{
    static const struct option flags[] = {CLIENT_FLAGS,
                                          {"wait", required_argument, NULL, 'w'},
                                          {NULL, 0, NULL, 0}};
    struct client_flags common = {0};
    int64_t wait_ms = -1;
    const struct flag_reader reader = {usage, flags, take, &wait_ms};
    int bad = client_read_flags(argc, argv, &reader, &common);

    if (bad)
        return bad < 0 ? CLI_OK : bad;
    if (argc - optind != 1) {
        fputs(usage, stderr);
        return CLI_USAGE;
    }
    struct intact_client *c = client_open(&common);
    enum intact_status status = wait_ms < 0 ? intact_client_get(c, argv[optind], 0)
                                            : intact_client_wait(c, argv[optind], wait_ms);
    int end = status == INTACT_OK || status == INTACT_TIMEOUT ? show(c, &common, wait_ms >= 0)
                                                              : client_complain(c, status);
    if (status == INTACT_TIMEOUT)
        fprintf(stderr, "intact: %s\n", intact_client_error(c));
    intact_client_free(c);
    return end;
}
