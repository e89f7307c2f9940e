/* Tests of agents that a foreign event loop drives (intact/agent.h), and of requests that are
 * kept and answered later, by any thread. agent_test.c has agents that run by themselves. */

#include "base/clock.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <intact/agent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libintact/agent.h"
#include "libintact/agent_kit.h"

enum { KEPT_MAX = 200 };

/* Kept requests, for the tests to answer. */
static struct {
    pthread_mutex_t lock;
    struct intact_request *requests[KEPT_MAX];
    size_t count;
    unsigned stops;
    char log[4000];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t kept_count(void)
{
    pthread_mutex_lock(&kept.lock);
    size_t count = kept.count;
    pthread_mutex_unlock(&kept.lock);
    return count;
}

static struct intact_request *take_kept(void) /* NULL: there is none */
{
    struct intact_request *r = NULL;

    pthread_mutex_lock(&kept.lock);
    if (kept.count > 0)
        r = kept.requests[--kept.count];
    pthread_mutex_unlock(&kept.lock);
    return r;
}

static void keep(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_request_keep(r);
    pthread_mutex_lock(&kept.lock);
    CHECK(kept.count < KEPT_MAX, "too many");
    kept.requests[kept.count++] = r;
    pthread_mutex_unlock(&kept.lock);
}

static void on_stop(struct intact_request *r, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&kept.lock);
    kept.stops++;
    pthread_mutex_unlock(&kept.lock);
    CHECK(intact_request_should_stop(r), "it was told to");
    intact_answer(r, "\"stopped\"");
}

static void keep_until_stop(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_request_keep(r);
    intact_request_on_stop(r, on_stop, NULL);
    CHECK(intact_heartbeat(r, "1", "it begins"), "a heartbeat");
}

/* Answered before the handler returns, on this or another thread. */
static void *answer_it(void *r)
{
    intact_answer(r, "\"elsewhere\"");
    return NULL;
}

static void keep_and_answer(struct intact_request *r, void *arg)
{
    pthread_t thread;

    intact_request_keep(r);
    if (arg) {
        pthread_create(&thread, NULL, answer_it, r);
        pthread_join(thread, NULL);
    } else {
        intact_answer(r, "\"here\"");
    }
    CHECK(intact_request_task(r)[0], "it lives until its handler returns");
}

static void drive_again(struct intact_request *r, void *arg)
{
    CHECK(intact_agent_drive(arg), "an agent is not driven by its own handlers");
    intact_answer(r, NULL);
}

static void gather_log(void *arg, enum intact_log_level level, const char *line)
{
    size_t used = strlen(kept.log);
    (void)arg;

    if (level != INTACT_LOG_INFO)
        (void)snprintf(kept.log + used, sizeof(kept.log) - used, "%s\n", line);
}

static void no_log(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static struct intact_agent *begin(unsigned concurrency, bool is_inline)
{
    char url[40];
    struct intact_agent *a = intact_agent_new("pay desk");

    memset(&m, 0, sizeof(m));
    kept.count = 0;
    kept.stops = 0;
    kept.log[0] = 0;
    m.fake.answer = answer_work;
    fake_open(&m.fake);
    fake_url(&m.fake, url);
    intact_agent_set_server(a, url);
    intact_agent_set_instance(a, "p-1");
    intact_agent_set_concurrency(a, concurrency);
    intact_agent_set_inline(a, is_inline);
    intact_agent_set_log(a, gather_log, NULL);
    intact_agent_set_stop_wait_ms(a, 60000);
    intact_agent_on(a, "keep", INTACT_FORWARD, keep, NULL);
    intact_agent_on(a, "until_stop", INTACT_FORWARD, keep_until_stop, NULL);
    intact_agent_on(a, "here", INTACT_FORWARD, keep_and_answer, NULL);
    intact_agent_on(a, "elsewhere", INTACT_FORWARD, keep_and_answer, a);
    intact_agent_on(a, "drive", INTACT_FORWARD, drive_again, a);
    return a;
}

/* One turn of a loop. False: the agent has ended. */
static bool turn(struct intact_agent *a)
{
    struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};

    CHECK(p.fd >= 0, "it runs");
    CHECK(intact_agent_timeout_ms(a) >= 0, "it wants to be driven again");
    (void)poll(&p, 1, intact_agent_timeout_ms(a));
    return intact_agent_drive(a);
}

static size_t done_count(void)
{
    size_t done = 0;

    pthread_mutex_lock(&m.fake.lock);
    for (size_t i = 0; i < m.count; i++)
        done += m.jobs[i].state == JOB_DONE;
    pthread_mutex_unlock(&m.fake.lock);
    return done;
}

