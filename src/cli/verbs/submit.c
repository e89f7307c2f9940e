/* `intact submit`: submits one task from flags, and shows it, after its end if --wait says so.
 * Many tasks from a file or a pipe are in submit_file.c. */

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "cli/verbs/submit_file.h"
#include "cli/verbs/task_show.h"

/* Reads --input. False: invalid, which was reported. */
static bool read_input(const struct invocation *in, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const char *input = given(in, "input");
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (input && (input[0] == '@' || strcmp(input, "-") == 0)) {
        if (!client_read_file(input[0] == '@' ? input + 1 : input, ret))
            return false;
    } else {
        buf_str(ret, input ? input : "{}");
    }
    if (json_parse(&a, buf_view(ret), &j, &fault) == ERR_OK)
        return true;
    verb_misused(in, "--input is not JSON: line %u, column %u: %s", fault.line, fault.column,
                 fault.what);
    return false;
}

static bool add_number(const struct invocation *in, struct buf *b, const char *flag, int64_t min,
                       int64_t max)
{
    int64_t n = 0;

    if (!given(in, flag))
        return true;
    if (!given_number(in, flag, min, max, &n))
        return false;
    json_member_number(b, flag, n);
    return true;
}

static bool add_tags(const struct invocation *in, struct buf *b)
{
    const char *tag = NULL;

    if (!given(in, "tag"))
        return true;
    json_key(b, "tags");
    json_open(b, '{');
    for (size_t at = 0; (tag = given_next(in, "tag", &at));) {
        const char *equals = strchr(tag, '=');
        if (!equals) {
            verb_misused(in, "--tag is \"%s\", expected KEY=VALUE", tag);
            return false;
        }
        json_key_slice(b, (struct slice){tag, (size_t)(equals - tag)});
        json_string(b, slice_of(equals + 1));
    }
    json_close(b, '}');
    return true;
}

/* The server validates the events. */
static bool add_reply_to(const struct invocation *in, struct buf *b)
{
    const char *text = given(in, "events");

    if (!text) {
        json_member_text_if(b, "reply_to", slice_of(given(in, "reply-to")));
        return true;
    }
    if (!given(in, "reply-to")) {
        verb_misused(in, "--events goes with --reply-to only");
        return false;
    }
    json_key(b, "reply_to");
    json_open(b, '{');
    json_member_text_if(b, "to", slice_of(given(in, "reply-to")));
    if (strcmp(text, "all") == 0) {
        json_member_text_if(b, "events", slice_of(text));
        text = NULL;
    } else {
        json_key(b, "events");
        json_open(b, '[');
    }
    for (const char *part = text; part;) {
        size_t len = strcspn(part, ",");
        json_string(b, (struct slice){part, len});
        part = part[len] ? part + len + 1 : NULL;
    }
    if (text)
        json_close(b, ']');
    json_close(b, '}');
    return true;
}

/* The members that are the same for all tasks of a command line. */
static bool write_head(const struct invocation *in, struct buf *b)
{
    json_member_text_if(b, "workflow", slice_of(in->words[0]));
    if (!add_number(in, b, "version", 1, INT32_MAX) || !add_number(in, b, "priority", 0, 9)
        || !given_moment(in, "not-before"))
        return false;
    json_member_text_if(b, "not_before", slice_of(given(in, "not-before")));
    if (given(in, "paused")) {
        json_member_bool(b, "paused", true);
    }
    json_member_text_if(b, "traceparent", slice_of(getenv("TRACEPARENT")));
    return add_reply_to(in, b) && add_tags(in, b);
}

static bool write_task(const struct invocation *in, struct buf *b)
{
    CLEANUP(buf_fini) struct buf input = {0};

    json_open(b, '{');
    if (!write_head(in, b))
        return false;
    json_member_text_if(b, "id", slice_of(given(in, "id")));
    if (!read_input(in, &input))
        return false;
    json_member_raw(b, "input", buf_view(&input));
    json_close(b, '}');
    return true;
}

static void show(const struct invocation *in, const struct intact_client *c,
                 const struct json *task, bool whole)
{
    if (given(in, "json"))
        client_print_body(c);
    else if (whole)
        task_show(in, task);
    else {
        print_text(stdout, json_get_text(task, "id"));
        putchar('\n');
    }
}

static int wait_for_end(const struct invocation *in, struct intact_client *c, const char *id,
                        int64_t wait_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum intact_status status = intact_client_wait(c, id, wait_ms);

    if (status != INTACT_OK && status != INTACT_TIMEOUT)
        return client_complain(c, status);
    const struct json *task = client_answer(c, &a);
    if (!task)
        return CLI_NOT_WELL;
    show(in, c, task, true);
    int end = client_task_status(task);
    return status == INTACT_TIMEOUT ? verb_failed(in, end, "%s", intact_client_error(c)) : end;
}

static int submit(const struct invocation *in, const struct buf *body, int64_t wait_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    enum intact_status status = intact_client_submit(c, body->ptr, 0);
    const struct json *task = status == INTACT_OK ? client_answer(c, &a) : NULL;
    int end = CLI_OK;

    if (!task) {
        end = status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    } else if (wait_ms >= 0) {
        struct slice id = arena_copy(&a, json_get_text(task, "id")); /* the answer is freed */
        end = wait_for_end(in, c, id.ptr ? id.ptr : "", wait_ms);
    } else {
        show(in, c, task, false);
    }
    intact_client_free(c);
    return end;
}

