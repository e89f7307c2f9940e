#ifndef CLI_CLIENT_PAGES_H
#define CLI_CLIENT_PAGES_H

/* Lists in pages, and their common flags: --limit, --all, --json. */

#include "cli/client/client.h"
#include "cli/client/table.h"

struct pages {
    const char *path;         /* "/v1/audit" */
    const char *const *flags; /* flags that are also the names of parameters; ends with NULL */
    /* Shows one page (the whole answer). `is_last`: it is the last page. */
    void (*print)(const struct invocation *in, const struct json *page, bool is_last);
    const struct table_view *rows; /* instead: one table of all pages */
    bool whole; /* all pages, as large as they may be: the rows of a page are filtered */
};

/* Fetches the first page, or all of them with --all, and shows them. Returns the exit status. */
int pages_show(const struct invocation *in, const struct pages *p);

/* The flags, for the list of a verb. */
/* clang-format off */
#define PAGES_FLAGS                                                                              \
    {.name = "limit", .value = "N", .help = "maximum number, up to 500", .initial = "50"},      \
    {.name = "all", .help = "all pages"}
/* clang-format on */

#endif
