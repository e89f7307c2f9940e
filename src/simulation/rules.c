/* Evaluates the rules of a simulation (rules.h). The default rule is computed directly: it is
 * looked at in every run. */

#include "simulation/rules.h"

#include <stdio.h>

#include "definition/expression/expression.h"

enum { RULES_MAX = 200 };

/* ---- which there are ---- */

static struct rule *add(struct rules *r, bool is_always)
{
    static const char *const names[] = {"at_end", "always"};
    CLEANUP(buf_fini) struct buf name = {0};
    unsigned number = 1;

    if (!r->list)
        r->list = arena_alloc(&r->arena, RULES_MAX * sizeof *r->list);
    ASSERT(r->count < RULES_MAX);
    for (size_t i = 0; i < r->count; i++)
        number += r->list[i].is_always == is_always;
    buf_str(&name, names[is_always]);
    if (number > 1)
        buf_fmt(&name, " %u", number);
    struct rule *added = &r->list[r->count++];
    *added = (struct rule){.name = arena_copy(&r->arena, buf_view(&name)).ptr,
                           .is_always = is_always,
                           .at = UINT32_MAX};
    return added;
}

static void add_all(struct rules *r, const struct suite_rules *from, bool is_always)
{
    for (size_t i = 0; i < from->count; i++) {
        struct rule *rule = add(r, is_always);
        rule->text = from->list[i].text;
        rule->expression = from->list[i].expression;
        rule->at = from->list[i].at;
    }
}

void rules_open(struct rules *r, const struct suite *s)
{
    *r = (struct rules){0};
    add_all(r, &s->always, true);
    add_all(r, &s->at_end, false);
}

enum err rules_add(struct rules *r, bool is_always, struct slice text, size_t *ret_column,
                   struct error *e)
{
    struct expression *x = NULL;

    *ret_column = 1;
    if (r->count + 2 >= RULES_MAX)
        return error_set(e, ERR_INVALID, "there are more than %d rules", RULES_MAX - 2);
    enum err err = expression_compile(text, &r->arena, &x, ret_column, e);
    if (err != ERR_OK)
        return err;
    struct rule *rule = add(r, is_always);
    rule->text = arena_copy(&r->arena, text);
    rule->expression = x;
    return ERR_OK;
}

void rules_ready(struct rules *r)
{
    bool any_end = false;

    for (size_t i = 0; i < r->count; i++) {
        r->any_always |= r->list[i].is_always;
        any_end |= !r->list[i].is_always;
        r->any_own = true;
    }
    if (any_end)
        return;
    struct rule *rule = add(r, false);
    rule->text = SLICE(RULE_DEFAULT);
    rule->is_default = r->has_default = true;
}

void rules_close(struct rules *r)
{
    arena_fini(&r->arena);
}

/* ---- what they see ---- */

static void write_error(struct buf *b, const struct task *task)
{
    struct fault_note e = task->cause.error.code.ptr ? task->cause.error : task->error;

    json_key(b, "error");
    if (!e.code.ptr) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    json_member_text(b, "code", e.code);
    json_member_text(b, "message", e.message);
    json_close(b, '}');
}

void rules_write_task(struct buf *b, const struct trial *t, const struct workflow *w,
                      const struct task *task)
{
    json_open(b, '{');
    json_member_text(b, "id", task->id);
    json_member_text(b, "state", slice_of(task_state_text(task->state)));
    write_error(b, task);
    json_member_raw(b, "input", t->submission.input);
    json_member_raw(b, "output", task->output.json);
    json_key(b, "steps");
    json_open(b, '{');
    for (uint16_t i = 0; i < task->step_count; i++) {
        json_key_slice(b, w->steps[i].name);
        json_open(b, '{');
        json_member_text(b, "state", slice_of(step_state_text(task->steps[i].state)));
        json_member_raw(b, "output", task->steps[i].output.json);
        json_close(b, '}');
    }
    json_close(b, '}');
    json_close(b, '}');
}

/* The value of a member before the run, and what stays of it. */
static struct slice before_of(struct world_state *w, const struct world_member *m)
{
    struct slice without = world_without_staying(w, m);

    if (!without.ptr)
        return m->json; /* what stays is no number: it cannot be told apart */
    if (slice_eq(without, m->json))
        return m->before;
    return json_texts_equal(without, m->before) ? m->json : m->before;
}

static const struct json *root_of(struct trial *t, struct slice task)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *root = NULL;

    json_open(&b, '{');
    json_member_raw(&b, "task", task);
    json_key(&b, "world");
    world_write(&t->world, &b);
    json_key(&b, "before");
    json_open(&b, '{');
    for (size_t i = 0; i < t->world.count; i++) {
        json_key_slice(&b, t->world.list[i].name);
        json_raw(&b, before_of(&t->world, &t->world.list[i]));
    }
    json_close(&b, '}');
    json_close(&b, '}');
    enum err err = json_parse(&t->arena, arena_copy(&t->arena, buf_view(&b)), &root, NULL);
    ASSERT(err == ERR_OK);
    return root;
}

/* ---- looking ---- */

static struct rule_verdict check_default(const struct rule *rule, struct trial *t)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf names = {0};

    for (size_t i = 0; i < t->world.count && t->state == TASK_COMPENSATED; i++) {
        const struct world_member *m = &t->world.list[i];
        struct slice found = world_without_staying(&t->world, m);
        if (!found.ptr || world_values_equal(found, m->before))
            continue;
        const char *comma = b.len > 0 ? ", " : "";
        buf_fmt(&names, "%s%.*s", comma, SLICE_ARG(m->name));
        buf_fmt(&b, "%sworld.%.*s is %.*s, and was %.*s", comma, SLICE_ARG(m->name),
                SLICE_ARG(timeline_short(&t->arena, found)),
                SLICE_ARG(timeline_short(&t->arena, m->before)));
    }
    if (b.len == 0)
        return (struct rule_verdict){0};
    return (struct rule_verdict){.rule = rule,
                                 .subject = arena_copy(&t->arena, buf_view(&names)),
                                 .text = arena_copy(&t->arena, buf_view(&b))};
}

static struct rule_verdict check_own(const struct rule *rule, struct trial *t,
                                     const struct json *root)
{
    const struct json *value = NULL;
    struct error e = {0};

    if (expression_eval(rule->expression, root, &t->arena, &value, &e) != ERR_OK)
        return (struct rule_verdict){.rule = rule,
                                     .is_broken = true,
                                     .text = arena_copy(&t->arena, slice_of(e.text))};
    if (value->type == JSON_TRUE)
        return (struct rule_verdict){0};
    if (value->type != JSON_FALSE)
        return (struct rule_verdict){.rule = rule,
                                     .is_broken = true,
                                     .text = SLICE("it gives neither true nor false")};
    struct slice world = json_get_raw(root, "world");
    return (struct rule_verdict){.rule = rule, .text = timeline_short(&t->arena, world)};
}

struct rule_verdict rules_check(const struct rules *r, struct trial *t, struct slice task,
                                bool at_end)
{
    struct rule_verdict v = {0};
    const struct json *root = NULL;

    for (size_t i = 0; i < r->count && !v.rule; i++) {
        const struct rule *rule = &r->list[i];
        if (rule->is_always == at_end)
            continue;
        if (!rule->is_default && !root)
            root = root_of(t, task);
        v = rule->is_default ? check_default(rule, t) : check_own(rule, t, root);
    }
    return v;
}
