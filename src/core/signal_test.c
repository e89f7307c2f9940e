/* Steps that wait for a signal: when they take one, what becomes of signals that come early, late
 * or twice, what moves the complete-by, and which signals are refused. */
#include "core/core_test_kit.h"
#include "core/ready.h"
#include "core/reason.h"

static struct kit k;

static const struct kit_case of_signals[] = {
    {"it takes a signal", "a$", "begin a, signal s k1, take a k1", "processed a:completed"},
    {"that came before it began", "a b$<a",
     "claim, start a, signal s k1, take b k1 = refused, ok a, begin b, take b k1",
     "processed a:completed b:completed"},
    {"but not before it has begun", "a$", "signal s k1, take a k1 = refused", "pending a:waiting"},
    {"one of two names", "a^", "begin a, signal r k1, take a k1", "processed a:completed"},
    {"not one of another name", "a$ b^", "begin a, signal r k1, take a k1 = refused",
     "pending a:waiting b:waiting"},
    {"each once", "a$ b$",
     "begin a, begin b, signal s k1, take a k1, take b k1 = refused, signal s k2, take b k2",
     "processed a:completed b:completed"},
    {"the same key is the same signal", "a$ b$",
     "begin a, signal s k1, signal s k1 = repeated, take a k1, signal s k1 = repeated",
     "pending a:completed b:waiting"},
    {"also after the end", "a$", "begin a, signal s k1, take a k1, signal s k1 = repeated",
     "processed a:completed"},
    {"and with other content it is refused", "a^",
     "signal s k1, other s k1 = refused, signal r k1 = refused", "pending a:waiting"},
    {"a name that no step waits for is refused", "a$", "signal r k1 = refused",
     "pending a:waiting"},
    {"or waits for any more", "a$ b<a",
     "claim, begin a, signal s k1, take a k1, signal s k2 = refused",
     "processing a:completed b:waiting"},
    {"after the end all others are refused", "a$", "begin a, skip a, signal s k1 = refused",
     "processed a:skipped"},
    {"and while the task is undone", "a b$<a",
     "claim, start a, ok a, begin b, undo, signal s k1 = refused",
     "compensating a:completed b:waiting"},
    {"in error they are kept", "a# b$",
     "claim, start a, begin b, fail a, signal s k1, take b k1 = refused, retry a, take b k1",
     "processing a:waiting b:completed"},
    {"and while it is paused", "a$",
     "begin a, pause, signal s k1, take a k1 = refused, resume, take a k1",
     "processed a:completed"},
    {"nobody signals in time", "a$", "begin a, timeout-now a = refused, late a",
     "compensated a:failed"},
    {"and the task stops in error", "a$#",
     "begin a, late a, signal s k1, retry a, begin a, take a k1", "processed a:completed"},
    {"or there is another output for that", "a&", "begin a, late a", "processed a:completed"},
    {"or it goes on", "a$? b<a", "claim, begin a, late a, start b",
     "processing a:failed b:running"},
    {"a signal that is decided on first is in time", "a$",
     "begin a, wait 1m, signal s k1, take a k1, late a = refused", "processed a:completed"},
    {"a step without a complete-by waits for ever", "a^",
     "begin a, wait 30d, timeout-now a = refused", "pending a:waiting"},
    {"its complete-by does not count while the task is undone", "a b$",
     "claim, start a, ok a, begin b, undo, wait 1m, late b = refused, start a, ok a",
     "compensated a:undone b:waiting"},
    {"nor in error", "a# b$", "claim, start a, begin b, fail a, late b = refused",
     "error a:failed b:waiting"},
    {"nor once the task's has passed", "by=5s a$", "begin a, wait 1m, late a = refused, deadline",
     "compensated a:waiting"},
    {"it starts anew with what it took", "a$ b<a",
     "claim, begin a, signal s k1, take a k1, from a, take a k1 = refused, begin a, take a k1, "
     "start b",
     "processing a:completed b:running"},
    {"or another step takes that", "a$ b$",
     "begin b, begin a, signal s k1, take a k1, from a, take b k1",
     "pending a:waiting b:completed"},
    {"one that was dropped is not taken", "a$", "begin a, signal s k1, drop s, take a k1 = refused",
     "pending a:waiting"},
    {"and is the same signal still", "a$",
     "signal s k1, drop s k1, signal s k1 = repeated, other s k1 = refused, drop s = refused",
     "pending a:waiting"},
    {"one of several", "a$", "begin a, signal s k1, signal s k2, drop s k1, take a k2",
     "processed a:completed"},
    {"nothing is left to drop", "a$",
     "begin a, drop s = refused, signal s k1, take a k1, drop s k1 = refused",
     "processed a:completed"},
    {"it is skipped, and what came stays", "a$ b$<a",
     "begin a, signal s k1, skip a, begin b, take b k1", "processed a:skipped b:completed"},
    {"its output is supplied", "a$ b<a", "claim, begin a, supply a, start b",
     "processing a:completed b:running"},
    {"it has no attempts", "a$",
     "claim, begin a, start a = refused, due-now a = refused, retry a = refused",
     "processing a:waiting"},
    {"a call takes none", "a b$", "claim, signal s k1, take a k1 = refused",
     "processing a:waiting b:waiting"},
};

