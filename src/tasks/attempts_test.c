/* Tests of open attempts in memory: what counts against limits (limits.c), calls that carry
 * attempts (calls.c), heartbeats (pulses.c) and silence (silence.c). tasks_test_kit.h has the
 * stage. */

#include "tasks/calls.h"
#include "tasks/limits.h"
#include "tasks/live.h"
#include "tasks/pulses.h"
#include "tasks/silence.h"
#include "tasks/tasks_test_kit.h"

enum { BEAT_MS = 5000, GRACE_MS = 10000 };

#define STEPS                                                                            \
    "[{\"name\":\"a\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\",\"after\":[]," \
    "\"heartbeat\":\"5s\",\"complete_by\":\"1h\"},"                                      \
    "{\"name\":\"b\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\",\"after\":[],"  \
    "\"complete_by\":\"1h\"}]"

static struct floor f;

static struct agent *agent(void)
{
    return dispatch_agent(&f.ts.dispatch, SLICE("ag"));
}

static struct instance *instance(const char *name)
{
    return dispatch_instance(agent(), slice_of(name));
}

/* ---- limits ---- */

static void an_open_attempt_counts_until_it_is_detached(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    struct live_step *a = floor_start(&f, l, 0, "i");
    (void)floor_start(&f, l, 1, "i");
    CHECK(f.ts.counts.open_attempts == 2 && instance("i")->open == 2, "two");
    CHECK(agent()->limiter.open == 2, "of the agent");
    live_goes_elsewhere(&f.ts, l, 0);
    CHECK(f.ts.counts.open_attempts == 1 && instance("i")->open == 1, "one is elsewhere");
    CHECK(a->elsewhere && !a->instance && live_any_open(l), "it is open all the same");
    live_drop(&f.ts, l);
    CHECK(f.ts.counts.open_attempts == 0 && agent()->limiter.open == 0, "none");
    floor_end(&f);
}

/* Otherwise a conflict would let more begin than the limit allows. */
static void an_attempt_counts_while_its_task_is_read_again(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    (void)floor_start(&f, l, 0, "i");
    agent()->limited = true;
    live_reload(&f.ts, l);
    CHECK(f.ts.counts.open_attempts == 0 && agent()->limiter.open == 1, "it still counts");
    limits_forget(l);
    CHECK(agent()->limiter.open == 0, "its row does not exist");
    floor_end(&f);
}

static void what_another_node_took_over_counts_until_its_complete_by(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    (void)floor_start(&f, l, 0, "i");
    agent()->limited = true;
    limits_keep(l);
    CHECK(agent()->limiter.open == 2, "once at its instance, once for the row");
    l->task.locked_by = SLICE("n2/1");
    limits_kept(&f.ts, l);
    CHECK(!list_empty(&f.ts.lost) && limits_next(&f.ts) > f.now, "it is lost to another node");
    limits_expire(&f.ts, f.now + 3600000);
    CHECK(list_empty(&f.ts.lost) && agent()->limiter.open == 1, "its time is over");
    l->task.locked_by = f.ts.me;
    floor_end(&f);
}

/* ---- calls ---- */

static void a_call_is_answered_once_it_is_settled(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    struct work *w = floor_call(&f, "i", 2);
    call_assign(w, floor_start(&f, l, 0, "i"));
    w->unsettled = 1;
    call_close(&f.ts, w);
    CHECK(w->closed && !link_is_in(&w->turn), "the start is not durable yet");
    call_settle(&f.ts, w, 1);
    CHECK(list_first(&f.ts.answerable) == &w->turn, "now it is");
    floor_answer(&f, w);
    floor_end(&f);
}

static void a_full_call_takes_its_turn_again_when_an_attempt_is_dropped(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    struct work *w = floor_call(&f, "i", 1);
    struct live_step *ls = floor_start(&f, l, 0, "i");
    call_assign(w, ls);
    ls->pending = true;
    w->unsettled = 1;
    link_remove(&w->turn); /* no place is left */
    live_reload(&f.ts, l);
    CHECK(w->assigned_count == 0 && w->unsettled == 0 && !w->closed, "it carries nothing");
    CHECK(list_first(&agent()->calls) == &w->turn, "and has a place");
    floor_answer(&f, w);
    floor_end(&f);
}

static void a_call_that_waited_long_enough_is_answered(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct work *w = floor_call(&f, "i", 1);
    call_expire(&f.ts, f.now + 19999);
    CHECK(!w->closed, "not yet");
    agent()->left_out = f.ts.effort.turn + 1;
    call_expire(&f.ts, f.now + 20000);
    CHECK(!w->closed && heap_min(&f.ts.waits) == &w->timer, "there is work in the next turn");
    agent()->left_out = 0;
    call_expire(&f.ts, f.now + 20001);
    CHECK(w->closed && list_first(&f.ts.answerable) == &w->turn, "now");
    floor_answer(&f, w);
    floor_end(&f);
}

