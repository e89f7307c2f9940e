/*
 * GET /v1/tasks/{id}, with ?wait=: reads the record, and again when the task has ended. Answers to
 * submissions and commands that want the record come from here, too (tasks.h). GET
 * /v1/tasks/{id}/signals: the signals that no step has taken.
 */

#include <stdlib.h>

#include "api/body.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/records.h"
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

#define RECORD_ALONE (SIZE_MAX / 2) /* one is always read, however large */

/* Records that were written when their tasks ended, to be sent at the end of the turn. */
struct shown {
    struct link ready; /* of struct reader */
};

struct reader {
    struct exchange x;
    struct store_job job;
    struct arena arena;
    const struct grant *grant;
    struct slice caller; /* whose token it is read for */
    bool of_change;      /* it is the answer to a submission, which waits for no reader */
    struct waiter waiter;
    bool ended_meanwhile; /* while it was read: what was read may be older */
    int64_t wait_until;   /* steady; 0: answers with whatever there is */
    int status;
    struct slice more; /* members that the record gets besides its own */
    uv_timer_t timer;  /* the end of the wait */
    bool timer_open, reading;
    bool awaits;  /* is counted in load.awaiting */
    bool missing; /* it was not there a moment ago: only whether it was deleted is to be answered */
    struct task_record record;
    struct record_read gathered; /* a read of it among others, ... */
    bool gathers;                /* ... which it waits for as soon as it does not wait for an end */
    struct link ready;           /* its text is to be sent at the end of the turn */
    struct pulses pulses;        /* as they were when the reading began */
    bool signals;                /* of the record only the signals that are kept, ... */
    struct slice step;           /* ... or only items of this step; NONE: not only they */
    struct item_page page;
    bool items_read;    /* or it was tried; not so while the workflow was not known here */
    enum err items_err; /* of the read of items */
    bool renders, ends; /* the thread that reads also writes the record, ... */
    struct buf text;    /* ... here; empty: it did not */
    struct registry_wait definitions;
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

    if (task_decode(&d->workflow, &rd->record.row, &rd->arena, &t, &rd->record.error) != ERR_OK)
        return false;
    if (rd->signals)
        render_signals(&rd->text, &t);
    else if (rd->step.ptr)
        render_items(&rd->text, &rd->pulses, &d->workflow, &t, &rd->page);
    else
        render_task(&rd->text, &rd->pulses, &d->workflow, &t, &rd->record.row,
                    &rd->record.operations);
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
    answer_json_taken(r, rd->status, &rd->text);
}

static void answer_task(struct reader *rd)
{
    struct server *sv = rd->x.server;
    struct http_request *r = rd->x.http;
    const struct definition *d = NULL;

    exchange_untie(&rd->x);
    if (rd->record.err == ERR_NOT_FOUND || (rd->record.err == ERR_OK && rd->missing)) {
        answer_no_task(sv, r, rd->record.id, &rd->record.gone);
        return;
    }
    if (rd->record.err != ERR_OK) {
        answer_trouble(r, rd->record.err, rd->record.error.text);
        return;
    }
    if (!answer_has_room(sv, r, rd->arena.total))
        return;
    if (rd->items_err == ERR_NOT_FOUND) {
        http_problem(r, 422, "bad-step", "%s", rd->record.error.text);
        return;
    }
    if (rd->items_err != ERR_OK && rd->items_err != ERR_CORRUPT) {
        answer_trouble(r, rd->items_err, rd->record.error.text);
        return;
    }
    d = registry_find(&sv->workflows, rd->record.row.workflow, rd->record.row.version);
    if (rd->text.len == 0 && (!d || rd->items_err != ERR_OK || !render(rd, d))) {
        http_problem(r, 500, "task-unreadable", "task %.*s cannot be read: %s",
                     SLICE_ARG(rd->record.id),
                     d ? rd->record.error.text : "its workflow is not known to this program");
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
        return error_set(&rd->record.error, ERR_NOT_FOUND,
                         "workflow %.*s has no step \"%.*s\" with for_each",
                         SLICE_ARG(rd->record.row.workflow), SLICE_ARG(slice_cut(rd->step, 80)));
    enum err err = task_decode(&d->workflow, &rd->record.row, &rd->arena, &t, &rd->record.error);
    if (err != ERR_OK)
        return err;
    struct item_read r = {.task = rd->record.id,
                          .step = rd->step,
                          .generation = t.steps[step].generation,
                          .order = ITEMS_UP,
                          .from = rd->page.from,
                          .limit = rd->page.limit,
                          .bytes_max = ITEMS_BYTES_MAX};
    if ((err = store->ops->items->read(store, &r, &rd->arena, &rd->record.error)) != ERR_OK)
        return err;
    rows = arena_alloc(&rd->arena, (r.count + 1) * sizeof *rows);
    for (size_t i = 0; i < r.count && err == ERR_OK; i++)
        err = item_decode(&d->workflow, (uint16_t)step, &r.rows[i], &rd->arena, &rows[i],
                          &rd->record.error);
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

    task_records_read(store, &rd->record, 1, RECORD_ALONE);
    const struct definition *d =
        rd->record.err == ERR_OK
            ? registry_find_shared(&rd->x.server->workflows, rd->record.row.workflow,
                                   rd->record.row.version)
            : NULL;
    if (!d)
        return;
    rd->items_read = true;
    rd->items_err = read_items(store, rd, d);
    if (rd->items_err == ERR_OK)
        (void)render(rd, d);
    j->bytes = rd->arena.total + rd->text.cap;
}

/* What was read is large, and will be shown: the thread that reads it also writes it. */
static void is_read_there(struct reader *rd)
{
    if (rd->record.err == ERR_OK && rd->renders && rd->arena.total > RECORD_LARGE
        && (rd->ends || is_over(&rd->record.row))) {
        const struct definition *d =
            registry_find_shared(&rd->x.server->workflows, rd->record.row.workflow,
                                 rd->record.row.version);
        if (d)
            (void)render(rd, d); /* an error is found again by answer_task */
    }
}

static void read_run(struct store_job *j, struct store *store)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);

    task_records_read(store, &rd->record, 1, RECORD_ALONE);
    is_read_there(rd);
    j->bytes = rd->arena.total + rd->text.cap;
}

