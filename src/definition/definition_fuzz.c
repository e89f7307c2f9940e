/* Fuzz target of definition.c and scope.c: any text as a definition. An accepted one is a valid
 * workflow, and every template of it evaluates to JSON or fails with a message. A refused one has
 * mistakes, each with its place and a message in valid UTF-8. */

#include <stdlib.h>

#include "base/fuzz.h"
#include "definition/definition.h"
#include "json/text.h"

static void check_words(const char *words)
{
    struct slice text = slice_of(words);

    ASSERT(text_utf8_end(text) == text.len);
}

static void check_mistakes(const struct mistakes *m)
{
    ASSERT(m->count > 0);
    ASSERT(m->count <= MISTAKES_MAX);
    for (size_t i = 0; i < m->count; i++) {
        const struct mistake *one = &m->list[i];
        ASSERT(one->line >= 1);
        ASSERT(one->column >= 1);
        ASSERT(one->expected[0]);
        check_words(one->path);
        check_words(one->found);
        check_words(one->expected);
    }
}

/* A step with for_each, and a slot that has its first item. */
struct world {
    const struct definition *definition;
    struct step step, slot;
    struct items items;
};

static const struct step *some_unit(void *arg, int unit)
{
    const struct world *w = arg;

    return unit_is_slot(&w->definition->workflow, unit) ? &w->slot : &w->step;
}

static struct slice some_value(void *arg, int step)
{
    const struct world *w = arg;

    ASSERT(step >= 0);
    ASSERT(step < w->definition->workflow.step_count + w->definition->workflow.slot_count);
    return step % 2 ? SLICE("{\"id\":[1,\"\xc3\xa4\"]}") : SLICE_NONE;
}

static enum step_state some_state(void *arg, int step)
{
    (void)arg;
    return step % 2 ? STEP_FAILED : STEP_SKIPPED;
}

static struct fault_note some_error(void *arg, int step)
{
    (void)arg;
    if (step % 2)
        return (struct fault_note){SLICE("declined"), step % 3 ? SLICE("no\n") : SLICE_NONE};
    return (struct fault_note){0};
}

static void check_result(enum err err, struct slice json, const struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (err != ERR_OK) {
        ASSERT(e->text[0]);
        check_words(e->text);
        return;
    }
    err = json_parse(&a, json, &j, NULL);
    ASSERT(err == ERR_OK);
}

static void evaluate_step(const struct scope *s, int step, struct arena *a)
{
    struct slice json = SLICE_NONE;
    struct error e = {0};
    bool condition = false;

    check_result(definition_step_input(s, step, a, &json, &e), json, &e);
    check_result(definition_undo_input(s, step, a, &json, &e), json, &e);
    check_result(definition_condition(s, step, a, &condition, &e), SLICE("true"), &e);
}

static void evaluate_items(const struct scope *s, struct world *w, int step, struct arena *a)
{
    const struct each_spec *each = &w->definition->workflow.steps[step].each;
    struct error e = {0};
    const char *code = NULL;

    w->items = (struct items){0};
    enum err err = definition_items(s, step, a, &w->items.list, &code, &e);
    check_result(err, SLICE("[]"), &e);
    ASSERT(code[0]);
    if (err != ERR_OK)
        return;
    ASSERT(w->items.list.count <= each->max_items);
    for (uint16_t i = 0; i < w->items.list.part_count; i++)
        check_result(ERR_OK, w->items.list.parts[i].json, &e);
    if (w->items.list.count > 0)
        evaluate_step(s, each->slots_at, a);
}

static void evaluate(const struct definition *d, struct slice given)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice input = given;
    struct slice output = SLICE_NONE;
    struct error e = {0};

    enum err err = definition_check_input(d, given, &a, &input, &e);
    check_result(err, input, &e);
    struct world w = {.definition = d, .step.items = &w.items, .slot.slot = SLOT_TAKEN};
    struct scope s = {
        .definition = d,
        .input = input,
        .step_input = some_value,
        .step_output = some_value,
        .step_state = some_state,
        .step_error = some_error,
        .unit = some_unit,
        .arg = &w,
    };
    for (int i = 0; i < d->workflow.step_count; i++) {
        evaluate_step(&s, i, &a);
        if (d->workflow.steps[i].kind == KIND_EACH)
            evaluate_items(&s, &w, i, &a);
    }
    err = definition_output(&s, &a, &output, &e);
    check_result(err, output.ptr ? output : SLICE("null"), &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct mistakes *warnings = calloc(1, sizeof *warnings);
    struct definition *d = NULL;

    ASSERT(m && warnings);
    enum err err = definition_parse((struct slice){(const char *)bytes, len}, DEFINITION_JSON, &d,
                                    m, warnings);
    if (warnings->count > 0)
        check_mistakes(warnings);
    if (err == ERR_OK) {
        ASSERT(workflow_valid(&d->workflow));
        evaluate(d, SLICE("{\"sku\":\"s\",\"quantity\":2,\"total\":10.5,\"a\":[{}]}"));
        evaluate(d, SLICE("{}"));
        evaluate(d, SLICE("[null]"));
    } else {
        check_mistakes(m);
    }
    definition_free(d);
    free(warnings);
    free(m);
    return 0;
}