static const struct kit_case of_undo[] = {
    {"a signal has the task undone", "undo-on-u a b<a", "claim, start a, ok a, signal u k1",
     "compensating a:completed b:waiting"},
    {"while something runs", "undo-on-u a", "claim, start a, signal u k1 = accepted stop",
     "compensating a:running"},
    {"before anything began", "undo-on-u a", "signal u k1", "compensated a:waiting"},
    {"once it goes on after a pause", "undo-on-u a", "pause, signal u k1, resume",
     "compensated a:waiting"},
    {"if the last step ends during the pause", "undo-on-u a",
     "claim, start a, pause, signal u k1, ok a", "compensating a:completed"},
    {"and then nothing starts before the pause is over", "undo-on-u a",
     "claim, start a, pause, signal u k1, ok a, start a = refused, resume, start a, ok a",
     "compensated a:undone"},
    {"if the last step is skipped during the pause", "undo-on-u a b$<a",
     "claim, start a, ok a, begin b, release, pause, signal u k1, skip b",
     "compensating a:completed b:skipped"},
    {"a pivot was the last step of the pause", "undo-on-u a!",
     "claim, start a, pause, signal u k1, ok a", "processed a:completed"},
    {"or after an error", "undo-on-u a#", "claim, start a, fail a, signal u k1, retry a",
     "compensated a:waiting"},
    {"unless it was dropped", "undo-on-u a#",
     "claim, start a, fail a, signal u k1, drop u, retry a", "processing a:waiting"},
    {"not after a pivot", "undo-on-u a! b<a", "claim, start a, ok a, signal u k1 = refused",
     "processing a:completed b:waiting"},
    {"a pivot that runs decides", "undo-on-u a! b", "claim, start a, signal u k1, fail a",
     "compensated a:failed b:waiting"},
    {"it takes effect: forward", "undo-on-u a! b",
     "claim, start a, signal u k1, ok a = accepted alert, start b, ok b",
     "processed a:completed b:completed"},
    {"it took effect during the pause", "undo-on-u a! b",
     "claim, start a, pause, signal u k1, ok a, resume = accepted alert, start b, ok b",
     "processed a:completed b:completed"},
    {"it was supplied in error", "undo-on-u a!# b",
     "claim, start a, fail a, signal u k1, supply a = accepted alert, start b, ok b",
     "processed a:completed b:completed"},
    {"not after its end", "undo-on-u a", "claim, start a, ok a, signal u k1 = refused",
     "processed a:completed"},
    {"not without the word", "a", "signal u k1 = refused", "pending a:waiting"},
};

static void signals(void **state)
{
    (void)state;
    kit_run(of_signals, COUNT_OF(of_signals));
    kit_run(of_undo, COUNT_OF(of_undo));
}

static void what_moves_the_complete_by(void **state)
{
    const struct lost_time none = {0};
    int64_t by = KIT_BEGIN + GRAPH_SIGNAL_MS;
    (void)state;

    kit_make(&k, "a complete-by", "a$");
    kit_play(&k, "begin a");
    CHECK(task_wake_at(&k.t) == by, "the supervisor comes then");
    CHECK(signal_overdue_at(&k.t, 0, &none) == by, "it is overdue then");
    kit_play(&k, "wait 1s, pause");
    CHECK(task_wake_at(&k.t) == 0, "its clock stands");
    kit_play(&k, "wait 1m, resume");
    CHECK(task_wake_at(&k.t) == by + 60000, "the pause does not count");
    kit_make(&k, "an error", "a# b$");
    kit_play(&k, "claim, start a, begin b, wait 1s, fail a, wait 1m");
    CHECK(task_wake_at(&k.t) == 0, "in error its clock stands");
    kit_play(&k, "retry a");
    CHECK(task_wake_at(&k.t) == by + 60000, "the time in error does not count");
}

