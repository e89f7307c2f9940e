/* Tests of how the codec stores the input of a task once: steps without an input of their own
 * refer to it instead of having a copy, also when it is long and a payload. */

#include "base/test.h"

#include <stdio.h>

#include "store/codec/codec.h"

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
}

/* The text of a step that rests is kept, and may lie in a group: both outlive the input that they
 * speak of, in the one who wrote them as well as in one who reads and writes on. */
static void what_rests_keeps_the_input_that_it_was_given(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    static char output[400];
    const struct workflow *w = workflow_of(LONG);
    const struct value input = {SLICE("{\"n\":1}"), 0};
    struct step s[LONG] = {0};
    struct attempt attempts[LONG];
    struct task t = {.id = SLICE("x"),
                     .locked_by = SLICE("n1/1"),
                     .revision = 1,
                     .state = TASK_PROCESSING,
                     .submitted_at = 1,
                     .input = input,
                     .steps = s,
                     .step_count = LONG};
    (void)state;

    memset(output, '7', sizeof output);
    for (uint16_t i = 0; i < LONG - 1; i++) {
        attempts[i] = (struct attempt){.number = 1,
                                       .outcome = OUTCOME_COMPLETED,
                                       .effect = EFFECT_HAPPENED,
                                       .started_at = 1,
                                       .ended_at = 2,
                                       .complete_by = 9};
        s[i] = (struct step){.state = STEP_COMPLETED,
                             .attempt = 1,
                             .attempts = &attempts[i],
                             .attempt_count = 1,
                             .attempt_cap = 1,
                             .input = input,
                             .output = {{output, sizeof output}, 0}};
    }
    struct encoded *writer = encoded_new(w, &a);
    struct encoded *reader = encoded_new(w, &a);
    struct payload all[8] = {0};
    struct error e = {0};
    struct task_row row;
    struct task back;

    task_encode_again(w, &t, writer, &a, &doc, &row);
    CHECK(doc_is_grouped(row.doc) && row.payload_count > 0, "%.*s", SLICE_ARG(row.doc));
    size_t first = row.payload_count;
    for (size_t i = 0; i < first; i++) {
        all[i] = row.payloads[i];
        CHECK(has_text(all[i].json, "\"input_payload\":0"), "a group says it, too");
        CHECK(!has_text(all[i].json, "\"n\""), "and nothing else");
    }
    CHECK(task_decode_kept(w, &row, reader, &a, &back, &e) == ERR_OK, "%s", e.text);

    struct task *const tasks[] = {&t, &back};
    struct encoded *const kept[] = {writer, reader};
    for (size_t i = 0; i < 2; i++) {
        size_t count = first;
        struct task after;
        tasks[i]->input.json = SLICE("{\"n\":2}");
        if (i == 1) { /* as most are that somebody corrects */
            tasks[i]->state = TASK_ERROR;
            tasks[i]->locked_by = SLICE_NONE;
            tasks[i]->error.code = SLICE("declined");
            tasks[i]->ended_at = 3;
        }
        for (int again = 0; again < 2; again++) { /* and what is kept of it then is good, too */
            buf_clear(&doc);
            task_encode_again(w, tasks[i], kept[i], &a, &doc, &row);
            for (size_t k = 0; k < row.payload_count; k++)
                all[count++] = row.payloads[k];
        }
        row.payloads = all;
        row.payload_count = count;
        CHECK(task_decode(w, &row, &a, &after, &e) == ERR_OK, "%s", e.text);
        CHECK(slice_is(after.input.json, "{\"n\":2}"), "corrected");
        CHECK(row.doc.len < 2 * sizeof output, "in groups again: %zu", row.doc.len);
        for (uint16_t k = 0; k < LONG - 1; k++)
            CHECK(slice_is(after.steps[k].input.json, "{\"n\":1}"), "step %u of %zu: %.*s", k, i,
                  SLICE_ARG(after.steps[k].input.json));
    }
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
        cmocka_unit_test(what_rests_keeps_the_input_that_it_was_given),
        cmocka_unit_test(a_long_input_that_steps_share_is_stored_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
