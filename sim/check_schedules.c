/*
 * Schedules: each moment gets one task, or is on record as missed, skipped or failed, as
 * docs/schedules.md says; and nothing else fires. The model decides every moment again, from the
 * text as a person wrote it, the time of the node that led, and the state of the runs' tasks.
 */

#include "base/map.h"
#include "base/when.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/schedules.h"
#include "sim/sql.h"
#include "sim/voters.h"
#include "sim/world.h"
#include "json/json.h"

enum {
    DUE_MAX = 4000,     /* moments that are due at once */
    OTHERS_MS = 30000,  /* a leader learns by then of what was stored at another node */
    RANGES_MAX = 8,     /* of moments that are to be caught up: others are missed */
    PATIENCE_MS = 6000, /* what is due is decided by then, if all is well ... */
    LEAD_MS = 5000,     /* ... and somebody leads */
    LOOKS_MS = 3000,    /* in that time, */
    LOOKS_MAX = 8,      /* so often a leader may look for nothing */
};

/* What became of a moment. */
enum fate { FIRED, MISSED, SKIPPED, FAILED, FATES };
static const char *const fates[] = {"fired", "missed", "skipped", "failed"};

struct decided {
    int64_t moment;
    enum fate fate;
    int64_t previous; /* FIRED: its input names it; -1: any earlier one, or none */
};

struct model {
    bool exists;
    uint64_t revision;
    int64_t version;
    struct plan_text text;
    int64_t last, fired, waiting, run, paused_at; /* moments; run: 0: none is open */
    bool run_is_of_backlog;
    int64_t queue[PLAN_QUEUE_MAX]; /* the backlog */
    uint32_t queued;
    uint32_t ranges;    /* as which it is stored: moments that follow each other are one ... */
    int64_t range_last; /* ... and the last moment of the last one */
    uint64_t counts[FATES];
    bool by_people; /* its latest change: the leader may not know of it */
    /* In world time: since then something is to be decided, or undone; 0: nothing is. */
    int64_t pending_at, undo_at;
};

/* What a ticker read. */
struct looked {
    int64_t now;
    bool read[PLANS_MAX], is_open[PLANS_MAX];
    int64_t undo[PLANS_MAX]; /* the run that is to be undone, as then decided; 0: none is */
};

/* The looks of a node that found nothing, with no reason to look. */
struct vain_looks {
    uint64_t boot;
    int64_t since; /* world time */
    uint32_t count;
};

static struct model plans[PLANS_MAX];
static struct looked looks[NODES_MAX];
static struct vain_looks vain[NODES_MAX];
static struct decided decided[DUE_MAX];
static uint32_t decided_count;

static _Noreturn void wrong(const struct model *m, const char *rule, const char *what,
                            int64_t moment)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (moment)
        time_write(&b, moment);
    broken(rule, "schedule p%d, version %" PRId64 ", last %" PRId64 ": %s %.*s", (int)(m - plans),
           m->version, m->last, what, SLICE_ARG(buf_view(&b)));
}

static void must(const struct model *m, bool ok, const char *rule, const char *what, int64_t moment)
{
    if (!ok)
        wrong(m, rule, what, moment);
}

uint32_t plan_of(struct slice name)
{
    ASSERT(name.len >= 2);
    ASSERT(name.ptr[0] == 'p');
    uint32_t plan = (uint32_t)(name.ptr[1] - '0');
    ASSERT(plan < PLANS_MAX);
    return plan;
}

bool plan_exists(uint32_t plan)
{
    return plans[plan].exists;
}

bool plan_is_paused(uint32_t plan)
{
    return plans[plan].paused_at != 0;
}

uint32_t plan_queued(uint32_t plan)
{
    return plans[plan].queued;
}

const struct plan_text *plan_text(uint32_t plan)
{
    return &plans[plan].text;
}

/* ---- moments ---- */

/* The first one after that; 0: none. */
static int64_t moment_after(const struct plan_text *t, int64_t after)
{
    int64_t least = 0;

    if (t->every_ms)
        return after - after % t->every_ms + t->every_ms;
    for (uint32_t i = 0; i < t->at_count; i++)
        if (t->at[i] > after && (least == 0 || t->at[i] < least))
            least = t->at[i];
    return least;
}

/* The same for all moments of a schedule. */
static int64_t delay_of(const struct model *m)
{
    const char name[] = {'p', (char)('0' + (m - plans))};

    return m->text.spread_ms
               ? (int64_t)(hash_stable(name, sizeof name) % (uint64_t)m->text.spread_ms)
               : 0;
}

