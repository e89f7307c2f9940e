/*
 * Deletes ended tasks that rules let go, in small parts between other work, after they were written
 * to the archive. Used by the job that follows the configured rules (retention.c) and by POST
 * /v1/retire (api/retire.c).
 */

#include "background/retire.h"

#include <stdlib.h>

#include "archive/archive.h"
#include "background/retention.h"
#include "background/room.h"
#include "base/log.h"
#include "definition/registry.h"
#include "node/node.h"
#include "node/store_thread.h"
#include "node/task_json.h"
#include "node/task_read.h"
#include "store/codec/codec.h"

enum {
    FLOOR_PAGE = 100,       /* rows, of a listing */
    READ_BYTES = 4 << 20,   /* of records, at once */
    READ_US = 2000,         /* how long a change may have to wait for it, about ... */
    READ_US_SHARED = 20000, /* ... where each record is a round trip, and others go on meanwhile */
    ITEMS_BYTES = 1 << 20,  /* lines of items that are written at once, about */
};

struct retire_record {
    struct task_row row;
    struct audit_page operations;
    enum err err;
    struct error error;
};

/* ---- the rules ---- */

static bool is_for(const struct retire_rule *rule, const struct task_row *row)
{
    bool closed = row->state == TASK_ERROR && row->closed_at != 0;

    if (rule->workflow.ptr && !slice_eq(rule->workflow, row->workflow))
        return false;
    return (rule->states & RETIRE_STATES & 1U << row->state)
           || (closed && rule->states & RETIRE_CLOSED);
}

static void add_rule(struct retirer *r, const struct retention_rule *from, int64_t now)
{
    int64_t keep_ms = max_i64(from->keep_ms, RETIRE_AGE_MIN_MS);

    r->needs[r->rule_count] =
        (struct retire_need){.archive = from->archive, .keep_last = from->keep_last};
    r->rules[r->rule_count++] =
        (struct retire_rule){.workflow = from->workflow,
                             .states = from->states,
                             .ended_before =
                                 from->keep_ms == KEEP_FOR_EVER ? 0 : max_i64(0, now - keep_ms)};
}

bool retire_archives(const struct server *sv)
{
    return sv->background->archive != NULL;
}

void retirer_begin(struct retirer *r, const struct retention_rule *rules, size_t count,
                   struct slice workflow, int64_t now)
{
    struct arena *a = &r->rules_arena;

    r->rules = arena_alloc(a, (count + 1) * sizeof *r->rules);
    r->needs = arena_alloc(a, (count + 1) * sizeof *r->needs);
    r->rule_count = r->floor = 0;
    r->before_seq = 0;
    for (size_t i = 0; i < count; i++) {
        ASSERT(workflow.ptr || rules[i].keep_last == 0);
        if (!workflow.ptr || !rules[i].workflow.ptr || slice_eq(workflow, rules[i].workflow))
            add_rule(r, &rules[i], now);
    }
    r->more = true;
    r->look = (struct retire_look){.rules = r->rules,
                                   .rule_count = r->rule_count,
                                   .workflow = workflow,
                                   .orphans = r->rule_count == 0,
                                   .scan_max = RETIRE_ROWS,
                                   .after_seq = r->after_seq};
}

void retirer_end(struct retirer *r)
{
    free(r->counts);
    r->counts = NULL;
    retire_items_end(&r->items);
    buf_fini(&r->lines);
    arena_fini(&r->arena);
    r->room = 0;
    arena_fini(&r->names_arena);
    arena_fini(&r->rules_arena);
}

/* ---- one after another ---- */

static void submit(struct retirer *r, void (*run)(struct store_job *, struct store *),
                   void (*done)(struct store_job *))
{
    r->job = (struct store_job){.run = run, .done = done};
    store_thread_background(r->server->thread, &r->job, RETIRE_PATIENCE);
}

