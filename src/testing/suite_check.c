/* Compares a test file with the definitions that it tests: names of actions, steps and signals,
 * members of the world, and how effects are undone (suite_bind in suite.h). */

#include <stdio.h>

#include "config/config_reader.h"
#include "testing/play_key.h"
#include "testing/step_path.h"
#include "testing/suite.h"

/* What is being checked. */
struct checking {
    struct suite *suite;
    struct reader reader;
    struct arena arena; /* of the check */
    const struct definition *const *list;
    size_t count;
    const struct json *world; /* of the test, and of the suite */
};

/* ---- actions ---- */

static void check_key(struct checking *c, const struct play *p)
{
    struct path at = {NULL, SLICE("agents"), 0};
    char found[120];

    for (size_t i = 0; i < c->count; i++)
        if (play_key_fits(c->list[i], p->key))
            return;
    (void)snprintf(found, sizeof found, "\"%.*s\"", SLICE_ARG(slice_cut(p->key, 80)));
    for (size_t i = 0; i < c->count; i++) {
        struct slice near = play_key_near(c->list[i], p->key, &c->arena);
        if (near.ptr) {
            mistake_at(&c->reader, &at, p->at, found, "did you mean \"%.*s\"?", SLICE_ARG(near));
            return;
        }
    }
    mistake_at(&c->reader, &at, p->at, found,
               "AGENT.ACTION of a step or an undo in the definition (AGENT.STEP of one with http)");
}

/* ---- effects ---- */

static bool is_undone(const struct checking *c, struct slice key)
{
    for (size_t i = 0; i < c->count; i++)
        if (play_key_is_undone(c->list[i], key))
            return true;
    return false;
}

static const struct json *member(const struct json *object, struct slice name)
{
    for (const struct json *m = object ? object->child : NULL; m; m = m->next)
        if (slice_eq(m->key, name))
            return m;
    return NULL;
}

static bool names(const struct effect_spec *e, struct slice name)
{
    for (size_t i = 0; i < e->count; i++)
        if (slice_eq(e->list[i].name, name))
            return true;
    return false;
}

static bool is_number(struct slice json)
{
    return json.len > 0 && (json.ptr[0] == '-' || (json.ptr[0] >= '0' && json.ptr[0] <= '9'));
}

/* A number is undone by subtraction; whatever else changes says how. */
static void check_change(struct checking *c, const struct world_change *w,
                         const struct effect_spec *undone, bool needs_undo)
{
    struct path at_effect = {NULL, SLICE("effect"), 0};
    struct path at = {&at_effect, w->name, 0};
    const struct json *was = member(c->world, w->name);
    char found[120];

    (void)snprintf(found, sizeof found, "\"%.*s\"", SLICE_ARG(slice_cut(w->name, 80)));
    if (!was)
        mistake_at(&c->reader, &at, w->at, found, "a member of `world`, with its first value");
    else if (needs_undo && !names(undone, w->name)
             && (was->type != JSON_NUMBER || (w->constant.ptr && !is_number(w->constant))))
        mistake_at(&c->reader, &at, w->at, found,
                   "`undone` beside `effect`, which names it too: only what is added to a number "
                   "is subtracted by its undo");
}

static const struct effect_spec *undone_of(const struct play *p, const struct play *base,
                                           const struct played_answer *a)
{
    static const struct effect_spec none;

    if (a->undone.is_given)
        return &a->undone;
    for (size_t i = 0; i < p->count; i++)
        if (p->answers[i].undone.is_given)
            return &p->answers[i].undone;
    for (size_t i = 0; base && i < base->count; i++)
        if (base->answers[i].undone.is_given)
            return &base->answers[i].undone;
    return &none;
}

/* What the file says of an action that a test speaks of, as agent_player.c finds it. */
static const struct play *base_of(const struct suite *s, struct slice key)
{
    const struct play *own = plays_find(&s->agents, key);
    const char *dot = memchr(key.ptr, '.', key.len);

    if (own || !dot)
        return own;
    return plays_find(&s->agents, (struct slice){key.ptr, (size_t)(dot - key.ptr)});
}

static void check_undone(struct checking *c, const struct effect_spec *e)
{
    static const struct effect_spec none;

    for (size_t i = 0; i < e->count; i++)
        check_change(c, &e->list[i], &none, false);
}

