/* A model of a child: what it does and tells, whatever it is told (history_kid.h). Part of the
 * tests: it shares no code with child.c, which it judges. */
#include "core/history_kid.h"

#include "base/test.h"

enum child_state kid_tells(const struct world_kid *k)
{
    bool is_asked = k->heard == WISH_STOP || k->heard == WISH_UNDO;

    switch (k->phase) {
    case KID_NONE:
        return CHILD_NONE;
    case KID_RUNS:
        if (k->back)
            return CHILD_TURNED;
        return k->stands && is_asked ? CHILD_STANDS : CHILD_RUNNING;
    case KID_STOPPED:
        return k->back || is_asked ? CHILD_STUCK : CHILD_ERROR;
    case KID_DONE: /* and cannot be undone */
        return k->heard == WISH_UNDO ? CHILD_STUCK : CHILD_PROCESSED;
    case KID_UNDONE:
        return CHILD_COMPENSATED;
    }
    UNREACHABLE();
}

/* Adds a state to the list. */
static void may_be(const struct world_kid *k, enum kid_phase phase, bool back,
                   struct world_kid *ret, size_t *count)
{
    ASSERT(*count < KID_MOVES);
    ret[*count] = *k;
    ret[*count].phase = phase;
    ret[*count].back = back;
    if (phase != KID_STOPPED)
        ret[*count].doubt = false;
    (*count)++;
}

static void pivot_stands(struct world_kid *k)
{
    k->stands = true;
    k->doubt = false;
}

static size_t moves_forward(const struct world_kid *k, bool pivot, struct world_kid *ret)
{
    size_t count = 0;

    if (k->phase == KID_RUNS) {
        may_be(k, KID_STOPPED, false, ret, &count);
        if (pivot && !k->stands) { /* it stops because of its pivot; or that takes effect */
            may_be(k, KID_STOPPED, false, ret, &count);
            ret[count - 1].doubt = true;
            may_be(k, KID_RUNS, false, ret, &count);
            pivot_stands(&ret[count - 1]);
        }
    } else {
        may_be(k, KID_RUNS, false, ret, &count);
    }
    may_be(k, KID_DONE, false, ret, &count);
    ret[count - 1].stands = pivot;
    if (!k->stands) { /* an operator, or a signal, has it undone */
        may_be(k, KID_RUNS, true, ret, &count);
        may_be(k, KID_UNDONE, true, ret, &count);
    }
    return count;
}

size_t kid_moves(const struct world_kid *k, bool pivot, struct world_kid ret[KID_MOVES])
{
    size_t count = 0;

    if (k->closed || (k->phase != KID_RUNS && k->phase != KID_STOPPED))
        return 0;
    if (!k->back)
        return moves_forward(k, pivot, ret);
    may_be(k, k->phase == KID_RUNS ? KID_STOPPED : KID_RUNS, true, ret, &count);
    may_be(k, KID_UNDONE, true, ret, &count);
    return count;
}

/* It turns back, if it can: at once, or when its pivot allows it. */
static size_t hears_stop(struct world_kid *k, bool pivot, struct world_kid *ret)
{
    bool again = k->heard == WISH_STOP || k->heard == WISH_UNDO;
    size_t count = 0;

    if (k->phase == KID_DONE || k->phase == KID_UNDONE) {
        may_be(k, k->phase, k->back, ret, &count);
        return count;
    }
    k->closed = false;
    if (!again)
        k->heard = WISH_STOP;
    if (again || k->back || k->stands || k->doubt || pivot)
        may_be(k, k->phase, k->back, ret, &count);
    if (again || k->back || k->stands || k->doubt)
        return count;
    if (pivot && k->phase == KID_STOPPED)
        ret[0].doubt = true; /* why else would it stay */
    may_be(k, KID_RUNS, true, ret, &count);
    may_be(k, KID_UNDONE, true, ret, &count);
    return count;
}

static size_t hears_undo(struct world_kid *k, struct world_kid *ret)
{
    size_t count = 0;

    k->closed = false;
    if (k->phase == KID_DONE && k->heard != WISH_UNDO) {
        k->heard = WISH_UNDO;
        may_be(k, KID_RUNS, true, ret, &count);
        may_be(k, KID_UNDONE, true, ret, &count);
    }
    may_be(k, k->phase, k->back, ret, &count); /* for its pivot, or there is nothing new */
    return count;
}

size_t kid_hears(const struct world_kid *kid, bool pivot, struct world_kid ret[KID_MOVES])
{
    struct world_kid k = *kid;
    size_t count = 0;

    if (k.coming_count == 0)
        return 0;
    enum child_wish wish = (enum child_wish)k.coming[0];
    k.coming_count--;
    memmove(k.coming, k.coming + 1, sizeof k.coming - 1);
    k.coming[KID_WISHES - 1] = 0;
    if (wish == WISH_STOP)
        return hears_stop(&k, pivot, ret);
    if (wish == WISH_UNDO)
        return hears_undo(&k, ret);
    k.closed = wish == WISH_CLOSE && k.phase == KID_STOPPED;
    may_be(&k, k.phase, k.back, ret, &count);
    ret[0].doubt = kid->doubt;
    return count;
}

bool kid_repair(struct world_kid *k)
{
    if (k->phase != KID_STOPPED || k->closed)
        return false;
    k->back |= !k->stands && k->heard == WISH_STOP;
    k->phase = KID_RUNS;
    k->doubt = false;
    return true;
}

void kid_is_told(struct world_kid *k, const struct child *before, const struct child *is)
{
    if (is->number != before->number)
        *k = (struct world_kid){.number = is->number, .phase = KID_RUNS};
    if (is->state == CHILD_NONE || is->wish == k->sent)
        return;
    CHECK(k->coming_count < KID_WISHES, "too much is told to child %u", k->number);
    k->sent = is->wish;
    k->coming[k->coming_count++] = (uint8_t)is->wish;
}
