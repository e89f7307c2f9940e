/* Scenes of steps with for_each: items in doubt, kills while they run or are undone, lists that
 * fail in part, and what goes wrong elsewhere. The table of scenes at the end says which conditions
 * and acts follow each other (scene.h).
 *
 * workflow-core#679: of a loop within a saga the first item fails, and the compensation runs for
 * those too that were not done. Step Functions' Map: one item more than is tolerated fails the
 * whole state, and what the others did stays. Camunda: one handler is invoked for all items, only
 * if all have completed, and in no order. Here each item that took effect, or may have, is undone,
 * and no other, the last one first.
 */

#include "base/when.h"
#include "sim/items.h"
#include "sim/scene.h"
#include "sim/world.h"

enum { FEW = 6, MANY = 1000 };

/* What the world knows of an item of the first step; NULL: nothing. */
static const struct item_life *the_item(uint32_t number)
{
    return life_find(the_task(), UNIT_OF(0, number));
}

static bool item_begun(uint32_t number, enum direction d)
{
    return the_item(number) && the_item(number)->ledger.begun[d] > 0;
}

static bool item_was_undone(uint32_t number)
{
    return the_item(number) && the_item(number)->ledger.undone_at != 0;
}

static bool nothing_was_asked(uint32_t number)
{
    return !the_item(number) || the_item(number)->ledger.begun[DIRECTION_UNDO] == 0;
}

/* ---- conditions and acts ---- */

static void node_crashes(void)
{
    node_crash(&nodes.list[0], "for the scene");
}

static void wants_cancel(void)
{
    people_want(the_task(), ASK_CANCEL, -1, ANY_NODE);
}

static void skips_the_second(void)
{
    people_want(the_task(), ASK_SKIP, UNIT_OF(0, 1), ANY_NODE);
}

static void retries_the_second(void)
{
    people_want(the_task(), ASK_RETRY, UNIT_OF(0, 1), ANY_NODE);
}

static void corrects_the_second(void)
{
    people_want(the_task(), ASK_CORRECT, UNIT_OF(0, 1), ANY_NODE);
}

/* It was given up, and nothing of it can be under way any more. */
static bool last_may_be_resolved(void)
{
    const struct item_life *l = the_item(FEW - 1);

    return l && l->row_doubt && store_now() > seen_doubt_until(&l->seen) + 2 * CLOCK_MARGIN_MS;
}

static void last_is_resolved_rashly(void)
{
    people_resolve_rashly(the_task(), UNIT_OF(0, FEW - 1));
}

/* While items before it are undone. */
static bool last_happened_after_all(void)
{
    return the_item(FEW - 1)->contradicted_in != 0;
}

static bool row_was_older(void)
{
    return met(COVER_ITEM_ROW_OLDER) && item_begun(FEW - 1, DIRECTION_UNDO);
}

static void wants_pause(void)
{
    people_want(the_task(), ASK_PAUSE, -1, ANY_NODE);
}

static bool other_is_undone(void)
{
    return the_item(FEW - 3)->row_state == STEP_UNDONE;
}

static void wants_resume(void)
{
    people_want(the_task(), ASK_RESUME, -1, ANY_NODE);
}

static struct node *loser; /* the node that loses the task */

static bool second_is_in_doubt(void)
{
    return the_item(1) && the_item(1)->row_doubt && begun(1, DIRECTION_FORWARD, 1) && the_owner();
}

/* Another node undoes the task meanwhile. */
static void owner_is_suspended(void)
{
    int other = 1 - (int)the_owner()->name;

    loser = the_owner();
    node_suspend(loser, 45 * MS_PER_S);
    agents_turn_to((uint32_t)other);
    people_want(the_task(), ASK_CANCEL, -1, other);
}

static bool second_is_undone(void)
{
    return the_item(1)->row_state == STEP_UNDONE;
}

static void results_go_to_the_loser(void)
{
    agents_turn_to(loser->name);
}

static bool row_was_newer(void)
{
    return met(COVER_ITEM_ROW_NEWER);
}

static bool undos_wait_for_another_try(void)
{
    return item_begun(FEW - 1, DIRECTION_UNDO) && item_begun(FEW - 2, DIRECTION_UNDO)
           && items_open(the_task(), 0) == 0;
}