static void end(struct intact_agent *a, enum intact_agent_result expected)
{
    struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};

    intact_agent_stop_one(a);
    while (turn(a))
        continue;
    CHECK(intact_agent_outcome(a) == expected, "ended %d: %s", (int)intact_agent_outcome(a),
          kept.log);
    CHECK(!intact_agent_drive(a), "it is over");
    CHECK(intact_agent_timeout_ms(a) == -1, "there is nothing to wait for");
    intact_agent_stop_one(a);
    CHECK(poll(&p, 1, 0) == 0 && p.fd == intact_agent_fd(a), "its descriptor stays, and is silent");
    intact_agent_free(a);
    fake_close(&m.fake);
}

static void *answer_all(void *arg)
{
    const atomic_bool *over = arg;

    while (!atomic_load(over) || kept_count() > 0) {
        struct intact_request *r = take_kept();
        if (!r) {
            usleep(200);
            continue;
        }
        CHECK(intact_heartbeat(r, "[1]", NULL), "a heartbeat");
        CHECK(intact_request_time_left_ms(r) > 0, "there is time");
        intact_answer(r, "{\"later\":true}");
    }
    return NULL;
}

static void kept_requests_are_answered_by_any_thread(void **state)
{
    (void)state;
    for (int inl = 0; inl < 2; inl++) {
        struct intact_agent *a = begin(16, inl);
        atomic_bool over = false;
        pthread_t threads[4];

        for (size_t i = 0; i < COUNT_OF(threads); i++)
            pthread_create(&threads[i], NULL, answer_all, &over);
        add_jobs(200, "keep", "forward", 600000);
        while (done_count() < 200)
            turn(a);
        atomic_store(&over, true);
        for (size_t i = 0; i < COUNT_OF(threads); i++)
            pthread_join(threads[i], NULL);
        end(a, INTACT_AGENT_STOPPED);
        for (size_t i = 0; i < 200; i++)
            CHECK(m.jobs[i].told == 1 && strstr(m.jobs[i].result, "\"later\":true"), "%u, %s",
                  m.jobs[i].told, m.jobs[i].result);
    }
}

static void what_is_kept_may_be_answered_before_its_handler_returns(void **state)
{
    (void)state;
    for (int inl = 0; inl < 2; inl++) {
        struct intact_agent *a = begin(3, inl);

        add_jobs(20, "here", "forward", 600000);
        add_jobs(20, "elsewhere", "forward", 600000);
        while (done_count() < 40)
            turn(a);
        end(a, INTACT_AGENT_STOPPED);
        CHECK(strstr(m.jobs[0].result, "\"here\""), "%s", m.jobs[0].result);
        CHECK(strstr(m.jobs[39].result, "\"elsewhere\""), "%s", m.jobs[39].result);
    }
}

static void a_kept_request_takes_a_place_and_hears_of_its_stop(void **state)
{
    struct intact_agent *a = begin(1, true);
    bool beaten = false;

    (void)state;
    add_jobs(2, "until_stop", "forward", 600000);
    while (!beaten) { /* with the thread free, its heartbeat is sent */
        turn(a);
        pthread_mutex_lock(&m.fake.lock);
        beaten = m.beat_calls > 0;
        pthread_mutex_unlock(&m.fake.lock);
    }
    CHECK(strstr(m.last_beats, "it begins"), "%s", m.last_beats);
    CHECK(m.jobs[1].given == 0, "one place is one request");
    pthread_mutex_lock(&m.fake.lock);
    m.stop = "0";
    pthread_mutex_unlock(&m.fake.lock);
    while (done_count() < 1)
        turn(a);
    CHECK(kept.stops == 1, "%u stops", kept.stops);
    while (a->peers[0]->working == 0)
        turn(a);
    intact_agent_stop_one(a); /* a stop that comes while it drains */
    do
        CHECK(turn(a), "it waits for what is kept");
    while (!a->stopping || a->peers[0]->main.busy);
    pthread_mutex_lock(&m.fake.lock);
    m.stop = "1";
    pthread_mutex_unlock(&m.fake.lock);
    end(a, INTACT_AGENT_STOPPED);
    CHECK(kept.stops == 2, "%u stops", kept.stops);
    CHECK(m.jobs[1].told == 1, "it was told");
}

