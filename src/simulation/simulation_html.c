/* Writes what a simulation found out (simulation.h) as one page that needs nothing else: no script,
 * no picture and no font from elsewhere. Stories, and the pictures of ends, are folded until they
 * are asked for. */

#include "base/when.h"
#include "definition/definition.h"
#include "picture/picture.h"
#include "simulation/simulation.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;vertical-align:top;padding:.4rem .8rem .4rem 0;"
    "border-bottom:1px solid #8886}\n"
    "pre,details{overflow-x:auto}pre{font-size:.85rem}\n"
    ".wrong{color:#b3261e}.look{color:#8a5a00}\n"
    "@media (prefers-color-scheme:dark){.wrong{color:#ff8a80}.look{color:#ffc46b}}\n"
    "</style>\n";

static void escaped(struct buf *b, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '&' || c == '<' || c == '>' || c == '"')
            buf_fmt(b, "&#%d;", c);
        else
            buf_byte(b, c);
    }
}

static void element(struct buf *b, const char *name, const char *class, struct slice text)
{
    buf_fmt(b, "<%s%s%s%s>", name, class ? " class=\"" : "", class ? class : "", class ? "\"" : "");
    escaped(b, text);
    buf_fmt(b, "</%s>\n", name);
}

/* ---- stories ---- */

static void write_faults(struct buf *b, const struct story *s)
{
    if (s->faults.count == 0)
        buf_str(b, "<p>Nothing goes wrong.</p>\n");
    else
        buf_str(b, "<ol>\n");
    for (size_t i = 0; i < s->faults.count; i++) {
        CLEANUP(buf_fini) struct buf told = {0};
        fault_tell(&told, &s->faults.list[i]);
        element(b, "li", NULL, buf_view(&told));
    }
    buf_str(b, s->faults.count > 0 ? "</ol>\n" : "");
}

static void write_story(struct buf *b, const struct story *s)
{
    if (!s->test)
        return;
    write_faults(b, s);
    buf_str(b, "<details><summary>What happens in test ");
    escaped(b, slice_of(s->test->name));
    buf_str(b, "</summary>\n<pre>");
    for (size_t i = 0; i < s->line_count; i++) {
        escaped(b, s->lines[i]);
        buf_byte(b, '\n');
    }
    buf_str(b, "</pre></details>\n");
}

/* ---- findings ---- */

static void write_finding(struct buf *b, const struct finding *f)
{
    bool is_wrong = finding_level(f->kind) == LEVEL_WRONG;
    CLEANUP(buf_fini) struct buf title = {0};

    buf_fmt(&title, "%s %s: %s", is_wrong ? "Wrong," : "Worth a look,", finding_word(f->kind),
            finding_text(f->kind));
    element(b, "h3", is_wrong ? "wrong" : "look", buf_view(&title));
    if (f->rule)
        element(b, "pre", NULL, f->rule->text);
    buf_str(b, "<p>");
    if (f->subject.ptr && !f->rule) {
        element(b, "b", NULL, f->subject);
        buf_str(b, ": ");
    }
    escaped(b, f->text);
    buf_str(b, "</p>\n");
    write_story(b, &f->story);
}

static void write_findings(const struct simulation *v, struct buf *b)
{
    buf_str(b, "<h2>Findings</h2>\n");
    if (v->finding_count == 0)
        buf_str(b, "<p>None.</p>\n");
    for (size_t i = 0; i < v->finding_count; i++)
        write_finding(b, &v->findings[i]);
}

/* ---- ends ---- */

enum { DRAWN_ENDS_MAX = 20, DRAWN_STEPS_MAX = 60 };

static const struct picture_legend end_legend = {
    "done", "undone, or still open", "failed",
    "A solid border means that the step is done, a dashed one that it failed."};

static void mark_step(struct slice state, struct picture_step *ret)
{
    ret->lines = state;
    if (slice_is(state, "completed"))
        ret->mark = PICTURE_REACHED;
    else if (slice_is(state, "failed"))
        ret->mark = PICTURE_MISSED;
    else
        ret->mark = slice_is(state, "skipped") ? PICTURE_PLAIN : PICTURE_PARTLY;
    if (slice_is(state, "undone"))
        ret->undo_mark = PICTURE_REACHED;
}

