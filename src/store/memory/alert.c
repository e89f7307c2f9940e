/* Alerts, and tasks that stopped in error, of the store in memory. Injects no faults: the
 * operations of the interface, in told.c, do that and then call these functions. */

#include "store/memory/alert.h"

#include <stdlib.h>

#include "store/memory/page.h"
#include "json/json.h"

void mem_alerts_fini(struct mem_alerts *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->alerts[i].arena);
    free(m->alerts);
    *m = (struct mem_alerts){0};
}

static struct alert_row row_of(struct arena *a, const struct alert_row *from)
{
    struct alert_row row = *from;

    row.id = arena_copy(a, from->id);
    row.key = arena_copy(a, from->key);
    row.doc = arena_copy(a, from->doc);
    row.acknowledged_by = arena_copy(a, from->acknowledged_by);
    row.acknowledged_why = arena_copy(a, from->acknowledged_why);
    row.lift = false;
    return row;
}

static struct mem_alert *find(const struct mem_alerts *m, struct slice id)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->alerts[i].row.id, id))
            return &m->alerts[i];
    return NULL;
}

bool mem_alert_fits(const struct mem_alerts *m, const struct alert_row *row)
{
    for (size_t i = 0; row->live && i < m->count; i++) {
        const struct alert_row *other = &m->alerts[i].row;
        if (other->live && slice_eq(other->key, row->key) && !slice_eq(other->id, row->id))
            return false;
    }
    return true;
}

static void trim(struct mem_alerts *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (!m->alerts[i].row.live && m->alerts[i].row.seq <= m->last_seq - ALERTS_KEPT)
            arena_fini(&m->alerts[i].arena);
        else
            m->alerts[kept++] = m->alerts[i];
    }
    m->count = kept;
}

static void acknowledge(struct alert_row *row, const struct alert_row *as)
{
    row->acknowledged_at = as->acknowledged_at;
    row->acknowledged_by = as->acknowledged_by;
    row->acknowledged_why = as->acknowledged_why;
}

void mem_alert_put(struct mem_alerts *m, const struct alert_row *row)
{
    static const struct alert_row nobody;
    struct mem_alert fresh = {0};
    struct alert_row next = *row;
    struct mem_alert *there = find(m, row->id);

    next.fence = NULL;
    acknowledge(&next, there && !row->lift ? &there->row : &nobody);
    if (there) {
        next.opened_at = there->row.opened_at;
        next.key = there->row.key;
        next.seq = there->row.seq;
    } else {
        next.seq = ++m->last_seq;
    }
    fresh.row = row_of(&fresh.arena, &next);
    if (there) {
        arena_fini(&there->arena);
        *there = fresh;
        return;
    }
    m->alerts = reallocarray(m->alerts, m->count + 1, sizeof *m->alerts);
    ASSERT(m->alerts);
    m->alerts[m->count++] = fresh;
    trim(m);
}

void mem_alert_list(const struct mem_alerts *m, const struct alert_query *q, struct arena *a,
                    struct alert_page *ret)
{
    *ret = (struct alert_page){
        .rows = arena_alloc(a, mem_page_room(q->limit, m->count) * sizeof *ret->rows)};
    for (size_t i = m->count; i-- > 0;) {
        const struct alert_row *row = &m->alerts[i].row;
        if ((q->live && !row->live) || (q->before_seq && row->seq >= q->before_seq))
            continue;
        ret->more = ret->count == q->limit;
        if (ret->more)
            return;
        ret->rows[ret->count++] = row_of(a, row);
    }
}

enum err mem_alert_acknowledge(struct mem_alerts *m, struct slice id, const struct audit *audit,
                               bool *ret_news)
{
    struct mem_alert *al = find(m, id);

    if (!al)
        return ERR_NOT_FOUND;
    if (al->row.resolved_at != 0)
        return ERR_CONFLICT;
    *ret_news = al->row.acknowledged_at == 0;
    if (!*ret_news)
        return ERR_OK;
    al->row.acknowledged_at = audit->at;
    al->row.acknowledged_by = arena_copy(&al->arena, audit->actor);
    al->row.acknowledged_why = arena_copy(&al->arena, audit->reason);
    return ERR_OK;
}

/* ---- tasks in error ---- */

static bool is_behind(const struct task_row *row, int64_t ended_at, int64_t seq)
{
    return row->ended_at > ended_at || (row->ended_at == ended_at && row->seq > seq);
}