static bool all_given(void)
{
    bool all = true;

    pthread_mutex_lock(&m.fake.lock);
    for (size_t i = 0; i < m.count; i++)
        all = all && m.jobs[i].state != JOB_NEW;
    pthread_mutex_unlock(&m.fake.lock);
    return all;
}

static void a_kept_request_hears_of_its_deadline(void **state)
{
    struct intact_agent *a = begin(1, true);

    (void)state;
    /* On a slow machine one may expire before its handler is called. */
    for (int64_t left = 100; kept.stops == 0; left *= 2) {
        add_jobs(1, "until_stop", "forward", left);
        while (!all_given() || a->held.len > 0)
            turn(a);
    }
    add_jobs(1, "here", "forward", 600000);
    while (done_count() < 1)
        turn(a);
    end(a, INTACT_AGENT_STOPPED);
    CHECK(m.jobs[0].told == 0, "an answer after the deadline is not sent");
}

static void a_stopping_agent_waits_for_what_is_kept_until_its_deadline(void **state)
{
    struct intact_agent *a = begin(2, true);

    (void)state;
    add_jobs(1, "keep", "forward", 600000);
    add_jobs(1, "keep", "forward", 5000);
    while (kept_count() < 2)
        turn(a);
    struct intact_request *late = kept.requests[1];
    intact_agent_stop_one(a);
    while (intact_request_time_left_ms(late) > 0)
        CHECK(turn(a), "it waits");
    CHECK(turn(a), "it waits for the other one");
    intact_answer(kept.requests[0], "1");
    end(a, INTACT_AGENT_STOPPED);
    CHECK(m.jobs[0].told == 1 && m.jobs[1].told == 0, "%u, %u", m.jobs[0].told, m.jobs[1].told);
    CHECK(strstr(kept.log, "event=request_not_answered task=t-1 step=s attempt=1"), "%s", kept.log);
    /* Its agent has ended; that must be harmless. */
    CHECK(strcmp(intact_request_task(late), "t-1") == 0, "%s", intact_request_task(late));
    CHECK(intact_heartbeat(late, NULL, "too late"), "it is not sent");
    intact_answer(late, "1");
}

static void an_agent_that_is_freed_at_work_leaves_requests_to_their_owners(void **state)
{
    (void)state;
    for (int inl = 0; inl < 2; inl++) {
        struct intact_agent *a = begin(8, inl);

        add_jobs(8, "keep", "forward", 600000);
        while (kept_count() < 8)
            turn(a);
        intact_answer(take_kept(), "1");
        intact_agent_free(a);
        for (struct intact_request *r = take_kept(); r; r = take_kept())
            intact_answer_error(r, "x", NULL, INTACT_PERMANENT);
        fake_close(&m.fake);
    }
}

static void a_handler_cannot_drive_its_agent(void **state)
{
    struct intact_agent *a = begin(4, true);

    (void)state;
    add_jobs(4, "drive", "forward", 600000);
    while (done_count() < 4)
        turn(a);
    end(a, INTACT_AGENT_STOPPED);
}

/* The other way to wait: only for its descriptor, in another epoll or poll. */
static void its_descriptor_is_readable_when_an_answer_comes(void **state)
{
    struct intact_agent *a = begin(2, true);
    struct pollfd first = {.fd = intact_agent_fd(a), .events = POLLIN};

    (void)state;
    CHECK(poll(&first, 1, 0) == 1, "one that was started has its first call to make");
    add_jobs(1, "keep", "forward", 600000);
    while (kept_count() < 1)
        turn(a);
    struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};
    CHECK(p.fd >= 0, "it runs");
    do /* until no work is left */
        (void)intact_agent_drive(a);
    while (poll(&p, 1, 100) > 0);
    intact_answer(take_kept(), "1");
    CHECK(poll(&p, 1, 60000) == 1 && poll(&p, 1, 0) == 1, "it is readable, and stays so");
    while (done_count() < 1)
        turn(a);
    end(a, INTACT_AGENT_STOPPED);
}

/* Time passes between a turn and the call of timeout_ms. What became due in between is due now, not
 * at the next regular check. */
