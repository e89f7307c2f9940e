/* Writes what a simulation found out (simulation.h), for people: findings first, then ends, what an
 * operator has to do, and what was never reached. */

#include "base/when.h"
#include "simulation/simulation.h"

enum { ENDS_TOLD_MAX = 20, LINES_TOLD_MAX = 40, STEPS_TOLD_MAX = 30, ALIKE_TOLD_MAX = 3 };

static void write_place(const struct simulation *v, struct buf *b, uint32_t at)
{
    uint32_t line = 0;
    uint32_t column = 0;

    suite_place(v->suite, at, &line, &column);
    buf_fmt(b, "%s:%u:%u", v->suite->file, line, column);
}

/* ---- stories ---- */

static void write_faults(const struct simulation *v, struct buf *b, const struct story *s,
                         const char *indent)
{
    if (v->test_count > 1)
        buf_fmt(b, "%stest: %s\n", indent, s->test->name);
    if (s->faults.count == 0)
        buf_fmt(b, "%snothing goes wrong\n", indent);
    for (size_t i = 0; i < s->faults.count; i++) {
        buf_fmt(b, "%s%zu. ", indent, i + 1);
        fault_tell(b, &s->faults.list[i]);
        buf_byte(b, '\n');
    }
}

static void write_lines(struct buf *b, const struct story *s)
{
    for (size_t i = 0; i < s->line_count; i++) {
        if (i >= LINES_TOLD_MAX / 2 && s->line_count > LINES_TOLD_MAX
            && i < s->line_count - LINES_TOLD_MAX / 2) {
            if (i == LINES_TOLD_MAX / 2)
                buf_fmt(b, "      (%zu lines are left out)\n", s->line_count - LINES_TOLD_MAX);
            continue;
        }
        buf_fmt(b, "      %.*s\n", SLICE_ARG(s->lines[i]));
    }
}

static void write_indented(struct buf *b, struct slice text, const char *indent)
{
    size_t from = 0;

    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.ptr[i] != '\n')
            continue;
        if (i > from)
            buf_fmt(b, "%s%.*s\n", indent, (int)(i - from), text.ptr + from);
        from = i + 1;
    }
}

/* ---- findings ---- */

static void write_rule(const struct simulation *v, struct buf *b, const struct rule *r)
{
    buf_fmt(b, "    %s: %.*s", r->name, SLICE_ARG(r->text));
    if (r->at != UINT32_MAX) {
        buf_str(b, " (");
        write_place(v, b, r->at);
        buf_byte(b, ')');
    }
    buf_byte(b, '\n');
}

static void write_finding(const struct simulation *v, struct buf *b, const struct finding *f)
{
    buf_fmt(b, "\n%s %s: %s\n", finding_level(f->kind) == LEVEL_WRONG ? "WRONG" : "LOOK",
            finding_word(f->kind), finding_text(f->kind));
    if (f->rule)
        write_rule(v, b, f->rule);
    if (f->subject.ptr && !f->rule)
        buf_fmt(b, "    %.*s: ", SLICE_ARG(f->subject));
    else
        buf_str(b, "    ");
    buf_fmt(b, "%.*s\n", SLICE_ARG(f->text));
    if (!f->story.test)
        return;
    write_faults(v, b, &f->story, "    ");
    write_lines(b, &f->story);
}

/* ---- ends ---- */

static void write_end(struct buf *b, const struct run_end *e)
{
    if (!e->is_end)
        buf_fmt(b, "does not end: %.*s", SLICE_ARG(e->waits));
    else if (e->code.ptr)
        buf_fmt(b, "%s, %.*s", task_state_text(e->state), SLICE_ARG(e->code));
    else
        buf_str(b, task_state_text(e->state));
}

static void write_step(struct buf *b, const struct json *step)
{
    buf_fmt(b, "%.*s %.*s", SLICE_ARG(step->key), SLICE_ARG(step->text));
}

static size_t count_alike(const struct json *from, struct slice state)
{
    size_t n = 0;

    for (const struct json *m = from; m; m = m->next)
        n += slice_eq(m->text, state);
    return n;
}

/* "1000 steps: 999 completed, s7 failed" */
static void write_many_steps(struct buf *b, const struct json *steps, size_t count)
{
    const char *before = "";

    buf_fmt(b, "%zu steps: ", count);
    for (const struct json *m = steps; m; m = m->next) {
        size_t alike = count_alike(steps, m->text);
        bool is_first = count_alike(m, m->text) == alike;
        if (alike > ALIKE_TOLD_MAX && !is_first)
            continue;
        buf_str(b, before);
        before = ", ";
        if (alike > ALIKE_TOLD_MAX)
            buf_fmt(b, "%zu %.*s", alike, SLICE_ARG(m->text));
        else
            write_step(b, m);
    }
}