static bool undos_are_elsewhere(void)
{
    return item_begun(FEW - 2, DIRECTION_UNDO) && items_elsewhere(the_task(), 0);
}

/* Those of the next two undos; one more row is known. */
static void rows_ahead_are_spoilt(void)
{
    disk_spoil_rows(FEW - 3);
}

static bool spoilt_rows_were_read(void)
{
    return disk_spoilt_reads() > 0 && undos_wait_for_another_try();
}

/* Whoever paused it, or the node that has it, does not hold it in memory. */
static bool is_in_no_memory(void)
{
    struct scheduler_stats stats;

    NODES_FOREACH (n) {
        if (!n->scheduler)
            continue;
        scheduler_stats(n->scheduler, &stats);
        if (stats.live > 0)
            return false;
    }
    return true;
}

static bool is_paused_and_free(void)
{
    return the_task()->seen.paused_at != 0 && !the_owner() && is_in_no_memory();
}

static void is_resumed_elsewhere(void)
{
    disk_spoil_rows(0);
    node_suspend(&nodes.list[0], MS_PER_MIN);
    agents_turn_to(1);
    people_want(the_task(), ASK_RESUME, -1, 1);
}

static bool second_node_has_it(void)
{
    return the_owner() == &nodes.list[1];
}

static void owner_crashes(void)
{
    loser = the_owner();
    if (loser)
        node_crash(loser, "for the scene");
}

static bool first_has_happened(void)
{
    return the_item(0) && the_item(0)->ledger.happened_at != 0;
}

static bool third_has_begun(void)
{
    return item_begun(2, DIRECTION_FORWARD);
}

static bool fifth_has_begun(void)
{
    return item_begun(4, DIRECTION_FORWARD);
}

static bool stopped(void)
{
    return the_task()->seen.state == TASK_ERROR;
}

static bool a_few_are_undone(void)
{
    return item_was_undone(MANY - 50);
}

static bool half_are_undone(void)
{
    return item_was_undone(MANY / 2);
}

static bool most_are_undone(void)
{
    return item_was_undone(100);
}

/* ---- what is expected ---- */

/* Those below `count` took effect and were undone once, later ones first. */
static void all_went_back(uint32_t count)
{
    int64_t last = 0;

    for (uint32_t i = count; i-- > 0;) {
        const struct item_life *l = the_item(i);
        scene_must(l && l->ledger.effects == 1 && l->ledger.undos == 1, "each item once");
        scene_must(l->row_state == STEP_UNDONE, "each item is undone on record");
        scene_must(l->ledger.undone_at >= last || the_task()->flow->steps[0].concurrency > 1,
                   "later items first");
        last = l->ledger.undone_at;
    }
}

static void few_went_back(void)
{
    all_went_back(FEW);
}

static void nothing_is_left(void)
{
    scene_must(the_item(0)->ledger.undos == 1, "what was done was undone");
    scene_must(the_item(1)->ledger.tombstone, "what was in doubt was undone");
}

static void many_went_back(void)
{
    all_went_back(MANY);
}

static void all_but_the_second_went_back(void)
{
    for (uint32_t i = 0; i < FEW; i++)
        scene_must(i == 1 ? nothing_was_asked(i) : the_item(i)->ledger.undos == 1,
                   "what took effect is undone, and nothing else");
}

static void doubt_was_undone(void)
{
    scene_must(the_item(1)->ledger.undos == 1, "the item in doubt was undone");
    scene_must(the_item(0)->ledger.undos == 1, "the item that completed was undone");
    scene_must(!the_item(FEW - 1), "no other item began after the failure");
}

/* The first one failed: as few as began meanwhile are undone. */
static void only_what_was_done(void)
{
    scene_must(nothing_was_asked(0), "the item that failed did nothing");
    for (uint32_t i = 1; i < FEW; i++)
        scene_must(!the_item(i) || the_item(i)->ledger.effects == the_item(i)->ledger.undos,
                   "what was done is undone, and nothing else");
    scene_must(!the_item(FEW - 1), "no item began after the failure");
}

static void all_are_done(void)
{
    for (uint32_t i = 0; i < FEW; i++)
        scene_must(the_item(i) && the_item(i)->ledger.effects == 1, "each item once");
}

