/* `intact audit list`: changes made by people, with who, from where and why, page by page.
 * client/pages.c does the paging. */

#include <stdio.h>

#include "cli/client/pages.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"AT", "WHO", "FROM", "DID", "TASK", "STEP", "REASON", NULL};

/* Behind a proxy: the client for which it forwards. */
static void add_from(struct table *t, const struct json *entry)
{
    struct slice from = json_get_text(entry, "forwarded_for");

    table_add(t, from.ptr ? from : json_get_text(entry, "address"));
}

static void print_page(const struct invocation *in, const struct json *page, bool is_last)
{
    const struct json *entries = json_get(page, "entries");
    CLEANUP(table_fini) struct table t;
    (void)is_last;

    table_begin(&t, in, heads);
    for (const struct json *j = entries ? entries->child : NULL; j; j = j->next) {
        table_add_time(&t, json_get_text(j, "at"));
        table_add(&t, json_get_text(j, "actor"));
        add_from(&t, j);
        table_add(&t, json_get_text(j, "verb"));
        table_add(&t, json_get_text(j, "task"));
        table_add(&t, json_get_text(j, "step"));
        table_add(&t, json_get_text(j, "reason"));
    }
    table_print(&t);
}

static int run(struct invocation *in)
{
    static const char *const parameters[] = {"task", NULL};

    return pages_show(in, &(struct pages){.path = "/v1/audit",
                                          .flags = parameters,
                                          .print = print_page});
}

static const struct flag flags[] = {
    {.name = "task", .value = "TASK", .help = "of this task", .kind = WORD_TASK},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_audit_list = {
    .noun = "audit",
    .name = "list",
    .summary = "list the audit, newest first",
    .about = "Lists actions of people, newest first: verbs on tasks with their reasons, stored "
             "definitions, tokens, and the address of the client.",
    .flags = flags,
    .examples = {{"intact audit list", "the latest entries"},
                 {"intact audit list --task o-17", "entries of one task"}},
    .run = run,
};
