/*
 * A dry run of an operation: the tasks that it would change, and those that it would refuse. It
 * reads as the operation does, in small parts, for a few seconds at most, and reports whether it
 * has read all.
 */

#include "api/operations.h"
#include "core/items.h"
#include "core/reason.h"
#include "definition/registry.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "operations/filter.h"
#include "operations/operation.h"
#include "store/codec/codec.h"
#include "store/job.h"
#include "tasks/tasks.h"
#include "json/json.h"

enum {
    DRY_MS = 5000,
    DRY_PAGE = 100,
    DRY_IDS = 20,
};

struct dry_run {
    struct exchange x;
    struct slice caller;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct arena rows;  /* of one page */
    struct operation op;
    struct row_page page;
    uint64_t matched, possible, scanned;
    struct slice ids[DRY_IDS];
    size_t id_count;
    uint64_t until_ns;
    enum err err;
    struct error error;
};

/* ---- what would become of a task ---- */

static enum event_kind event_of(const struct operation *op)
{
    static const enum event_kind kinds[] = {
        [ASK_RETRY] = EVENT_RETRY,   [ASK_SKIP] = EVENT_SKIP,       [ASK_UNDO] = EVENT_UNDO,
        [ASK_CANCEL] = EVENT_UNDO,   [ASK_PAUSE] = EVENT_PAUSE,     [ASK_RESUME] = EVENT_RESUME,
        [ASK_SUPPLY] = EVENT_SUPPLY, [ASK_CORRECT] = EVENT_CORRECT, [ASK_CLOSE] = EVENT_CLOSE,
        [ASK_REOPEN] = EVENT_REOPEN, [ASK_RESOLVE] = EVENT_RESOLVE,
    };

    return op->from ? EVENT_RETRY_FROM : kinds[op->kind];
}

static bool is_so_already(const struct operation *op, const struct task *t, int step)
{
    bool error = t->state == TASK_ERROR;
    bool back = t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO;

    if (task_state_is_end(t->state))
        return op->kind == ASK_CANCEL && t->state == TASK_COMPENSATED;
    if (op->kind == ASK_PAUSE || op->kind == ASK_RESUME)
        return !error && (t->paused_at != 0) == (op->kind == ASK_PAUSE);
    if (op->kind == ASK_CLOSE || op->kind == ASK_REOPEN)
        return error && (t->closed_at != 0) == (op->kind == ASK_CLOSE);
    if (op->kind == ASK_RESOLVE)
        return t->closed_at == 0 && step_is_resolved(&t->steps[step]);
    if (op->kind == ASK_UNDO || (op->kind == ASK_CANCEL && !error))
        return back && t->paused_at == 0 && t->closed_at == 0;
    return false;
}

static void signal_refusal(struct buf *b, const struct operation *op, const struct workflow *w,
                           const struct task *t)
{
    enum obstacle o = signal_obstacle(w, t, &op->signal);

    if (o != OBSTACLE_NONE)
        operation_obstacle(b, o, t);
}

enum { UNIT_UNREAD = -2 };

/* The unit of a step, or of an item at work. -1: there is no such step. */
static int unit_named(const struct workflow *w, const struct task *t, struct slice name)
{
    int step = workflow_step_index(w, name);
    struct slice of;
    uint32_t item = 0;

    if (step >= 0 || !item_name_split(name, &of, &item))
        return step;
    step = workflow_step_index(w, of);
    if (step < 0 || !t->steps[step].items)
        return -1;
    int unit = items_slot(w, t, (uint16_t)step, item);
    return unit >= 0 ? unit : UNIT_UNREAD;
}

/* Why nothing would be done; empty: it would. */
static void refusal(struct buf *b, const struct dry_run *d, const struct workflow *w,
                    const struct task *t)
{
    const struct operation *op = &d->op;
    int step = op->step.ptr ? unit_named(w, t, op->step) : -1;
    bool stands = op->kind == ASK_CANCEL /* for an operator, not for the submitter */
                  && (t->state == TASK_ERROR || t->state == TASK_PROCESSED);
    uint16_t at = 0;

    if (op->kind == ASK_SIGNAL) {
        signal_refusal(b, op, w, t);
    } else if (step == UNIT_UNREAD) {
        buf_str(b, "the item has ended or not begun: a dry run does not read it");
    } else if (op->step.ptr && step < 0) {
        buf_fmt(b, "the task has no step \"%.*s\"", SLICE_ARG(slice_cut(op->step, ASK_NAME_TOLD)));
    } else if (is_so_already(op, t, step)) {
        buf_str(b, "the task is already in that state");
    } else if (stands || !operator_may(w, t, event_of(op), step, server_now(d->x.server))) {
        enum obstacle o =
            stands ? OBSTACLE_STATE
                   : operator_obstacle(w, t, event_of(op), step, server_now(d->x.server), &at);
        operation_obstacle(b, o, t);
    } else if (!op->by_admin && operator_needs_admin(w, t, event_of(op), step)) {
        operation_obstacle(b, OBSTACLE_ADMIN, t);
    }
}

