/*
 * Passes on what scheduler and supervisor report: answers to their askers, changes of tasks to
 * events, waits, quotas and alerts. They know nothing of these parts.
 */

#include "server/outside.h"

#include "api/events.h"
#include "api/work.h"
#include "background/alerts.h"
#include "background/cache.h"
#include "background/messages.h"
#include "background/nodes.h"
#include "background/notices.h"
#include "background/operations.h"
#include "background/schedules.h"
#include "background/submission_inbox.h"
#include "background/waits.h"
#include "node/node.h"
#include "node/overrun.h"
#include "node/overview.h"
#include "node/quota.h"
#include "node/submission.h"
#include "server/run.h"
#include "json/json.h"

static void ask_answered(void *arg, struct ask *a)
{
    struct server *sv = arg;

    ASSERT(sv->load.asks_open > 0);
    sv->load.asks_open--;
    if (operations_answered(sv, a))
        return;
    if (a->kind == ASK_SUBMIT) {
        submission_answered(sv, a);
        return;
    }
    void (**answered)(struct ask *) = a->user; /* see tasks_operate.c */
    (*answered)(a);
}

static void task_ended(void *arg, const struct task_end *end)
{
    struct server *sv = arg;
    const struct task *t = end->task;

    sv->metrics.tasks_ended[t->state]++;
    overview_ended(sv->overview, t->state, t->ended_at - t->submitted_at, server_turn_now(sv));
    quotas_task(sv->quotas, t->owner, false);
    waiters_of(sv, t->id, end);
    schedules_task_ended(sv, t->id);
}

static bool is_awaited(void *arg, struct slice id)
{
    return waiters_show(arg, id);
}

static void task_changed(void *arg, const struct workflow *w, const struct task *t)
{
    struct server *sv = arg;

    events_changed(sv, w, t);
}

static void evaluates(void *arg, struct slice task, bool begins)
{
    overrun_evaluates(run_of(arg)->overrun, task, begins);
}

static void turn_over(void *arg)
{
    overrun_turn_over(run_of(arg)->overrun);
}

static void committed(void *arg, size_t changes, int64_t took_us)
{
    struct server *sv = arg;

    metrics_committed(&sv->metrics, changes, took_us);
}

static void messages(void *arg, const struct message *list, size_t count)
{
    messages_stored(arg, list, count);
}

static void alert(void *arg, const struct task *t)
{
    CLEANUP(buf_fini) struct buf code = {0};
    CLEANUP(buf_fini) struct buf reason = {0};
    struct server *sv = arg;

    alerts_hint(sv);
    log_word(&code, t->error.code); /* an agent's words: quoted, nothing can be forged */
    json_string(&reason, t->error.message);
    log_line(LOG_ERROR, "event=operator_needed task=%.*s state=%s code=%s reason=%s",
             SLICE_ARG(t->id), task_state_text(t->state), code.ptr, reason.ptr);
}

static void requested(void *arg, struct slice id, bool released)
{
    struct server *sv = arg;

    scheduler_requested(sv->scheduler, id, released);
    events_touched(sv, id);
}

static void family_told(void *arg)
{
    struct server *sv = arg;

    inbox_wake(sv);
    notices_part_wake(sv);
}

static bool wants_lead(void *arg)
{
    const struct server *sv = arg;

    return supervisor_wants_lead(sv->supervisor);
}

static void surveyed(void *arg, const struct survey *v)
{
    struct server *sv = arg;

    supervisor_surveyed(sv->supervisor, v);
    if (v->messages)
        messages_are_new(sv);
    inbox_surveyed(sv, v);
    notices_part_surveyed(sv, v);
    nodes_surveyed(sv);
}

struct outside outside_of_scheduler(struct server *sv)
{
    return (struct outside){
        .arg = sv,
        .work_answer = work_answered,
        .ask_answer = ask_answered,
        .task_ended = task_ended,
        .is_awaited = is_awaited,
        .task_changed = task_changed,
        .evaluates = evaluates,
        .turn_over = turn_over,
        .committed = committed,
        .messages = messages,
        .family_told = family_told,
        .wants_lead = wants_lead,
        .surveyed = surveyed,
        .generations = cache_check_generations,
        .alert = alert,
        .store_trouble = store_trouble,
    };
}

struct supervisor_outside outside_of_supervisor(struct server *sv)
{
    return (struct supervisor_outside){
        .arg = sv,
        .now = server_now,
        /* Virtual time neither stands still by itself nor goes back. */
        .steady = sv->config.virtual_time ? server_now : server_steady,
        .requested = requested,
        .generations = cache_check_generations,
        .failed = store_scan_failed,
    };
}
