/* `intact top`: asks the server for statistics again and again on one connection
 * (client/live_stream.h), and shows them in a view or as text. top_data.c keeps the samples,
 * top_draw.c draws them. */

#include "cli/verbs/top.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client/client.h"
#include "cli/client/live_stream.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"

enum { EVERY_MS = 1000, EVERY_MIN_MS = 100, DRAW_MIN_MS = 100 };

struct watching {
    const struct invocation *in;
    struct intact_client *client;
    struct live *live;
    struct term term;
    struct top top;
    int64_t every_ms;
    int64_t asked_ms; /* steady; of the latest round */
    int64_t drawn_ms;
    bool json, once;
    bool dirty;
    unsigned rounds; /* of answers */
    struct buf trouble;
};

/* ---- answers ---- */

/* One line, for people. */
static void note_trouble(struct watching *w, const struct live_answer *a)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json *problem = NULL;

    buf_clear(&w->trouble);
    w->dirty = true;
    if (a->status == 200)
        return;
    if (a->status == 0)
        buf_slice(&w->trouble, a->body);
    else if (json_parse(&arena, a->body, &problem, NULL) == ERR_OK)
        buf_slice(&w->trouble, json_get_text(problem, "detail"));
    if (w->trouble.len == 0)
        buf_fmt(&w->trouble, "the server answered with status %d", a->status);
}

static void take_stats(void *arg, const struct live_answer *a)
{
    struct watching *w = arg;

    note_trouble(w, a);
    if (a->status != 200)
        return;
    if (!top_take_stats(&w->top, a->body)) {
        buf_str(&w->trouble, "it does not answer like an Intact server");
        return;
    }
    w->rounds++;
    if (w->json) {
        print_text(stdout, a->body);
        putchar('\n');
        (void)fflush(stdout); /* write errors are detected in the loop */
    }
}

static void explain_next(struct watching *w);

static void take_reason(void *arg, const struct live_answer *a)
{
    struct watching *w = arg;

    if (a->status != 200)
        return; /* again in the next round */
    top_take_reason(&w->top, a->body);
    w->dirty = true;
    explain_next(w);
}

/* One at a time, newest first. */
static void explain_next(struct watching *w)
{
    CLEANUP(buf_fini) struct buf path = {0};
    const struct top_error *e = top_unexplained(&w->top);

    if (!e)
        return;
    buf_str(&path, "/v1/tasks/");
    client_escape(&path, buf_view(&e->id));
    (void)live_get(w->live, path.ptr, take_reason, w); /* or in the next round */
}

static void take_errors(void *arg, const struct live_answer *a)
{
    struct watching *w = arg;

    if (a->status != 200)
        return;
    top_take_errors(&w->top, a->body);
    w->dirty = true;
    explain_next(w);
}

static void ask(struct watching *w)
{
    CLEANUP(buf_fini) struct buf path = {0};

    w->asked_ms = clock_steady_ms();
    (void)live_get(w->live, "/v1/stats", take_stats, w); /* or in the next round */
    if (w->json)
        return;
    buf_fmt(&path, "/v1/tasks?state=error&closed=false&limit=%d", TOP_ERRORS);
    (void)live_get(w->live, path.ptr, take_errors, w);
}

/* A round begins once the previous one was answered. */
static int64_t until_asking(const struct watching *w)
{
    int64_t left = w->asked_ms + w->every_ms - clock_steady_ms();

    return live_is_asking(w->live) ? max_i64(left, DRAW_MIN_MS) : max_i64(left, 0);
}

/* ---- showing ---- */

static void draw(struct watching *w, bool keys, struct buf *b)
{
    const struct top_view v = {&w->term, live_server(w->live), buf_view(&w->trouble).ptr,
                               clock_wall_ms(), keys};

    if (w->top.samples[w->top.current].stats)
        top_draw(&w->top, &v, b);
}

static void draw_view(struct watching *w)
{
    CLEANUP(buf_fini) struct buf b = {0};

    draw(w, true, &b);
    view_draw(buf_view(&b), false);
    w->drawn_ms = clock_steady_ms();
    w->dirty = false;
}

/* False: leave. */
static bool take_keys(struct watching *w, bool *ret_signal)
{
    for (enum view_event e = view_next(); e != VIEW_NOTHING; e = view_next()) {
        int key = e == VIEW_KEY ? view_key() : 0;
        *ret_signal = e == VIEW_SIGNAL;
        if (*ret_signal || key == 'q' || key == 'Q')
            return false;
        if (key == 's' || key == 'S')
            w->top.sort = (w->top.sort + 1) % TOP_SORTS;
        w->dirty = true;
        w->drawn_ms = 0;
    }
    return true;
}

