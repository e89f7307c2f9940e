/* Tests of groups.c: resting steps leave the document of a long task and come back when they
 * change, so that the size of a change does not grow with the number of steps; groups that do not
 * fit the document are corrupt. */

#include "base/test.h"

#include <stdio.h>

#include "store/codec/codec.h"
#include "store/codec/groups.h"

/* Steps that rest leave the document of a long task, in groups. */

enum { STEPS = 100, SHORT = STEPS_FEW, OUTPUT = 600, WAIT = 90 };

static bool has_wait; /* one of the steps is a wait */

static const struct workflow *workflow_of(uint16_t count)
{
    static char names[STEPS][8];
    static struct workflow_step steps[STEPS];
    static struct workflow w = {.name = {"long", 4}, .version = 1, .steps = steps};

    for (uint16_t i = 0; i < STEPS; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%u", i);
        steps[i] = (struct workflow_step){.name = slice_of(names[i]), .undo_kind = UNDO_CALL};
    }
    if (has_wait) {
        steps[WAIT].kind = KIND_WAIT;
        steps[WAIT].undo_kind = UNDO_NONE;
    }
    w.step_count = count;
    return &w;
}

/* A task in the state of one that is in work, with one attempt for each step. */
struct life {
    const struct workflow *w;
    struct arena arena;
    struct step steps[STEPS];
    struct attempt attempts[STEPS];
    struct task task;
    struct encoded *kept;
    struct payload payloads[2 * STEPS];
    size_t payload_count, payload_size;
    struct buf doc;
    struct task_row row;
};

static void life_begin(struct life *l, uint16_t count)
{
    memset(l, 0, sizeof *l);
    l->w = workflow_of(count);
    l->task = (struct task){.id = SLICE("x"),
                            .locked_by = SLICE("n1/1"),
                            .revision = 1,
                            .state = TASK_PROCESSING,
                            .submitted_at = 1,
                            .steps = l->steps,
                            .step_count = count};
    l->kept = encoded_new(l->w, &l->arena);
}

static void life_end(struct life *l)
{
    arena_fini(&l->arena);
    buf_fini(&l->doc);
}

static void life_write(struct life *l)
{
    buf_clear(&l->doc);
    task_encode_again(l->w, &l->task, l->kept, &l->arena, &l->doc, &l->row);
    for (size_t i = 0; i < l->row.payload_count; i++) {
        l->payload_size += l->row.payloads[i].json.len;
        CHECK(l->payload_count < COUNT_OF(l->payloads), "few groups");
        l->payloads[l->payload_count++] = l->row.payloads[i];
    }
    l->row.payloads = l->payloads;
    l->row.payload_count = l->payload_count;
}

static void start(struct life *l, uint16_t i)
{
    struct step *s = &l->steps[i];

    l->attempts[i] = (struct attempt){.number = 1,
                                      .outcome = OUTCOME_OPEN,
                                      .effect = EFFECT_UNKNOWN,
                                      .started_at = 1,
                                      .complete_by = 9};
    *s = (struct step){.state = STEP_RUNNING,
                       .attempt = 1,
                       .attempts = &l->attempts[i],
                       .attempt_count = 1,
                       .attempt_cap = 1};
    encoded_look_at(l->kept, i);
}

static void complete(struct life *l, uint16_t i)
{
    static char output[OUTPUT];

    memset(output, '7', sizeof output);
    l->attempts[i].outcome = OUTCOME_COMPLETED;
    l->attempts[i].effect = EFFECT_HAPPENED;
    l->attempts[i].ended_at = 2;
    l->steps[i].state = STEP_COMPLETED;
    l->steps[i].output.json = (struct slice){output, sizeof output};
    encoded_look_at(l->kept, i);
}

static bool reads(const struct life *l, struct arena *a, struct task *ret)
{
    struct error e = {0};

    return task_decode(l->w, &l->row, a, ret, &e) == ERR_OK;
}

static void what_is_written_at_each_change_does_not_grow_with_the_steps(void **state)
{
    static struct life l; /* large for a stack */
    size_t longest = 0;
    (void)state;

    life_begin(&l, STEPS);
    life_write(&l);
    for (uint16_t i = 0; i < STEPS; i++) {
        start(&l, i);
        if (i > 0)
            complete(&l, i - 1);
        life_write(&l);
        longest = l.row.doc.len > longest ? l.row.doc.len : longest;
    }
    CHECK(longest < GROUP_MIN + 2 * OUTPUT + 4 * STEPS, "%zu bytes", longest);
    CHECK(l.payload_size > (STEPS - 5) * OUTPUT, "what has ended is there: %zu", l.payload_size);
    CHECK(l.payload_size < STEPS * (OUTPUT + 300), "and is there once: %zu", l.payload_size);
    CHECK(l.payload_count <= STEPS / 2, "several together: %zu", l.payload_count);

    struct task back;
    CHECK(reads(&l, &l.arena, &back), "it can be read");
    for (uint16_t i = 0; i + 1 < STEPS; i++)
        CHECK(back.steps[i].state == STEP_COMPLETED && back.steps[i].output.json.len == OUTPUT,
              "step %u", i);
    CHECK(back.steps[STEPS - 1].state == STEP_RUNNING, "the last one");
    life_end(&l);
}

