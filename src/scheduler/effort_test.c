/* What one turn evaluates is bounded, however much tasks ask for; each condition is decided once;
 * and no kind of evaluation starves. */
#include "scheduler/scheduler_test_kit.h"

/* {"a":[0,0,...],"n":1} with `zeros` zeros. */
static struct slice heavy(struct arena *a, size_t zeros)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "{\"a\":[0");
    while (zeros-- > 1)
        buf_str(&b, ",0");
    buf_str(&b, "],\"n\":1}");
    return arena_copy(a, buf_view(&b));
}

/* Appends `count` parallel steps with this `if`. */
static void add_steps(struct buf *b, const char *prefix, unsigned count, const char *condition)
{
    for (unsigned i = 0; i < count; i++)
        buf_fmt(b,
                "%s{\"name\":\"%s%u\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                "\"after\":[],\"if\":\"%s\"}",
                b->len > 0 && b->ptr[b->len - 1] == '}' ? "," : "", prefix, i, condition);
}

static void define_conditions(struct stage *s, unsigned count, const char *yes, const char *no)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "\"steps\":[");
    add_steps(&b, "yes", count, yes);
    add_steps(&b, "no", count, no);
    buf_byte(&b, ']');
    stage_define(s, "w", b.ptr);
}

/* ---- conditions ---- */

static void each_condition_is_evaluated_once(void **state)
{
    enum { MANY = 50 };
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, MANY, ".input.n == 1", ".input.n == 0");
    stage_until_answered(&s, stage_submit(&s, "w", SLICE("{\"n\":1}")));
    CHECK(stage_stats(&s).evaluations == 2 * MANY, "%llu evaluations",
          (unsigned long long)stage_stats(&s).evaluations);
    stage_take_requests(&s, "ag", MANY);
    /* a claim reads the row: conditions that hold are evaluated again, then the inputs */
    CHECK(stage_stats(&s).evaluations <= 4 * MANY, "%llu evaluations",
          (unsigned long long)stage_stats(&s).evaluations);
    stage_end(&s);
}

static void a_turn_decides_no_more_than_its_share(void **state)
{
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, 8, ".input.a[0] == 0", ".input.a[0] == 1");
    stage_define(&s, "plain",
                 "\"steps\":[{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                 "\"if\":\".input.n == 1\"}]");
    struct slice input = heavy(&a, 100000);
    const struct client *first = stage_submit(&s, "w", input);
    const struct client *second = stage_submit(&s, "w", input);
    stage_turn(&s);
    const struct client *third = stage_submit(&s, "plain", SLICE("{\"n\":1}"));
    stage_until_answered(&s, third);
    CHECK(!first->answered && !second->answered, "small ones do not wait for large ones");
    stage_until_answered(&s, first);
    stage_until_answered(&s, second);
    CHECK(stage_stats(&s).evaluations == 33, "%llu evaluations",
          (unsigned long long)stage_stats(&s).evaluations);
    CHECK(stage_stats(&s).turns_left_out > 20, "many turns");
    stage_end(&s);
    arena_fini(&a);
}

/* No agent serves the step, so it waits in memory or in the store, and must see the correction. */
static void what_held_is_asked_anew_when_it_may_have_changed(void **state)
{
    static struct stage s;
    (void)state;

    stage_begin(&s);
    stage_define(
        &s, "w",
        "\"steps\":[{\"name\":\"t\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
        "\"after\":[]},{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
        "\"after\":[],\"if\":\".input.n == 1\"}]");
    const struct client *c = stage_submit(&s, "w", SLICE("{\"n\":1}"));
    stage_until_answered(&s, c);
    stage_take_requests(&s, "ag", 1); /* one of two steps: the task stays in memory */
    const struct ask correct = {.kind = ASK_CORRECT,
                                .id = c->ask.id,
                                .input = SLICE("{\"n\":0}"),
                                .reason = SLICE("a test")};
    uint64_t before = stage_stats(&s).evaluations;
    stage_until_answered(&s, stage_ask(&s, &correct));
    CHECK(stage_stats(&s).evaluations > before, "it is evaluated anew");
    stage_end(&s);
}

