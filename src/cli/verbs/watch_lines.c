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

static void add_step(struct report *t, const struct json *step, const struct json *before)
{
    struct slice state = json_get_text(step, "state");
    struct slice was = before ? json_get_text(before, "state") : SLICE("waiting");
    CLEANUP(buf_fini) struct buf child = {0};

    find_child(step, before, &child);
    if (add_attempts(t, step, before) || (slice_eq(state, was) && child.len == 0))
        return;
    struct line l = begin(t, t->now, RANK_STATE, json_get_text(step, "name"), state);
    if (child.len > 0)
        line_fmt(&l, LOOK_PLAIN, "  %.*s", SLICE_ARG(buf_view(&child)));
    put_error(&l, child.len > 0 ? ": " : "  ", json_get(step, "error"));
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
