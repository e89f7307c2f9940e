/* Tests of long requests: heartbeats with a deadline (pulse.c), resume details, answers from
 * elsewhere, and tries within one attempt (retry.c). */

#include "base/test.h"

#include <intact/agent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "libintact/agent.h"
#include "libintact/agent_kit.h"

static atomic_uint begun, ended;
static atomic_bool gate;

/* Simulates long work without heartbeats. */
static void until_told(struct intact_request *r, void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (!intact_request_should_stop(r) && !atomic_load(&gate))
        usleep(1000);
    atomic_fetch_add(&ended, 1);
    intact_answer(r, "\"told\"");
}

static void says_nothing(struct intact_request *r, void *arg)
{
    (void)arg;
    CHECK(intact_request_should_stop(r), "it was told to");
    intact_answer_nothing(r);
}

static void keeps(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_request_keep(r);
    intact_request_on_stop(r, says_nothing, NULL);
}

/* Sends heartbeats until the acknowledgements have moved its deadline. */
static void until_acknowledged(struct intact_request *r, void *arg)
{
    int64_t first = atomic_load(&r->beat_by);

    (void)arg;
    CHECK(intact_request_heartbeat_ms(r) == 600000, "%" PRId64, intact_request_heartbeat_ms(r));
    while (atomic_load(&r->beat_by) <= first + 20) {
        CHECK(intact_heartbeat(r, "1", NULL), "it is JSON");
        CHECK(!intact_request_should_stop(r), "it has time");
        usleep(1000);
    }
    intact_answer(r, "\"acknowledged\"");
}

static void beats_until_told(struct intact_request *r, void *arg)
{
    (void)arg;
    while (!intact_request_should_stop(r) && !atomic_load(&gate)) {
        CHECK(intact_heartbeat(r, NULL, "still here"), "a heartbeat");
        usleep(1000);
    }
    atomic_fetch_add(&ended, 1);
    intact_answer(r, "\"told\"");
}