static void lost_time_gives_grace(void **state)
{
    const struct lost_time lost = {.from = KIT_BEGIN + 5000,
                                   .until = KIT_BEGIN + 50000,
                                   .grace_ms = 10000};
    (void)state;

    kit_make(&k, "grace", "a$");
    kit_play(&k, "begin a");
    CHECK(signal_overdue_at(&k.t, 0, &lost) == KIT_BEGIN + 60000, "it gets the grace");
    kit_make(&k, "grace", "a$");
    kit_play(&k, "wait 1m, begin a");
    CHECK(signal_overdue_at(&k.t, 0, &lost) == KIT_BEGIN + 60000 + GRAPH_SIGNAL_MS,
          "it began after that");
}

/* A node's clock was ahead when it took the signal, and was set right before the step began. */
static void what_came_before_is_not_late(void **state)
{
    (void)state;

    kit_make(&k, "a clock ahead", "a$ b$");
    kit_play(&k, "begin b, signal s k1");
    k.t.signals[0].at += 1000000;
    kit_play(&k, "begin a");
    CHECK(k.t.signals[0].at == KIT_BEGIN, "it has come by now");
    kit_play(&k, "take a k1");
    kit_play(&k, "wait 1s, signal s k2");
    CHECK(k.t.signals[1].at == KIT_BEGIN + 1000, "what comes later keeps its time");
}

static void what_waits_is_not_ready(void **state)
{
    struct ready ready[GRAPH_STEPS];
    (void)state;

    kit_make(&k, "ready", "a$ b^");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 2, "both are to begin");
    CHECK(!task_awaits_signal(&k.g.w, &k.t, k.now), "neither waits yet");
    kit_play(&k, "begin b");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 1, "one has begun");
    CHECK(ready[0].step == 0, "the other is ready");
    CHECK(step_awaits_signal(&k.g.w, &k.t, 1, k.now), "it waits");
    CHECK(!step_awaits_signal(&k.g.w, &k.t, 0, k.now), "the other does not");
    kit_play(&k, "pause");
    CHECK(!task_awaits_signal(&k.g.w, &k.t, k.now), "nothing is taken while it is paused");
}

static enum answer arrives(int number, struct slice name)
{
    static char keys[KIT_SIGNALS + 2][4];
    struct event ev = {.kind = EVENT_SIGNAL, .step = -1};
    struct signal s = {.name = name, .content = SLICE("1"), .data = {.json = SLICE("1")}};

    (void)snprintf(keys[number], sizeof keys[number], "n%d", number);
    s.key = slice_of(keys[number]);
    ev.signal = &s;
    return kit_event(&k, &ev);
}

static void twenty_of_a_name_are_kept(void **state)
{
    const struct signal one = {.key = SLICE("x"), .name = SLICE("s"), .content = SLICE("1")};
    (void)state;

    kit_make(&k, "twenty", "a^");
    for (int i = 0; i < SIGNALS_KEPT_MAX; i++)
        CHECK(arrives(i, SLICE("s")) == ANSWER_ACCEPTED, "%d", i);
    CHECK(arrives(SIGNALS_KEPT_MAX, SLICE("s")) == ANSWER_REFUSED, "one too many");
    CHECK(signal_obstacle(&k.g.w, &k.t, &one) == OBSTACLE_SIGNAL_FULL, "why");
    CHECK(arrives(SIGNALS_KEPT_MAX, SLICE("r")) == ANSWER_ACCEPTED, "another name");
    kit_play(&k, "drop s n3");
    CHECK(arrives(SIGNALS_KEPT_MAX + 1, SLICE("s")) == ANSWER_ACCEPTED, "there is room again");
}

