/* Shows a task's record for people: its head, its steps with their attempts and waits, errors and
 * signals (task_show.h). For get, submit, signal and the operators' verbs; --json bypasses it. */

#include "cli/verbs/task_show.h"

#include <stdio.h>

#include "base/when.h"
#include "cli/client/record.h"
#include "cli/client/table.h"

enum { NAME_COLUMNS = 12, LINES_MAX = 20, ITEMS_SHOWN = 20 };

struct view {
    const struct invocation *in;
    struct table table; /* of the steps; its terminal and clock are used for everything */
    struct buf b;
    struct slice task; /* its id */
};

/* One value does not fill a terminal; other outputs get it whole. */
static struct line begin_line(struct view *v)
{
    struct line l = line_begin(&v->table.term, &v->b);

    l.width = v->table.term.live ? LINES_MAX * v->table.term.width : INT32_MAX / 2;
    return l;
}

static void end_line(struct view *v, struct line *l, size_t size)
{
    CLEANUP(buf_fini) struct buf more = {0};
    bool cut = l->cut;

    line_end(l);
    if (!cut)
        return;
    line_to(l, NAME_COLUMNS);
    people_bytes(&more, (int64_t)size);
    buf_fmt(&more, " in all, see intact get %.*s --json", SLICE_ARG(v->task));
    line_text(l, LOOK_FAINT, buf_view(&more));
    line_end(l);
}

static void put_line(struct view *v, const char *name, enum term_look look, struct slice value)
{
    struct line l = begin_line(v);

    if (value.len == 0)
        return;
    line_text(&l, LOOK_PLAIN, slice_of(name));
    line_to(&l, NAME_COLUMNS);
    line_text(&l, look, value);
    end_line(v, &l, value.len);
}

static void put_value(struct view *v, const char *name, const struct json *task, const char *key)
{
    struct slice raw = json_get_raw(task, key);

    if (!slice_is(raw, "null"))
        put_line(v, name, LOOK_PLAIN, raw);
}

static void put_time(struct view *v, const char *name, const struct json *task, const char *key)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice text = json_get_text(task, key);
    int64_t at = 0;

    if (text.len > 0 && time_parse(text, &at))
        people_time(&b, at, v->table.now);
    put_line(v, name, LOOK_PLAIN, b.len > 0 ? buf_view(&b) : text);
}

static void put_error(struct view *v, const struct json *task)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const struct json *e = json_get(task, "error");

    if (!e || e->type != JSON_OBJECT)
        return;
    buf_fmt(&text, "%.*s: %.*s", SLICE_ARG(json_get_text(e, "code")),
            SLICE_ARG(json_get_text(e, "message")));
    put_line(v, "error", LOOK_BAD, buf_view(&text));
}

/* Only if it differs from the error, for example of a failed undo. */
static void put_cause(struct view *v, const struct json *task)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const struct json *error = json_get(task, "error");
    const struct json *cause = json_get(task, "cause");
    struct slice step = json_get_text(cause, "step");

    if (!cause || cause->type != JSON_OBJECT
        || (slice_eq(json_get_text(cause, "code"), json_get_text(error, "code"))
            && slice_eq(json_get_text(cause, "message"), json_get_text(error, "message"))))
        return;
    if (step.ptr)
        buf_fmt(&text, "step %.*s: ", SLICE_ARG(step));
    buf_fmt(&text, "%.*s: %.*s", SLICE_ARG(json_get_text(cause, "code")),
            SLICE_ARG(json_get_text(cause, "message")));
    put_line(v, "cause", LOOK_BAD, buf_view(&text));
}

static void put_lock(struct view *v, const struct json *task)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct slice since = json_get_text(task, "lock_since");
    int64_t at = 0;

    buf_slice(&text, json_get_text(task, "lock"));
    if (since.len > 0 && time_parse(since, &at)) {
        buf_str(&text, ", held since ");
        people_time(&text, at, v->table.now);
    }
    put_line(v, "lock", LOOK_PLAIN, buf_view(&text));
}