static bool has_effect(const struct play *p)
{
    for (size_t i = 0; p && i < p->count; i++)
        if (p->answers[i].does.count > 0)
            return true;
    return false;
}

/* Without an effect nothing is ever undone, so `undone` would be dead. */
static void check_undoes(struct checking *c, const struct play *p, const struct play *base)
{
    struct path at = {NULL, SLICE("undone"), 0};

    if (has_effect(p) || has_effect(base))
        return;
    for (size_t i = 0; i < p->count; i++)
        if (p->answers[i].undone.count > 0) {
            mistake_at(&c->reader, &at, p->answers[i].undone.list[0].at,
                       "`undone` without `effect`", "`effect` beside it: what is undone");
            return;
        }
}

static void check_play(struct checking *c, const struct play *p, const struct play *base)
{
    bool needs_undo = is_undone(c, p->key);

    check_key(c, p);
    for (size_t i = 0; i < p->count; i++) {
        const struct played_answer *a = &p->answers[i];
        for (size_t k = 0; k < a->does.count; k++)
            check_change(c, &a->does.list[k], undone_of(p, base, a), needs_undo);
        check_undone(c, &a->undone);
    }
    check_undoes(c, p, base);
}

/* ---- steps and signals ---- */

static void check_step(struct checking *c, struct slice name, uint32_t offset, const char *where)
{
    struct path at = {NULL, slice_of(where), 0};
    const struct workflow *w = &c->suite->definition->workflow;
    char found[120];

    if (step_path_exists(c->suite, name))
        return;
    (void)snprintf(found, sizeof found, "\"%.*s\"", SLICE_ARG(slice_cut(name, 80)));
    for (uint16_t i = 0; i < w->step_count; i++)
        if (name_is_near(name, w->steps[i].name)) {
            mistake_at(&c->reader, &at, offset, found, "did you mean \"%.*s\"?",
                       SLICE_ARG(w->steps[i].name));
            return;
        }
    mistake_at(&c->reader, &at, offset, found,
               "the name of a step of workflow %.*s, of an item (STEP.0), or of a step of a child "
               "(STEP/STEP)",
               SLICE_ARG(w->name));
}

static void check_signal(struct checking *c, const struct act *a)
{
    struct path at = {NULL, slice_of(a->what), 0};
    const struct definition *d = c->suite->definition;
    char found[120];

    for (size_t i = 0; i < d->signal_count; i++)
        if (slice_eq(d->signals[i], a->name))
            return;
    (void)snprintf(found, sizeof found, "\"%.*s\"", SLICE_ARG(slice_cut(a->name, 80)));
    for (size_t i = 0; i < d->signal_count; i++)
        if (name_is_near(a->name, d->signals[i])) {
            mistake_at(&c->reader, &at, a->at, found, "did you mean \"%.*s\"?",
                       SLICE_ARG(d->signals[i]));
            return;
        }
    mistake_at(&c->reader, &at, a->at, found, "a signal that workflow %.*s waits for",
               SLICE_ARG(d->workflow.name));
}

/* Items and steps of children are not looked at there, or not reached. */
static void check_own_step(struct checking *c, struct slice name, uint32_t offset,
                           const char *where)
{
    struct path at = {NULL, slice_of(where), 0};
    const struct workflow *w = &c->suite->definition->workflow;
    char found[120];

    if (workflow_step_index(w, name) >= 0)
        return;
    if (!step_path_exists(c->suite, name)) {
        check_step(c, name, offset, where);
        return;
    }
    (void)snprintf(found, sizeof found, "\"%.*s\"", SLICE_ARG(slice_cut(name, 80)));
    mistake_at(&c->reader, &at, offset, found, "the name of a step of workflow %.*s itself",
               SLICE_ARG(w->name));
}

static void check_vote(struct checking *c, const struct act *a)
{
    struct path at = {NULL, SLICE("approvals"), 0};
    const struct workflow *w = &c->suite->definition->workflow;
    int step = workflow_step_index(w, a->step);

    if (step >= 0 && w->steps[step].kind != KIND_APPROVE)
        mistake_at(&c->reader, &at, a->at, "a step in which nobody decides", "a step with approve");
    else
        check_own_step(c, a->step, a->at, "approvals");
}

