/* Tests of an agent against the model of agent_kit.h: handlers, lost and refused calls,
 * stopping. */
#include "base/test.h"

#include <intact/agent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/prng.h"
#include "libintact/agent_kit.h"
#include "libintact/peer.h"
#include "json/json.h"

static atomic_uint runs, early_ends;

static void wait_until(const atomic_uint *counter, unsigned value)
{
    while (atomic_load(counter) < value)
        usleep(1000);
}

static void echo(struct intact_request *r, void *arg)
{
    CLEANUP(buf_fini) struct buf b = {0};

    (void)arg;
    atomic_fetch_add(&runs, 1);
    buf_fmt(&b, "{\"task\":\"%s\",\"key\":\"%s\",\"input\":%s,\"forward\":%s,\"fkey\":\"%s\"}",
            intact_request_task(r), intact_request_idempotency_key(r), intact_request_input(r),
            intact_request_forward(r) ? intact_request_forward(r) : "0",
            intact_request_forward_key(r) ? intact_request_forward_key(r) : "");
    intact_answer(r, b.ptr);
    intact_answer(r, "\"the second answer\"");
}

static void decline(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer_retry(r, "declined", "no \"money\"", INTACT_EFFECT_NONE, 1500);
}

/* 44 lists in each other, or one more. */
static void go_deep(struct intact_request *r, void *arg)
{
    int levels = strcmp(intact_request_action(r), "go_deep") == 0 ? 44 : 45;
    char text[100] = "";
    (void)arg;

    memset(text, '[', (size_t)levels);
    memset(text + levels, ']', (size_t)levels);
    intact_answer(r, text);
}

static void babble(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, "1, \"x\": 2");
}

static void babble_error(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer_error(r, "x", "\xff\xfe", INTACT_PERMANENT);
}

static void nap(struct intact_request *r, void *arg)
{
    (void)arg;
    usleep(3000);
    intact_answer(r, NULL);
}

static void keep_silent(struct intact_request *r, void *arg)
{
    (void)r;
    (void)arg;
}

static void until_told(struct intact_request *r, void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    while (!intact_request_should_stop(r))
        usleep(1000);
    atomic_fetch_add(&early_ends, 1);
    intact_answer(r, "\"stopped\"");
}

/* Sends heartbeats until an answer says to stop. */
static void beats(struct intact_request *r, void *arg)
{
    char progress[40];
    char message[400];

    (void)arg;
    memset(message, 'm', sizeof(message));
    message[sizeof(message) - 1] = 0;
    for (int i = 0; !intact_request_should_stop(r); i++) {
        snprintf(progress, sizeof(progress), "{\"part\": %d}", i);
        CHECK(intact_heartbeat(r, progress, message), "%s", progress);
        CHECK(!intact_heartbeat(r, "{\"part\": 1", NULL), "it is not JSON");
        usleep(1000);
    }
    atomic_fetch_add(&early_ends, 1);
    intact_answer(r, NULL);
}

/* Returns at once: its heartbeat may or may not be sent, without harm. */
static void beats_once(struct intact_request *r, void *arg)
{
    (void)arg;
    (void)intact_heartbeat(r, NULL, NULL);
    intact_answer(r, NULL);
}

static atomic_bool gate;

static void at_gate(struct intact_request *r, void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    while (!atomic_load(&gate))
        usleep(1000);
    intact_answer(r, "true");
}

static const struct {
    const char *action;
    intact_handler *run;
    enum intact_direction direction;
} handlers[] = {
    {"echo", echo, INTACT_ANY},
    {"decline", decline, INTACT_FORWARD},
    {"babble", babble, INTACT_FORWARD},
    {"go_deep", go_deep, INTACT_FORWARD},
    {"go_too_deep", go_deep, INTACT_FORWARD},
    {"babble_error", babble_error, INTACT_FORWARD},
    {"nap", nap, INTACT_FORWARD},
    {"silent", keep_silent, INTACT_FORWARD},
    {"until_told", until_told, INTACT_FORWARD},
    {"at_gate", at_gate, INTACT_FORWARD},
    {"beats", beats, INTACT_FORWARD},
    {"beats_once", beats_once, INTACT_FORWARD},
};

