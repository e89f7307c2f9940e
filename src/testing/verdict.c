/* Compares what became of a task with what its test expects, part by part. Each difference is a
 * problem of the trial, with its place in the test file. */

#include "base/when.h"
#include "definition/expression/expression.h"
#include "testing/trial.h"

/* Whether a part is to be compared. */
static bool counts(const struct expected *e)
{
    return e->is_given && !e->is_asked;
}

static void check_state(struct trial *t)
{
    const struct test_case *c = t->test;

    if (!counts(&c->state) || t->state == c->state_word)
        return;
    if (t->error_code.ptr && t->state != TASK_PROCESSED)
        trial_problem(t, c->state.json->at, "state: expected %s, found %s (%.*s: %.*s)",
                      task_state_text(c->state_word), task_state_text(t->state),
                      SLICE_ARG(t->error_code), SLICE_ARG(t->error_message));
    else
        trial_problem(t, c->state.json->at, "state: expected %s, found %s",
                      task_state_text(c->state_word), task_state_text(t->state));
}

static void check_error(struct trial *t)
{
    const struct expected *e = &t->test->error;

    if (!counts(e))
        return;
    struct slice wanted = e->json->type == JSON_NULL ? SLICE_NONE : e->json->text;
    if (!slice_eq(wanted, t->error_code))
        trial_problem(t, e->json->at, "error: expected %.*s, found %.*s",
                      SLICE_ARG(wanted.ptr ? wanted : SLICE("none")),
                      SLICE_ARG(t->error_code.ptr ? t->error_code : SLICE("none")));
}

static void check_within(struct trial *t)
{
    CLEANUP(buf_fini) struct buf found = {0};
    const struct test_case *c = t->test;
    int64_t took = t->ended_at - c->start_at;

    if (!counts(&c->within) || t->ended_at == 0 || took <= c->within_ms)
        return;
    if (took % MS_PER_S == 0)
        duration_write(&found, took);
    else
        duration_tell(&found, took);
    trial_problem(t, c->within.json->at, "within: expected %.*s, but it took %s",
                  SLICE_ARG(c->within.json->text), found.ptr);
}

/* ---- values ---- */

static const struct json *before_of(struct trial *t)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;

    json_open(&b, '{');
    json_key(&b, "before");
    json_open(&b, '{');
    for (size_t i = 0; i < t->world.count; i++) {
        json_key_slice(&b, t->world.list[i].name);
        json_raw(&b, t->world.list[i].before);
    }
    json_close(&b, '}');
    json_member_raw(&b, "input", t->submission.input);
    json_close(&b, '}');
    enum err err = json_parse(&t->arena, arena_copy(&t->arena, buf_view(&b)), &j, NULL);
    ASSERT(err == ERR_OK);
    return j;
}

static bool evaluate(struct trial *t, const struct template *tree, const struct expected *e,
                     const char *what, struct slice *ret)
{
    struct error error = {0};

    if (template_eval(tree, before_of(t), &t->arena, ret, &error) == ERR_OK)
        return true;
    trial_problem(t, e->json->at, "%s: %s", what, error.text);
    return false;
}

static void check_output(struct trial *t)
{
    const struct expected *e = &t->test->output;
    struct slice found = t->output.ptr ? t->output : SLICE("null");
    struct slice wanted = SLICE_NONE;

    if (!counts(e) || !evaluate(t, t->test->output_tree, e, "output", &wanted))
        return;
    if (!json_texts_equal(wanted, found))
        trial_problem(t, e->json->at, "output: expected %.*s, found %.*s",
                      SLICE_ARG(timeline_short(&t->arena, wanted)),
                      SLICE_ARG(timeline_short(&t->arena, found)));
}

static void differs(struct trial *t, uint32_t at, struct slice name, struct slice wanted,
                    struct slice found)
{
    if (!world_values_equal(wanted, found))
        trial_problem(t, at, "world.%.*s: expected %.*s, found %.*s", SLICE_ARG(name),
                      SLICE_ARG(timeline_short(&t->arena, wanted)),
                      SLICE_ARG(timeline_short(&t->arena, found)));
}

/* All but the effects that nothing undoes. A member that only these changed needs no comparison. */
static void check_before(struct trial *t)
{
    uint32_t at = t->test->world_after.json->at;

    for (size_t i = 0; i < t->world.count; i++) {
        const struct world_member *m = &t->world.list[i];
        struct slice found = world_without_staying(&t->world, m);
        const struct effect_record *by = found.ptr ? NULL : world_unclear(&t->world, m);
        if (found.ptr)
            differs(t, at, m->name, m->before, found);
        else if (by)
            trial_problem(t, at,
                          "world.%.*s cannot be compared with .before: the effect of %.*s stays, "
                          "and is no number; `undone` beside it has to say how it is taken away",
                          SLICE_ARG(m->name), SLICE_ARG(by->step));
    }
}