static bool input_fails(const struct plan_text *t, int64_t moment)
{
    int64_t tens = moment / (10 * MS_PER_S) % 60; /* of the last ten minutes */

    return t->fails && tens % t->fails == 0;
}

static struct slice text_of_moment(int64_t moment)
{
    CLEANUP(buf_fini) struct buf b = {0};

    time_write(&b, moment);
    return text_of("%.*sZ", (int)(b.len - sizeof ".000Z" + 1), b.ptr);
}

static struct slice id_of(const struct model *m, int64_t moment)
{
    return text_of("p%d@%.*s", (int)(m - plans), SLICE_ARG(text_of_moment(moment)));
}

/* ---- runs ---- */

static bool is_open(const struct subject *t)
{
    if (t->seen.revision == 0)
        return sql_run_waits(t);
    return !t->deleted && t->seen.state != TASK_PROCESSED && t->seen.state != TASK_COMPENSATED
           && t->seen.closed_at == 0;
}

static bool is_run_open(const struct model *m)
{
    const struct subject *t = m->run ? subject_find(id_of(m, m->run)) : NULL;

    return t && (is_open(t) || sql_run_waits(t));
}

/* Operators may begin an earlier one again. */
static void check_alone(const struct model *m, int64_t moment)
{
    struct slice id = id_of(m, moment);

    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        bool is_ours = t->run_alone && plan_of(slice_of(t->id)) == (uint32_t)(m - plans);
        if (is_ours && !t->verbs && !slice_is(id, t->id) && is_open(t) && !sql_run_was_refused(t))
            broken("unless they may overlap, one run is open at most", "%s beside %.*s", t->id,
                   SLICE_ARG(id));
    }
}

/* ---- the model ---- */

static void note(int64_t moment, enum fate fate, int64_t previous)
{
    ASSERT(decided_count < DUE_MAX);
    decided[decided_count++] = (struct decided){moment, fate, previous};
}

static void fire(struct model *m, int64_t moment, bool of_backlog)
{
    if (input_fails(&m->text, moment)) {
        note(moment, FAILED, 0);
        return;
    }
    note(moment, FIRED, moment > m->fired ? m->fired : -1);
    m->fired = max_i64(m->fired, moment);
    if (m->text.overlap == PLAN_ALLOW && !of_backlog)
        return;
    m->run = moment;
    m->run_is_of_backlog = of_backlog;
}

static void meet_run(struct model *m, int64_t moment)
{
    bool waits = m->text.overlap == PLAN_WAIT || m->text.overlap == PLAN_UNDO;

    if (!m->waiting && (waits || m->run_is_of_backlog))
        m->waiting = moment;
    else
        note(moment, SKIPPED, 0);
}

static void queue(struct model *m, int64_t moment)
{
    ASSERT(m->queued < PLAN_QUEUE_MAX);
    m->queue[m->queued++] = moment;
    covered(COVER_SCHEDULE_BACKLOG);
}

/* False: there is no room for another range. */
static bool catch_up(struct model *m, int64_t moment)
{
    bool goes_on = m->ranges > 0 && m->range_last == m->last;

    if (!goes_on && m->ranges == RANGES_MAX) {
        note(moment, MISSED, 0);
        return false;
    }
    m->ranges += !goes_on;
    m->range_last = moment;
    queue(m, moment);
    return true;
}

static void decide_due(struct model *m, int64_t now)
{
    bool any_queued = false;
    int64_t next = 0;

    for (int64_t moment = moment_after(&m->text, m->last); moment && moment + delay_of(m) <= now;
         moment = next) {
        next = moment_after(&m->text, moment);
        bool is_latest = !next || next + delay_of(m) > now;
        bool is_old = moment + delay_of(m) < now - m->text.catch_up_ms;
        bool is_taken = m->run || m->waiting;
        if (is_old || !(is_latest || m->text.missed_all)) {
            note(moment, MISSED, 0);
        } else if (m->text.overlap == PLAN_ALLOW) {
            fire(m, moment, false);
        } else if (any_queued || (is_taken && !is_latest)) {
            any_queued |= catch_up(m, moment);
        } else if (is_taken) {
            meet_run(m, moment);
        } else {
            fire(m, moment, false);
        }
        m->last = moment;
    }
}

