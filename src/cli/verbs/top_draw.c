/* Draws `intact top` into lines: the server, counts, rates, agents and errors, within the given
 * width and height (top.h). Calls no server and reads no clock; terminal/term_view.c shows the
 * lines. */

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "cli/verbs/top.h"

enum { LABEL_WIDTH = 10, AGENT_WIDTH = 20, NUMBER_WIDTH = 10, FIXED_LINES = 9, ID_WIDTH = 24 };

static const struct top_sample *latest(const struct top *t)
{
    return &t->samples[t->current];
}

static const struct top_sample *earlier(const struct top *t)
{
    return &t->samples[!t->current];
}

static int64_t time_of(const struct json *j, const char *key)
{
    int64_t at = 0;

    return time_parse(json_get_text(j, key), &at) ? at : 0;
}

static void put(struct line *l, enum term_look look, const struct buf *b)
{
    line_text(l, look, buf_view(b));
}

static void put_duration(struct line *l, enum term_look look, const char *before, int64_t ms)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, before);
    people_duration(&b, ms);
    put(l, look, &b);
}

/* ---- the server ---- */

static void put_bytes(struct line *l, const char *name, const struct json *files, const char *key)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t bytes = json_get_int(files, key, -1);

    if (bytes < 0)
        return;
    buf_str(&b, name);
    people_bytes(&b, bytes);
    put(l, LOOK_PLAIN, &b);
}

static void draw_server(const struct top *t, const struct top_view *v, struct line *l)
{
    const struct json *s = latest(t)->stats;
    const struct json *files = json_get(s, "store_files");
    CLEANUP(buf_fini) struct buf clock = {0};
    struct slice trouble = json_get_text(s, "trouble");

    line_fmt(l, LOOK_STRONG, "intact %.*s", SLICE_ARG(json_get_text(s, "version")));
    line_fmt(l, LOOK_PLAIN, "  node %.*s%s", SLICE_ARG(json_get_text(s, "node")),
             json_get_bool(s, "leads", false) ? ", supervisor leads" : "");
    put_duration(l, LOOK_PLAIN, "  up ", latest(t)->now - time_of(s, "started_at"));
    put_bytes(l, "  store ", files, "database");
    put_bytes(l, " + WAL ", files, "wal");
    people_time(&clock, latest(t)->now, v->now);
    line_text(l, LOOK_PLAIN, SLICE("  "));
    put(l, LOOK_FAINT, &clock);
    line_fmt(l, LOOK_FAINT, "  %s", v->server);
    line_end(l);
    if (trouble.len > 0) {
        line_fmt(l, LOOK_BAD, "the store fails: %.*s", SLICE_ARG(trouble));
        line_end(l);
    }
    int64_t alerts = json_get_int(s, "alerts_open", 0);
    if (alerts > 0) {
        line_fmt(l, LOOK_BAD, "%" PRId64 " alert%s open: intact alert list", alerts,
                 alerts == 1 ? " is" : "s are");
        line_end(l);
    }
    if (*v->trouble) {
        line_fmt(l, LOOK_BAD, "not connected: %s; trying again", v->trouble);
        line_end(l);
    }
}

/* ---- counts and rates ---- */

static void put_count(struct line *l, const struct json *stored, const char *name)
{
    bool sleeping = strcmp(name, "sleeping") == 0;
    int64_t n = json_get_int(stored, name, 0);
    int64_t most = json_get_int(stored, sleeping ? "agents_counted_to" : "counted_to", INT64_MAX);
    enum term_look look = n == 0 ? LOOK_FAINT : term_state_look(slice_of(name));

    line_fmt(l, LOOK_FAINT, "  %s ", name);
    line_fmt(l, look, "%" PRId64 "%s", n, n >= most ? "+" : "");
}

static void draw_stored(const struct top *t, struct line *l)
{
    const struct json *stored = json_get(latest(t)->stats, "stored");
    int64_t since = time_of(stored, "overdue_since");

    line_cell(l, LOOK_TITLE, SLICE("TASKS"), LABEL_WIDTH);
    if (!stored || stored->type != JSON_OBJECT) {
        line_text(l, LOOK_FAINT, SLICE("  this store does not count them"));
        line_end(l);
        return;
    }
    put_count(l, stored, "pending");
    put_count(l, stored, "sleeping");
    put_count(l, stored, "processing");
    put_count(l, stored, "compensating");
    put_count(l, stored, "compensated");
    put_count(l, stored, "error");
    line_end(l);
    int64_t overdue = json_get_int(stored, "overdue", 0);
    line_cell(l, LOOK_TITLE, SLICE("OVERDUE"), LABEL_WIDTH);
    line_fmt(l, overdue ? LOOK_BAD : LOOK_FAINT, "  %" PRId64 "%s", overdue,
             overdue >= json_get_int(stored, "counted_to", INT64_MAX) ? "+" : "");
    if (since)
        put_duration(l, LOOK_BAD, ", oldest for ", max_i64(latest(t)->now - since, 0));
    line_end(l);
}