static int stopped_order(const void *a, const void *b)
{
    const struct task_row *x = &(*(struct mem_task *const *)a)->row;
    const struct task_row *y = &(*(struct mem_task *const *)b)->row;

    if (x->ended_at != y->ended_at)
        return x->ended_at < y->ended_at ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* The step whose error stopped it: one that failed, if there is one. */
static struct slice step_of(const struct json *doc, struct slice code, struct slice direction)
{
    const struct json *steps = json_get(doc, "steps");
    struct slice found = SLICE_NONE;

    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
        struct slice its = json_get_text(s, "direction");
        if (!slice_eq(its.ptr ? its : SLICE("forward"), direction) || !code.ptr
            || !slice_eq(json_get_text(json_get(s, "error"), "code"), code))
            continue;
        if (slice_is(json_get_text(s, "state"), "failed"))
            return json_get_text(s, "name");
        if (!found.ptr)
            found = json_get_text(s, "name");
    }
    return found;
}

/* ---- whether only its children hold it up ---- */

struct held_up {
    struct mem_task *const *tasks;
    size_t count;
    const struct task_row *row;
    struct slice code;
};

/* A step whose child is in error, and is waited for. */
static bool child_holds(const struct held_up *h, const struct json *step)
{
    struct slice child = json_get_text(json_get(step, "child"), "state");
    struct slice state = json_get_text(step, "state");

    if (!slice_is(child, "error") && !slice_is(child, "stuck"))
        return false;
    return h->row->direction == DIRECTION_FORWARD && slice_is(h->code, "child")
               ? slice_is(state, "waiting")
               : !slice_is(state, "undone");
}

static bool step_holds(const struct held_up *h, const struct json *step)
{
    struct slice direction = json_get_text(step, "direction");
    struct slice child = json_get_text(json_get(step, "child"), "state");

    return slice_is(json_get_text(step, "state"), "failed")
           && slice_eq(direction.ptr ? direction : SLICE("forward"),
                       slice_of(direction_text(h->row->direction)))
           && (slice_eq(json_get_text(json_get(step, "error"), "code"), h->code)
               || (slice_is(h->code, "child") && slice_is(child, "compensated")));
}

/* Whether this is the child of that step, and nobody is told to help it. */
static bool is_left_alone(const struct task_row *row, const struct held_up *h,
                          const struct json *step)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *doc = NULL;

    if (!slice_eq(row->parent, h->row->id) || json_parse(&a, row->doc, &doc, NULL) != ERR_OK)
        return false;
    const struct json *parent = json_get(doc, "parent");
    return slice_eq(json_get_text(parent, "step"), json_get_text(step, "name"))
           && json_get_int(parent, "number", 0)
                  == json_get_int(json_get(step, "child"), "number", 0)
           && ((row->state == TASK_ERROR && row->closed_at != 0)
               || (row->state == TASK_PROCESSED
                   && slice_is(json_get_text(parent, "asked"), "undo")));
}

static bool is_of_child(const struct held_up *h, const struct json *doc)
{
    const struct json *steps = json_get(doc, "steps");
    bool found = false;

    if (!slice_is(h->code, "child") && !slice_is(h->code, "pivot"))
        return false;
    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
        if (step_holds(h, s))
            return false;
        if (!child_holds(h, s))
            continue;
        found = true;
        for (size_t i = 0; i < h->count; i++)
            if (is_left_alone(&h->tasks[i]->row, h, s))
                return false;
    }
    return found;
}

static struct stopped stopped_of(struct mem_task *const *tasks, size_t count,
                                 const struct task_row *row, struct arena *a)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct json *doc = NULL;

    if (json_parse(&own, row->doc, &doc, NULL) != ERR_OK)
        doc = NULL;
    const struct json *error = json_get(doc, "error");
    struct slice code = json_get_text(error, "code");
    const struct held_up held_up = {tasks, count, row, code};
    return (struct stopped){
        .seq = row->seq,
        .ended_at = row->ended_at,
        .id = arena_copy(a, row->id),
        .workflow = arena_copy(a, row->workflow),
        .step = arena_copy(a, step_of(doc, code, slice_of(direction_text(row->direction)))),
        .code = arena_copy(a, code),
        .message = arena_copy(a, json_get_text(error, "message")),
        .undo = row->direction == DIRECTION_UNDO,
        .of_child = is_of_child(&held_up, doc),
    };
}

void mem_stopped(struct mem_task *const *tasks, size_t count, int64_t after_ended_at,
                 int64_t after_seq, size_t limit, struct arena *a, struct stopped_page *ret)
{
    size_t found = 0;

    const struct mem_task **list = calloc(count + 1, sizeof(struct mem_task *));
    ASSERT(list);
    for (size_t i = 0; i < count; i++) {
        const struct task_row *row = &tasks[i]->row;
        if (row->state == TASK_ERROR && row->closed_at == 0
            && is_behind(row, after_ended_at, after_seq))
            list[found++] = tasks[i];
    }
    qsort(list, found, sizeof *list, stopped_order);
    *ret = (struct stopped_page){.count = found < limit ? found : limit, .more = found > limit};
    ret->rows = arena_alloc(a, (ret->count + 1) * sizeof *ret->rows);
    for (size_t i = 0; i < ret->count; i++)
        ret->rows[i] = stopped_of(tasks, count, &list[i]->row, a);
    free(list);
}
