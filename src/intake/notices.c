/* Rounds of notices, from reading a page to settling what changed nothing. Only the *_run functions
 * run on the store's thread. Design: notices.h. */

#include "intake/notices.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "intake/family.h"

enum {
    PAGE_MAX = 512,
    PAGE_BYTES = 4 << 20,
    TURN_BYTES = 128 << 10,  /* are read in a turn, ... */
    ROW_BYTES = 1 << 10,     /* ... with so many for each that has none */
    PAUSE_MS = 250,          /* after a failure, or while some have to wait ... */
    PAUSE_MAX_MS = 2000,     /* ... each time twice as long, while no other is taken */
    PATIENCE_MS = 2000,      /* after that, the next node takes it, too, ... */
    PATIENCE_MAX_MS = 60000, /* ... or after twice as long each time, if the first one is at work */
};

/* The notices of a task in a page. */
struct crowd {
    size_t count;
    int64_t last; /* seq of the last one that was asked */
    bool left;    /* one has to wait, so the later ones do */
};

struct notices {
    struct notices_config config;
    enum { IDLE, READING, ASKING, SETTLING } state;
    bool woken, draining;
    bool left;    /* some of this round stay, and must be read again */
    bool waits;   /* not only because there were too many for one change */
    bool took;    /* others do not */
    bool clashed; /* one of another node was not ours to decide: that node is at work */
    int64_t patience_ms;
    int64_t read_from, pause_ms;
    uint32_t parts, part;
    struct {
        uint32_t parts, part;
        int64_t patience_ms;
    } round;            /* the same for all of its pages */
    struct arena arena; /* of the page */
    struct notice_read page;
    int64_t after_seq;
    struct map tasks; /* struct crowd, in `arena` */
    struct notice_item *items;
    size_t next; /* of the page, to be asked */
    size_t count, open, room;
    struct notice_verdict *verdicts;
    size_t verdict_count;
    struct store_job job;
    enum err err;
    struct error error;
};

static int64_t now_of(const struct notices *in)
{
    return in->config.clock.now(in->config.clock.arg);
}

/* ---- the end of a round ---- */

static void round_end(struct notices *in, bool again, int64_t pause_ms)
{
    map_fini(&in->tasks);
    arena_fini(&in->arena);
    in->arena = (struct arena){0};
    in->state = IDLE;
    in->woken |= again;
    in->read_from = now_of(in) + pause_ms;
}

/* The next page at once, and new ones when there are any; from the first one again after a pause,
 * if some stay. On a shared store the survey tells of those that stay for long. */
static void round_done(struct notices *in)
{
    bool more = in->page.more;

    in->after_seq = more ? in->page.rows[in->page.count - 1].seq : 0;
    if (more) {
        round_end(in, true, 0);
        return;
    }
    bool stays = in->left && !in->took;
    in->pause_ms = stays ? min_i64(in->pause_ms * 2, PAUSE_MAX_MS) : PAUSE_MS;
    bool again = in->left && (in->took || !in->config.shared);
    int64_t pause_ms = in->waits || stays ? in->pause_ms : 0;
    in->left = in->waits = in->took = false;
    round_end(in, again, pause_ms);
}

static void fail(struct notices *in)
{
    in->config.failed(in->config.arg, &in->error);
    in->after_seq = 0;
    round_end(in, true, PAUSE_MS);
}

static void submit_job(struct notices *in, void (*run)(struct store_job *, struct store *),
                       void (*done)(struct store_job *))
{
    in->job = (struct store_job){.run = run, .done = done};
    in->config.store->submit(in->config.store, &in->job);
}

static void settle_run(struct store_job *j, struct store *s)
{
    struct notices *in = CONTAINER_OF(j, struct notices, job);

    in->err = s->ops->notices->settle(s, in->verdicts, in->verdict_count, &in->error);
}

static void settle_done(struct store_job *j)
{
    struct notices *in = CONTAINER_OF(j, struct notices, job);

    ASSERT(in->state == SETTLING);
    if (in->err != ERR_OK) {
        fail(in); /* the rows are read again with the same verdicts */
        return;
    }
    for (size_t i = 0; i < in->count; i++)
        if (in->items[i].settles && in->items[i].problem.ptr)
            in->config.refused(in->config.arg, &in->items[i]);
    round_done(in);
}

