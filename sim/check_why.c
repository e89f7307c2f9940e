#include "scheduler/why.h"
#include "sim/check.h"
#include "sim/world.h"
#include "store/codec.h"

/*
 * Reasons for waiting come true: a "not before T" is checked at the next change of the row, and an
 * end is final. Asked of the node that made the change, with what it knows then.
 */

static void must_be(bool so, const struct subject *t, const char *rule, const char *word)
{
    if (so)
        return;
    describe(t);
    broken(rule, "%s: %s", t->id, word);
}

static void see_nobody(void *arg, int step, struct slice name, struct agent_view *ret)
{
    (void)arg;
    (void)step;
    (void)name;
    *ret = (struct agent_view){0};
}

/* A late answer may end a doubt. */
static uint32_t late_answers(const struct seen_step *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->attempt_count; i++)
        n += s->attempts[i].outcome == OUTCOME_LATE;
    return n;
}

/* Did the last predictions hold for this change? An operator may hasten a step, and a task that
 * turns back waits for other things. */
static void check_foretold(const struct subject *t, const struct seen *old, const struct seen *new)
{
    bool undone = old->state == TASK_PROCESSED && new->direction == DIRECTION_UNDO;
    must_be(!t->foretold_end || new->state == old->state || undone, t, "what has ended stays so",
            "it moved");
    for (uint32_t i = 0; i < new->step_count && !t->verbs &&new->direction == t->foretold_way;
         i++) {
        const struct seen_attempt *was = seen_open(&old->steps[i]);
        const struct seen_attempt *is = seen_open(&new->steps[i]);
        bool begun = is && (!was || was->number != is->number || was->direction != is->direction);
        if (!begun || is->started_at >= t->foretold[i])
            continue;
        if (late_answers(&old->steps[i]) != late_answers(&new->steps[i]))
            continue;
        bool waited =
            t->foretold_kind[i] == REASON_BETWEEN || t->foretold_kind[i] == REASON_DEFERRED;
        if (waited && check_hastened(t, i, is, &old->steps[i]))
            continue; /* it failed in an outage that is over */
        describe(t);
        broken("no try begins before the moment that was told", "%s/s%u, at %" PRId64 ": %s", t->id,
               i, t->foretold[i], reason_word(t->foretold_kind[i]));
    }
}

static void foretell(struct subject *t, const struct why *y)
{
    for (size_t i = 0; i < y->reasons->count; i++) {
        const struct reason *r = &y->reasons->list[i];
        CLEANUP(buf_fini) struct buf words = {0};
        why_text(&words, y, r);
        must_be(words.len > 1, t, "a reason has words", reason_word(r->kind));
        buf_clear(&words);
        why_moves(&words, y, r);
        must_be(words.len > 1, t, "a reason says what moves it", reason_word(r->kind));
        must_be(!strstr(words.ptr, "/v1/"), t, "a reason names verbs", words.ptr);
        t->foretold_end |= reason_is_end(r->kind);
        if (r->kind == REASON_IN_DOUBT || r->kind == REASON_BETWEEN || r->kind == REASON_DEFERRED) {
            t->foretold[r->step] = r->until;
            t->foretold_kind[r->step] = r->kind;
        }
        if (r->kind == REASON_NOT_BEFORE)
            for (uint32_t k = 0; k < t->flow->step_count; k++)
                t->foretold[k] = r->until;
    }
}

void check_why(const struct node *n, struct subject *t, const struct task_row *row,
               const struct seen *old)
{
    static struct reasons reasons; /* too large for the stack */
    const struct workflow *w = &t->flow->definition->workflow;
    struct arena a = {0};
    struct facts facts = {.now = store_now(), .agent = see_nobody};
    struct error e = {0};
    struct task task;

    check_foretold(t, old, &t->seen);
    memset(t->foretold, 0, sizeof t->foretold);
    t->foretold_end = false;
    t->foretold_way = row->direction;
    enum err err = task_decode(w, row, &a, &task, &e);
    must_be(err == ERR_OK, t, "what was stored can be read", e.text);
    if (n->scheduler) {
        scheduler_facts(n->scheduler, &task, row, &a, &facts);
        facts.lost = supervisor_lost_time(n->supervisor);
    }
    reasons_find(w, &task, &facts, &reasons);
    must_be(reasons.count > 0, t, "there is always a reason", "none");
    foretell(t, &(struct why){w, &task, &facts, &reasons});
    arena_fini(&a);
}