/* Whose child it is. */
static void put_parent(struct view *v, const struct json *task)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct slice parent = json_get_text(task, "parent");
    struct slice root = json_get_text(task, "root");

    if (!parent.ptr)
        return;
    buf_fmt(&text, "%.*s (step %.*s)", SLICE_ARG(parent),
            SLICE_ARG(json_get_text(task, "parent_step")));
    put_line(v, "parent", LOOK_PLAIN, buf_view(&text));
    if (!slice_eq(root, parent))
        put_line(v, "root", LOOK_PLAIN, root);
}

static void put_head(struct view *v, const struct json *task)
{
    CLEANUP(buf_fini) struct buf workflow = {0};
    CLEANUP(buf_fini) struct buf state = {0};

    buf_fmt(&workflow, "%.*s, version %.*s", SLICE_ARG(json_get_text(task, "workflow")),
            SLICE_ARG(json_get_raw(task, "version")));
    put_line(v, "task", LOOK_PLAIN, json_get_text(task, "id"));
    put_line(v, "workflow", LOOK_PLAIN, buf_view(&workflow));
    put_parent(v, task);
    record_state(&state, task);
    put_line(v, "state", term_state_look(json_get_text(task, "state")), buf_view(&state));
    put_line(v, "waiting for", LOOK_PLAIN, json_get_text(task, "waiting_for"));
    put_lock(v, task);
    put_time(v, "submitted", task, "submitted_at");
    put_time(v, "not before", task, "not_before");
    put_time(v, "complete by", task, "complete_by");
    put_time(v, "ended", task, "ended_at");
    put_time(v, "paused", task, "paused_at");
    put_time(v, "closed", task, "closed_at");
    put_line(v, "closed why", LOOK_PLAIN, json_get_text(task, "closed_reason"));
    put_value(v, "input", task, "input");
    put_value(v, "output", task, "output");
    put_error(v, task);
    put_cause(v, task);
}

/* The tries of its attempts: "attempt 1: 3, undo 1: 2". */
static void put_tries(struct buf *b, const struct json *attempts)
{
    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next) {
        bool back = slice_is(json_get_text(a, "direction"), "undo");
        if (json_get_int(a, "tries", 0) > 1)
            buf_fmt(b, "%s%s %.*s: %" PRId64, b->len ? ", " : "", back ? "undo" : "attempt",
                    SLICE_ARG(json_get_raw(a, "attempt")), json_get_int(a, "tries", 0));
    }
}

static bool is_elsewhere(const struct json *attempts)
{
    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next)
        if (json_get_bool(a, "elsewhere", false) && slice_is(json_get_text(a, "outcome"), "open"))
            return true;
    return false;
}

/* Until when a step waits that has begun to. */
static void put_wait(struct buf *b, const struct json *task, const struct json *step, int64_t now)
{
    struct slice until = json_get_text(step, "wait_until");
    int64_t at = 0;

    if (!slice_is(json_get_text(step, "kind"), "wait") || !record_goes_forward(task)
        || !slice_is(json_get_text(step, "state"), "waiting") || !time_parse(until, &at))
        return;
    buf_str(b, "; waits until ");
    people_time(b, at, now);
    if (at > now) {
        buf_str(b, ", in ");
        people_duration(b, at - now);
    }
}

/* For a repeated step that continues: its round, and when the next one begins. */
static void put_round(struct buf *b, const struct json *task, const struct json *step, int64_t now)
{
    bool waits = slice_is(json_get_text(step, "state"), "waiting") && record_goes_forward(task);
    int64_t round = json_get_int(step, "round", 0);
    int64_t at = 0;

    if (round == 0)
        return;
    buf_fmt(b, "; round %" PRId64, round);
    if (!waits)
        return;
    if (time_parse(json_get_text(step, "wait_until"), &at) && at > now) {
        buf_str(b, " in ");
        people_duration(b, at - now);
    }
    if (time_parse(json_get_text(step, "repeat_until"), &at)) {
        buf_str(b, ", repeated until ");
        people_time(b, at, now);
    }
}

