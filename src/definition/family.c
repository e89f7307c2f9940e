/* Finds all workflows that a task can start as children, and what is wrong with them: family.h.
 * Each workflow is looked into once, however many ways lead to it, and of those below the root only
 * the workflows that their steps name: what a submission costs does not grow with their steps. */
#include "definition/family.h"

#include <stdio.h>

#include "base/map.h"
#include "config/config_reader.h"

/* A workflow of the family. What is below it is known once it was looked into. */
struct member {
    struct slice name;
    const struct definition *definition;
    bool is_open;    /* it is being looked into: it is on the path */
    bool is_bad;     /* something is wrong with it, and was told */
    uint32_t levels; /* of the family of one task of it; 0: it was not looked into yet */
    uint32_t tasks;  /* likewise */
    const struct member *tallest, *largest; /* the child with most of them; NULL: it has none */
    struct member *next;                    /* in the order in which they were found */
};

struct walk {
    const struct family_source *source;
    struct arena arena;
    struct map members;
    size_t count;
    struct member *first, *last;
    const struct member *path[FAMILY_LEVELS_MAX]; /* from the root */
    uint32_t depth;                               /* the last one's place in it */
    size_t *looks; /* steps that may still be looked at; NULL: all of them */
    struct family_fault *fault;
};

static void walk_fini(struct walk *w)
{
    map_fini(&w->members);
    arena_fini(&w->arena);
}

/* ---- faults ---- */

static void add_name(struct buf *b, struct slice name)
{
    buf_fmt(b, "%s%.*s", b->len > 0 ? " -> " : "", SLICE_ARG(name));
}

enum below { BELOW_NOTHING, BELOW_TALLEST, BELOW_LARGEST };

/* The path to `last`, and perhaps on from there. */
static void write_path(struct walk *w, struct slice last, const struct member *from,
                       enum below below)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (uint32_t i = 0; i <= w->depth; i++)
        add_name(&b, w->path[i]->name);
    add_name(&b, last);
    while (from && below != BELOW_NOTHING) {
        from = below == BELOW_TALLEST ? from->tallest : from->largest;
        if (from)
            last = from->name;
        if (from)
            add_name(&b, last);
    }
    if (b.len >= sizeof w->fault->path) { /* the ends are worth more than what is between */
        buf_clear(&b);
        add_name(&b, slice_cut(w->path[0]->name, 42));
        add_name(&b, SLICE("..."));
        add_name(&b, slice_cut(last, 42));
    }
    (void)snprintf(w->fault->path, sizeof w->fault->path, "%s", b.ptr);
}

static PRINTF(5, 6) bool fails(struct walk *w, enum family_wrong what, const struct member *m,
                               enum below below, const char *expected, ...)
{
    va_list ap;

    va_start(ap, expected);
    w->fault->what = what;
    text_format(w->fault->expected, sizeof w->fault->expected, expected, ap);
    va_end(ap);
    write_path(w, m->name, m, below);
    return false;
}

/* ---- the walk ---- */

static struct member *add_member(struct walk *w, struct slice name, const struct definition *d)
{
    struct member *m = arena_alloc(&w->arena, sizeof *m);

    *m = (struct member){.name = name, .definition = d, .tasks = 1};
    map_put(&w->members, name, m);
    w->count++;
    if (w->last)
        w->last->next = m;
    else
        w->first = m;
    w->last = m;
    return m;
}

/* What does not depend on who starts it. */
static bool may_be_child(struct walk *w, const struct member *m)
{
    const struct definition *d = m->definition;

    if (w->count == FAMILY_WORKFLOWS_MAX + 1)
        return fails(w, FAMILY_TOO_MANY, m, BELOW_NOTHING, "at most %d workflows in a family",
                     FAMILY_WORKFLOWS_MAX);
    if (!d)
        return fails(w, FAMILY_UNKNOWN, m, BELOW_NOTHING, "a workflow \"%.*s\" that is stored",
                     SLICE_ARG(m->name));
    if (d->workflow.lock.name.ptr)
        return fails(w, FAMILY_LOCK, m, BELOW_NOTHING,
                     "a workflow without \"lock\": a child holds none, its root may");
    if (d->needs_submitter && !w->source->has_submitter)
        return fails(w, FAMILY_SUBMITTER, m, BELOW_NOTHING,
                     "a submitter who is known, because an approval of \"%.*s\" is by another "
                     "person: submit it over HTTP with a token",
                     SLICE_ARG(m->name));
    return true;
}