static void a_step_that_changes_is_in_the_document_again(void **state)
{
    static struct life l;
    struct task back;
    (void)state;

    life_begin(&l, STEPS);
    for (uint16_t i = 0; i < STEPS; i++) {
        start(&l, i);
        complete(&l, i);
    }
    life_write(&l);
    CHECK(doc_is_grouped(l.row.doc) && l.row.doc.len < 500, "all of it left: %zu", l.row.doc.len);
    size_t before = l.payload_count;
    l.attempts[7].tries = 5;
    encoded_look_at(l.kept, 7);
    life_write(&l);
    CHECK(l.payload_count == before, "one alone is not worth a group");
    CHECK(l.row.doc.len > OUTPUT && l.row.doc.len < 2 * OUTPUT, "it: %zu", l.row.doc.len);
    CHECK(reads(&l, &l.arena, &back) && back.steps[7].attempts[0].tries == 5, "as it is now");
    CHECK(back.steps[8].attempts[0].tries == 0, "and its neighbour as it was");
    life_end(&l);
}

/* As `retry --from` the first step leaves it: what was done of them stays on record. */
static void steps_that_start_anew_rest_until_they_do(void **state)
{
    static struct life l;
    struct task back;
    (void)state;

    life_begin(&l, STEPS);
    for (uint16_t i = 0; i < STEPS; i++) {
        start(&l, i);
        complete(&l, i);
    }
    life_write(&l);
    for (uint16_t i = 0; i < STEPS; i++) {
        l.steps[i].state = STEP_WAITING;
        l.steps[i].output = (struct value){0};
        l.steps[i].generation = 1;
    }
    encoded_look_at(l.kept, -1);
    life_write(&l);
    CHECK(l.row.doc.len < GROUP_MIN, "they left: %zu", l.row.doc.len);
    CHECK(reads(&l, &l.arena, &back) && back.steps[9].generation == 1
              && back.steps[9].attempt_count == 1,
          "as they are now");
    size_t before = l.payload_count;
    for (uint16_t i = 0; i < STEPS; i++)
        l.attempts[i].generation = 1; /* asked for under the key that they have */
    encoded_look_at(l.kept, -1);
    life_write(&l);
    CHECK(l.payload_count == before, "what waits for another try does not rest");
    life_end(&l);
}

/* Listings by step look into documents only. */
static void a_wait_that_has_begun_is_in_the_document(void **state)
{
    static struct life l;
    (void)state;

    has_wait = true;
    life_begin(&l, STEPS);
    for (uint16_t i = 0; i < WAIT; i++) {
        start(&l, i);
        complete(&l, i);
        life_write(&l);
    }
    CHECK(!memmem(l.row.doc.ptr, l.row.doc.len, "\"s90\"", 5), "it rests before it begins");
    l.steps[WAIT].begun_at = 5;
    l.steps[WAIT].wait_until = 9;
    encoded_look_at(l.kept, WAIT);
    life_write(&l);
    for (uint16_t i = WAIT + 1; i < STEPS; i++) { /* enough for another group */
        start(&l, i);
        complete(&l, i);
        life_write(&l);
    }
    CHECK(memmem(l.row.doc.ptr, l.row.doc.len, "\"begun_at\":5", 12), "%.*s", SLICE_ARG(l.row.doc));
    life_end(&l);
    has_wait = false;
}

static void what_is_over_or_short_stays_whole(void **state)
{
    static struct life l;
    (void)state;

    life_begin(&l, STEPS);
    for (uint16_t i = 0; i < STEPS; i++) {
        start(&l, i);
        complete(&l, i);
    }
    l.task.state = TASK_PROCESSED;
    l.task.locked_by = SLICE_NONE;
    life_write(&l);
    CHECK(l.payload_count == 0 && !doc_is_grouped(l.row.doc), "it is not written again");
    life_end(&l);

    life_begin(&l, SHORT);
    CHECK(!l.kept, "of few steps nothing is kept");
    for (uint16_t i = 0; i < SHORT; i++) {
        start(&l, i);
        complete(&l, i);
    }
    life_write(&l);
    CHECK(l.payload_count == 0 && !doc_is_grouped(l.row.doc), "nor stored elsewhere");
    life_end(&l);
}

