/*
 * `intact watch` without a terminal: a line for each change.
 *
 * TIME  STEP  STATE  ATTEMPT  OUTCOME
 *
 * Compares two records. The differences have no order of their own, so the lines are sorted by
 * time.
 */

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/record.h"
#include "cli/verbs/watch.h"

enum { STEP_WIDTH = 16, STATE_WIDTH = 12 };

/* The order of lines of the same millisecond. */
enum rank { RANK_BEGIN, RANK_END, RANK_STATE, RANK_START, RANK_OVER };

struct happening {
    int64_t at;
    enum rank rank;
    size_t order; /* as found */
    struct buf text;
};

struct report {
    const struct term *term;
    int64_t now;
    struct happening *list;
    size_t count;
};

/* Begins the line of a new happening, with its time. */
static struct line begin(struct report *t, int64_t at, enum rank rank, struct slice step,
                         struct slice state)
{
    CLEANUP(buf_fini) struct buf time = {0};

    t->list = realloc(t->list, (t->count + 1) * sizeof(*t->list));
    if (!t->list)
        abort();
    struct happening *h = &t->list[t->count];
    *h = (struct happening){.at = at, .rank = rank, .order = t->count};
    t->count++;
    struct line l = line_begin(t->term, &h->text);
    l.width = INT32_MAX / 2; /* a log is not cut */
    people_time(&time, at, t->now);
    line_text(&l, LOOK_FAINT, buf_view(&time));
    line_text(&l, LOOK_PLAIN, SLICE("  "));
    int width = term_width(t->term, step);
    line_cell(&l, LOOK_PLAIN, step, width < STEP_WIDTH ? STEP_WIDTH : width);
    line_text(&l, LOOK_PLAIN, SLICE("  "));
    line_cell(&l, term_state_look(state), state, STATE_WIDTH);
    return l;
}

static void end(struct report *t, struct line *l)
{
    l->b = &t->list[t->count - 1].text; /* the list may have moved */
    line_end(l);
}

static void put_error(struct line *l, const char *before, const struct json *error)
{
    if (!error || error->type != JSON_OBJECT)
        return;
    line_text(l, LOOK_BAD, slice_of(before));
    line_text(l, LOOK_BAD, json_get_text(error, "code"));
    if (json_get_text(error, "message").len > 0)
        line_text(l, LOOK_BAD, SLICE(": "));
    line_text(l, LOOK_BAD, json_get_text(error, "message"));
}

/* ---- attempts ---- */

static const struct json *same_attempt(const struct json *step, const struct json *attempt)
{
    const struct json *list = json_get(step, "attempts");

    for (const struct json *a = list ? list->child : NULL; a; a = a->next)
        if (slice_eq(json_get_raw(a, "attempt"), json_get_raw(attempt, "attempt"))
            && slice_eq(json_get_text(a, "direction"), json_get_text(attempt, "direction")))
            return a;
    return NULL;
}

static bool goes_back(const struct json *attempt)
{
    return slice_is(json_get_text(attempt, "direction"), "undo");
}

static void put_number(struct line *l, const struct json *attempt)
{
    line_fmt(l, LOOK_PLAIN, "  %s %.*s  ", goes_back(attempt) ? "undo" : "attempt",
             SLICE_ARG(json_get_raw(attempt, "attempt")));
}

static void add_start(struct report *t, const struct json *step, const struct json *attempt)
{
    struct line l =
        begin(t, watched_time(attempt, "started_at"), RANK_START, json_get_text(step, "name"),
              goes_back(attempt) ? SLICE("undoing") : SLICE("running"));

    put_number(&l, attempt);
    line_fmt(&l, LOOK_PLAIN, "on %.*s", SLICE_ARG(json_get_text(attempt, "instance")));
    end(t, &l);
}

/* The step's state after this attempt: the current one for the last attempt, otherwise inferred
 * from the next attempt. */
static struct slice state_after(const struct json *step, const struct json *attempt)
{
    if (!attempt->next)
        return json_get_text(step, "state");
    if (slice_is(json_get_text(attempt, "outcome"), "completed"))
        return goes_back(attempt) ? SLICE("undone") : SLICE("completed");
    return goes_back(attempt) == goes_back(attempt->next) ? SLICE("waiting") : SLICE("failed");
}

