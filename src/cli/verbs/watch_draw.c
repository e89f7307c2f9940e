/*
 * Draws `intact watch` as a block of lines:
 *
 *     o-17  order v3  processing  forward, for 12s
 *     complete by 10:47:07, 14m 48s left
 *
 *       STEP     STATE      AGENT     ATTEMPTS  10:32:07                         12s
 *     + reserve  completed  stock     1         ==
 *     > charge   running    payment   3           xx...xx.....>>>>>>>>>>>>>>>>>>>>>>
 *     . ship     waiting    shipping
 *
 *     charge: attempt 3 on payment-2 for 3.2s, 26s left; {"done":4,"of":10} asking the bank
 */

#include "cli/verbs/watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/client/record.h"

enum {
    NAME_MAX_WIDTH = 24,
    STATE_WIDTH = 11,
    AGENT_MAX_WIDTH = 16,
    ATTEMPTS_WIDTH = 8,
    GAP = 2,
    BARS_MIN = 10,
    STEPS_LEAST = 3,
    ITEMS_SHOWN = 5,
    LINES_AROUND = 9
};

/* ---- signs ---- */

struct sign {
    const char *of, *utf8, *ascii;
};

static const char *sign_of(const struct sign *signs, size_t count, struct slice of, bool utf8)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(of, signs[i].of))
            return utf8 ? signs[i].utf8 : signs[i].ascii;
    return " ";
}

static const char *state_sign(struct slice state, bool utf8)
{
    static const struct sign signs[] = {
        {"waiting", "·", "."}, {"running", "▶", ">"}, {"completed", "✓", "+"}, {"failed", "✗", "x"},
        {"skipped", "-", "-"}, {"undoing", "◀", "<"}, {"undone", "↶", "u"},
    };

    return sign_of(signs, COUNT_OF(signs), state, utf8);
}

static const char *attempt_sign(const struct json *attempt, bool utf8)
{
    static const struct sign forward[] = {
        {"open", "▸", ">"},      {"completed", "━", "="}, {"failed", "×", "x"},
        {"timed_out", "!", "!"}, {"not_sent", "-", "-"},  {"late", "~", "~"},
    };
    static const struct sign undo[] = {{"open", "◂", "<"}, {"completed", "↶", "u"}};
    struct slice outcome = json_get_text(attempt, "outcome");
    bool back = slice_is(json_get_text(attempt, "direction"), "undo");
    const char *sign = back ? sign_of(undo, COUNT_OF(undo), outcome, utf8) : " ";

    return *sign != ' ' ? sign : sign_of(forward, COUNT_OF(forward), outcome, utf8);
}

static enum term_look attempt_look(const struct json *attempt)
{
    struct slice outcome = json_get_text(attempt, "outcome");

    if (slice_is(outcome, "completed") && slice_is(json_get_text(attempt, "direction"), "undo"))
        return LOOK_BACK;
    return term_state_look(outcome);
}

/* ---- bars ---- */

enum { BARS_MAX = 1000 };

struct bars {
    int64_t from, until;
    bool back; /* their task goes back */
    int width;
    const char *signs[BARS_MAX];
    enum term_look looks[BARS_MAX];
};

static int bar_at(const struct bars *s, int64_t at)
{
    double part = (double)(at - s->from) / (double)max_i64(s->until - s->from, 1);

    return part <= 0 ? 0 : part >= 1 ? s->width : (int)(part * s->width);
}

/* Shows attempts without any duration, too. */
static void fill(struct bars *s, int64_t from, int64_t until, const char *sign, enum term_look look)
{
    int first = bar_at(s, from);
    int end = bar_at(s, until);

    if (first >= s->width)
        first = s->width - 1;
    for (int i = first; i < end || i == first; i++) {
        s->signs[i] = sign;
        s->looks[i] = look;
    }
}

static bool is_over(struct slice state)
{
    return slice_is(state, "completed") || slice_is(state, "failed") || slice_is(state, "skipped")
           || slice_is(state, "undone");
}

static int64_t end_of(const struct json *attempt, int64_t now)
{
    int64_t ended = watched_time(attempt, "ended_at");

    return ended ? ended : now;
}

