/* Lists that the server returns page by page, with their common flags --limit, --all and --json
 * (pages.h). A verb gives the path and a function that prints one page; alert_list.c is an
 * example. */

#include "cli/client/pages.h"

enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 500 };

static void add_parameter(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    buf_fmt(path, "&%s=", name);
    client_escape(path, slice_of(value));
}

/* `cursor`: in: of this page, empty for the first; out: of the next one, empty if there is none.
 * `table`: of p->rows. */
static int show_page(const struct invocation *in, struct intact_client *c, const struct pages *p,
                     struct table *table, int64_t limit, struct buf *cursor)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    int end = CLI_OK;

    buf_fmt(&path, "%s%climit=%" PRId64, p->path, strchr(p->path, '?') ? '&' : '?', limit);
    for (const char *const *flag = p->flags; *flag; flag++)
        add_parameter(&path, *flag, given(in, *flag));
    add_parameter(&path, "cursor", cursor->len ? cursor->ptr : NULL);
    const struct json *page = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    buf_clear(cursor);
    if (!page)
        return end;
    buf_slice(cursor, json_get_text(page, "next"));
    if (given(in, "json"))
        client_print_body(c);
    else if (p->rows)
        table_add_rows(table, p->rows, page);
    else
        p->print(in, page, cursor->len == 0);
    return CLI_OK;
}

int pages_show(const struct invocation *in, const struct pages *p)
{
    CLEANUP(buf_fini) struct buf cursor = {0};
    CLEANUP(table_fini) struct table table = {0};
    int64_t limit = p->whole ? LIMIT_MAX : LIMIT_DEFAULT;
    bool all = p->whole || given(in, "all");

    if (!given_number(in, "limit", 1, LIMIT_MAX, &limit))
        return CLI_USAGE;
    if (p->rows)
        table_begin(&table, in, p->rows->heads);
    struct intact_client *c = client_begin(in);
    int end = show_page(in, c, p, &table, limit, &cursor);
    while (end == CLI_OK && all && cursor.len > 0)
        end = show_page(in, c, p, &table, limit, &cursor);
    if (end == CLI_OK && p->rows && !given(in, "json"))
        table_print(&table);
    intact_client_free(c);
    return end;
}
