/* The supervisor's scans: lease, lost time, pages of overdue tasks, requests. Only the *_run
 * functions run on the store's thread. What is requested: overdue.c; lost time: lost_times.c. */

#include "supervisor/supervisor.h"

#include <stdlib.h>

#include "base/log.h"
#include "store/codec/codec.h"
#include "supervisor/lost_times.h"
#include "supervisor/overdue.h"

enum {
    PAGE_MAX = 256,
    UNREADABLE_MS = 3600000, /* until an unreadable row is logged again */
    SLOW_INTERVALS = 3,      /* an answer that takes longer is outdated */
};

#define LEASE_NAME SLICE(SUPERVISOR_LEASE)

enum phase { PHASE_IDLE, PHASE_READ, PHASE_DEFINITIONS, PHASE_WRITE, PHASE_LEAVE };

struct supervisor {
    struct supervisor_config config;
    struct store_queue *store;
    struct registry *workflows;
    struct supervisor_outside outside;
    enum phase phase;
    struct store_job job;
    struct arena arena; /* of one page */
    struct lease lease;
    struct fence fence;
    struct row_page page;
    int64_t *told_at;                 /* of each row; overdue.h */
    struct registry_wait definitions; /* of the page; in PHASE_DEFINITIONS they are being read */
    struct batch batch;
    enum err err;
    struct error error;
    int64_t next_at;     /* of the next scan */
    int64_t surveyed_at; /* where the store is shared; 0: no survey yet */
    int64_t scan_at;     /* the current scan's "now" */
    int64_t scan_steady, read_steady;
    bool leased;   /* the store returned the lease, whatever the rest did */
    bool outdated; /* the previous scan was abandoned because its read took too long */
    int64_t seen_wake_at, seen_seq; /* the position of the current scan */
    struct lost_times times;
    struct supervisor_stats stats;
    struct log_burst unreadable; /* limits the log lines for unreadable rows */
    uint64_t lead_epoch;         /* of the lease, whoever holds it */
    int64_t survey_steady; /* when the lease was last requested for us (supervisor_wants_lead) */
    int64_t lead_until;    /* on the steady clock: the store's may be behind ours */
    bool stopped;
};

struct supervisor *supervisor_new(const struct supervisor_config *c, struct store_queue *store,
                                  struct registry *workflows,
                                  const struct supervisor_outside *outside)
{
    struct supervisor *sv = calloc(1, sizeof *sv);

    ASSERT(sv);
    sv->config = *c;
    sv->config.interval_ms = c->interval_ms ? c->interval_ms : 1000;
    sv->config.grace_ms = c->grace_ms ? c->grace_ms : 10000;
    sv->config.lease_ms = c->lease_ms ? c->lease_ms : 3000;
    sv->store = store;
    sv->workflows = workflows;
    sv->outside = *outside;
    lost_times_init(&sv->times, sv->config.interval_ms, sv->config.grace_ms,
                    outside->now(outside->arg), outside->steady(outside->arg));
    return sv;
}

void supervisor_free(struct supervisor *sv)
{
    if (!sv)
        return;
    ASSERT(sv->phase == PHASE_IDLE);
    arena_fini(&sv->arena);
    free(sv);
}

bool supervisor_is_busy(const struct supervisor *sv)
{
    return sv->phase != PHASE_IDLE;
}

void supervisor_stats(const struct supervisor *sv, struct supervisor_stats *ret)
{
    *ret = sv->stats;
}

bool supervisor_leads(const struct supervisor *sv, struct fence *ret, int64_t *ret_until)
{
    if (!sv->stats.leads || sv->stopped)
        return false;
    *ret = (struct fence){LEASE_NAME, sv->lead_epoch};
    *ret_until = sv->lead_until;
    return true;
}

struct lost_time supervisor_lost_time(const struct supervisor *sv)
{
    return sv->times.lost;
}

/* ---- leaving ---- */

static void leave_run(struct store_job *j, struct store *store)
{
    struct supervisor *sv = CONTAINER_OF(j, struct supervisor, job);
    const struct lease_try want = {.name = LEASE_NAME,
                                   .holder = sv->config.holder,
                                   .now = sv->scan_at}; /* length 0: expires at once */

    /* If this fails, the lease expires. */
    sv->err = store->ops->lease(store, &want, &sv->arena, &sv->lease, &sv->error);
}

static void leave_done(struct store_job *j)
{
    struct supervisor *sv = CONTAINER_OF(j, struct supervisor, job);

    arena_fini(&sv->arena);
    sv->phase = PHASE_IDLE;
}

