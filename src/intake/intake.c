/* Batches of submissions from the table `submission`, from taking rows to settling them. Only the
 * *_run functions run on the store's thread. Design: intake.h; what is asked: scheduler/submit.c.
 */

#include "intake/intake.h"

#include <stdlib.h>

enum {
    BATCH_MAX = 1000,
    BATCH_BYTES = 8 << 20,
    PAUSE_MS = 250,        /* after a failure */
    UNSETTLED_MS = 3,      /* first pause while a writer is about to commit */
    UNSETTLED_MAX_MS = 24, /* longest such pause */
    EMPTY_PAUSE_MS = 5,    /* after a read that found nothing; own writes also trigger reads */
    PATIENCE_MS = 2000,    /* after that, other nodes' submissions may be taken by any node */
};

struct intake {
    struct intake_config config;
    enum { IDLE, TAKING, READING, ASKING, SETTLING } state;
    bool woken, draining;
    bool transient;    /* the store did not take one of them */
    int64_t now;       /* at the last turn */
    int64_t read_from; /* no read before; 0: when woken */
    int64_t read_by;
    int64_t unsettled_ms; /* last pause for a writer's commit; 0: no writer is about to commit */
    uint32_t parts, part;
    struct arena arena; /* of the batch */
    struct submission_take take;
    struct intake_item *items;
    size_t open;
    struct submission_verdict *verdicts;
    size_t verdict_count;
    struct intake_item **refused;
    size_t refused_count;
    struct registry_wait definitions;
    struct store_job job;
    enum err err;
    struct error error;
    struct intake_stats stats;
};

static int64_t now_of(const struct intake *in)
{
    return in->config.clock.now(in->config.clock.arg);
}

/* ---- the end of a batch ---- */

static void batch_end(struct intake *in, int64_t pause_ms)
{
    int64_t now = now_of(in);

    arena_fini(&in->arena);
    in->arena = (struct arena){0};
    in->state = IDLE;
    in->read_from = now + pause_ms;
    in->read_by = in->config.look_ms ? now + max_i64(in->config.look_ms, pause_ms) : 0;
}

/* An application may take long to commit, so the pauses grow. */
static int64_t unsettled_pause(const struct intake *in)
{
    if (!in->take.unsettled)
        return 0;
    return in->unsettled_ms ? min_i64(2 * in->unsettled_ms, UNSETTLED_MAX_MS) : UNSETTLED_MS;
}

static void fail(struct intake *in)
{
    if (in->config.failed)
        in->config.failed(in->config.arg, &in->error);
    in->woken = true;
    batch_end(in, PAUSE_MS);
}

static void batch_done(struct intake *in)
{
    bool again = in->take.more || in->take.unsettled || in->transient;

    in->woken |= again;
    batch_end(in, in->transient ? PAUSE_MS : 0);
}

static void settle_run(struct store_job *j, struct store *s)
{
    struct intake *in = CONTAINER_OF(j, struct intake, job);

    in->err = s->ops->submissions->settle(s, in->verdicts, in->verdict_count, &in->error);
}

static void settle_done(struct store_job *j)
{
    struct intake *in = CONTAINER_OF(j, struct intake, job);

    if (in->err != ERR_OK) {
        fail(in); /* the rows are read again with the same verdicts */
        return;
    }
    ASSERT(in->state == SETTLING);
    in->stats.refused += in->refused_count;
    in->stats.refused_now += in->refused_count;
    in->config.settled(in->config.arg, in->refused, in->refused_count);
    batch_done(in);
}

static void submit_job(struct intake *in, void (*run)(struct store_job *, struct store *),
                       void (*done)(struct store_job *))
{
    in->job = (struct store_job){.run = run, .done = done};
    in->config.store->submit(in->config.store, &in->job);
}

static void settle(struct intake *in)
{
    size_t count = in->take.count + 1;

    ASSERT(in->open == 0);
    ASSERT(in->state == ASKING);
    in->verdict_count = in->refused_count = 0;
    in->verdicts = arena_alloc(&in->arena, count * sizeof *in->verdicts);
    in->refused = arena_alloc(&in->arena, count * sizeof(struct intake_item *));
    for (size_t i = 0; i < in->take.count; i++) {
        struct intake_item *it = &in->items[i];
        if (!it->settles)
            continue;
        in->verdicts[in->verdict_count++] =
            (struct submission_verdict){.seq = it->row->seq,
                                        .refused_at = it->problem.ptr ? now_of(in) : 0,
                                        .reason = it->problem};
        if (it->problem.ptr)
            in->refused[in->refused_count++] = it;
    }
    if (in->verdict_count == 0) {
        batch_done(in);
        return;
    }
    in->state = SETTLING;
    submit_job(in, settle_run, settle_done);
}

/* ---- asking ---- */

static void one_less(struct intake *in)
{
    ASSERT(in->open > 0);
    if (--in->open == 0)
        settle(in);
}

void intake_answered(struct intake_item *it, struct slice story)
{
    struct intake *in = it->intake;
    enum err err = it->ask->outcome;

    if (err == ERR_OK) {
        in->stats.accepted += !it->ask->existed;
        in->stats.existed += it->ask->existed;
        it->settles = it->ask->existed; /* a new task has deleted its row */
    } else if (err == ERR_CONFLICT || err == ERR_TAKEN || err == ERR_INVALID
               || err == ERR_TOO_BIG) {
        it->settles = true;
        it->problem = story.len ? arena_copy(&in->arena, story) : SLICE("it cannot be stored");
    } else {
        in->transient = true;
    }
    one_less(in);
}