/* Behind the last task that rules may let go, the children of what went. They may be many. */
static void turn_to_orphans(struct retirer *r)
{
    r->look.orphans = r->look.more = true;
    r->look.after_seq = 0;
    r->look.after_root = SLICE_NONE;
}

static void archive_release(struct retirer *r)
{
    if (r->holds_archive)
        r->server->background->archive_busy = false;
    r->holds_archive = false;
}

static void part_end(struct retirer *r)
{
    ASSERT(r->server->load.exchanges > 0);
    r->server->load.exchanges--;
    archive_release(r);
    if (r->look.orphans)
        r->look.after_root = arena_copy(&r->names_arena, r->look.after_root);
    else
        r->after_seq = r->look.after_seq;
    if (!r->look.more && !r->look.orphans && r->err == ERR_OK && !r->archive_failed && !r->dry)
        turn_to_orphans(r);
    r->more = r->look.more;
    buf_clear(&r->lines);
    arena_fini(&r->arena);
    r->room = 0;
    r->part_done(r);
}

static void deal(struct retirer *r);
static void begin_floor(struct retirer *r);

static struct retired_count *count_of_kind(struct retirer *r, const struct retired *t)
{
    for (size_t i = 0; i < r->count_count; i++)
        if (r->counts[i].state == t->state && slice_eq(r->counts[i].workflow, t->workflow))
            return &r->counts[i];
    r->counts = reallocarray(r->counts, r->count_count + 1, sizeof *r->counts);
    ASSERT(r->counts);
    r->counts[r->count_count] =
        (struct retired_count){.workflow = arena_copy(&r->names_arena, t->workflow),
                               .state = t->state};
    return &r->counts[r->count_count++];
}

static void count(struct retirer *r, const struct retired *t)
{
    count_of_kind(r, t)->tasks++;
    r->tasks++;
}

/* A child as its root was, unless there is no archive any more. */
static bool is_archived(const struct retirer *r, const struct retired *t)
{
    return t->root.ptr ? t->archive && retire_archives(r->server) : r->needs[t->rule].archive;
}

/* ---- deleting ---- */

static void delete_run(struct store_job *j, struct store *store)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->err = store->ops->retention->retire(store, &r->delete, &r->error);
}

static void delete_done(struct store_job *j)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->took_us += j->took_us;
    if (r->err != ERR_OK) {
        r->look.more = false;
        part_end(r);
        return;
    }
    for (size_t i = 0; i < r->delete.dealt_with; i++)
        if (r->delete.gone[i]) {
            count(r, &r->delete.tasks[i]);
            r->audit = NULL; /* it is listed once */
        }
    r->delete.tasks += r->delete.dealt_with;
    r->delete.task_count -= r->delete.dealt_with;
    r->delete.audit = r->audit;
    if (r->delete.task_count > 0) {
        submit(r, delete_run, delete_done);
        return;
    }
    r->at = r->end;
    deal(r);
}

/* Deletes, among the tasks to archive, those that were written. */
static void begin_delete(struct retirer *r)
{
    int64_t reserve_ms = r->server->config.retention->reserve_ms;

    archive_release(r);
    r->delete =
        (struct retire){.tasks = r->batch,
                        .task_count = r->batch_count,
                        .archived = is_archived(r, &r->look.found[r->at]),
                        .budget_us = RETIRE_BUDGET_US,
                        .reserve_until = reserve_ms ? server_now(r->server) + reserve_ms : 0,
                        .audit = r->audit,
                        .gone = arena_alloc(&r->arena, r->batch_count + 1)};
    if (r->batch_count > 0) {
        submit(r, delete_run, delete_done);
        return;
    }
    r->at = r->end;
    deal(r);
}

/* ---- writing down ---- */

static void write_run(uv_work_t *w)
{
    struct retirer *r = CONTAINER_OF(w, struct retirer, work);

    r->err = archive_write(r->server->background->archive, buf_view(&r->lines), r->written_at,
                           &r->error);
}