/* Which signals a step waits for, and until when. */
static void put_awaited(struct buf *b, const struct json *task, const struct json *step,
                        int64_t now)
{
    const struct json *names = json_get(step, "signals");
    int64_t at = 0;

    if (!slice_is(json_get_text(step, "kind"), "signal") || !record_goes_forward(task)
        || !slice_is(json_get_text(step, "state"), "waiting")
        || !json_get_text(step, "begun_at").ptr)
        return;
    buf_str(b, "; waits for the signal ");
    for (const struct json *m = names ? names->child : NULL; m; m = m->next)
        buf_fmt(b, "%s%.*s", m == names->child ? "" : m->next ? ", " : " or ", SLICE_ARG(m->text));
    if (!time_parse(json_get_text(step, "complete_by"), &at))
        return;
    buf_str(b, " until ");
    people_time(b, at, now);
    if (at > now) {
        buf_str(b, ", in ");
        people_duration(b, at - now);
    }
}

/* Whom a step asks, and how many agreed. */
static void put_asked(struct buf *b, const struct json *task, const struct json *step)
{
    const struct json *approval = json_get(step, "approval");
    const struct json *by = json_get(approval, "by");

    if (!approval || !record_goes_forward(task)
        || !slice_is(json_get_text(step, "state"), "waiting")
        || !json_get_text(step, "begun_at").ptr)
        return;
    buf_str(b, "; asks ");
    for (const struct json *m = by ? by->child : NULL; m; m = m->next)
        buf_fmt(b, "%s%.*s", m == by->child ? "" : m->next ? ", " : " or ", SLICE_ARG(m->text));
    buf_fmt(b, ": %.*s", SLICE_ARG(json_get_text(approval, "question")));
    buf_fmt(b, " (%.*s of %.*s agreed)", SLICE_ARG(json_get_raw(approval, "agreed")),
            SLICE_ARG(json_get_raw(approval, "people")));
}

static void put_child(struct buf *b, const struct json *step)
{
    CLEANUP(buf_fini) struct buf text = {0};

    record_child(&text, step);
    if (text.len > 0)
        buf_fmt(b, "; %.*s", SLICE_ARG(buf_view(&text)));
}

/* How far its items are. Not all that are at work are in the table. */
static void put_items(struct buf *b, const struct json *task, const struct json *step)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const struct json *units[RECORD_UNITS_MAX];

    record_items(&text, step);
    if (text.len == 0)
        return;
    buf_fmt(b, "; %.*s", SLICE_ARG(buf_view(&text)));
    if (record_units(step, units) > ITEMS_SHOWN)
        buf_fmt(b, " (the first %d are shown; intact items %.*s %.*s has all)", ITEMS_SHOWN,
                SLICE_ARG(json_get_text(task, "id")), SLICE_ARG(json_get_text(step, "name")));
}

/* Details without a column of their own, because few steps have them. */
static void put_more(struct view *v, const struct json *task, const struct json *step)
{
    CLEANUP(buf_fini) struct buf more = {0};
    CLEANUP(buf_fini) struct buf tries = {0};
    const struct json *attempts = json_get(step, "attempts");
    struct slice resume = json_get_raw(step, "resume");

    put_tries(&tries, attempts);
    put_wait(&more, task, step, v->table.now);
    put_round(&more, task, step, v->table.now);
    put_awaited(&more, task, step, v->table.now);
    put_asked(&more, task, step);
    put_child(&more, step);
    put_items(&more, task, step);
    if (is_elsewhere(attempts))
        buf_str(&more, "; its result comes from elsewhere");
    if (json_get_bool(step, "supplied", false))
        buf_str(&more, "; its output was supplied by hand");
    if (json_get(step, "resolved"))
        buf_fmt(&more, "; an operator said that its attempts up to %.*s took no effect",
                SLICE_ARG(json_get_raw(step, "resolved")));
    if (json_get(step, "key_generation"))
        buf_fmt(&more, "; its idempotency key ends in ~%.*s",
                SLICE_ARG(json_get_raw(step, "key_generation")));
    if (tries.len > 0)
        buf_fmt(&more, "; tries within %.*s", SLICE_ARG(buf_view(&tries)));
    if (resume.ptr)
        buf_fmt(&more, "; left for the next attempt: %.*s", SLICE_ARG(resume));
    if (more.len == 0)
        return;
    struct line l = begin_line(v);
    line_text(&l, LOOK_STRONG, json_get_text(step, "name"));
    line_text(&l, LOOK_PLAIN, SLICE(": "));
    line_text(&l, LOOK_PLAIN, (struct slice){more.ptr + 2, more.len - 2});
    end_line(v, &l, more.len);
}

