/* Families: what is kept of a child, what an operator is told of one, why a step waits for it, and
 * which families are damaged. What happens to them is in child_test.c. */
#include "core/core_test_kit.h"
#include "core/ready.h"
#include "core/reason.h"

static struct kit k;

static void each_child_has_a_number_of_its_own(void **state)
{
    const struct child *c = &k.steps[0].child;
    (void)state;

    kit_make(&k, "numbers", "a:#");
    CHECK(c->number == 0 && c->state == CHILD_NONE, "there is none");
    kit_play(&k, "begin a");
    CHECK(c->number == 1 && c->state == CHILD_RUNNING, "the first");
    kit_play(&k, "compensated a, retry a");
    CHECK(c->number == 1 && c->state == CHILD_NONE && k.steps[0].begun_at == 0, "none again");
    kit_play(&k, "begin a");
    CHECK(c->number == 2 && c->state == CHILD_RUNNING && c->wish == WISH_NONE, "the second");
    kit_make(&k, "numbers", "a:- b<a");
    kit_play(&k, "begin a, processed a, from a, begin a");
    CHECK(c->number == 2 && c->state == CHILD_RUNNING, "what starts anew has another");
}

static void the_input_of_a_child_is_kept(void **state)
{
    const struct step *s = &k.steps[0];
    struct event begin = {.kind = EVENT_BEGIN, .input.json = SLICE("1")};
    (void)state;

    kit_make(&k, "input", "a:#");
    CHECK(kit_event(&k, &begin) == ANSWER_ACCEPTED && slice_is(s->input.json, "1"), "as given");
    kit_play(&k, "compensated a, retry a");
    begin.input.json = SLICE("2");
    CHECK(kit_event(&k, &begin) == ANSWER_ACCEPTED && slice_is(s->input.json, "1"), "stays");
    kit_play(&k, "compensated a, correct a, retry a");
    begin.input = (struct value){0};
    CHECK(kit_event(&k, &begin) == ANSWER_ACCEPTED && slice_is(s->input.json, "{\"in\":2}"),
          "unless it is corrected");
}

static void what_the_child_returns_is_kept(void **state)
{
    const struct step *s = &k.steps[0];
    (void)state;

    kit_make(&k, "output", "a: b");
    kit_play(&k, "begin a, processed a");
    CHECK(slice_is(s->output.json, "{\"id\":3}") && !s->error.code.ptr, "its output");
    kit_make(&k, "error", "a:");
    kit_play(&k, "begin a, compensated a");
    CHECK(slice_is(s->error.code, "broken") && slice_is(s->error.message, "it broke"), "its error");
    CHECK(slice_is(k.t.cause.error.code, "broken") && k.t.cause.step == 0, "the cause");
    CHECK(s->failure_count == 1 && k.t.failure_count == 1, "one failure");
}

static void a_task_says_that_a_child_stopped_it(void **state)
{
    const struct step *s = &k.steps[1];
    (void)state;

    kit_make(&k, "error", "a b:");
    kit_play(&k, "claim, start a, begin b, error b");
    CHECK(slice_is(s->error.code, "child") && !k.t.error.code.ptr, "the step says so");
    kit_play(&k, "ok a");
    CHECK(slice_is(k.t.error.code, "child") && k.t.cause.step == 1, "then the task");
    CHECK(slice_is(k.t.cause.error.code, "child"), "it is the cause");
    kit_play(&k, "running b");
    CHECK(!k.t.error.code.ptr && !k.t.cause.error.code.ptr && !s->error.code.ptr, "that is over");
    kit_play(&k, "error b, processed b");
    CHECK(!s->error.code.ptr && !k.t.error.code.ptr, "all is well");
    kit_make(&k, "pivot", "a b:!");
    kit_play(&k, "claim, start a, begin b, fail a, stuck b");
    CHECK(slice_is(k.t.error.code, "pivot") && k.t.cause.step == 0, "the cause stays");
    kit_play(&k, "turned b");
    CHECK(slice_is(k.t.error.code, "broken"), "so does the error");
    kit_make(&k, "other pivots", "a b:! c!?");
    kit_play(&k, "claim, start a, start c, begin b, doubt c, fail a, stuck b, turned b");
    kit_expect(&k, "error a:failed b:waiting/turned c:failed");
    CHECK(slice_is(k.t.error.code, "broken"), "that is not because of the child alone");
}

