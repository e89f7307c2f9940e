/*
 * GET /v1/tasks/{id}, with ?wait=: reads the record, and again when the task has ended. Answers to
 * submissions and commands that want the record come from here, too (tasks.h). GET
 * /v1/tasks/{id}/signals: the signals that no step has taken.
 */

#include "api/body.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "api/tasks.h"
#include "background/cache.h"
#include "background/waits.h"
#include "base/when.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/door.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"
#include "node/task_json.h"
#include "node/task_read.h"
#include "store/codec/codec.h"
#include "store/job.h"
#include "json/json.h"

enum { ITEMS_BYTES_MAX = 4 << 20 }; /* of a page */

struct reader {
    struct exchange x;
    struct store_job job;
    struct arena arena;
    struct slice id;
    const struct grant *grant;
    struct slice caller; /* whose token it is read for */
    bool of_change;      /* it is the answer to a submission, which waits for no reader */
    struct waiter waiter;
    int64_t wait_until; /* steady; 0: answers with whatever there is */
    int status;
    struct slice more; /* members that the record gets besides its own */
    uv_timer_t timer;  /* the end of the wait */
    bool timer_open, reading;
    bool awaits;  /* is counted in load.awaiting */
    bool missing; /* it was not there a moment ago: only whether it was deleted is to be answered */
    struct task_row row;
    struct audit_page operations; /* newest first */
    struct pulses pulses;         /* as they were when the reading began */
    bool signals;                 /* of the record only the signals that are kept, ... */
    struct slice step;            /* ... or only items of this step; NONE: not only they */
    struct item_page page;
    bool items_read;         /* or it was tried; not so while the workflow was not known here */
    enum err items_err;      /* of the read of items */
    bool renders, ends;      /* the thread that reads also writes the record, ... */
    struct buf text;         /* ... here; empty: it did not */
    struct reservation gone; /* of one that is not there; until 0: there never was one */
    struct registry_wait definitions;
    enum err err;
    struct error error;
};

static void reader_free(struct reader *rd)
{
    struct arena a = rd->arena; /* it lies in it */

    buf_fini(&rd->text);
    arena_fini(&a);
}

static void timer_closed(uv_handle_t *h)
{
    struct reader *rd = h->data;

    rd->timer_open = false;
    if (!rd->reading)
        reader_free(rd);
}

static void awaits(struct reader *rd, bool is)
{
    rd->x.server->load.awaiting += (size_t)is - (size_t)rd->awaits;
    rd->awaits = is;
}

static void reader_end(struct reader *rd)
{
    awaits(rd, false);
    waiter_leave(rd->x.server, &rd->waiter);
    rd->x.server->load.exchanges--;
    if (rd->timer_open)
        uv_close((uv_handle_t *)&rd->timer, timer_closed);
    else
        reader_free(rd);
}

/* It was deleted, and its id is still kept for it. */
static void answer_gone(struct http_request *r, struct slice id, const struct reservation *gone)
{
    CLEANUP(buf_fini) struct buf detail = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    const char *state = task_state_text(gone->state);

    buf_fmt(&detail, "task %.*s ended %s at ", SLICE_ARG(id), state);
    time_write(&detail, gone->ended_at);
    buf_str(&detail, ", and was deleted");
    json_open(&b, '{');
    json_key(&b, "type");
    json_string(&b, SLICE("urn:intact:problem:task-deleted"));
    json_key(&b, "title");
    json_string(&b, SLICE("Gone"));
    json_key(&b, "status");
    json_number(&b, 410);
    json_key(&b, "detail");
    json_string(&b, buf_view(&detail));
    json_key(&b, "workflow");
    json_string(&b, gone->workflow);
    json_key(&b, "version");
    json_number(&b, gone->version);
    json_key(&b, "state");
    json_string(&b, slice_of(state));
    json_key(&b, "ended_at");
    json_time(&b, gone->ended_at);
    json_key(&b, "reserved_until");
    json_time(&b, gone->until);
    json_close(&b, '}');
    http_answer(r, 410, "application/problem+json", buf_view(&b), NULL);
}

void answer_no_task(struct server *sv, struct http_request *r, struct slice id,
                    const struct reservation *gone)
{
    if (gone->until > server_now(sv))
        answer_gone(r, id, gone);
    else
        http_problem(r, 404, "no-such-task", "there is no task %.*s", SLICE_ARG(id));
}