/* True: the part has ended. */
static bool archive_failed(struct retirer *r)
{
    r->archive_failed = r->err != ERR_OK;
    if (!r->archive_failed)
        return false;
    r->look.more = false;
    part_end(r);
    return true;
}

static void write_done(uv_work_t *w, int status)
{
    struct retirer *r = CONTAINER_OF(w, struct retirer, work);

    ASSERT(status == 0);
    if (archive_failed(r))
        return;
    r->archived += r->batch_count;
    begin_delete(r);
}

/* One line; false: it cannot be read. */
static bool add_line(struct retirer *r, struct retire_record *record)
{
    struct server *sv = r->server;
    const struct definition *d =
        registry_find(&sv->workflows, record->row.workflow, record->row.version);
    struct task t;
    size_t from = r->lines.len;

    if (record->err == ERR_OK && d && d->workflow.slot_count > 0 && !r->with_items)
        record->err = ERR_NOT_FOUND; /* its workflow came meanwhile: the next pass has its items */
    if (record->err == ERR_OK && d)
        record->err = task_decode(&d->workflow, &record->row, &r->arena, &t, &record->error);
    if (record->err != ERR_OK || !d)
        return false;
    render_archived(&r->lines, &d->workflow, &t, &record->row, &record->operations);
    ASSERT(!memchr(r->lines.ptr + from, '\n', r->lines.len - from));
    buf_byte(&r->lines, '\n');
    return true;
}

/* A record that was deleted or changed meanwhile is not logged; one that cannot be read is, and is
 * kept. */
static void log_unreadable(struct retirer *r, const struct retired *t,
                           const struct retire_record *record)
{
    if (record->err == ERR_NOT_FOUND)
        return;
    r->unreadable++;
    log_line(LOG_ERROR, "event=task_not_archived task=%.*s reason=\"%s\"", SLICE_ARG(t->id),
             record->err == ERR_OK ? "its workflow is not known" : record->error.text);
}

/* Behind those of items, if there are any. */
static void make_lines(struct retirer *r)
{
    r->batch_count = 0;
    for (size_t i = r->at; i < r->end; i++) {
        const struct retired *t = &r->look.found[i];
        struct retire_record *record = &r->records[i - r->at];
        if (!add_line(r, record)) {
            log_unreadable(r, t, record);
            continue;
        }
        r->batch[r->batch_count] = *t;
        r->batch[r->batch_count++].revision = record->row.revision;
    }
}

static void write_lines(struct retirer *r)
{
    make_lines(r);
    if (r->batch_count == 0) {
        begin_delete(r);
        return;
    }
    r->written_at = server_now(r->server);
    int rc = uv_queue_work(&r->server->loop, &r->work, write_run, write_done);
    ASSERT(rc == 0); /* cannot fail: it has a callback */
}

/* The part ends before the task at r->at, and the next one goes on with it. */
static void leave_the_rest(struct retirer *r)
{
    r->look.after_seq = r->look.found[r->at].seq - 1;
    r->look.after_root = r->look.found[r->at].root;
    r->look.more = true;
    part_end(r);
}

/* ---- items ---- */

static void begin_page(struct retirer *r);

/* Without the record, which follows, what was written of them says nothing. */
static void items_are_unreadable(struct retirer *r)
{
    r->records[0].err = r->err;
    r->records[0].error = r->error;
    r->err = ERR_OK;
    buf_clear(&r->lines);
    write_lines(r);
}

static void page_write_run(uv_work_t *w)
{
    struct retirer *r = CONTAINER_OF(w, struct retirer, work);

    r->err = retire_items_write(&r->items, &r->lines, &r->error);
    if (r->err != ERR_OK || r->lines.len < ITEMS_BYTES)
        return;
    r->err = archive_write(r->server->background->archive, buf_view(&r->lines), r->written_at,
                           &r->error);
    buf_clear(&r->lines);
}