/* Per second between the two samples; negative: unknown. */
static double rate_between(const struct top *t, const struct json *now, const struct json *before,
                           const char *key)
{
    const struct json *s = latest(t)->stats;
    const struct json *e = earlier(t)->stats;
    int64_t ms = latest(t)->now - earlier(t)->now;

    if (!e || !before || ms <= 0
        || !slice_eq(json_get_raw(s, "boot"), json_get_raw(e, "boot"))    /* it was restarted */
        || !slice_eq(json_get_text(s, "node"), json_get_text(e, "node"))) /* another node */
        return -1;
    int64_t more = json_get_int(now, key, 0) - json_get_int(before, key, 0);
    return more < 0 ? -1 : (double)more * 1000 / (double)ms;
}

static double rate_of(const struct top *t, const char *key)
{
    return rate_between(t, json_get(latest(t)->stats, "counters"),
                        json_get(earlier(t)->stats, "counters"), key);
}

static void write_rate(struct buf *b, double rate)
{
    if (rate < 0)
        buf_byte(b, '-');
    else
        people_rate(b, rate);
}

static void put_rate(struct line *l, const struct top *t, const char *name, const char *key,
                     enum term_look look)
{
    CLEANUP(buf_fini) struct buf b = {0};
    double rate = rate_of(t, key);

    write_rate(&b, rate);
    line_fmt(l, LOOK_FAINT, "  %s ", name);
    put(l, rate > 0 ? look : LOOK_FAINT, &b);
}

static void draw_rates(const struct top *t, struct line *l)
{
    double changes = rate_of(t, "state_changes");
    double batches = rate_of(t, "batches");

    line_cell(l, LOOK_TITLE, SLICE("A SECOND"), LABEL_WIDTH);
    put_rate(l, t, "submitted", "submitted", LOOK_PLAIN);
    put_rate(l, t, "processed", "processed", LOOK_GOOD);
    put_rate(l, t, "compensated", "compensated", LOOK_BACK);
    put_rate(l, t, "error", "error", LOOK_BAD);
    put_rate(l, t, "failures", "attempts_failed", LOOK_BAD);
    put_rate(l, t, "timeouts", "attempts_timed_out", LOOK_BAD);
    line_end(l);
    line_cell(l, LOOK_PLAIN, SLICE(""), LABEL_WIDTH);
    put_rate(l, t, "state changes", "state_changes", LOOK_PLAIN);
    put_rate(l, t, "commits", "batches", LOOK_PLAIN);
    if (batches > 0)
        line_fmt(l, LOOK_FAINT, ", %.1f changes each", changes / batches);
    line_end(l);
}

/* ---- agents ---- */

struct agent_row {
    const struct json *now, *before;
    int64_t waiting;
    double failed;
    enum top_sort sort;
};

static const struct json *agent_named(const struct json *stats, struct slice name)
{
    const struct json *list = json_get(stats, "agents");

    for (const struct json *a = list ? list->child : NULL; a; a = a->next)
        if (slice_eq(json_get_text(a, "agent"), name))
            return a;
    return NULL;
}

static int by_name(const struct agent_row *a, const struct agent_row *b)
{
    return slice_order(json_get_text(a->now, "agent"), json_get_text(b->now, "agent"));
}

static int compare(const void *x, const void *y)
{
    const struct agent_row *a = x;
    const struct agent_row *b = y;

    if (a->sort == TOP_BY_WAITING && a->waiting != b->waiting)
        return a->waiting < b->waiting ? 1 : -1;
    if (a->sort == TOP_BY_FAILED && (a->failed < b->failed || a->failed > b->failed))
        return a->failed < b->failed ? 1 : -1;
    return by_name(a, b);
}

static void cell(struct line *l, enum term_look look, const char *text, int width)
{
    line_cell_right(l, look, slice_of(text), width);
}

static void cell_number(struct line *l, int64_t n, bool more)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64 "%s", n, more ? "+" : "");
    cell(l, n ? LOOK_PLAIN : LOOK_FAINT, text, NUMBER_WIDTH);
}

static void cell_rate(struct line *l, double rate, enum term_look look)
{
    CLEANUP(buf_fini) struct buf b = {0};

    write_rate(&b, rate);
    cell(l, rate > 0 ? look : LOOK_FAINT, b.ptr, NUMBER_WIDTH);
}

static void draw_agent(const struct top *t, const struct agent_row *r, struct line *l)
{
    const struct json *a = r->now;
    bool connected = json_get_bool(a, "connected", false);
    int64_t most =
        json_get_int(json_get(latest(t)->stats, "stored"), "agents_counted_to", INT64_MAX);
    int64_t first = time_of(a, "first_submitted_at");
    CLEANUP(buf_fini) struct buf since = {0};

    line_cell(l, connected ? LOOK_PLAIN : LOOK_BAD, json_get_text(a, "agent"), AGENT_WIDTH);
    cell(l, connected ? LOOK_GOOD : LOOK_BAD, connected ? "yes" : "no", NUMBER_WIDTH);
    cell_number(l, r->waiting, json_get_int(a, "waiting_tasks", 0) >= most);
    cell_number(l, json_get_int(a, "open_attempts", 0), false);
    cell_number(l, json_get_int(a, "places", 0), false);
    cell_number(l, json_get_int(a, "instances", 0), false);
    cell_rate(l, rate_between(t, a, r->before, "completed"), LOOK_GOOD);
    cell_rate(l, r->failed, LOOK_BAD);
    if (first)
        people_duration(&since, max_i64(latest(t)->now - first, 0));
    else
        buf_byte(&since, '-');
    cell(l, first ? LOOK_PLAIN : LOOK_FAINT, since.ptr, NUMBER_WIDTH);
    struct slice held = json_get_text(a, "held_by");
    if (held.ptr)
        line_fmt(l, LOOK_BAD, "  %.*s", SLICE_ARG(held));
    line_end(l);
}

