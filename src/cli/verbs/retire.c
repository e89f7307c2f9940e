/* `intact retire`: deletes ended tasks in as many calls as that takes, and adds up their counts.
 * The first answer of the server fixes the time, so that all calls use the same. Rules for
 * deletion are in the configuration: serve_retention.c. */

#include <stdio.h>

#include "base/when.h"
#include "cli/client/client.h"
#include "cli/terminal/print.h"
#include "cli/terminal/term.h"
#include "cli/verbs.h"

/* "processed,error" as a JSON array; the server validates the states. */
static void add_states(struct buf *b, const char *text)
{
    json_key(b, "states");
    json_open(b, '[');
    while (text) {
        size_t len = strcspn(text, ",");
        json_string(b, (struct slice){text, len});
        text = text[len] ? text + len + 1 : NULL;
    }
    json_close(b, ']');
}

/* `before`: from the server's first answer, so that all calls use the same time. */
static void render(const struct invocation *in, struct slice before, struct slice cursor,
                   struct buf *b)
{
    json_open(b, '{');
    if (before.ptr || given(in, "ended-before")) {
        json_member_text(b, "ended_before",
                         before.ptr ? before : slice_of(given(in, "ended-before")));
    } else if (given(in, "older-than")) {
        json_member_text(b, "older_than", slice_of(given(in, "older-than")));
    }
    if (given(in, "workflow")) {
        json_member_text(b, "workflow", slice_of(given(in, "workflow")));
    }
    if (given(in, "keep-last")) {
        json_member_raw(b, "keep_last", slice_of(given(in, "keep-last")));
    }
    if (given(in, "no-archive")) {
        json_member_bool(b, "archive", false);
    }
    if (given(in, "state"))
        add_states(b, given(in, "state"));
    json_member_bool(b, "dry_run", given(in, "dry-run") != NULL);
    if (cursor.ptr) {
        json_member_text(b, "cursor", cursor);
    }
    json_close(b, '}');
}

/* The sum of all calls so far. */
struct outcome {
    struct buf before, cursor;
    int64_t tasks, archived, unreadable;
    struct arena arena; /* of the counts */
    struct kind {
        struct kind *next;
        struct slice workflow, state;
        int64_t tasks;
    } * kinds; /* latest first */
    bool more;
};

static struct kind *kind_of(struct outcome *o, struct slice workflow, struct slice state)
{
    for (struct kind *k = o->kinds; k; k = k->next)
        if (slice_eq(k->workflow, workflow) && slice_eq(k->state, state))
            return k;
    struct kind *k = arena_alloc(&o->arena, sizeof *k);
    *k = (struct kind){.next = o->kinds,
                       .workflow = arena_copy(&o->arena, workflow),
                       .state = arena_copy(&o->arena, state)};
    o->kinds = k;
    return k;
}

static void add_counts(struct outcome *o, const struct json *answer)
{
    const struct json *counts = json_get(answer, "counts");

    o->tasks += json_get_int(answer, "tasks", 0);
    o->archived += json_get_int(answer, "archived", 0);
    o->unreadable += json_get_int(answer, "unreadable", 0);
    for (const struct json *c = counts ? counts->child : NULL; c; c = c->next)
        kind_of(o, json_get_text(c, "workflow"), json_get_text(c, "state"))->tasks +=
            json_get_int(c, "tasks", 0);
}

static int ask_once(const struct invocation *in, struct intact_client *c, struct outcome *o)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    int end = CLI_OK;

    render(in, o->before.len ? buf_view(&o->before) : SLICE_NONE,
           o->cursor.len ? buf_view(&o->cursor) : SLICE_NONE, &body);
    const struct json *answer = client_ask(c, "POST", "/v1/retire", &body, &a, &end);
    if (!answer)
        return end;
    add_counts(o, answer);
    buf_clear(&o->before);
    buf_slice(&o->before, json_get_text(answer, "ended_before"));
    buf_clear(&o->cursor);
    buf_slice(&o->cursor, json_get_text(answer, "next"));
    o->more = o->cursor.len > 0;
    return CLI_OK;
}

static void show_people(const struct outcome *o, bool dry)
{
    print_row(stdout, "%" PRId64 " task%s that ended before %s %s%s", o->tasks,
              o->tasks == 1 ? "" : "s", o->before.ptr, dry ? "would be " : "",
              dry             ? "deleted"
              : o->tasks == 1 ? "was deleted"
                              : "were deleted");
    for (const struct kind *k = o->kinds; k; k = k->next)
        print_row(stdout, "  %" PRId64 " of %.*s, %.*s", k->tasks, SLICE_ARG(k->workflow),
                  SLICE_ARG(k->state));
    if (o->archived > 0)
        printf("  %" PRId64 " were archived before\n", o->archived);
    if (o->unreadable > 0)
        printf("  %" PRId64 " could not be archived and stay: the server's log says why\n",
               o->unreadable);
}