static void a_step_says_that_its_child_is_late(void **state)
{
    const struct step *s = &k.steps[0];
    (void)state;

    kit_make(&k, "late", "a|");
    kit_play(&k, "begin a");
    CHECK(task_wake_at(&k.t) == s->complete_by && s->complete_by == k.now + GRAPH_SIGNAL_MS,
          "somebody looks then");
    kit_play(&k, "late a");
    CHECK(slice_is(s->error.code, "timeout") && task_wake_at(&k.t) == 0, "once");
    kit_play(&k, "turned a");
    CHECK(slice_is(s->error.code, "timeout"), "it stays known");
    kit_play(&k, "processed a = refused, compensated a");
    CHECK(slice_is(k.t.cause.error.code, "broken"), "the child says more");
}

/* What only waits for its child is not to be started. */
static void what_waits_for_a_child_is_not_ready(void **state)
{
    struct ready ready[GRAPH_STEPS];
    (void)state;

    kit_make(&k, "ready", "a> b:<a");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 1 && ready[0].step == 0, "it is to begin");
    kit_play(&k, "claim, begin a");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 0, "it waits");
    kit_play(&k, "processed a, begin b, undo");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 0, "its child turns back");
    kit_play(&k, "compensated b");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 1 && ready[0].step == 0, "an agent undoes it");
    const struct attempt next = task_next_attempt(&k.g.w, &k.t, 0, k.now);
    CHECK(next.direction == DIRECTION_UNDO && next.number == 1
              && next.complete_by == k.now + GRAPH_UNDO_MS,
          "by its first attempt");
}

/* ---- what an operator is told ---- */

static const struct {
    const char *graph, *script;
    enum event_kind verb;
    int step;
    enum obstacle want;
    uint16_t at;
} obstacles[] = {
    {"b: a:", "begin a", EVENT_SKIP, 0, OBSTACLE_CHILD_RUNS, 0},
    {"b: a:", "begin a", EVENT_SUPPLY, 0, OBSTACLE_CHILD_RUNS, 0},
    {"b: a:", "begin a", EVENT_CORRECT, 0, OBSTACLE_CHILD_RUNS, 0},
    {"b: a:", "begin a", EVENT_RETRY, 0, OBSTACLE_CHILD_RUNS, 0},
    {"b: a:", "begin a", EVENT_RETRY_FROM, 0, OBSTACLE_CHILD_RUNS, 0},
    {"a b:<a", "claim, start a, ok a, begin b", EVENT_RETRY_FROM, 0, OBSTACLE_EFFECT, 0},
    {"a- b:<a", "claim, start a, ok a, begin b", EVENT_RETRY_FROM, 0, OBSTACLE_CHILD_RUNS, 1},
    {"a: b", "begin a, error a", EVENT_RETRY, 0, OBSTACLE_CHILD_STOPPED, 0},
    {"a: b", "begin a, error a", EVENT_CORRECT, 0, OBSTACLE_CHILD_STOPPED, 0},
    {"a: b", "begin a, error a", EVENT_RETRY_FROM, 0, OBSTACLE_CHILD_STOPPED, 0},
    {"a: b", "begin a, error a", EVENT_SKIP, 0, OBSTACLE_NONE, 0},
    {"a: b:", "begin a, begin b, processed a, error b", EVENT_RETRY, -1, OBSTACLE_CHILD_STOPPED, 1},
    {"a: b<a", "begin a, processed a, undo, stuck a", EVENT_RETRY, -1, OBSTACLE_CHILD_STOPPED, 0},
    {"a: b<a", "begin a, processed a", EVENT_RETRY_FROM, 0, OBSTACLE_EFFECT, 0},
    {"a: b<a", "begin a, processed a", EVENT_SKIP, 0, OBSTACLE_ENDED, 0},
    {"a: b<a", "begin a, processed a, undo", EVENT_SKIP, 0, OBSTACLE_CHILD_RUNS, 0},
    {"a# b:", "claim, start a, begin b, fail a", EVENT_CLOSE, -1, OBSTACLE_CHILD_RUNS, 1},
    {"a# b:", "claim, start a, begin b, fail a, error b", EVENT_CLOSE, -1, OBSTACLE_NONE, 0},
    {"a# b:!", "claim, start a, begin b, fail a", EVENT_UNDO, -1, OBSTACLE_NONE, 0},
    {"a# b:!", "claim, start a, begin b, fail a, stands b", EVENT_UNDO, -1, OBSTACLE_PIVOT, 1},
    {"a# b:!", "claim, start a, begin b, fail a, stuck b", EVENT_UNDO, -1, OBSTACLE_PIVOT, 1},
    {"a:", "begin a", EVENT_RESOLVE, 0, OBSTACLE_KNOWN, 0},
    {"child a", "", EVENT_PAUSE, -1, OBSTACLE_CHILD, 0},
    {"child a", "told-pause", EVENT_RESUME, -1, OBSTACLE_CHILD, 0},
    {"child a#", "claim, start a, fail a", EVENT_CLOSE, -1, OBSTACLE_CHILD, 0},
    {"child a#", "claim, start a, fail a, told-close", EVENT_REOPEN, -1, OBSTACLE_CHILD, 0},
    {"child a#", "claim, start a, fail a, told-close", EVENT_RETRY, 0, OBSTACLE_CLOSED, 0},
    {"child a", "claim, start a, ok a", EVENT_UNDO, -1, OBSTACLE_CHILD, 0},
    {"child a b", "claim, start a, ok a", EVENT_UNDO, -1, OBSTACLE_NONE, 0},
};