static void decide_all(struct model *m, int64_t now, bool run_is_open)
{
    decided_count = 0;
    if (!run_is_open)
        m->run = 0;
    if (m->paused_at)
        return;
    if (m->waiting && !m->run) {
        int64_t moment = m->waiting;
        m->waiting = 0;
        covered(COVER_SCHEDULE_WAITED);
        fire(m, moment, false);
    }
    decide_due(m, now);
    if (m->queued == 0 || m->run || m->waiting)
        return;
    int64_t moment = m->queue[0];
    memmove(m->queue, m->queue + 1, --m->queued * sizeof m->queue[0]);
    fire(m, moment, true);
}

/* ---- what is stored ---- */

static int64_t moment_of_run(const struct model *m, struct slice run)
{
    int64_t at = 0;

    if (run.ptr && (run.len < 4 || !time_parse((struct slice){run.ptr + 3, run.len - 3}, &at)))
        wrong(m, "the open run is that of a moment", text_of("%.*s", SLICE_ARG(run)).ptr, 0);
    return at;
}

/* All moments of its ranges. */
static uint32_t read_backlog(const struct model *m, const struct json *j, int64_t *ret)
{
    uint32_t count = 0;
    const struct json *ranges = json_get(j, "backlog");

    for (const struct json *r = ranges ? ranges->child : NULL; r; r = r->next) {
        int64_t last = json_get_int(r, "last", 0);
        for (int64_t at = moment_after(&m->text, json_get_int(r, "after", 0)); at && at <= last;
             at = moment_after(&m->text, at)) {
            ASSERT(count < PLAN_QUEUE_MAX);
            ret[count++] = at;
        }
    }
    return count;
}

static void check_backlog(struct model *m, const struct json *j, bool other_times)
{
    static int64_t queue[PLAN_QUEUE_MAX];
    uint32_t count = read_backlog(m, j, queue);
    const struct json *ranges = json_get(j, "backlog");

    m->ranges = ranges ? (uint32_t)ranges->count : 0;
    for (const struct json *r = ranges ? ranges->child : NULL; r; r = r->next)
        m->range_last = json_get_int(r, "last", 0);

    if (other_times) { /* what is left are the moments of the new times */
        m->queued = count;
        memcpy(m->queue, queue, sizeof m->queue);
        return;
    }
    for (uint32_t i = 0; i < m->queued || i < count; i++)
        if (i == m->queued || i == count || queue[i] != m->queue[i])
            wrong(m, "the backlog has what is to be caught up, and nothing else",
                  i < m->queued ? "expected" : "unexpected",
                  i < m->queued ? m->queue[i] : queue[i]);
}

static void check_counts(const struct model *m, const struct json *j)
{
    for (unsigned i = 0; i < FATES; i++)
        if ((uint64_t)json_get_int(j, fates[i], 0) != m->counts[i])
            broken("moments are counted by what became of them",
                   "schedule p%d: %" PRId64 " %s, expected %" PRIu64, (int)(m - plans),
                   json_get_int(j, fates[i], 0), fates[i], m->counts[i]);
}

/* A schedule sleeps until something of it is due. */
static void check_wakes(const struct model *m, const struct schedule_row *row, const struct json *j,
                        int64_t now)
{
    const struct json *ranges = json_get(j, "backlog");
    bool left = m->waiting || (ranges && ranges->count > 0); /* one may turn out to be empty */
    int64_t next = moment_after(&m->text, m->last);
    int64_t due = next ? next + delay_of(m) : 0;

    must(m, row->waits == (!m->paused_at && m->run && left), "what waits for a run is found",
         row->waits ? "waits" : "does not wait", 0);
    if (m->paused_at)
        must(m, row->next_at == 0, "a paused schedule sleeps", "next", row->next_at);
    else if (left && !m->run)
        must(m, row->next_at && row->next_at <= now, "what can run is due", "next", row->next_at);
    else if (m->text.overlap != PLAN_UNDO || !m->waiting || m->run_is_of_backlog)
        must(m, row->next_at == due, "a schedule is due at its next moment", "next", row->next_at);
    else /* it asks for the undo again */
        must(m, row->next_at && (!due || row->next_at <= due) && row->next_at <= now + MS_PER_MIN,
             "an undo is asked for again", "next", row->next_at);
}