static void show(const struct invocation *in, const struct outcome *o)
{
    CLEANUP(buf_fini) struct buf b = {0};
    bool dry = given(in, "dry-run");

    if (!given(in, "json")) {
        show_people(o, dry);
        return;
    }
    json_open(&b, '{');
    json_member_bool(&b, "dry_run", dry);
    json_member_text(&b, "ended_before", buf_view(&o->before));
    json_member_number(&b, "tasks", o->tasks);
    json_key(&b, "counts");
    json_open(&b, '[');
    for (const struct kind *k = o->kinds; k; k = k->next) {
        json_open(&b, '{');
        json_member_text(&b, "workflow", k->workflow);
        json_member_text(&b, "state", k->state);
        json_member_number(&b, "tasks", k->tasks);
        json_close(&b, '}');
    }
    json_close(&b, ']');
    json_member_number(&b, "archived", o->archived);
    json_member_number(&b, "unreadable", o->unreadable);
    json_close(&b, '}');
    print_text(stdout, buf_view(&b));
    putchar('\n');
}

static int retire(const struct invocation *in, struct outcome *o)
{
    struct intact_client *c = client_begin(in);
    struct term_progress progress;
    enum term_color color = TERM_AUTO;
    int end = CLI_OK;

    (void)given_color(in, &color); /* checked when it was read */
    term_progress_begin(&progress, given(in, "dry-run") ? "counted" : "deleted", PROGRESS_ITEMS, 0,
                        color);
    do {
        end = ask_once(in, c, o);
        term_progress_at(&progress, o->tasks);
    } while (end == CLI_OK && o->more);
    term_progress_end(&progress);
    if (end == CLI_OK)
        show(in, o);
    else if (o->tasks > 0 && !given(in, "dry-run"))
        fprintf(stderr, "intact retire: %" PRId64 " tasks were deleted until then\n", o->tasks);
    intact_client_free(c);
    return end;
}

static int run(struct invocation *in)
{
    struct outcome o = {0};
    int64_t ms = 0;
    int64_t last = 0;

    bool any = given(in, "older-than") || given(in, "ended-before") || given(in, "keep-last");
    if (!any || (given(in, "older-than") && given(in, "ended-before")))
        return verb_misused(in, "say either --older-than TIME or --ended-before DATE, or of a "
                                "--workflow how many to --keep-last");
    if (given(in, "keep-last") && !given(in, "workflow"))
        return verb_misused(in, "--keep-last is of one workflow: say --workflow NAME beside it");
    if (!given_duration(in, "older-than", &ms) || !given_moment(in, "ended-before")
        || !given_number(in, "keep-last", 1, INT64_C(100000), &last))
        return CLI_USAGE;
    int end = retire(in, &o);
    buf_fini(&o.before);
    buf_fini(&o.cursor);
    arena_fini(&o.arena);
    return end;
}

static const struct flag flags[] = {
    {.name = "older-than", .value = "TIME", .help = "ended at least this long ago, such as 30d"},
    {.name = "ended-before", .value = "DATE", .help = "ended before, such as 2026-01-31T10:00:00Z"},
    {.name = "state",
     .value = "STATE",
     .help = "in these states, separated by commas",
     .initial = "processed,compensated,closed",
     .kind = WORD_CHOICES,
     .choices = "processed compensated closed error"},
    {.name = "workflow", .value = "NAME", .help = "of this workflow only", .kind = WORD_WORKFLOW},
    {.name = "keep-last", .value = "COUNT", .help = "keep its newest COUNT tasks"},
    {.name = "no-archive", .help = "do not write them to the server's archive"},
    {.name = "dry-run", .help = "count them only"},
    {0},
};

const struct verb verb_retire = {
    .name = "retire",
    .summary = "delete tasks that ended long ago",
    .about = "Deletes tasks that ended long ago, with inputs, outputs, attempts and "
             "tags; tasks in error only if they are closed, or with --state. If the "
             "server has an archive, tasks are written to it first. For automatic "
             "deletion use --keep of intact serve, or retention in its "
             "configuration.\n\nIt deletes in small parts and can be interrupted.",
    .flags = flags,
    .examples = {{"intact retire --older-than 30d --dry-run", "count them only"},
                 {"intact retire --older-than 30d", "delete them"},
                 {"intact retire --workflow order --state processed --keep-last 1000",
                  "all but the newest of one workflow"},
                 {"intact retire --older-than 365d --state processed,compensated,error",
                  "also tasks in error that were never continued"}},
    .run = run,
};