static void an_operator_is_told_what_a_child_prevents(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(obstacles); i++) {
        uint16_t at = 0;
        kit_make(&k, obstacles[i].script, obstacles[i].graph);
        kit_play(&k, obstacles[i].script);
        int step = obstacles[i].step;
        enum obstacle o = operator_obstacle(&k.g.w, &k.t, obstacles[i].verb, step, k.now, &at);
        CHECK(o == obstacles[i].want, "%s: %s: obstacle %d", obstacles[i].graph,
              obstacles[i].script, (int)o);
        CHECK(o == OBSTACLE_NONE || at == obstacles[i].at, "%s: %s: step %u", obstacles[i].graph,
              obstacles[i].script, at);
    }
}

/* ---- why it waits ---- */

static const struct {
    const char *graph, *script;
    enum reason_kind kind; /* of step a */
    uint32_t count;
    bool has_until;
} reasons[] = {
    {"a:", "wait 1s", REASON_CHILD, 0, false},
    {"a:", "begin a, wait 1s", REASON_CHILD, 1, false},
    {"a|", "begin a, wait 1s", REASON_CHILD, 1, true},
    {"a| b", "begin a, late a", REASON_CHILD, 1, false},
    {"a: b", "begin a, turned a", REASON_CHILD, 1, false},
    {"a: b", "begin a, error a", REASON_CHILD_STOPPED, 1, false},
    {"a:", "begin a, error a", REASON_CHILD_STOPPED, 1, false},
    {"a:#", "begin a, compensated a, retry a, begin a", REASON_CHILD, 2, false},
    {"a: b<a", "claim, begin a, processed a, undo", REASON_CHILD, 1, false},
    {"a: b<a", "claim, begin a, processed a, undo, turned a", REASON_CHILD, 1, false},
    {"a: b<a", "claim, begin a, processed a, undo, stuck a", REASON_CHILD_STOPPED, 1, false},
    {"a: b<a", "claim, begin a, undo", REASON_CHILD, 1, false},
    {"a: b:<a", "claim, begin a, processed a, begin b, undo", REASON_UNDO_AFTER, 0, false},
    {"a> b<a", "claim, begin a, processed a, undo", REASON_NO_AGENT, 0, false},
    {"a:! b", "claim, begin a, undo", REASON_CHILD, 1, false},
    {"a:! b#", "claim, begin a, start b, fail b, stuck a, undo = refused", REASON_CHILD_STOPPED, 1,
     false},
};

