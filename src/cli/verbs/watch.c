/* `intact watch`: follows a task, or all tasks, in a view, as lines or as JSON. Drawing:
 * watch_draw.c, watch_lines.c; the stream: live_stream.c. */

#include "cli/verbs/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client/client.h"
#include "cli/client/live_stream.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"

enum {
    DRAW_MIN_MS = 100,  /* between two drawings */
    DRAW_MAX_MS = 1000, /* ... without events: times advance */
    WHY_EVERY_MS = 3000,
};

struct watching {
    const struct invocation *in;
    struct live *live;
    struct term term;
    struct watched task;
    int64_t offset_ms; /* the server's clock minus ours */
    bool json, view;   /* neither: lines */
    bool ended, left;  /* the stream ended; the user pressed q */
    bool dirty;
    int64_t drawn_ms;
    struct buf why_path; /* empty: the server has no such route */
    int64_t why_ms;
    bool why_asked;
};

/* ---- the clock ---- */

static int64_t server_now(const struct watching *w)
{
    return clock_wall_ms() + w->offset_ms;
}

/* ---- events ---- */

static void print(const struct buf *b)
{
    (void)fwrite(b->ptr, 1, b->len, stdout);
    (void)fflush(stdout); /* somebody may read it live; write errors are detected at the end */
}

static void print_json(struct slice name, struct slice data)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "event", name);
    json_member_raw(&b, "data", data);
    json_close(&b, '}');
    buf_byte(&b, '\n');
    print_text(stdout, buf_view(&b));
    (void)fflush(stdout);
}

static void take_record(struct watching *w, struct slice record)
{
    CLEANUP(buf_fini) struct buf lines = {0};

    if (!watched_record(&w->task, record))
        return;
    w->dirty = true;
    if (w->json || w->view)
        return;
    watch_lines(&w->task, &w->term, server_now(w), &lines);
    if (lines.len > 0)
        print(&lines);
}

static void take_event(void *arg, const struct event *e)
{
    struct watching *w = arg;

    if (w->json)
        print_json(e->name, e->data);
    if (slice_is(e->name, "task")) {
        take_record(w, e->data);
    } else if (slice_is(e->name, "progress")) {
        watched_progress(&w->task, e->data);
        w->dirty = true;
    } else if (slice_is(e->name, "end")) {
        w->ended = true;
    }
}

/* ---- why it waits ---- */

static void take_why(void *arg, const struct live_answer *a)
{
    struct watching *w = arg;

    w->why_asked = false;
    if (a->status == 200) {
        watched_why(&w->task, a->body);
        w->dirty = true;
    } else if (a->status >= 400 && a->status < 500) {
        buf_clear(&w->why_path);
    }
}

/* After a change, and now and then. */
static void ask_why(struct watching *w, int64_t now)
{
    if (w->why_path.len == 0 || w->why_asked || watched_has_ended(&w->task)
        || live_state(w->live) != LIVE_FOLLOWING
        || now - w->why_ms < (w->dirty ? DRAW_MIN_MS : WHY_EVERY_MS))
        return;
    w->why_ms = now;
    w->why_asked = live_get(w->live, w->why_path.ptr, take_why, w);
}

/* ---- the view ---- */

static void draw(struct watching *w, bool last)
{
    CLEANUP(buf_fini) struct buf b = {0};
    bool waits = live_state(w->live) == LIVE_CONNECTING && !w->ended;
    const char *trouble = waits ? live_trouble(w->live) : "";
    const struct watch_view v = {&w->term, server_now(w), trouble, last};

    if (!w->task.task)
        return;
    watch_draw(&w->task, &v, &b);
    view_draw(buf_view(&b), last);
    w->drawn_ms = clock_steady_ms();
    w->dirty = false;
}

static int64_t until_drawing(const struct watching *w)
{
    return w->drawn_ms + (w->dirty ? DRAW_MIN_MS : DRAW_MAX_MS) - clock_steady_ms();
}

/* False: leave. */
static bool take_keys(struct watching *w, bool *ret_signal)
{
    for (enum view_event e = view_next(); e != VIEW_NOTHING; e = view_next()) {
        *ret_signal = e == VIEW_SIGNAL;
        w->left |= e == VIEW_KEY && (view_key() == 'q' || view_key() == 'Q');
        if (*ret_signal || w->left)
            return false;
        w->dirty = true;
        w->drawn_ms = 0;
    }
    return true;
}

static bool is_over(const struct watching *w)
{
    return w->ended || live_state(w->live) == LIVE_OVER || live_state(w->live) == LIVE_REFUSED;
}

static void follow_in_view(struct watching *w)
{
    int fds[VIEW_FDS];
    bool by_signal = false;

    view_open(&w->term, false);
    while (take_keys(w, &by_signal) && !is_over(w)) {
        ask_why(w, clock_steady_ms());
        if (until_drawing(w) <= 0)
            draw(w, false);
        live_wait(w->live, fds, view_fds(fds), max_i64(until_drawing(w), 0));
    }
    draw(w, true);
    view_close();
    if (by_signal)
        view_die();
}