static void draw_bars(struct line *l, struct bars *s, const struct json *step, bool task_is_over)
{
    const struct json *attempts = json_get(step, "attempts");
    bool over = task_is_over || is_over(json_get_text(step, "state"));
    bool utf8 = l->term->utf8;
    struct slice direction = SLICE_NONE;
    int64_t before = 0;

    for (int i = 0; i < s->width; i++) {
        s->signs[i] = " ";
        s->looks[i] = LOOK_PLAIN;
    }
    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next) {
        int64_t began = watched_time(a, "started_at");
        struct slice turns = json_get_text(a, "direction");
        if (slice_eq(turns, direction) && began > before) /* drawn first, so attempts cover it */
            fill(s, before, began, utf8 ? "·" : ".", LOOK_FAINT);
        before = end_of(a, s->until);
        direction = turns;
    }
    if (before && !over && before < s->until)
        fill(s, before, s->until, utf8 ? "·" : ".", LOOK_FAINT);
    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next)
        fill(s, watched_time(a, "started_at"), end_of(a, s->until), attempt_sign(a, utf8),
             attempt_look(a));
    for (int i = 0; i < s->width; i++)
        line_text(l, s->looks[i], slice_of(s->signs[i]));
}

/* A step with items: which part of them is where, whatever the time. */
static void draw_parts(struct line *l, struct bars *s, const struct json *step)
{
    static const struct sign signs[] = {
        {"completed", "━", "="}, {"undone", "↶", "u"},  {"skipped", "-", "-"},
        {"failed", "×", "x"},    {"running", "▸", ">"}, {"waiting", "·", "."},
    };
    const struct json *items = json_get(step, "items");
    int64_t count = json_get_int(items, "count", 0);
    int64_t parts[COUNT_OF(signs)] = {0};
    int64_t before = 0;

    for (size_t i = 0; i < 4; i++)
        before += parts[i] = json_get_int(items, signs[i].of, 0);
    parts[4] = max_i64(json_get_int(items, "begun", 0) - before, 0);
    parts[5] = count - json_get_int(items, "begun", 0);
    *s = (struct bars){.from = 0, .until = count, .back = s->back, .width = s->width};
    fill(s, 0, count, " ", LOOK_PLAIN);
    before = 0;
    for (size_t i = 0; i < COUNT_OF(signs); before += parts[i++])
        if (parts[i] > 0)
            fill(s, before, before + parts[i], l->term->utf8 ? signs[i].utf8 : signs[i].ascii,
                 i == 1   ? LOOK_BACK
                 : i == 5 ? LOOK_FAINT
                          : term_state_look(slice_of(signs[i].of)));
    for (int i = 0; i < s->width; i++)
        line_text(l, s->looks[i], slice_of(s->signs[i]));
}

/* ---- the head ---- */

static void put_duration(struct line *l, enum term_look look, const char *before, int64_t ms,
                         const char *after)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, before);
    people_duration(&b, ms);
    buf_str(&b, after);
    line_text(l, look, buf_view(&b));
}

static void put_time(struct line *l, const char *before, int64_t at, int64_t now)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, before);
    people_time(&b, at, now);
    line_text(l, LOOK_PLAIN, buf_view(&b));
}

static void put_left(struct line *l, int64_t until, int64_t now)
{
    if (until >= now)
        put_duration(l, until - now < 10000 ? LOOK_BAD : LOOK_PLAIN, ", ", until - now, " left");
    else
        put_duration(l, LOOK_BAD, ", overdue by ", now - until, "");
}