static void add_end(struct report *t, const struct json *step, const struct json *attempt)
{
    struct slice outcome = json_get_text(attempt, "outcome");
    int64_t began = watched_time(attempt, "started_at");
    int64_t ended = watched_time(attempt, "ended_at");
    int64_t wait_until = attempt->next ? 0 : watched_time(step, "wait_until");
    CLEANUP(buf_fini) struct buf took = {0};
    struct line l = begin(t, ended ? ended : t->now, RANK_END, json_get_text(step, "name"),
                          state_after(step, attempt));

    put_number(&l, attempt);
    line_text(&l,
              goes_back(attempt) && slice_is(outcome, "completed") ? LOOK_BACK
                                                                   : term_state_look(outcome),
              outcome);
    people_duration(&took, max_i64(ended - began, 0));
    line_fmt(&l, LOOK_PLAIN, " after %.*s", SLICE_ARG(buf_view(&took)));
    if (json_get_int(attempt, "tries", 0) > 1)
        line_fmt(&l, LOOK_PLAIN, ", %" PRId64 " tries", json_get_int(attempt, "tries", 0));
    if (!slice_is(outcome, "completed") && slice_is(json_get_text(attempt, "effect"), "unknown"))
        line_text(&l, LOOK_BACK, SLICE(", in doubt"));
    put_error(&l, ": ", json_get(attempt, "error"));
    if (wait_until > ended && slice_is(json_get_text(step, "state"), "waiting")) {
        buf_clear(&took);
        people_duration(&took, wait_until - ended);
        line_fmt(&l, LOOK_PLAIN, "; next try in %.*s", SLICE_ARG(buf_view(&took)));
    }
    end(t, &l);
}

static bool is_open(const struct json *attempt)
{
    return slice_is(json_get_text(attempt, "outcome"), "open");
}

/* ---- steps and the task ---- */

/* False: its attempts have not changed. */
static bool add_attempts(struct report *t, const struct json *step, const struct json *before)
{
    const struct json *attempts = json_get(step, "attempts");
    size_t count = t->count;

    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next) {
        const struct json *was = same_attempt(before, a);
        if (!was)
            add_start(t, step, a);
        if (!is_open(a)
            && (!was || !slice_eq(json_get_text(was, "outcome"), json_get_text(a, "outcome"))))
            add_end(t, step, a);
    }
    return t->count > count;
}

/* What the step knows of its child, if that is news. */
static void find_child(const struct json *step, const struct json *before, struct buf *b)
{
    CLEANUP(buf_fini) struct buf was = {0};

    record_child(b, step);
    record_child(&was, before);
    if (slice_eq(buf_view(b), buf_view(&was)))
        buf_clear(b);
}

/* In tenths, so that ten thousand items are no ten thousand lines. */
static int64_t tenths(const struct json *items, const char *what)
{
    int64_t count = json_get_int(items, "count", 0);

    return count > 0 ? json_get_int(items, what, 0) * 10 / count : 0;
}

/* How far the items of the step are, if that is news: it begins or ends, another tenth is completed
 * or undone, or one failed. */
static void find_items(const struct json *step, const struct json *before, struct buf *b)
{
    const struct json *items = json_get(step, "items");
    const struct json *was = json_get(before, "items");

    if (!was || !json_get_text(before, "begun_at").ptr
        || !slice_eq(json_get_text(step, "state"), json_get_text(before, "state"))
        || json_get_int(items, "failed", 0) != json_get_int(was, "failed", 0)
        || tenths(items, "completed") != tenths(was, "completed")
        || tenths(items, "undone") != tenths(was, "undone"))
        record_items(b, step);
}

static bool is_failed(const struct json *item)
{
    return slice_is(json_get_text(item, "state"), "failed");
}

static bool had_failed(const struct json *before, const struct json *item)
{
    const struct json *units[RECORD_UNITS_MAX];

    for (size_t i = 0, count = record_units(before, units); i < count; i++)
        if (slice_eq(json_get_text(units[i], "name"), json_get_text(item, "name")))
            return is_failed(units[i]);
    return false;
}

/* Its items that failed since. */
static void add_failed(struct report *t, const struct json *step, const struct json *before)
{
    const struct json *units[RECORD_UNITS_MAX];

    for (size_t i = 0, count = record_units(step, units); i < count; i++) {
        if (!is_failed(units[i]) || had_failed(before, units[i]))
            continue;
        struct line l =
            begin(t, t->now, RANK_STATE, json_get_text(units[i], "name"), SLICE("failed"));
        put_error(&l, "  ", json_get(units[i], "error"));
        end(t, &l);
    }
}