/* A document of two steps that says `steps`, with these two payloads. */
static enum err decode_two(const char *doc, const char *first, const char *second)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct payload payloads[] = {{1, slice_of(first)}, {2, slice_of(second)}};
    const struct task_row row = {.id = SLICE("x"),
                                 .workflow = SLICE("long"),
                                 .version = 1,
                                 .revision = 1,
                                 .submitted_at = 1,
                                 .doc = slice_of(doc),
                                 .payloads = payloads,
                                 .payload_count = 2};
    struct error e = {0};
    struct task t;

    return task_decode(workflow_of(2), &row, &a, &t, &e);
}

#define STEP(name)  "{\"name\":\"" name "\",\"state\":\"waiting\"}"
#define DOC(steps)  "{\"grouped\":true,\"steps\":[" steps "],\"payloads\":2}"
#define BOTH        "{\"0\":" STEP("s0") ",\"1\":" STEP("s1") "}"
#define ONLY_SECOND "{\"1\":" STEP("s1") "}"

static void groups_that_do_not_fit_are_corrupt(void **state)
{
    static const char *const bad[][2] = {
        {DOC("3,1"), BOTH},
        {DOC("0,1"), BOTH},
        {DOC("-1,1"), BOTH},
        {DOC("1.5,1"), BOTH},
        {DOC("4294967297,1"), BOTH},
        {DOC("1,1,1"), BOTH},
        {DOC("null,1"), BOTH},
        {DOC("\"1\",1"), BOTH},
        {DOC("1,1"), ONLY_SECOND},
        {DOC("1,1"), "{\"1\":" STEP("s1") ",\"0\":" STEP("s0") "}"},
        {DOC("1,1"), "{\"0\":" STEP("s1") ",\"1\":" STEP("s0") "}"},
        {DOC("1,1"), "{\"0\":1,\"1\":" STEP("s1") "}"},
        {DOC("1,1"), "[" STEP("s0") "," STEP("s1") "]"},
        {DOC("1,1"), "{"},
        {DOC("1,1"), ""},
    };
    (void)state;

    CHECK(decode_two(DOC("1,1"), BOTH, "1") == ERR_OK, "in one group");
    CHECK(decode_two(DOC("1,2"), BOTH, BOTH) == ERR_OK, "in two");
    CHECK(decode_two(DOC("2,1"), BOTH, BOTH) == ERR_OK, "the other way round");
    CHECK(decode_two(DOC(STEP("s0") ",1"), ONLY_SECOND, "1") == ERR_OK, "one of them");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(decode_two(bad[i][0], bad[i][1], "1") == ERR_CORRUPT, "%s %s", bad[i][0], bad[i][1]);
}

static void a_row_names_the_groups_that_it_needs(void **state)
{
    static const struct {
        const char *doc;
        const char *groups;
    } cases[] = {
        {DOC("7,3,7,{},3"), "3,7,"},
        {DOC(""), ""},
        {DOC("0,-1,1.5,1048576,99999999999999999999,\"4\",1048575"), "1048575,"},
        {"{\"grouped\":true,\"steps\":{\"1\":2}}", ""},
        {"{\"grouped\":true,\"steps\":[1,2", ""},
        {"{\"steps\":[1,2]}", ""},
        {"", ""},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf found = {0};
        uint32_t *groups = NULL;
        size_t count = doc_groups(slice_of(cases[i].doc), &a, &groups);
        for (size_t k = 0; k < count; k++)
            buf_fmt(&found, "%u,", groups[k]);
        CHECK(slice_is(buf_view(&found), cases[i].groups), "%s: %.*s", cases[i].doc, (int)found.len,
              found.ptr);
    }
    CHECK(doc_groups(SLICE_NONE, NULL, &(uint32_t *){NULL}) == 0, "no document");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_at_each_change_does_not_grow_with_the_steps),
        cmocka_unit_test(a_step_that_changes_is_in_the_document_again),
        cmocka_unit_test(steps_that_start_anew_rest_until_they_do),
        cmocka_unit_test(a_wait_that_has_begun_is_in_the_document),
        cmocka_unit_test(what_is_over_or_short_stays_whole),
        cmocka_unit_test(groups_that_do_not_fit_are_corrupt),
        cmocka_unit_test(a_row_names_the_groups_that_it_needs),
    };
    return cmocka_run_group_tests_name("codec-groups", tests, NULL, NULL);
}
