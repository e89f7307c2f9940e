/* Shows an operation on many tasks: its counts and why tasks refused, and follows its progress
 * until it ends (operation_show.h). operation_start.c and operation_verbs.c are the callers. */

#include "cli/verbs/operation_show.h"

#include <stdio.h>
#include <time.h>

#include "cli/terminal/print.h"
#include "cli/terminal/term.h"

enum { LOOK_MS = 300 };

static int64_t number(const struct json *j, const char *key)
{
    return json_get_int(j, key, 0);
}

static void show_refused(const struct json *j)
{
    const struct json *refused = json_get(j, "refused");

    for (const struct json *m = refused ? refused->child : NULL; m; m = m->next)
        print_row(stdout, "refused   %.*s: %.*s", SLICE_ARG(m->raw), SLICE_ARG(m->key));
}

static int64_t refused_count(const struct json *j)
{
    const struct json *refused = json_get(j, "refused");
    int64_t sum = 0;
    int64_t n = 0;

    for (const struct json *m = refused ? refused->child : NULL; m; m = m->next)
        if (json_int(m, &n))
            sum += n;
    return sum;
}

void operation_show(const struct json *j)
{
    print_row(stdout, "operation %.*s", SLICE_ARG(json_get_text(j, "id")));
    print_row(stdout, "verb      %.*s", SLICE_ARG(json_get_text(j, "verb")));
    print_row(stdout, "state     %.*s", SLICE_ARG(json_get_text(j, "state")));
    print_row(stdout, "filter    %.*s", SLICE_ARG(json_get_raw(j, "filter")));
    print_row(stdout, "by        %.*s: %.*s", SLICE_ARG(json_get_text(j, "by")),
              SLICE_ARG(json_get_text(j, "reason")));
    printf("matched   %" PRId64 "\n", number(j, "matched"));
    printf("done      %" PRId64 "\n", number(j, "done"));
    show_refused(j);
    if (number(j, "failed"))
        printf("failed    %" PRId64 "\n", number(j, "failed"));
    if (number(j, "gone"))
        printf("gone      %" PRId64 ": they matched no more when it was their turn\n",
               number(j, "gone"));
}

void operation_show_dry(const struct json *j)
{
    const char *least = json_get_bool(j, "complete", true) ? "" : "at least ";
    const struct json *ids = json_get(j, "ids");

    print_row(stdout, "%.*s would concern %s%" PRId64 " tasks", SLICE_ARG(json_get_text(j, "verb")),
              least, number(j, "matched"));
    printf("possible  %s%" PRId64 "\n", least, number(j, "possible"));
    show_refused(j);
    for (const struct json *id = ids ? ids->child : NULL; id; id = id->next)
        print_line(stdout, "%s%.*s", id == ids->child ? "newest    " : " ", SLICE_ARG(id->text));
    if (ids && ids->child)
        putchar('\n');
}

/* Tasks that were counted, with any result. */
static int64_t settled(const struct json *j)
{
    return number(j, "done") + refused_count(j) + number(j, "failed") + number(j, "gone");
}

static int status_of(const struct json *j)
{
    bool well = slice_is(json_get_text(j, "state"), "done") && refused_count(j) == 0
                && number(j, "failed") == 0;

    return well ? CLI_OK : CLI_NOT_WELL;
}

int operation_follow(const struct invocation *in, struct intact_client *c, struct slice id,
                     int64_t expected)
{
    static const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    CLEANUP(buf_fini) struct buf path = {0};
    struct term_progress progress;
    int end = CLI_OK;

    buf_str(&path, "/v1/operations/");
    client_escape(&path, id);
    term_progress_begin(&progress, in->verb->name, PROGRESS_ITEMS, expected, TERM_AUTO);
    for (;;) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = client_ask(c, "GET", path.ptr, NULL, &a, &end);
        if (!j) {
            term_progress_end(&progress);
            return end;
        }
        term_progress_at(&progress, settled(j));
        if (slice_is(json_get_text(j, "state"), "running")) {
            (void)nanosleep(&pause, NULL); /* an early wake-up is harmless */
            continue;
        }
        term_progress_end(&progress);
        if (given(in, "json"))
            client_print_body(c);
        else
            operation_show(j);
        return status_of(j);
    }
}
