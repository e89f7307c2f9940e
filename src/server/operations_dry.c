/*
 * A dry run of an operation: which tasks it would concern, and what it would find them to be. It
 * reads as the operation does, in small parts behind the store's other work, for a few seconds at
 * most, and says whether that was all.
 */

#include "server/internal.h"

#include "core/reason.h"
#include "operations/runner.h"
#include "store/codec.h"
#include "json/json.h"

enum {
    DRY_MS = 5000,
    DRY_PAGE = 100,
    DRY_IDS = 20,
    DRY_PATIENCE = 4,
};

struct dry_run {
    struct exchange x;
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

static enum event_kind event_of(enum ask_kind kind)
{
    return kind == ASK_RETRY ? EVENT_RETRY : kind == ASK_SKIP ? EVENT_SKIP : EVENT_UNDO;
}

static bool cancel_may(const struct task *t)
{
    return t->state == TASK_COMPENSATED || (t->state != TASK_PROCESSED && t->state != TASK_ERROR);
}

/* NULL: it would be done. */
static const char *refusal(const struct dry_run *d, const struct workflow *w, const struct task *t,
                           char *story, size_t size)
{
    const struct operation *op = &d->op;
    int step = op->step.ptr ? workflow_step_index(w, op->step) : -1;

    if (op->step.ptr && step < 0)
        (void)snprintf(story, size, "it has no step \"%.*s\"", SLICE_ARG(op->step));
    else if (op->kind == ASK_CANCEL && t->state == TASK_COMPENSATED)
        return NULL;
    else if ((op->kind != ASK_CANCEL || cancel_may(t))
             && operator_may(w, t, event_of(op->kind), step, server_now(d->x.server)))
        return NULL;
    else
        (void)snprintf(story, size, "not possible while it is %s%s", task_state_text(t->state),
                       t->direction == DIRECTION_UNDO ? ", being undone" : "");
    return story;
}

static void look_at(struct dry_run *d, const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct definition *def =
        registry_find(&d->x.server->workflows, row->workflow, row->version);
    const char *why = "its record, or its workflow, cannot be read here";
    struct error e = {0};
    struct task t;
    char story[200];

    d->matched++;
    if (d->id_count < DRY_IDS)
        d->ids[d->id_count++] = arena_copy(&d->arena, row->id);
    if (def && task_decode(&def->workflow, row, &a, &t, &e) == ERR_OK)
        why = refusal(d, &def->workflow, &t, story, sizeof story);
    if (why)
        operation_refused(&d->op, slice_of(why), &d->arena);
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
    sv->exchange_count--;
    sv->reads_open--;
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
    d->err = store->ops->list(store, &q, &d->rows, &d->page, &d->error);
}

static void part_begin(struct dry_run *d)
{
    arena_fini(&d->rows);
    store_thread_background(d->x.server->thread, &d->job, DRY_PATIENCE);
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
    exchange_begin(&d->x, sv, r);
    sv->exchange_count++;
    sv->reads_open++;
    part_begin(d);
}
