/* Feeds the alerts from the store and from memory, stores their rows, and passes notices to the
 * sinks: see watch.h. Runs on the loop, with jobs in the store. */
#include "alerts/watch.h"

#include <stdlib.h>

#include "base/log.h"

enum {
    LOOK_MS = 5000,
    SEE_MS = 1000,   /* interval of looks at memory */
    SOON_MS = 1000,  /* minimum time between a look and one after a hint */
    AGAIN_MS = 2000, /* after a failure */
    PAUSE_MIN_MS = 5,
    PAUSE_TIMES = 4,  /* pause between two pages, as a multiple of the time of one */
    SWEEP_TIMES = 10, /* pause between two sweeps, as a multiple of the time of one */
    SWEEP_MAX_MS = 600000,
    PAGE = 100,     /* delays other users of the store by some ms */
    ROWS_MAX = 400, /* live rows to read: more than there can be groups */
    WRITES = 50,    /* rows that one job writes */
};

#define TASK_CONDITIONS   (BIT(CONDITION_TASK_ERROR) | BIT(CONDITION_COMPENSATION_FAILED))
#define MEMORY_CONDITIONS ((BIT(CONDITION_COUNT) - 1) & ~TASK_CONDITIONS)

enum phase { PHASE_IDLE, PHASE_LOAD, PHASE_LOOK, PHASE_PUT };

/* A row being written. */
struct writing {
    struct slice key; /* in the arena, like the whole row */
    struct alert_row row;
    uint32_t notice;
    bool written;
};

struct watch {
    struct watch_config config;
    struct store_queue *store;
    struct watch_outside outside;
    struct alerts *alerts;
    enum phase phase;
    struct store_job job;
    struct arena arena; /* of the job */
    bool leading;       /* the rows are loaded */
    struct fence fence; /* of the lease at that time: a deposed leader writes nothing */
    uint64_t term;      /* how often they were loaded */
    bool stopped;
    int64_t turn_at; /* nothing is due before; 0: unknown */
    int64_t see_at, again_at;
    /* looks at tasks in error: */
    bool sweeping;                 /* at all of them */
    int64_t pos_ended_at, pos_seq; /* after the last one seen */
    int64_t sweep_began_at, sweep_at, look_at, looked_at;
    bool hinted;
    int64_t began_ended_at, began_seq; /* of the current page */
    struct stopped_page stopped_page;
    bool rows_too; /* rows are read as well, for others' changes */
    struct alert_page rows;
    struct writing writings[WRITES];
    size_t writing_count;
    enum err err;
    struct error error;
};

struct watch *watch_new(const struct watch_config *c, struct store_queue *store,
                        const struct watch_outside *outside)
{
    struct watch *w = calloc(1, sizeof *w);

    ASSERT(w);
    w->config = *c;
    w->config.look_ms = c->look_ms ? c->look_ms : LOOK_MS;
    w->config.sweep_max_ms = c->sweep_max_ms ? c->sweep_max_ms : SWEEP_MAX_MS;
    w->config.page = c->page ? c->page : PAGE;
    w->store = store;
    w->outside = *outside;
    w->alerts = alerts_new(&c->alerts);
    return w;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    ASSERT(w->phase == PHASE_IDLE);
    alerts_free(w->alerts);
    arena_fini(&w->arena);
    free(w);
}

bool watch_is_busy(const struct watch *w)
{
    return w->phase != PHASE_IDLE;
}

const struct alerts *watch_alerts(const struct watch *w)
{
    return w->alerts;
}

bool watch_leads(const struct watch *w)
{
    return w->leading;
}

uint64_t watch_term(const struct watch *w)
{
    return w->term;
}

void watch_stop(struct watch *w)
{
    w->stopped = true;
}

void watch_hint(struct watch *w)
{
    w->hinted = true;
    w->turn_at = 0;
}

static void submit(struct watch *w, enum phase phase, bool background,
                   void (*run)(struct store_job *j, struct store *s),
                   void (*done)(struct store_job *j))
{
    ASSERT(w->phase == PHASE_IDLE);
    w->phase = phase;
    w->job = (struct store_job){.run = run, .done = done};
    if (background && w->outside.background)
        w->outside.background(w->outside.arg, &w->job);
    else
        w->store->submit(w->store, &w->job);
}

