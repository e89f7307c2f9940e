/*
 * GET /v1/tasks: pages of a listing, newest first, with filters. Read on the reading thread; tasks
 * that the token may not see are left out by the store.
 */

#include "api/body.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "base/names.h"
#include "base/when.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"
#include "node/task_json.h"
#include "operations/filter.h"
#include "store/job.h"
#include "json/json.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 500, IDS_MAX = 100 };

struct lister {
    struct exchange x;
    struct store_job job;
    struct arena arena;
    struct task_filter filter;
    struct tag tags[TAGS_MAX];
    struct row_page page;
    struct summary_faults *faults; /* of each row of the page */
    struct buf text;               /* the answer */
    enum err err;
    struct error error;
};

/* A document leaves out what is not there: a cause need have no step. */
static struct slice cause_of(const struct json *cause, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "step", json_get_text(cause, "step"));
    json_member_text(&b, "code", json_get_text(cause, "code"));
    json_member_text(&b, "message", json_get_text(cause, "message"));
    json_close(&b, '}');
    return arena_copy(a, buf_view(&b));
}

/* Why a task has stopped, or was undone, stands in its document: that is read here, as parsing a
 * page of them takes milliseconds. Others have nothing to tell, and are not parsed. */
static struct summary_faults faults_of(struct arena *a, const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct summary_faults found = {SLICE_NONE, SLICE_NONE};
    struct json *doc = NULL;

    if (row->state != TASK_ERROR && row->state != TASK_COMPENSATING
        && row->state != TASK_COMPENSATED)
        return found;
    if (json_parse(&own, row->doc, &doc, NULL) != ERR_OK)
        return found; /* a row that cannot be read is listed all the same */
    if (json_get(doc, "error"))
        found.error = arena_copy(a, json_get_raw(doc, "error"));
    if (json_get(doc, "cause"))
        found.cause = cause_of(json_get(doc, "cause"), a);
    return found;
}

static void render_list(struct lister *ls)
{
    struct buf *b = &ls->text;

    buf_clear(b);
    json_open(b, '{');
    json_key(b, "tasks");
    json_open(b, '[');
    for (size_t i = 0; i < ls->page.count; i++)
        render_summary(b, &ls->page.rows[i], &ls->faults[i]);
    json_close(b, ']');
    page_next(b, ls->page.more, ls->page.next_seq);
    json_close(b, '}');
}

/* On a thread of the store, because tags and errors of a page may have megabytes. */
static void list_run(struct store_job *j, struct store *store)
{
    struct lister *ls = CONTAINER_OF(j, struct lister, job);

    ls->err = store->ops->list(store, &ls->filter.query, &ls->arena, &ls->page, &ls->error);
    if (ls->err == ERR_OK && ls->page.count > 0)
        ls->faults = arena_alloc(&ls->arena, ls->page.count * sizeof *ls->faults);
    for (size_t i = 0; ls->err == ERR_OK && i < ls->page.count; i++)
        ls->faults[i] = faults_of(&ls->arena, &ls->page.rows[i]);
    if (ls->err == ERR_OK)
        render_list(ls);
    j->bytes = ls->arena.total + ls->text.cap;
}

static void list_done(struct store_job *j)
{
    struct lister *ls = CONTAINER_OF(j, struct lister, job);
    struct http_request *r = ls->x.http;
    struct arena a = ls->arena; /* it lies in it */

    if (r) {
        exchange_untie(&ls->x);
        if (ls->err == ERR_OK)
            answer_json_taken(r, 200, &ls->text);
        else
            answer_trouble(r, ls->err, ls->error.text);
    }
    ls->x.server->load.exchanges--;
    ls->x.server->load.reads_open--;
    buf_fini(&ls->text);
    arena_fini(&a);
}

/* ---- the query: each reads one parameter, and answers if it is wrong ---- */

static bool read_states(struct http_request *r, struct lister *ls, struct slice value)
{
    return states_of(r, value, &ls->filter.query.states);
}

static bool read_workflow(struct http_request *r, struct lister *ls, struct slice value)
{
    (void)r;
    ls->filter.query.workflow = arena_copy(&ls->arena, value);
    return true;
}

static bool read_limit(struct http_request *r, struct lister *ls, struct slice value)
{
    int64_t n = 0;

    if (!count_of(value, LIST_MAX, &n)) {
        http_problem(r, 422, "bad-limit", "limit is \"%.*s\", expected a number from 1 to %d",
                     SLICE_ARG(value), LIST_MAX);
        return false;
    }
    ls->filter.query.limit = (size_t)n;
    return true;
}