struct run {
    struct intact_agent *agent;
    enum intact_agent_result result;
    char url[90];
    pthread_t thread;
};

static void no_log(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    if (getenv("VERBOSE"))
        fprintf(stderr, "%d %s\n", (int)level, line);
}

static void *run_agent(void *arg)
{
    struct run *r = arg;

    r->result = intact_agent_run(r->agent);
    return NULL;
}

static struct run begin(unsigned concurrency, bool inline_handlers)
{
    struct run r = {0};

    memset(&m, 0, sizeof(m));
    m.fake.answer = answer_work;
    atomic_store(&runs, 0);
    atomic_store(&early_ends, 0);
    atomic_store(&gate, false);
    fake_open(&m.fake);
    fake_url(&m.fake, r.url);
    r.agent = intact_agent_new("pay desk");
    for (size_t i = 0; i < COUNT_OF(handlers); i++)
        intact_agent_on(r.agent, handlers[i].action, handlers[i].direction, handlers[i].run, NULL);
    intact_agent_set_instance(r.agent, "p-1");
    intact_agent_set_token(r.agent, "secret");
    intact_agent_set_concurrency(r.agent, concurrency);
    intact_agent_set_inline(r.agent, inline_handlers);
    intact_agent_set_stop_wait_ms(r.agent, 100000);
    intact_agent_set_log(r.agent, no_log, NULL);
    return r;
}

static void start(struct run *r)
{
    intact_agent_set_server(r->agent, r->url);
    pthread_create(&r->thread, NULL, run_agent, r);
}

static void end(struct run *r, enum intact_agent_result expected)
{
    intact_agent_stop();
    pthread_join(r->thread, NULL);
    CHECK(r->result == expected, "ended %d", (int)r->result);
    intact_agent_free(r->agent);
    fake_close(&m.fake);
}

static void every_request_is_run_and_answered_once(void **state)
{
    (void)state;
    for (unsigned concurrency = 1; concurrency <= 16; concurrency *= 4)
        for (int inl = 0; inl < 2; inl++) {
            struct run r = begin(concurrency, inl);
            start(&r);
            add_jobs(100, "echo", "forward", 60000);
            wait_done(100);
            end(&r, INTACT_AGENT_STOPPED);
            CHECK(atomic_load(&runs) == 100, "%u runs", atomic_load(&runs));
            for (size_t i = 0; i < 100; i++)
                CHECK(m.jobs[i].given == 1 && m.jobs[i].told == 1, "job %zu: %u, %u", i,
                      m.jobs[i].given, m.jobs[i].told);
        }
}

static void a_handler_sees_the_whole_request(void **state)
{
    struct run r = begin(1, false);

    (void)state;
    start(&r);
    add_jobs(1, "echo", "undo", 60000);
    wait_done(1);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(
        strcmp(
            m.jobs[0].result,
            "{\"token\":\"0\",\"output\":{\"task\":\"t-0\",\"key\":\"t-0/s\",\"input\":{\"n\": [1, "
            "2]},\"forward\":{\"idempotency_key\":\"t-0/f\",\"input\":1,\"output\":null},"
            "\"fkey\":\"t-0/f\"}}")
            == 0,
        "%s", m.jobs[0].result);
    CHECK(strcmp(m.fake.authorization, "Bearer secret") == 0, "%s", m.fake.authorization);
}

