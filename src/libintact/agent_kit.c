/* A small model of the server's side for tests of agents: it gives jobs, gives them again if they
 * got lost, and has faults that tests switch on (agent_kit.h). fake.c is the HTTP server below
 * it. */

#include "libintact/agent_kit.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"

struct model m;

static struct job *job_of(struct slice token)
{
    for (size_t i = 0; i < m.count; i++)
        if (slice_is(token, m.jobs[i].token))
            return &m.jobs[i];
    return NULL;
}

size_t take_results(const struct json *results, struct buf *ret)
{
    size_t count = 0;

    json_key(ret, "outcomes");
    json_open(ret, '[');
    for (const struct json *j = results ? results->child : NULL; j; j = j->next, count++) {
        struct job *job = job_of(json_get_text(j, "token"));
        const char *status = !job ? "unknown" : job->state == JOB_DONE ? "repeated" : "accepted";
        json_open(ret, '{');
        json_member_text(ret, "token", json_get_text(j, "token"));
        json_member_text(ret, "status", slice_of(m.outcome ? m.outcome : status));
        json_close(ret, '}');
        if (!job)
            continue;
        job->told++;
        m.result_calls = m.calls;
        job->state = JOB_DONE;
        snprintf(job->result, sizeof(job->result), "%.*s", SLICE_ARG(j->raw));
    }
    json_close(ret, ']');
    return count;
}

static bool holds(const struct json *holding, const char *token)
{
    for (const struct json *j = holding->child; j; j = j->next)
        if (slice_is(j->text, token))
            return true;
    return false;
}

static void give_again_what_was_lost(const struct json *holding)
{
    for (size_t i = 0; holding && i < m.count; i++)
        if (m.jobs[i].state == JOB_GIVEN && m.jobs[i].left_ms > BRIEF_MS
            && !holds(holding, m.jobs[i].token))
            m.jobs[i].state = JOB_NEW;
    if (holding)
        snprintf(m.last_holding, sizeof(m.last_holding), "%.*s", SLICE_ARG(holding->raw));
}

static void write_job(struct buf *ret, const struct job *job)
{
    json_open(ret, '{');
    buf_fmt(
        ret,
        "\"token\":\"%s\",\"task\":\"t-%s\",\"step\":\"s\",\"action\":\"%s\",\"direction\":\"%s\","
        "\"attempt\":%u,\"idempotency_key\":\"t-%s/s\",\"input\":{\"n\": [1, 2]},"
        "\"complete_by\":\"2026-01-31T10:00:00.000Z\",\"time_left_ms\":%" PRId64,
        job->token, job->token, job->action, job->direction, job->given, job->token, job->left_ms);
    if (job->heartbeat_ms > 0)
        buf_fmt(ret, ",\"heartbeat_ms\":%" PRId64, job->heartbeat_ms);
    if (job->resume)
        buf_fmt(ret, ",\"resume\":%s", job->resume);
    if (strcmp(job->direction, "undo") == 0)
        buf_fmt(ret, ",\"forward\":{\"idempotency_key\":\"t-%s/f\",\"input\":1,\"output\":null}",
                job->token);
    json_close(ret, '}');
}

static size_t give_jobs(size_t max, struct buf *ret)
{
    size_t count = 0;

    json_key(ret, "requests");
    json_open(ret, '[');
    for (size_t i = 0; i < m.count && count < max; i++) {
        struct job *job = &m.jobs[i];
        if (job->state != JOB_NEW)
            continue;
        job->state = JOB_GIVEN;
        job->given++;
        count++;
        for (int n = 0; n < (m.twice ? 2 : 1); n++) {
            if (count > 1 || n > 0)
                buf_byte(ret, ',');
            write_job(ret, job);
        }
    }
    json_close(ret, ']');
    return count;
}

static bool anything_new(void)
{
    bool any = m.stop;

    for (size_t i = 0; i < m.count; i++)
        any = any || m.jobs[i].state == JOB_NEW;
    return any;
}

static bool count_down(unsigned *n, uint32_t percent)
{
    if (m.storm && prng_chance(m.storm, percent))
        return true;
    if (*n == 0)
        return false;
    --*n;
    return true;
}

static bool is_poisoned(const struct json *results)
{
    for (const struct json *j = results ? results->child : NULL; j && m.poison; j = j->next)
        if (slice_is(json_get_text(j, "token"), m.poison))
            return true;
    return false;
}

