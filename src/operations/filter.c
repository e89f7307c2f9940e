/* Reads a task filter, and turns it into a query of the store. Touches no store: page.c runs the
 * query. See filter.h. */

#include "operations/filter.h"

#include <stdio.h>

#include "base/names.h"
#include "base/when.h"

/* The states in which a task is at some step. */
#define STATES_OPEN \
    (1U << TASK_PENDING | 1U << TASK_PROCESSING | 1U << TASK_COMPENSATING | 1U << TASK_ERROR)

/* ---- each reads one member; false: *e has the error ---- */

static bool bad(struct error *e, const char *name, const char *expected)
{
    (void)error_set(e, ERR_INVALID, "filter.%s: expected %s", name, expected);
    return false;
}

static bool read_state(struct slice word, uint32_t *states, struct error *e)
{
    enum task_state state;

    if (!task_state_parse(word, &state))
        return bad(e, "state",
                   "pending, processing, processed, compensating, compensated or error, or an "
                   "array of these");
    *states |= 1U << state;
    return true;
}

static bool take_state(struct arena *a, const struct json *j, struct task_filter *f,
                       struct error *e)
{
    bool ok = true;
    (void)a;

    if (j->type == JSON_STRING)
        return read_state(j->text, &f->query.states, e);
    if (j->type != JSON_ARRAY || j->count == 0)
        return read_state(SLICE(""), &f->query.states, e);
    for (const struct json *one = j->child; ok && one; one = one->next)
        ok = read_state(one->type == JSON_STRING ? one->text : SLICE(""), &f->query.states, e);
    return ok;
}

static bool take_text(const struct json *j, struct slice *ret, struct error *e)
{
    char name[80];

    if (j->type == JSON_STRING && j->text.len > 0) {
        *ret = j->text;
        return true;
    }
    (void)snprintf(name, sizeof name, "%.*s", SLICE_ARG(j->key));
    return bad(e, name, "a text");
}

static bool take_workflow(struct arena *a, const struct json *j, struct task_filter *f,
                          struct error *e)
{
    (void)a;
    return take_text(j, &f->query.workflow, e);
}

static bool take_step(struct arena *a, const struct json *j, struct task_filter *f, struct error *e)
{
    (void)a;
    return take_text(j, &f->step, e);
}

static bool take_agent(struct arena *a, const struct json *j, struct task_filter *f,
                       struct error *e)
{
    (void)a;
    return take_text(j, &f->agent, e);
}

static bool take_error(struct arena *a, const struct json *j, struct task_filter *f,
                       struct error *e)
{
    (void)a;
    return take_text(j, &f->query.error, e);
}

static bool take_version(struct arena *a, const struct json *j, struct task_filter *f,
                         struct error *e)
{
    (void)a;
    if (json_int(j, &f->query.version) && f->query.version > 0)
        return true;
    return bad(e, "version", "a number from 1");
}

static bool take_time(const struct json *j, int64_t *ret, struct error *e)
{
    char name[80];

    if (j->type == JSON_STRING && time_parse(j->text, ret) && *ret > 0)
        return true;
    (void)snprintf(name, sizeof name, "%.*s", SLICE_ARG(j->key));
    return bad(e, name, "a time such as \"2026-01-31T10:00:00Z\"");
}

static bool take_times(struct arena *a, const struct json *j, struct task_filter *f,
                       struct error *e)
{
    struct list_query *q = &f->query;
    (void)a;

    if (slice_is(j->key, "submitted_after"))
        return take_time(j, &q->submitted_after, e);
    if (slice_is(j->key, "submitted_before"))
        return take_time(j, &q->submitted_before, e);
    if (slice_is(j->key, "ended_after"))
        return take_time(j, &q->ended_after, e);
    return take_time(j, &q->ended_before, e);
}