static void what_a_handler_says_badly_is_told_as_an_error(void **state)
{
    static const struct {
        const char *action, *result;
    } cases[] = {
        {"decline",
         "\"error\":{\"code\":\"declined\",\"message\":\"no \\\"money\\\"\",\"retryable\":"
         "true,\"effect\":\"none\",\"retry_after\":\"1500ms\"}"},
        {"babble", "\"code\":\"output_not_json\""},
        {"go_deep", "\"output\":[[["},
        {"go_too_deep", "\"code\":\"output_not_json\""},
        {"babble_error", "\"message\":\"the handler's error is not valid text\""},
        {"silent",
         "\"error\":{\"code\":\"no_answer\",\"message\":\"the handler returned no result\","
         "\"retryable\":true}"},
        {"nobody", "\"code\":\"unknown_action\""},
    };
    struct run r = begin(4, false);

    (void)state;
    start(&r);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        add_jobs(1, cases[i].action, "forward", 60000);
    add_jobs(1, "decline", "undo", 60000); /* the handler is for the other direction only */
    wait_done(COUNT_OF(cases) + 1);
    end(&r, INTACT_AGENT_STOPPED);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(strstr(m.jobs[i].result, cases[i].result), "%s: %s", cases[i].action,
              m.jobs[i].result);
    CHECK(strstr(m.jobs[COUNT_OF(cases)].result, "unknown_action"), "an undo ran forward");
}

static void results_and_new_work_share_one_round_trip(void **state)
{
    struct run r = begin(16, true);

    (void)state;
    add_jobs(160, "echo", "forward", 60000);
    start(&r);
    wait_done(160);
    end(&r, INTACT_AGENT_STOPPED);
    /* ten batches, each but the first carries the results of the one before */
    CHECK(m.result_calls <= 11, "%u calls", m.result_calls);
}

static void a_call_lingers_for_handlers_that_are_quick(void **state)
{
    struct run r = begin(16, false);

    (void)state;
    const struct peer_timing before = peer_timing;
    peer_timing.linger_ms = 60000; /* long enough for any machine, and no call in between */
    peer_timing.poll_ms = 60000;
    add_jobs(160, "nap", "forward", 60000);
    start(&r);
    wait_done(160);
    end(&r, INTACT_AGENT_STOPPED);
    peer_timing = before;
    CHECK(m.result_calls <= 11, "%u calls", m.result_calls);
}

static void results_are_sent_until_they_are_acknowledged(void **state)
{
    struct run r = begin(4, false);

    (void)state;
    m.lose_answer = 3;
    m.lose_call = 2;
    m.refuse = 2;
    start(&r);
    add_jobs(40, "echo", "forward", 60000);
    wait_done(40);
    pthread_mutex_lock(&m.fake.lock);
    m.lose_answer = 4;
    pthread_mutex_unlock(&m.fake.lock);
    add_jobs(40, "echo", "forward", 60000);
    wait_done(80);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(atomic_load(&runs) == 80, "%u runs: an answer lost is no reason to work again",
          atomic_load(&runs));
}

static void any_outcome_ends_a_result(void **state)
{
    static const char *const outcomes[] = {"accepted", "repeated", "late", "unknown", "novel"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        struct run r = begin(2, false);
        m.outcome = outcomes[i];
        start(&r);
        add_jobs(5, "echo", "forward", 60000);
        wait_done(5);
        end(&r, INTACT_AGENT_STOPPED);
        for (size_t j = 0; j < 5; j++)
            CHECK(m.jobs[j].told == 1, "%s: told %u times", outcomes[i], m.jobs[j].told);
    }
}

static void a_token_that_is_held_is_not_run_again(void **state)
{
    struct run r = begin(3, false);

    (void)state;
    m.twice = true;
    start(&r);
    add_jobs(2, "at_gate", "forward", 60000);
    wait_until(&runs, 2);
    wait_holding("[\"0\",\"1\"]", "[\"1\",\"0\"]");
    pthread_mutex_lock(&m.fake.lock);
    m.jobs[0].state = m.jobs[1].state = JOB_NEW; /* the server believes that they were lost */
    pthread_cond_broadcast(&m.fake.changed);
    pthread_mutex_unlock(&m.fake.lock);
    pthread_mutex_lock(&m.fake.lock);
    while (m.jobs[0].given < 2)
        fake_wait(&m.fake);
    unsigned serial = m.serial;
    while (m.serial == serial) /* its next call: it has received them */
        fake_wait(&m.fake);
    pthread_mutex_unlock(&m.fake.lock);
    atomic_store(&gate, true);
    wait_done(2);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(atomic_load(&runs) == 2, "%u runs", atomic_load(&runs));
}