static bool read_cursor(struct http_request *r, struct lister *ls, struct slice value)
{
    if (count_of(value, INT64_MAX, &ls->filter.query.before_seq))
        return true;
    http_problem(r, 422, "bad-cursor", "cursor is \"%.*s\", expected the `next` of an earlier page",
                 SLICE_ARG(value));
    return false;
}

static bool read_time(struct http_request *r, const char *name, struct slice value, int64_t *ret)
{
    if (time_parse(value, ret) && *ret > 0)
        return true;
    http_problem(r, 422, "bad-time",
                 "%s is \"%.*s\", expected a time such as 2026-01-31T10:00:00.000Z", name,
                 SLICE_ARG(value));
    return false;
}

static bool read_after(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_time(r, "submitted_after", value, &ls->filter.query.submitted_after);
}

static bool read_before(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_time(r, "submitted_before", value, &ls->filter.query.submitted_before);
}

static bool read_ended_after(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_time(r, "ended_after", value, &ls->filter.query.ended_after);
}

static bool read_ended_before(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_time(r, "ended_before", value, &ls->filter.query.ended_before);
}

static bool read_version(struct http_request *r, struct lister *ls, struct slice value)
{
    if (count_of(value, INT64_MAX, &ls->filter.query.version))
        return true;
    http_problem(r, 422, "bad-version", "version is \"%.*s\", expected a number from 1",
                 SLICE_ARG(value));
    return false;
}

static bool read_step(struct http_request *r, struct lister *ls, struct slice value)
{
    (void)r;
    ls->filter.step = arena_copy(&ls->arena, value);
    return true;
}

static bool read_agent(struct http_request *r, struct lister *ls, struct slice value)
{
    (void)r;
    ls->filter.agent = arena_copy(&ls->arena, value);
    return true;
}

static bool read_error_code(struct http_request *r, struct lister *ls, struct slice value)
{
    (void)r;
    ls->filter.query.error = arena_copy(&ls->arena, value);
    return true;
}

/* "o-1,o-2" */
static bool read_ids(struct http_request *r, struct lister *ls, struct slice value)
{
    struct list_query *q = &ls->filter.query;
    struct slice *ids = arena_alloc(&ls->arena, IDS_MAX * sizeof *ids);
    const char *at = value.ptr;
    const char *end = value.ptr + value.len;

    for (; at <= end; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct slice id = {at, (size_t)((comma ? comma : end) - at)};
        size_t i = 0;
        while (i < q->id_count && !slice_eq(ids[i], id))
            i++;
        if (!is_task_id(id) || i == IDS_MAX) {
            http_problem(r, 422, "bad-ids", "ids: expected 1 to %d ids, separated by commas",
                         IDS_MAX);
            return false;
        }
        if (i == q->id_count)
            ids[q->id_count++] = arena_copy(&ls->arena, id);
        at += id.len;
    }
    q->ids = ids;
    return true;
}

static bool read_wish(const char *name, struct http_request *r, struct slice value,
                      enum list_wish *ret)
{
    *ret = slice_is(value, "true") ? LIST_ONLY : LIST_WITHOUT;
    if (*ret == LIST_ONLY || slice_is(value, "false"))
        return true;
    http_problem(r, 422, "bad-filter", "%s is \"%.*s\", expected true or false", name,
                 SLICE_ARG(value));
    return false;
}

static bool read_paused(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_wish("paused", r, value, &ls->filter.query.paused);
}

static bool read_closed(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_wish("closed", r, value, &ls->filter.query.closed);
}

static bool read_children(struct http_request *r, struct lister *ls, struct slice value)
{
    struct list_query *q = &ls->filter.query;

    ls->filter.says_children = true;
    if (!read_wish("children", r, value, &q->children))
        return false;
    if (q->children == LIST_ONLY)
        q->children = LIST_EITHER;
    return true;
}

static bool read_relative(const char *name, struct http_request *r, struct lister *ls,
                          struct slice value, struct slice *ret)
{
    if (!is_task_id(value)) {
        http_problem(r, 422, "bad-filter", "%s is \"%.*s\", expected the id of a task", name,
                     SLICE_ARG(value));
        return false;
    }
    *ret = arena_copy(&ls->arena, value);
    return true;
}

static bool read_parent(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_relative("parent", r, ls, value, &ls->filter.query.parent);
}

static bool read_root(struct http_request *r, struct lister *ls, struct slice value)
{
    return read_relative("root", r, ls, value, &ls->filter.query.root);
}