/* The workflow with the states of its steps. */
static void draw_end(const struct simulation *v, const struct reached_end *e, struct buf *b)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(picture_fini) struct picture p = {.legend = &end_legend};
    const struct workflow *w = &v->suite->definition->workflow;
    struct picture_step *steps = arena_alloc(&a, (w->step_count + 1U) * sizeof *steps);
    struct json *states = NULL;

    enum err err = json_parse(&a, e->end.steps, &states, NULL);
    ASSERT(err == ERR_OK); /* our own text */
    for (const struct json *m = states->child; m; m = m->next) {
        int i = workflow_step_index(w, m->key);
        ASSERT(i >= 0);
        mark_step(m->text, &steps[i]);
    }
    picture_add(&p, &(struct picture_graph){.workflow = w, .steps = steps});
    buf_str(b, "<details><summary>Picture</summary>\n");
    picture_write(&p, slice_of(task_state_text(e->end.state)), b);
    buf_str(b, "</details>\n");
}

static void write_end(const struct simulation *v, struct buf *b, const struct reached_end *e,
                      bool is_drawn)
{
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(buf_fini) struct buf time = {0};

    if (!e->end.is_end)
        buf_fmt(&name, "does not end: %.*s", SLICE_ARG(e->end.waits));
    else
        buf_fmt(&name, "%s%s%.*s", task_state_text(e->end.state), e->end.code.ptr ? ", " : "",
                SLICE_ARG(e->end.code));
    duration_tell(&time, e->longest_ms);
    buf_str(b, "<tr><td>");
    element(b, "b", e->end.state == TASK_ERROR || !e->end.is_end ? "wrong" : NULL, buf_view(&name));
    element(b, "pre", NULL, e->end.steps);
    if (is_drawn && e->end.is_end)
        draw_end(v, e, b);
    if (e->summary.len > 0) {
        element(b, "p", NULL, e->summary);
        element(b, "pre", NULL, e->moves);
    }
    buf_fmt(b, "</td><td>%" PRIu64 "</td><td>%s</td><td>", e->count,
            e->longest_ms > 0 ? time.ptr : "");
    write_story(b, &e->story);
    buf_str(b, "</td></tr>\n");
}

static void write_ends(const struct simulation *v, struct buf *b)
{
    bool is_small = v->suite->definition->workflow.step_count <= DRAWN_STEPS_MAX;

    buf_str(b, "<h2>Ends</h2>\n<table><thead><tr><th>End</th><th>Runs</th><th>Longest</th>"
               "<th>Shortest story</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < v->end_count; i++)
        write_end(v, b, v->ends[i], is_small && i < DRAWN_ENDS_MAX);
    buf_str(b, "</tbody></table>\n");
}

static void write_longest(const struct simulation *v, struct buf *b)
{
    CLEANUP(buf_fini) struct buf time = {0};

    if (!v->longest.test)
        return;
    duration_tell(&time, v->longest_ms);
    buf_fmt(b, "<h2>Longest time to an end: %s</h2>\n", time.ptr);
    write_story(b, &v->longest);
}

static void write_reached(const struct simulation *v, struct buf *b)
{
    CLEANUP(buf_fini) struct buf table = {0};

    (void)coverage_write(&v->coverage, &table); /* what was missed is a finding of its own */
    CLEANUP(picture_fini) struct picture p = {0};

    buf_str(b, "<h2>What was reached</h2>\n");
    coverage_draw(&v->coverage, slice_of(v->suite->file), &p);
    picture_write(&p, SLICE("What the runs reached"), b);
    element(b, "pre", NULL, buf_view(&table));
}

void simulation_write_html(const struct simulation *v, struct buf *b)
{
    CLEANUP(buf_fini) struct buf title = {0};

    buf_fmt(&title, "Simulation of %.*s", SLICE_ARG(v->suite->definition->workflow.name));
    buf_str(b, head);
    element(b, "title", NULL, buf_view(&title));
    element(b, "h1", NULL, buf_view(&title));
    buf_str(b, "<p>");
    escaped(b, slice_of(v->suite->file));
    buf_fmt(b, ": %" PRIu64 " runs, ", v->runs);
    if (v->depth > 0)
        buf_fmt(b, "all orders of up to %u faults.</p>\n", v->depth);
    else
        buf_fmt(b, "seed %" PRIu64 ".</p>\n", v->seed);
    write_findings(v, b);
    write_ends(v, b);
    write_longest(v, b);
    write_reached(v, b);
    buf_str(b, "</html>\n");
}