static void a_request_past_its_deadline_is_not_started(void **state)
{
    struct run r = begin(1, false);

    (void)state;
    add_jobs(3, "echo", "forward", 0);
    add_jobs(1, "echo", "forward", 60000);
    start(&r);
    wait_done(1);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(atomic_load(&runs) == 1, "%u runs", atomic_load(&runs));
    CHECK(m.jobs[3].told == 1 && m.jobs[0].told == 0, "the wrong one was told");
}

static void time_on_the_way_counts_against_the_deadline(void **state)
{
    struct run r = begin(1, false);

    (void)state;
    m.delay_ms = 400;
    add_jobs(1, "echo", "forward", 200); /* expires before the agent receives it */
    add_jobs(1, "echo", "forward", 60000);
    start(&r);
    wait_done(1);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(atomic_load(&runs) == 1, "%u runs", atomic_load(&runs));
    CHECK(m.jobs[1].told == 1 && m.jobs[0].told == 0, "the wrong one was told");
}

static void a_result_after_the_deadline_is_not_sent(void **state)
{
    struct run r = begin(2, false);

    (void)state;
    add_jobs(1, "until_told", "forward", BRIEF_MS); /* its handler works until the deadline */
    start(&r);
    wait_until(&early_ends, 1);
    add_jobs(1, "echo", "forward", 60000);
    wait_done(1);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(m.jobs[0].told == 0, "told %s", m.jobs[0].result);
    CHECK(strcmp(m.last_holding, "[]") == 0 || !strstr(m.last_holding, "\"0\""), "held: %s",
          m.last_holding);
}

static void a_full_agent_hears_whom_to_stop(void **state)
{
    struct run r = begin(1, false);

    (void)state;
    start(&r);
    add_jobs(1, "until_told", "forward", 600000);
    wait_until(&runs, 1);
    pthread_mutex_lock(&m.fake.lock);
    m.stop = "0";
    pthread_mutex_unlock(&m.fake.lock);
    wait_done(1);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(strstr(m.jobs[0].result, "\"stopped\""), "%s", m.jobs[0].result);
}

static void results_outlive_the_server(void **state)
{
    struct run r = begin(4, false);

    (void)state;
    start(&r);
    add_jobs(4, "at_gate", "forward", 60000);
    wait_until(&runs, 4);
    fake_close(&m.fake);
    atomic_store(&gate, true);
    usleep(100000);
    fake_open(&m.fake);
    wait_done(4);
    add_jobs(4, "echo", "forward", 60000);
    wait_done(8);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(atomic_load(&runs) == 8, "%u runs", atomic_load(&runs));
}

static void a_stopping_agent_finishes_what_it_holds(void **state)
{
    struct run r = begin(4, false);

    (void)state;
    start(&r);
    add_jobs(2, "at_gate", "forward", 60000);
    wait_until(&runs, 2);
    wait_holding("[\"0\",\"1\"]", "[\"1\",\"0\"]"); /* the next call is parked */
    intact_agent_stop();
    pthread_mutex_lock(&m.fake.lock);
    while (m.farewells == 0)
        fake_wait(&m.fake);
    unsigned fetches = m.fetches;
    pthread_mutex_unlock(&m.fake.lock);
    add_jobs(1, "echo", "forward", 60000);
    atomic_store(&gate, true);
    pthread_join(r.thread, NULL);
    intact_agent_free(r.agent);
    CHECK(r.result == INTACT_AGENT_STOPPED, "ended %d", (int)r.result);
    CHECK(m.jobs[0].told == 1 && m.jobs[1].told == 1, "told %u and %u times", m.jobs[0].told,
          m.jobs[1].told);
    CHECK(m.fetches == fetches, "it asked for more");
    CHECK(m.jobs[2].told == 0, "it took more");
    fake_close(&m.fake);
}