/* Any thread. A large record takes milliseconds, which the loop has for others. */
static bool render(struct reader *rd, const struct definition *d)
{
    struct task t;

    if (task_decode(&d->workflow, &rd->row, &rd->arena, &t, &rd->error) != ERR_OK)
        return false;
    if (rd->signals)
        render_signals(&rd->text, &t);
    else if (rd->step.ptr)
        render_items(&rd->text, &rd->pulses, &d->workflow, &t, &rd->page);
    else
        render_task(&rd->text, &rd->pulses, &d->workflow, &t, &rd->row, &rd->operations);
    return true;
}

static void answer_record(struct reader *rd, struct http_request *r)
{
    if (rd->more.len > 0) {
        rd->text.len--; /* its } */
        buf_byte(&rd->text, ',');
        buf_slice(&rd->text, rd->more);
        json_close(&rd->text, '}');
    }
    struct http_text *text = http_text_new(&rd->text);

    http_answer_text(r, rd->status, "application/json", text, NULL);
    http_text_drop(text);
}

static void answer_task(struct reader *rd)
{
    struct server *sv = rd->x.server;
    struct http_request *r = rd->x.http;
    const struct definition *d = NULL;

    exchange_untie(&rd->x);
    if (rd->err == ERR_NOT_FOUND || (rd->err == ERR_OK && rd->missing)) {
        answer_no_task(sv, r, rd->id, &rd->gone);
        return;
    }
    if (rd->err != ERR_OK) {
        answer_trouble(r, rd->err, rd->error.text);
        return;
    }
    if (!answer_has_room(sv, r, rd->arena.total))
        return;
    if (rd->items_err == ERR_NOT_FOUND) {
        http_problem(r, 422, "bad-step", "%s", rd->error.text);
        return;
    }
    if (rd->items_err != ERR_OK && rd->items_err != ERR_CORRUPT) {
        answer_trouble(r, rd->items_err, rd->error.text);
        return;
    }
    d = registry_find(&sv->workflows, rd->row.workflow, rd->row.version);
    if (rd->text.len == 0 && (!d || rd->items_err != ERR_OK || !render(rd, d))) {
        http_problem(r, 500, "task-unreadable", "task %.*s cannot be read: %s", SLICE_ARG(rd->id),
                     d ? rd->error.text : "its workflow is not known to this program");
        return;
    }
    answer_record(rd, r);
}

/* A request with ?wait= does not wait any longer. */
static bool is_over(const struct task_row *row)
{
    return task_state_is_end(row->state) || row->state == TASK_ERROR;
}

/* The rows of a page of items. */
static enum err read_items(struct store *store, struct reader *rd, const struct definition *d)
{
    int step = workflow_step_index(&d->workflow, rd->step);
    struct step *rows = NULL;
    struct task t;

    if (step < 0 || d->workflow.steps[step].kind != KIND_EACH)
        return error_set(&rd->error, ERR_NOT_FOUND,
                         "workflow %.*s has no step \"%.*s\" with for_each",
                         SLICE_ARG(rd->row.workflow), SLICE_ARG(slice_cut(rd->step, 80)));
    enum err err = task_decode(&d->workflow, &rd->row, &rd->arena, &t, &rd->error);
    if (err != ERR_OK)
        return err;
    struct item_read r = {.task = rd->id,
                          .step = rd->step,
                          .generation = t.steps[step].generation,
                          .order = ITEMS_UP,
                          .from = rd->page.from,
                          .limit = rd->page.limit,
                          .bytes_max = ITEMS_BYTES_MAX};
    if ((err = store->ops->items->read(store, &r, &rd->arena, &rd->error)) != ERR_OK)
        return err;
    rows = arena_alloc(&rd->arena, (r.count + 1) * sizeof *rows);
    for (size_t i = 0; i < r.count && err == ERR_OK; i++)
        err =
            item_decode(&d->workflow, (uint16_t)step, &r.rows[i], &rd->arena, &rows[i], &rd->error);
    rd->page.step = (uint16_t)step;
    rd->page.rows = rows;
    rd->page.row_count = r.count;
    if (r.more && r.count > 0) /* too many bytes: the page ends there */
        rd->page.limit = min_u32(rd->page.limit, r.rows[r.count - 1].number + 1 - rd->page.from);
    return err;
}

