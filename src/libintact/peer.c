/* One server of an agent: when its main, side and heartbeat calls are made, and what their
 * answers mean (peer.h has the rules). On the driving thread. call.c is a single call, nodes.c
 * the choice of servers, places.c the free places. */

#include "libintact/peer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "libintact/agent.h"
#include "libintact/meet.h"
#include "libintact/nodes.h"
#include "libintact/pulse.h"

struct peer_timing peer_timing = {
    .retry_ms = 50,
    .retry_max_ms = 2000,
    .refused_ms = 2000,
    .refused_max_ms = 30000,
    .linger_ms = 2,
    .poll_ms = 1000,
    .beat_ms = 250,
    .hand_in_ms = 2000,
    .refresh_ms = 8000,
    .lost_ms = 500,
    .idle_ms = 10,
    .excess_ms = 20,
    .home_ms = 1000,
    .neglect_ms = 200,
};

enum {
    REFUSED_MAX = 3, /* so many refusals of a single result are final */
    BEAT_WITHIN_MS = 5000,
    RETRY_AFTER_MAX = 60, /* seconds; the maximum Retry-After */
    ASK_WITHIN_MS = 5000,
};

static char *address(const char *server, const char *path)
{
    struct buf url = {0};

    buf_fmt(&url, "%s%s", server, path);
    return url.ptr;
}

bool peer_init(struct peer *p, struct intact_agent *a, struct slice server)
{
    CLEANUP(buf_fini) struct buf path = {0};
    char *name = curl_easy_escape(NULL, a->options.name, 0);

    *p = (struct peer){.agent = a, .result_max = SIZE_MAX, .quick = true};
    list_init(&p->ready);
    buf_slice(&path, server);
    p->server = address(path.ptr, "");
    buf_clear(&path);
    buf_fmt(&path, "/v1/agents/%s/work", name ? name : "");
    p->url = address(p->server, path.ptr);
    buf_clear(&path);
    buf_fmt(&path, "/v1/agents/%s/heartbeats", name ? name : "");
    p->beat_url = address(p->server, path.ptr);
    p->nodes_url = address(p->server, "/v1/nodes");
    curl_free(name);
    call_init(&p->main, p, p->url, a->headers);
    call_init(&p->side, p, p->url, a->headers);
    call_init(&p->beat, p, p->beat_url, a->headers);
    call_init(&p->ask, p, p->nodes_url, a->headers);
    a->reactor.is_tls |= strncasecmp(p->server, "https:", 6) == 0;
    return call_make_handle(&p->main); /* reports an invalid address at once */
}

void peer_fini(struct peer *p)
{
    call_fini(&p->main);
    call_fini(&p->side);
    call_fini(&p->beat);
    call_fini(&p->ask);
    free(p->server);
    free(p->url);
    free(p->beat_url);
    free(p->nodes_url);
}

static bool lingers(const struct peer *p, int64_t now)
{
    return p->quick && p->working > 0 && p->allowed > 0 && now < p->linger_until;
}

/* Calls only to learn of stops, also while the agent waits for its last requests. */
static bool polls(const struct peer *p)
{
    bool waited_for = p->working > 0 || (p->used && p->agent->held.len > 0);

    return p->allowed == 0 && (p->agent->stopping ? p->working > 0 : waited_for);
}

/* When the first of its results may be sent. */
static int64_t results_at(const struct peer *p, int64_t now)
{
    int64_t at = INT64_MAX;

    for (struct link *l = p->ready.next; l != &p->ready && at > now; l = l->next)
        at = min_i64(at, CONTAINER_OF(l, struct intact_request, link)->send_at);
    return at;
}

static bool main_is_due(const struct peer *p, int64_t now)
{
    if (p->main.busy || !p->answered || p->agent->meet_until != 0 || lingers(p, now))
        return false;
    if (p->allowed > 0 || p->farewell || results_at(p, now) <= now)
        return true;
    return polls(p) && now >= p->poll_at;
}

/* A call with results is answered once they are durable, so further results wait for it. */
static bool side_is_due(const struct peer *p, int64_t now)
{
    if (p->call_home && p->main.busy && !p->side.busy)
        return true;
    return p->main.busy && p->main.result_count == 0 && !p->side.busy && results_at(p, now) <= now;
}