static void what_fell_due_since_its_turn_is_not_waited_for(void **state)
{
    struct intact_agent *a = begin(2, true);
    struct intact_request *r = NULL;

    (void)state;
    CHECK(intact_agent_fd(a) >= 0, "it runs");
    struct peer *p = a->peers[0];
    p->retry_at = INT64_MAX;
    CHECK(intact_agent_drive(a) && !p->main.busy, "no call is due");
    p->retry_at = clock_boot_ms();
    CHECK(intact_agent_timeout_ms(a) == 0, "a call is due");

    add_jobs(1, "until_stop", "forward", 600000);
    for (size_t i = 0; !r; i = 0) {
        turn(a);
        r = map_next(&a->held, &i);
    }
    do
        (void)intact_agent_drive(a);
    while (intact_agent_timeout_ms(a) == 0);
    pthread_mutex_lock(&m.fake.lock);
    m.jobs[0].state = JOB_DONE; /* it is not given again */
    pthread_mutex_unlock(&m.fake.lock);
    r->deadline = a->seen_at + 1;
    while (clock_boot_ms() < r->deadline)
        usleep(500);
    CHECK(intact_agent_timeout_ms(a) == 0, "a deadline has passed");
    CHECK(intact_agent_drive(a) && kept.stops == 1, "it is told");
    end(a, INTACT_AGENT_STOPPED);
}

/* The number of connections to the fake server; none may outlive an exec. */
static size_t own_connections(void)
{
    size_t count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || peer.sin_family != AF_INET
            || ntohs(peer.sin_port) != m.fake.port)
            continue;
        CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "descriptor %d is handed down", fd);
        count++;
    }
    return count;
}

static void programs_of_handlers_do_not_get_its_connections(void **state)
{
    struct intact_agent *a = begin(1, true);

    (void)state;
    add_jobs(1, "here", "forward", 600000);
    while (done_count() < 1)
        turn(a);
    CHECK(own_connections() > 0, "it is connected");
    end(a, INTACT_AGENT_STOPPED);
}

/* Linux limits how many epolls watched by another one may watch one descriptor. */
static void many_agents_run_in_one_loop_and_stop_together(void **state)
{
    enum { MANY = 600, DESCRIPTORS = 10 * MANY };
    static struct intact_agent *all[MANY];
    struct rlimit before;
    struct rlimit files;
    static bool told[MANY];
    size_t told_count = 0;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    files = (struct rlimit){.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
    if (before.rlim_max < DESCRIPTORS || setrlimit(RLIMIT_NOFILE, &files) != 0)
        skip();
    int loop = epoll_create1(EPOLL_CLOEXEC);
    kept.log[0] = 0;
    for (size_t i = 0; i < MANY; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u64 = i};
        all[i] = intact_agent_new("many");
        intact_agent_set_server(all[i], "http://127.0.0.1:1"); /* nothing listens there */
        intact_agent_set_inline(all[i], true);
        intact_agent_set_log(all[i], no_log, NULL);
        intact_agent_on(all[i], "keep", INTACT_FORWARD, keep, NULL);
        CHECK(intact_agent_drive(all[i]), "agent %zu runs", i);
        CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, intact_agent_fd(all[i]), &e) == 0, "agent %zu: %s", i,
              strerror(errno));
    }
    intact_agent_stop();
    while (told_count < MANY) { /* by its descriptor alone */
        struct epoll_event e;
        CHECK(epoll_wait(loop, &e, 1, 120000) == 1, "%zu agents were not told", MANY - told_count);
        (void)intact_agent_drive(all[e.data.u64]);
        told_count += !told[e.data.u64];
        told[e.data.u64] = true;
    }
    for (size_t i = 0; i < MANY; i++) {
        while (intact_agent_drive(all[i]))
            usleep(1000);
        CHECK(intact_agent_outcome(all[i]) == INTACT_AGENT_STOPPED, "it has stopped");
        intact_agent_free(all[i]);
    }
    close(loop);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "as before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_requests_are_answered_by_any_thread),
        cmocka_unit_test(what_is_kept_may_be_answered_before_its_handler_returns),
        cmocka_unit_test(a_kept_request_takes_a_place_and_hears_of_its_stop),
        cmocka_unit_test(a_kept_request_hears_of_its_deadline),
        cmocka_unit_test(a_stopping_agent_waits_for_what_is_kept_until_its_deadline),
        cmocka_unit_test(an_agent_that_is_freed_at_work_leaves_requests_to_their_owners),
        cmocka_unit_test(a_handler_cannot_drive_its_agent),
        cmocka_unit_test(its_descriptor_is_readable_when_an_answer_comes),
        cmocka_unit_test(what_fell_due_since_its_turn_is_not_waited_for),
        cmocka_unit_test(many_agents_run_in_one_loop_and_stop_together),
        cmocka_unit_test(programs_of_handlers_do_not_get_its_connections),
    };

    peer_timing.retry_ms = 5;
    peer_timing.retry_max_ms = 50;
    peer_timing.poll_ms = 20;
    peer_timing.beat_ms = 5;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
