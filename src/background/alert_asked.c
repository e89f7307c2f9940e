/*
 * Questions to people, for alerts: read from the store page by page, as background jobs, and
 * counted by step and group. The loop decodes one page at a time. So every group is alerted,
 * however many tasks ask it, and the oldest question is included.
 */

#include <stdio.h>

#include "background/alerting.h"
#include "background/retention.h"
#include "core/votes.h"
#include "definition/registry.h"
#include "node/node.h"
#include "node/store_thread.h"
#include "store/codec/codec.h"

enum {
    PAGE = 50,   /* tasks */
    PAGES = 200, /* then the oldest are left out */
};

static bool is_of(const struct found_question *q, struct slice workflow, struct slice step,
                  struct slice group)
{
    return slice_is(slice_cut(workflow, sizeof q->workflow - 1), q->workflow)
           && slice_is(slice_cut(step, sizeof q->step - 1), q->step)
           && slice_is(slice_cut(group, sizeof q->group - 1), q->group);
}

static void name(char *to, size_t size, struct slice from)
{
    (void)snprintf(to, size, "%.*s", SLICE_ARG(slice_cut(from, size - 1)));
}

/* The last place is for all that have none. */
static struct found_question *question_of(struct found_questions *all, struct slice workflow,
                                          struct slice step, struct slice group)
{
    for (size_t i = 0; i < all->count; i++)
        if (is_of(&all->list[i], workflow, step, group))
            return &all->list[i];
    if (all->count == ALERT_QUESTIONS)
        return &all->list[ALERT_QUESTIONS - 1];
    struct found_question *q = &all->list[all->count++];
    *q = (struct found_question){0};
    if (all->count == ALERT_QUESTIONS)
        return q;
    name(q->workflow, sizeof q->workflow, workflow);
    name(q->step, sizeof q->step, step);
    name(q->group, sizeof q->group, group);
    return q;
}

static void add(struct found_questions *all, const struct workflow *w, const struct task *t,
                uint16_t step, struct slice group, int64_t at)
{
    struct found_question *q = question_of(all, w->name, w->steps[step].name, group);

    q->count++;
    if (q->first_at == 0 || at < q->first_at)
        q->first_at = at;
    if (q->task_count < ALERT_EXAMPLES)
        name(q->tasks[q->task_count++], sizeof q->tasks[0], t->id);
    if (at <= q->latest_at)
        return;
    q->latest_at = at;
    q->repeat_ms = w->steps[step].approve.remind_ms;
    (void)snprintf(q->story, sizeof q->story, "task %.*s asks: %.*s",
                   SLICE_ARG(slice_cut(t->id, 60)),
                   SLICE_ARG(slice_cut(t->steps[step].input.json, 80)));
}

static bool is_among(const struct slice *groups, uint16_t count, struct slice group)
{
    for (uint16_t i = 0; i < count; i++)
        if (slice_eq(groups[i], group))
            return true;
    return false;
}

static void add_step(struct alerting *al, const struct workflow *w, const struct task *t,
                     uint16_t step)
{
    const struct approve_spec *spec = &w->steps[step].approve;
    int64_t at = t->steps[step].begun_at;

    for (uint16_t i = 0; i < spec->by_count; i++)
        add(&al->fresh_questions, w, t, step, spec->by[i], at);
    at += spec->escalate_ms;
    if (spec->escalate_ms == 0 || al->census_now < at)
        return;
    for (uint16_t i = 0; i < spec->to_count; i++)
        if (!is_among(spec->by, spec->by_count, spec->to[i]))
            add(&al->fresh_questions, w, t, step, spec->to[i], at);
}

static void add_task(struct alerting *al, const struct task_row *row, struct arena *a)
{
    const struct definition *d = registry_find(&al->server->workflows, row->workflow, row->version);
    struct error e = {0};
    struct task t;

    if (!d || task_decode(&d->workflow, row, a, &t, &e) != ERR_OK)
        return;
    for (uint16_t i = 0; i < t.step_count; i++)
        if (step_is_asking(&d->workflow, &t, i))
            add_step(al, &d->workflow, &t, i);
}

/* ---- the pages ---- */

static void page_run(struct store_job *j, struct store *store)
{
    struct alerting *al = CONTAINER_OF(j, struct alerting, census_job);
    const struct list_query q = {.asked = true,
                                 .groups = true,
                                 .before_seq = al->asked_before,
                                 .limit = PAGE};
    struct error e = {0};

    al->asked = (struct row_page){0};
    al->census_err = store->ops->list(store, &q, &al->census_arena, &al->asked, &e);
}

/* On the loop, which alone may look for definitions. */
static void page_done(struct store_job *j)
{
    struct alerting *al = CONTAINER_OF(j, struct alerting, census_job);

    if (al->census_err != ERR_OK) { /* what was found before holds until the next look */
        alerts_query_over(al);
        return;
    }
    for (size_t i = 0; i < al->asked.count; i++)
        add_task(al, &al->asked.rows[i], &al->census_arena);
    al->asked_before = al->asked.next_seq;
    if (al->asked.more && ++al->asked_pages < PAGES && !al->server->draining
        && watch_leads(al->watch)) {
        alerts_query_asked(al);
        return;
    }
    al->questions.count = al->fresh_questions.count;
    memcpy(al->questions.list, al->fresh_questions.list,
           al->questions.count * sizeof al->questions.list[0]);
    alerts_query_over(al);
}

void alerts_query_asked(struct alerting *al)
{
    ASSERT(al->counting);
    if (al->asked_pages == 0)
        al->fresh_questions.count = 0;
    arena_fini(&al->census_arena);
    al->census_arena = (struct arena){0};
    al->census_job = (struct store_job){.run = page_run, .done = page_done};
    store_thread_background(al->server->thread, &al->census_job, RETIRE_PATIENCE);
}