static void start(struct peer *p, struct call *c, struct call_form *f, int64_t now)
{
    f->result_max = p->result_max;
    f->hand_in_ms = nodes_any_other(p) ? peer_timing.hand_in_ms : CALL_WITHIN_MS;
    if (call_start(c, p->agent, f, &p->ready))
        return;
    agent_log(p->agent, LOG_ERROR, "event=call_failed server=%s error=\"out of memory\"", p->url);
    p->retry_at = now + peer_timing.retry_max_ms;
}

static bool ask_is_due(const struct peer *p, int64_t now)
{
    return p->ask_wanted && !p->ask.busy && now >= p->retry_at;
}

/* Several nodes may be behind one address: a new connection may reveal that. */
static void ask(struct peer *p, int64_t now)
{
    bool fresh = p->is_seed && p->answered && p->agent->nodes.count > 1;

    p->ask_wanted = false;
    if (!call_get(&p->ask, p->agent, ASK_WITHIN_MS, fresh))
        p->retry_at = now + peer_timing.retry_max_ms;
}

static bool beat_is_due(const struct peer *p, int64_t now)
{
    return !p->beat.busy && now >= heartbeats_due_at(&p->agent->outbox->beats, p, p->beat_sent_at);
}

/* A heartbeat that cannot be sent counts as lost. */
static void send_beats(struct peer *p, int64_t now)
{
    struct buf *b = &p->beat.body;

    p->beat_sent_at = now;
    buf_clear(b);
    json_open(b, '{');
    json_member_text(b, "instance", slice_of(p->agent->options.instance));
    json_key(b, "beats");
    json_open(b, '[');
    size_t count = heartbeats_take(&p->agent->outbox->beats, p, b);
    json_close(b, ']');
    json_close(b, '}');
    if (count == 0 || call_send(&p->beat, p->agent, pulse_within_ms(p, BEAT_WITHIN_MS)))
        return;
    agent_log(p->agent, LOG_WARN, "event=heartbeats_dropped count=%zu", count);
    pulse_answered(p, NULL);
}

static void start_main(struct peer *p, int64_t now)
{
    struct call_form form = {.max = p->allowed,
                             .wait_ms = p->allowed > 0 ? p->agent->options.wait_ms : 0,
                             .holding = true};

    if (now >= p->linger_until && p->working > 0)
        p->quick = false;
    p->farewell = false;
    p->call_home = false;
    p->excess_since = 0;
    p->poll_at = now + peer_timing.poll_ms;
    if (form.max > 0) {
        p->offered_at = now;
        p->agent->share_at = min_i64(p->agent->share_at, now + peer_timing.idle_ms);
    }
    start(p, &p->main, &form, now);
}

static void start_side(struct peer *p, int64_t now)
{
    struct call_form form = {.instead = p->call_home};

    if (p->call_home) {
        p->main.called_home = true;
        p->home_by = now + peer_timing.home_ms;
    }
    p->call_home = false;
    start(p, &p->side, &form, now);
}

void peer_tick(struct peer *p, int64_t now)
{
    if (beat_is_due(p, now))
        send_beats(p, now);
    if (ask_is_due(p, now))
        ask(p, now);
    if (now < p->retry_at)
        return;
    if (main_is_due(p, now))
        start_main(p, now);
    if (side_is_due(p, now))
        start_side(p, now);
}

int64_t peer_wake_at(const struct peer *p, int64_t now)
{
    int64_t at = INT64_MAX;

    if (!p->beat.busy)
        at = heartbeats_due_at(&p->agent->outbox->beats, p, p->beat_sent_at);
    if (p->retry_at > now && (p->answered || p->ask_wanted))
        return min_i64(at, p->retry_at);
    if (ask_is_due(p, now) || main_is_due(p, now)
        || side_is_due(p, now)) /* only since the last tick */
        return now;
    if (!p->main.busy && lingers(p, now))
        at = min_i64(at, p->linger_until);
    if (!p->main.busy && p->answered && polls(p))
        at = min_i64(at, p->poll_at);
    int64_t later = results_at(p, now);
    return later > now ? min_i64(at, later) : at; /* what is due waits for the answer of a call */
}

void peer_done(struct peer *p, struct intact_request *r, int64_t now)
{
    ASSERT(p->working > 0);
    ASSERT(p->agent->running > 0);
    p->working--;
    p->agent->running--;
    r->in_work = false;
    agent_unwatch(p->agent, r);
    p->agent->pulsing -= r->heartbeat_ms > 0;
    heartbeats_drop(&p->agent->outbox->beats, r);
    if (p->working == 0 && now < p->linger_until)
        p->quick = true;
    if (r->result.len > 0)
        list_push(&p->ready, &r->link);
    else
        agent_release(p->agent, r, SLICE_NONE);
}