static void no_agent_is_here(void *arg, int step, struct slice name, struct agent_view *ret)
{
    (void)arg;
    (void)step;
    (void)name;
    *ret = (struct agent_view){0};
}

static void it_is_said_that_a_step_waits_for_its_child(void **state)
{
    static struct reasons all;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        kit_make(&k, reasons[i].script, reasons[i].graph);
        kit_play(&k, reasons[i].script);
        const struct facts f = {.now = k.now, .agent = no_agent_is_here};
        reasons_find(&k.g.w, &k.t, &f, &all);
        const struct reason *found = NULL;
        for (size_t n = 0; n < all.count; n++)
            if (all.list[n].step == 0 && all.list[n].kind != REASON_PIVOT_HOLDS)
                found = &all.list[n];
        CHECK(found && found->kind == reasons[i].kind, "%s: %s: %s", reasons[i].graph,
              reasons[i].script, found ? reason_word(found->kind) : "nothing");
        CHECK(found->count == reasons[i].count && (found->until != 0) == reasons[i].has_until,
              "%s: %s: child %u until %d", reasons[i].graph, reasons[i].script, found->count,
              (int)found->until);
    }
}

/* ---- what is damaged ---- */

#define SPOIL(name, change) \
    static void name(void)  \
    {                       \
        change;             \
    }

SPOIL(a_child_without_a_number, k.steps[0].child.number = 0)
SPOIL(a_child_of_a_step_that_has_not_begun, k.steps[0].begun_at = 0)
SPOIL(begun_without_a_child, k.steps[0].child.state = CHILD_NONE)
SPOIL(a_wait_for_a_child_that_has_ended, k.steps[0].child.state = CHILD_PROCESSED)
SPOIL(another_such_wait, k.steps[0].child.state = CHILD_COMPENSATED)
SPOIL(a_child_without_an_input, k.steps[0].input.json = SLICE_NONE)
SPOIL(undone_going_forward, k.steps[0].child.wish = WISH_UNDO)
SPOIL(completed_by_a_child_that_runs, k.steps[0].state = STEP_COMPLETED;
      k.steps[0].output.json = SLICE("1"))
SPOIL(failed_with_a_child_that_runs, k.steps[0].state = STEP_FAILED;
      k.steps[0].error.code = SLICE("x"))
SPOIL(an_attempt_in_its_place, k.steps[0].state = STEP_RUNNING)
SPOIL(a_wait_for_a_time, k.steps[0].wait_until = 5)
SPOIL(a_round, k.steps[0].round = 1)
SPOIL(a_resolve, k.steps[0].resolved = 1)
SPOIL(a_child_of_a_call, k.steps[1].child.number = 1)
SPOIL(a_child_before_its_turn, k.steps[2].child.number = 1; k.steps[2].child.state = CHILD_RUNNING;
      k.steps[2].begun_at = 1; k.steps[2].input.json = SLICE("1"))
SPOIL(no_family, k.t.family = SLICE_NONE)
SPOIL(no_root, k.t.root = SLICE_NONE)
SPOIL(no_parent, k.t.parent = SLICE_NONE)
SPOIL(an_empty_parent, k.t.parent = SLICE(""))
SPOIL(no_parent_step, k.t.parent_step = SLICE_NONE)
SPOIL(no_parent_number, k.t.parent_number = 0)
SPOIL(a_lock_of_a_child, k.t.lock = SLICE("a/b"))
SPOIL(to_be_undone_before_it_is_processed, k.t.asked = WISH_UNDO)
SPOIL(asked_by_nobody, k.t.parent = k.t.root = k.t.parent_step = SLICE_NONE; k.t.parent_number = 0;
      k.t.asked = WISH_STOP)