/* {"a":"completed"} as "a completed, b undone"; of many steps only those that differ from the rest
 * are named. */
static void write_steps(struct buf *b, struct slice steps)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    size_t count = 0;

    enum err err = json_parse(&a, steps, &j, NULL);
    ASSERT(err == ERR_OK); /* it was written by us */
    for (const struct json *m = j->child; m; m = m->next)
        count++;
    if (count == 0)
        return;
    buf_str(b, "    ");
    if (count > STEPS_TOLD_MAX) {
        write_many_steps(b, j->child, count);
    } else {
        for (const struct json *m = j->child; m; m = m->next) {
            write_step(b, m);
            buf_str(b, m->next ? ", " : "");
        }
    }
    buf_byte(b, '\n');
}

static void write_reached(const struct simulation *v, struct buf *b, size_t i)
{
    const struct reached_end *e = v->ends[i];

    buf_fmt(b, "  %zu. ", i + 1);
    write_end(b, &e->end);
    buf_fmt(b, ": %" PRIu64 " run%s", e->count, e->count == 1 ? "" : "s");
    if (e->longest_ms > 0) {
        buf_str(b, ", at most ");
        duration_tell(b, e->longest_ms);
    }
    buf_byte(b, '\n');
    write_steps(b, e->end.steps);
    write_faults(v, b, &e->story, "      ");
}

static void write_ends(const struct simulation *v, struct buf *b)
{
    buf_str(b, "\nends that were reached, with the shortest story of each:\n");
    for (size_t i = 0; i < v->end_count && i < ENDS_TOLD_MAX; i++)
        write_reached(v, b, i);
    if (v->end_count > ENDS_TOLD_MAX)
        buf_fmt(b, "  (%zu more: --json has them)\n", v->end_count - ENDS_TOLD_MAX);
}

static void write_errors(const struct simulation *v, struct buf *b)
{
    bool any = false;

    for (size_t i = 0; i < v->end_count && i < ENDS_TOLD_MAX; i++) {
        const struct reached_end *e = v->ends[i];
        if (!e->summary.ptr || e->summary.len == 0)
            continue;
        buf_str(b, any ? "" : "\nwhat an operator has to do:\n");
        any = true;
        buf_fmt(b, "  %zu. ", i + 1);
        write_end(b, &e->end);
        buf_byte(b, '\n');
        write_indented(b, e->summary, "    ");
        write_indented(b, e->moves, "      ");
    }
}

static void write_longest(const struct simulation *v, struct buf *b)
{
    if (!v->longest.test)
        return;
    buf_str(b, "\nlongest time to an end: ");
    duration_tell(b, v->longest_ms);
    buf_byte(b, '\n');
    write_faults(v, b, &v->longest, "    ");
}

/* ---- the whole ---- */

static void write_broken(const struct simulation *v, struct buf *b)
{
    if (v->broken_at != UINT32_MAX && !v->is_bare)
        write_place(v, b, v->broken_at);
    else
        buf_str(b, v->suite->file);
    buf_str(b, ": error: ");
    if (v->broken_rule)
        buf_fmt(b, "rule %s, %.*s: ", v->broken_rule->name, SLICE_ARG(v->broken_rule->text));
    buf_fmt(b, "%.*s\n", SLICE_ARG(v->broken));
    write_faults(v, b, &v->broken_story, "    ");
    if (v->is_bare)
        buf_str(
            b,
            "    A definition alone is played with the input of --input, and without children; a "
            "test file can say more.\n");
}

static void write_head(const struct simulation *v, struct buf *b)
{
    size_t counts[2] = {0};

    for (size_t i = 0; i < v->finding_count; i++)
        counts[finding_level(v->findings[i].kind)]++;
    buf_fmt(b, "%s: %" PRIu64 " runs, ", v->suite->file, v->runs);
    if (v->depth > 0)
        buf_fmt(b, "all orders of up to %u fault%s", v->depth, v->depth == 1 ? "" : "s");
    else
        buf_fmt(b, "seed %" PRIu64, v->seed);
    buf_fmt(b, ": %zu end%s, %zu wrong, %zu worth a look\n", v->end_count,
            v->end_count == 1 ? "" : "s", counts[LEVEL_WRONG], counts[LEVEL_LOOK]);
}

void simulation_write_text(const struct simulation *v, struct buf *b)
{
    if (v->broken.ptr) {
        write_broken(v, b);
        return;
    }
    write_head(v, b);
    for (size_t i = 0; i < v->finding_count; i++)
        write_finding(v, b, &v->findings[i]);
    write_ends(v, b);
    write_errors(v, b);
    write_longest(v, b);
    buf_byte(b, '\n');
    (void)coverage_write(&v->coverage, b); /* what was missed is a finding of its own */
}