static bool take_tags(struct arena *a, const struct json *j, struct task_filter *f, struct error *e)
{
    struct tag *tags = NULL;

    if (j->type != JSON_OBJECT || j->count == 0 || j->count > FILTER_TAGS_MAX)
        return bad(e, "tag", "an object of 1 to 32 texts, {\"KEY\": \"VALUE\"}");
    tags = arena_alloc(a, j->count * sizeof *tags);
    for (const struct json *one = j->child; one; one = one->next) {
        if (one->type != JSON_STRING || one->text.len > FILTER_TAG_VALUE_MAX)
            return bad(e, "tag", "an object of 1 to 32 texts, {\"KEY\": \"VALUE\"}");
        tags[f->query.tag_count++] = (struct tag){one->key, one->text};
    }
    f->query.tags = tags;
    return true;
}

static bool take_ids(struct arena *a, const struct json *j, struct task_filter *f, struct error *e)
{
    CLEANUP(map_fini) struct map seen = {0};
    struct slice *ids = NULL;

    if (j->type != JSON_ARRAY || j->count == 0 || j->count > FILTER_IDS_MAX)
        return bad(e, "ids", "an array of 1 to 1000 ids");
    ids = arena_alloc(a, j->count * sizeof *ids);
    for (const struct json *one = j->child; one; one = one->next) {
        if (one->type != JSON_STRING || one->text.len == 0)
            return bad(e, "ids", "an array of 1 to 1000 ids");
        if (!map_get(&seen, one->text))
            ids[f->query.id_count++] = one->text;
        map_put(&seen, one->text, f);
    }
    f->query.ids = ids;
    return true;
}

static bool take_wish(const struct json *j, enum list_wish *ret, const char *name, struct error *e)
{
    *ret = j->type == JSON_TRUE ? LIST_ONLY : LIST_WITHOUT;
    return j->type == JSON_TRUE || j->type == JSON_FALSE || bad(e, name, "true or false");
}

static bool take_closed(struct arena *a, const struct json *j, struct task_filter *f,
                        struct error *e)
{
    (void)a;
    return take_wish(j, &f->query.closed, "closed", e);
}

static bool take_paused(struct arena *a, const struct json *j, struct task_filter *f,
                        struct error *e)
{
    (void)a;
    return take_wish(j, &f->query.paused, "paused", e);
}

static bool take_children(struct arena *a, const struct json *j, struct task_filter *f,
                          struct error *e)
{
    (void)a;
    f->says_children = true;
    f->query.children = j->type == JSON_TRUE ? LIST_EITHER : LIST_WITHOUT;
    return j->type == JSON_TRUE || j->type == JSON_FALSE || bad(e, "children", "true or false");
}

static bool take_parent(struct arena *a, const struct json *j, struct task_filter *f,
                        struct error *e)
{
    (void)a;
    return take_text(j, &f->query.parent, e);
}

static bool take_root(struct arena *a, const struct json *j, struct task_filter *f, struct error *e)
{
    (void)a;
    return take_text(j, &f->query.root, e);
}

static bool take_id_prefix(struct arena *a, const struct json *j, struct task_filter *f,
                           struct error *e)
{
    (void)a;
    if (j->type != JSON_STRING || !is_task_id(j->text))
        return bad(e, "id_prefix", "what the ids of tasks begin with");
    f->query.id_prefix = j->text;
    return true;
}

static bool take_all(struct arena *a, const struct json *j, struct task_filter *f, struct error *e)
{
    (void)a;
    f->all = j->type == JSON_TRUE;
    return f->all || bad(e, "all", "true");
}

static const struct member {
    const char *name;
    bool (*take)(struct arena *a, const struct json *j, struct task_filter *f, struct error *e);
} members[] = {
    {"state", take_state},
    {"workflow", take_workflow},
    {"version", take_version},
    {"step", take_step},
    {"agent", take_agent},
    {"error", take_error},
    {"tag", take_tags},
    {"submitted_after", take_times},
    {"submitted_before", take_times},
    {"ended_after", take_times},
    {"ended_before", take_times},
    {"closed", take_closed},
    {"paused", take_paused},
    {"ids", take_ids},
    {"children", take_children},
    {"parent", take_parent},
    {"root", take_root},
    {"id_prefix", take_id_prefix},
    {"all", take_all},
};