static void draw_agent_titles(struct line *l)
{
    static const char *const titles[] = {"CONNECTED", "WAITING", "AT WORK",  "PLACES",
                                         "INSTANCES", "DONE/s",  "FAILED/s", "FIRST FOR"};

    line_cell(l, LOOK_TITLE, SLICE("AGENT"), AGENT_WIDTH);
    for (size_t i = 0; i < COUNT_OF(titles); i++)
        cell(l, LOOK_TITLE, titles[i], NUMBER_WIDTH);
    line_text(l, LOOK_TITLE, SLICE("  HELD BY"));
    line_end(l);
}

/* Without a screen all agents are shown. */
static size_t room_for_agents(const struct top *t, const struct top_view *v)
{
    int taken = FIXED_LINES + (t->error_count > 0 ? 2 + (int)t->error_count : 0);

    return !v->term->live || v->term->height - taken < 1 ? (v->term->live ? 1 : SIZE_MAX)
                                                         : (size_t)(v->term->height - taken);
}

static void draw_agents(const struct top *t, const struct top_view *v, struct line *l)
{
    const struct json *agents = json_get(latest(t)->stats, "agents");
    size_t count = agents ? agents->count : 0;
    size_t room = room_for_agents(t, v);
    struct agent_row *rows = calloc(count + 1, sizeof *rows);
    size_t n = 0;

    if (!rows)
        abort();
    for (const struct json *a = agents ? agents->child : NULL; a; a = a->next) {
        struct agent_row *r = &rows[n++];
        r->now = a;
        r->before = agent_named(earlier(t)->stats, json_get_text(a, "agent"));
        r->waiting = json_get_int(a, "waiting_steps", 0) + json_get_int(a, "waiting_tasks", 0);
        r->failed = rate_between(t, a, r->before, "failed");
        r->sort = t->sort;
    }
    qsort(rows, n, sizeof *rows, compare);
    draw_agent_titles(l);
    for (size_t i = 0; i < n && i < room; i++)
        draw_agent(t, &rows[i], l);
    if (n > room) {
        line_fmt(l, LOOK_FAINT, "%zu of %zu agents", room, n);
        line_end(l);
    } else if (n == 0) {
        line_text(l, LOOK_FAINT, SLICE("no agent has called, and nothing waits for one"));
        line_end(l);
    }
    free(rows);
}

/* ---- tasks in error ---- */

static void draw_errors(const struct top *t, const struct top_view *v, struct line *l)
{
    if (t->error_count == 0)
        return;
    line_end(l);
    line_cell(l, LOOK_TITLE, SLICE("IN ERROR"), ID_WIDTH + 2);
    line_cell(l, LOOK_TITLE, SLICE("SINCE"), 18);
    line_cell(l, LOOK_TITLE, SLICE("WORKFLOW"), 16);
    line_text(l, LOOK_TITLE, SLICE("WHY"));
    line_end(l);
    for (size_t i = 0; i < t->error_count; i++) {
        const struct top_error *e = &t->errors[i];
        CLEANUP(buf_fini) struct buf since = {0};
        int64_t at = 0;
        if (time_parse(buf_view(&e->ended_at), &at))
            people_time(&since, at, v->now);
        line_cell(l, LOOK_PLAIN, buf_view(&e->id), ID_WIDTH);
        line_text(l, LOOK_PLAIN, SLICE("  "));
        line_cell(l, LOOK_PLAIN, buf_view(&since), 18);
        line_cell(l, LOOK_PLAIN, buf_view(&e->workflow), 15);
        line_text(l, LOOK_PLAIN, SLICE(" "));
        line_text(l, LOOK_BAD, buf_view(&e->reason));
        line_end(l);
    }
}

void top_draw(const struct top *t, const struct top_view *v, struct buf *b)
{
    struct line l = line_begin(v->term, b);

    draw_server(t, v, &l);
    line_end(&l);
    draw_stored(t, &l);
    draw_rates(t, &l);
    line_end(&l);
    draw_agents(t, v, &l);
    draw_errors(t, v, &l);
    if (v->keys) {
        line_end(&l);
        line_fmt(&l, LOOK_FAINT, "q quits   s sorts agents by waiting, name or failures (now: %s)",
                 top_sort_text(t->sort));
        line_end(&l);
    }
}