static void page_write_done(uv_work_t *w, int status)
{
    struct retirer *r = CONTAINER_OF(w, struct retirer, work);

    ASSERT(status == 0);
    if (r->err == ERR_CORRUPT)
        items_are_unreadable(r);
    else if (archive_failed(r))
        return;
    else if (r->server->draining)
        leave_the_rest(r);
    else if (retire_items_more(&r->items))
        begin_page(r);
    else
        write_lines(r);
}

static void page_read_run(struct store_job *j, struct store *store)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->err = retire_items_read(&r->items, store, &r->error);
}

static void page_read_done(struct store_job *j)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->took_us += j->took_us;
    if (r->err == ERR_OK) {
        r->written_at = server_now(r->server);
        int rc = uv_queue_work(&r->server->loop, &r->work, page_write_run, page_write_done);
        ASSERT(rc == 0); /* cannot fail: it has a callback */
    } else if (err_is_transient(r->err)) {
        r->look.more = false;
        part_end(r);
    } else {
        items_are_unreadable(r);
    }
}

static void begin_page(struct retirer *r)
{
    submit(r, page_read_run, page_read_done);
}

/* False: it has none, or cannot be read. */
static bool begin_items(struct retirer *r)
{
    struct retire_record *record = &r->records[0];
    const struct definition *d =
        registry_find(&r->server->workflows, record->row.workflow, record->row.version);
    struct task *t = arena_alloc(&r->arena, sizeof *t);
    struct error ignored; /* it is found again */

    if (!r->with_items || !d
        || task_decode(&d->workflow, &record->row, &r->arena, t, &ignored) != ERR_OK)
        return false;
    return retire_items_begin(&r->items, &d->workflow, t);
}

/* ---- reading ---- */

static bool is_shared(const struct retirer *r)
{
    return r->server->config.store->shared;
}

/* Any thread. */
static bool has_items(const struct retirer *r, const struct retire_record *record)
{
    const struct definition *d =
        record->err == ERR_OK
            ? registry_find_shared(&r->server->workflows, record->row.workflow, record->row.version)
            : NULL;

    return d && d->workflow.slot_count > 0;
}

static void read_run(struct store_job *j, struct store *store)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);
    uint64_t until = uv_hrtime() + (is_shared(r) ? READ_US_SHARED : READ_US) * UINT64_C(1000);
    size_t bytes = 0;
    size_t i = r->at;

    for (; i < r->end && (i == r->at || (bytes < READ_BYTES && uv_hrtime() < until)); i++) {
        struct retire_record *one = &r->records[i - r->at];
        struct reservation gone; /* another part may have deleted it: it is left out */
        one->err = task_read(store, r->look.found[i].id, &r->arena, &one->row, &one->operations,
                             &gone, &one->error);
        r->with_items = has_items(r, one);
        if (r->with_items && i > r->at) { /* it is dealt with alone */
            r->with_items = false;
            break;
        }
        bytes += one->err == ERR_OK ? one->row.doc.len : 0;
        for (size_t k = 0; one->err == ERR_OK && k < one->row.payload_count; k++)
            bytes += one->row.payloads[k].json.len;
        if (r->with_items) {
            i++;
            break;
        }
    }
    r->end = i;
}

static void read_done(struct store_job *j)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->took_us += j->took_us;
    for (size_t i = r->at; i < r->end; i++) {
        const struct retire_record *one = &r->records[i - r->at];
        if (!err_is_transient(one->err))
            continue;
        r->err = one->err;
        r->error = one->error;
        r->look.more = false;
        part_end(r);
        return;
    }
    buf_clear(&r->lines);
    if (begin_items(r))
        begin_page(r);
    else
        write_lines(r);
}

