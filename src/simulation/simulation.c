/* Gathers what runs found out (simulation.h): ends, findings, times, each with its shortest story
 * so far. shorten.c makes stories shorter, and tells them. */

#include "simulation/simulation.h"

#include <stdlib.h>

#include "definition/definition.h"
#include "simulation/classify.h"
#include "simulation/shorten.h"

enum { FINDINGS_MAX = 60, OF_ONE_RULE_MAX = 3, LOOKS_MAX = 10 /* of a kind */ };

/* ---- findings, as words ---- */

static const struct {
    const char *word, *text;
    enum finding_level level;
} finding_specs[FINDING_KINDS] = {
#define X(name, word, level, text) [FINDING_##name] = {word, text, LEVEL_##level},
    FINDINGS(X)
#undef X
};

const char *finding_word(enum finding_kind k)
{
    return finding_specs[k].word;
}

const char *finding_text(enum finding_kind k)
{
    return finding_specs[k].text;
}

enum finding_level finding_level(enum finding_kind k)
{
    return finding_specs[k].level;
}

/* ---- opening and closing ---- */

void simulation_open(struct simulation *v, const struct suite *s, struct rules *rules)
{
    *v = (struct simulation){.suite = s, .rules = rules};
    v->tests = arena_alloc(&v->arena, (s->test_count + 1) * sizeof *v->tests);
    coverage_open(&v->coverage, s);
}

void simulation_close(struct simulation *v)
{
    coverage_close(&v->coverage);
    map_fini(&v->by_key);
    free(v->ends);
    free(v->findings);
    arena_fini(&v->arena);
}

/* ---- stories ---- */

static struct fault_list copy_faults(struct arena *a, const struct fault_list *from)
{
    struct fault_list copy = {.count = from->count};

    copy.list = arena_alloc(a, (from->count + 1) * sizeof *copy.list);
    for (size_t i = 0; i < from->count; i++) {
        copy.list[i] = from->list[i];
        copy.list[i].name = arena_copy(a, from->list[i].name);
    }
    return copy;
}

static void keep_story(struct simulation *v, const struct run *r, struct story *ret)
{
    if (ret->test && ret->faults.count <= r->struck.count)
        return;
    *ret = (struct story){.test = r->config.test,
                          .faults = copy_faults(&v->arena, &r->struck),
                          .seen_as = v->runs};
}

/* ---- ends ---- */

static struct run_end copy_end(struct arena *a, const struct run_end *e)
{
    struct run_end copy = *e;

    copy.code = arena_copy(a, e->code);
    copy.message = arena_copy(a, e->message);
    copy.steps = arena_copy(a, e->steps);
    copy.waits = arena_copy(a, e->waits);
    return copy;
}

static void write_key(struct buf *b, const struct run_end *e)
{
    buf_fmt(b, "%d %s\n%.*s\n%.*s\n%.*s", e->is_end, task_state_text(e->state), SLICE_ARG(e->code),
            SLICE_ARG(e->steps), SLICE_ARG(e->waits));
}

static struct reached_end *end_of(struct simulation *v, const struct run *r)
{
    CLEANUP(buf_fini) struct buf key = {0};

    write_key(&key, &r->end);
    struct reached_end *e = map_get(&v->by_key, buf_view(&key));
    if (e)
        return e;
    if (v->end_count == v->end_cap) {
        v->end_cap = v->end_cap ? v->end_cap * 2 : 16;
        v->ends = reallocarray(v->ends, v->end_cap, sizeof *v->ends);
        ASSERT(v->ends);
    }
    e = v->ends[v->end_count++] = arena_alloc(&v->arena, sizeof *e);
    e->end = copy_end(&v->arena, &r->end);
    map_put(&v->by_key, arena_copy(&v->arena, buf_view(&key)), e);
    return e;
}

static bool has_help(const struct run *r)
{
    for (size_t i = 0; i < r->struck.count; i++)
        if (fault_spec(r->struck.list[i].kind)->class == CLASS_HELP)
            return true;
    return false;
}

static void take_end(struct simulation *v, const struct run *r)
{
    struct reached_end *e = end_of(v, r);

    e->count++;
    keep_story(v, r, &e->story);
    if (!r->end.is_end || has_help(r))
        return;
    e->longest_ms = max_i64(e->longest_ms, r->took_ms);
    if (r->took_ms <= v->longest_ms)
        return;
    v->longest_ms = r->took_ms;
    v->longest = (struct story){0};
    keep_story(v, r, &v->longest);
}

/* ---- findings ---- */

static struct finding *find(struct simulation *v, const struct classified *c, size_t *ret_of_kind)
{
    *ret_of_kind = 0;
    for (size_t i = 0; i < v->finding_count; i++) {
        struct finding *f = &v->findings[i];
        if (f->kind != c->kind || f->rule != c->rule)
            continue;
        ++*ret_of_kind;
        if (slice_eq(f->subject, c->subject))
            return f;
    }
    return NULL;
}