/* Its next call is parked, being sent, or not begun. */
static void an_agent_may_be_stopped_at_any_moment(void **state)
{
    (void)state;
    for (unsigned us = 0; us < 20000; us = us * 2 + 100) {
        struct run r = begin(4, false);
        start(&r);
        add_jobs(2, "at_gate", "forward", 60000);
        wait_until(&runs, 2);
        usleep(us);
        intact_agent_stop();
        atomic_store(&gate, true);
        pthread_join(r.thread, NULL);
        CHECK(r.result == INTACT_AGENT_STOPPED, "ended %d", (int)r.result);
        CHECK(m.jobs[0].told == 1 && m.jobs[1].told == 1, "told %u and %u times", m.jobs[0].told,
              m.jobs[1].told);
        fake_close(&m.fake);
    }
}

static void an_agent_that_cannot_deliver_says_so(void **state)
{
    struct run r = begin(1, false);

    (void)state;
    intact_agent_set_stop_wait_ms(r.agent, 200);
    start(&r);
    add_jobs(1, "at_gate", "forward", 60000);
    wait_until(&runs, 1);
    fake_close(&m.fake);
    atomic_store(&gate, true);
    intact_agent_stop();
    pthread_join(r.thread, NULL);
    intact_agent_free(r.agent);
    CHECK(r.result == INTACT_AGENT_UNDELIVERED, "ended %d", (int)r.result);
}

static void a_refused_result_does_not_hold_up_the_others(void **state)
{
    struct run r = begin(8, true);

    (void)state;
    m.poison = "3";
    add_jobs(8, "echo", "forward", 60000);
    start(&r);
    wait_done(7);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(m.jobs[3].told == 0, "it was taken");
}

/* A second server without jobs, which accepts results. */
static int answer_other(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *call = NULL;
    (void)f;
    (void)line;

    if (json_parse(&a, body, &call, NULL) != ERR_OK)
        return 400;
    pthread_mutex_lock(&m.fake.lock);
    json_open(ret, '{');
    take_results(json_get(call, "results"), ret);
    json_close(ret, '}');
    pthread_mutex_unlock(&m.fake.lock);
    return 200;
}

static void what_one_server_cannot_take_another_one_does(void **state)
{
    struct run r = begin(4, false);
    static struct fake other;
    char url[40];

    (void)state;
    memset(&other, 0, sizeof(other));
    other.answer = answer_other;
    fake_open(&other);
    fake_url(&other, url);
    snprintf(r.url + strlen(r.url), sizeof(r.url) - strlen(r.url), ",%s/", url);
    start(&r);
    add_jobs(2, "at_gate", "forward", 60000);
    wait_until(&runs, 2);
    fake_close(&m.fake); /* permanently */
    atomic_store(&gate, true);
    for (bool done = false; !done; usleep(1000)) {
        pthread_mutex_lock(&m.fake.lock);
        done = m.jobs[0].state == JOB_DONE && m.jobs[1].state == JOB_DONE;
        pthread_mutex_unlock(&m.fake.lock);
    }
    intact_agent_stop();
    pthread_join(r.thread, NULL);
    intact_agent_free(r.agent);
    CHECK(r.result == INTACT_AGENT_STOPPED, "ended %d", (int)r.result);
    fake_close(&other);
}

/* Calls and answers are lost and refused at random, in both directions; then the faults stop. */
static void whatever_is_lost_every_job_is_done(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct run r = begin(seed % 2 ? 8 : 3, seed % 3 == 0);
        struct prng storm = {seed};

        m.storm = &storm;
        start(&r);
        for (int i = 0; i < 10; i++) {
            add_jobs(20, "echo", i % 2 ? "undo" : "forward", 60000);
            usleep(5000);
        }
        wait_done(200);
        pthread_mutex_lock(&m.fake.lock);
        m.storm = NULL;
        pthread_mutex_unlock(&m.fake.lock);
        end(&r, INTACT_AGENT_STOPPED);
        CHECK(atomic_load(&runs) == 200, "seed %" PRIu64 ": %u runs", seed, atomic_load(&runs));
    }
}

