/* Checks ill instances, as the rows show them: an instance that recently failed all its attempts,
 * while others of its agent succeeded with the same work, gets only a trial now and then, as long
 * as one of the others is present. Each node judges by what it received, so each has its own
 * record here. The record is always more lenient than the node: it counts fewer ends and shorter
 * times. check.h lists all checkers. */

#include <stdio.h>

#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/world.h"

enum {
    NAMES = 32,
    ENDS = 512,
    SURE_ENDS = 8,   /* more than the server requires */
    SURE_WORSE = 65, /* percent; likewise */
    TOLD_MS = 4000,  /* until a node knows that its write is stored */
    TRIAL_MS = 5000, /* minimum time between trials */
    RECENT_MS = 25000,
    LATELY_MS = 65000,
    FORGOTTEN_MS = 500000,
};

struct one {
    char name[24];
    int64_t well_at;   /* its latest good end, or a possible one */
    int64_t fell_at;   /* ill for sure, with no good end since; 0: not ill */
    int64_t given_at;  /* its last attempt while ill; 0: none */
    int64_t active_at; /* last event of any kind */
    bool failed;       /* it once had a bad end */
};

struct end {
    uint32_t who;
    int64_t at;
    bool good;
};

/* The record of one process with one service. */
struct book {
    uint64_t boot;
    struct one list[NAMES];
    uint32_t count;
    struct end ends[ENDS];
    uint64_t end_count;
};

static struct book books[NODES_MAX][SERVICES_MAX];

void check_health_begin(void)
{
    memset(books, 0, sizeof books);
}

static struct book *book_of(const struct subject *t, uint32_t step, enum direction d)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(step)];
    struct book *b = &books[t->writer->slot][d == DIRECTION_UNDO ? f->undo_service : f->service];

    if (b->boot != t->writer->boot) {
        memset(b, 0, sizeof *b);
        b->boot = t->writer->boot;
    }
    return b;
}

/* NULL: too many names. */
static struct one *one_of(struct book *b, const char *name, int64_t now)
{
    struct one *x = b->list;

    while (x < b->list + b->count && strcmp(x->name, name) != 0)
        x++;
    if (x == b->list + NAMES)
        return NULL;
    if (x == b->list + b->count) {
        b->count++;
        (void)snprintf(x->name, sizeof x->name, "%s", name);
    } else if (now - x->active_at > FORGOTTEN_MS) {
        x->fell_at = 0; /* the node may have forgotten it */
        x->well_at = now;
    }
    x->active_at = now;
    return x;
}

/* ---- ends ---- */

static void note_end(struct book *b, const struct one *x, bool good, int64_t now)
{
    b->ends[b->end_count++ % ENDS] = (struct end){(uint32_t)(x - b->list), now, good};
}

/* Counts good ends only of instances without any bad end: the ends of a recovered instance are
 * forgotten. */
static bool is_surely_ill(const struct book *b, const struct one *x, int64_t now)
{
    uint64_t bad = 0;
    uint64_t good = 0;
    uint64_t others_bad = 0;
    uint64_t others_good = 0;

    for (uint64_t i = 0; i < ENDS && i < b->end_count; i++) {
        const struct end *e = &b->ends[i];
        const struct one *who = &b->list[e->who];
        if (now - e->at > LATELY_MS)
            continue;
        bool recent = now - e->at < RECENT_MS;
        if (who == x && e->good)
            good++;
        else if (who == x)
            bad += recent && e->at > x->well_at;
        else if (!e->good)
            others_bad++;
        else
            others_good += recent && !who->failed;
    }
    if (bad < SURE_ENDS || others_good < SURE_ENDS)
        return false;
    return bad * 100 / (bad + good) >= others_bad * 100 / (others_bad + others_good) + SURE_WORSE;
}

static void ends_well(struct one *x, int64_t now)
{
    if (x->fell_at)
        covered(COVER_ILL_BACK);
    x->fell_at = 0;
    x->well_at = now;
}

void check_health_end(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    struct book *b = book_of(t, step, a->direction);
    int64_t now = node_now(t->writer);
    struct one *x = one_of(b, a->instance, now);
    bool bad =
        a->outcome == OUTCOME_TIMED_OUT
        || (a->outcome == OUTCOME_FAILED && !said_permanent(t, step, a->direction, a->number));

    if (!x || a->outcome == OUTCOME_NOT_SENT || a->outcome == OUTCOME_LATE)
        return;
    if (!bad) {
        ends_well(x, now); /* certainly or possibly */
        if (t->heard && a->outcome == OUTCOME_COMPLETED)
            note_end(b, x, true, now);
        return;
    }
    x->failed = true;
    if (!t->heard)
        return;
    note_end(b, x, false, now);
    if (!x->fell_at && is_surely_ill(b, x, now)) {
        covered(COVER_ILL);
        trace("%s surely is ill, as %s should know", x->name, t->writer->me);
        x->fell_at = now;
        x->given_at = 0;
    }
}

/* ---- starts ---- */

/* Has an instance without bad ends, with recent progress, been waiting for work since before
 * that? */
static bool another_is_there(const struct book *b, const struct one *but, const struct node *n,
                             int64_t at)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct one *y = &b->list[i];
        int64_t since = y == but || y->failed || y->well_at + RECENT_MS < at
                            ? 0
                            : wire_parked_since(n, y->name);
        if (since != 0 && world.now - since > node_now(n) - at)
            return true;
    }
    return false;
}

void check_health_start(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    struct book *b = book_of(t, step, a->direction);
    struct one *x = one_of(b, a->instance, node_now(t->writer));

    if (!x || !x->fell_at || a->started_at < x->fell_at + TOLD_MS)
        return;
    bool soon = x->given_at != 0 && a->started_at < x->given_at + TRIAL_MS;
    x->given_at = a->started_at;
    if (!soon) {
        covered(COVER_ILL_TRIAL);
    } else if (another_is_there(b, x, t->writer, a->started_at)) {
        describe(t);
        broken("who is ill gets a trial now and then, and no more", "%s, of %s", x->name,
               t->writer->me);
    } else {
        covered(COVER_ILL_LAST);
    }
}
