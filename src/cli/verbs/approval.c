/* `intact approval list` (what waits for people), `intact approve` and `intact reject` (a
 * decision), and `intact approval link` (a URL with which one person decides). A decision
 * fetches the question first and names its number, so that it counts only for the question that
 * was read. */

#include <stdio.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/client/pages.h"
#include "cli/client/table.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"

/* ---- list ---- */

static const char *const heads[] = {"TASK",  "STEP",  "QUESTION", "ASKS", "AGREED",
                                    "SINCE", "UNTIL", "ASKING",   NULL};

static void add_groups(struct table *t, const struct json *list)
{
    CLEANUP(buf_fini) struct buf text = {0};

    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        buf_fmt(&text, "%s%.*s", text.len ? " " : "", SLICE_ARG(j->text));
    table_add(t, buf_view(&text));
}

static void print_page(const struct invocation *in, const struct json *page, bool is_last)
{
    CLEANUP(table_fini) struct table t;
    CLEANUP(buf_fini) struct buf agreed = {0};
    const struct json *list = json_get(page, "approvals");
    (void)is_last;

    table_begin(&t, in, heads);
    for (const struct json *j = list ? list->child : NULL; j; j = j->next) {
        buf_clear(&agreed);
        buf_fmt(&agreed, "%.*s of %.*s", SLICE_ARG(json_get_raw(j, "agreed")),
                SLICE_ARG(json_get_raw(j, "people")));
        table_add(&t, json_get_text(j, "task"));
        table_add(&t, json_get_text(j, "step"));
        table_add(&t, json_get_text(j, "question"));
        add_groups(&t, json_get(j, "by"));
        table_add(&t, buf_view(&agreed));
        table_add_time(&t, json_get_text(j, "asked_at"));
        table_add_time(&t, json_get_text(j, "complete_by"));
        table_add(&t, json_get_raw(j, "asking"));
    }
    table_print(&t);
}

static int list_run(struct invocation *in)
{
    static const char *const parameters[] = {"task", NULL};
    static const struct pages mine = {.path = "/v1/approvals",
                                      .flags = parameters,
                                      .print = print_page};
    static const struct pages all = {.path = "/v1/approvals?all=true",
                                     .flags = parameters,
                                     .print = print_page};

    return pages_show(in, given(in, "everybody") ? &all : &mine);
}

static const struct flag list_flags[] = {
    {.name = "task", .value = "TASK", .help = "only of this task", .kind = WORD_TASK},
    {.name = "everybody", .help = "also what waits for others; requires the role read or link"},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_approval_list = {
    .noun = "approval",
    .name = "list",
    .summary = "list what waits for your decision",
    .about = "Lists the questions that wait for your decision, the newest task "
             "first.",
    .flags = list_flags,
    .examples = {{"intact approval list", "what waits for you"},
                 {"intact approval list --everybody --json", "what waits for anybody"}},
    .run = list_run,
};

/* ---- approve, reject ---- */

static void path_of(struct buf *b, struct slice task, struct slice step, const char *verb)
{
    buf_str(b, "/v1/approvals/");
    client_escape(b, task);
    buf_byte(b, '/');
    client_escape(b, step);
    buf_fmt(b, "/%s", verb);
}

/* The question that waits at the task, or at its step; NULL: there is none, or several. */
static const struct json *find(const struct invocation *in, const struct json *list)
{
    const struct json *found = NULL;
    size_t count = 0;

    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        if (!in->words[1] || slice_is(json_get_text(j, "step"), in->words[1])) {
            found = j;
            count++;
        }
    if (count == 1)
        return found;
    if (count == 0)
        print_row(stderr, "intact: nothing of task %s waits for your decision", in->words[0]);
    else
        print_row(stderr, "intact: several steps of task %s wait for your decision: name one",
                  in->words[0]);
    return NULL;
}

static void body_of(const struct invocation *in, int64_t asking, struct buf *body)
{
    json_open(body, '{');
    if (given(in, "comment"))
        json_member_text(body, "comment", slice_of(given(in, "comment")));
    json_member_number(body, "asking", asking);
    json_close(body, '}');
}

/* Only the first question of a step is the one that was read, whenever that was. What was asked
 * anew is shown first: on a terminal somebody reads it now, elsewhere its number shows that
 * somebody did. */
static bool is_read(const struct invocation *in, const struct json *asked, bool agrees)
{
    const char *what = agrees ? "approve" : "reject";
    bool anew = json_get_int(asked, "asking", 1) > 1;
    char line[16] = {0};

    if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        print_line(stderr, "%.*s", SLICE_ARG(json_get_text(asked, "question")));
        fprintf(stderr, "%s\n%s it? [y/N] ", anew ? " (asked anew)" : "", what);
        return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
    }
    if (anew) {
        print_row(stderr, "intact: step %.*s of task %s was asked anew: %.*s",
                  SLICE_ARG(json_get_text(asked, "step")), in->words[0],
                  SLICE_ARG(json_get_text(asked, "question")));
        print_row(stderr, "To decide on that, add --asking %.*s",
                  SLICE_ARG(json_get_raw(asked, "asking")));
    }
    return !anew;
}

