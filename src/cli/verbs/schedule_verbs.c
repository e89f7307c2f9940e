/* `intact schedule list`, `get`, `next`, `pause`, `resume`, `run`, `backfill` and `delete`: verbs
 * for stored schedules. schedule_put.c stores one. */

#include <stdio.h>

#include "base/when.h"
#include "cli/client/client.h"
#include "cli/client/table.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"

static void write_path(struct buf *path, const struct invocation *in, const char *verb)
{
    buf_str(path, "/v1/schedules/");
    client_escape(path, slice_of(in->words[0]));
    if (verb)
        buf_fmt(path, "/%s", verb);
}

/* ---- list ---- */

static void add_rows(struct table *t, const struct json *list)
{
    for (const struct json *j = list ? list->child : NULL; j; j = j->next) {
        const struct json *counts = json_get(j, "counts");
        table_add(t, json_get_text(j, "name"));
        table_add(t, json_get_raw(j, "version"));
        table_add(t, json_get_text(j, "workflow"));
        table_add(t, json_get_text(j, "state"));
        table_add_time(t, json_get_text(j, "next_at"));
        table_add(t, json_get_raw(counts, "fired"));
        table_add(t, json_get_raw(counts, "missed"));
        table_add(t, json_get_raw(counts, "skipped"));
        table_add(t, json_get_text(j, "run"));
    }
}

static int list(struct invocation *in)
{
    static const char *const heads[] = {"NAME",  "VERSION", "WORKFLOW", "STATE",    "NEXT",
                                        "FIRED", "MISSED",  "SKIPPED",  "OPEN RUN", NULL};
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(table_fini) struct table t = {0};
    int64_t limit = 50;
    int end = CLI_OK;

    if (!given_number(in, "limit", 1, 500, &limit))
        return CLI_USAGE;
    buf_fmt(&path, "/v1/schedules?limit=%" PRId64, limit);
    if (given(in, "after")) {
        buf_str(&path, "&cursor=");
        client_escape(&path, slice_of(given(in, "after")));
    }
    struct intact_client *c = client_begin(in);
    const struct json *page = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    if (page && given(in, "json")) {
        client_print_body(c);
    } else if (page) {
        table_begin(&t, in, heads);
        add_rows(&t, json_get(page, "schedules"));
        table_print(&t);
    }
    intact_client_free(c);
    return end;
}

/* ---- one ---- */

static void print_text_of(const struct intact_client *c, const struct json *answer)
{
    struct slice yaml = json_get_text(answer, "text");
    struct slice text = yaml.ptr ? yaml : json_get_raw(answer, "definition");

    if (!text.ptr) {
        client_print_body(c);
        return;
    }
    print_text(stdout, text);
    if (text.len == 0 || text.ptr[text.len - 1] != '\n')
        putchar('\n');
}

static int get(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    int64_t version = 0;
    int end = CLI_OK;

    if (!given_number(in, "version", 1, INT32_MAX, &version))
        return CLI_USAGE;
    write_path(&path, in, NULL);
    if (version > 0)
        buf_fmt(&path, "/versions/%" PRId64, version);
    struct intact_client *c = client_begin(in);
    const struct json *answer = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        print_text_of(c, answer);
    intact_client_free(c);
    return end;
}

static int next(struct invocation *in)
{
    static const char *const heads[] = {"TIME", "LOCAL", "DUE", NULL};
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(table_fini) struct table t = {0};
    int64_t count = 10;
    int end = CLI_OK;

    if (!given_number(in, "count", 1, 100, &count))
        return CLI_USAGE;
    write_path(&path, in, "next");
    buf_fmt(&path, "?count=%" PRId64, count);
    struct intact_client *c = client_begin(in);
    const struct json *answer = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    if (answer && given(in, "json")) {
        client_print_body(c);
    } else if (answer) {
        const struct json *moments = json_get(answer, "moments");
        table_begin(&t, in, heads);
        for (const struct json *j = moments ? moments->child : NULL; j; j = j->next) {
            table_add(&t, json_get_text(j, "time"));
            table_add(&t, json_get_text(j, "local"));
            table_add(&t, json_get_text(j, "due_at"));
        }
        table_print(&t);
    }
    intact_client_free(c);
    return end;
}

/* ---- changes ---- */

static void print_change(const struct json *j)
{
    struct slice task = json_get_text(j, "task");
    struct slice moments = json_get_raw(j, "moments");
    struct slice state = json_get_text(j, "state");

    if (task.ptr)
        print_line(stdout, "%.*s", SLICE_ARG(task));
    else if (moments.ptr)
        print_line(stdout, "%.*s: %.*s moments, one by one", SLICE_ARG(json_get_text(j, "name")),
                   SLICE_ARG(moments));
    else
        print_line(stdout, "%.*s: %.*s", SLICE_ARG(json_get_text(j, "name")),
                   SLICE_ARG(state.ptr ? state : SLICE("deleted")));
    putchar('\n');
}

static int send(struct invocation *in, const char *method, const char *verb, struct buf *body)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    int end = CLI_OK;

    write_path(&path, in, verb);
    struct intact_client *c = client_begin(in);
    const struct json *j = client_ask(c, method, path.ptr, body, &a, &end);
    if (j && given(in, "json"))
        client_print_body(c);
    else if (j)
        print_change(j);
    intact_client_free(c);
    return end;
}