/* A step of on_undo that may never run is shown as such. */
static struct slice shown_state(const struct json *step, bool back)
{
    struct slice state = json_get_text(step, "state");
    bool idle = json_get_bool(step, "on_undo", false) && !back && slice_is(state, "waiting");

    return idle ? SLICE("on undo") : state;
}

static void add_unit(struct view *v, const struct json *task, const struct json *step)
{
    bool back = slice_is(json_get_text(task, "direction"), "undo");
    CLEANUP(buf_fini) struct buf attempts = {0};
    struct table *t = &v->table;
    const struct json *error = json_get(step, "error");

    record_attempts(&attempts, step);
    table_add(t, json_get_text(step, "name"));
    table_add_state(t, shown_state(step, back));
    table_add(t, json_get_text(step, "agent"));
    table_add(t, json_get_text(step, "action"));
    table_add(t, attempts.len > 0 ? buf_view(&attempts) : SLICE("0"));
    table_add(t, json_get_raw(step, "failure_count"));
    table_add(t, json_get_bool(step, "in_doubt", false) ? SLICE("yes") : SLICE_NONE);
    table_add(t, json_get_text(error, "code"));
}

/* The steps of the record, each followed by its items that are at work. */
static void each_unit(struct view *v, const struct json *task,
                      void (*show)(struct view *v, const struct json *task,
                                   const struct json *unit))
{
    const struct json *steps = json_get(task, "steps");
    const struct json *units[RECORD_UNITS_MAX];

    for (const struct json *step = steps ? steps->child : NULL; step; step = step->next) {
        show(v, task, step);
        size_t count = record_units(step, units);
        for (size_t i = 0; i < count && i < ITEMS_SHOWN; i++)
            show(v, task, units[i]);
    }
}

/* Signals that arrived, and that no step has taken. */
static void put_kept_signals(struct view *v, const struct json *task)
{
    const struct json *list = json_get(task, "signals");

    for (const struct json *s = list ? list->child : NULL; s; s = s->next)
        buf_fmt(&v->b, "signal %.*s (%.*s) is kept: no step has taken it\n",
                SLICE_ARG(json_get_text(s, "name")), SLICE_ARG(json_get_text(s, "id")));
}

void task_show(const struct invocation *in, const struct json *task)
{
    static const char *const heads[] = {"STEP",     "STATE",    "AGENT", "ACTION", "ATTEMPTS",
                                        "FAILURES", "IN DOUBT", "ERROR", NULL};
    struct view v = {.in = in, .task = json_get_text(task, "id")};

    table_begin(&v.table, in, heads);
    each_unit(&v, task, add_unit);
    put_head(&v, task);
    buf_byte(&v.b, '\n');
    (void)fwrite(v.b.ptr, 1, v.b.len, stdout);
    table_print(&v.table);
    buf_clear(&v.b);
    each_unit(&v, task, put_more);
    put_kept_signals(&v, task);
    if (v.b.len > 0)
        printf("\n%.*s", SLICE_ARG(buf_view(&v.b)));
    table_fini(&v.table);
    buf_fini(&v.b);
}