static void draw_head(const struct watched *w, const struct watch_view *v, struct line *l)
{
    const struct json *t = w->task;
    struct slice state = json_get_text(t, "state");
    int64_t began = watched_time(t, "started_at");
    int64_t ended = watched_time(t, "ended_at");
    int64_t complete_by = watched_time(t, "complete_by");

    line_text(l, LOOK_STRONG, json_get_text(t, "id"));
    line_fmt(l, LOOK_PLAIN, "  %.*s v%.*s  ", SLICE_ARG(json_get_text(t, "workflow")),
             SLICE_ARG(json_get_raw(t, "version")));
    line_text(l, term_state_look(state), state);
    if (json_get_text(t, "paused_at").ptr)
        line_text(l, LOOK_STRONG, SLICE(", paused"));
    if (json_get_text(t, "closed_at").ptr)
        line_text(l, LOOK_STRONG, SLICE(", closed"));
    if (ended)
        put_duration(l, LOOK_PLAIN, began ? "  after " : "", began ? ended - began : 0, "");
    else
        put_duration(l, LOOK_PLAIN, began ? "  for " : "  submitted ",
                     v->now - (began ? began : watched_time(t, "submitted_at")),
                     began ? "" : " ago");
    if (slice_is(json_get_text(t, "direction"), "undo") && !ended)
        line_text(l, LOOK_BACK, SLICE("  going back"));
    line_end(l);
    if (complete_by && !ended) {
        put_time(l, "complete by ", complete_by, v->now);
        put_left(l, complete_by, v->now);
        line_end(l);
    }
}

static void draw_waiting(const struct watched *w, const struct watch_view *v, struct line *l)
{
    struct slice agent = json_get_text(w->task, "waiting_for");
    int64_t not_before = watched_time(w->task, "not_before");

    if (watched_has_ended(w))
        return;
    if (w->why.len > 0) {
        line_text(l, LOOK_PLAIN, buf_view(&w->why));
        line_end(l);
    } else if (not_before > v->now) {
        put_time(l, "begins not before ", not_before, v->now);
        put_duration(l, LOOK_PLAIN, ", in ", not_before - v->now, "");
        line_end(l);
    } else if (agent.len > 0 && !slice_is(agent, "time") && agent.ptr[0] != '@') {
        line_fmt(l, LOOK_PLAIN, "waits for a place at agent %.*s", SLICE_ARG(agent));
        line_end(l);
    }
}

/* ---- the steps ---- */

struct columns {
    int name, agent, bars;
};

static int widest(const struct term *t, const struct json *steps, const char *key, int least,
                  int most)
{
    int width = least;

    for (const struct json *s = steps->child; s; s = s->next) {
        int own = term_width(t, json_get_text(s, key));
        width = own > width ? own : width;
    }
    return width < most ? width : most;
}

static struct columns columns_of(const struct watched *w, const struct term *t)
{
    const struct json *steps = json_get(w->task, "steps");
    struct columns c = {widest(t, steps, "name", 4, NAME_MAX_WIDTH),
                        widest(t, steps, "agent", 5, AGENT_MAX_WIDTH), 0};
    int width = t->live ? t->width : 100;

    c.bars = width - (2 + c.name + c.agent + STATE_WIDTH + ATTEMPTS_WIDTH + 4 * GAP) - 1;
    c.bars = c.bars < BARS_MIN ? 0 : c.bars > BARS_MAX ? BARS_MAX : c.bars;
    return c;
}

static void draw_titles(const struct columns *c, const struct bars *s, int64_t now, struct line *l)
{
    CLEANUP(buf_fini) struct buf from = {0};
    CLEANUP(buf_fini) struct buf took = {0};

    line_to(l, 2);
    line_cell(l, LOOK_FAINT, SLICE("STEP"), c->name + GAP);
    line_cell(l, LOOK_FAINT, SLICE("STATE"), STATE_WIDTH + GAP);
    line_cell(l, LOOK_FAINT, SLICE("AGENT"), c->agent + GAP);
    line_cell(l, LOOK_FAINT, SLICE("ATTEMPTS"), ATTEMPTS_WIDTH + GAP);
    if (c->bars > 0 && s->from > 0) {
        people_time(&from, s->from, now);
        people_duration(&took, s->until - s->from);
        line_cell(l, LOOK_FAINT, buf_view(&from), c->bars - 8);
        line_cell_right(l, LOOK_FAINT, buf_view(&took), 8);
    }
    line_end(l);
}

/* A step of on_undo that may never run is shown as such. */
static struct slice shown_state(const struct json *step, bool back)
{
    struct slice state = json_get_text(step, "state");
    bool idle = json_get_bool(step, "on_undo", false) && !back && slice_is(state, "waiting");

    return idle ? SLICE("on undo") : state;
}