/* Leaves resume details, and fails; the input is irrelevant. */
static void leaves_something(struct intact_request *r, void *arg)
{
    const unsigned *flags = arg;
    char long_text[2100];

    memset(long_text, '1', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    CHECK(!intact_heartbeat_resume(r, NULL, NULL, "{"), "that is not JSON");
    CHECK(!intact_heartbeat_resume(r, NULL, NULL, long_text), "that is too long");
    CHECK(intact_heartbeat_resume(r, NULL, "the first", "{\"at\": 7}"), "a heartbeat");
    CHECK(intact_heartbeat(r, "2", "the second"), "a heartbeat");
    while (!atomic_load(&gate))
        usleep(1000);
    intact_answer_error(r, "broken", "it broke", *flags);
}

static void fails_with(struct intact_request *r, void *arg)
{
    intact_answer_error_resume(r, "broken", NULL, INTACT_RETRYABLE, 1500, arg);
}

static void shows(struct intact_request *r, void *arg)
{
    CLEANUP(buf_fini) struct buf b = {0};

    (void)arg;
    buf_fmt(&b, "{\"token\":\"%s\",\"heartbeat_ms\":%" PRId64 ",\"resume\":%s}",
            intact_request_token(r), intact_request_heartbeat_ms(r),
            intact_request_resume(r) ? intact_request_resume(r) : "\"none\"");
    intact_answer(r, b.ptr);
}

static void leaves_it_to_others(struct intact_request *r, void *arg)
{
    (void)arg;
    CHECK(intact_request_try(r) == 1, "the first try");
    CHECK(intact_request_try(r) == 2, "the second try");
    intact_answer_elsewhere(r);
    intact_answer(r, "\"too late\"");
}

static void tries(struct intact_request *r, void *arg)
{
    const unsigned *enough = arg;
    unsigned n;

    intact_request_set_retry(r, 4, 1, 2);
    do {
        n = intact_request_try(r);
        if (n == *enough) {
            intact_answer(r, "\"at last\"");
            return;
        }
    } while (intact_request_retry(r, 0));
    intact_answer_error(r, "away", "the service is away", INTACT_RETRYABLE);
}

/* No wait exceeds the deadline, nor does a try as long as the last one. */
static void has_no_time(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_request_set_retry(r, 0, 1, 1);
    (void)intact_request_try(r);
    CHECK(intact_request_retry_ms(r, 0) >= 0, "there is time");
    CHECK(intact_request_retry_ms(r, 5000) >= 5000, "the service has a wish");
    CHECK(intact_request_retry_ms(r, 700000) == -1, "the wish goes too far");
    r->tried_at -= 590000;
    CHECK(intact_request_retry_ms(r, 20000) == -1, "the next one takes as long");
    r->tried_at -= 10000;
    CHECK(!intact_request_retry(r, 0), "it would be over in the middle of it");
    intact_request_set_retry(r, 0, 3600000, 3600000);
    (void)intact_request_try(r);
    CHECK(!intact_request_retry(r, 0), "it would wait too long");
    intact_answer(r, "\"gave up\"");
}

static void sleeps(struct intact_request *r, void *arg)
{
    (void)arg;
    CHECK(intact_request_sleep(r, 0), "nobody said to stop");
    CHECK(intact_request_sleep(r, 1), "nor now");
    atomic_fetch_add(&begun, 1);
    bool slept = intact_request_sleep(r, 500000);
    CHECK(!slept && intact_request_retry_ms(r, 0) == -1, "it is to stop");
    atomic_fetch_add(&ended, 1);
    intact_answer(r, "\"woke up\"");
}

static unsigned retryable = INTACT_RETRYABLE;
static unsigned permanent = INTACT_PERMANENT;
static unsigned two = 2;
static unsigned never = 0;
static char where[] = "[\"page\", 3]";
static char nonsense[] = "page 3";

static const struct {
    const char *action;
    intact_handler *run;
    void *arg;
} handlers[] = {
    {"until_told", until_told, NULL},
    {"keeps", keeps, NULL},
    {"until_acknowledged", until_acknowledged, NULL},
    {"beats_until_told", beats_until_told, NULL},
    {"leaves", leaves_something, &retryable},
    {"leaves_in_vain", leaves_something, &permanent},
    {"fails_with", fails_with, where},
    {"fails_with_nonsense", fails_with, nonsense},
    {"shows", shows, NULL},
    {"elsewhere", leaves_it_to_others, NULL},
    {"tries_twice", tries, &two},
    {"tries_in_vain", tries, &never},
    {"has_no_time", has_no_time, NULL},
    {"sleeps", sleeps, NULL},
};

struct run {
    struct intact_agent *agent;
    pthread_t thread;
    enum intact_agent_result result;
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

static void begin(struct run *r, unsigned places)
{
    char url[40];

    memset(&m, 0, sizeof(m));
    m.fake.answer = answer_work;
    m.beat_status = "accepted";
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&gate, false);
    fake_open(&m.fake);
    fake_url(&m.fake, url);
    r->agent = intact_agent_new("pay desk");
    for (size_t i = 0; i < COUNT_OF(handlers); i++)
        intact_agent_on(r->agent, handlers[i].action, INTACT_ANY, handlers[i].run, handlers[i].arg);
    intact_agent_set_server(r->agent, url);
    intact_agent_set_instance(r->agent, "p-1");
    intact_agent_set_concurrency(r->agent, places);
    intact_agent_set_stop_wait_ms(r->agent, 100000);
    intact_agent_set_log(r->agent, no_log, NULL);
}

static void start(struct run *r)
{
    pthread_create(&r->thread, NULL, run_agent, r);
}

static void end(struct run *r)
{
    atomic_store(&gate, true);
    intact_agent_stop_one(r->agent);
    pthread_join(r->thread, NULL);
    CHECK(r->result == INTACT_AGENT_STOPPED, "ended %d", (int)r->result);
    intact_agent_free(r->agent);
    fake_close(&m.fake);
}

#define WAIT_UNTIL(condition)               \
    for (bool done = false; !done;) {       \
        pthread_mutex_lock(&m.fake.lock);   \
        done = (condition);                 \
        if (!done)                          \
            fake_wait(&m.fake);             \
        pthread_mutex_unlock(&m.fake.lock); \
    }

static void check_last_beats(const char *has)
{
    pthread_mutex_lock(&m.fake.lock);
    bool found = strstr(m.last_beats, has);
    pthread_mutex_unlock(&m.fake.lock);
    CHECK(found, "not in the heartbeats: %s", has);
}

static void one_that_nobody_hears_of_stops_and_says_nothing(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 1);
    m.beat_status = NULL; /* heartbeats get no outcome */
    start(&r);
    add_long_job("beats_until_told", 100, NULL);
    WAIT_UNTIL(atomic_load(&ended) > 0);
    pthread_mutex_lock(&m.fake.lock);
    m.jobs[0].state = JOB_DONE; /* it is not given again, as it would be */
    pthread_mutex_unlock(&m.fake.lock);
    add_long_job("until_told", 100, NULL);
    WAIT_UNTIL(atomic_load(&begun) > 0 && atomic_load(&ended) > 1);
    CHECK(m.jobs[0].told == 0 && m.jobs[0].beats > 0, "%u", m.jobs[0].told);
    CHECK(m.jobs[1].told == 0 && m.jobs[1].beats == 0, "%u", m.jobs[1].told);
    end(&r);
}