static void a_stop_wakes_the_instance(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    (void)floor_start(&f, l, 0, "i");
    struct work *w = floor_call(&f, "i", 1);
    struct work *other = floor_call(&f, "j", 1);
    call_stop_forward(&f.ts, l);
    call_stop_forward(&f.ts, l);
    CHECK(instance("i")->stops == 1, "counted once");
    CHECK(w->closed && !other->closed, "its call alone");
    floor_answer(&f, w);
    floor_answer(&f, other);
    floor_end(&f);
}

/* ---- heartbeats ---- */

static struct heartbeat beat_of(const char *progress, const char *resume)
{
    return (struct heartbeat){.progress = slice_of(progress),
                              .resume = slice_of(resume),
                              .of = {.step = 0, .direction = DIRECTION_FORWARD, .attempt = 1}};
}

static void the_latest_heartbeat_is_kept_and_resume_details_stay(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct heartbeat first = beat_of("1", "{\"at\":1}");
    struct heartbeat second = beat_of("2", NULL);
    struct pulses all;
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    pulses_keep(l, &first, f.now);
    CHECK(!pulses_is_progress(l, &first) && pulses_is_progress(l, &second), "what is progress");
    pulses_keep(l, &second, f.now + 1);
    const struct pulse *p = pulses_find(l, 0, DIRECTION_FORWARD, 1);
    CHECK(p && p->at == f.now + 1 && slice_is(p->progress, "2"), "the second one");
    CHECK(slice_is(p->resume, "{\"at\":1}"), "details of the first one");
    CHECK(!pulses_find(l, 0, DIRECTION_FORWARD, 2), "another attempt has none");
    pulses_copy_all(l, &a, &all);
    CHECK(all.count == 1 && slice_is(all.list[0].pulse.progress, "2"), "a copy");
    pulses_forget(l, 0);
    CHECK(!pulses_find(l, 0, DIRECTION_FORWARD, 1), "its attempt has ended");
    floor_end(&f);
}

static void check_silence(struct live *l, int64_t at, size_t events)
{
    enum event_kind kind = EVENT_SILENCE;

    f.now = at;
    silence_check(&f.ts, at);
    CHECK(floor_posted(l, &kind) == events && kind == EVENT_SILENCE, "%zu events", events);
}

static void an_attempt_may_be_silent_for_so_long(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    int64_t start = f.now;
    silence_begin(&f.ts, floor_start(&f, l, 0, "i"));
    silence_begin(&f.ts, floor_start(&f, l, 1, "i"));
    CHECK(f.ts.silences.len == 1, "the other step has no limit");
    check_silence(l, start + 2000, 0);
    silence_broken(&f.ts, &l->steps[0]);
    check_silence(l, start + BEAT_MS, 0);
    check_silence(l, start + 2000 + BEAT_MS, 0); /* a heartbeat may be on its way */
    check_silence(l, start + 2000 + BEAT_MS + 1, 1);
    CHECK(silence_is_too_long(&f.ts, &l->steps[0]), "it is to be ended");
    floor_end(&f);
}

/* The process stood: heartbeats may have come meanwhile. */
static void time_in_which_nothing_was_checked_is_no_silence(void **state)
{
    (void)state;

    floor_begin(&f, STEPS);
    struct live *l = floor_task(&f, "t", 5);
    int64_t start = f.now;
    silence_begin(&f.ts, floor_start(&f, l, 0, "i"));
    check_silence(l, start + 60000, 0);
    check_silence(l, start + 60001, 0);
    CHECK(l->steps[0].silent_by == start + 60000 + GRACE_MS, "it gets the grace time");
    silence_end(&f.ts, &l->steps[0]);
    CHECK(silence_next(&f.ts) == 0, "nothing is to be checked");
    floor_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_attempt_counts_until_it_is_detached),
        cmocka_unit_test(an_attempt_counts_while_its_task_is_read_again),
        cmocka_unit_test(what_another_node_took_over_counts_until_its_complete_by),
        cmocka_unit_test(a_call_is_answered_once_it_is_settled),
        cmocka_unit_test(a_full_call_takes_its_turn_again_when_an_attempt_is_dropped),
        cmocka_unit_test(a_call_that_waited_long_enough_is_answered),
        cmocka_unit_test(a_stop_wakes_the_instance),
        cmocka_unit_test(the_latest_heartbeat_is_kept_and_resume_details_stay),
        cmocka_unit_test(an_attempt_may_be_silent_for_so_long),
        cmocka_unit_test(time_in_which_nothing_was_checked_is_no_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