static void nothing_happened(void)
{
    for (uint32_t i = 0; i < FEW; i++)
        scene_must(the_item(i)->ledger.effects == 0, "no item took effect");
}

static void all_but_the_second_are_done(void)
{
    for (uint32_t i = 0; i < FEW; i++)
        scene_must(the_item(i)->ledger.effects == (i == 1 ? 0 : 1), "all others are done");
}

static void second_has_another_key(void)
{
    all_are_done();
    scene_must(the_item(1)->seen.generation == 2, "another input, another key");
}

static void cancelled_ones_went_back(void)
{
    for (uint32_t i = 0; i < FEW; i++)
        scene_must(!the_item(i) || the_item(i)->ledger.effects == the_item(i)->ledger.undos,
                   "what began before the cancel is undone");
    scene_must(!the_item(FEW - 1), "nothing began after the cancel");
}

/* clang-format off */
#define LIST(count, places, undoes)                                                              \
    .is_each = true, .items_fixed = (count), .items_max = MANY, .concurrency = (places),         \
    .undo = (undoes)
/* clang-format on */

const struct scene scenes_of_items[] = {
    {
        .name = "item_in_doubt",
        .sentence = "an item is in doubt when its step fails, and took effect: it is undone, and"
                    " so is what completed; the others do not begin",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 2, UNDO_CALL)}}},
        .parts = {{.step = UNIT_OF(0, 1),
                   .direction = DIRECTION_FORWARD,
                   .act = {SAYS_NOTHING, .takes = 100, .effect = true}},
                  {.direction = DIRECTION_FORWARD, .act = {SAYS_DONE, .takes = 900}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}},
        .expect = doubt_was_undone,
    },
    {
        .name = "killed_between_items",
        .sentence = "a server dies after items were done, and before it has stored that; each is"
                    " done once",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 2, UNDO_CALL), .retry = {.attempts = 5}}}},
        .parts = {{.act = {SAYS_DONE, .takes = 300}}},
        .beats = {{.what = "an item was done", .until = first_has_happened, .then = node_crashes},
                  {.what = "another one began", .until = third_has_begun, .then = node_crashes},
                  {.what = "and another one", .until = fifth_has_begun, .then = node_crashes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "", NOTHING}},
        .expect = all_are_done,
    },
    {
        .name = "thousand_undone",
        .sentence = "a step behind a list of 1 000 fails; the server is killed three times while"
                    " they are undone, each once",
        .places = 20,
        .flow = {.step_count = 2,
                 .steps = {{LIST(MANY, 10, UNDO_CALL), .retry = {.attempts = 5},
                            .undo_retry = {.attempts = 5}},
                           {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 10}}},
        .beats = {{.what = "a few are undone", .until = a_few_are_undone, .then = node_crashes},
                  {.what = "half are undone", .until = half_are_undone, .then = node_crashes},
                  {.what = "most are undone", .until = most_are_undone, .then = node_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = many_went_back,
    },
    {
        .name = "cancelled_among_items",
        .sentence = "a task is cancelled while items run: they end and are undone, one by one, and"
                    " no other begins (Camunda invokes no handler for a list that is not done)",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 2, UNDO_CALL)}}},
        .parts = {{.direction = DIRECTION_FORWARD, .act = {SAYS_DONE, .takes = 400}}},
        .beats = {{.what = "the third began", .until = third_has_begun, .then = wants_cancel}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}},
        .expect = cancelled_ones_went_back,
    },
    {
        .name = "continued_then_undone",
        .sentence = "an item fails, which is tolerated; then another step fails: those that took"
                    " effect are undone, and the one that failed is not",
        .flow = {.step_count = 2,
                 .steps = {{LIST(FEW, 3, UNDO_CALL), .items_go_on = true},
                           {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = UNIT_OF(0, 1), .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 10}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = all_but_the_second_went_back,
    },
    {
        .name = "pivot_of_items",
        .sentence = "the first item of a pivot takes effect, the second one fails: the others are"
                    " done, the task stops, and goes on when the item is skipped",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 1, UNDO_PIVOT)}}},
        .parts = {{.step = UNIT_OF(0, 1), .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "the task stopped", .until = stopped, .then = skips_the_second}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "", NOTHING}},
        .expect = all_but_the_second_are_done,
    },
    {
        .name = "pivot_of_no_item",
        .sentence = "all items of a pivot fail, which is tolerated, and then another step: the"
                    " task turns back, because no item completed",
        .flow = {.step_count = 2,
                 .steps = {{LIST(FEW, 2, UNDO_PIVOT), .items_go_on = true},
                           {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 10}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_COMPLETED, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = nothing_happened,
    },
    {
        .name = "loop_undone_in_reverse",
        .sentence = "a step behind a list fails: each item is undone once, the last one first",
        .flow = {.step_count = 2,
                 .steps = {{LIST(FEW, 1, UNDO_CALL)}, {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 10}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = few_went_back,
    },
    {
        .name = "first_of_loop_fails",
        .sentence = "the first item fails: the undo is not asked for it, nor for those that did"
                    " not begin (workflow-core#679)",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 2, UNDO_CALL)}}},
        .parts = {{.step = UNIT_OF(0, 0), .act = {SAYS_REFUSED, .takes = 200}},
                  {.direction = DIRECTION_FORWARD, .act = {SAYS_DONE, .takes = 300}}},
        .end = TASK_COMPENSATED,
        .expect = only_what_was_done,
    },
    {
        .name = "one_more_than_tolerated",
        .sentence = "more items fail than are tolerated: what the others did does not stay",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 1, UNDO_CALL), .tolerated = 2000}}},
        .parts = {{.step = UNIT_OF(0, 0), .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = UNIT_OF(0, 3), .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}},
        .expect = only_what_was_done,
    },
    {
        .name = "as_many_as_tolerated",
        .sentence = "as many items fail as are tolerated: the step completes",
        .flow = {.step_count = 1, .steps = {{LIST(FEW, 2, UNDO_CALL), .tolerated = 2000}}},
        .parts = {{.step = UNIT_OF(0, 1), .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "", NOTHING}},
        .expect = all_but_the_second_are_done,
    },
    {
        .name = "item_retried",
        .sentence = "an item fails and the task stops; its node dies; an operator retries that"
                    " item, and the others go on",
        .flow = {.step_count = 1,
                 .on_failure = ON_FAILURE_HOLD,
                 .steps = {{LIST(FEW, 1, UNDO_CALL), .on_failure = ON_FAILURE_HOLD,
                            .complete_by_ms = 10 * MS_PER_S}}},
        .parts = {{.step = UNIT_OF(0, 1), .meanwhile = true, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "the task stopped", .until = stopped, .then = node_crashes},
                  {.what = "a while has passed", .after_ms = 2000, .then = retries_the_second}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "", NOTHING}},
        .expect = all_are_done,
    },
    {
        .name = "item_corrected",
        .sentence = "an item fails, and an operator corrects its input: it is asked for under"
                    " another key, and the others go on",
        .flow = {.step_count = 1,
                 .on_failure = ON_FAILURE_HOLD,
                 .steps = {{LIST(FEW, 1, UNDO_CALL), .on_failure = ON_FAILURE_HOLD,
                            .complete_by_ms = 10 * MS_PER_S}}},
        .parts = {{.step = UNIT_OF(0, 1), .meanwhile = true, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "the task stopped", .until = stopped, .then = corrects_the_second},
                  {.what = "a while has passed", .after_ms = 2000, .then = retries_the_second}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "", NOTHING}},
        .expect = second_has_another_key,
    },
    {
        .name = "late_item_undone_first",
        .sentence = "while two items are undone, a result says that a later one took effect after"
                    " all, which an operator had denied: it is undone before those that are left,"
                    " and those in work are not undone twice",
        .flow = {.step_count = 2,
                 .steps = {{LIST(FEW, 2, UNDO_CALL), .items_go_on = true, .complete_by_ms = 2000,
                            .undo_complete_by_ms = 30000},
                           {.before = BIT(0), .undo = UNDO_NONE, .complete_by_ms = 30000}}},
        .parts = {{.step = UNIT_OF(0, FEW - 1),
                   .direction = DIRECTION_FORWARD,
                   .act = {SAYS_DONE, .takes = 12000, .past = true}},
                  {.step = UNIT_OF(0, FEW - 1),
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_DONE, .takes = 9000}},
                  {.step = UNIT_OF(0, FEW - 2),
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_DONE, .takes = 6000}},
                  {.step = UNIT_OF(0, FEW - 3),
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_DONE, .takes = 10000}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 8000}}},
        .beats = {{.what = "the last one is in doubt",
                   .until = last_may_be_resolved,
                   .then = last_is_resolved_rashly},
                  {.what = "it took effect after all", .until = last_happened_after_all},
                  {.what = "a row of an item in work was read",
                   .until = row_was_older,
                   .then = wants_pause},
                  {.what = "that item is undone", .until = other_is_undone, .then = wants_resume}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = few_went_back,
    },
    {
        .name = "item_undone_elsewhere",
        .sentence = "a node is suspended, and another one undoes its task; then a late result of an"
                    " item comes to the first one, before it knows that it has lost the task",
        .nodes = 2,
        .flow = {.step_count = 2,
                 .steps = {{LIST(2, 1, UNDO_CALL), .items_go_on = true, .complete_by_ms = 2000},
                           {.undo = UNDO_NONE, .complete_by_ms = 10 * MS_PER_MIN}}},
        .parts = {{.step = UNIT_OF(0, 1),
                   .direction = DIRECTION_FORWARD,
                   .act = {SAYS_DONE, .takes = 20000, .past = true}},
                  {.step = 1, .act = {SAYS_NOTHING, .takes = 100}}},
        .beats = {{.what = "an item is in doubt, and a step runs",
                   .until = second_is_in_doubt,
                   .then = owner_is_suspended},
                  {.what = "the item is undone",
                   .until = second_is_undone,
                   .then = results_go_to_the_loser},
                  {.what = "its row was newer than the task", .until = row_was_newer}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}},
        .expect = nothing_is_left,
    },
    {
        .name = "paused_among_undos",
        .sentence =
            "two undos wait for another try, the row of another is known, and one ahead cannot be"
            " read: the task is paused, and belongs to nobody; it is resumed on another node, which"
            " undoes it",
        .nodes = 2,
        .rows = 3,
        .flow = {.step_count = 2,
                 .steps = {{LIST(FEW, 2, UNDO_CALL),
                            .undo_retry = {.attempts = 5, .wait_ms = 20000, .max_wait_ms = 20000}},
                           {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 10}},
                  {.step = UNIT_OF(0, FEW - 1),
                   .direction = DIRECTION_UNDO,
                   .attempt = 1,
                   .act = {SAYS_AGAIN, .takes = 50}},
                  {.step = UNIT_OF(0, FEW - 2),
                   .direction = DIRECTION_UNDO,
                   .attempt = 1,
                   .act = {SAYS_AGAIN, .takes = 50}}},
        .beats = {{.what = "rows ahead are spoilt", .then = rows_ahead_are_spoilt},
                  {.what = "they were read, and two undos are tried again later",
                   .until = spoilt_rows_were_read,
                   .then = wants_pause},
                  {.what = "it is paused, and nobody's",
                   .until = is_paused_and_free,
                   .then = is_resumed_elsewhere},
                  {.what = "the other node has it", .until = second_node_has_it}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = few_went_back,
    },
    {
        .name = "undos_elsewhere",
        .sentence = "all undos that run are elsewhere, and rows of others are read ahead: the task"
                    " leaves memory; its node crashes, and another one goes on with the results",
        .nodes = 2,
        .flow = {.step_count = 2,
                 .steps = {{LIST(FEW, 2, UNDO_CALL), .undo_complete_by_ms = 5 * MS_PER_MIN},
                           {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 10}},
                  {.step = UNIT_OF(0, FEW - 1),
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_ELSEWHERE, .takes = 20, .comes = MS_PER_MIN}},
                  {.step = UNIT_OF(0, FEW - 2),
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_ELSEWHERE, .takes = 20, .comes = MS_PER_MIN}}},
        .beats = {{.what = "the undos are elsewhere", .until = undos_are_elsewhere},
                  {.what = "it is in no memory", .until = is_in_no_memory, .then = owner_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "", NOTHING}, {STEP_FAILED, "F", NOTHING}},
        .expect = few_went_back,
    },
    {.name = NULL},
};