/* A leader gives up its lease, so that the next leader need not wait until it expires. */
static void leave(struct supervisor *sv)
{
    if (sv->phase != PHASE_IDLE || !sv->stats.leads)
        return;
    sv->stats.leads = false;
    sv->scan_at = sv->outside.now(sv->outside.arg);
    sv->phase = PHASE_LEAVE;
    sv->job = (struct store_job){.run = leave_run, .done = leave_done};
    sv->store->submit(sv->store, &sv->job);
}

void supervisor_stop(struct supervisor *sv)
{
    sv->stopped = true;
    leave(sv);
}

/* ---- reading a page ---- */

/* After the page: what was committed before a row was found overdue is found. */
static void read_notices(struct supervisor *sv, struct store *store)
{
    size_t count = sv->page.count;
    struct slice *ids = arena_alloc(&sv->arena, (count + 1) * sizeof *ids);

    sv->told_at = arena_alloc(&sv->arena, (count + 1) * sizeof *sv->told_at);
    for (size_t i = 0; i < count; i++)
        ids[i] = sv->page.rows[i].id;
    if (count > 0)
        sv->err = store->ops->notices->told(store, ids, count, sv->told_at, &sv->error);
}

static void read_run(struct store_job *j, struct store *store)
{
    struct supervisor *sv = CONTAINER_OF(j, struct supervisor, job);

    const struct lease_try want = {.name = LEASE_NAME,
                                   .holder = sv->config.holder,
                                   .now = sv->scan_at,
                                   .length_ms = sv->config.lease_ms};

    sv->err = store->ops->lease(store, &want, &sv->arena, &sv->lease, &sv->error);
    sv->leased = sv->err == ERR_OK;
    if (!sv->leased || !slice_eq(sv->lease.holder, sv->config.holder))
        return;
    sv->err = store->ops->overdue(store, sv->scan_at, sv->seen_wake_at, sv->seen_seq, PAGE_MAX,
                                  &sv->arena, &sv->page, &sv->error);
    if (sv->err == ERR_OK)
        read_notices(sv, store);
}

/* The next survey may replace a scan. A scan just before the survey, or at the same time, would
 * come too early for that, and so would all later ones. */
static int64_t wait_for_survey(const struct supervisor *sv)
{
    return sv->surveyed_at ? sv->surveyed_at + sv->config.interval_ms * 3 / 2 : 0;
}

static void scan_over(struct supervisor *sv, bool ok)
{
    arena_fini(&sv->arena);
    sv->phase = PHASE_IDLE;
    sv->next_at = max_i64(sv->scan_at + sv->config.interval_ms, wait_for_survey(sv));
    if (ok) {
        int64_t lasted = lost_times_scan_succeeds(&sv->times, sv->scan_at, sv->scan_steady);
        if (lasted > 0)
            log_line(LOG_WARN, "event=time_lost_over ms=%" PRId64, lasted);
        sv->stats.scans++;
    } else {
        sv->outside.failed(sv->outside.arg, &sv->error);
    }
    if (sv->stopped)
        leave(sv);
}

/* A request for a row that was read: the payloads read with it are already stored. */
static struct change request_of(const struct task_row *row)
{
    struct change c = {.kind = CHANGE_REQUEST, .row = *row};

    c.row.revision = row->revision + 1;
    c.row.payloads = NULL;
    c.row.payload_count = 0;
    return c;
}

static void tell_unreadable(struct supervisor *sv, const struct task_row *row, const char *story)
{
    uint64_t left_out = 0;

    sv->stats.unreadable++;
    if (log_burst_has_room(&sv->unreadable, sv->scan_at, &left_out))
        log_line(LOG_ERROR, "event=task_unreadable task=%.*s reason=\"%s\" left_out=%" PRIu64,
                 SLICE_ARG(row->id), story, left_out);
}

static bool judge(struct supervisor *sv, const struct task_row *row, int64_t told_at,
                  struct change *ret)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const struct definition *d = registry_find(sv->workflows, row->workflow, row->version);
    struct verdict v;
    struct task t;
    struct error e = {0};

    if (!d || task_decode(&d->workflow, row, &sv->arena, &t, &e) != ERR_OK) {
        tell_unreadable(sv, row, d ? e.text : "its workflow is not known to this program");
        *ret = request_of(row);
        ret->row.wake_at = sv->scan_at + UNREADABLE_MS;
        return true;
    }
    overdue_judge(&d->workflow, &t, sv->scan_at, told_at, &sv->times.lost, &sv->arena, &v);
    bool requests = v.request.count > 0;
    if (!requests && v.wake_at == row->wake_at)
        return false;
    row_request_write(&text, &v.request);
    *ret = request_of(row);
    ret->row.request = requests ? arena_copy(&sv->arena, buf_view(&text)) : row->request;
    ret->row.wake_at = v.wake_at;
    /* A task without owner stays where it waits, unless there is something to do now. */
    ret->release = v.release;
    if (v.release) {
        ret->drops_waits = row_waits_for_several(row);
        ret->lock_move = row_queues(row) ? LOCK_QUIT : LOCK_STAYS;
        ret->row.waiting_for = WAITING_TIME;
        ret->row.rank = sv->scan_at;
    }
    sv->stats.overdue++;
    sv->stats.requests += requests;
    return true;
}