static int submit_one(const struct invocation *in)
{
    CLEANUP(buf_fini) struct buf body = {0};
    int64_t wait_ms = -1;

    if (!given_duration(in, "wait", &wait_ms) || !write_task(in, &body))
        return CLI_USAGE;
    return submit(in, &body, wait_ms);
}

/* The first given flag of the list; NULL: none. */
static const char *one_of(const struct invocation *in, const char *const *names)
{
    for (; *names; names++)
        if (given(in, *names))
            return *names;
    return NULL;
}

static int submit_many(const struct invocation *in)
{
    static const char *const of_one[] = {"id", "input", NULL};
    static const char *const of_all[] = {"version", "priority", "not-before", "tag", "reply-to",
                                         "events",  "id-from",  "paused",     NULL};
    CLEANUP(buf_fini) struct buf head = {0};
    const char *odd = one_of(in, of_one);

    if (odd)
        return verb_misused(in, "--%s is of one task, and --file has many", odd);
    if (in->word_count > 0)
        return write_head(in, &head) ? submit_file(in, buf_view(&head)) : CLI_USAGE;
    odd = one_of(in, of_all);
    if (odd)
        return verb_misused(in,
                            "--%s takes a WORKFLOW beside --file; without one each line says "
                            "all of its task",
                            odd);
    return submit_file(in, SLICE_NONE);
}

static int run(struct invocation *in)
{
    static const char *const of_many[] = {"id-from",   "rejects",   "run-id",
                                          "from-line", "retry-for", NULL};
    const char *odd = one_of(in, of_many);

    if (given(in, "file"))
        return submit_many(in);
    if (in->word_count == 0)
        return verb_misused(in, "WORKFLOW is missing, or --file FILE");
    if (odd)
        return verb_misused(in, "--%s goes with --file only", odd);
    return submit_one(in);
}

static const struct flag flags[] = {
    {.name = "input",
     .value = "JSON",
     .help = "input of the task; @FILE reads a file, - standard input",
     .initial = "{}"},
    {.name = "id",
     .value = "ID",
     .help = "id of the task: 1 to 128 of [A-Za-z0-9._:-]",
     .initial = "generated by the server"},
    {.name = "version", .value = "N", .help = "version of the workflow", .initial = "the newest"},
    {.name = "priority", .value = "N", .help = "priority: 0 to 9, higher first", .initial = "5"},
    {.name = "paused", .help = "submit it paused"},
    {.name = "not-before", .value = "DATE", .help = "start time: 2026-01-31T10:00:00Z"},
    {.name = "tag", .value = "KEY=VALUE", .help = "tag for filters", .repeats = true},
    {.name = "reply-to", .value = "URL", .help = "target of status messages"},
    {.name = "events",
     .value = "EVENTS",
     .help = "events for --reply-to, separated by commas, or all",
     .initial = "all but progress, paused, resumed"},
    {.name = "wait",
     .value = "TIME",
     .help = "wait for the end, at most this long; with --file for each task"},
    {.name = "file",
     .letter = 'f',
     .value = "FILE",
     .help = "many tasks, one per line; - is standard input",
     .kind = WORD_FILE},
    {.name = "id-from",
     .value = "MEMBER",
     .help = "member of the input that is the task's id; with --file and WORKFLOW"},
    {.name = "rejects",
     .value = "FILE",
     .help = "file for refused lines of --file; with --from-line they are appended",
     .kind = WORD_FILE},
    {.name = "run-id",
     .value = "ID",
     .help = "lines of --file without an id get ID-1, ID-2, ...",
     .initial = "random"},
    {.name = "from-line", .value = "N", .help = "first line of --file to submit", .initial = "1"},
    {.name = "retry-for",
     .value = "TIME",
     .help = "with --file: how long to retry",
     .initial = "1m"},
    {0},
};

const struct verb verb_submit = {
    .name = "submit",
    .summary = "submit one task, or many from a file",
    .about = "Submits one task, or many from a file or a pipe, one per line. A line "
             "is a submission: {\"workflow\": \"order\", \"id\": \"o-1\", "
             "\"input\": {...}}; with WORKFLOW and --file, a line is an input.\n\n"
             "With ids, a repeated submission is the same task. Lines without an id "
             "get one from --run-id and their number, so that a file can be "
             "submitted again.\n\nThe command retries while the server is busy or "
             "restarts. After Ctrl-C it prints how to continue. --rejects writes "
             "{\"line\", \"status\", \"reason\", \"text\"} for each refused line.",
    .arguments = {{.name = "WORKFLOW", .kind = WORD_WORKFLOW, .optional = true}},
    .flags = flags,
    .examples = {{"intact submit order --id o-17 --input '{\"amount\": 5}'", "one task"},
                 {"intact submit order --input @order.json --wait 30s", "wait for the end"},
                 {"intact submit --file orders.ndjson --rejects refused.ndjson", "many"},
                 {"intact submit order --file inputs.ndjson --id-from number --tag shop=north",
                  "many inputs of one workflow"},
                 {"generate | intact submit --file - --run-id 2026-01-31",
                  "from a pipe; can be repeated as a whole"}},
    .exits = "1 if the server refused any, or with --wait if one did not end as processed",
    .run = run,
};