/* Takes the next run of found tasks that are treated alike: archived, or only deleted. */
static void deal(struct retirer *r)
{
    size_t found = r->look.found_count;

    if (r->at == found) {
        part_end(r);
        return;
    }
    bool archive = is_archived(r, &r->look.found[r->at]);
    ASSERT(!archive || r->server->background->archive);
    if (r->server->draining
        || (archive && r->server->background->archive_busy)) { /* by another part */
        leave_the_rest(r);
        return;
    }
    r->end = r->at;
    while (r->end < found && is_archived(r, &r->look.found[r->end]) == archive)
        r->end++;
    r->batch_count = r->end - r->at;
    if (r->room < r->batch_count) { /* once for each part: a task with items is dealt with alone */
        r->batch = arena_alloc(&r->arena, r->batch_count * sizeof *r->batch);
        r->records = arena_alloc(&r->arena, r->batch_count * sizeof *r->records);
        r->room = r->batch_count;
    }
    memcpy(r->batch, r->look.found + r->at, r->batch_count * sizeof *r->batch);
    if (!archive) {
        begin_delete(r);
        return;
    }
    r->server->background->archive_busy = r->holds_archive = true;
    memset(r->records, 0, r->batch_count * sizeof *r->records);
    submit(r, read_run, read_done);
}

/* ---- looking ---- */

static void look_run(struct store_job *j, struct store *store)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->err = store->ops->retention->look(store, &r->look, &r->arena, &r->error);
}

static void look_done(struct store_job *j)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);

    r->took_us += j->took_us;
    r->at = 0;
    if (r->err != ERR_OK) {
        r->look.found_count = 0;
        r->look.more = false;
    }
    for (size_t i = 0; r->dry && i < r->look.found_count; i++)
        count(r, &r->look.found[i]);
    if (r->dry)
        r->at = r->look.found_count;
    deal(r);
}

static void begin_look(struct retirer *r)
{
    submit(r, look_run, look_done);
}

/* ---- floors ---- */

static bool is_counted(const struct retirer *r, const struct task_row *row)
{
    if (row->ended_at == 0)
        return false;
    for (size_t i = 0; i < r->floor; i++)
        if (is_for(&r->rules[i], row))
            return false;
    return is_for(&r->rules[r->floor], row);
}

static void floor_run(struct store_job *j, struct store *store)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);
    uint32_t states = r->rules[r->floor].states;
    const struct list_query q = {.states = (states & RETIRE_STATES)
                                           | (states & RETIRE_CLOSED ? 1U << TASK_ERROR : 0),
                                 .workflow = r->look.workflow,
                                 .children = LIST_WITHOUT,
                                 .before_seq = r->before_seq,
                                 .limit = FLOOR_PAGE};

    arena_fini(&r->arena);
    r->room = 0;
    r->err = store->ops->list(store, &q, &r->arena, &r->page, &r->error);
}

static void floor_done(struct store_job *j)
{
    struct retirer *r = CONTAINER_OF(j, struct retirer, job);
    struct retire_need *need = &r->needs[r->floor];

    r->look.found_count = 0;
    r->took_us += j->took_us;
    if (r->err != ERR_OK || r->server->draining) {
        r->look.more = r->err == ERR_OK;
        part_end(r);
        return;
    }
    for (size_t i = 0; i < r->page.count && need->counted < need->keep_last; i++)
        if (is_counted(r, &r->page.rows[i])) {
            need->counted++;
            r->rules[r->floor].seq_before = r->page.rows[i].seq;
        }
    r->before_seq = r->page.next_seq;
    if (!r->page.more && need->counted < need->keep_last) {
        r->rules[r->floor].seq_before = INT64_MIN; /* there are no more: all of them stay */
        need->counted = need->keep_last;
    }
    begin_floor(r);
}

static void begin_floor(struct retirer *r)
{
    while (r->floor < r->rule_count && r->needs[r->floor].counted >= r->needs[r->floor].keep_last) {
        r->floor++;
        r->before_seq = 0;
    }
    if (r->floor < r->rule_count)
        submit(r, floor_run, floor_done);
    else
        begin_look(r);
}

void retirer_part(struct retirer *r)
{
    r->took_us = 0;
    r->err = ERR_OK;
    r->archive_failed = false;
    r->server->load.exchanges++;
    begin_floor(r);
}