static void job_over(struct watch *w)
{
    w->phase = PHASE_IDLE;
    arena_fini(&w->arena);
    w->arena = (struct arena){0};
    w->turn_at = 0;
    if (w->err != ERR_OK)
        w->again_at = w->outside.now(w->outside.arg) + AGAIN_MS;
}

/* ---- the rows: loading ---- */

static struct alert_stored stored_of(const struct alert_row *r)
{
    return (struct alert_stored){.id = r->id,
                                 .key = r->key,
                                 .doc = r->doc,
                                 .opened_at = r->opened_at,
                                 .resolved_at = r->resolved_at,
                                 .acknowledged_at = r->acknowledged_at,
                                 .acknowledged_by = r->acknowledged_by,
                                 .acknowledged_why = r->acknowledged_why};
}

static void read_rows(struct watch *w, struct store *s)
{
    const struct alert_query q = {.live = true, .limit = ROWS_MAX};

    w->rows = (struct alert_page){0};
    w->err = s->ops->alerts->list(s, &q, &w->arena, &w->rows, &w->error);
}

static void load_run(struct store_job *j, struct store *s)
{
    read_rows(CONTAINER_OF(j, struct watch, job), s);
}

static void sweep_begin(struct watch *w, int64_t now)
{
    w->sweeping = true;
    w->sweep_began_at = now;
    w->pos_ended_at = w->pos_seq = 0;
    w->look_at = now;
    alerts_look_begin(w->alerts, TASK_CONDITIONS);
}

static void put_run(struct store_job *j, struct store *s);
static void put_done(struct store_job *j);

/* An unreadable row (written by a later version) would suppress its group for ever, so it is
 * resolved. */
static void give_up(struct watch *w, const struct alert_row *row, int64_t now)
{
    log_line(LOG_WARN, "event=alert_unreadable id=%.*s", SLICE_ARG(row->id));
    if (w->writing_count == WRITES)
        return;
    struct writing *wr = &w->writings[w->writing_count++];
    *wr = (struct writing){.key = row->key, .row = *row};
    wr->row.fence = &w->fence;
    wr->row.resolved_at = now;
    wr->row.live = false;
}

static void load_done(struct store_job *j)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);
    int64_t now = w->outside.now(w->outside.arg);

    w->writing_count = 0;
    for (size_t i = 0; w->err == ERR_OK && i < w->rows.count; i++) {
        struct alert_stored row = stored_of(&w->rows.rows[i]);
        if (alerts_load(w->alerts, &row, now) != ERR_OK)
            give_up(w, &w->rows.rows[i], now);
    }
    w->leading = w->err == ERR_OK;
    w->term += w->leading;
    if (w->leading)
        sweep_begin(w, now);
    w->phase = PHASE_IDLE;
    if (w->writing_count > 0)
        submit(w, PHASE_PUT, false, put_run, put_done);
    else
        job_over(w);
}

/* ---- the rows: writing ---- */

static void put_run(struct store_job *j, struct store *s)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);

    w->err = ERR_OK;
    for (size_t i = 0; i < w->writing_count && w->err == ERR_OK; i++) {
        w->err = s->ops->alerts->put(s, &w->writings[i].row, &w->error);
        w->writings[i].written = w->err == ERR_OK;
    }
}

static struct alert *alert_of_key(const struct watch *w, const struct writing *wr)
{
    struct alert *al = alerts_find(w->alerts, wr->row.id);

    return al && slice_eq(al->key, wr->key) ? al : NULL;
}

static void put_done(struct store_job *j)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);
    int64_t now = w->outside.now(w->outside.arg);

    for (size_t i = 0; i < w->writing_count; i++) {
        const struct writing *wr = &w->writings[i];
        struct alert *al = alert_of_key(w, wr);
        if (al && wr->written)
            alert_written(al, wr->notice, wr->row.lift, now);
        else if (al)
            alert_not_written(al);
    }
    if (w->err == ERR_CONFLICT) { /* another node leads, or did: its rows are read */
        alerts_clear(w->alerts);
        w->leading = false;
    }
    job_over(w);
}

static void writing_add(struct watch *w, struct alert *al)
{
    struct writing *wr = &w->writings[w->writing_count++];
    CLEANUP(buf_fini) struct buf doc = {0};

    alert_write(w->alerts, al, &doc);
    *wr = (struct writing){.key = arena_copy(&w->arena, al->key), .notice = al->notice};
    wr->row = (struct alert_row){.id = arena_copy(&w->arena, slice_of(al->id)),
                                 .key = wr->key,
                                 .doc = arena_copy(&w->arena, buf_view(&doc)),
                                 .opened_at = al->opened_at,
                                 .resolved_at = al->resolved_at,
                                 .live = !al->settled,
                                 .lift = al->lifted,
                                 .fence = &w->fence};
    alert_writing(al);
}