static void a_task_has_so_many_at_most(void **state)
{
    static struct signal many[SIGNALS_MAX];
    const struct signal one = {.key = SLICE("x"), .name = SLICE("s"), .content = SLICE("1")};
    (void)state;

    kit_make(&k, "many", "a$");
    for (size_t i = 0; i < SIGNALS_MAX; i++)
        many[i] = (struct signal){.key = SLICE("k"),
                                  .name = SLICE("s"),
                                  .content = SLICE("1"),
                                  .at = 1,
                                  .state = SIGNAL_DROPPED,
                                  .step = -1};
    k.t.signals = many;
    k.t.signal_cap = SIGNALS_MAX;
    k.t.signal_count = SIGNALS_MAX - 1;
    CHECK(signal_obstacle(&k.g.w, &k.t, &one) == OBSTACLE_NONE, "one more");
    k.t.signal_count = SIGNALS_MAX;
    CHECK(signal_obstacle(&k.g.w, &k.t, &one) == OBSTACLE_SIGNAL_MANY, "no more");
    CHECK(!task_needs_signal_room(&k.t), "and no room for more");
}

static void a_task_has_so_many_bytes_at_most(void **state)
{
    static char text[SIGNALS_BYTES_MAX / 4];
    const struct slice quarter = {text, sizeof text};
    struct signal one = {.key = SLICE("x"), .name = SLICE("s"), .content = SLICE("1")};
    (void)state;

    kit_make(&k, "bytes", "a$ b$");
    kit_play(&k, "begin a, signal s k1, take a k1, signal s k2, signal s k3, signal s k4");
    for (int i = 0; i < 3; i++)
        k.signals[i].data.json = quarter; /* also of one that was taken: it may be put back */
    one.data.json = (struct slice){text, sizeof text - k.signals[3].data.json.len};
    CHECK(signal_obstacle(&k.g.w, &k.t, &one) == OBSTACLE_NONE, "there is room for that");
    one.data.json.len++;
    CHECK(signal_obstacle(&k.g.w, &k.t, &one) == OBSTACLE_SIGNAL_MANY, "not for a byte more");
    kit_play(&k, "drop s k2");
    CHECK(signal_obstacle(&k.g.w, &k.t, &one) == OBSTACLE_NONE, "one that was dropped has none");
}

/* What is stored may be damaged. */
static void damaged_signals_are_found(void **state)
{
    (void)state;

    kit_make(&k, "damage", "a$ b^");
    kit_play(&k, "begin a, begin b, signal s k1, take a k1, signal s k2");
    k.signals[1].state = SIGNAL_TAKEN;
    k.signals[1].step = 0;
    CHECK(!task_valid(&k.g.w, &k.t), "a step takes one at most");
    k.signals[1].step = 1;
    CHECK(!task_valid(&k.g.w, &k.t), "a step that still waits has taken none");
    k.signals[1].state = SIGNAL_KEPT;
    CHECK(!task_valid(&k.g.w, &k.t), "what is kept is nobody's");
    k.signals[1].step = -1;
    CHECK(task_valid(&k.g.w, &k.t), "as it was");
    k.signals[0].name = SLICE("r");
    CHECK(!task_valid(&k.g.w, &k.t), "a step takes its own names only");
    k.signals[0].name = SLICE("s");
    k.signals[1].data = (struct value){0};
    CHECK(!task_valid(&k.g.w, &k.t), "what is kept has a value");
}

static void an_operator_is_told_what_it_has_not(void **state)
{
    uint16_t at = 9;
    (void)state;

    kit_make(&k, "obstacles", "a$");
    kit_play(&k, "begin a");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_RETRY, 0, k.now, &at) == OBSTACLE_KIND, "attempts");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_CORRECT, 0, k.now, &at) == OBSTACLE_KIND, "input");
    CHECK(operator_may(&k.g.w, &k.t, EVENT_SKIP, 0, k.now), "skip");
    CHECK(operator_may(&k.g.w, &k.t, EVENT_SUPPLY, 0, k.now), "supply");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals),
        cmocka_unit_test(what_moves_the_complete_by),
        cmocka_unit_test(lost_time_gives_grace),
        cmocka_unit_test(what_came_before_is_not_late),
        cmocka_unit_test(what_waits_is_not_ready),
        cmocka_unit_test(twenty_of_a_name_are_kept),
        cmocka_unit_test(a_task_has_so_many_at_most),
        cmocka_unit_test(a_task_has_so_many_bytes_at_most),
        cmocka_unit_test(damaged_signals_are_found),
        cmocka_unit_test(an_operator_is_told_what_it_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
