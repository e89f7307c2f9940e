/* `intact lock list`: which tasks hold locks, and how many wait for each, page by page.
 * client/pages.c does the paging. */

#include "cli/client/pages.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"LOCK", "TASK", "SINCE", "WAITING", NULL};

static void print_page(const struct invocation *in, const struct json *page, bool is_last)
{
    const struct json *locks = json_get(page, "locks");
    CLEANUP(table_fini) struct table t;
    (void)is_last;

    table_begin(&t, in, heads);
    for (const struct json *j = locks ? locks->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "lock"));
        table_add(&t, json_get_text(j, "task"));
        table_add_time(&t, json_get_text(j, "since"));
        table_add(&t, json_get_raw(j, "waiting"));
    }
    table_print(&t);
}

static int run(struct invocation *in)
{
    static const char *const parameters[] = {"lock", NULL};

    return pages_show(in, &(struct pages){.path = "/v1/locks",
                                          .flags = parameters,
                                          .print = print_page});
}

static const struct flag flags[] = {
    {.name = "lock", .value = "NAME/KEY", .help = "this one only", .initial = "any"},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_lock_list = {
    .noun = "lock",
    .name = "list",
    .summary = "list the tasks that hold locks",
    .about = "Lists the tasks that hold a lock, oldest first: since when they hold "
             "it, and how many tasks wait for it (at most 1000 are counted).",
    .flags = flags,
    .examples = {{"intact lock list", "who holds which lock"},
                 {"intact lock list --lock order/anna", "who holds the lock of one customer"}},
    .run = run,
};