static void acknowledged_heartbeats_keep_a_request_going(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 1);
    start(&r);
    add_long_job("until_acknowledged", 600000, NULL);
    wait_done(1);
    end(&r);
    CHECK(strstr(m.jobs[0].result, "acknowledged"), "%s", m.jobs[0].result);
}

static void the_library_beats_for_handlers_if_it_is_asked_to(void **state)
{
    for (int is_inline = 0; is_inline < 2; is_inline++) {
        struct run r;
        (void)state;
        begin(&r, 1);
        intact_agent_set_heartbeats(r.agent, true);
        intact_agent_set_inline(r.agent, is_inline);
        start(&r);
        /* A request without a heartbeat in time ends, and is given again. */
        add_long_job(is_inline ? "keeps" : "until_told", 600, NULL);
        WAIT_UNTIL(m.jobs[0].beats >= 6);
        check_last_beats("[{\"token\":\"0\"}]");
        pthread_mutex_lock(&m.fake.lock);
        m.stop = "0";
        pthread_mutex_unlock(&m.fake.lock);
        end(&r);
    }
}

static void one_that_is_late_is_told_to_stop_and_may_answer(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 1);
    m.beat_status = "late";
    start(&r);
    add_long_job("beats_until_told", 600000, NULL);
    wait_done(1);
    end(&r);
    CHECK(strstr(m.jobs[0].result, "told"), "%s", m.jobs[0].result);
}

/* A node that has taken over the task: it has no work, and knows the attempt. */
static struct {
    struct fake fake;
    unsigned beats;
} other;

static int answer_other(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    if (strstr(line, "/heartbeats")) {
        other.beats++;
        CHECK(memmem(body.ptr, body.len, "\"token\":\"0\"", 11), "%.*s", SLICE_ARG(body));
        buf_str(ret, "{\"outcomes\":[{\"token\":\"0\",\"status\":\"accepted\"}],\"stop\":[]}");
        pthread_cond_broadcast(&f->changed);
        return 200;
    }
    for (int i = 0; i < 20 && fake_wait(f); i++)
        continue;
    buf_str(ret, "{\"outcomes\":[],\"requests\":[],\"waited_ms\":1}");
    return 200;
}

static void a_beat_that_one_node_does_not_know_goes_to_another(void **state)
{
    char urls[100];
    char one[40];
    char two_of[40];

    (void)state;
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct run r;
        begin(&r, 1);
        m.beat_status = is_lost ? NULL : "unknown";
        memset(&other, 0, sizeof other);
        other.fake.answer = answer_other;
        fake_open(&other.fake);
        fake_url(&m.fake, one);
        fake_url(&other.fake, two_of);
        (void)snprintf(urls, sizeof urls, "%s,%s", one, two_of);
        intact_agent_set_server(r.agent, urls);
        intact_agent_set_discovery(r.agent, false);
        start(&r);
        add_long_job("until_acknowledged", 600000, NULL);
        wait_done(1);
        CHECK(other.beats > 0, "its beats were acknowledged by the other one");
        end(&r);
        fake_close(&other.fake);
    }
}

static void what_is_left_for_the_next_attempt_goes_with_beats_and_errors(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 1);
    start(&r);
    add_jobs(1, "leaves", "forward", 600000);
    WAIT_UNTIL(strstr(m.last_beats, "the second"));
    check_last_beats("\"progress\":2,\"message\":\"the second\",\"resume\":{\"at\": 7}}");
    atomic_store(&gate, true);
    wait_done(1);
    add_jobs(1, "leaves_in_vain", "forward", 600000);
    add_jobs(1, "fails_with", "forward", 600000);
    add_jobs(1, "fails_with_nonsense", "forward", 600000);
    wait_done(4);
    end(&r);
    CHECK(strstr(m.jobs[0].result, "\"retryable\":true,\"resume\":{\"at\": 7}}}"), "%s",
          m.jobs[0].result);
    CHECK(!strstr(m.jobs[1].result, "resume"), "%s", m.jobs[1].result);
    CHECK(strstr(m.jobs[2].result, "\"retry_after\":\"1500ms\",\"resume\":[\"page\", 3]}}"), "%s",
          m.jobs[2].result);
    CHECK(!strstr(m.jobs[3].result, "resume") && strstr(m.jobs[3].result, "\"broken\""), "%s",
          m.jobs[3].result);
}