static void run_view(struct watching *w)
{
    int fds[VIEW_FDS];
    bool by_signal = false;

    view_open(&w->term, true);
    while (take_keys(w, &by_signal)) {
        int64_t left = w->drawn_ms + DRAW_MIN_MS - clock_steady_ms();
        if (w->dirty && left <= 0)
            draw_view(w);
        if (until_asking(w) == 0)
            ask(w);
        live_wait(w->live, fds, view_fds(fds),
                  w->dirty ? min_i64(max_i64(left, 0), until_asking(w)) : until_asking(w));
    }
    view_close();
    if (by_signal)
        view_die();
}

/* Rates need two answers; by then other requests must be answered, too. */
static bool is_done(const struct watching *w)
{
    if (w->json)
        return w->once && w->rounds > 0;
    return w->rounds > 1 && !live_is_asking(w->live);
}

static int run_text(struct watching *w)
{
    CLEANUP(buf_fini) struct buf b = {0};

    while (!is_done(w) && !ferror(stdout)) {
        if (w->trouble.len > 0 && !(w->json && !w->once))
            return verb_failed(w->in, CLI_UNREACHED, "%s", w->trouble.ptr);
        if (until_asking(w) == 0)
            ask(w);
        live_wait(w->live, NULL, 0, until_asking(w));
    }
    if (!w->json)
        draw(w, false, &b);
    (void)fwrite(b.len ? b.ptr : "", 1, b.len, stdout);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? CLI_OK
               : verb_failed(w->in, CLI_NOT_WELL, "cannot write the output");
}

/* ---- the verb ---- */

static bool read_sort(struct watching *w)
{
    const char *sort = given(w->in, "sort");

    for (int s = 0; sort && s < TOP_SORTS; s++) {
        if (strcmp(sort, top_sort_text((enum top_sort)s)) != 0)
            continue;
        w->top.sort = (enum top_sort)s;
        return true;
    }
    if (sort)
        verb_misused(w->in, "--sort is \"%s\", expected waiting, agent or failed", sort);
    return !sort;
}

static bool read_flags(struct watching *w)
{
    enum term_color color = TERM_AUTO;

    if (!given_duration(w->in, "every", &w->every_ms) || !read_sort(w)
        || !given_color(w->in, &color))
        return false;
    if (w->every_ms < EVERY_MIN_MS) {
        verb_misused(w->in, "--every is less than %d ms", EVERY_MIN_MS);
        return false;
    }
    w->json = given(w->in, "json");
    w->once = given(w->in, "once");
    term_begin(&w->term, STDOUT_FILENO, color);
    return true;
}

static int run(struct invocation *in)
{
    struct watching w = {.in = in, .every_ms = EVERY_MS};
    int status = CLI_OK;

    if (!read_flags(&w))
        return CLI_USAGE;
    w.client = client_begin(in);
    /* A first ordinary call, so that errors are reported as for all verbs. */
    enum intact_status first = intact_client_call(w.client, "GET", "/v1/stats", NULL, NULL, 0);
    if (first != INTACT_OK) {
        status = client_complain(w.client, first);
        intact_client_free(w.client);
        return status;
    }
    w.live = client_begin_live(in, w.client);
    w.asked_ms = clock_steady_ms() - w.every_ms;
    if (w.term.live && !w.once && !w.json)
        run_view(&w);
    else
        status = run_text(&w);
    live_free(w.live);
    intact_client_free(w.client);
    top_fini(&w.top);
    buf_fini(&w.trouble);
    return status;
}

static const struct flag flags[] = {
    {.name = "every", .value = "TIME", .help = "interval of updates", .initial = "1s"},
    {.name = "once", .help = "print once, as text; the default without a terminal"},
    {.name = "sort",
     .value = "BY",
     .help = "order of agents: waiting, agent or failed",
     .initial = "waiting",
     .kind = WORD_CHOICE,
     .choices = "waiting agent failed"},
    {0},
};

const struct verb verb_top = {
    .name = "top",
    .summary = "show a live summary of the server",
    .about = "Shows a live view of the server: tasks by state, overdue work, rates, "
             "queues of agents, and the newest tasks in error. s changes the order "
             "of agents, q quits.\n\nRates and the figures of agents are those of "
             "the node that answers. WAITING counts steps that wait for a place at "
             "an agent; FIRST FOR is the age of the next one.\n\nWith --json each "
             "update is the answer of GET /v1/stats, one per line.",
    .flags = flags,
    .examples = {{"intact top", "live view"},
                 {"intact top --once --every 10s", "rates over ten seconds, as text"},
                 {"intact top --json --every 1m >> stats.ndjson", "record statistics"}},
    .run = run,
};