static bool take_member(struct arena *a, const struct json *j, struct task_filter *f,
                        struct error *e)
{
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (slice_is(j->key, members[i].name))
            return members[i].take(a, j, f, e);
    (void)error_set(e, ERR_INVALID,
                    "filter: there is no member \"%.*s\", expected state, workflow, version, step, "
                    "agent, error, tag, submitted_after, submitted_before, ended_after, "
                    "ended_before, closed, paused, ids, id_prefix, children, parent, root, or all",
                    SLICE_ARG(j->key));
    return false;
}

enum err filter_read(struct arena *a, const struct json *j, struct task_filter *ret,
                     struct error *e)
{
    *ret = (struct task_filter){0};
    if (!j || j->type != JSON_OBJECT)
        return error_set(e, ERR_INVALID,
                         "a filter is required: {\"filter\": {\"state\": \"error\", ...}}");
    for (const struct json *m = j->child; m; m = m->next)
        if (!take_member(a, m, ret, e))
            return ERR_INVALID;
    ret->has_conditions = j->count > (ret->all ? 1U : 0U);
    if (!ret->has_conditions && !ret->all)
        return error_set(e, ERR_INVALID,
                         "the filter is empty; to select all tasks, send {\"all\": true}");
    if (ret->has_conditions && ret->all)
        return error_set(e, ERR_INVALID, "the filter has all and other members");
    filter_default_children(ret);
    if (ret->query.states == 0)
        ret->query.states = STATES_OPEN;
    return ERR_OK;
}

/* ---- steps of an agent ---- */

void filter_default_children(struct task_filter *f)
{
    const struct list_query *q = &f->query;

    if (!f->says_children && q->states == 0 && q->id_count == 0 && !q->parent.ptr && !q->root.ptr
        && !q->error.ptr && !f->step.ptr && !f->agent.ptr)
        f->query.children = LIST_WITHOUT;
}

void filter_default_states(struct task_filter *f)
{
    if (f->query.states == 0 && (f->step.ptr || f->agent.ptr))
        f->query.states = STATES_OPEN;
}

struct finding {
    const struct task_filter *filter;
    struct list_place *places; /* NULL: only counts */
    size_t count;
};

static bool is_of_agent(const struct workflow_step *ws, struct slice agent)
{
    return slice_eq(ws->call.agent, agent)
           || (ws->undo_kind == UNDO_CALL && slice_eq(ws->undo.agent, agent));
}

static void look_into(void *arg, const struct definition *d)
{
    struct finding *f = arg;
    const struct workflow *w = &d->workflow;

    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct workflow_step *ws = &w->steps[i];
        if (!is_of_agent(ws, f->filter->agent)
            || (f->filter->step.ptr && !slice_eq(ws->name, f->filter->step)))
            continue;
        if (f->places)
            f->places[f->count] = (struct list_place){w->name, w->version, ws->name};
        f->count++;
    }
}

void filter_places(struct task_filter *f, const struct registry *workflows, struct arena *a)
{
    struct finding found = {.filter = f};
    struct list_query *q = &f->query;

    q->place_count = 0;
    q->agent = f->step.ptr ? SLICE_NONE : f->agent;
    if (f->agent.ptr) {
        registry_each(workflows, look_into, &found);
        found.places = arena_alloc(a, (found.count + 1) * sizeof *found.places);
        found.count = 0;
        registry_each(workflows, look_into, &found);
    } else if (f->step.ptr) {
        found.places = arena_alloc(a, sizeof *found.places);
        found.places[found.count++] = (struct list_place){.step = f->step};
    }
    if (f->agent.ptr && f->step.ptr && found.count == 0) /* no such step has that agent */
        found.places[found.count++] = (struct list_place){.step = SLICE("")};
    ASSERT(found.count == 0 || found.places);
    q->places = found.places;
    q->place_count = found.count;
}