static void settle(struct notices *in)
{
    ASSERT(in->open == 0);
    in->verdict_count = 0;
    in->verdicts = arena_alloc(&in->arena, (in->count + 1) * sizeof *in->verdicts);
    for (size_t i = 0; i < in->count; i++) {
        const struct notice_item *it = &in->items[i];
        if (it->settles)
            in->verdicts[in->verdict_count++] =
                (struct notice_verdict){.seq = it->row->seq,
                                        .refused_at = it->problem.ptr ? now_of(in) : 0,
                                        .reason = it->problem};
    }
    if (in->verdict_count == 0) {
        round_done(in);
        return;
    }
    in->took = true;
    in->state = SETTLING;
    submit_job(in, settle_run, settle_done);
}

/* ---- asking ---- */

static struct crowd *crowd_of(struct notices *in, const struct notice_row *row)
{
    struct crowd *t = map_get(&in->tasks, row->task);

    if (!t) {
        t = arena_alloc(&in->arena, sizeof *t);
        *t = (struct crowd){0};
        map_put(&in->tasks, row->task, t);
    }
    return t;
}

/* It is read again, and before the later ones of its task. */
static void leave(struct notices *in, const struct notice_row *row)
{
    in->left = in->waits = true;
    crowd_of(in, row)->left = true;
}

static void one_less(struct notices *in)
{
    ASSERT(in->open > 0);
    if (--in->open == 0)
        settle(in);
}

void notices_answered(struct notice_item *it)
{
    struct notices *in = it->in;
    const struct ask *a = &it->ask;
    bool is_full = a->outcome == ERR_CONFLICT && a->refusal == OBSTACLE_SIGNAL_FULL;

    if (a->outcome == ERR_OK) {
        it->settles = a->existed; /* a change has deleted it */
        in->took = true;
    } else if (is_full) {
        leave(in, it->row); /* a step that takes some makes room */
    } else if (a->outcome == ERR_CONFLICT || a->outcome == ERR_INVALID
               || a->outcome == ERR_TOO_BIG) {
        it->settles = true;
        it->problem =
            a->story[0] ? arena_copy(&in->arena, slice_of(a->story)) : SLICE("it cannot be stored");
    } else {
        in->clashed |= it->row->is_of_other;
        leave(in, it->row);
    }
    one_less(in);
}

/* False: nothing is asked. */
static bool is_to_be_asked(struct notices *in, struct notice_item *it)
{
    const struct notice_row *row = it->row;
    char story[200];

    if (!row->has_task && row->is_submitted) {
        leave(in, row); /* its task is about to be there */
        return false;
    }
    if (!row->has_task && family_tells(row)) {
        it->settles = true; /* the task was deleted: nobody needs it any more */
        return false;
    }
    if (!row->has_task) {
        (void)snprintf(story, sizeof story, "there is no task \"%.*s\"",
                       SLICE_ARG(slice_cut(row->task, ASK_NAME_TOLD)));
        it->problem = arena_copy(&in->arena, slice_of(story));
    } else {
        in->config.read(in->config.arg, it);
    }
    it->settles = it->problem.ptr != NULL;
    return !it->settles;
}

static bool has_room(struct notices *in, const struct notice_row *row)
{
    struct crowd *t = crowd_of(in, row);

    /* One change names so many. */
    return in->open <= in->room && !t->left && t->count++ < NOTICES_OF_CHANGE_MAX;
}

/* The change of its task has as many as it may: it is read again at once. */
static void leave_for_next(struct notices *in, const struct notice_row *row)
{
    bool waits = in->waits;

    leave(in, row);
    in->waits = waits;
}

static void ask_one(struct notices *in, const struct notice_row *row)
{
    if (!has_room(in, row)) {
        if (crowd_of(in, row)->count > NOTICES_OF_CHANGE_MAX)
            leave_for_next(in, row);
        else
            leave(in, row);
        return;
    }
    struct notice_item *it = &in->items[in->count++];
    *it = (struct notice_item){.in = in, .row = row, .arena = &in->arena};
    if (!is_to_be_asked(in, it))
        return;
    struct crowd *t = crowd_of(in, row);
    it->ask.id = row->task;
    it->ask.notice = row->seq;
    it->ask.behind = t->last;
    it->ask.signal.at = row->at;
    t->last = row->seq;
    in->open++;
    in->config.ask(in->config.arg, it);
}