static void items_run(struct store_job *j, struct store *store)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);

    rd->err =
        task_read(store, rd->id, &rd->arena, &rd->row, &rd->operations, &rd->gone, &rd->error);
    const struct definition *d =
        rd->err == ERR_OK
            ? registry_find_shared(&rd->x.server->workflows, rd->row.workflow, rd->row.version)
            : NULL;
    if (!d)
        return;
    rd->items_read = true;
    rd->items_err = read_items(store, rd, d);
    if (rd->items_err == ERR_OK)
        (void)render(rd, d);
    j->bytes = rd->arena.total + rd->text.cap;
}

static void read_run(struct store_job *j, struct store *store)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);

    rd->err =
        task_read(store, rd->id, &rd->arena, &rd->row, &rd->operations, &rd->gone, &rd->error);
    if (rd->err == ERR_OK && rd->renders && rd->arena.total > RECORD_LARGE
        && (rd->ends || is_over(&rd->row))) {
        const struct definition *d =
            registry_find_shared(&rd->x.server->workflows, rd->row.workflow, rd->row.version);
        if (d)
            (void)render(rd, d); /* an error is found again by answer_task */
    }
    j->bytes = rd->arena.total + rd->text.cap;
}

static void begin_reading(struct reader *rd);

static void wait_over(uv_timer_t *t)
{
    struct reader *rd = t->data;

    rd->wait_until = 0;
    waiter_leave(rd->x.server, &rd->waiter);
    if (!rd->reading)
        begin_reading(rd);
}

static void begin_waiting(struct reader *rd)
{
    struct server *sv = rd->x.server;

    awaits(rd, true);
    waiter_join(sv, rd->id, &rd->waiter);
    if (rd->timer_open)
        return;
    int rc = uv_timer_init(&sv->loop, &rd->timer);
    ASSERT(rc == 0);
    rd->timer.data = rd;
    rd->timer_open = true;
    int64_t left = max_i64(1, rd->wait_until - server_steady(NULL));
    (void)uv_timer_start(&rd->timer, wait_over, (uint64_t)left,
                         0); /* cannot fail: it has a callback */
}

/* Another node stored the workflow, and it came to this one meanwhile. */
static bool items_are_missing(struct reader *rd)
{
    return rd->x.http && rd->step.ptr && rd->err == ERR_OK && !rd->items_read
           && registry_find(&rd->x.server->workflows, rd->row.workflow, rd->row.version);
}

static void is_read(struct reader *rd)
{
    task_hide(rd->grant, &rd->row, &rd->err, &rd->gone);
    bool ended = rd->err != ERR_OK || is_over(&rd->row);

    rd->reading = false;
    rd->x.server->load.reads_open--;
    if (items_are_missing(rd)) {
        begin_reading(rd);
    } else if (!rd->x.http) {
        reader_end(rd);
    } else if (!ended && !rd->x.server->draining && rd->wait_until > server_steady(NULL)) {
        begin_waiting(rd);
    } else {
        answer_task(rd);
        reader_end(rd);
    }
}

static void definitions_read(struct registry_wait *w, enum err err, const char *story)
{
    struct reader *rd = CONTAINER_OF(w, struct reader, definitions);

    if (err != ERR_OK)
        rd->err = error_set(&rd->error, err, "%s", story);
    is_read(rd);
}

static void read_done(struct store_job *j)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);

    if (rd->x.http && rd->err == ERR_OK
        && cache_must_wait(rd->x.server, &rd->row, &rd->definitions))
        return;
    is_read(rd);
}

static void begin_reading(struct reader *rd)
{
    struct server *sv = rd->x.server;

    ASSERT(!rd->reading);
    awaits(rd, false);
    rd->reading = true;
    rd->renders = !rd->of_change;
    rd->ends = rd->wait_until == 0;
    buf_fini(&rd->text);
    scheduler_pulses(sv->scheduler, rd->id, &rd->arena, &rd->pulses);
    sv->load.reads_open++;
    rd->job = (struct store_job){.run = rd->step.ptr ? items_run : read_run,
                                 .done = read_done,
                                 .account = rd->x.http ? rd->x.http->account : NULL};
    if (rd->of_change)
        sv->store->submit(sv->store, &rd->job);
    else
        readings_add(sv->readings, rd->caller, READING_ONE, &rd->job);
}

static void reader_gone(struct exchange *x)
{
    struct reader *rd = CONTAINER_OF(x, struct reader, x);

    if (!rd->reading)
        reader_end(rd);
}