static void a_handler_sees_what_is_new_of_a_request(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 1);
    start(&r);
    add_long_job("shows", 12345678, "{\"page\": [1]}");
    add_jobs(1, "shows", "forward", 600000);
    add_jobs(1, "elsewhere", "forward", 600000);
    wait_done(3);
    end(&r);
    CHECK(strstr(m.jobs[0].result,
                 "{\"token\":\"0\",\"heartbeat_ms\":12345678,\"resume\":{\"page\": [1]}}"),
          "%s", m.jobs[0].result);
    CHECK(strstr(m.jobs[1].result, "{\"token\":\"1\",\"heartbeat_ms\":0,\"resume\":\"none\"}"),
          "%s", m.jobs[1].result);
    CHECK(strcmp(m.jobs[2].result, "{\"token\":\"2\",\"elsewhere\":true,\"tries\":2}") == 0, "%s",
          m.jobs[2].result);
}

static void tries_are_counted_and_end_in_time(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 1);
    start(&r);
    add_jobs(1, "tries_twice", "forward", 600000);
    add_jobs(1, "tries_in_vain", "forward", 600000);
    add_jobs(1, "has_no_time", "forward", 600000);
    wait_done(3);
    end(&r);
    CHECK(strcmp(m.jobs[0].result, "{\"token\":\"0\",\"output\":\"at last\",\"tries\":2}") == 0,
          "%s", m.jobs[0].result);
    CHECK(strstr(m.jobs[1].result, "\"retryable\":true},\"tries\":4}"), "%s", m.jobs[1].result);
    CHECK(strstr(m.jobs[2].result, "\"gave up\""), "%s", m.jobs[2].result);
}

static void who_sleeps_wakes_up_when_told_to_stop(void **state)
{
    struct run r;

    (void)state;
    begin(&r, 2);
    start(&r);
    add_jobs(2, "sleeps", "forward", 600000);
    WAIT_UNTIL(atomic_load(&begun) == 2);
    pthread_mutex_lock(&m.fake.lock);
    m.stop = "0";
    pthread_mutex_unlock(&m.fake.lock);
    wait_done(1);
    CHECK(m.jobs[1].told == 0, "the other one sleeps on");
    pthread_mutex_lock(&m.fake.lock);
    m.stop = "1";
    pthread_mutex_unlock(&m.fake.lock);
    wait_done(2);
    end(&r);
}

static void waits_grow_and_keep_within_their_limits(void **state)
{
    struct prng p = {7};

    (void)state;
    for (unsigned tried = 1; tried < 70; tried++)
        for (int i = 0; i < 200; i++) {
            int64_t whole = tried < 7 ? 100 << (tried - 1) : 5000;
            int64_t wait = intact_retry_wait_ms(tried, 0, 100, 5000, 100000, prng_next(&p));
            CHECK(wait >= whole / 2 && wait <= whole, "%u: %" PRId64, tried, wait);
        }
    CHECK(intact_retry_wait_ms(1, 0, 100, 5000, 101, 0) == 100, "nothing is taken off");
    CHECK(intact_retry_wait_ms(1, 0, 100, 5000, 100, 0) == -1, "it would be over");
    CHECK(intact_retry_wait_ms(1, 0, 100, 5000, 0, 0) == -1, "it is over");
    CHECK(intact_retry_wait_ms(2, 3, 100, 5000, 9999, 0) == 200, "one more");
    CHECK(intact_retry_wait_ms(3, 3, 100, 5000, 9999, 0) == -1, "no more");
    CHECK(intact_retry_wait_ms(9, 0, 100, 50, 9999, 0) == 50, "the limit is the lower one");
    CHECK(intact_retry_wait_ms(1, 0, -5, -5, 9999, 0) == 1, "what makes no sense is mended");
    CHECK(intact_retry_wait_ms(UINT32_MAX, 0, INT64_MAX, INT64_MAX, INT64_MAX, UINT64_MAX) > 0,
          "nothing overflows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_nobody_hears_of_stops_and_says_nothing),
        cmocka_unit_test(acknowledged_heartbeats_keep_a_request_going),
        cmocka_unit_test(the_library_beats_for_handlers_if_it_is_asked_to),
        cmocka_unit_test(one_that_is_late_is_told_to_stop_and_may_answer),
        cmocka_unit_test(a_beat_that_one_node_does_not_know_goes_to_another),
        cmocka_unit_test(what_is_left_for_the_next_attempt_goes_with_beats_and_errors),
        cmocka_unit_test(a_handler_sees_what_is_new_of_a_request),
        cmocka_unit_test(tries_are_counted_and_end_in_time),
        cmocka_unit_test(who_sleeps_wakes_up_when_told_to_stop),
        cmocka_unit_test(waits_grow_and_keep_within_their_limits),
    };

    peer_timing.retry_ms = 5;
    peer_timing.retry_max_ms = 50;
    peer_timing.poll_ms = 20;
    peer_timing.beat_ms = 10;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