static void look_at(struct dry_run *d, const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct definition *def =
        registry_find(&d->x.server->workflows, row->workflow, row->version);
    CLEANUP(buf_fini) struct buf why = {0};
    struct error e = {0};
    struct task t;

    d->matched++;
    if (d->id_count < DRY_IDS)
        d->ids[d->id_count++] = arena_copy(&d->arena, row->id);
    if (def && task_decode(&def->workflow, row, &a, &t, &e) == ERR_OK)
        refusal(&why, d, &def->workflow, &t);
    else
        buf_str(&why, "the task's record or its workflow cannot be read by this node");
    if (why.len > 0)
        operation_refused(&d->op, buf_view(&why), &d->arena);
    else
        d->possible++;
}

/* ---- the answer ---- */

static void answer(struct http_request *r, const struct dry_run *d)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "dry_run");
    json_bool(&b, true);
    json_key(&b, "verb");
    json_string(&b, slice_of(ask_kind_text(d->op.kind)));
    json_key(&b, "matched");
    json_number(&b, (int64_t)d->matched);
    json_key(&b, "complete");
    json_bool(&b, d->op.seen_all);
    json_key(&b, "scanned");
    json_number(&b, (int64_t)d->scanned);
    json_key(&b, "possible");
    json_number(&b, (int64_t)d->possible);
    json_key(&b, "refused");
    json_open(&b, '{');
    for (size_t i = 0; i < d->op.refused_count; i++) {
        json_key_slice(&b, d->op.refused[i].reason);
        json_number(&b, (int64_t)d->op.refused[i].count);
    }
    json_close(&b, '}');
    json_key(&b, "ids");
    json_open(&b, '[');
    for (size_t i = 0; i < d->id_count; i++)
        json_string(&b, d->ids[i]);
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void dry_end(struct dry_run *d)
{
    struct server *sv = d->x.server;
    struct http_request *r = d->x.http;

    if (r) {
        exchange_untie(&d->x);
        if (d->err == ERR_OK)
            answer(r, d);
        else
            answer_trouble(r, d->err, d->error.text);
    }
    sv->load.exchanges--;
    sv->load.reads_open--;
    arena_fini(&d->rows);
    struct arena a = d->arena;
    arena_fini(&a);
}

/* ---- the parts ---- */

static void part_run(struct store_job *j, struct store *store)
{
    struct dry_run *d = CONTAINER_OF(j, struct dry_run, job);
    struct list_query q = d->op.filter.query;

    q.limit = DRY_PAGE;
    if (d->op.limit && (uint64_t)d->op.limit - d->matched < DRY_PAGE)
        q.limit = (size_t)((uint64_t)d->op.limit - d->matched);
    q.before_seq = d->op.cursor;
    q.groups = true;
    d->err = store->ops->list(store, &q, &d->rows, &d->page, &d->error);
}

static void part_begin(struct dry_run *d)
{
    arena_fini(&d->rows);
    d->page = (struct row_page){0};
    readings_add(d->x.server->readings, d->caller, READING_MANY, &d->job);
}

static void part_done(struct store_job *j)
{
    struct dry_run *d = CONTAINER_OF(j, struct dry_run, job);

    if (d->err != ERR_OK) {
        dry_end(d);
        return;
    }
    for (size_t i = 0; i < d->page.count; i++)
        look_at(d, &d->page.rows[i]);
    d->scanned += d->page.scanned;
    d->op.cursor = d->page.next_seq;
    d->op.seen_all =
        !d->page.more
        || (d->op.limit && d->matched >= (uint64_t)d->op.limit); /* as many as wanted */
    if (d->op.seen_all || !d->x.http || d->x.server->draining || uv_hrtime() >= d->until_ns)
        dry_end(d);
    else
        part_begin(d);
}

void operation_dry_run(struct server *sv, struct http_request *r, struct arena *a,
                       const struct operation *op)
{
    struct dry_run *d = arena_alloc(a, sizeof *d);

    *d = (struct dry_run){.arena = *a, .op = *op};
    filter_places(&d->op.filter, &sv->workflows, &d->arena);
    d->until_ns = uv_hrtime() + DRY_MS * UINT64_C(1000000);
    d->job = (struct store_job){.run = part_run, .done = part_done};
    d->caller = arena_copy(&d->arena, sv->caller);
    exchange_begin(&d->x, sv, r);
    d->x.reading = &d->job;
    sv->load.exchanges++;
    sv->load.reads_open++;
    part_begin(d);
}