/* pause, resume, run, backfill */
static int change(struct invocation *in)
{
    static const char *const times[] = {"from", "to"};
    CLEANUP(buf_fini) struct buf body = {0};
    const char *reason = given(in, "reason");
    bool is_backfill = strcmp(in->verb->name, "backfill") == 0;

    for (size_t i = 0; is_backfill && i < COUNT_OF(times); i++) {
        const char *time = given(in, times[i]);
        int64_t at = 0;
        if (time && !time_parse(slice_of(time), &at))
            return verb_misused(in, "--%s is \"%s\", expected a time such as 2027-01-31T10:00:00Z",
                                times[i], time);
    }
    if (!reason || !*reason)
        return verb_misused(in, "--reason TEXT is required");
    json_open(&body, '{');
    for (size_t i = 0; is_backfill && i < COUNT_OF(times); i++) {
        if (!given(in, times[i]))
            return verb_misused(in, "--%s DATE is required", times[i]);
        json_member_text(&body, times[i], slice_of(given(in, times[i])));
    }
    json_member_text(&body, "reason", slice_of(reason));
    json_close(&body, '}');
    return send(in, "POST", in->verb->name, &body);
}

static int delete (struct invocation *in)
{
    return send(in, "DELETE", NULL, NULL);
}

static const struct flag list_flags[] = {
    {.name = "limit", .value = "N", .help = "maximum number, up to 500", .initial = "50"},
    {.name = "after", .value = "NAME", .help = "those after this name"},
    {0},
};

static const struct flag get_flags[] = {
    {.name = "version", .value = "N", .help = "this version", .initial = "the newest"},
    {0},
};

static const struct flag next_flags[] = {
    {.name = "count", .value = "N", .help = "number of moments, up to 100", .initial = "10"},
    {0},
};

static const struct flag change_flags[] = {
    {.name = "reason", .value = "TEXT", .help = "reason for the audit; required"},
    {0},
};

static const struct flag backfill_flags[] = {
    {.name = "from", .value = "DATE", .help = "the first moment is not before this; required"},
    {.name = "to", .value = "DATE", .help = "the last moment is not after this; required"},
    {.name = "reason", .value = "TEXT", .help = "reason for the audit; required"},
    {0},
};

const struct verb verb_schedule_list = {
    .noun = "schedule",
    .name = "list",
    .summary = "list schedules",
    .about = "Lists schedules by name, with their next moment, counts, and the open run.",
    .flags = list_flags,
    .examples = {{"intact schedule list", "the first 50"}},
    .run = list,
};

const struct verb verb_schedule_get = {
    .noun = "schedule",
    .name = "get",
    .summary = "show a schedule",
    .about = "Shows a schedule as it was stored. With --json also its state, and "
             "the latest moments without a task (gaps).",
    .arguments = {{.name = "NAME"}},
    .flags = get_flags,
    .examples = {{"intact schedule get nightly", "the newest version"},
                 {"intact schedule get nightly --json | jq .gaps", "moments without a task"}},
    .exits = "1 if there is no such schedule",
    .run = get,
};

const struct verb verb_schedule_next = {
    .noun = "schedule",
    .name = "next",
    .summary = "show the next moments of a schedule",
    .about = "Shows the next moments in UTC and in the schedule's time zone, and when each is due: "
             "later by a part of `spread`.",
    .arguments = {{.name = "NAME"}},
    .flags = next_flags,
    .examples = {{"intact schedule next nightly --count 3", "the next three"}},
    .exits = "1 if there is no such schedule",
    .run = next,
};

const struct verb verb_schedule_pause = {
    .noun = "schedule",
    .name = "pause",
    .summary = "pause a schedule",
    .about = "Pauses a schedule: no moment gets a task until it is resumed. Running tasks go on.",
    .arguments = {{.name = "NAME"}},
    .flags = change_flags,
    .examples = {{"intact schedule pause nightly --reason 'month end'", "for now"}},
    .run = change,
};

const struct verb verb_schedule_resume = {
    .noun = "schedule",
    .name = "resume",
    .summary = "resume a paused schedule",
    .about = "Resumes a paused schedule. Moments of the pause are not caught up; backfill them.",
    .arguments = {{.name = "NAME"}},
    .flags = change_flags,
    .examples = {{"intact schedule resume nightly --reason 'books are closed'", "go on"}},
    .run = change,
};

const struct verb verb_schedule_run = {
    .noun = "schedule",
    .name = "run",
    .summary = "submit a task of a schedule now",
    .about = "Submits a task of a schedule now, beside those of its moments, and "
             "prints its id.",
    .arguments = {{.name = "NAME"}},
    .flags = change_flags,
    .examples = {{"intact schedule run nightly --reason 'books were corrected'", "once more"}},
    .run = change,
};

const struct verb verb_schedule_backfill = {
    .noun = "schedule",
    .name = "backfill",
    .summary = "run past moments of a schedule",
    .about = "Runs the moments from one time to another, one by one, whenever no "
             "other run of the schedule is open, except those that have a task.",
    .arguments = {{.name = "NAME"}},
    .flags = backfill_flags,
    .examples = {{"intact schedule backfill nightly --from 2027-01-01T00:00:00Z "
                  "--to 2027-01-31T23:59:59Z --reason 'the bank was down'",
                  "a month"}},
    .run = change,
};

const struct verb verb_schedule_delete = {
    .noun = "schedule",
    .name = "delete",
    .summary = "delete a schedule",
    .about = "Deletes a schedule and its versions. Its tasks stay.",
    .arguments = {{.name = "NAME"}},
    .examples = {{"intact schedule delete nightly", "no more moments"}},
    .exits = "1 if there is no such schedule",
    .run = delete,
};