/* False: it is refused. */
static bool is_to_be_asked(struct intake_item *it)
{
    it->settles = it->problem.ptr != NULL;
    if (it->settles)
        return false;
    ASSERT(it->ask);
    it->ask->submission = it->row->seq;
    return true;
}

void intake_read(struct intake_item *it)
{
    struct intake *in = it->intake;

    ASSERT(it->away);
    if (is_to_be_asked(it))
        in->config.ask(in->config.arg, it);
    else
        one_less(in);
}

static void ask_all(struct intake *in)
{
    size_t count = in->take.count;

    ASSERT(in->state == READING);
    in->state = ASKING;
    in->open = 1; /* keeps the batch open: asks may be answered at once */
    for (size_t i = 0; i < count; i++) {
        struct intake_item *it = &in->items[i];
        *it = (struct intake_item){.intake = in, .row = &in->take.rows[i], .arena = &in->arena};
        in->config.read(in->config.arg, it);
        if (!it->away && !is_to_be_asked(it))
            continue;
        in->open++;
        if (!it->away)
            in->config.ask(in->config.arg, it);
    }
    one_less(in);
}

/* If the definitions could not be read, an unknown definition may still be stored. */
static void definitions_known(struct registry_wait *w, enum err err, const char *story)
{
    struct intake *in = CONTAINER_OF(w, struct intake, definitions);

    if (err == ERR_OK) {
        ask_all(in);
        return;
    }
    in->err = error_set(&in->error, err, "%s", story);
    fail(in);
}

/* ---- taking ---- */

static void take_run(struct store_job *j, struct store *s)
{
    struct intake *in = CONTAINER_OF(j, struct intake, job);

    in->err = s->ops->submissions->take(s, &in->take, &in->arena, &in->error);
}

static void take_done(struct store_job *j)
{
    struct intake *in = CONTAINER_OF(j, struct intake, job);

    if (in->err != ERR_OK) {
        fail(in);
        return;
    }
    ASSERT(in->state == TAKING);
    ASSERT(in->take.count <= in->config.batch_max);
    if (in->take.notices && in->config.notices)
        in->config.notices(in->config.arg);
    in->stats.refused_now = in->take.refused;
    if (in->config.look_ms) /* otherwise surveys tell */
        in->stats.signals_refused_now = in->take.signals_refused;
    in->unsettled_ms = unsettled_pause(in);
    if (in->take.count == 0) {
        in->woken |= in->take.unsettled;
        batch_end(in, in->take.unsettled ? in->unsettled_ms : EMPTY_PAUSE_MS);
        return;
    }
    in->transient = false;
    in->items = arena_alloc(&in->arena, in->take.count * sizeof *in->items);
    in->definitions = (struct registry_wait){.done = definitions_known};
    in->state = READING;
    if (!registry_read(in->config.workflows, &in->definitions))
        ask_all(in);
}

static void take(struct intake *in)
{
    size_t room = in->config.room(in->config.arg);

    if (room == 0) {
        in->read_from = now_of(in) + PAUSE_MS;
        return;
    }
    in->woken = false;
    if (in->config.looks)
        in->config.looks(in->config.arg);
    in->state = TAKING;
    in->take =
        (struct submission_take){.now = now_of(in),
                                 .parts = in->parts,
                                 .part = in->part,
                                 .patience_ms = PATIENCE_MS,
                                 .limit = room < in->config.batch_max ? room : in->config.batch_max,
                                 .bytes_max = BATCH_BYTES};
    submit_job(in, take_run, take_done);
}

int64_t intake_turn(struct intake *in)
{
    int64_t now = now_of(in);

    if (in->state != IDLE || in->draining)
        return 0;
    if (now < in->now) { /* the clock was set back: the old time may be far off */
        in->read_from = min_i64(in->read_from, now + PAUSE_MS);
        in->read_by = min_i64(in->read_by, now + in->config.look_ms);
    }
    in->now = now;
    if (in->read_by && now >= in->read_by)
        in->woken = true;
    if (in->woken && now >= in->read_from)
        take(in);
    if (in->state != IDLE)
        return 0;
    return in->woken ? in->read_from : in->read_by;
}

/* ---- interface ---- */

bool intake_has_news(const struct intake *in)
{
    return !in->draining && (in->woken || in->state != IDLE);
}

void intake_wake(struct intake *in)
{
    in->woken = true;
}

void intake_surveyed(struct intake *in, const struct survey *v)
{
    in->parts = v->schedulers;
    in->part = v->schedulers_before;
    in->stats.signals_refused_now = v->signals_refused;
    if (v->submissions)
        in->woken = true;
}

void intake_drain(struct intake *in)
{
    in->draining = true;
}

bool intake_is_busy(const struct intake *in)
{
    return in->state != IDLE;
}

void intake_stats(const struct intake *in, struct intake_stats *ret)
{
    *ret = in->stats;
    ret->open = in->open;
}

struct intake *intake_new(const struct intake_config *c)
{
    struct intake *in = calloc(1, sizeof *in);

    ASSERT(in);
    in->config = *c;
    if (!in->config.batch_max)
        in->config.batch_max = BATCH_MAX;
    in->woken = true; /* submissions may already be waiting */
    return in;
}

void intake_free(struct intake *in)
{
    if (!in)
        return;
    arena_fini(&in->arena);
    free(in);
}