static void check_stored(struct model *m, const struct schedule_row *row, int64_t now,
                         bool other_times)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (json_parse(&a, row->doc, &j, NULL) != ERR_OK)
        wrong(m, "a schedule's row can be read", "its state", 0);
    must(m, row->revision == ++m->revision, "a change of a schedule raises its revision by one", "",
         0);
    must(m, row->version == m->version, "a version is a text", "version", 0);
    must(m, slice_eq(row->text, m->text.text), "a schedule is as it was written", "text", 0);
    must(m, row->last_at == m->last, "moments are decided in their order, each once", "last",
         row->last_at);
    must(m, row->waiting_at == m->waiting, "the moment that waits is the right one", "waits",
         row->waiting_at);
    must(m, moment_of_run(m, row->run) == m->run, "the open run is known", "run",
         moment_of_run(m, row->run));
    must(m, !m->run || json_get_bool(j, "run_is_of_backlog", false) == m->run_is_of_backlog,
         "a run of the backlog is known as such", "run", m->run);
    must(m, row->paused_at == m->paused_at, "only operators pause a schedule", "paused",
         row->paused_at);
    must(m, json_get_int(j, "fired_at", 0) == m->fired, "the last moment with a task is known",
         "fired", json_get_int(j, "fired_at", 0));
    check_backlog(m, j, other_times);
    check_counts(m, j);
    check_wakes(m, row, j, now);
    m->pending_at = 0;
}

/* ---- what a ticker decides ---- */

static void check_input(const struct model *m, const struct decided *d, struct slice input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    int64_t previous = 0;

    if (json_parse(&a, input, &j, NULL) != ERR_OK)
        wrong(m, "the input of a run is JSON", "run", d->moment);
    must(m, slice_eq(json_get_text(j, "time"), text_of_moment(d->moment)), "a run knows its moment",
         "run", d->moment);
    struct slice text = json_get_text(j, "previous");
    if (text.ptr && (!time_parse(text, &previous) || previous >= d->moment))
        wrong(m, "a run knows the moment before its own", "run", d->moment);
    must(m, d->previous < 0 || previous == d->previous,
         "the previous moment of a run is the last one that got a task", "it names", previous);
}

static void check_submission(struct model *m, const struct decided *d,
                             const struct submission_row *row, int64_t now)
{
    const struct plan_text *t = &m->text;

    must(m, slice_eq(row->id, id_of(m, d->moment)), "the id of a run is that of its moment",
         text_of("%.*s instead of", SLICE_ARG(row->id)).ptr, d->moment);
    must(m, slice_eq(row->key, row->id), "a moment is one task", "key", d->moment);
    must(m, slice_is(row->source, "schedule"), "a run says where it is from", "run", d->moment);
    must(m, slice_is(row->workflow, t->flow->name), "a run is of the schedule's workflow", "run",
         d->moment);
    must(m, row->priority.len == 1 && row->priority.ptr[0] == '0' + t->priority,
         "a run has the schedule's priority", "run", d->moment);
    must(m, row->submitted_at == now, "a run is submitted when it is decided", "run", d->moment);
    must(m, !flows_approve() || (row->submitter.len == 1 && row->submitter.ptr[0] == VOTER_SUBMITS),
         "a run is submitted by whoever stored the schedule", "run", d->moment);
    check_input(m, d, row->input);
    if (t->overlap != PLAN_ALLOW)
        check_alone(m, d->moment);
    if (d->moment + delay_of(m) < now - MS_PER_MIN)
        covered(COVER_SCHEDULE_CAUGHT_UP);
    covered(COVER_SCHEDULE_FIRED);
}

static const struct json *gap_of(const struct json *gaps, const struct decided *d, int64_t now)
{
    int64_t first = 0;
    int64_t last = 0;
    int64_t noted = 0;

    for (const struct json *g = gaps ? gaps->child : NULL; g; g = g->next)
        if (slice_is(json_get_text(g, "kind"), fates[d->fate])
            && time_parse(json_get_text(g, "from"), &first)
            && time_parse(json_get_text(g, "to"), &last)
            && time_parse(json_get_text(g, "noted_at"), &noted) && first <= d->moment
            && d->moment <= last && noted == now)
            return g;
    return NULL;
}

/* The latest 20 gaps are kept, and these are the latest. */
static void check_gap(const struct model *m, const struct decided *d,
                      const struct schedule_row *row, int64_t now)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (json_parse(&a, row->doc, &j, NULL) != ERR_OK)
        wrong(m, "a schedule's row can be read", "its state", 0);
    must(m, gap_of(json_get(j, "gaps"), d, now) != NULL, "a moment without a task is on record",
         fates[d->fate], d->moment);
    must(m, row->gap_at == now, "the time of the latest gap is known", "gap", row->gap_at);
    covered(d->fate == MISSED    ? COVER_SCHEDULE_MISSED
            : d->fate == SKIPPED ? COVER_SCHEDULE_SKIPPED
                                 : COVER_SCHEDULE_FAILED);
}

