/* Checks that operators' changes are recorded with their effects: by whom, and nothing that was
 * not asked for. disk.c calls it at each commit, operations.c and people.c with the answers.
 * check.h lists all checkers. */

#include "sim/check.h"

#include "sim/disk.h"
#include "sim/family.h"
#include "sim/operations.h"
#include "sim/schedules.h"
#include "sim/world.h"

static const char *const verbs[] = {
    [ASK_RETRY] = "retry",     [ASK_SKIP] = "skip",       [ASK_UNDO] = "undo",
    [ASK_CANCEL] = "cancel",   [ASK_PAUSE] = "pause",     [ASK_RESUME] = "resume",
    [ASK_CORRECT] = "correct", [ASK_SUPPLY] = "supply",   [ASK_CLOSE] = "close",
    [ASK_REOPEN] = "reopen",   [ASK_RESOLVE] = "resolve", [ASK_SIGNAL] = "signal",
    [ASK_APPROVE] = "approve", [ASK_REJECT] = "reject",
};

static void check_entry(struct subject *t, const struct audit *a, enum task_state old)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (!verbs[i] || !slice_is(a->verb, verbs[i]))
            continue;
        if (++t->audited[i] > t->wanted[i])
            broken("nobody is said to have done what he did not ask for", "%s: %s", t->id,
                   verbs[i]);
        if (i == ASK_CANCEL && schedules_did(t, a))
            return;
        bool of_many = operations_did(t, a, old);
        bool votes = i == ASK_APPROVE || i == ASK_REJECT;
        if (!(votes ? check_vote_audited(t, a) : slice_is(a->actor, "operator"))
            || !slice_is(a->task, t->id)
            || (!of_many && a->reason.len > 0 && !slice_is(a->reason, "somebody wanted it"))
            || (!of_many && a->reason.len == 0 && i != ASK_UNDO))
            broken("the audit says who, of what and why", "%s: %.*s %.*s", t->id,
                   SLICE_ARG(a->actor), SLICE_ARG(a->reason));
        return;
    }
    broken("the audit has the operators' verbs", "%s: %.*s", t->id, SLICE_ARG(a->verb));
}

void check_audit(struct subject *t, const struct audit_page *all, enum task_state old,
                 enum task_state new)
{
    if (all->count < t->audit_count)
        broken("the audit is only added to", "%s: %zu entries, then %zu", t->id, t->audit_count,
               all->count);
    if (old == TASK_ERROR && new != TASK_ERROR && all->count == t->audit_count && !is_of_family(t))
        broken("who resumes a stopped task is written down", "%s is %s", t->id,
               task_state_text(new));
    for (size_t i = all->count - t->audit_count; i-- > 0;) /* newest first */
        check_entry(t, &all->entries[i], old);
    t->audit_count = all->count;
}

void check_verb_told(struct subject *t, const struct ask *a)
{
    if (a->kind == ASK_SUBMIT)
        return;
    if (!err_is_transient(a->outcome) && a->outcome != ERR_OK)
        t->refused[a->kind]++;
    if (a->outcome == ERR_OK && a->existed)
        t->repeated[a->kind]++;
    if (t->audited[a->kind] + t->refused[a->kind] > t->wanted[a->kind])
        broken("what was refused is not said to be done", "%s: %s", t->id, verbs[a->kind]);
    if (a->outcome != ERR_OK || a->existed || a->kind == ASK_UNDO || a->kind == ASK_CANCEL)
        return; /* the state may already be reached */
    if (++t->verbs_told[a->kind] > t->audited[a->kind])
        broken("what is told to be done is in the audit", "%s: %s", t->id, verbs[a->kind]);
}