/* False: nothing to write. */
static bool put_begin(struct watch *w, int64_t now)
{
    struct alert *al = NULL;

    w->writing_count = 0;
    while (w->writing_count < WRITES && (al = alerts_unwritten(w->alerts, now)))
        writing_add(w, al);
    if (w->writing_count == 0)
        return false;
    submit(w, PHASE_PUT, false, put_run, put_done);
    return true;
}

/* ---- tasks in error ---- */

static void look_run(struct store_job *j, struct store *s)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);

    w->err = s->ops->alerts->stopped(s, w->pos_ended_at, w->pos_seq, w->config.page, &w->arena,
                                     &w->stopped_page, &w->error);
    if (w->err == ERR_OK && w->rows_too)
        read_rows(w, s);
}

static void take_stopped(struct watch *w, const struct stopped *t, int64_t now)
{
    const struct sighting s = {
        .condition = t->undo ? CONDITION_COMPENSATION_FAILED : CONDITION_TASK_ERROR,
        .labels = {{"workflow", t->workflow}, {"step", t->step}, {"code", t->code}},
        .count = 1,
        .first_at = t->ended_at,
        .latest_at = t->ended_at,
        .example = t->id,
        .story = t->message,
    };

    if (w->sweeping && !t->of_child)
        alerts_see(w->alerts, &s, now);
    else if (!t->of_child) /* the child has an alert */
        alerts_add(w->alerts, &s, now);
    w->pos_ended_at = t->ended_at;
    w->pos_seq = t->seq;
}

/* Called after the last page. */
static void look_ends(struct watch *w, int64_t now)
{
    w->look_at = now + w->config.look_ms;
    if (!w->sweeping)
        return;
    w->sweeping = false;
    alerts_look_end(w->alerts, TASK_CONDITIONS, now);
    w->sweep_at = now
                  + max_i64(w->config.look_ms, min_i64(SWEEP_TIMES * (now - w->sweep_began_at),
                                                       w->config.sweep_max_ms));
}

/* An earlier leader may have overwritten this node's changes; they are written again. */
static void take_row(struct watch *w, struct alert *al, const struct alert_row *r)
{
    CLEANUP(buf_fini) struct buf doc = {0};

    if (r->acknowledged_at != 0) /* no effect if it belongs to an older alert of the group */
        (void)alerts_acknowledge(w->alerts, r->id, r->acknowledged_at, r->acknowledged_by,
                                 r->acknowledged_why);
    if (!slice_is(r->id, al->id))
        return;
    alert_write(w->alerts, al, &doc);
    if (!slice_eq(buf_view(&doc), r->doc))
        alert_not_written(al);
}

/* ... or added an alert after the rows were loaded, which nobody else would handle. */
static void take_rows(struct watch *w, int64_t now)
{
    for (size_t i = 0; i < w->rows.count; i++) {
        const struct alert_row *r = &w->rows.rows[i];
        const struct alert_stored row = stored_of(r);
        struct alert *al = alerts_find_group(w->alerts, r->key);
        if (al)
            take_row(w, al, r);
        else
            (void)alerts_load(w->alerts, &row,
                              now); /* if it cannot be read, load_done handles it */
    }
}

static void look_done(struct store_job *j)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);
    int64_t now = w->outside.now(w->outside.arg);

    w->looked_at = now;
    if (w->err == ERR_OK && w->leading) {
        if (w->rows_too)
            take_rows(w, now);
        for (size_t i = 0; i < w->stopped_page.count; i++)
            take_stopped(w, &w->stopped_page.rows[i], now);
        if (w->stopped_page.more)
            w->look_at = now + max_i64(w->job.took_us * PAUSE_TIMES / 1000, PAUSE_MIN_MS);
        else
            look_ends(w, now);
    }
    job_over(w);
}

static bool anybody_may_acknowledge(const struct watch *w)
{
    size_t i = 0;

    if (!w->config.shared)
        return false;
    for (const struct alert *al = NULL; (al = alerts_next(w->alerts, &i));)
        if (al->opened_at != 0 && al->resolved_at == 0 && al->acknowledged_at == 0)
            return true;
    return false;
}

