/* Writes what a simulation found out, for programs (simulation.h). docs/simulating.md lists the
 * members. */

#include "simulation/simulation.h"

static void write_story(struct buf *b, const char *key, const struct story *s)
{
    json_key(b, key);
    if (!s->test) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    json_member_text(b, "test", slice_of(s->test->name));
    json_key(b, "faults");
    json_open(b, '[');
    for (size_t i = 0; i < s->faults.count; i++) {
        CLEANUP(buf_fini) struct buf one = {0};
        fault_write(&one, &s->faults.list[i]);
        json_raw(b, buf_view(&one));
    }
    json_close(b, ']');
    json_key(b, "told");
    json_open(b, '[');
    for (size_t i = 0; i < s->faults.count; i++) {
        CLEANUP(buf_fini) struct buf one = {0};
        fault_tell(&one, &s->faults.list[i]);
        json_string(b, buf_view(&one));
    }
    json_close(b, ']');
    json_member_number(b, "took_ms", s->took_ms);
    json_key(b, "timeline");
    json_open(b, '[');
    for (size_t i = 0; i < s->line_count; i++)
        json_string(b, s->lines[i]);
    json_close(b, ']');
    json_close(b, '}');
}

static void write_end(struct buf *b, const struct run_end *e)
{
    json_key(b, "end");
    json_open(b, '{');
    json_member_text(b, "state",
                     e->is_end ? slice_of(task_state_text(e->state)) : SLICE("unfinished"));
    json_member_text(b, "error", e->code);
    json_member_text(b, "message", e->message);
    json_member_raw(b, "steps", e->steps);
    json_member_text(b, "waits", e->waits);
    json_close(b, '}');
}

static void write_finding(struct buf *b, const struct finding *f)
{
    json_open(b, '{');
    json_member_text(b, "kind", slice_of(finding_word(f->kind)));
    json_member_text(b, "level",
                     finding_level(f->kind) == LEVEL_WRONG ? SLICE("wrong") : SLICE("look"));
    json_member_text(b, "meaning", slice_of(finding_text(f->kind)));
    json_member_text(b, "rule", f->rule ? slice_of(f->rule->name) : SLICE_NONE);
    json_member_text(b, "subject", f->subject);
    json_member_text(b, "text", f->text);
    json_member_number(b, "runs", (int64_t)f->count);
    write_end(b, &f->end);
    write_story(b, "story", &f->story);
    json_close(b, '}');
}

static void write_reached(struct buf *b, const struct reached_end *e)
{
    json_open(b, '{');
    write_end(b, &e->end);
    json_member_number(b, "runs", (int64_t)e->count);
    json_member_number(b, "longest_ms", e->longest_ms);
    json_member_text(b, "why", e->summary.len > 0 ? e->summary : SLICE_NONE);
    json_member_text(b, "what_to_do", e->moves.len > 0 ? e->moves : SLICE_NONE);
    write_story(b, "story", &e->story);
    json_close(b, '}');
}

static void write_step(struct buf *b, const struct workflow_step *ws, unsigned seen)
{
    static const struct {
        const char *key;
        unsigned bit;
    } bits[] = {{"completes", COVERED_RUN},       {"skipped", COVERED_IF_FALSE},
                {"undone", COVERED_UNDONE},       {"attempts_used_up", COVERED_EXHAUSTED},
                {"complete_by", COVERED_OVERDUE}, {"default", COVERED_DEFAULT}};

    json_open(b, '{');
    json_member_text(b, "step", ws->name);
    for (size_t i = 0; i < COUNT_OF(bits); i++)
        json_member_bool(b, bits[i].key, seen & bits[i].bit);
    json_close(b, '}');
}

static void write_reached_steps(const struct simulation *v, struct buf *b)
{
    json_key(b, "reached");
    json_open(b, '[');
    for (size_t i = 0; i < v->coverage.count; i++) {
        const struct covered_workflow *c = &v->coverage.list[i];
        json_open(b, '{');
        json_member_text(b, "workflow", c->definition->workflow.name);
        json_member_bool(b, "complete_by", c->deadline_passed);
        json_key(b, "steps");
        json_open(b, '[');
        for (uint16_t k = 0; k < c->definition->workflow.step_count; k++)
            write_step(b, &c->definition->workflow.steps[k], c->steps[k]);
        json_close(b, ']');
        json_close(b, '}');
    }
    json_close(b, ']');
}

void simulation_write_json(const struct simulation *v, struct buf *b)
{
    json_open(b, '{');
    json_member_text(b, "file", slice_of(v->suite->file));
    json_member_number(b, "runs", (int64_t)v->runs);
    json_member_number(b, "seed", (int64_t)v->seed);
    json_member_number(b, "exhaustive", v->depth);
    json_member_text(b, "broken", v->broken);
    json_key(b, "findings");
    json_open(b, '[');
    for (size_t i = 0; i < v->finding_count; i++)
        write_finding(b, &v->findings[i]);
    json_close(b, ']');
    json_key(b, "ends");
    json_open(b, '[');
    for (size_t i = 0; i < v->end_count; i++)
        write_reached(b, v->ends[i]);
    json_close(b, ']');
    json_member_number(b, "longest_ms", v->longest_ms);
    write_story(b, "longest", &v->longest);
    write_reached_steps(v, b);
    json_close(b, '}');
    buf_byte(b, '\n');
}