static uint32_t place_of(const struct expected *e, struct slice name)
{
    for (const struct json *m = e->json->child; m; m = m->next)
        if (slice_eq(m->key, name))
            return m->at;
    return e->json->at;
}

static void check_world(struct trial *t)
{
    const struct expected *e = &t->test->world_after;
    struct slice wanted = SLICE_NONE;
    struct json *j = NULL;

    if (!counts(e))
        return;
    if (t->test->world_is_before) {
        check_before(t);
        return;
    }
    if (!evaluate(t, t->test->world_tree, e, "world", &wanted))
        return;
    enum err err = json_parse(&t->arena, wanted, &j, NULL);
    ASSERT(err == ERR_OK);
    for (const struct json *m = j->child; m; m = m->next) {
        const struct world_member *found = world_member(&t->world, m->key);
        ASSERT(found); /* suite_bind has checked that */
        if (!json_is_asked(m))
            differs(t, place_of(e, m->key), m->key, m->raw, found->json);
    }
}

static void check_steps(struct trial *t)
{
    const struct expected *e = &t->test->steps;
    struct json *found = NULL;

    if (!counts(e) || !t->steps.ptr)
        return;
    enum err err = json_parse(&t->arena, t->steps, &found, NULL);
    ASSERT(err == ERR_OK);
    for (const struct json *m = e->json->child; m; m = m->next) {
        struct slice state = SLICE_NONE;
        for (const struct json *f = found->child; f; f = f->next)
            if (slice_eq(f->key, m->key))
                state = f->text;
        if (state.ptr && !json_is_asked(m) && !slice_eq(state, m->text))
            trial_problem(t, m->at, "steps.%.*s: expected %.*s, found %.*s", SLICE_ARG(m->key),
                          SLICE_ARG(m->text), SLICE_ARG(state));
    }
}

/* ---- the order of effects ---- */

static void write_effects(const struct trial *t, struct buf *b)
{
    buf_byte(b, '[');
    for (size_t i = 0; i < t->effect_count; i++)
        buf_fmt(b, "%s%.*s", i > 0 ? ", " : "", SLICE_ARG(t->effects[i].name));
    buf_byte(b, ']');
}

/* The members of an array in any order, at `from`. */
static bool is_group_there(const struct trial *t, const struct json *group, size_t from)
{
    for (const struct json *j = group->child; j; j = j->next) {
        size_t wanted = 0;
        size_t found = 0;
        for (const struct json *k = group->child; k; k = k->next)
            wanted += slice_eq(k->text, j->text);
        for (size_t i = from; i < from + group->count && i < t->effect_count; i++)
            found += slice_eq(t->effects[i].name, j->text);
        if (found != wanted)
            return false;
    }
    return true;
}

static void check_order(struct trial *t)
{
    const struct expected *e = &t->test->order;
    CLEANUP(buf_fini) struct buf found = {0};
    size_t at = 0;

    if (!counts(e))
        return;
    write_effects(t, &found);
    for (const struct json *j = e->json->child; j; j = j->next) {
        bool is_group = j->type == JSON_ARRAY;
        bool fits = is_group ? is_group_there(t, j, at)
                             : at < t->effect_count && slice_eq(t->effects[at].name, j->text);
        if (!fits) {
            trial_problem(t, j->at, "order: expected %.*s as number %zu, found %s",
                          SLICE_ARG(is_group ? j->raw : j->text), at + 1, found.ptr);
            return;
        }
        at += is_group ? j->count : 1;
    }
    if (at < t->effect_count)
        trial_problem(t, e->json->at, "order: expected nothing after number %zu, found %s", at,
                      found.ptr);
}

static void tell_asked(struct trial *t, const struct json *j, const char *what)
{
    if (json_is_asked(j))
        trial_problem(t, j->at, "%s: \"?\" is not filled in yet: intact test --update does it",
                      what);
}

static void check_asked(struct trial *t, const struct expected *e, const char *what)
{
    if (e->is_given)
        tell_asked(t, e->json, what);
}

static void check_members_asked(struct trial *t, const struct expected *e, const char *what)
{
    bool has_members = e->is_given && e->json->type == JSON_OBJECT;

    check_asked(t, e, what);
    for (const struct json *m = has_members ? e->json->child : NULL; m; m = m->next)
        tell_asked(t, m, what);
}

/* So that no test passes because nothing was filled in. */
static void check_all_asked(struct trial *t)
{
    check_asked(t, &t->test->state, "state");
    check_asked(t, &t->test->error, "error");
    check_members_asked(t, &t->test->world_after, "world");
    check_asked(t, &t->test->order, "order");
    check_asked(t, &t->test->within, "within");
    check_asked(t, &t->test->output, "output");
    check_members_asked(t, &t->test->steps, "steps");
}

void verdict_find(struct trial *t)
{
    if (!t->fills_in)
        check_all_asked(t);
    check_state(t);
    check_error(t);
    check_within(t);
    check_world(t);
    check_order(t);
    check_output(t);
    check_steps(t);
}
