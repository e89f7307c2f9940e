/* Tests of workflow_valid(): each way in which a workflow can be invalid, one change of a valid
 * workflow at a time, and that the largest workflow is valid. */

#include "core/core_test_kit.h"
#include "core/repeat.h"

static struct graph g;

static void no_name(void)
{
    g.w.name = SLICE("");
}
static void no_steps(void)
{
    g.w.step_count = 0;
}
static void too_many_steps(void)
{
    g.w.step_count = STEPS_MAX + 1;
}
static void negative_deadline(void)
{
    g.w.complete_by_ms = -1;
}
static void negative_undo_deadline(void)
{
    g.w.undo_complete_by_ms = -1;
}
static void no_step_name(void)
{
    g.steps[1].name = SLICE_NONE;
}
static void no_agent(void)
{
    g.steps[2].call.agent = SLICE("");
}
static void no_action(void)
{
    g.steps[2].call.action = SLICE_NONE;
}
static void no_complete_by(void)
{
    g.steps[0].call.complete_by_ms = 0;
}
static void negative_complete_by(void)
{
    g.steps[0].call.complete_by_ms = -5;
}
static void no_undo_agent(void)
{
    g.steps[0].undo.agent = SLICE_NONE;
}
static void no_undo_complete_by(void)
{
    g.steps[0].undo.complete_by_ms = 0;
}
static void no_undo_attempts(void)
{
    g.steps[0].undo.retry.attempts = 0;
}
static void no_attempts(void)
{
    g.steps[1].call.retry.attempts = 0;
}
static void shrinking(void)
{
    g.steps[1].call.retry.factor_milli = 999;
}
static void negative_wait(void)
{
    g.steps[1].call.retry.wait_ms = -1;
}
static void negative_max_wait(void)
{
    g.steps[1].call.retry.max_wait_ms = -1;
}
static void negative_defer(void)
{
    g.steps[1].call.retry.defer_ms = -1;
}
static void edge_before_to_nowhere(void)
{
    g.before[0][g.steps[0].before_count++] = 9;
}
static void edge_after_to_nowhere(void)
{
    g.after[0][0] = 9;
}
static void edge_known_to_its_end_alone(void)
{
    g.steps[0].after_count = 0;
}
static void edge_known_to_its_begin_alone(void)
{
    g.steps[1].before_count = 0;
}
static void edge_to_another(void)
{
    g.before[2][0] = 0;
}
static void order_names_one_twice(void)
{
    g.order[1] = 0;
}
static void order_names_nobody(void)
{
    g.order[2] = 3;
}
static void order_against_the_edges(void)
{
    g.order[0] = 1;
    g.order[1] = 0;
}

static void negative_undo_until(void)
{
    g.w.undo_until_ms = -1;
}
static void on_undo_with_an_undo(void)
{
    g.steps[2] = (struct workflow_step){.name = g.steps[2].name,
                                        .call = g.steps[2].call,
                                        .undo = g.steps[2].undo,
                                        .on_failure = ON_FAILURE_HOLD,
                                        .on_undo = true};
    g.steps[1].after_count = 0;
}
static void on_undo_that_undoes(void)
{
    on_undo_with_an_undo();
    g.steps[2].undo_kind = UNDO_NONE;
    CHECK(workflow_valid(&g.w), "without an undo");
    g.steps[2].on_failure = ON_FAILURE_UNDO;
}
static void on_undo_after_a_step(void)
{
    g.steps[2].undo_kind = UNDO_NONE;
    g.steps[2].on_failure = ON_FAILURE_HOLD;
    g.steps[2].on_undo = true;
}

static void loop_of_two(void)
{
    g.before[0][g.steps[0].before_count++] = 1;
    g.after[1][g.steps[1].after_count++] = 0;
}

static void loop_of_one(void)
{
    g.before[2][g.steps[2].before_count++] = 2;
    g.after[2][g.steps[2].after_count++] = 2;
}

static void become_parent(void)
{
    struct workflow_step *s = &g.steps[1];

    s->kind = KIND_TASK;
    s->call = (struct call_spec){0};
    s->undo_kind = UNDO_CHILD;
    s->child.workflow = SLICE("other");
    g.w.child_step_count = 1;
    CHECK(workflow_valid(&g.w), "a step may start a child");
}
static void a_child_of_no_workflow(void)
{
    become_parent();
    g.steps[1].child.workflow = SLICE("");
}
static void a_child_of_negative_length(void)
{
    become_parent();
    g.steps[1].child.complete_by_ms = -1;
}
static void a_child_of_an_agent(void)
{
    become_parent();
    g.steps[1].call = g.steps[0].call;
}
static void a_child_that_waits(void)
{
    become_parent();
    g.steps[1].wait_ms = 1;
}
static void a_child_in_rounds(void)
{
    become_parent();
    g.steps[1].undo_kind = UNDO_NONE;
    CHECK(workflow_valid(&g.w), "it may stay");
    g.steps[1].repeat.for_ms = 1;
}
static void a_child_of_on_undo(void)
{
    become_parent();
    g.steps[1].on_undo = true;
}
static void a_child_that_is_not_counted(void)
{
    become_parent();
    g.w.child_step_count = 0;
}
static void a_call_that_undoes_a_child(void)
{
    g.steps[0].undo_kind = UNDO_CHILD;
}
static void a_call_with_a_child(void)
{
    g.steps[0].child.workflow = SLICE("other");
}

