/* Chooses the claims of a batch: tasks that an earlier boot or a lost node left, tasks whose lock
 * is free or whose time has come, and tasks that wait for an agent with free places. The store
 * picks the rows. turn.c calls claim_gather on the event loop; landed.c takes what was claimed. */

#include "scheduler/job.h"

enum { CLAIM_MAX = 512, CLAIMS_MAX = 64, CLAIMS_OF_LINE = 4 };

static struct claim *add_claim(struct scheduler *s, struct job *j, enum claim_kind kind)
{
    if (j->batch.claim_count == CLAIMS_MAX)
        return NULL;
    ASSERT(shared_may_claim(s));
    ASSERT(!s->draining);
    if (!j->batch.claims)
        j->batch.claims = arena_alloc(&j->arena, CLAIMS_MAX * sizeof *j->batch.claims);
    struct claim *c = &j->batch.claims[j->batch.claim_count++];
    *c = (struct claim){.kind = kind,
                        .locked_by = s->me,
                        .now = scheduler_now(s),
                        .limit = CLAIM_MAX};
    return c;
}

/* A range of the ranks in which tasks wait for an agent; `before` 0: no upper bound. */
struct range {
    int64_t from, before;
};

static void claim_range(struct scheduler *s, struct job *j, const struct agent *a, bool among,
                        size_t room, struct range r)
{
    struct claim *c = add_claim(s, j, CLAIM_AGENT);

    if (!c)
        return;
    ASSERT(room > 0);
    ASSERT(r.before == 0 || r.from < r.before);
    c->agent = arena_copy(&j->arena, a->name);
    c->among = among;
    c->rank_from = r.from;
    c->rank_before = r.before;
    if (room < c->limit)
        c->limit = room;
}

/* Claims tasks that wait for this agent alone, and tasks that also wait for others; the queue
 * orders them by rank again. Together they may be twice what there is room for; lane_excess counts
 * that, and nothing releases it. */
static void claim_backlog(struct scheduler *s, struct job *j, const struct agent *a,
                          struct backlog b, size_t room, struct range r)
{
    if (room > 0 && b.alone)
        claim_range(s, j, a, false, room, r);
    if (room > 0 && b.among)
        claim_range(s, j, a, true, room, r);
}

/* Two actions may share a line by a hash collision. Then each leaves what the other has no room
 * for. */
static size_t room_of_line(const struct agent *a, size_t nth, int64_t now)
{
    ASSERT(nth < a->line_count);
    size_t room = lane_room(a->lines[nth], now);

    for (size_t i = 0; i < a->line_count && room > 0; i++)
        if (a->lines[i]->line == a->lines[nth]->line) {
            size_t other = lane_held_by(a->lines[i], now) ? 0 : lane_room(a->lines[i], now);
            room = other < room ? other : room;
        }
    return room;
}

/* Claims for the line, and for the ranks between it and the next line. */
static void claim_for_line(struct scheduler *s, struct job *j, const struct agent *a, size_t nth,
                           size_t loose, int64_t now)
{
    const struct lane *l = a->lines[nth];
    int64_t end = l->line + (INT64_C(1) << LINE_SHIFT);
    int64_t next = nth + 1 < a->line_count ? a->lines[nth + 1]->line : 0;

    if (backlog_any(l->backlog))
        claim_backlog(s, j, a, l->backlog, room_of_line(a, nth, now), (struct range){l->line, end});
    if (backlog_any(l->more) && (next == 0 || next > end))
        claim_backlog(s, j, a, l->more, loose, (struct range){end, next});
}

static void claim_for_agent(struct scheduler *s, struct job *j, struct agent *a)
{
    const struct lane plain = {.agent = a}; /* a lane without a limit of its own */
    int64_t now = scheduler_now(s);
    bool connected = dispatch_is_connected(a, now);
    size_t loose = connected ? lane_room(&plain, now) : 0;
    size_t first = a->claim_line;

    if (backlog_any(a->backlog))
        claim_backlog(s, j, a, a->backlog, loose,
                      (struct range){INT64_MIN, a->line_count ? a->lines[0]->line : 0});
    a->claim_line = 0;
    for (size_t i = 0; connected && i < a->line_count; i++) {
        size_t nth = (first + i) % a->line_count;
        if (j->batch.claim_count + CLAIMS_OF_LINE > CLAIMS_MAX) {
            a->claim_line = nth;
            return;
        }
        claim_for_line(s, j, a, nth, loose, now);
    }
}

/* Claims only a quarter as many waits: a million that are due at once must not starve others. */
static void claim_due(struct scheduler *s, struct job *j, enum due due)
{
    struct claim *c = add_claim(s, j, CLAIM_TIME);

    if (!c)
        return;
    c->agent = due == DUE_WAIT ? WAITING_WAIT : WAITING_TIME;
    c->among = due == DUE_AMONG;
    if (due == DUE_WAIT)
        c->limit = CLAIM_MAX / 4;
}

/* As many as of waits: whoever gives back many locks at once must not starve others. Room that is
 * left is not known: what has no place here goes back to the store, with its lock. */
static void claim_locks(struct scheduler *s, struct job *j)
{
    struct claim *c = add_claim(s, j, CLAIM_LOCK);

    if (c)
        c->limit = CLAIM_MAX / 4;
}

void claim_gather(struct scheduler *s, struct job *j)
{
    struct agent *a = NULL;

    if (s->draining || !shared_may_claim(s))
        return;
    if (s->taking_over) /* what an older boot had in work: until that is known, limits let nothing
                           start */
        (void)add_claim(s, j, CLAIM_BOOT);
    if (s->reclaiming && s->tasks.counts.live < 2 * s->config.live_max)
        (void)add_claim(s, j, CLAIM_NODE);
    if (s->tasks.counts.live >= s->config.live_max)
        return;
    if (s->locks)
        claim_locks(s, j);
    for (enum due due = DUE_TIME; due < DUES; due++)
        if (s->due_at[due] != 0 && s->due_at[due] <= scheduler_now(s))
            claim_due(s, j, due);
    /* Starts where the last batch stopped, if it had more agents than claims. */
    size_t i = s->claim_from;
    s->claim_from = 0;
    while ((a = map_next(&s->tasks.dispatch.agents, &i))) {
        if (j->batch.claim_count == CLAIMS_MAX) {
            s->claim_from = i - 1;
            return;
        }
        claim_for_agent(s, j, a);
    }
}