static void heartbeats_say_how_far_it_is_and_learn_of_stops(void **state)
{
    struct run r = begin(2, false);
    char expected[400];

    (void)state;
    start(&r);
    add_jobs(1, "beats", "forward", 60000);
    pthread_mutex_lock(&m.fake.lock);
    while (m.beat_calls < 3)
        fake_wait(&m.fake);
    m.stop = "0";
    pthread_mutex_unlock(&m.fake.lock);
    wait_done(1);
    end(&r, INTACT_AGENT_STOPPED);
    CHECK(atomic_load(&early_ends) == 1, "%u ended early", atomic_load(&early_ends));
    const char *begins =
        "{\"instance\":\"p-1\",\"beats\":[{\"token\":\"0\",\"progress\":{\"part\": ";
    CHECK(strncmp(m.last_beats, begins, strlen(begins)) == 0, "%s", m.last_beats);
    (void)snprintf(expected, sizeof(expected), ",\"message\":\"%0*d\"}]}", 256, 0);
    for (char *p = expected; *p; p++)
        *p = *p == '0' ? 'm' : *p;
    CHECK(strstr(m.last_beats, expected), "%s", m.last_beats);
}

static void heartbeats_that_get_lost_hurt_nobody(void **state)
{
    (void)state;
    for (int inl = 0; inl < 2; inl++) {
        struct run r = begin(4, inl);
        start(&r);
        add_jobs(200, "beats_once", "forward", 60000);
        add_jobs(1, "beats", "forward", inl ? 300 : 60000);
        if (!inl) {
            pthread_mutex_lock(&m.fake.lock);
            while (!strstr(m.last_beats, "\"200\""))
                fake_wait(&m.fake);
            m.lose_call = 2;
            while (m.lose_call > 0)
                fake_wait(&m.fake);
            m.stop = "200";
            pthread_mutex_unlock(&m.fake.lock);
            wait_done(201);
        } else {
            wait_done(200);
        }
        end(&r, INTACT_AGENT_STOPPED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_run_and_answered_once),
        cmocka_unit_test(a_handler_sees_the_whole_request),
        cmocka_unit_test(what_a_handler_says_badly_is_told_as_an_error),
        cmocka_unit_test(results_and_new_work_share_one_round_trip),
        cmocka_unit_test(a_call_lingers_for_handlers_that_are_quick),
        cmocka_unit_test(results_are_sent_until_they_are_acknowledged),
        cmocka_unit_test(any_outcome_ends_a_result),
        cmocka_unit_test(a_token_that_is_held_is_not_run_again),
        cmocka_unit_test(a_request_past_its_deadline_is_not_started),
        cmocka_unit_test(time_on_the_way_counts_against_the_deadline),
        cmocka_unit_test(a_result_after_the_deadline_is_not_sent),
        cmocka_unit_test(a_full_agent_hears_whom_to_stop),
        cmocka_unit_test(results_outlive_the_server),
        cmocka_unit_test(a_stopping_agent_finishes_what_it_holds),
        cmocka_unit_test(an_agent_may_be_stopped_at_any_moment),
        cmocka_unit_test(an_agent_that_cannot_deliver_says_so),
        cmocka_unit_test(a_refused_result_does_not_hold_up_the_others),
        cmocka_unit_test(what_one_server_cannot_take_another_one_does),
        cmocka_unit_test(whatever_is_lost_every_job_is_done),
        cmocka_unit_test(heartbeats_say_how_far_it_is_and_learn_of_stops),
        cmocka_unit_test(heartbeats_that_get_lost_hurt_nobody),
    };

    peer_timing.retry_ms = 5;
    peer_timing.retry_max_ms = 50;
    peer_timing.refused_ms = 5;
    peer_timing.refused_max_ms = 20;
    peer_timing.poll_ms = 20;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
