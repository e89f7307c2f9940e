/* `intact submission list`, `retry` and `drop`: submissions by SQL or from a queue that were
 * refused. submit.c makes submissions over HTTP. */

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/pages.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

/* ---- list ---- */

static const char *const heads[] = {"SEQ", "AT", "SOURCE", "ID", "WORKFLOW", "REASON", NULL};

static void print_page(const struct invocation *in, const struct json *page, bool is_last)
{
    const struct json *rows = json_get(page, "submissions");
    CLEANUP(table_fini) struct table t;
    (void)is_last;

    table_begin(&t, in, heads);
    for (const struct json *j = rows ? rows->child : NULL; j; j = j->next) {
        table_add_number(&t, json_get_int(j, "seq", 0));
        table_add_time(&t, json_get_text(j, "submitted_at"));
        table_add(&t, json_get_text(j, "source"));
        table_add(&t, json_get_text(j, "id"));
        table_add(&t, json_get_text(j, "workflow"));
        table_add(&t, json_get_text(j, "reason"));
    }
    table_print(&t);
}

static int list_run(struct invocation *in)
{
    static const char *const flags[] = {"state", "source", NULL};

    return pages_show(in, &(struct pages){.path = "/v1/submissions",
                                          .flags = flags,
                                          .print = print_page});
}

static const struct flag list_flags[] = {
    {.name = "state",
     .value = "STATE",
     .help = "refused, or waiting to become tasks",
     .initial = "refused",
     .kind = WORD_CHOICE,
     .choices = "refused waiting"},
    {.name = "source", .value = "SOURCE", .help = "from this source, such as sql"},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_submission_list = {
    .noun = "submission",
    .name = "list",
    .summary = "list refused submissions",
    .about = "Lists refused submissions by SQL or from a queue, newest first, with the reason. "
             "They are kept until they are dropped.",
    .flags = list_flags,
    .examples = {{"intact submission list", "refused submissions"},
                 {"intact submission list --state waiting",
                  "submissions that no server has read yet"}},
    .run = list_run,
};

/* ---- retry, drop ---- */

static bool body_of(const struct invocation *in, struct buf *b)
{
    char *end = NULL;
    int64_t seq = in->word_count > 0 ? strtoll(in->words[0], &end, 10) : 0;

    if (in->word_count > 0 && (seq < 1 || *end))
        return false;
    json_open(b, '{');
    if (seq > 0) {
        json_member_number(b, "seq", seq);
    } else {
        json_member_bool(b, "all", true);
    }
    if (given(in, "source")) {
        json_member_text(b, "source", slice_of(given(in, "source")));
    }
    json_member_text(b, "reason", slice_of(given(in, "reason")));
    json_close(b, '}');
    return true;
}

static int verb_post(struct invocation *in, const char *path, const char *done)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    int end = CLI_OK;

    if (!given(in, "reason") || !*given(in, "reason"))
        return verb_misused(in, "--reason TEXT is required");
    if (!given(in, "all") == (in->word_count == 0))
        return verb_misused(in, "say either which one (its number is in the list), or --all");
    if (!body_of(in, &body))
        return verb_misused(in, "\"%s\" is no number of a submission", in->words[0]);
    struct intact_client *c = client_begin(in);
    const struct json *answer = client_ask(c, "POST", path, &body, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        printf("%" PRId64 " %s%s\n", json_get_int(answer, "submissions", 0), done,
               json_get_bool(answer, "more", false) ? "; there are more" : "");
    intact_client_free(c);
    return end;
}

static int retry_run(struct invocation *in)
{
    return verb_post(in, "/v1/submissions/retry", "tried again");
}

static int drop_run(struct invocation *in)
{
    return verb_post(in, "/v1/submissions/drop", "dropped");
}

static const struct flag verb_flags[] = {
    {.name = "all", .help = "all refused submissions"},
    {.name = "source", .value = "SOURCE", .help = "only from this source, such as sql"},
    {.name = "reason", .value = "TEXT", .help = "reason for the audit"},
    {0},
};

const struct verb verb_submission_retry = {
    .noun = "submission",
    .name = "retry",
    .summary = "retry refused submissions",
    .about = "Retries refused submissions, for example after the workflow was stored.",
    .arguments = {{.name = "SEQ", .optional = true}},
    .flags = verb_flags,
    .examples = {{"intact submission retry --all --reason 'the workflow is stored now'",
                  "all refused submissions"}},
    .run = retry_run,
};

const struct verb verb_submission_drop = {
    .noun = "submission",
    .name = "drop",
    .summary = "delete refused submissions",
    .about = "Deletes refused submissions. They become no tasks.",
    .arguments = {{.name = "SEQ", .optional = true}},
    .flags = verb_flags,
    .examples = {{"intact submission drop 12 --reason 'a test'", "one submission by its number"}},
    .run = drop_run,
};