static void gathered_is_read(struct record_read *r)
{
    is_read_there(CONTAINER_OF(r, struct reader, gathered));
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

/* From before the first read on: an end between a read and its answer is not missed. */
static void join(struct reader *rd)
{
    struct server *sv = rd->x.server;

    if (rd->wait_until != 0 && !rd->waiter.in && !sv->draining)
        waiter_join(sv, rd->record.id, &rd->waiter);
}

static void begin_waiting(struct reader *rd)
{
    struct server *sv = rd->x.server;

    rd->gathers = true;
    awaits(rd, true);
    join(rd);
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
    return rd->x.http && rd->step.ptr && rd->record.err == ERR_OK && !rd->items_read
           && registry_find(&rd->x.server->workflows, rd->record.row.workflow,
                            rd->record.row.version);
}

static void is_read(struct reader *rd)
{
    task_hide(rd->grant, &rd->record.row, &rd->record.err, &rd->record.gone);
    bool ended = rd->record.err != ERR_OK || is_over(&rd->record.row);

    rd->reading = false;
    rd->x.server->load.reads_open--;
    if (items_are_missing(rd)) {
        begin_reading(rd);
    } else if (!rd->x.http) {
        reader_end(rd);
    } else if (!ended && !rd->x.server->draining && rd->wait_until > server_steady(NULL)) {
        if (rd->ended_meanwhile)
            begin_reading(rd);
        else
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
        rd->record.err = error_set(&rd->record.error, err, "%s", story);
    is_read(rd);
}

static void record_done(struct reader *rd)
{
    if (rd->x.http && rd->record.err == ERR_OK
        && cache_must_wait(rd->x.server, &rd->record.row, &rd->definitions))
        return;
    is_read(rd);
}

static void read_done(struct store_job *j)
{
    record_done(CONTAINER_OF(j, struct reader, job));
}

static void gathered_is_done(struct record_read *r)
{
    record_done(CONTAINER_OF(r, struct reader, gathered));
}

/* Together with others of the same token. */
static void begin_gathered(struct reader *rd)
{
    rd->gathered.record = &rd->record;
    rd->gathered.account = rd->x.http ? rd->x.http->account : NULL;
    rd->gathered.read = gathered_is_read;
    rd->gathered.done = gathered_is_done;
    record_read_begin(rd->x.server, rd->caller, rd->of_change, &rd->gathered);
}

static void begin_reading(struct reader *rd)
{
    struct server *sv = rd->x.server;

    ASSERT(!rd->reading);
    awaits(rd, false);
    join(rd);
    rd->reading = true;
    rd->ended_meanwhile = false;
    rd->renders = !rd->of_change;
    rd->ends = rd->wait_until == 0;
    buf_fini(&rd->text);
    scheduler_pulses(sv->scheduler, rd->record.id, &rd->arena, &rd->pulses);
    sv->load.reads_open++;
    if (rd->of_change || rd->gathers) {
        begin_gathered(rd);
        return;
    }
    rd->job = (struct store_job){.run = rd->step.ptr ? items_run : read_run,
                                 .done = read_done,
                                 .account = rd->x.http ? rd->x.http->account : NULL};
    readings_add(sv->readings, rd->caller, READING_ONE, &rd->job);
}

static void reader_gone(struct exchange *x)
{
    struct reader *rd = CONTAINER_OF(x, struct reader, x);

    if (!rd->reading)
        reader_end(rd);
}

enum { PART_SIZE = 300 }; /* of a record, about: a step, an attempt, a signal, an operation */

static size_t size_of_step(const struct step *s)
{
    size_t size = PART_SIZE + s->input.json.len + s->output.json.len + s->resume.len;

    for (uint16_t i = 0; i < s->attempt_count; i++)
        size += PART_SIZE + s->attempts[i].output.json.len;
    return size;
}

/* The values that it shows, and a little for each of its parts. */
static bool is_small(const struct task_end *end)
{
    const struct task *t = end->task;
    size_t size = t->input.json.len + t->output.json.len + t->family.len + t->tags.len
                  + (size_t)t->signal_count * PART_SIZE;

    for (size_t i = 0; i < end->operations->count && size <= RECORD_LARGE; i++)
        size += PART_SIZE + end->operations->entries[i].reason.len
                + end->operations->entries[i].detail.len;
    for (uint16_t i = 0; i < t->step_count && size <= RECORD_LARGE; i++)
        size += size_of_step(&t->steps[i]);
    return size <= RECORD_LARGE;
}

/* The record as this node has committed it, if it is small enough for the loop to write it. */
static bool write_end(struct reader *rd, const struct task_end *end)
{
    if (!end || !end->row || !is_small(end))
        return false;
    rd->record.row = *end->row; /* its slices end with the call */
    rd->record.err = ERR_OK;
    task_hide(rd->grant, &rd->record.row, &rd->record.err, &rd->record.gone);
    rd->record.row = (struct task_row){0};
    if (rd->record.err != ERR_OK)
        return false;
    scheduler_pulses(rd->x.server->scheduler, rd->record.id, &rd->arena, &rd->pulses);
    buf_fini(&rd->text);
    render_task(&rd->text, &rd->pulses, end->workflow, end->task, end->row, end->operations);
    return true;
}

/* Sending may be a system call, and the store is to get its next batch before that. */
static void task_has_ended(struct waiter *w, const struct task_end *end)
{
    struct reader *rd = CONTAINER_OF(w, struct reader, waiter);

    if (rd->reading) {
        rd->ended_meanwhile = true;
        return;
    }
    if (!write_end(rd, end)) {
        begin_reading(rd);
        return;
    }
    awaits(rd, false);
    rd->reading = true; /* it neither waits nor ends before the turn */
    list_push(&rd->x.server->api->shown->ready, &rd->ready);
}

static int64_t shown_turn(struct server *sv)
{
    for (struct link *l = NULL; (l = list_pop(&sv->api->shown->ready));) {
        struct reader *rd = CONTAINER_OF(l, struct reader, ready);
        struct http_request *r = rd->x.http;
        exchange_untie(&rd->x);
        if (r && answer_has_room(sv, r, rd->text.len))
            answer_record(rd, r);
        rd->reading = false;
        reader_end(rd);
    }
    return 0;
}

static struct reader *reader_new(struct server *sv, struct http_request *r, struct slice id,
                                 const struct grant *grant)
{
    struct arena a = {0};
    struct reader *rd = arena_alloc(&a, sizeof *rd);

    rd->arena = a;
    rd->record.id = arena_copy(&rd->arena, id);
    rd->record.arena = &rd->arena;
    rd->grant = grant_copy(grant, &rd->arena);
    rd->caller = arena_copy(&rd->arena, sv->caller);
    rd->waiter.ended = task_has_ended;
    rd->waiter.shows = true;
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

void task_answer_end(struct server *sv, struct http_request *r, struct slice id, int64_t wait_ms,
                     int status, struct slice more)
{
    struct reader *rd = reader_new(sv, r, id, NULL);

    ASSERT(wait_ms > 0);
    rd->more = arena_copy(&rd->arena, more);
    rd->status = status;
    rd->of_change = true;
    rd->wait_until = server_steady(NULL) + wait_ms;
    if (sv->draining)
        begin_reading(rd);
    else
        begin_waiting(rd);
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

/* ---- the part ---- */

static enum err shown_open(struct server *sv, struct error *e)
{
    struct shown *shown = calloc(1, sizeof *shown);
    (void)e;

    ASSERT(shown);
    list_init(&shown->ready);
    sv->api->shown = shown;
    return ERR_OK;
}

static void shown_free(struct server *sv)
{
    ASSERT(list_empty(&sv->api->shown->ready));
    free(sv->api->shown);
}

const struct part shown_part = {
    .name = "shown",
    .open = shown_open,
    .turn = shown_turn,
    .free = shown_free,
};