/* Step b has two items at work at a time, and is repeated for each. */
static struct workflow_step units[3 + 5];

static void become_each(void)
{
    memcpy(units, g.steps, 3 * sizeof *units);
    units[1].kind = KIND_EACH;
    units[1].undo_kind = UNDO_NONE;
    units[1].each = (struct each_spec){.max_items = 5,
                                       .concurrency = 2,
                                       .tolerate = 100,
                                       .slots_at = 3,
                                       .slot_count = 5,
                                       .step = 1};
    for (int u = 3; u < 8; u++) {
        units[u] = units[1];
        units[u].kind = KIND_CALL;
        units[u].each.slot_count = 0;
        units[u].repeat = (struct repeat_rule){.for_ms = 10,
                                               .every_ms = 1,
                                               .max_every_ms = 1,
                                               .factor_milli = 1000};
    }
    g.w.steps = units;
    g.w.slot_count = 5;
    CHECK(workflow_valid(&g.w), "a step may have items");
}
static void items_without_an_agent(void)
{
    become_each();
    units[1].call = (struct call_spec){0};
}
static void no_items(void)
{
    become_each();
    units[1].each.max_items = 0;
}
static void too_many_items(void)
{
    become_each();
    units[1].each.max_items = ITEMS_MAX + 1;
}
static void no_concurrency(void)
{
    become_each();
    units[1].each.concurrency = 0;
}
static void a_call_with_items(void)
{
    become_each();
    units[0].each = units[1].each;
}
static void more_than_all_items_fail(void)
{
    become_each();
    units[1].each.tolerate = 10001;
}
static void two_ways_to_go_on(void)
{
    become_each();
    units[1].each.goes_on = true;
}
static void items_of_on_undo(void)
{
    become_each();
    g.w.steps = units;
    units[0].after_count = units[1].before_count = units[1].after_count = 0;
    units[2].before_count = 0;
    units[1].on_failure = ON_FAILURE_HOLD;
    for (int u = 3; u < 8; u++)
        units[u].on_failure = ON_FAILURE_HOLD;
    CHECK(workflow_valid(&g.w), "without edges");
    units[1].on_undo = true;
}
static void a_list_in_rounds(void)
{
    become_each();
    units[1].repeat = units[3].repeat;
}
static void items_that_wait(void)
{
    become_each();
    units[1].wait_ms = 1;
}
static void items_that_start_a_child(void)
{
    become_each();
    units[1].child.workflow = SLICE("other");
}
static void slots_elsewhere(void)
{
    become_each();
    units[1].each.slots_at = 2;
}
static void slots_of_another(void)
{
    become_each();
    units[1].each.step = 0;
}
static void too_few_slots(void)
{
    become_each();
    units[1].each.slot_count = 4;
    g.w.slot_count = 4;
}
static void slots_of_nobody(void)
{
    become_each();
    g.w.slot_count = 6;
}
static void slots_beyond_the_last(void)
{
    become_each();
    g.w.slot_count = 4;
}
static void slots_without_steps(void)
{
    g.w.slot_count = SLOTS_MAX + 1;
}
static void a_slot_of_another_step(void)
{
    become_each();
    units[6].each.step = 2;
}
static void a_slot_with_slots(void)
{
    become_each();
    units[4].each.slot_count = 4;
}
static void a_slot_that_waits(void)
{
    become_each();
    units[5].kind = KIND_WAIT;
}
static void a_slot_of_another_name(void)
{
    become_each();
    units[6].name = SLICE("z");
}
static void a_slot_with_another_undo(void)
{
    become_each();
    units[6].undo_kind = UNDO_PIVOT;
    units[6].repeat = (struct repeat_rule){0};
}
static void a_slot_that_continues(void)
{
    become_each();
    units[6].on_failure = ON_FAILURE_CONTINUE;
}
static void a_slot_of_another_concurrency(void)
{
    become_each();
    units[6].each.concurrency = 1;
}
static void a_slot_without_an_agent(void)
{
    become_each();
    units[6].call.agent = SLICE_NONE;
}
static void a_slot_with_endless_rounds(void)
{
    become_each();
    units[6].repeat.for_ms = ROUNDS_MAX + 1;
}
static void a_slot_of_on_undo(void)
{
    become_each();
    units[6].on_undo = true;
}
static void a_slot_without_its_undo(void)
{
    become_each();
    for (int u = 1; u < 8; u += u == 1 ? 2 : 1) {
        units[u].undo_kind = UNDO_CALL;
        units[u].repeat = (struct repeat_rule){0};
    }
    CHECK(workflow_valid(&g.w), "with an undo");
    units[6].undo.agent = SLICE_NONE;
}