/* NULL: it can be no child, which was told. */
static struct member *member_of(struct walk *w, struct slice name)
{
    struct member *m = map_get(&w->members, name);

    if (!m) {
        m = add_member(w, name, w->source->newest(w->source->arg, name));
        m->is_bad = !may_be_child(w, m);
    }
    return m->is_bad ? NULL : m;
}

static bool look_into(struct walk *w, struct member *m);

/* Looks into it if nobody did. False: told. */
static bool is_sound(struct walk *w, struct member *c)
{
    uint32_t levels = c->levels ? c->levels : 1;
    bool ok = c->levels != 0;

    if (c->is_open)
        return fails(w, FAMILY_CYCLE, c, BELOW_NOTHING, "children without a cycle");
    if (w->depth + 1 + levels > FAMILY_LEVELS_MAX)
        return fails(w, FAMILY_TOO_DEEP, c, BELOW_TALLEST, "at most %d levels of tasks",
                     FAMILY_LEVELS_MAX);
    if (ok)
        return true;
    w->depth++;
    ok = look_into(w, c);
    w->depth--;
    c->is_bad = !ok;
    return ok;
}

/* `m` has so many of this child. False: told, unless it was before. */
static bool count_child(struct walk *w, struct member *m, const struct member *c, uint64_t count)
{
    bool had_room = m->tasks - 1 <= FAMILY_TASKS_MAX;

    if (m->levels < c->levels + 1) {
        m->levels = c->levels + 1;
        m->tallest = c;
    }
    if (!m->largest || m->largest->tasks < c->tasks)
        m->largest = c;
    if (count > FAMILY_TASKS_MAX)
        count = FAMILY_TASKS_MAX + 1;
    if (had_room) {
        uint64_t tasks = m->tasks + count * c->tasks;
        m->tasks = (uint32_t)(tasks < FAMILY_TASKS_MAX + 2 ? tasks : FAMILY_TASKS_MAX + 2);
    }
    if (had_room && m->tasks - 1 > FAMILY_TASKS_MAX)
        return fails(w, FAMILY_TOO_MANY, c, BELOW_LARGEST,
                     "at most %d tasks in a family, besides its root", FAMILY_TASKS_MAX);
    return true;
}

static bool look_at(struct walk *w, struct member *m, const struct child_use *use)
{
    struct member *c = member_of(w, use->workflow);

    if (!c || !is_sound(w, c))
        return false;
    if (c->definition->has_pivot && use->unpivoted.ptr)
        return fails(w, FAMILY_PIVOT, c, BELOW_NOTHING,
                     "pivot: true in step \"%.*s\": workflow \"%.*s\" has a pivot",
                     SLICE_ARG(use->unpivoted), SLICE_ARG(c->name));
    return count_child(w, m, c, use->count);
}

static void begin(struct walk *w, struct member *m)
{
    w->path[w->depth] = m;
    m->is_open = true;
    m->levels = 1;
}

/* False: the walk ends here, and nothing is known of what is behind. */
static bool may_look(struct walk *w)
{
    if (!w->looks)
        return true;
    if (*w->looks == 0)
        return false;
    --*w->looks;
    return true;
}

static bool look_into(struct walk *w, struct member *m)
{
    const struct definition *d = m->definition;
    bool ok = true;

    begin(w, m);
    for (size_t i = 0; ok && i < d->child_count && may_look(w); i++)
        ok = look_at(w, m, &d->children[i]);
    m->is_open = false;
    return ok;
}

/* The next step of the root, from *i on, with which something is wrong. */
static bool next_fault(struct walk *w, const struct workflow *wf, uint16_t *i)
{
    for (; *i < wf->step_count && may_look(w); ++*i) {
        const struct workflow_step *s = &wf->steps[*i];
        if (!s->child.workflow.ptr)
            continue;
        const struct child_use use = {
            .workflow = s->child.workflow,
            .count = s->kind == KIND_EACH ? s->each.max_items : 1,
            .unpivoted = s->undo_kind == UNDO_PIVOT ? SLICE_NONE : s->name,
        };
        w->fault->path[0] = 0;
        w->fault->step = *i;
        if (!look_at(w, w->first, &use) && w->fault->path[0])
            return true;
    }
    return false;
}