static void draw_step(const struct json *step, const struct columns *c, struct bars *s,
                      bool task_is_over, struct line *l)
{
    struct slice state = shown_state(step, s->back);
    enum term_look look = term_state_look(state);
    CLEANUP(buf_fini) struct buf attempts = {0};
    char text[32];

    line_cell(l, look, slice_of(state_sign(state, l->term->utf8)), 2);
    line_cell(l, LOOK_PLAIN, json_get_text(step, "name"), c->name);
    line_to(l, l->column + GAP);
    (void)snprintf(text, sizeof text, "%.*s%s", SLICE_ARG(state),
                   json_get_bool(step, "in_doubt", false) ? " ?" : "");
    line_cell(l, look, slice_of(text), STATE_WIDTH + GAP);
    line_cell(l, LOOK_PLAIN, json_get_text(step, "agent"), c->agent);
    line_to(l, l->column + GAP);
    record_attempts(&attempts, step);
    line_cell(l, LOOK_PLAIN, buf_view(&attempts), ATTEMPTS_WIDTH + GAP);
    if (c->bars > 0 && s->from > 0 && json_get_int(json_get(step, "items"), "count", 0) > 0)
        draw_parts(l, s, step);
    else if (c->bars > 0 && s->from > 0)
        draw_bars(l, s, step, task_is_over);
    line_end(l);
}

/* The first step to show if there is no room for all: near the first one that has not ended. */
static uint32_t first_shown(const struct json *steps, uint32_t room)
{
    uint32_t first = 0;

    for (const struct json *s = steps->child; s && is_over(json_get_text(s, "state")); s = s->next)
        first++;
    first = first > 0 ? first - 1 : 0; /* and the one before it */
    return first + room > steps->count ? steps->count - room : first;
}

static void draw_steps(const struct watched *w, const struct watch_view *v, struct line *l)
{
    const struct json *steps = json_get(w->task, "steps");
    const struct columns c = columns_of(w, v->term);
    int64_t ended = watched_time(w->task, "ended_at");
    struct bars *bars = calloc(1, sizeof *bars); /* too large for the stack */
    uint32_t room = steps->count;
    uint32_t at = 0;

    if (!bars)
        abort();
    *bars = (struct bars){.from = watched_time(w->task, "started_at"),
                          .until = ended ? ended : v->now,
                          .back = slice_is(json_get_text(w->task, "direction"), "undo"),
                          .width = c.bars};
    if (v->term->live && !v->last && (int)room > v->term->height - LINES_AROUND)
        room = (uint32_t)max_i64(v->term->height - LINES_AROUND, STEPS_LEAST);
    room = room < steps->count ? room : steps->count;
    uint32_t first = first_shown(steps, room);
    draw_titles(&c, bars, v->now, l);
    for (const struct json *s = steps->child; s; s = s->next, at++)
        if (at >= first && at < first + room)
            draw_step(s, &c, bars, watched_has_ended(w), l);
    if (room < steps->count) {
        line_fmt(l, LOOK_FAINT, "  %u of %u steps", room, steps->count);
        line_end(l);
    }
    free(bars);
}

/* ---- current work ---- */

static void put_progress(struct line *l, struct slice progress, struct slice message)
{
    if (progress.len > 0 && !slice_is(progress, "null"))
        line_fmt(l, LOOK_BUSY, "; %.*s", SLICE_ARG(progress));
    if (message.len > 0)
        line_fmt(l, LOOK_BUSY, "%s%.*s", progress.len > 0 ? " " : "; ", SLICE_ARG(message));
}

static void draw_open(const struct watched *w, const struct json *step, const struct json *attempt,
                      int64_t now, struct line *l)
{
    struct slice name = json_get_text(step, "name");
    const struct watched_beat *beat = watched_beat_of(w, name, attempt);
    int64_t complete_by = watched_time(attempt, "complete_by");
    bool back = slice_is(json_get_text(attempt, "direction"), "undo");

    line_text(l, LOOK_STRONG, name);
    line_fmt(l, LOOK_PLAIN, ": %s %.*s on %.*s", back ? "undo" : "attempt",
             SLICE_ARG(json_get_raw(attempt, "attempt")),
             SLICE_ARG(json_get_text(attempt, "instance")));
    if (json_get_bool(attempt, "elsewhere", false))
        line_text(l, LOOK_BUSY, SLICE(", now elsewhere,"));
    put_duration(l, LOOK_PLAIN, " for ", now - watched_time(attempt, "started_at"), "");
    if (complete_by)
        put_left(l, complete_by, now);
    if (beat)
        put_progress(l, buf_view(&beat->progress), buf_view(&beat->message));
    else
        put_progress(l, json_get_raw(attempt, "progress"), json_get_text(attempt, "message"));
    line_end(l);
}