#define BAD(name)   \
    {               \
        #name, name \
    }

static void damaged_families_are_found(void **state)
{
    static const struct {
        const char *what;
        void (*spoil)(void);
    } mistakes[] = {
        BAD(a_child_without_a_number),
        BAD(a_child_of_a_step_that_has_not_begun),
        BAD(begun_without_a_child),
        BAD(a_wait_for_a_child_that_has_ended),
        BAD(another_such_wait),
        BAD(a_child_without_an_input),
        BAD(undone_going_forward),
        BAD(completed_by_a_child_that_runs),
        BAD(failed_with_a_child_that_runs),
        BAD(an_attempt_in_its_place),
        BAD(a_wait_for_a_time),
        BAD(a_round),
        BAD(a_resolve),
        BAD(a_child_of_a_call),
        BAD(a_child_before_its_turn),
        BAD(no_family),
        BAD(no_root),
        BAD(no_parent),
        BAD(an_empty_parent),
        BAD(no_parent_step),
        BAD(no_parent_number),
        BAD(a_lock_of_a_child),
        BAD(to_be_undone_before_it_is_processed),
        BAD(asked_by_nobody),
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        kit_make(&k, mistakes[i].what, "child a: b c:<a");
        kit_play(&k, "claim, begin a, start b");
        CHECK(task_valid(&k.g.w, &k.t), "before");
        mistakes[i].spoil();
        CHECK(!task_valid(&k.g.w, &k.t), "%s", mistakes[i].what);
    }
}

static void a_task_that_turned_back_has_no_pivot_child_that_may_stand(void **state)
{
    static const struct {
        enum child_state state;
        bool valid;
    } states[] = {{CHILD_RUNNING, false},
                  {CHILD_ERROR, false},
                  {CHILD_STANDS, false},
                  {CHILD_TURNED, true},
                  {CHILD_STUCK, true}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(states); i++) {
        kit_make(&k, child_state_text(states[i].state), "a:! b");
        kit_play(&k, "claim, begin a, start b, fail b, turned a");
        k.steps[0].child.state = states[i].state;
        CHECK(task_valid(&k.g.w, &k.t) == states[i].valid, "%s", k.about);
    }
}

static void an_undo_has_its_child(void **state)
{
    struct step *s = &k.steps[0];
    (void)state;

    kit_make(&k, "undo", "a: b<a");
    kit_play(&k, "claim, begin a, processed a, undo");
    s->child.state = CHILD_RUNNING;
    CHECK(!task_valid(&k.g.w, &k.t), "one that goes forward is not undone");
    s->child.state = CHILD_TURNED;
    CHECK(task_valid(&k.g.w, &k.t), "one that goes back is");
    s->state = STEP_FAILED;
    s->error.code = SLICE("x");
    CHECK(!task_valid(&k.g.w, &k.t), "it is stuck, and not failed");
    kit_make(&k, "undo by a call", "a> b<a");
    kit_play(&k, "claim, begin a, processed a, undo, start a");
    CHECK(task_valid(&k.g.w, &k.t), "an agent undoes it");
    s->child.state = CHILD_TURNED;
    CHECK(!task_valid(&k.g.w, &k.t), "its child has ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_child_has_a_number_of_its_own),
        cmocka_unit_test(the_input_of_a_child_is_kept),
        cmocka_unit_test(what_the_child_returns_is_kept),
        cmocka_unit_test(a_task_says_that_a_child_stopped_it),
        cmocka_unit_test(a_step_says_that_its_child_is_late),
        cmocka_unit_test(what_waits_for_a_child_is_not_ready),
        cmocka_unit_test(an_operator_is_told_what_a_child_prevents),
        cmocka_unit_test(it_is_said_that_a_step_waits_for_its_child),
        cmocka_unit_test(damaged_families_are_found),
        cmocka_unit_test(a_task_that_turned_back_has_no_pivot_child_that_may_stand),
        cmocka_unit_test(an_undo_has_its_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
