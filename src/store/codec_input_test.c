#include "base/test.h"

#include <stdio.h>

#include "store/codec.h"

/* Steps that have the input of their task. */

enum { STEPS = 4, LONG = STEPS_FEW + 4 };

static const struct workflow *workflow_of(uint16_t count)
{
    static char names[LONG][8];
    static struct workflow_step steps[LONG];
    static struct workflow w = {.name = {"order", 5}, .version = 1, .steps = steps};

    for (uint16_t i = 0; i < LONG; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%u", i);
        steps[i] = (struct workflow_step){.name = slice_of(names[i]), .undo_kind = UNDO_CALL};
    }
    w.step_count = count;
    return &w;
}

static struct slice written_with(const struct workflow *w, struct task *t, struct arena *a,
                                 struct buf *doc, struct task_row *ret)
{
    buf_clear(doc);
    task_encode_again(w, t, encoded_new(w, a), a, doc, ret);
    return ret->doc;
}

static bool has_text(struct slice doc, const char *text)
{
    return memmem(doc.ptr, doc.len, text, strlen(text)) != NULL;
}

static void a_step_does_not_repeat_the_input_of_the_task(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    const struct value input = {SLICE("{\"n\":1}"), 0};
    struct step s[LONG] = {{.input = input}};
    struct task t = {.id = SLICE("x"), .revision = 1, .submitted_at = 4, .steps = s};
    struct error e = {0};
    struct task_row row;
    struct task back;
    (void)state;

    t.input = input;
    t.step_count = STEPS;
    struct slice text = written_with(workflow_of(STEPS), &t, &a, &doc, &row);
    CHECK(has_text(text, "\"state\":\"waiting\",\"input_payload\":0}"), "%.*s", SLICE_ARG(text));
    CHECK(row.payload_count == 0, "nothing for the payload table");
    CHECK(task_decode(workflow_of(STEPS), &row, &a, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_eq(back.steps[0].input.json, input.json), "read back");
    CHECK(!back.steps[1].input.json.ptr, "of one that began");

    back.input.json = SLICE("{\"n\":2}"); /* corrected: what the step was given stays */
    text = written_with(workflow_of(STEPS), &back, &a, &doc, &row);
    CHECK(has_text(text, "\"state\":\"waiting\",\"input\":{\"n\":1}}"), "%.*s", SLICE_ARG(text));
    CHECK(task_decode(workflow_of(STEPS), &row, &a, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_eq(back.steps[0].input.json, input.json), "as it was");

    t.step_count = LONG; /* whose steps may leave the document for good */
    text = written_with(workflow_of(LONG), &t, &a, &doc, &row);
    CHECK(has_text(text, "\"input\":{\"n\":1}}"), "%.*s", SLICE_ARG(text));
}

static void a_long_input_that_steps_share_is_stored_once(void **state)
{
    static const uint16_t counts[] = {STEPS, LONG};
    char text[PAYLOAD_INLINE_MAX + 1];
    (void)state;

    memset(text, '1', sizeof text);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        const struct workflow *w = workflow_of(counts[i]);
        const struct value input = {{text, sizeof text}, 0};
        struct step s[LONG] = {{.input = input}, {.input = input}};
        struct task t = {.id = SLICE("x"),
                         .revision = 1,
                         .submitted_at = 4,
                         .input = input,
                         .steps = s,
                         .step_count = counts[i]};
        struct error e = {0};
        struct task_row row;
        struct task back;
        (void)written_with(w, &t, &a, &doc, &row);
        CHECK(row.payload_count == 1, "%zu payloads", row.payload_count);
        CHECK(task_decode(w, &row, &a, &back, &e) == ERR_OK, "%s", e.text);
        for (size_t k = 0; k < 2; k++)
            CHECK(back.steps[k].input.json.ptr == back.input.json.ptr, "one text, step %zu", k);
        CHECK(back.input.json.len == sizeof text, "all of it");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_does_not_repeat_the_input_of_the_task),
        cmocka_unit_test(a_long_input_that_steps_share_is_stored_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