static void add_finding(struct simulation *v, const struct run *r, const struct classified *c)
{
    if (v->finding_count == v->finding_cap) {
        v->finding_cap = v->finding_cap ? v->finding_cap * 2 : 16;
        v->findings = reallocarray(v->findings, v->finding_cap, sizeof *v->findings);
        ASSERT(v->findings);
    }
    struct finding *f = &v->findings[v->finding_count++];
    *f = (struct finding){.kind = c->kind,
                          .rule = c->rule,
                          .subject = arena_copy(&v->arena, c->subject),
                          .text = arena_copy(&v->arena, c->text),
                          .count = 1,
                          .end = copy_end(&v->arena, &r->end)};
    keep_story(v, r, &f->story);
}

static void take_finding(struct simulation *v, const struct run *r, const struct classified *c)
{
    size_t of_kind = 0;
    struct finding *f = find(v, c, &of_kind);
    size_t most = c->kind == FINDING_RULE                 ? OF_ONE_RULE_MAX
                  : finding_level(c->kind) == LEVEL_WRONG ? FINDINGS_MAX
                                                          : LOOKS_MAX;

    if (v->allowed & (1U << c->kind))
        return;
    if (!f && of_kind >= most)
        return;
    if (!f && classified_is_pair(r, c->kind) && shorten_is_first_enough(v, r))
        return;
    if (!f) {
        add_finding(v, r, c);
        return;
    }
    f->count++;
    if (r->struck.count >= f->story.faults.count)
        return;
    f->text = arena_copy(&v->arena, c->text);
    f->end = copy_end(&v->arena, &r->end);
    keep_story(v, r, &f->story);
}

static void take_broken(struct simulation *v, const struct run *r)
{
    if (v->broken.ptr)
        return;
    v->broken = arena_copy(&v->arena, r->broken.ptr ? r->broken : r->broken_rule.text);
    v->broken_at = r->broken.ptr ? r->broken_at : UINT32_MAX;
    v->broken_rule = r->broken.ptr ? NULL : r->broken_rule.rule;
    if (v->broken_rule)
        v->broken_at = v->broken_rule->at;
    keep_story(v, r, &v->broken_story);
}

void simulation_take(struct simulation *v, const struct run *r)
{
    struct classified said[CLASSIFIED_MAX];

    v->runs++;
    v->visits += r->visits;
    if (r->broken.ptr || r->broken_rule.is_broken) {
        take_broken(v, r);
        return;
    }
    take_end(v, r);
    size_t count = classify(r, said);
    for (size_t i = 0; i < count; i++)
        take_finding(v, r, &said[i]);
}

/* ---- the end of it ---- */

static void add_unreached(struct simulation *v, const struct workflow *w, uint16_t step)
{
    const struct run none = {.end = {.steps = SLICE("{}")}};
    const struct classified c = {.kind = FINDING_UNREACHED,
                                 .subject = w->steps[step].name,
                                 .text = SLICE("no run completed it")};

    if (v->allowed & (1U << FINDING_UNREACHED) || v->finding_count >= FINDINGS_MAX)
        return;
    add_finding(v, &none, &c);
    v->findings[v->finding_count - 1].story = (struct story){0};
}

static void find_unreached(struct simulation *v)
{
    for (size_t i = 0; i < v->coverage.count; i++) {
        const struct covered_workflow *c = &v->coverage.list[i];
        const struct workflow *w = &c->definition->workflow;
        for (uint16_t k = 0; k < w->step_count; k++)
            if (!(c->steps[k] & (COVERED_RUN | COVERED_UNDONE)))
                add_unreached(v, w, k);
    }
}

static int by_count(const void *a, const void *b)
{
    const struct reached_end *x = *(struct reached_end *const *)a;
    const struct reached_end *y = *(struct reached_end *const *)b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->story.seen_as > y->story.seen_as) - (x->story.seen_as < y->story.seen_as);
}

static int by_level(const void *a, const void *b)
{
    const struct finding *x = a;
    const struct finding *y = b;

    if (finding_level(x->kind) != finding_level(y->kind))
        return finding_level(x->kind) > finding_level(y->kind) ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->story.faults.count != y->story.faults.count)
        return x->story.faults.count < y->story.faults.count ? -1 : 1;
    return (x->story.seen_as > y->story.seen_as) - (x->story.seen_as < y->story.seen_as);
}

void simulation_finish(struct simulation *v)
{
    if (v->broken.ptr)
        return;
    find_unreached(v);
    if (v->end_count > 0)
        qsort(v->ends, v->end_count, sizeof(struct reached_end *), by_count);
    if (v->finding_count > 0)
        qsort(v->findings, v->finding_count, sizeof *v->findings, by_level);
    for (size_t i = 0; i < v->end_count; i++)
        shorten_end(v, v->ends[i]);
    for (size_t i = 0; i < v->finding_count; i++)
        if (v->findings[i].story.test)
            shorten_finding(v, &v->findings[i]);
    if (v->longest.test)
        shorten_longest(v);
}

bool simulation_is_wrong(const struct simulation *v)
{
    for (size_t i = 0; i < v->finding_count; i++)
        if (finding_level(v->findings[i].kind) == LEVEL_WRONG)
            return true;
    return false;
}