/* Jitter on the upper half: agents that lost the same server must not return at the same time. */
static int64_t backoff(struct intact_agent *a, int64_t first, int64_t most, uint32_t failures)
{
    int64_t delay = first;

    for (uint32_t i = 1; i < failures && delay < most; i++)
        delay *= 2;
    delay = min_i64(delay, most);
    return delay / 2 + prng_below(&a->prng, (uint32_t)(delay / 2) + 1);
}

static bool is_refusal(long status)
{
    return status >= 400 && status < 500 && status != 408 && status != 429;
}

/* The token or the installation is refused, not the content of the call: results are kept until the
 * agent is accepted again. */
static bool is_about_us(long status)
{
    return status == 401 || status == 403 || status == 421;
}

static const char *refusal_text(long status)
{
    if (status == 401)
        return "the server requires a valid token: set INTACT_TOKEN";
    if (status == 403)
        return "the token lacks the role agent:NAME of this agent";
    return "the server refused the call";
}

/* Replaces a result that the server cannot read by an error, and drops it if that is refused, too.
 * Otherwise it would be requested and refused for ever. */
static void drop_if_hopeless(struct peer *p, struct call *c)
{
    struct link *first = list_first(&c->results);
    struct intact_request *r = first ? CONTAINER_OF(first, struct intact_request, link) : NULL;

    if (!r || c->result_count > 1 || ++r->refused < REFUSED_MAX)
        return;
    if (r->refused == REFUSED_MAX) {
        agent_log(p->agent, LOG_ERROR, "event=result_replaced task=%s step=%s reason=\"refused\"",
                  r->task, r->step);
        request_replace(r);
        return;
    }
    if (r->refused < 2 * REFUSED_MAX)
        return;
    agent_log(p->agent, LOG_ERROR, "event=result_dropped task=%s step=%s reason=\"refused\"",
              r->task, r->step);
    link_remove(first);
    c->result_count = 0;
    agent_release(p->agent, r, SLICE_NONE);
}

static int64_t failure_delay(struct peer *p, const struct call *c, long status)
{
    const struct peer_timing *t = &peer_timing;
    curl_off_t seconds = 0;

    if (is_refusal(status))
        return backoff(p->agent, t->refused_ms, t->refused_max_ms, p->failures);
    (void)curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &seconds); /* 0 if there is none */
    return max_i64(backoff(p->agent, t->retry_ms, t->retry_max_ms, p->failures),
                   min_i64(seconds, RETRY_AFTER_MAX) * 1000);
}

/* The call had no known effect. Its results are sent again. */
static void fail_call(struct peer *p, struct call *c, long status, const char *why)
{
    CLEANUP(buf_fini) struct buf words = {0}; /* the server's message */

    p->failures++;
    log_word(&words, slice_of(why));
    if (p->failures == 1 || p->failures % 64 == 0)
        agent_log(p->agent, is_refusal(status) ? LOG_ERROR : LOG_WARN,
                  "event=call_failed server=%s status=%ld failures=%u error=%s", p->url, status,
                  p->failures, words.ptr);
    if (is_refusal(status) && !is_about_us(status)) {
        if (c->result_count > 0)
            p->result_max = 1;
        drop_if_hopeless(p, c);
    }
    call_return_results(c, &p->ready);
    p->retry_at = clock_boot_ms() + failure_delay(p, c, status);
    nodes_lost(p, status == 0);
}

/* A result with any outcome is done. */
static void read_outcomes(struct peer *p, struct call *c, const struct json *outcomes)
{
    for (const struct json *j = outcomes ? outcomes->child : NULL; j; j = j->next) {
        struct intact_request *r = map_get(&p->agent->held, json_get_text(j, "token"));
        struct slice status = json_get_text(j, "status");

        if (!r || r->call != c || !status.ptr)
            continue;
        if (!slice_is(status, "accepted") && !slice_is(status, "repeated"))
            agent_log(p->agent, LOG_WARN, "event=result_not_taken task=%s step=%s outcome=%.*s",
                      r->task, r->step, SLICE_ARG(status));
        link_remove(&r->link);
        c->result_count--;
        agent_release(p->agent, r, status);
    }
}