static void check_act(struct checking *c, const struct act *a)
{
    if (a->kind == ACT_SIGNAL)
        check_signal(c, a);
    else if (a->kind == ACT_VOTE)
        check_vote(c, a);
    else if (a->step.ptr && memchr(a->step.ptr, '/', a->step.len)) /* of a child */
        check_own_step(c, a->step, a->at, "operator");
    else if (a->step.ptr)
        check_step(c, a->step, a->at, "operator");
}

static struct slice without_undo(struct slice name)
{
    static const char undo[] = "undo ";
    size_t len = sizeof undo - 1;

    if (name.len > len && memcmp(name.ptr, undo, len) == 0)
        return (struct slice){name.ptr + len, name.len - len};
    return name;
}

static void check_order(struct checking *c, const struct json *list)
{
    for (const struct json *j = list ? list->child : NULL; j; j = j->next) {
        if (j->type == JSON_ARRAY)
            check_order(c, j);
        else
            check_step(c, without_undo(j->text), j->at, "expect.order");
    }
}

/* ---- faults ---- */

static void check_vote_on(struct checking *c, const struct fault *f)
{
    struct path at = {NULL, SLICE("faults"), 0};
    int step = workflow_step_index(&c->suite->definition->workflow, f->name);

    if (step < 0 || c->suite->definition->workflow.steps[step].kind != KIND_APPROVE)
        mistake_at(&c->reader, &at, f->at, "a vote that nobody is asked for",
                   "a step with approve");
}

static void check_fault(struct checking *c, const struct fault *f)
{
    if (f->kind == FAULT_NONE)
        return; /* a mistake that was reported */
    enum fault_place place = fault_spec(f->kind)->place;
    if (place == PLACE_REQUEST)
        check_step(c, f->name, f->at, "faults");
    else if (place == PLACE_SIGNAL)
        check_signal(c, &(struct act){.name = f->name, .at = f->at, .what = "faults"});
    else if (place == PLACE_VOTE)
        check_vote_on(c, f);
}

/* ---- a test ---- */

static void check_members(struct checking *c, const struct json *object, const char *where)
{
    struct path up = {NULL, slice_of(where), 0};

    for (const struct json *m = object ? object->child : NULL; m; m = m->next) {
        struct path at = {&up, m->key, 0};
        if (!member(c->world, m->key))
            mistake_at(&c->reader, &at, m->key_at, "an unknown member", "a member of `world`");
    }
}

static void check_test(struct checking *c, const struct test_case *t)
{
    const struct json *steps = t->steps.is_asked ? NULL : t->steps.json;

    for (size_t i = 0; i < t->agents.count; i++)
        check_play(c, &t->agents.list[i], base_of(c->suite, t->agents.list[i].key));
    for (size_t i = 0; i < t->act_count; i++)
        check_act(c, &t->acts[i]);
    for (size_t i = 0; i < t->faults.count; i++)
        check_fault(c, &t->faults.list[i]);
    if (t->order.is_given && !t->order.is_asked)
        check_order(c, t->order.json);
    for (const struct json *m = steps ? steps->child : NULL; m; m = m->next)
        check_own_step(c, m->key, m->key_at, "expect.steps");
    check_members(c, t->world_json, "world");
    if (t->world_tree)
        check_members(c, t->world_after.json, "expect.world");
}

static void check(struct checking *c)
{
    const struct suite *s = c->suite;

    for (size_t i = 0; i < s->agents.count; i++)
        check_play(c, &s->agents.list[i], NULL);
    for (size_t i = 0; i < s->test_count; i++)
        check_test(c, &s->tests[i]);
}

enum err suite_bind(struct suite *s, struct definition *const *list, size_t count,
                    struct mistakes *m)
{
    struct checking c = {.suite = s, .count = count, .world = s->world_json};

    ASSERT(count > 0);
    m->count = 0;
    c.reader =
        (struct reader){.arena = &s->arena, .mistakes = m, .text = s->text, .is_yaml = s->is_yaml};
    c.list = (const struct definition *const *)list;
    for (size_t i = 0; i < count; i++)
        registry_add(&s->workflows, list[i], 1);
    s->definition = list[0];
    check(&c);
    arena_fini(&c.arena);
    mistakes_sort(m);
    return m->count > 0 ? ERR_INVALID : ERR_OK;
}