static void begin_read(struct supervisor *sv);
static void begin_write(struct supervisor *sv);

static void next_page(struct supervisor *sv)
{
    if (sv->page.more && !sv->stopped)
        begin_read(sv);
    else
        scan_over(sv, true);
}

static void judge_page(struct supervisor *sv)
{
    sv->fence = (struct fence){LEASE_NAME, sv->lease.epoch};
    sv->batch = (struct batch){.fence = &sv->fence};
    sv->batch.changes = arena_alloc(&sv->arena, (sv->page.count + 1) * sizeof(struct change));
    for (size_t i = 0; i < sv->page.count; i++) {
        const struct task_row *row = &sv->page.rows[i];
        sv->seen_wake_at = row->wake_at;
        sv->seen_seq = row->seq;
        if (judge(sv, row, sv->told_at[i], &sv->batch.changes[sv->batch.change_count]))
            sv->batch.change_count++;
    }
    if (sv->batch.change_count > 0)
        begin_write(sv);
    else
        next_page(sv);
}

/* Another node may have stored the definition of a task on this page. */
static bool knows_definitions(const struct supervisor *sv)
{
    for (size_t i = 0; i < sv->page.count; i++)
        if (!registry_find(sv->workflows, sv->page.rows[i].workflow, sv->page.rows[i].version))
            return false;
    return true;
}

static void definitions_read(struct registry_wait *w, enum err err, const char *story)
{
    struct supervisor *sv = CONTAINER_OF(w, struct supervisor, definitions);

    ASSERT(sv->phase == PHASE_DEFINITIONS);
    if (err == ERR_OK) {
        judge_page(sv);
        return;
    }
    sv->err = error_set(&sv->error, err, "%s", story);
    scan_over(sv, false);
}

/* While the store did not answer this node, it may have answered nobody: a result that was due may
 * be on its way. The next scan finds a gap and grants the grace time. If that scan is as slow, it
 * proceeds anyway. */
static bool is_outdated(struct supervisor *sv)
{
    int64_t took = sv->outside.steady(sv->outside.arg) - sv->read_steady;

    sv->outdated = !sv->outdated && took > SLOW_INTERVALS * sv->config.interval_ms;
    return sv->outdated;
}

static void give_up_scan(struct supervisor *sv)
{
    arena_fini(&sv->arena);
    sv->phase = PHASE_IDLE;
    sv->next_at = sv->scan_at;
    if (sv->stopped)
        leave(sv);
}

/* `since`: when the lease was requested. The store counts from later on. */
static void take_lead(struct supervisor *sv, const struct lease *l, int64_t since)
{
    sv->stats.leads = slice_eq(l->holder, sv->config.holder);
    sv->lead_epoch = l->epoch;
    sv->lead_until = since + sv->config.lease_ms;
}

static void read_done(struct store_job *j)
{
    struct supervisor *sv = CONTAINER_OF(j, struct supervisor, job);

    ASSERT(sv->phase == PHASE_READ);
    if (sv->leased)
        take_lead(sv, &sv->lease, sv->read_steady);
    if (sv->err != ERR_OK) {
        scan_over(sv, false);
        return;
    }
    if (sv->outside.generations)
        sv->outside.generations(sv->outside.arg, &sv->lease.generations);
    lost_times_answered(&sv->times, sv->outside.now(sv->outside.arg));
    if (is_outdated(sv)) {
        give_up_scan(sv);
        return;
    }
    if (!sv->stats.leads) {
        scan_over(sv, true);
        return;
    }
    sv->definitions.done = definitions_read;
    if (!knows_definitions(sv) && registry_read(sv->workflows, &sv->definitions))
        sv->phase = PHASE_DEFINITIONS;
    else
        judge_page(sv);
}

static void begin_read(struct supervisor *sv)
{
    arena_fini(&sv->arena);
    sv->page = (struct row_page){0};
    sv->phase = PHASE_READ;
    sv->read_steady = sv->outside.steady(sv->outside.arg);
    sv->job = (struct store_job){.run = read_run, .done = read_done};
    sv->store->submit(sv->store, &sv->job);
}