/* No attempt starts for a step whose condition turns out to be false. */
static void what_is_undecided_does_not_start(void **state)
{
    enum { MANY = 8 };
    CLEANUP(buf_fini) struct buf b = {0};
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    buf_str(&b, "\"steps\":[{\"name\":\"first\",\"agent\":\"ag\",\"action\":\"x\","
                "\"undo\":\"none\",\"input\":{}}");
    for (int i = 0; i < MANY; i++)
        buf_fmt(&b,
                ",{\"name\":\"s%d\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                "\"after\":[\"first\"],\"input\":{},\"if\":\".input.a[0] == 1\"}",
                i);
    buf_byte(&b, ']');
    stage_define(&s, "w", b.ptr);
    stage_until_answered(&s, stage_submit(&s, "w", heavy(&a, 100000)));
    stage_take_requests(&s, "ag", 1);
    struct work *w = stage_call_of("ag", MANY);
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[w->result_count++] = (struct work_result){.token = s.token, .output = SLICE("1")};
    s.asleep = false;
    scheduler_work(s.scheduler, w);
    scheduler_work(s.scheduler, stage_call_of("ag", MANY));
    while (s.ended == 0)
        stage_turn(&s);
    CHECK(s.requests == 1, "%zu requests", s.requests);
    stage_end(&s);
    arena_fini(&a);
}

/* The steps are claimed and all conditions hold, so there is nothing to store. */
static void what_is_left_is_not_forgotten(void **state)
{
    enum { MANY = 10 };
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, MANY, ".input.a[0] == 0", ".input.a[0] == 0");
    stage_until_answered(&s, stage_submit(&s, "w", heavy(&a, 100000)));
    int64_t from = s.now;
    stage_take_requests(&s, "ag", 2 * MANY);
    CHECK(s.now < from + 1000, "each turn was due at once, by the time that is played");
    stage_end(&s);
    arena_fini(&a);
}

/* ---- inputs and outputs ---- */

static void a_turn_starts_no_more_than_its_share(void **state)
{
    enum { TASKS = 20 };
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                 "\"input\":\"${ .input.a | length }\"}]");
    struct slice input = heavy(&a, 100000);
    for (size_t i = 0; i < TASKS; i++)
        stage_until_answered(&s, stage_submit(&s, "w", input));
    stage_take_requests(&s, "ag", TASKS);
    CHECK(stage_stats(&s).turns_left_out > TASKS / 2, "many turns");
    stage_end(&s);
    arena_fini(&a);
}

/* One kind of evaluation that uses up the turn does not starve the other kinds. */
static void nobody_waits_for_good(void **state)
{
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, 200, ".input.a[0] == 0", ".input.a[0] == 1");
    stage_define(&s, "plain",
                 "\"output\":\"${ .input.n + 1 }\",\"steps\":[{\"name\":\"s\",\"agent\":\"other\","
                 "\"action\":\"x\",\"undo\":\"none\",\"input\":\"${ .input.n }\"}]");
    const struct client *first = stage_submit(&s, "w", heavy(&a, 100000));
    stage_turn(&s);
    stage_until_answered(&s, stage_submit(&s, "plain", SLICE("{\"n\":1}")));
    stage_take_requests(&s, "other", 1);
    CHECK(!first->answered, "the other is at it yet");
    stage_until_answered(&s, first);
    stage_end(&s);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_condition_is_evaluated_once),
        cmocka_unit_test(a_turn_decides_no_more_than_its_share),
        cmocka_unit_test(what_held_is_asked_anew_when_it_may_have_changed),
        cmocka_unit_test(what_is_undecided_does_not_start),
        cmocka_unit_test(what_is_left_is_not_forgotten),
        cmocka_unit_test(a_turn_starts_no_more_than_its_share),
        cmocka_unit_test(nobody_waits_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