static void put_error(struct line *l, const struct json *error)
{
    struct slice message = json_get_text(error, "message");

    line_text(l, LOOK_BAD, json_get_text(error, "code"));
    if (message.len > 0) {
        line_text(l, LOOK_BAD, SLICE(": "));
        line_text(l, LOOK_BAD, message);
    }
}

static bool is_object(const struct json *j)
{
    return j && j->type == JSON_OBJECT;
}

static const struct json *last_of(const struct json *list)
{
    const struct json *last = list ? list->child : NULL;

    while (last && last->next)
        last = last->next;
    return last;
}

/* What comes when a time is over that a step waits for. A round that is followed by another did not
 * fail. */
static void draw_what_comes(const struct json *step, int64_t in, struct line *l)
{
    const struct json *last = last_of(json_get(step, "attempts"));

    if (slice_is(json_get_text(step, "kind"), "wait"))
        put_duration(l, LOOK_PLAIN, "waits, over in ", in, "");
    else if (json_get_int(step, "round", 0) > json_get_int(last, "round", 0)) {
        line_fmt(l, LOOK_PLAIN, "round %" PRId64, json_get_int(step, "round", 0));
        put_duration(l, LOOK_PLAIN, " begins in ", in, "");
    } else {
        put_duration(l, LOOK_PLAIN, "next try in ", in, "");
    }
}

static void draw_awaited(const struct json *step, int64_t now, struct line *l)
{
    const struct json *approval = json_get(step, "approval");
    const struct json *names = approval ? json_get(approval, "by") : json_get(step, "signals");
    int64_t until = watched_time(step, "complete_by");

    line_text(l, LOOK_PLAIN, approval ? SLICE("asks ") : SLICE("waits for the signal "));
    for (const struct json *m = names ? names->child : NULL; m; m = m->next) {
        line_text(l, LOOK_PLAIN, m == names->child ? SLICE("") : SLICE(", "));
        line_text(l, LOOK_PLAIN, m->text);
    }
    if (approval)
        line_fmt(l, LOOK_PLAIN, ", %.*s of %.*s agreed",
                 SLICE_ARG(json_get_raw(approval, "agreed")),
                 SLICE_ARG(json_get_raw(approval, "people")));
    if (until > now)
        put_duration(l, LOOK_PLAIN, ", at most ", until - now, "");
}

/* False: it has no child, or waits for none. */
static bool draw_child(const struct json *step, int64_t now, struct line *l)
{
    CLEANUP(buf_fini) struct buf text = {0};
    int64_t until = watched_time(step, "complete_by");

    if (!is_over(json_get_text(step, "state")))
        record_child(&text, step);
    if (text.len == 0)
        return false;
    line_text(l, LOOK_STRONG, json_get_text(step, "name"));
    line_text(l, LOOK_PLAIN, SLICE(": waits, "));
    line_text(l, LOOK_PLAIN, buf_view(&text));
    if (until > now)
        put_duration(l, LOOK_PLAIN, ", at most ", until - now, "");
    if (is_object(json_get(step, "error"))) {
        line_text(l, LOOK_PLAIN, SLICE("; "));
        put_error(l, json_get(step, "error"));
    }
    line_end(l);
    return true;
}

/* A step that is retried, or that failed. */
static void draw_failed(const struct json *task, const struct json *step, int64_t now,
                        struct line *l)
{
    const struct json *last = last_of(json_get(step, "attempts"));
    const struct json *error = json_get(step, "error");
    int64_t wait_until = watched_time(step, "wait_until");