/* The server could not read the records of these, which concerns nothing else. */
static void leave_out(struct peer *p, struct call *c)
{
    LIST_FOREACH (l, after, &c->results) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, link);
        r->left_out++;
        r->send_at =
            clock_boot_ms()
            + backoff(p->agent, peer_timing.retry_ms, peer_timing.retry_max_ms, r->left_out);
        if (r->left_out == 1 || r->left_out % 64 == 0)
            agent_log(p->agent, LOG_WARN, "event=result_left_out task=%s step=%s times=%u", r->task,
                      r->step, r->left_out);
    }
    call_return_results(c, &p->ready);
}

static void read_stops(struct peer *p, const struct json *stops)
{
    for (const struct json *j = stops ? stops->child : NULL; j; j = j->next) {
        struct intact_request *r =
            j->type == JSON_STRING ? map_get(&p->agent->held, j->text) : NULL;
        if (r)
            request_tell_stop(r);
    }
}

/* The server measures the remaining time from when it wrote the answer, `waited` after it received
 * the call. That moment is only known to be between sending and now. */
static size_t read_requests(struct peer *p, struct call *c, const struct json *answer)
{
    struct intact_agent *a = p->agent;
    const struct json *requests = json_get(answer, "requests");
    int64_t waited = json_get_int(answer, "waited_ms", 0);
    int64_t elapsed = clock_boot_ms() - c->sent_at;
    struct link fresh;
    size_t count = 0;

    list_init(&fresh);
    waited = max_i64(0, min_i64(waited, elapsed));
    for (const struct json *j = requests ? requests->child : NULL; j; j = j->next) {
        if (map_get(&a->held, json_get_text(j, "token")))
            continue; /* delivered again: it is in work, or its result is on the way */
        struct intact_request *r = request_read(c->answer, j, c->sent_at + waited);
        if (!r) {
            agent_log(a, LOG_ERROR, "event=request_unusable server=%s", p->url);
            continue;
        }
        r->peer = p;
        r->outbox = a->outbox;
        r->in_work = true;
        r->beat_peer = p;
        r->rule = a->options.retry;
        atomic_init(&r->is_beaten_for, a->options.automatic_beats);
        a->pulsing += r->heartbeat_ms > 0;
        agent_find_handler(a, r);
        map_put(&a->held, r->token, r);
        list_push(&fresh, &r->link);
        count++;
    }
    p->working += count;
    if (count > 0) {
        p->linger_until = clock_boot_ms() + peer_timing.linger_ms;
        agent_take(a, &fresh);
    }
    return count;
}

/* A server that answers at once without work would otherwise be called in a tight loop. */
static void slow_down_if_idle(struct peer *p, const struct call *c, bool useful)
{
    int64_t now = clock_boot_ms();

    if (useful || c->max == 0 || now - c->sent_at >= p->agent->options.wait_ms / 2) {
        p->idle_answers = 0;
        return;
    }
    p->idle_answers++;
    if (p->idle_answers > 2)
        p->retry_at = now + backoff(p->agent, 10, peer_timing.retry_max_ms, p->idle_answers - 2);
}

static void recovered(struct peer *p)
{
    if (p->failures > 0)
        agent_log(p->agent, LOG_INFO, "event=connected server=%s", p->url);
    p->failures = 0;
}

static void read_answer(struct peer *p, struct call *c, const struct json *answer)
{
    bool handed_in = c->result_count > 0;

    recovered(p);
    read_outcomes(p, c, json_get(answer, "outcomes"));
    if (c->result_count > 0)
        leave_out(p, c);
    else if (handed_in)
        p->result_max = p->result_max > SIZE_MAX / 2 ? SIZE_MAX : p->result_max * 2;
    const struct json *stop = json_get(answer, "stop");
    read_stops(p, stop);
    size_t fresh = read_requests(p, c, answer);
    if (fresh > 0)
        p->useful_at = clock_boot_ms();
    if (c->max > 0)
        p->offered_at = clock_boot_ms();
    slow_down_if_idle(p, c, handed_in || fresh > 0 || c->called_home || (stop && stop->child));
}

