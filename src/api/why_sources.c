/*
 * A part of the answer to "why" (tasks_why.c): status messages of a task that were not delivered,
 * and open alerts that concern it.
 */

#include "api/why_sources.h"

#include "alerts/alerts.h"
#include "background/messages.h"
#include "json/json.h"

enum { MESSAGES_SHOWN = 20, ALERTS_READ = 1000, ALERTS_SHOWN = 50 };

/* ---- reading ---- */

static enum err read_messages(struct store *store, struct slice task, bool dead, struct arena *a,
                              struct message_page *ret, struct error *e)
{
    const struct outbox_query q = {.waiting = !dead,
                                   .dead = dead,
                                   .task = task,
                                   .limit = MESSAGES_SHOWN};

    return store->ops->outbox->list(store, &q, a, ret, e);
}

enum err why_sources_read(struct store *store, const struct task_row *row, struct arena *a,
                          struct why_sources *ret, struct error *e)
{
    const struct alert_query q = {.live = true, .limit = ALERTS_READ};
    enum err err = ERR_OK;

    *ret = (struct why_sources){0};
    if (row->reply_to.ptr)
        err = read_messages(store, row->id, false, a, &ret->waiting, e);
    if (err == ERR_OK && row->reply_to.ptr)
        err = read_messages(store, row->id, true, a, &ret->dead, e);
    if (err == ERR_OK)
        err = store->ops->alerts->list(store, &q, a, &ret->alerts, e);
    return err;
}

/* ---- messages ---- */

/* While its target rests, none is sent there, whatever is on record of the message. */
static void render_message(struct buf *b, const struct server *sv, const struct message *m)
{
    CLEANUP(buf_fini) struct buf id = {0};
    char story[200] = "";
    int64_t rests_until = m->dead ? 0 : messages_paused_until(sv, m->target, story);

    buf_fmt(&id, "%.*s/%.*s", SLICE_ARG(m->task), SLICE_ARG(m->name));
    json_open(b, '{');
    json_member_text(b, "id", buf_view(&id));
    json_member_text(b, "target", m->target);
    json_member_text(b, "state", m->dead ? SLICE("dead") : SLICE("waiting"));
    json_key(b, "tries");
    json_number(b, m->tries);
    json_key(b, "created_at");
    json_time(b, m->created_at);
    json_key(b, "retry_at");
    json_time(b, m->dead ? 0 : max_i64(m->retry_at, rests_until));
    json_member_text(b, "error", m->story.len || !*story ? m->story : slice_of(story));
    json_close(b, '}');
}

static void render_messages(struct buf *b, const struct server *sv, const struct why_sources *t)
{
    json_key(b, "messages");
    json_open(b, '[');
    for (size_t i = 0; i < t->dead.count; i++)
        render_message(b, sv, &t->dead.messages[i]);
    for (size_t i = 0; i < t->waiting.count; i++)
        render_message(b, sv, &t->waiting.messages[i]);
    json_close(b, ']');
    json_key(b, "more_messages");
    json_bool(b, t->waiting.more || t->dead.more);
}

/* ---- alerts ---- */

/* A label that is left out matches any; a long one was cut. */
static bool label_is(const struct json *labels, const char *name, struct slice value)
{
    struct slice label = json_get_text(labels, name);

    return !label.ptr || slice_eq(label, value)
           || (label.len >= 100 && label.len < value.len
               && slice_eq(label, slice_cut(value, label.len)));
}

/* An alert of tasks that stopped: of this workflow, at a step that failed here, and so on. */
static bool is_of_error(const struct why *y, const struct json *labels)
{
    const struct task *t = y->task;

    if (t->state != TASK_ERROR || t->closed_at != 0
        || !label_is(labels, "workflow", y->workflow->name))
        return false;
    if (!json_get(labels, "step"))
        return label_is(labels, "code", t->error.code);
    for (uint16_t i = 0; i < t->step_count; i++)
        if (label_is(labels, "step", y->workflow->steps[i].name)
            && (t->steps[i].state == STEP_FAILED || step_in_doubt(&t->steps[i]))
            && (label_is(labels, "code", t->error.code)
                || label_is(labels, "code", t->steps[i].error.code)))
            return true;
    return false;
}

/* An alert of an agent that a step of it waits for. */
static bool is_of_agent(const struct why *y, const struct json *labels)
{
    if (!json_get(labels, "agent"))
        return false;
    for (size_t i = 0; i < y->reasons->count; i++)
        if (y->reasons->list[i].agent.ptr && label_is(labels, "agent", y->reasons->list[i].agent))
            return true;
    return false;
}

static bool is_of_target(const struct why_sources *t, const struct json *labels)
{
    const struct message_page *pages[] = {&t->waiting, &t->dead};

    for (size_t k = 0; k < COUNT_OF(pages); k++)
        for (size_t i = 0; i < pages[k]->count; i++)
            if (label_is(labels, "target", pages[k]->messages[i].target))
                return true;
    return false;
}

static bool names_it(const struct why *y, const struct json *doc)
{
    const struct json *list = json_get(doc, "examples");

    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        if (j->type == JSON_STRING && slice_eq(j->text, y->task->id))
            return true;
    return false;
}

static bool concerns(const struct why *y, const struct why_sources *t, struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum alert_condition c = CONDITION_COUNT;
    struct json *doc = NULL;

    if (json_parse(&a, text, &doc, NULL) != ERR_OK
        || !condition_parse(json_get_text(doc, "condition"), &c))
        return false;
    const struct json *labels = json_get(doc, "labels");
    if (c == CONDITION_TASK_ERROR)
        return y->task->direction == DIRECTION_FORWARD && is_of_error(y, labels);
    if (c == CONDITION_COMPENSATION_FAILED)
        return is_of_error(y, labels);
    if (c == CONDITION_OVERDUE_NO_AGENT || c == CONDITION_BREAKER_OPEN)
        return is_of_agent(y, labels);
    if (c == CONDITION_OUTBOX_TROUBLE)
        return is_of_target(t, labels);
    return names_it(y, doc);
}

static void render_alert(struct buf *b, const struct alert_row *r, struct slice task,
                         bool reads_all)
{
    const struct alert_stored row = {.id = r->id,
                                     .key = r->key,
                                     .doc = r->doc,
                                     .opened_at = r->opened_at,
                                     .resolved_at = r->resolved_at,
                                     .acknowledged_at = r->acknowledged_at,
                                     .acknowledged_by = r->acknowledged_by,
                                     .acknowledged_why = r->acknowledged_why};
    CLEANUP(buf_fini) struct buf one = {0};

    if (reads_all ? alert_render_row(&row, SLICE_NONE, &one)
                  : alert_render_for_task(&row, task, &one))
        json_raw(b, buf_view(&one));
}

void why_sources_render(struct buf *b, const struct server *sv, const struct why *y,
                        const struct why_sources *t, bool reads_all)
{
    size_t shown = 0;

    render_messages(b, sv, t);
    json_key(b, "alerts");
    json_open(b, '[');
    for (size_t i = 0; i < t->alerts.count && shown < ALERTS_SHOWN; i++) {
        const struct alert_row *r = &t->alerts.rows[i];
        if (r->resolved_at != 0 || !concerns(y, t, r->doc))
            continue;
        render_alert(b, r, y->task->id, reads_all);
        shown++;
    }
    json_close(b, ']');
}