static void show(const struct invocation *in, const struct intact_client *c,
                 const struct json *vote, struct slice question, bool agrees)
{
    if (given(in, "json")) {
        client_print_body(c);
        return;
    }
    print_row(stdout, "%s: %.*s", agrees ? "approved" : "rejected", SLICE_ARG(question));
    if (agrees)
        printf("%.*s of %.*s agreed\n", SLICE_ARG(json_get_raw(vote, "agreed")),
               SLICE_ARG(json_get_raw(vote, "people")));
}

static int vote_on(struct invocation *in, struct intact_client *c, const struct json *asked,
                   int64_t asking, bool agrees)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    struct slice question = arena_copy(&a, json_get_text(asked, "question"));
    int end = CLI_OK;

    path_of(&path, slice_of(in->words[0]), json_get_text(asked, "step"),
            agrees ? "approve" : "reject");
    body_of(in, asking, &body);
    const struct json *vote = client_ask(c, "POST", path.ptr, &body, &a, &end);
    if (vote)
        show(in, c, vote, question, agrees);
    return end;
}

/* The question is fetched first, and the decision names its number: it is on what was read, and on
 * nothing else. */
static int decide(struct invocation *in, bool agrees)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf asks = {0};
    int64_t asking = 0;
    int end = CLI_OK;

    if (!given_number(in, "asking", 1, UINT32_MAX, &asking))
        return CLI_USAGE;
    if (!agrees && (!given(in, "comment") || !*given(in, "comment")))
        return verb_misused(in, "--comment TEXT is required");
    buf_str(&asks, "/v1/approvals?task=");
    client_escape(&asks, slice_of(in->words[0]));
    struct intact_client *c = client_begin(in);
    const struct json *page = client_ask(c, "GET", asks.ptr, NULL, &a, &end);
    const struct json *asked = page ? find(in, json_get(page, "approvals")) : NULL;
    if (page && !asked)
        end = CLI_NOT_WELL;
    if (asked && asking == 0 && !is_read(in, asked, agrees)) {
        fputs("nothing was done\n", stderr);
        end = CLI_NOT_WELL;
    } else if (asked) {
        end = vote_on(in, c, asked, asking ? asking : json_get_int(asked, "asking", 1), agrees);
    }
    intact_client_free(c);
    return end;
}

static int approve_run(struct invocation *in)
{
    return decide(in, true);
}

static int reject_run(struct invocation *in)
{
    return decide(in, false);
}

#define ASKING_FLAG                                                                         \
    {                                                                                       \
        .name = "asking", .value = "N",                                                     \
        .help = "number of the question; needed if it was asked anew, except on a terminal" \
    }

