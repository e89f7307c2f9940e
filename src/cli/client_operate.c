#include "cli/client.h"

#include <stdio.h>

/* The operator's hands, and the submitter's: retry, skip, undo, cancel. One table serves all. */

struct operation {
    const char *verb;
    const char *usage;
    bool step, output;
};

#define REASON "  --reason TEXT     why: it stays on record; required\n" CLIENT_USAGE

static const struct operation operations[] = {
    {"retry",
     "usage: intact retry TASK [--step STEP] --reason TEXT\n"
     "\n"
     "Tries a task that stopped in error again, in the direction in which it went: all that "
     "failed, or\n"
     "one step. Ask for it when what made it fail is mended.\n"
     "\n"
     "  intact retry o-17 --reason 'the card service is back'\n"
     "\n"
     "  --step STEP       this one only\n" REASON,
     true, false},
    {"skip",
     "usage: intact skip TASK --step STEP [--output JSON] --reason TEXT\n"
     "\n"
     "Takes a step for done that was done by other means, or need not be done. What is in doubt "
     "stays\n"
     "in doubt for a later undo. On the way back it takes the step for undone.\n"
     "\n"
     "  intact skip o-17 --step charge --output '{\"receipt\": 5}' --reason 'paid in cash'\n"
     "\n"
     "  --step STEP       which one; required\n"
     "  --output JSON     what it would have answered   [null]\n" REASON,
     true, true},
    {"undo",
     "usage: intact undo TASK --reason TEXT\n"
     "\n"
     "Turns a task back, whether it is on its way or stopped in error: every effect, certain or "
     "in\n"
     "doubt, is compensated. Not possible once its pivot has completed.\n"
     "\n"
     "  intact undo o-17 --reason 'the customer withdrew'\n"
     "\n" REASON,
     false, false},
    {"cancel",
     "usage: intact cancel TASK --reason TEXT\n"
     "\n"
     "Undoes a task that is not wanted any more. As undo, for whoever submitted it: a task that "
     "stopped\n"
     "in error is left to the operator.\n"
     "\n"
     "  intact cancel o-17 --reason 'ordered twice'\n"
     "\n" REASON,
     false, false},
};

struct arguments {
    const struct operation *op;
    const char *step, *output, *reason;
};

static bool take(void *arg, int flag, const char *value)
{
    struct arguments *a = arg;

    switch (flag) {
    case 'r':
        a->reason = value;
        return true;
    case 's':
        a->step = value;
        return true;
    case 'o':
        a->output = value;
        return true;
    default:
        fputs(a->op->usage, stderr);
        return false;
    }
}

/* What the server would refuse is told at once, with how to say it. */
static bool is_complete(const struct arguments *a)
{
    const char *verb = a->op->verb;

    if (!a->reason || !*a->reason) {
        fprintf(stderr, "intact %s: say why: --reason TEXT; it stays on record\n", verb);
        return false;
    }
    if (a->op->output && !a->step) {
        fprintf(stderr, "intact %s: say which step: --step STEP\n", verb);
        return false;
    }
    return true;
}

static bool render(const struct arguments *a, struct buf *b)
{
    json_open(b, '{');
    if (a->step) {
        json_key(b, "step");
        json_string(b, slice_of(a->step));
    }
    if (a->output) {
        CLEANUP(arena_fini) struct arena arena = {0};
        struct json_fault fault = {0};
        struct json *j = NULL;
        if (json_parse(&arena, slice_of(a->output), &j, &fault) != ERR_OK) {
            fprintf(stderr, "intact %s: --output is not JSON: column %u: %s\n", a->op->verb,
                    fault.column, fault.what);
            return false;
        }
        json_key(b, "output");
        json_raw(b, slice_of(a->output));
    }
    json_key(b, "reason");
    json_string(b, slice_of(a->reason));
    json_close(b, '}');
    return true;
}

static int ask(const struct client_flags *f, const struct arguments *a, const char *task,
               const struct buf *body)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct intact_client *c = client_open(f);
    int end = CLI_NOT_WELL;

    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(task));
    buf_fmt(&path, "/%s", a->op->verb);
    enum intact_status status =
        intact_client_call(c, "POST", path.ptr, "application/json", body->ptr, body->len);
    const struct json *answer = status == INTACT_OK ? client_answer(c, &arena) : NULL;
    if (status != INTACT_OK) {
        end = client_complain(c, status);
    } else if (answer) {
        if (f->json)
            client_print_body(c);
        else
            client_print_task(answer);
        end = CLI_OK;
    }
    intact_client_free(c);
    return end;
}

int cli_operate(int argc, char **argv)
{
    static const struct option flags[] = {CLIENT_FLAGS,
                                          {"reason", required_argument, NULL, 'r'},
                                          {"step", required_argument, NULL, 's'},
                                          {"output", required_argument, NULL, 'o'},
                                          {NULL, 0, NULL, 0}};
    struct arguments a = {.op = operations};
    struct client_flags common = {0};
    CLEANUP(buf_fini) struct buf body = {0};

    while (strcmp(a.op->verb, argv[0]) != 0)
        a.op++; /* main() knows no other */
    const struct flag_reader reader = {a.op->usage, flags, take, &a};
    int bad = client_read_flags(argc, argv, &reader, &common);
    if (bad)
        return bad < 0 ? CLI_OK : bad;
    if (argc - optind != 1 || (a.step && !a.op->step) || (a.output && !a.op->output)) {
        fputs(a.op->usage, stderr);
        return CLI_USAGE;
    }
    if (!is_complete(&a) || !render(&a, &body))
        return CLI_USAGE;
    return ask(&common, &a, argv[optind], &body);
}