static bool read_id_prefix(struct http_request *r, struct lister *ls, struct slice value)
{
    if (!is_task_id(value)) {
        http_problem(r, 422, "bad-filter",
                     "id_prefix is \"%.*s\", expected what the ids of tasks begin with",
                     SLICE_ARG(value));
        return false;
    }
    ls->filter.query.id_prefix = arena_copy(&ls->arena, value);
    return true;
}

static bool read_tag(struct http_request *r, struct lister *ls, struct slice key,
                     struct slice value)
{
    if (!is_tag_key(key) || ls->filter.query.tag_count == TAGS_MAX) {
        http_problem(
            r, 422, "bad-tags",
            "\"tag.%.*s\" names no tag: expected tag.KEY=VALUE, at most %d of them, with a "
            "key of 1 to 64 of [A-Za-z0-9._-]",
            SLICE_ARG(key), TAGS_MAX);
        return false;
    }
    ls->tags[ls->filter.query.tag_count++] =
        (struct tag){arena_copy(&ls->arena, key), arena_copy(&ls->arena, value)};
    return true;
}

static const struct parameter {
    const char *name;
    bool (*read)(struct http_request *r, struct lister *ls, struct slice value);
} parameters[] = {
    {"state", read_states},
    {"workflow", read_workflow},
    {"submitted_after", read_after},
    {"submitted_before", read_before},
    {"limit", read_limit},
    {"cursor", read_cursor},
    {"version", read_version},
    {"step", read_step},
    {"agent", read_agent},
    {"error", read_error_code},
    {"ended_after", read_ended_after},
    {"ended_before", read_ended_before},
    {"ids", read_ids},
    {"paused", read_paused},
    {"closed", read_closed},
    {"children", read_children},
    {"parent", read_parent},
    {"root", read_root},
    {"id_prefix", read_id_prefix},
};

/* What is misspelt must not list everything, and of two values none is meant for sure. */
static bool read_parameter(struct http_request *r, struct lister *ls, struct slice name,
                           struct slice value, uint32_t *seen)
{
    if (!value.ptr) {
        /* The HTTP layer lets none of these through; should it ever, nothing is left out unseen. */
        http_problem(r, 400, "malformed", "the parameter \"%.*s\" is not well encoded",
                     SLICE_ARG(name));
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(parameters); i++) {
        if (!slice_is(name, parameters[i].name))
            continue;
        if (*seen & 1U << i) {
            http_problem(r, 422, "repeated-parameter", "%s is given twice", parameters[i].name);
            return false;
        }
        *seen |= 1U << i;
        return parameters[i].read(r, ls, value);
    }
    if (name.len > 4 && memcmp(name.ptr, "tag.", 4) == 0)
        return read_tag(r, ls, (struct slice){name.ptr + 4, name.len - 4}, value);
    answer_unknown_parameter(r, name,
                             NAMES("state", "workflow", "version", "step", "agent", "error",
                                   "tag.KEY", "submitted_after", "submitted_before", "ended_after",
                                   "ended_before", "ids", "id_prefix", "paused", "closed",
                                   "children", "parent", "root", "limit", "cursor"));
    return false;
}

static bool read_query(struct http_request *r, struct lister *ls)
{
    struct slice name, value;
    uint32_t seen = 0;

    ls->filter.query.limit = LIST_DEFAULT;
    ls->filter.query.tags = ls->tags;
    for (size_t at = 0; http_query_next(r, &at, &name, &value);)
        if (!read_parameter(r, ls, name, value, &seen))
            return false;
    return true;
}

/* What the token may not see is not searched. */
static void list_within(struct lister *ls, const struct grant *g)
{
    struct list_query *q = &ls->filter.query;

    if (!g || g->reads_all)
        return;
    ASSERT(g->read_count > 0);
    q->within = g->reads;
    q->within_count = g->read_count;
    struct slice one = g->reads[0];
    if (g->read_count == 1 && !q->workflow.ptr && one.ptr[one.len - 1] != '*')
        q->workflow = one; /* it has an index */
}

void tasks_list(struct server *sv, struct http_request *r)
{
    struct arena a = {0};

    if (!reading_has_room(sv, r, READING_MANY))
        return;
    struct lister *ls = arena_alloc(&a, sizeof *ls);
    ls->arena = a;
    if (!read_query(r, ls)) {
        a = ls->arena;
        arena_fini(&a);
        return;
    }
    list_within(ls, grant_new(sv->api->bearer, &ls->arena));
    filter_default_children(&ls->filter);
    filter_default_states(&ls->filter);
    filter_places(&ls->filter, &sv->workflows, &ls->arena);
    exchange_begin(&ls->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    ls->job = (struct store_job){.run = list_run, .done = list_done};
    reading_begin(&ls->x, READING_MANY, &ls->job);
}