/* Reports a broken connection once on standard error. */
static void follow_in_lines(struct watching *w)
{
    bool broken = false;

    while (!is_over(w)) {
        live_wait(w->live, NULL, 0, DRAW_MAX_MS);
        bool trouble =
            live_state(w->live) == LIVE_CONNECTING && *live_trouble(w->live) && !is_over(w);
        if (trouble && !broken)
            verb_failed(w->in, 0, "not connected: %s; trying again", live_trouble(w->live));
        broken = trouble;
        if (ferror(stdout))
            return;
    }
}

/* ---- the verb ---- */

static void add_filter(struct buf *path, const struct invocation *in, const char *flag)
{
    const char *value = given(in, flag);

    if (!value)
        return;
    buf_fmt(path, "%c%s=", strchr(path->ptr, '?') ? '&' : '?', flag);
    client_escape(path, slice_of(value));
}

static void take_event_of_all(void *arg, const struct event *e)
{
    struct watching *w = arg;
    CLEANUP(buf_fini) struct buf b = {0};

    if (w->json) {
        print_json(e->name, e->data);
    } else if (slice_is(e->name, "task")) {
        watch_line_of_all(e->data, &w->term, server_now(w), &b);
        print(&b);
    } else if (slice_is(e->name, "gap")) {
        verb_failed(w->in, 0, "some changes were missed: `intact list` shows how it stands");
    }
}

static int finish(struct watching *w)
{
    if (ferror(stdout))
        return verb_failed(w->in, CLI_NOT_WELL, "cannot write the output");
    if (live_state(w->live) == LIVE_REFUSED)
        return verb_failed(w->in, CLI_NOT_WELL, "%s", live_trouble(w->live));
    return w->task.task && watched_has_ended(&w->task) ? client_task_status(w->task.task)
                                                       : CLI_NOT_WELL;
}

/* Follows `path`, which was called before, so that errors are reported as for all verbs. */
static int follow(struct watching *w, struct intact_client *c, const char *path, bool of_task)
{
    w->live = client_begin_live(w->in, c);
    w->offset_ms = client_clock_offset(c);
    live_follow(w->live, path, of_task ? take_event : take_event_of_all, w);
    if (w->view)
        follow_in_view(w);
    else
        follow_in_lines(w);
    int status = finish(w);
    live_free(w->live);
    watched_fini(&w->task);
    buf_fini(&w->why_path);
    return status;
}

static int watch_task(struct watching *w, struct intact_client *c)
{
    CLEANUP(buf_fini) struct buf path = {0};
    enum intact_status status = intact_client_get(c, w->in->words[0], 0);

    if (given(w->in, "workflow") || given(w->in, "state"))
        return verb_misused(w->in, "--workflow and --state choose among all tasks; leave TASK out");
    if (status != INTACT_OK)
        return client_complain(c, status);
    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(w->in->words[0]));
    buf_fmt(&w->why_path, "%s/why", path.ptr);
    buf_str(&path, "/events");
    w->view = w->term.live && !w->json;
    return follow(w, c, path.ptr, true);
}

static int watch_all(struct watching *w, struct intact_client *c)
{
    CLEANUP(buf_fini) struct buf path = {0};
    enum intact_status status = intact_client_call(c, "GET", "/v1/nodes", NULL, NULL, 0);

    if (status != INTACT_OK)
        return client_complain(c, status);
    buf_str(&path, "/v1/events");
    add_filter(&path, w->in, "workflow");
    add_filter(&path, w->in, "state");
    return follow(w, c, path.ptr, false);
}

static int run(struct invocation *in)
{
    struct watching w = {.in = in, .json = given(in, "json") != NULL};
    enum term_color color = TERM_AUTO;

    if (!given_color(in, &color))
        return CLI_USAGE;
    term_begin(&w.term, STDOUT_FILENO, color);
    struct intact_client *c = client_begin(in);
    int status = in->word_count > 0 ? watch_task(&w, c) : watch_all(&w, c);
    intact_client_free(c);
    return status;
}

static const struct flag flags[] = {
    {.name = "workflow",
     .value = "NAME",
     .help = "without TASK: only tasks of this workflow",
     .kind = WORD_WORKFLOW},
    {.name = "state",
     .value = "STATE",
     .help = "without TASK: only tasks that enter this state; several separated by commas",
     .kind = WORD_CHOICES,
     .choices = "pending processing processed compensating compensated error"},
    {0},
};

const struct verb verb_watch = {
    .name = "watch",
    .summary = "follow a task to its end, or all tasks",
    .about = "Follows a task to its end. A terminal shows a live view, which q or "
             "Ctrl-C leaves. Without a terminal each change is a line: time, step "
             "(- for the task), state, attempt, outcome.\n\nWithout TASK, each "
             "change of any task is a line, from now on, until Ctrl-C.\n\nThe "
             "command reconnects, and misses no change of a task. With --json each "
             "event is one line: {\"event\", \"data\"}, as sent by the server.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact watch o-17", "watch it run"},
                 {"intact watch o-17 > o-17.log && echo well", "log the changes"},
                 {"intact watch --state error", "tasks that stop in error from now on"},
                 {"intact watch --workflow order --json | jq -c .data", "for programs"}},
    .exits = "1 if the task did not end as processed, or the view was left before",
    .run = run,
};