static void task_has_ended(struct waiter *w)
{
    begin_reading(CONTAINER_OF(w, struct reader, waiter));
}

static struct reader *reader_new(struct server *sv, struct http_request *r, struct slice id,
                                 const struct grant *grant)
{
    struct arena a = {0};
    struct reader *rd = arena_alloc(&a, sizeof *rd);

    rd->arena = a;
    rd->id = arena_copy(&rd->arena, id);
    rd->grant = grant_copy(grant, &rd->arena);
    rd->caller = arena_copy(&rd->arena, sv->caller);
    rd->waiter.ended = task_has_ended;
    rd->definitions.done = definitions_read;
    exchange_begin(&rd->x, sv, r);
    rd->x.gone = reader_gone;
    rd->x.reading = &rd->job;
    sv->load.exchanges++;
    return rd;
}

void task_get_when_ended(struct server *sv, struct http_request *r, struct slice id,
                         const struct grant *grant, int64_t wait_ms, int status, struct slice more)
{
    struct reader *rd = reader_new(sv, r, id, grant);

    rd->more = arena_copy(&rd->arena, more);
    rd->status = status;
    rd->of_change = !slice_is(r->method, "GET") && !slice_is(r->method, "HEAD");
    rd->wait_until = wait_ms > 0 ? server_steady(NULL) + wait_ms : 0;
    begin_reading(rd);
}

void task_get_missing(struct server *sv, struct http_request *r, struct slice id,
                      const struct grant *grant)
{
    struct reader *rd = reader_new(sv, r, id, grant);

    rd->missing = true;
    begin_reading(rd);
}

void task_items_get(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice id = http_segment(r, 2);
    struct slice step = http_query(r, "step");
    struct slice state = http_query(r, "state");
    enum step_state only = STEP_WAITING;
    size_t limit = 0;
    int64_t from = 0;

    if (!id.ptr) {
        http_problem(r, 404, "no-such-task", "the id in the path is not well encoded");
        return;
    }
    if (!parameters_ok(r, NAMES("step", "state", "limit", "cursor"))
        || !page_query(r, PAGE_USUAL, PAGE_MAX, &limit, &from))
        return;
    if (step.len == 0) {
        http_problem(r, 422, "no-step",
                     "the parameter `step` is missing: the name of a step with for_each");
        return;
    }
    if (state.ptr && !step_state_parse(state, &only)) {
        http_problem(r, 422, "bad-state", "state is \"%.*s\", expected that of a step",
                     SLICE_ARG(slice_cut(state, 80)));
        return;
    }
    if (!reading_has_room(sv, r, READING_ONE))
        return;
    struct reader *rd = reader_new(sv, r, id, grant_new(sv->api->bearer, &a));
    rd->status = 200;
    rd->step = arena_copy(&rd->arena, step);
    rd->page.limit = (uint32_t)limit;
    rd->page.from = (uint32_t)min_i64(from, ITEMS_MAX);
    rd->page.of_state = state.ptr != NULL;
    rd->page.state = only;
    begin_reading(rd);
}

void task_signals_get(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice id = http_segment(r, 2);

    if (!id.ptr) {
        http_problem(r, 404, "no-such-task", "the id in the path is not well encoded");
        return;
    }
    if (!reading_has_room(sv, r, READING_ONE))
        return;
    struct reader *rd = reader_new(sv, r, id, grant_new(sv->api->bearer, &a));
    rd->status = 200;
    rd->signals = true;
    begin_reading(rd);
}

static void get_by_bearer(struct server *sv, struct http_request *r, struct slice id,
                          int64_t wait_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};

    task_get_when_ended(sv, r, id, grant_new(sv->api->bearer, &a), wait_ms, 200, SLICE_NONE);
}

void task_get(struct server *sv, struct http_request *r)
{
    int64_t wait_ms = 0;
    struct slice id = http_segment(r, 2);

    if (!parameters_ok(r, NAMES("wait")) || !wait_of(r, &wait_ms)
        || !reading_has_room(sv, r, READING_ONE))
        return;
    if (!id.ptr)
        http_problem(r, 404, "no-such-task", "the id in the path is not well encoded");
    else if (wait_ms > 0 && !door_may_read(sv, r))
        door_refuse_to_wait(sv, r);
    else
        get_by_bearer(sv, r, id, wait_ms);
}