static void write_beat_outcomes(struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *call = NULL;

    if (json_parse(&a, body, &call, NULL) != ERR_OK)
        return;
    const struct json *beats = json_get(call, "beats");
    for (const struct json *j = beats ? beats->child : NULL; j; j = j->next) {
        struct slice token = json_get_text(j, "token");
        struct job *job = job_of(token);
        if (job)
            job->beats++;
        if (m.beat_status)
            buf_fmt(ret, "%s{\"token\":\"%.*s\",\"status\":\"%s\"}", j == beats->child ? "" : ",",
                    SLICE_ARG(token), m.beat_status);
    }
}

static int answer_beats(struct fake *f, struct slice body, struct buf *ret)
{
    if (count_down(&m.lose_call, 0))
        return 0;
    m.beat_calls++;
    snprintf(m.last_beats, sizeof(m.last_beats), "%.*s", SLICE_ARG(body));
    buf_str(ret, "{\"now\":\"2026-01-31T10:00:00.000Z\",\"outcomes\":[");
    write_beat_outcomes(body, ret);
    buf_str(ret, "],\"stop\":[");
    if (m.stop)
        buf_fmt(ret, "\"%s\"", m.stop);
    buf_str(ret, "]}");
    m.stop = NULL;
    pthread_cond_broadcast(&f->changed);
    return 200;
}

int answer_work(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *call = NULL;

    if (strcmp(line, "POST /v1/agents/pay%20desk/heartbeats") == 0)
        return answer_beats(f, body, ret);
    if (strcmp(line, "GET /v1/nodes") == 0)
        return 404; /* like a server that does not know the request */
    m.calls++;
    if (strcmp(line, "POST /v1/agents/pay%20desk/work") != 0)
        return 404;
    if (json_parse(&a, body, &call, NULL) != ERR_OK)
        return 400;
    const struct json *results = json_get(call, "results");
    size_t max = (size_t)json_get_int(call, "max", 0);
    bool main = json_get(call, "holding");
    m.fetches += max > 0;
    m.farewells += max == 0 && main;
    if (is_poisoned(results))
        return 400;
    if (count_down(&m.refuse, 5))
        return m.status ? m.status : 503;
    if (count_down(&m.lose_call, 5))
        return 0;
    unsigned serial = main ? ++m.serial : 0;
    json_open(ret, '{');
    size_t handed_in = take_results(results, ret);
    if (main)
        give_again_what_was_lost(json_get(call, "holding"));
    int64_t waited = 0;
    while (!handed_in && max > 0 && !anything_new() && waited < 1000 && fake_wait(f)
           && serial == m.serial)
        waited += 50;
    give_jobs(serial == m.serial || !main ? max : 0, ret);
    buf_fmt(ret, ",\"waited_ms\":%" PRId64, waited);
    if (m.stop && main) {
        buf_fmt(ret, ",\"stop\":[\"%s\"]", m.stop);
        m.stop = NULL;
    }
    json_close(ret, '}');
    pthread_cond_broadcast(&f->changed);
    usleep(m.delay_ms * 1000);
    return count_down(&m.lose_answer, 10) ? 0 : 200;
}

void add_jobs(size_t count, const char *action, const char *direction, int64_t left_ms)
{
    pthread_mutex_lock(&m.fake.lock);
    for (size_t i = 0; i < count; i++) {
        struct job *job = &m.jobs[m.count];
        ASSERT(m.count < JOBS_MAX);
        *job = (struct job){.action = action, .direction = direction, .left_ms = left_ms};
        snprintf(job->token, sizeof(job->token), "%zu", m.count++);
    }
    pthread_cond_broadcast(&m.fake.changed);
    pthread_mutex_unlock(&m.fake.lock);
}

void add_long_job(const char *action, int64_t heartbeat_ms, const char *resume)
{
    pthread_mutex_lock(&m.fake.lock);
    struct job *job = &m.jobs[m.count];
    ASSERT(m.count < JOBS_MAX);
    *job = (struct job){.action = action,
                        .direction = "forward",
                        .left_ms = 600000,
                        .heartbeat_ms = heartbeat_ms,
                        .resume = resume};
    snprintf(job->token, sizeof(job->token), "%zu", m.count++);
    pthread_cond_broadcast(&m.fake.changed);
    pthread_mutex_unlock(&m.fake.lock);
}

void wait_done(size_t count)
{
    size_t done;

    pthread_mutex_lock(&m.fake.lock);
    do {
        fake_wait(&m.fake);
        done = 0;
        for (size_t i = 0; i < m.count; i++)
            done += m.jobs[i].state == JOB_DONE;
    } while (done < count);
    pthread_mutex_unlock(&m.fake.lock);
}

void wait_holding(const char *one, const char *other)
{
    pthread_mutex_lock(&m.fake.lock);
    while (strcmp(m.last_holding, one) != 0 && strcmp(m.last_holding, other) != 0)
        fake_wait(&m.fake);
    pthread_mutex_unlock(&m.fake.lock);
}