/* So many as a turn has time for. */
static void ask_some(struct notices *in)
{
    size_t bytes = 0;

    ASSERT(in->state == ASKING);
    while (in->next < in->page.count && bytes < TURN_BYTES) {
        const struct notice_row *row = &in->page.rows[in->next++];
        bytes += row->body.len + ROW_BYTES;
        ask_one(in, row);
    }
    if (in->next == in->page.count)
        one_less(in);
}

static bool has_more_to_ask(const struct notices *in)
{
    return in->state == ASKING && in->next < in->page.count;
}

static void ask_page(struct notices *in)
{
    in->state = ASKING;
    in->count = in->next = 0;
    in->items = arena_alloc(&in->arena, (in->page.count + 1) * sizeof *in->items);
    in->room = in->config.room(in->config.arg);
    in->open = 1; /* keeps the page open: asks may be answered at once */
    ask_some(in);
}

/* ---- reading ---- */

static void read_run(struct store_job *j, struct store *s)
{
    struct notices *in = CONTAINER_OF(j, struct notices, job);

    in->err = s->ops->notices->read(s, &in->page, &in->arena, &in->error);
}

static void read_done(struct store_job *j)
{
    struct notices *in = CONTAINER_OF(j, struct notices, job);

    ASSERT(in->state == READING);
    if (in->err != ERR_OK)
        fail(in);
    else if (in->page.count == 0)
        round_done(in);
    else
        ask_page(in);
}

static void read_page(struct notices *in, int64_t now)
{
    if (in->after_seq == 0 && in->clashed)
        in->patience_ms = min_i64(2 * in->patience_ms, PATIENCE_MAX_MS);
    if (in->after_seq == 0) {
        in->clashed = false;
        in->round.patience_ms = in->patience_ms;
        in->round.parts = in->config.shared ? in->parts : 1;
        in->round.part = in->part;
    }
    in->woken = false;
    in->state = READING;
    in->page = (struct notice_read){.after_seq = in->after_seq,
                                    .limit = in->config.page_max,
                                    .bytes_max = PAGE_BYTES,
                                    .parts = in->round.parts,
                                    .part = in->round.part,
                                    .me = in->config.me,
                                    .patience_ms = in->round.patience_ms,
                                    .now = now};
    submit_job(in, read_run, read_done);
}

int64_t notices_turn(struct notices *in)
{
    if (has_more_to_ask(in)) {
        ask_some(in);
        return has_more_to_ask(in) ? now_of(in) : 0;
    }
    if (in->state != IDLE || in->draining || !in->woken)
        return 0;
    if (in->config.shared && in->parts == 0)
        return 0; /* whose they are is not known before the first survey */
    int64_t now = now_of(in);
    in->read_from = min_i64(in->read_from, now + PAUSE_MAX_MS); /* the clock was set back */
    if (now < in->read_from)
        return in->read_from;
    read_page(in, now);
    return 0;
}

/* ---- interface ---- */

void notices_wake(struct notices *in)
{
    in->woken = true;
}

void notices_surveyed(struct notices *in, const struct survey *v)
{
    if (!v->notices || v->schedulers != in->parts)
        in->patience_ms = PATIENCE_MS; /* there is no backlog, or somebody is gone */
    in->parts = v->schedulers;
    in->part = v->schedulers_before;
    in->woken |= v->notices;
}

void notices_drain(struct notices *in)
{
    in->draining = true;
}

bool notices_has_news(const struct notices *in)
{
    bool soon = in->woken && in->read_from <= now_of(in) + PAUSE_MS;

    return !in->draining && (soon || in->state != IDLE);
}

bool notices_is_busy(const struct notices *in)
{
    return in->state != IDLE;
}

struct notices *notices_new(const struct notices_config *c)
{
    struct notices *in = calloc(1, sizeof *in);

    ASSERT(in);
    in->config = *c;
    if (!in->config.page_max)
        in->config.page_max = PAGE_MAX;
    in->pause_ms = PAUSE_MS;
    in->patience_ms = PATIENCE_MS;
    in->woken = true; /* some may be there already */
    return in;
}

void notices_free(struct notices *in)
{
    if (!in)
        return;
    map_fini(&in->tasks);
    arena_fini(&in->arena);
    free(in);
}