    if (!is_object(error))
        error = json_get(last, "error");
    bool is_wait = slice_is(json_get_text(step, "kind"), "wait");
    bool awaits = (slice_is(json_get_text(step, "kind"), "signal")
                   || slice_is(json_get_text(step, "kind"), "approve"))
                  && json_get_text(step, "begun_at").ptr && record_goes_forward(task)
                  && !is_over(json_get_text(step, "state"));
    bool waits = wait_until > now && !is_over(json_get_text(step, "state"))
                 && (!is_wait || record_goes_forward(task));
    if (!is_object(error) && !waits && !awaits)
        return;
    line_text(l, LOOK_STRONG, json_get_text(step, "name"));
    line_text(l, LOOK_PLAIN, SLICE(": "));
    if (waits) {
        draw_what_comes(step, wait_until - now, l);
        line_text(l, LOOK_PLAIN, is_object(error) ? SLICE("; ") : SLICE(""));
    }
    if (awaits)
        draw_awaited(step, now, l);
    if (is_object(error))
        put_error(l, error);
    line_end(l);
}

/* False: it has no items, or they need no words. */
static bool draw_items(const struct json *step, struct line *l)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct slice state = json_get_text(step, "state");
    bool is_well = slice_is(state, "completed") || slice_is(state, "undone");

    if (!is_well || json_get_int(json_get(step, "items"), "failed", 0) > 0)
        record_items(&text, step);
    if (text.len == 0)
        return false;
    line_text(l, LOOK_STRONG, json_get_text(step, "name"));
    line_text(l, LOOK_PLAIN, SLICE(": "));
    line_text(l, LOOK_PLAIN, buf_view(&text));
    if (is_object(json_get(step, "error"))) {
        line_text(l, LOOK_PLAIN, SLICE("; "));
        put_error(l, json_get(step, "error"));
    }
    line_end(l);
    return true;
}

/* A step, or an item at work. */
static void draw_doing(const struct watched *w, const struct watch_view *v, const struct json *unit,
                       struct line *l)
{
    const struct json *last = last_of(json_get(unit, "attempts"));
    struct slice state = json_get_text(unit, "state");

    if (slice_is(json_get_text(last, "outcome"), "open") && !watched_has_ended(w))
        draw_open(w, unit, last, v->now, l);
    else if (!draw_items(unit, l) && !draw_child(unit, v->now, l) && !slice_is(state, "completed")
             && !slice_is(state, "undone"))
        draw_failed(w->task, unit, v->now, l);
}

static void draw_doings(const struct watched *w, const struct watch_view *v, struct line *l)
{
    const struct json *steps = json_get(w->task, "steps");
    const struct json *units[RECORD_UNITS_MAX];

    for (const struct json *s = steps->child; s; s = s->next) {
        draw_doing(w, v, s, l);
        size_t count = record_units(s, units);
        for (size_t i = 0; i < count && i < ITEMS_SHOWN; i++)
            draw_doing(w, v, units[i], l);
        if (count > ITEMS_SHOWN) {
            line_fmt(l, LOOK_FAINT, "  and %zu more at work", count - ITEMS_SHOWN);
            line_end(l);
        }
    }
}

static void draw_result(const struct watched *w, struct line *l)
{
    const struct json *error = json_get(w->task, "error");
    struct slice output = json_get_raw(w->task, "output");

    if (is_object(error)) {
        line_text(l, LOOK_PLAIN, SLICE("error  "));
        put_error(l, error);
        line_end(l);
    }
    if (output.len > 0 && !slice_is(output, "null")) {
        line_text(l, LOOK_PLAIN, SLICE("output  "));
        line_text(l, LOOK_PLAIN, output);
        line_end(l);
    }
}

void watch_draw(const struct watched *w, const struct watch_view *v, struct buf *b)
{
    struct line l = line_begin(v->term, b);

    if (v->term->live)
        l.width = v->term->width - 1; /* a terminal that becomes narrower wraps fewer lines */
    draw_head(w, v, &l);
    draw_waiting(w, v, &l);
    line_end(&l);
    draw_steps(w, v, &l);
    line_end(&l);
    draw_doings(w, v, &l);
    draw_result(w, &l);
    if (*v->trouble) {
        line_fmt(&l, LOOK_BAD, "not connected: %s; trying again", v->trouble);
        line_end(&l);
    } else if (!v->last) {
        line_text(&l, LOOK_FAINT, SLICE("q leaves; the task goes on"));
        line_end(&l);
    }
}
