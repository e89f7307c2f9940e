#include "cli/client.h"

#include <stdio.h>

static const char usage[] =
    "usage: intact list [--state STATE] [--workflow NAME] [--tag KEY=VALUE]... [--limit N | "
    "--all]\n"
    "\n"
    "Lists tasks, newest first.\n"
    "\n"
    "  --state STATE     pending, processing, processed, compensating, compensated or error;\n"
    "                    several with commas between\n"
    "  --tag KEY=VALUE   with that tag; any number of times\n"
    "  --after TIME      submitted at or after: 2026-01-31T10:00:00Z\n"
    "  --before TIME     submitted before\n"
    "  --limit N         at most so many, up to 500      [50]\n"
    "  --all             page after page, all of them\n" CLIENT_USAGE;

struct list {
    struct buf query;
    bool all;
};

static void add_query(struct buf *b, const char *prefix, struct slice name, struct slice value)
{
    if (b->len)
        buf_byte(b, '&');
    buf_str(b, prefix);
    client_escape(b, name);
    buf_byte(b, '=');
    client_escape(b, value);
}

static bool take(void *arg, int flag, const char *value)
{
    struct list *list = arg;
    const char *equals;

    switch (flag) {
    case 's':
        add_query(&list->query, "", SLICE("state"), slice_of(value));
        return true;
    case 'w':
        add_query(&list->query, "", SLICE("workflow"), slice_of(value));
        return true;
    case 'A':
        add_query(&list->query, "", SLICE("submitted_after"), slice_of(value));
        return true;
    case 'B':
        add_query(&list->query, "", SLICE("submitted_before"), slice_of(value));
        return true;
    case 'l':
        add_query(&list->query, "", SLICE("limit"), slice_of(value));
        return true;
    case 'a':
        list->all = true;
        return true;
    case 't':
        equals = strchr(value, '=');
        if (!equals) {
            fprintf(stderr, "intact: --tag is \"%s\", expected KEY=VALUE\n", value);
            return false;
        }
        add_query(&list->query, "tag.", (struct slice){value, (size_t)(equals - value)},
                  slice_of(equals + 1));
        return true;
    default:
        fputs(usage, stderr);
        return false;
    }
}

static void print_page(const struct json *tasks)
{
    static const struct {
        const char *head, *key;
    } columns[] = {
        {"ID", "id"},
        {"WORKFLOW", "workflow"},
        {"STATE", "state"},
        {"PRIORITY", "priority"},
        {"FAILURES", "failure_count"},
        {"SUBMITTED", "submitted_at"},
        {"ENDED", "ended_at"},
        {"WAITING FOR", "waiting_for"},
    };
    CLEANUP(table_fini) struct table t = {.columns = COUNT_OF(columns)};

    for (size_t i = 0; i < COUNT_OF(columns); i++)
        table_add(&t, slice_of(columns[i].head));
    for (const struct json *j = tasks ? tasks->child : NULL; j; j = j->next)
        for (size_t i = 0; i < COUNT_OF(columns); i++) {
            const struct json *cell = json_get(j, columns[i].key);
            table_add(&t, cell ? cell->text : SLICE_NONE); /* numbers have a text too */
        }
    table_print(&t);
}

static int list_pages(struct intact_client *c, const struct client_flags *f, struct list *list)
{
    const size_t plain = list->query.len;

    for (;;) {
        CLEANUP(arena_fini) struct arena a = {0};
        enum intact_status status = intact_client_list(c, list->query.len ? list->query.ptr : NULL);
        const struct json *page = status == INTACT_OK ? client_answer(c, &a) : NULL;

        if (!page)
            return status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
        struct slice next = json_get_text(page, "next");
        if (f->json)
            client_print_body(c);
        else
            print_page(json_get(page, "tasks"));
        if (!list->all || !next.len)
            return CLI_OK;
        list->query.len = plain;
        add_query(&list->query, "", SLICE("cursor"), next);
    }
}

int cli_list(int argc, char **argv)
{
    static const struct option flags[] = {CLIENT_FLAGS,
                                          {"state", required_argument, NULL, 's'},
                                          {"workflow", required_argument, NULL, 'w'},
                                          {"tag", required_argument, NULL, 't'},
                                          {"after", required_argument, NULL, 'A'},
                                          {"before", required_argument, NULL, 'B'},
                                          {"limit", required_argument, NULL, 'l'},
                                          {"all", no_argument, NULL, 'a'},
                                          {NULL, 0, NULL, 0}};
    struct client_flags common = {0};
    struct list list = {0};
    const struct flag_reader reader = {usage, flags, take, &list};
    int end = client_read_flags(argc, argv, &reader, &common);

    if (end == CLI_OK && optind < argc) {
        fputs(usage, stderr);
        end = CLI_USAGE;
    }
    if (end == CLI_OK) {
        struct intact_client *c = client_open(&common);
        end = list_pages(c, &common, &list);
        intact_client_free(c);
    }
    buf_fini(&list.query);
    return end < 0 ? CLI_OK : end;
}