static bool wants_undo(const struct model *m)
{
    return m->text.overlap == PLAN_UNDO && m->waiting && m->run && !m->run_is_of_backlog
           && !m->paused_at;
}

static void check_tick(const struct node *n, struct model *m, const struct schedule_change *c)
{
    struct looked *l = &looks[n->slot];
    uint32_t plan = (uint32_t)(m - plans);
    uint32_t fired = 0;

    must(m, l->read[plan], "a ticker decides what it has read", "", 0);
    decide_all(m, l->now, l->is_open[plan]);
    for (uint32_t i = 0; i < decided_count; i++) {
        const struct decided *d = &decided[i];
        m->counts[d->fate]++;
        trace("schedule p%u: %.*s %s", plan, SLICE_ARG(text_of_moment(d->moment)), fates[d->fate]);
        if (d->fate != FIRED) {
            check_gap(m, d, &c->row, l->now);
            continue;
        }
        must(m, fired < c->submission_count, "a moment that is due gets its task", "none for",
             d->moment);
        check_submission(m, d, &c->submissions[fired++], l->now);
    }
    if (fired < c->submission_count)
        broken("only a moment that is due gets a task", "schedule p%u: %.*s at %" PRId64, plan,
               SLICE_ARG(c->submissions[fired].id), l->now);
    check_stored(m, &c->row, l->now, false);
    l->undo[plan] = wants_undo(m) ? m->run : 0;
}

/* ---- what people change ---- */

static bool same_times(const struct plan_text *a, const struct plan_text *b)
{
    return a->every_ms == b->every_ms && a->as_cron == b->as_cron && a->spread_ms == b->spread_ms
           && a->at_count == b->at_count
           && memcmp(a->at, b->at, a->at_count * sizeof a->at[0]) == 0;
}

/* Returns whether it has other times. */
static bool put(struct model *m, const struct plan_call *call)
{
    bool other = !m->exists || !same_times(&m->text, call->text);

    if (!m->exists)
        *m = (struct model){.exists = true};
    m->version++;
    m->text = *call->text;
    if (other)
        m->last = call->now;
    covered(m->version > 1 ? COVER_SCHEDULE_CHANGED : COVER_SCHEDULE_STORED);
    return other;
}

static void backfill(struct model *m, const struct plan_call *call)
{
    for (int64_t at = moment_after(&m->text, call->from - 1); at && at <= call->to;
         at = moment_after(&m->text, at))
        queue(m, at);
    covered(COVER_SCHEDULE_BACKFILL);
}

static void check_called(struct model *m, const struct plan_call *call,
                         const struct schedule_change *c)
{
    bool other_times = false;

    must(m, m->exists || call->verb == PLAN_VERB_PUT, "what is deleted stays so", "changed", 0);
    switch (call->verb) {
    case PLAN_VERB_PUT:
        other_times = put(m, call);
        break;
    case PLAN_VERB_PAUSE:
        m->paused_at = call->now;
        covered(COVER_SCHEDULE_PAUSED);
        break;
    case PLAN_VERB_RESUME:
        m->paused_at = 0;
        m->last = call->now;
        break;
    case PLAN_VERB_BACKFILL:
        backfill(m, call);
        break;
    case PLAN_VERB_RUN:
        covered(COVER_SCHEDULE_RUN);
        break;
    case PLAN_VERB_DELETE:
        UNREACHABLE();
    }
    must(m, c->submission_count == (call->verb == PLAN_VERB_RUN), "people submit what they want",
         "submissions", 0);
    check_stored(m, &c->row, call->now, other_times);
}

/* ---- for the store ---- */

void check_schedules_begin(void)
{
    memset(plans, 0, sizeof plans);
    memset(looks, 0, sizeof looks);
    memset(vain, 0, sizeof vain);
}

void check_schedules_hint(const struct node *n)
{
    vain[n->slot].count = 0;
}

/* While nothing is due, a leader looks once a second at most. */
static void check_rest(const struct node *n, const struct schedule_look *l)
{
    struct vain_looks *v = &vain[n->slot];

    if (l->count > 0 || v->count == 0 || v->boot != n->boot || world.now - v->since > LOOKS_MS)
        *v = (struct vain_looks){.boot = n->boot, .since = world.now};
    v->count += l->count == 0;
    if (v->count > LOOKS_MAX)
        broken("a leader looks for what is due when something may be due",
               "%s looked %u times in %" PRId64 " ms, and found nothing", n->me, v->count,
               world.now - v->since);
}