static bool look_begin(struct watch *w, int64_t now)
{
    bool soon = w->hinted && now >= w->looked_at + SOON_MS;

    if (now < w->look_at && !soon)
        return false;
    w->hinted = false;
    if (!w->sweeping && now >= w->sweep_at - (soon ? w->config.look_ms : 0))
        sweep_begin(w, now);
    w->rows_too =
        (w->config.shared && w->sweeping && w->pos_seq == 0) || anybody_may_acknowledge(w);
    submit(w, PHASE_LOOK, true, look_run, look_done);
    return true;
}

/* ---- turns ---- */

static void see_memory(struct watch *w, int64_t now)
{
    uint32_t which = w->leading ? MEMORY_CONDITIONS : BIT(CONDITION_STORE_TROUBLE);

    alerts_look_begin(w->alerts, which);
    w->outside.see(w->outside.arg, w->alerts, w->leading, now);
    alerts_look_end(w->alerts, which, now);
    w->see_at = now + SEE_MS;
}

static void at_least(int64_t *at, int64_t candidate)
{
    if (candidate != 0 && candidate < *at)
        *at = candidate;
}

/* Returns when to ask for a sink again. */
static int64_t deliver(struct watch *w, int64_t now, int64_t at)
{
    bool stored_only = w->leading && w->outside.store_works(w->outside.arg);

    for (size_t i = 0; i < w->config.alerts.sink_count; i++) {
        const struct alert *list[ALERTS_A_DELIVERY];
        int64_t next = 0;
        size_t count = alerts_tell(w->alerts, i, stored_only, now, list, &next);
        if (count > 0)
            w->outside.deliver(w->outside.arg, i, list, count);
        at_least(&at, next);
    }
    return at;
}

/* A node that lost the leadership forgets everything, unless the store is unavailable: then it
 * reports the last known state until the store is back. */
static void notice_lead(struct watch *w)
{
    uint64_t epoch = 0;
    bool leads = w->outside.leads(w->outside.arg, &epoch);

    if (!w->leading || (leads ? epoch == w->fence.epoch : !w->outside.store_works(w->outside.arg)))
        return;
    if (!leads)
        alerts_clear(w->alerts);
    w->leading = w->sweeping = false; /* others' changes are read first */
}

/* One job at a time; rows are loaded first. */
static void begin_job(struct watch *w, int64_t now)
{
    uint64_t epoch = 0;

    if (w->phase != PHASE_IDLE || w->stopped || now < w->again_at
        || !w->outside.leads(w->outside.arg, &epoch))
        return;
    if (!w->leading) {
        w->fence = (struct fence){SLICE(SUPERVISOR_LEASE), epoch};
        submit(w, PHASE_LOAD, false, load_run, load_done);
        return;
    }
    if (!put_begin(w, now))
        (void)look_begin(w, now);
}

/* When the next one must begin; 0: only after an event. */
static int64_t job_at(const struct watch *w)
{
    int64_t at = w->look_at;
    uint64_t epoch = 0;

    if (w->phase != PHASE_IDLE || w->stopped || !w->outside.leads(w->outside.arg, &epoch))
        return 0;
    if (!w->leading)
        return w->again_at;
    if (w->hinted)
        at_least(&at, w->looked_at + SOON_MS);
    return max_i64(at, w->again_at);
}

int64_t watch_turn(struct watch *w)
{
    int64_t now = w->outside.now(w->outside.arg);

    if (w->turn_at != 0 && now < w->turn_at)
        return w->turn_at;
    notice_lead(w);
    if (now >= w->see_at)
        see_memory(w, now);
    int64_t at = w->see_at;
    if (!w->stopped)
        at_least(&at, alerts_turn(w->alerts, now));
    begin_job(w, now);
    if (!w->stopped)
        at = deliver(w, now, at);
    at_least(&at, job_at(w));
    w->turn_at = max_i64(at, now + 1);
    return w->turn_at;
}

void watch_delivered(struct watch *w, size_t sink, bool took, const char *story)
{
    alerts_told(w->alerts, sink, took, story, w->outside.now(w->outside.arg));
    w->turn_at = 0;
}

void watch_acknowledged(struct watch *w, struct slice id, int64_t at, struct slice by,
                        struct slice why)
{
    /* the leader reads an acknowledgement of an unknown alert */
    (void)alerts_acknowledge(w->alerts, id, at, by, why);
    w->turn_at = 0;
}
