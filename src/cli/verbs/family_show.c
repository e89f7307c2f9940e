/* `intact get --family`: the family of a task as a tree, from the pages of a listing by its root
 * (family_show.h). */

#include "cli/verbs/family_show.h"

#include <stdlib.h>

#include "base/map.h"
#include "cli/client/record.h"
#include "cli/client/table.h"

/* More than a family may have: a server that never ends is not read for ever. */
enum { MEMBERS_MAX = 200000, DEPTH_MAX = 32 };

/* What is shown of a task, in the arena of the family. */
struct member {
    struct slice id, parent, workflow, state, state_text, failures, submitted, ended, waiting_for;
    struct member *child; /* the oldest */
    struct member *next;  /* of the same parent; younger */
};

struct family {
    struct arena arena;
    struct map by_id; /* struct member */
    struct member **list;
    size_t count, cap;
};

static void family_fini(struct family *f)
{
    map_fini(&f->by_id);
    free(f->list);
    arena_fini(&f->arena);
}

/* Its summary, or its record. */
static void add(struct family *f, const struct json *task)
{
    struct member *m = arena_alloc(&f->arena, sizeof *m);
    CLEANUP(buf_fini) struct buf state = {0};

    if (f->count == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 64;
        f->list = reallocarray(f->list, f->cap, sizeof *f->list);
        if (!f->list)
            abort();
    }
    record_state(&state, task);
    *m = (struct member){
        .id = arena_copy(&f->arena, json_get_text(task, "id")),
        .parent = arena_copy(&f->arena, json_get_text(task, "parent")),
        .workflow = arena_copy(&f->arena, json_get_text(task, "workflow")),
        .state = arena_copy(&f->arena, json_get_text(task, "state")),
        .state_text = arena_copy(&f->arena, buf_view(&state)),
        .failures = arena_copy(&f->arena, json_get_raw(task, "failure_count")),
        .submitted = arena_copy(&f->arena, json_get_text(task, "submitted_at")),
        .ended = arena_copy(&f->arena, json_get_text(task, "ended_at")),
        .waiting_for = arena_copy(&f->arena, json_get_text(task, "waiting_for")),
    };
    f->list[f->count++] = m;
    map_put(&f->by_id, m->id, m);
}

/* The root. It is deleted before its descendants, and then it is only a name. */
static bool add_root(struct family *f, struct intact_client *c, struct slice root, int *ret_end)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum intact_status status = intact_client_get(c, root.ptr, 0);
    const struct json *task = status == INTACT_OK ? client_answer(c, &a) : NULL;

    if (status == INTACT_OK && task)
        add(f, task);
    else if (status == INTACT_OK)
        *ret_end = CLI_NOT_WELL;
    else if (intact_client_http_status(c) != 404)
        *ret_end = client_complain(c, status);
    return *ret_end == CLI_OK;
}

static bool add_page(struct family *f, const struct json *page)
{
    const struct json *tasks = json_get(page, "tasks");

    for (const struct json *t = tasks ? tasks->child : NULL; t && f->count < MEMBERS_MAX;
         t = t->next)
        if (!map_get(&f->by_id, json_get_text(t, "id")))
            add(f, t);
    return f->count < MEMBERS_MAX;
}

static bool add_descendants(struct family *f, struct intact_client *c, struct slice root,
                            int *ret_end)
{
    CLEANUP(buf_fini) struct buf path = {0};
    bool more = true;

    buf_str(&path, "/v1/tasks?limit=500&root=");
    client_escape(&path, root);
    for (const size_t plain = path.len; more; path.len = plain) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *page = client_ask(c, "GET", path.ptr, NULL, &a, ret_end);
        struct slice next = page ? json_get_text(page, "next") : SLICE_NONE;
        if (!page)
            return false;
        more = add_page(f, page) && next.len > 0;
        buf_str(&path, "&cursor=");
        client_escape(&path, next);
    }
    return true;
}

/* Under its parent, before those that are there: the list has the newest first. */
static void link_up(struct family *f, struct member **ret_top)
{
    for (size_t i = 0; i < f->count; i++) {
        struct member *m = f->list[i];
        struct member *p = m->parent.len > 0 ? map_get(&f->by_id, m->parent) : NULL;
        struct member **at = p && p != m ? &p->child : ret_top;
        m->next = *at;
        *at = m;
    }
}

static void put_member(struct table *t, const struct member *m, int depth)
{
    CLEANUP(buf_fini) struct buf id = {0};

    for (int i = 0; i < depth; i++)
        buf_str(&id, "  ");
    buf_slice(&id, m->id);
    table_add(t, buf_view(&id));
    table_add(t, m->workflow);
    table_add_look(t, term_state_look(m->state), m->state_text);
    table_add(t, m->failures);
    table_add_time(t, m->submitted);
    table_add_time(t, m->ended);
    table_add(t, m->waiting_for);
}

static void print(const struct invocation *in, const struct member *top)
{
    static const char *const heads[] = {"TASK",      "WORKFLOW", "STATE",       "FAILURES",
                                        "SUBMITTED", "ENDED",    "WAITING FOR", NULL};
    const struct member *path[DEPTH_MAX] = {top};
    CLEANUP(table_fini) struct table t;
    int depth = 0;

    table_begin(&t, in, heads);
    while (depth >= 0) {
        const struct member *m = path[depth];
        if (!m) {
            depth--;
            continue;
        }
        put_member(&t, m, depth);
        path[depth] = m->next;
        if (m->child && depth + 1 < DEPTH_MAX)
            path[++depth] = m->child;
    }
    table_print(&t);
}

int family_show(const struct invocation *in, struct intact_client *c, const struct json *task)
{
    CLEANUP(family_fini) struct family f = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice root = json_get_text(task, "root");
    struct member *top = NULL;
    int end = CLI_OK;

    root = arena_copy(&a, root.ptr ? root : json_get_text(task, "id"));
    if (!add_root(&f, c, root, &end) || !add_descendants(&f, c, root, &end))
        return end;
    link_up(&f, &top);
    print(in, top);
    if (f.count == MEMBERS_MAX)
        verb_failed(in, CLI_OK, "these are not all; intact list --root shows them in pages");
    return end;
}