static struct walk walk_begin(const struct definition *root, const struct family_source *source,
                              size_t *looks, struct family_fault *fault)
{
    struct walk w = {.source = source, .looks = looks, .fault = fault};

    begin(&w, add_member(&w, root->workflow.name, root));
    w.count = 0;
    return w;
}

static struct slice family_write(const struct walk *w, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    for (const struct member *m = w->first->next; m; m = m->next) {
        json_key_slice(&b, m->name);
        json_number(&b, m->definition->workflow.version);
    }
    json_close(&b, '}');
    return arena_copy(a, buf_view(&b));
}

enum err family_resolve(const struct definition *root, const struct family_source *source,
                        struct arena *a, struct slice *ret, struct family_fault *fault)
{
    uint16_t i = 0;

    *ret = SLICE_NONE;
    if (root->workflow.child_step_count == 0)
        return ERR_OK;
    struct walk w = walk_begin(root, source, NULL, fault);
    bool ok = !next_fault(&w, &root->workflow, &i);
    if (ok)
        *ret = family_write(&w, a);
    walk_fini(&w);
    return ok ? ERR_OK : ERR_INVALID;
}

/* ---- warnings ---- */

void family_warn(const struct definition *root, const struct family_source *source, size_t *looks,
                 struct mistakes *warnings)
{
    const struct workflow *wf = &root->workflow;
    struct reader r = {.text = root->source, .warnings = warnings};
    struct family_fault fault;

    if (wf->child_step_count == 0)
        return;
    struct walk w = walk_begin(root, source, looks, &fault);
    for (uint16_t i = 0; next_fault(&w, wf, &i); i++) {
        struct path steps = {NULL, SLICE("steps"), 0};
        struct path step = {&steps, SLICE_NONE, i};
        struct path task = {&step, SLICE("task"), 0};
        struct path at = {&task, SLICE("workflow"), 0};
        warn_at(&r, &at, root->steps[i].child_at, slice_of(fault.path), "%s", fault.expected);
    }
    mistakes_sort(warnings);
    walk_fini(&w);
}

/* Definitions as they will be. */
struct changed {
    const struct definition *newer;
    const struct family_source *source;
};

static const struct definition *newest_of_changed(void *arg, struct slice workflow)
{
    const struct changed *c = arg;

    return slice_eq(workflow, c->newer->workflow.name)
               ? c->newer
               : c->source->newest(c->source->arg, workflow);
}

/* What a walk costs besides its steps. */
enum { LOOKS_OF_WALK = 50 };

/* True also if there were too few looks left to know. */
static bool is_whole(const struct definition *d, const struct family_source *source, size_t *looks,
                     struct family_fault *fault)
{
    uint16_t i = 0;

    *looks -= *looks < LOOKS_OF_WALK ? *looks : LOOKS_OF_WALK;
    struct walk w = walk_begin(d, source, looks, fault);
    bool ok = !next_fault(&w, &d->workflow, &i);
    walk_fini(&w);
    return ok;
}

void family_warn_parents(const struct definition *newer, const struct family_source *source,
                         const struct definition *const *stored, size_t count, size_t *looks,
                         struct mistakes *warnings)
{
    const struct workflow *wf = &newer->workflow;
    struct changed c = {newer, source};
    struct family_source then = {newest_of_changed, &c, source->has_submitter};
    struct reader r = {.text = newer->source, .warnings = warnings};
    struct path at = {NULL, SLICE("workflow"), 0};
    struct family_fault fault;
    struct family_fault before;

    if (wf->child_step_count == 0 && !newer->has_pivot && !wf->lock.name.ptr)
        return; /* it suits everybody */
    for (size_t i = 0; i < count; i++)
        if (*looks > 0 && !slice_eq(stored[i]->workflow.name, wf->name)
            && !is_whole(stored[i], &then, looks, &fault)
            && is_whole(stored[i], source, looks, &before) && *looks > 0)
            warn_at(&r, &at, newer->name_at, slice_of(fault.path), "%s", fault.expected);
    mistakes_sort(warnings);
}

int64_t family_version(struct slice family, struct slice workflow)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    int64_t version = 0;

    if (!family.ptr || json_parse(&a, family, &j, NULL) != ERR_OK || j->type != JSON_OBJECT)
        return 0;
    for (const struct json *m = j->child; m; m = m->next)
        if (slice_eq(m->key, workflow))
            return json_int(m, &version) ? version : 0;
    return 0;
}