void check_schedules_looked(const struct node *n, const struct schedule_look *l)
{
    struct looked *looked = &looks[n->slot];

    *looked = (struct looked){.now = l->now};
    check_rest(n, l);
    if (l->now > latest_now())
        broken("nothing is due before its time", "%s is %" PRId64 " ms ahead", n->me,
               l->now - store_now());
    for (size_t i = 0; i < l->count; i++) {
        uint32_t plan = plan_of(l->rows[i].name);
        const struct model *m = &plans[plan];
        must(m, m->exists, "what is deleted stays so", "read", 0);
        looked->read[plan] = true;
        looked->is_open[plan] = l->rows[i].run_is_open;
        must(m, l->rows[i].run_is_open == is_run_open(m), "a run is open until its task has ended",
             l->rows[i].run_is_open ? "open" : "not open", m->run);
    }
}

void check_schedule_written(const struct node *n, const struct plan_call *call,
                            const struct schedule_change *c)
{
    struct model *m = &plans[plan_of(c->row.name)];

    if (call) {
        check_called(m, call, c);
        m->by_people = true; /* it may be a new one */
        return;
    }
    must(m, m->exists, "what is deleted stays so", "decided", 0);
    check_tick(n, m, c);
    m->by_people = false;
}

void check_schedule_removed(uint32_t plan)
{
    trace("schedule p%u is deleted", plan);
    for (uint32_t i = 0; i < subjects.count; i++) /* its tasks stay */
        if (subjects.list[i].run_alone && plan_of(slice_of(subjects.list[i].id)) == plan)
            subjects.list[i].run_alone = false;
    plans[plan] = (struct model){.exists = false};
    covered(COVER_SCHEDULE_DELETED);
}

void check_schedule_submitted(struct slice run)
{
    const struct subject *t = subject_find(run);

    if (!t || (t->seen.revision == 0 && !sql_run_waits(t) && !sql_run_was_refused(t)))
        broken("what a moment submits is stored with it", "%.*s", SLICE_ARG(run));
}

void check_schedule_undo(const struct node *n, struct slice run)
{
    uint32_t plan = plan_of(run);
    int64_t moment = looks[n->slot].undo[plan];

    if (!moment || !slice_eq(run, id_of(&plans[plan], moment)))
        broken("a run is undone only for the next moment", "%.*s", SLICE_ARG(run));
}

/* ---- all is well: what is due is decided ---- */

/* Nobody has asked that the run be undone. */
static bool is_undo_pending(const struct model *m)
{
    const struct subject *t = wants_undo(m) ? subject_find(id_of(m, m->run)) : NULL;

    return m->exists && t && t->seen.revision != 0 && is_open(t) && !t->cancel;
}

static bool is_pending(const struct model *m)
{
    int64_t next = moment_after(&m->text, m->last);

    if (!m->exists || m->paused_at)
        return false;
    return (next && next + delay_of(m) <= store_now() - nodes.skew_max)
           || ((m->waiting || m->queued > 0) && !is_run_open(m));
}

static int64_t patience_with(const struct model *m)
{
    return PATIENCE_MS + (nodes.shared ? (m->by_people ? OTHERS_MS : LEAD_MS) : 0);
}

void check_schedules_idle(void)
{
    for (uint32_t i = 0; i < PLANS_MAX; i++) {
        struct model *m = &plans[i];
        int64_t patience = patience_with(m);
        if (!is_pending(m))
            m->pending_at = 0;
        else if (m->pending_at == 0)
            m->pending_at = world.now;
        bool is_late =
            m->pending_at && max_i64(m->pending_at, nodes_quiet_since()) + patience < world.now;
        if (!is_undo_pending(m))
            m->undo_at = 0;
        else if (m->undo_at == 0)
            m->undo_at = world.now;
        if (world.calm && m->undo_at
            && max_i64(m->undo_at, nodes_quiet_since()) + patience + MS_PER_MIN < world.now)
            wrong(m, "a run is undone for the next moment", "run", m->run);
        if (nodes_are_well() && is_late)
            wrong(m, "what is due is decided soon", m->waiting ? "waits" : "last",
                  m->waiting ? m->waiting : m->last);
    }
}