/* Errors of the server are handled by the other calls. */
static void beats_answered(struct peer *p, CURLcode code)
{
    struct delivery *d = p->beat.answer;
    struct json *answer = NULL;
    long status = 0;

    call_end(&p->beat, p->agent->reactor.multi);
    p->beat.answer = NULL;
    bool is_ours = meet_answered(p, &p->beat, code);
    (void)curl_easy_getinfo(p->beat.easy, CURLINFO_RESPONSE_CODE, &status); /* 0: no answer */
    if (code == CURLE_OK && is_ours && status == 200
        && json_parse(&d->arena, buf_view(&d->text), &answer, NULL) == ERR_OK)
        read_stops(p, json_get(answer, "stop"));
    else
        answer = NULL;
    pulse_answered(p, json_get(answer, "outcomes"));
    delivery_unuse(d);
}

/* Any answer shows that the server is reachable; nodes.c handles the content. */
static void ask_answered(struct peer *p, CURLcode code)
{
    struct call *c = &p->ask;
    struct delivery *d = c->answer;
    struct json *answer = NULL;
    long status = 0;

    call_end(c, p->agent->reactor.multi);
    c->answer = NULL;
    bool is_ours = meet_answered(p, c, code);
    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status); /* 0: no answer */
    if (!is_ours) {
        nodes_left(p);
    } else if (code != CURLE_OK) {
        fail_call(p, c, 0, c->why[0] ? c->why : curl_easy_strerror(code));
    } else {
        if (status == 200 && json_parse(&d->arena, buf_view(&d->text), &answer, NULL) != ERR_OK)
            answer = NULL;
        bool was_away = !p->answered; /* otherwise its other calls show its state */
        nodes_answered(p, answer);
        if (was_away && p->answered) /* as the expected node */
            recovered(p);
    }
    call_drop_handle(c); /* not needed for seconds */
    delivery_unuse(d);
}

/* It belongs to another installation: its answers are ignored. Results are kept. */
static void leave(struct peer *p, struct call *c)
{
    call_return_results(c, &p->ready);
    nodes_left(p);
}

void peer_answered(struct peer *p, struct call *c, CURLcode code)
{
    if (c == &p->beat) {
        beats_answered(p, code);
        return;
    }
    if (c == &p->ask) {
        ask_answered(p, code);
        return;
    }
    struct delivery *d = c->answer;
    struct json *answer = NULL;
    long status = 0;

    call_end(c, p->agent->reactor.multi);
    c->answer = NULL;
    bool is_ours = meet_answered(p, c, code);
    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 without an answer */
    if (!is_ours)
        leave(p, c);
    else if (code != CURLE_OK)
        fail_call(p, c, 0, c->why[0] ? c->why : curl_easy_strerror(code));
    else if (status != 200)
        fail_call(p, c, status, refusal_text(status));
    else if (json_parse(&d->arena, buf_view(&d->text), &answer, NULL) != ERR_OK)
        fail_call(p, c, status, "the answer is not JSON");
    if (answer) {
        c->answer = d;
        read_answer(p, c, answer);
        c->answer = NULL;
    }
    delivery_unuse(d);
}

static void break_off(struct peer *p, struct call *c)
{
    call_end(c, p->agent->reactor.multi);
    call_return_results(c, &p->ready);
    delivery_unuse(c->answer);
    c->answer = NULL;
}

void peer_stop(struct peer *p)
{
    if (!p->main.busy || p->main.max == 0 || p->main.result_count > 0
        || !call_heard_nothing(&p->main))
        return;
    break_off(p, &p->main);
    /* An answer may have been on its way: the next call reports that its requests are not held. */
    p->farewell = p->failures == 0;
}

void peer_leave(struct peer *p)
{
    if (!p->main.busy || p->main.max == 0 || p->main.called_home)
        return;
    p->call_home = true;
}

void peer_put_off(struct peer *p)
{
    const struct peer_timing *t = &peer_timing;

    p->failures++;
    p->ask_wanted = true;
    p->retry_at = clock_boot_ms() + backoff(p->agent, t->refused_ms, t->refresh_ms, p->failures);
}

bool peer_is_over(const struct peer *p)
{
    return p->working == 0 && !p->main.busy && !p->side.busy && !p->beat.busy && !p->ask.busy
           && list_empty(&p->ready);
}

void peer_abandon(struct peer *p)
{
    if (p->ask.busy)
        break_off(p, &p->ask);
    if (p->main.busy)
        break_off(p, &p->main);
    if (p->side.busy)
        break_off(p, &p->side);
    if (p->beat.busy)
        break_off(p, &p->beat);
}

bool peer_is_idle(const struct peer *p)
{
    return !p->main.busy && !p->side.busy && !p->farewell && list_empty(&p->ready);
}