/* ---- writing requests ---- */

static void write_run(struct store_job *j, struct store *store)
{
    struct supervisor *sv = CONTAINER_OF(j, struct supervisor, job);

    sv->err = store->ops->commit(store, &sv->batch, &sv->arena, &sv->error);
}

static void write_done(struct store_job *j)
{
    struct supervisor *sv = CONTAINER_OF(j, struct supervisor, job);

    ASSERT(sv->phase == PHASE_WRITE);
    for (size_t i = 0; i < sv->batch.change_count; i++) {
        const struct change *c = &sv->batch.changes[i];
        /* If the outcome is unknown, the request may be stored: the task's owner must check. */
        if (sv->err == ERR_UNKNOWN || (sv->err == ERR_OK && c->outcome == ERR_OK))
            sv->outside.requested(sv->outside.arg, c->row.id, c->release);
        else if (sv->err == ERR_OK && c->outcome == ERR_CONFLICT)
            sv->stats.conflicts++; /* the row changed: checked again at the next scan, if still
                                      overdue */
    }
    if (sv->err == ERR_OK)
        next_page(sv);
    else
        scan_over(sv, false);
}

static void begin_write(struct supervisor *sv)
{
    ASSERT(sv->batch.change_count > 0);
    sv->phase = PHASE_WRITE;
    sv->job = (struct store_job){.run = write_run, .done = write_done};
    sv->store->submit(sv->store, &sv->job);
}

/* ---- scans ---- */

static void scan_begins(struct supervisor *sv, int64_t now)
{
    ASSERT(sv->phase == PHASE_IDLE);
    sv->scan_at = now;
    sv->scan_steady = sv->outside.steady(sv->outside.arg);
    sv->seen_wake_at = sv->seen_seq = 0;
    int64_t lost_ms = lost_times_scan_begins(&sv->times, now, sv->scan_steady);
    if (lost_ms > 0)
        log_line(LOG_WARN, "event=time_lost ms=%" PRId64 " grace_ms=%" PRId64, lost_ms,
                 sv->config.grace_ms);
}

void supervisor_left_out(struct supervisor *sv)
{
    int64_t now = sv->outside.now(sv->outside.arg);

    ASSERT(sv->phase == PHASE_IDLE);
    (void)lost_times_scan_succeeds(&sv->times, now, sv->outside.steady(sv->outside.arg));
    sv->next_at = now;
}

void supervisor_surveys_left_out(struct supervisor *sv, int64_t by_ms)
{
    ASSERT(sv->phase == PHASE_IDLE);
    sv->next_at += by_ms;
    sv->surveyed_at += sv->surveyed_at ? by_ms : 0;
    sv->scan_at += by_ms;
    sv->scan_steady += by_ms;
    sv->lead_until += by_ms;
    (void)lost_times_scan_succeeds(&sv->times, sv->scan_at, sv->scan_steady);
}

bool supervisor_wants_lead(struct supervisor *sv)
{
    sv->survey_steady = sv->outside.steady(sv->outside.arg);
    return !sv->stopped;
}

/* Surveys at the scan interval replace scans: a scan of its own follows only if a survey is
 * late. */
static int64_t due_at(const struct supervisor *sv)
{
    int64_t interval = sv->config.interval_ms;
    bool surveyed = sv->surveyed_at != 0 && sv->surveyed_at + 2 * interval > sv->next_at;

    return sv->next_at + (surveyed ? interval / 2 : 0);
}

void supervisor_surveyed(struct supervisor *sv, const struct survey *v)
{
    int64_t now = sv->outside.now(sv->outside.arg);
    int64_t interval = sv->config.interval_ms;

    if (!v->leads)
        return;
    take_lead(sv, &v->lead, sv->survey_steady);
    sv->surveyed_at = now;
    if (sv->stopped)
        leave(sv); /* the survey was already under way */
    if (sv->stopped || sv->phase != PHASE_IDLE)
        return;
    if (now < sv->scan_at + interval - interval / 4) { /* too early to replace a scan */
        sv->next_at = max_i64(sv->next_at, wait_for_survey(sv));
        return;
    }
    scan_begins(sv, now);
    if (sv->stats.leads && v->wake_at != 0 && v->wake_at <= now) {
        begin_read(sv);
        return;
    }
    scan_over(sv, true);
}

int64_t supervisor_turn(struct supervisor *sv)
{
    int64_t now = sv->outside.now(sv->outside.arg);

    if (sv->phase != PHASE_IDLE || sv->stopped)
        return 0;
    if (now < due_at(sv))
        return due_at(sv);
    scan_begins(sv, now);
    begin_read(sv);
    return 0;
}
