#ifndef CLI_PAGES_H
#define CLI_PAGES_H

/* Lists that come page after page, and the flags that they have in common: --limit, --all, --json.
 */

#include "cli/client.h"

struct pages {
    const char *path;         /* "/v1/audit" */
    const char *const *flags; /* parameters that are called as their flags are; the last is NULL */
    /* Shows a page, the whole answer, to people. `is_last`: of all that there are. */
    void (*print)(const struct invocation *in, const struct json *page, bool is_last);
};

/* Asks for the first page, or with --all for one after the other, and shows them. Returns the exit
 * status. */
int pages_show(const struct invocation *in, const struct pages *p);

/* The flags, for the list of a verb. */
/* clang-format off */
#define PAGES_FLAGS                                                                              \
    {.name = "limit", .value = "N", .help = "maximum number, up to 500", .initial = "50"},      \
    {.name = "all", .help = "all pages"}
/* clang-format on */

#endif
