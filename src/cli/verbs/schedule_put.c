/* `intact schedule put`: stores a schedule from a file, and prints mistakes as compilers do
 * (client/mistakes.h). Shares the printing of warnings with workflow_put.c (put.h).
 * schedule_verbs.c has the other verbs of schedules. */

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "cli/verbs/put.h"
#include "config/config_reader.h"

/* The path contains the schedule's name. A text without a valid one is sent as well: the server
 * finds its mistakes. */
static void name_of(const struct buf *text, const char *file, struct buf *ret)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    CLEANUP(arena_fini) struct arena a = {0};
    struct mistakes *m = calloc(1, sizeof *m);
    struct reader r = {.arena = &a, .mistakes = m};
    struct json *root = NULL;

    ASSERT(m);
    enum err err = read_source(&r, buf_view(text), (enum source_format)format_of_file(file), &root);
    struct slice name = err == ERR_OK ? json_get_text(root, "schedule") : SLICE_NONE;
    if (name.len > 0 && strspn(name.ptr, allowed) == name.len)
        buf_slice(ret, name);
    else
        buf_str(ret, "unnamed");
    free(m);
}

static int print_result(const struct invocation *in, const struct intact_client *c,
                        const char *name)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *answer = client_answer(c, &a);

    if (!answer)
        return CLI_NOT_WELL;
    put_warnings_print(c, in->words[0]);
    if (given(in, "json")) {
        client_print_body(c);
        return CLI_OK;
    }
    print_line(stdout, "%s, version %.*s%s", name, SLICE_ARG(json_get_raw(answer, "version")),
               intact_client_http_status(c) == 200 ? " (as it was)" : "");
    struct slice next = json_get_text(answer, "next_at");
    if (next.ptr)
        print_line(stdout, "; next at %.*s", SLICE_ARG(next));
    else
        print_line(stdout, "; no moment is ahead");
    putchar('\n');
    return CLI_OK;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    const char *file = in->words[0];

    if (!client_read_file(file, &text))
        return CLI_USAGE;
    name_of(&text, file, &name);
    buf_fmt(&path, "/v1/schedules/%s", name.ptr);
    struct intact_client *c = client_begin(in);
    const char *type = put_is_yaml(file, &text) ? "application/yaml" : "application/json";
    enum intact_status status = intact_client_call(c, "PUT", path.ptr, type, text.ptr, text.len);
    int end = status == INTACT_OK ? print_result(in, c, name.ptr) : put_complain(c, status, file);
    intact_client_free(c);
    return end;
}

const struct verb verb_schedule_put = {
    .noun = "schedule",
    .name = "put",
    .summary = "store a schedule",
    .about = "Stores a schedule, YAML or JSON, as the next version of its name. If "
             "the times have changed, past moments are not caught up.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE}},
    .examples = {{"intact schedule put nightly.yaml", "a new schedule, or a new version"},
                 {"generate | intact schedule put -", "from standard input"}},
    .exits = "1 if the schedule has mistakes, or the server refused it",
    .run = run,
};