#define BAD(name)   \
    {               \
        #name, name \
    }

static void each_mistake_makes_a_workflow_invalid(void **state)
{
    static const struct {
        const char *what;
        void (*spoil)(void);
    } mistakes[] = {
        BAD(no_name),
        BAD(no_steps),
        BAD(too_many_steps),
        BAD(negative_deadline),
        BAD(negative_undo_deadline),
        BAD(no_step_name),
        BAD(no_agent),
        BAD(no_action),
        BAD(no_complete_by),
        BAD(negative_complete_by),
        BAD(no_undo_agent),
        BAD(no_undo_complete_by),
        BAD(no_undo_attempts),
        BAD(no_attempts),
        BAD(shrinking),
        BAD(negative_wait),
        BAD(negative_max_wait),
        BAD(negative_defer),
        BAD(edge_before_to_nowhere),
        BAD(edge_after_to_nowhere),
        BAD(edge_known_to_its_end_alone),
        BAD(edge_known_to_its_begin_alone),
        BAD(edge_to_another),
        BAD(order_names_one_twice),
        BAD(order_names_nobody),
        BAD(order_against_the_edges),
        BAD(negative_undo_until),
        BAD(on_undo_with_an_undo),
        BAD(on_undo_that_undoes),
        BAD(on_undo_after_a_step),
        BAD(loop_of_two),
        BAD(loop_of_one),
        BAD(a_child_of_no_workflow),
        BAD(a_child_of_negative_length),
        BAD(a_child_of_an_agent),
        BAD(a_child_that_waits),
        BAD(a_child_in_rounds),
        BAD(a_child_of_on_undo),
        BAD(a_child_that_is_not_counted),
        BAD(a_call_that_undoes_a_child),
        BAD(a_call_with_a_child),
        BAD(items_without_an_agent),
        BAD(no_items),
        BAD(too_many_items),
        BAD(no_concurrency),
        BAD(a_call_with_items),
        BAD(more_than_all_items_fail),
        BAD(two_ways_to_go_on),
        BAD(items_of_on_undo),
        BAD(a_list_in_rounds),
        BAD(items_that_wait),
        BAD(items_that_start_a_child),
        BAD(slots_elsewhere),
        BAD(slots_of_another),
        BAD(too_few_slots),
        BAD(slots_of_nobody),
        BAD(slots_beyond_the_last),
        BAD(slots_without_steps),
        BAD(a_slot_of_another_step),
        BAD(a_slot_with_slots),
        BAD(a_slot_that_waits),
        BAD(a_slot_of_another_name),
        BAD(a_slot_with_another_undo),
        BAD(a_slot_that_continues),
        BAD(a_slot_of_another_concurrency),
        BAD(a_slot_without_an_agent),
        BAD(a_slot_with_endless_rounds),
        BAD(a_slot_of_on_undo),
        BAD(a_slot_without_its_undo),
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        graph_make(&g, "a b<a c<b");
        CHECK(workflow_valid(&g.w), "before");
        mistakes[i].spoil();
        CHECK(!workflow_valid(&g.w), "%s", mistakes[i].what);
    }
}

static void what_is_not_called_need_not_be_there(void **state)
{
    (void)state;
    graph_make(&g, "a- b!<a");
    g.steps[0].undo = (struct call_spec){0};
    g.steps[1].undo = (struct call_spec){0};
    CHECK(workflow_valid(&g.w), "no undo, no call for it");
}

static void the_largest_workflow_is_valid(void **state)
{
    static struct workflow_step steps[STEPS_MAX];
    static uint16_t order[STEPS_MAX];
    struct workflow w = {.name = SLICE("w"),
                         .steps = steps,
                         .order = order,
                         .step_count = STEPS_MAX};
    (void)state;
    graph_make(&g, "a");
    for (uint16_t i = 0; i < STEPS_MAX; i++) {
        steps[i] = g.steps[0];
        order[i] = (uint16_t)(STEPS_MAX - 1 - i);
    }
    CHECK(workflow_valid(&w), "in whatever order");
}

static void a_step_is_found_by_its_name(void **state)
{
    (void)state;
    graph_make(&g, "c b<c a<b");
    CHECK(workflow_step_index(&g.w, SLICE("a")) == 0, "a");
    CHECK(workflow_step_index(&g.w, SLICE("c")) == 2, "c");
    CHECK(workflow_step_index(&g.w, SLICE("d")) == -1, "d");
    CHECK(workflow_step_index(&g.w, SLICE("ab")) == -1, "ab");
    CHECK(workflow_step_index(&g.w, SLICE("")) == -1, "empty");
    CHECK(workflow_step_index(&g.w, SLICE_NONE) == -1, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_makes_a_workflow_invalid),
        cmocka_unit_test(what_is_not_called_need_not_be_there),
        cmocka_unit_test(the_largest_workflow_is_valid),
        cmocka_unit_test(a_step_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