static void add_step(struct report *t, const struct json *step, const struct json *before)
{
    struct slice state = json_get_text(step, "state");
    struct slice was = before ? json_get_text(before, "state") : SLICE("waiting");
    CLEANUP(buf_fini) struct buf news = {0};

    add_failed(t, step, before);
    find_child(step, before, &news);
    find_items(step, before, &news);
    if (add_attempts(t, step, before) || (slice_eq(state, was) && news.len == 0))
        return;
    struct line l = begin(t, t->now, RANK_STATE, json_get_text(step, "name"), state);
    if (news.len > 0)
        line_fmt(&l, LOOK_PLAIN, "  %.*s", SLICE_ARG(buf_view(&news)));
    put_error(&l, news.len > 0 ? ": " : "  ", json_get(step, "error"));
    end(t, &l);
}

static const struct json *step_named(const struct json *task, struct slice name)
{
    const struct json *steps = json_get(task, "steps");

    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next)
        if (slice_eq(json_get_text(s, "name"), name))
            return s;
    return NULL;
}

/* Operators' changes to the task since the previous record. */
static void add_pause(struct report *t, const struct watched *w)
{
    bool paused = json_get_text(w->task, "paused_at").ptr != NULL;
    bool was = w->before && json_get_text(w->before, "paused_at").ptr;
    bool closed = json_get_text(w->task, "closed_at").ptr != NULL;
    bool was_closed = w->before && json_get_text(w->before, "closed_at").ptr;
    const char *words = NULL;

    if (paused != was)
        words = paused ? "paused" : "resumed";
    else if (closed != was_closed)
        words = closed ? "closed" : "reopened";
    if (!words)
        return;
    struct line l = begin(t, t->now, RANK_STATE, SLICE("-"), slice_of(words));
    end(t, &l);
}

static void add_task(struct report *t, const struct watched *w)
{
    struct slice state = json_get_text(w->task, "state");
    int64_t ended = watched_time(w->task, "ended_at");
    int64_t began = watched_time(w->task, "started_at");
    bool first = !w->before;

    add_pause(t, w);
    if (!first && slice_eq(state, json_get_text(w->before, "state")))
        return;
    bool over = watched_has_ended(w);
    int64_t at = over && ended ? ended : first && began ? began : t->now;
    struct line l = begin(t, at,
                          over    ? RANK_OVER
                          : first ? RANK_BEGIN
                                  : RANK_STATE,
                          SLICE("-"), state);
    put_error(&l, "  ", over ? json_get(w->task, "error") : NULL);
    end(t, &l);
}

static int by_time(const void *x, const void *y)
{
    const struct happening *a = x;
    const struct happening *b = y;

    if (a->at != b->at)
        return a->at > b->at ? 1 : -1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

void watch_lines(const struct watched *w, const struct term *term, int64_t now, struct buf *b)
{
    struct report t = {.term = term, .now = now};
    const struct json *steps = json_get(w->task, "steps");

    add_task(&t, w);
    for (const struct json *s = steps->child; s; s = s->next)
        add_step(&t, s, step_named(w->before, json_get_text(s, "name")));
    if (t.count > 0)
        qsort(t.list, t.count, sizeof(*t.list), by_time);
    for (size_t i = 0; i < t.count; i++) {
        buf_slice(b, buf_view(&t.list[i].text));
        buf_fini(&t.list[i].text);
    }
    free(t.list);
}

void watch_line_of_all(struct slice json, const struct term *t, int64_t now, struct buf *b)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf time = {0};
    struct json *j = NULL;
    struct line l = line_begin(t, b);

    if (json_parse(&a, json, &j, NULL) != ERR_OK)
        return;
    struct slice state = json_get_text(j, "state");
    l.width = INT32_MAX / 2;
    people_time(&time, watched_time(j, "at"), now);
    line_text(&l, LOOK_FAINT, buf_view(&time));
    line_text(&l, LOOK_PLAIN, SLICE("  "));
    line_cell(&l, term_state_look(state), state, STATE_WIDTH);
    line_fmt(&l, LOOK_PLAIN, "  %.*s  %.*s v%.*s", SLICE_ARG(json_get_text(j, "id")),
             SLICE_ARG(json_get_text(j, "workflow")), SLICE_ARG(json_get_raw(j, "version")));
    if (json_get_int(j, "failure_count", 0) > 0)
        line_fmt(&l, LOOK_BAD, "  failures %.*s", SLICE_ARG(json_get_raw(j, "failure_count")));
    line_end(&l);
}