static const struct flag approve_flags[] = {
    {.name = "comment", .value = "TEXT", .help = "for the record"},
    ASKING_FLAG,
    {0},
};

static const struct flag reject_flags[] = {
    {.name = "comment", .value = "TEXT", .help = "why; required"},
    ASKING_FLAG,
    {0},
};

const struct verb verb_approve = {
    .name = "approve",
    .summary = "agree to what a step asks",
    .about = "Agrees to the question of a step that waits for your decision. If "
             "several steps of the task wait, name the step. Without the number of "
             "the question, it asks for confirmation on a terminal.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "STEP", .optional = true}},
    .flags = approve_flags,
    .examples = {{"intact approve e-17", "the only question of this task"},
                 {"intact approve e-17 allow --comment 'within the budget'", "with a comment"},
                 {"intact approve e-17 --asking 2", "after its input was corrected"}},
    .run = approve_run,
};

const struct verb verb_reject = {
    .name = "reject",
    .summary = "reject what a step asks",
    .about = "Rejects the question of a step that waits for your decision: the step fails.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "STEP", .optional = true}},
    .flags = reject_flags,
    .examples = {{"intact reject e-17 --comment 'too much'", "the step fails"}},
    .run = reject_run,
};

/* ---- a link ---- */

static void link_body(const struct invocation *in, struct buf *body)
{
    json_open(body, '{');
    if (given(in, "person"))
        json_member_text(body, "person", slice_of(given(in, "person")));
    if (given(in, "expires-in"))
        json_member_text(body, "expires_in", slice_of(given(in, "expires-in")));
    json_close(body, '}');
}

static int link_to(struct invocation *in, struct intact_client *c, struct slice step)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    int end = CLI_OK;

    path_of(&path, slice_of(in->words[0]), step, "link");
    link_body(in, &body);
    const struct json *made = client_ask(c, "POST", path.ptr, &body, &a, &end);
    if (made && given(in, "json"))
        client_print_body(c);
    else if (made)
        print_row(stdout, "%.*s", SLICE_ARG(json_get_text(made, "url")));
    return end;
}

/* Without a step it is the only one that asks: anybody, for a link of somebody else. */
static int link_run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf asks = {0};
    int64_t ms = 0;
    int end = CLI_OK;

    if (!given_duration(in, "expires-in", &ms))
        return CLI_USAGE;
    struct intact_client *c = client_begin(in);
    if (in->words[1]) {
        end = link_to(in, c, slice_of(in->words[1]));
        intact_client_free(c);
        return end;
    }
    buf_fmt(&asks, "/v1/approvals?%stask=", given(in, "person") ? "all=true&" : "");
    client_escape(&asks, slice_of(in->words[0]));
    const struct json *page = client_ask(c, "GET", asks.ptr, NULL, &a, &end);
    const struct json *asked = page ? find(in, json_get(page, "approvals")) : NULL;
    if (page && !asked)
        end = CLI_NOT_WELL;
    if (asked)
        end = link_to(in, c, arena_copy(&a, json_get_text(asked, "step")));
    intact_client_free(c);
    return end;
}

static const struct flag link_flags[] = {
    {.name = "person",
     .value = "NAME",
     .help = "who decides with it; for others than you it requires the role link or "
             "admin",
     .initial = "you"},
    {.name = "expires-in",
     .value = "TIME",
     .help = "how long it is good, at most 90d",
     .initial = "7d"},
    {0},
};

const struct verb verb_approval_link = {
    .noun = "approval",
    .name = "link",
    .summary = "make a link with which a person decides in a browser",
    .about = "Prints a link to a page on which a person decides once, without a "
             "token. Whoever has it can decide: send it to that person alone.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "STEP", .optional = true}},
    .flags = link_flags,
    .examples = {{"intact approval link e-17", "for yourself"},
                 {"intact approval link e-17 allow --person ann --expires-in 2d", "for ann"}},
    .run = link_run,
};
