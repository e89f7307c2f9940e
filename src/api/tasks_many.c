/*
 * POST /v1/tasks with application/x-ndjson: a submission on each line, each answered separately, in
 * the order of the lines.
 *
 *     reading   lines are handed to the scheduler as far as there is room, others wait in the body;
 *               of what was answered only the verdict is kept
 *     waiting   (?wait=) all lines were answered: for the ends of the tasks, or of the wait
 *     answered
 *
 * A client that goes away while lines are still in the body has them dropped; what was handed in
 * stays. Otherwise their ids would reach no client.
 */

#include <stdlib.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/room.h"
#include "api/tasks.h"
#include "background/waits.h"
#include "base/list.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/door.h"
#include "node/exchange.h"
#include "node/fair.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/part.h"
#include "node/quota.h"
#include "node/submission.h"
#include "store/job.h"
#include "json/json.h"

enum {
    WINDOW = 2048,     /* lines with the scheduler: a batch commits, one gathers, one is read ... */
    WINDOW_MAX = 4096, /* ... of one request, and of all: each has a task in memory, some 8 KiB */
    LINES_AT_ONCE = 512, /* read in one go: others wait meanwhile */
    WINDOW_SHARED = 48,  /* while other tokens call: all wait for a commit of all these lines */
    STATES_AT_ONCE = 256,
    LINES_WAITING_MAX = 500000, /* of all requests that wait for ends: some 100 bytes each */
};

/* How long lines are read in one go at most. */
#define ALONE_NS UINT64_C(5000000)

/* What became of a line. */
struct verdict {
    uint32_t line;
    int status;
    struct slice id; /* NONE: it named none that is one */
    const char *problem_type;
    struct slice problem;
    struct slice signals;  /* what became of them: a member of the answer; NONE: it carried none */
    int64_t version;       /* of its workflow; without a problem */
    int64_t ended_at;      /* of a deleted one */
    enum task_state state; /* as last read */
    bool state_known, ended;
    bool deleted; /* it ended in that state, and is not in the store any more */
    struct waiter waiter;
    struct many *many;
};

/* All batches of the node. */
struct batches {
    struct link ready; /* of struct many: they have lines for the scheduler */
};

struct many {
    struct exchange x;
    struct link link;   /* in batches.ready */
    struct arena arena; /* of ids and problems; it lies in it */
    char *body;         /* until all lines are answered */
    struct slice rest;  /* of it, still to be read */
    struct slice trace; /* of the request: for lines without their own */
    const struct grant *grant;
    struct slice caller;
    const struct fair_share *share; /* its token's */
    size_t bytes;
    uint32_t line; /* read so far */
    bool away;     /* the last of them is being read on a thread: others wait for it */
    struct verdict *verdicts;
    size_t count, open;               /* lines that were read; that the scheduler has */
    int64_t wait_ms, wait_until;      /* steady */
    struct registry_wait definitions; /* before the first line is read */
    /* State of the wait: */
    struct store_job job;
    size_t from, to; /* whose states are being read */
    size_t waiting;  /* verdicts that wait for the end of their task */
    size_t held;     /* lines that count as waiting */
    bool last_read;  /* the states are answered as they are now */
    bool reading, timer_open;
    uv_timer_t timer;
};

/* ---- its end ---- */

static void many_free(struct many *m)
{
    struct arena a = m->arena;

    free(m->body);
    free(m->verdicts);
    arena_fini(&a);
}

static void timer_closed(uv_handle_t *h)
{
    struct many *m = h->data;

    m->timer_open = false;
    many_free(m);
}

static void release_body(struct many *m)
{
    m->x.server->load.asks_bytes -= m->bytes;
    m->bytes = 0;
    m->rest = SLICE_NONE;
    free(m->body);
    m->body = NULL;
}

static void stop_waiting(struct many *m)
{
    for (size_t i = 0; i < m->count && m->waiting > 0; i++)
        if (m->verdicts[i].waiter.in) {
            waiter_leave(m->x.server, &m->verdicts[i].waiter);
            m->waiting--;
        }
}

static void many_end(struct many *m)
{
    ASSERT(m->open == 0 && !m->reading);
    exchange_untie(&m->x);
    link_remove(&m->link);
    stop_waiting(m);
    release_body(m);
    m->x.server->load.lines_waiting -= m->held;
    if (m->timer_open)
        uv_close((uv_handle_t *)&m->timer, timer_closed);
    else
        many_free(m);
}

/* ---- the answer ---- */

static void render_verdict(struct buf *b, const struct verdict *o, bool waited)
{
    json_open(b, '{');
    json_key(b, "line");
    json_number(b, o->line);
    json_key(b, "status");
    json_number(b, o->status);
    json_key(b, "id");
    json_string(b, o->id);
    if (!o->problem_type) {
        json_key(b, "version");
        json_number(b, o->version);
    }
    if ((waited || o->deleted) && !o->problem_type) {
        json_key(b, "state");
        json_string(b, o->state_known ? slice_of(task_state_text(o->state)) : SLICE_NONE);
    }
    if (o->deleted && !o->problem_type) {
        json_key(b, "deleted");
        json_bool(b, true);
        json_key(b, "ended_at");
        json_time(b, o->ended_at);
    }
    if (o->signals.ptr) {
        buf_byte(b, ',');
        buf_slice(b, o->signals);
    }
    if (o->problem_type) {
        json_key(b, "problem");
        submission_problem(b, o->status, o->problem_type, o->problem);
    }
    json_close(b, '}');
    buf_byte(b, '\n');
}

static void log_forbidden(struct many *m, const struct http_request *r)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->verdicts[i].status == 403) {
            caller_log_forbidden(m->x.server, r, m->grant->owner,
                                 "it may not submit to the workflow of some lines");
            return;
        }
}

static void answer(struct many *m)
{
    struct http_request *r = m->x.http;
    CLEANUP(buf_fini) struct buf b = {0};

    exchange_untie(&m->x);
    if (r && http_is_alive(r)) {
        log_forbidden(m, r);
        for (size_t i = 0; i < m->count; i++)
            render_verdict(&b, &m->verdicts[i], m->wait_ms > 0);
        http_answer(r, 200, "application/x-ndjson", buf_view(&b), NULL);
    }
    many_end(m);
}

/* ---- waiting ---- */

static bool is_to_be_read(const struct verdict *o)
{
    return !o->problem_type && !o->ended;
}

/* The next verdicts whose states are not known for good; false: there are none. */
static bool choose_states(struct many *m)
{
    size_t chosen = 0;

    m->from = m->to;
    while (m->from < m->count && !is_to_be_read(&m->verdicts[m->from]))
        m->from++;
    for (m->to = m->from; m->to < m->count && chosen < STATES_AT_ONCE; m->to++)
        chosen += is_to_be_read(&m->verdicts[m->to]);
    return chosen > 0;
}

/* On the store's thread. The loop leaves these verdicts alone meanwhile: none of them waits. */
static void states_run(struct store_job *j, struct store *store)
{
    struct many *m = CONTAINER_OF(j, struct many, job);
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice ids[STATES_AT_ONCE];
    struct glance glances[STATES_AT_ONCE];
    struct error e = {0};
    size_t count = 0;

    for (size_t i = m->from; i < m->to; i++)
        if (is_to_be_read(&m->verdicts[i]))
            ids[count++] = m->verdicts[i].id;
    bool known = store->ops->glance(store, ids, count, &a, glances, &e) == ERR_OK;
    count = 0;
    for (size_t i = m->from; i < m->to; i++) {
        struct verdict *o = &m->verdicts[i];
        if (!is_to_be_read(o))
            continue;
        const struct glance *g = &glances[count++];
        o->state_known = known && g->revision > 0;
        o->state = o->state_known ? g->state : TASK_PENDING;
        o->ended = o->state_known && (task_state_is_end(o->state) || o->state == TASK_ERROR);
    }
}

static void states_done(struct store_job *j);
static void look_up_states(struct many *m);

static void begin_states(struct many *m)
{
    m->reading = true;
    m->x.server->load.exchanges++;
    m->job = (struct store_job){.run = states_run, .done = states_done};
    m->x.server->store->submit(m->x.server->store, &m->job);
}

static void read_for_the_last_time(struct many *m)
{
    stop_waiting(m);
    m->last_read = true;
    m->to = 0;
    look_up_states(m);
}

static void wait_over(uv_timer_t *t)
{
    struct many *m = t->data;

    m->wait_until = 0;
    if (!m->reading)
        read_for_the_last_time(m);
}

static void task_has_ended(struct waiter *w, const struct task_end *end)
{
    struct verdict *o = CONTAINER_OF(w, struct verdict, waiter);
    struct many *m = o->many;

    if (end) {
        o->state = end->task->state;
        o->state_known = o->ended = true;
    }
    m->waiting--;
    if (m->waiting == 0 && !m->reading)
        read_for_the_last_time(m);
}

static bool may_wait(const struct many *m)
{
    const struct server *sv = m->x.server;

    return !m->last_read && !sv->draining && m->wait_until > server_steady(NULL);
}

static void join(struct many *m)
{
    for (size_t i = m->from; i < m->to; i++) {
        struct verdict *o = &m->verdicts[i];
        if (!is_to_be_read(o))
            continue;
        o->waiter.ended = task_has_ended;
        waiter_join(m->x.server, o->id, &o->waiter);
        m->waiting++;
    }
}

static void states_done(struct store_job *j)
{
    struct many *m = CONTAINER_OF(j, struct many, job);

    m->reading = false;
    m->x.server->load.exchanges--;
    if (!m->x.http) {
        many_end(m);
        return;
    }
    if (may_wait(m))
        join(m);
    look_up_states(m);
}

static void begin_timer(struct many *m)
{
    struct server *sv = m->x.server;

    if (m->timer_open)
        return;
    int rc = uv_timer_init(&sv->loop, &m->timer);
    ASSERT(rc == 0);
    m->timer.data = m;
    m->timer_open = true;
    int64_t left = max_i64(1, m->wait_until - server_steady(NULL));
    (void)uv_timer_start(&m->timer, wait_over, (uint64_t)left, 0); /* it has a callback */
}

/* Reads states, page after page; then waits for tasks that have not ended. An end that is reported
 * during the read does not include the state: those left are read once more. */
static void look_up_states(struct many *m)
{
    if (choose_states(m))
        begin_states(m);
    else if (m->last_read)
        answer(m);
    else if (m->waiting > 0 && may_wait(m))
        begin_timer(m);
    else
        read_for_the_last_time(m);
}

/* ---- reading ---- */

static struct slice signals_of(struct many *m, const struct submission *s)
{
    CLEANUP(buf_fini) struct buf b = {0};

    submission_signals(&b, "signals", s);
    return b.len > 0 ? arena_copy(&m->arena, buf_view(&b)) : SLICE_NONE;
}

static void line_done(struct many *m, struct submission *s, struct verdict *o)
{
    struct arena a = s->arena;

    o->status = s->status;
    o->id = arena_copy(&m->arena, s->ask.id);
    o->problem_type = s->problem_type;
    o->version = s->ask.version;
    o->deleted = s->ask.deleted;
    o->ended_at = s->ask.ended_at;
    if (o->deleted) {
        o->state = s->ask.state;
        o->state_known = o->ended = true;
    }
    if (s->problem_type)
        o->problem = arena_copy(&m->arena, slice_of(s->problem));
    else
        o->signals = signals_of(m, s);
    arena_fini(&a);
}

/* A line that the scheduler has. It lies in the submission's arena. */
struct line {
    struct submission s;
    struct many *many;
    size_t index; /* of its verdict */
};

/* Without room to wait, the states are answered as they are. */
static void begin_waiting(struct many *m)
{
    size_t *lines = &m->x.server->load.lines_waiting;

    if (*lines + m->count > LINES_WAITING_MAX) {
        read_for_the_last_time(m);
        return;
    }
    m->held = m->count;
    *lines += m->held;
    look_up_states(m);
}

static void many_is_read(struct many *m)
{
    link_remove(&m->link);
    release_body(m);
    if (!m->x.http)
        many_end(m);
    else if (m->wait_ms > 0 && door_may_read(m->x.server, m->x.http))
        begin_waiting(m);
    else
        answer(m);
}

static bool is_read(const struct many *m)
{
    return m->rest.len == 0 && m->open == 0;
}

static void line_answered(struct submission *s)
{
    struct line *l = CONTAINER_OF(s, struct line, s);
    struct many *m = l->many;

    m->open--;
    m->x.server->load.lines_open--;
    line_done(m, s, &m->verdicts[l->index]);
    if (is_read(m))
        many_is_read(m);
}

static bool is_blank(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != ' ' && text.ptr[i] != '\t' && text.ptr[i] != '\r')
            return false;
    return true;
}

static struct slice next_line(struct slice *rest)
{
    const char *nl = memchr(rest->ptr, '\n', rest->len);
    size_t len = nl ? (size_t)(nl - rest->ptr) : rest->len;
    struct slice text = {rest->ptr, len};

    *rest = (struct slice){rest->ptr + len + (nl != NULL), rest->len - len - (nl != NULL)};
    return text;
}

/* Those that are not blank; stops as soon as there are too many. A body may be blank lines alone.
 */
static size_t count_lines(struct slice body)
{
    const char *at = body.ptr;
    const char *end = body.ptr + body.len;
    size_t n = 0;

    while (at && at < end && n <= LINES_MAX) {
        if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
            at++;
            continue;
        }
        n++;
        at = memchr(at, '\n', (size_t)(end - at));
    }
    return n;
}

/* A wrong line is not handed to the scheduler. */
static void line_is_read(struct submission *s, bool ok)
{
    struct many *m = CONTAINER_OF(s, struct line, s)->many;

    if (ok) {
        server_ask(m->x.server, &s->ask);
        return;
    }
    m->open--;
    m->x.server->load.lines_open--;
    line_done(m, s, &m->verdicts[CONTAINER_OF(s, struct line, s)->index]);
}

static void large_line_is_read(struct submission *s, bool ok)
{
    struct many *m = CONTAINER_OF(s, struct line, s)->many;

    m->away = false;
    line_is_read(s, ok);
    if (is_read(m) && !link_is_in(&m->link))
        many_is_read(m);
}

static void take_line(struct many *m, struct slice text)
{
    struct arena a = {0};
    struct line *l = arena_alloc(&a, sizeof *l);
    struct verdict *o = &m->verdicts[m->count];

    o->many = m;
    o->line = m->line;
    l->many = m;
    l->index = m->count++;
    l->s.arena = a;
    l->s.line = m->line;
    l->s.trace = arena_copy(&l->s.arena, m->trace);
    l->s.grant = m->grant;
    l->s.answered = line_answered;
    m->open++;
    m->x.server->load.lines_open++;
    if (text.len <= BODY_SMALL) {
        line_is_read(&l->s, submission_read(m->x.server, &l->s, text));
        return;
    }
    m->away = true;
    submission_read_offloaded(m->x.server, &l->s, text, m->caller, large_line_is_read);
}

static bool may_take(const struct many *m)
{
    const struct server *sv = m->x.server;
    size_t max = fair_is_alone(sv->fair, m->share) ? WINDOW_MAX : WINDOW_SHARED;

    return !m->away && m->open < WINDOW && sv->load.lines_open < max && asks_may_grow(sv);
}

/* Others of its kind wait from `began_ns` on, and strangers and agents as well. */
static void take_lines(struct many *m, uint64_t began_ns)
{
    bool is_alone = fair_is_alone(m->x.server->fair, m->share);
    uint64_t until_ns = began_ns + (is_alone ? ALONE_NS : FAIR_SLICE_NS);

    for (int i = 0; i < LINES_AT_ONCE && m->rest.len > 0 && may_take(m); i++) {
        if (i > 0 && uv_hrtime() >= until_ns)
            return;
        struct slice text = next_line(&m->rest);
        m->line++;
        if (!is_blank(text))
            take_line(m, text);
    }
}

static bool batches_go_on(const struct server *sv)
{
    for (struct link *l = sv->api->batches->ready.next; l != &sv->api->batches->ready; l = l->next)
        if (may_take(CONTAINER_OF(l, struct many, link)))
            return true;
    return false;
}

/* Each in its turn, so that a long body does not block the others: a batch that had lines taken
 * goes behind those for which there was no room. */
static int64_t batches_turn(struct server *sv)
{
    struct link served;

    if (list_empty(&sv->api->batches->ready))
        return 0;
    uint64_t began_ns = uv_hrtime();
    list_init(&served);
    LIST_FOREACH (link, after, &sv->api->batches->ready) {
        struct many *m = CONTAINER_OF(link, struct many, link);
        if (m->rest.len > 0 && !may_take(m))
            continue;
        take_lines(m, began_ns);
        link_remove(link);
        if (m->rest.len > 0)
            list_push(&served, link);
        else if (is_read(m))
            many_is_read(m);
    }
    list_take_all(&sv->api->batches->ready, &served);
    return 0;
}

/* The client has gone. */
static void many_gone(struct exchange *x)
{
    struct many *m = CONTAINER_OF(x, struct many, x);

    m->rest = SLICE_NONE;
    link_remove(&m->link);
    if (m->open == 0 && !m->reading)
        many_end(m);
}

static void many_may_be_read(struct registry_wait *w, enum err err, const char *story)
{
    struct many *m = CONTAINER_OF(w, struct many, definitions);
    struct http_request *r = m->x.http;

    m->reading = false;
    m->x.server->load.exchanges--;
    m->x.server->load.asks_open--;
    if (r && err == ERR_OK) {
        list_push(&m->x.server->api->batches->ready, &m->link);
        return;
    }
    exchange_untie(&m->x);
    if (r)
        answer_trouble(r, err, story);
    many_end(m);
}

/* As for one submission: no line is read before all is known that is stored by now. */
static void begin_lines(struct many *m)
{
    struct server *sv = m->x.server;

    m->definitions.done = many_may_be_read;
    m->reading = registry_read(&sv->workflows, &m->definitions);
    if (!m->reading)
        list_push(&sv->api->batches->ready, &m->link);
    sv->load.exchanges += m->reading;
    sv->load.asks_open += m->reading;
}

void batch_post(struct server *sv, struct http_request *r, int64_t wait_ms)
{
    struct arena a = {0};
    size_t lines = count_lines(r->body);

    if (lines > LINES_MAX) {
        http_problem(r, 413, "too-many-lines", "the body has more than %d lines", LINES_MAX);
        return;
    }
    if (!quota_submits(sv->quotas, r->account, r, lines))
        return;
    struct many *m = arena_alloc(&a, sizeof *m);
    m->arena = a;
    m->bytes = r->body.len;
    m->body = malloc(m->bytes + 1);
    m->verdicts = calloc(lines + 1, sizeof *m->verdicts);
    ASSERT(m->body && m->verdicts);
    if (m->bytes > 0)
        memcpy(m->body, r->body.ptr, m->bytes); /* it may outlive the client */
    m->rest = (struct slice){m->body, m->bytes};
    m->wait_ms = wait_ms;
    m->trace = submission_trace(r, &m->arena);
    m->grant = grant_new(sv->api->bearer, &m->arena);
    m->caller = arena_copy(&m->arena, sv->caller);
    m->share = quota_share(r->account);
    m->wait_until = server_steady(NULL) + wait_ms;
    sv->load.asks_bytes += m->bytes;
    exchange_begin(&m->x, sv, r);
    m->x.gone = many_gone;
    begin_lines(m);
}

/* ---- the part ---- */

static enum err batches_open(struct server *sv, struct error *e)
{
    struct batches *bs = calloc(1, sizeof *bs);
    (void)e;

    ASSERT(bs);
    list_init(&bs->ready);
    sv->api->batches = bs;
    return ERR_OK;
}

static bool batches_are_drained(const struct server *sv)
{
    return list_empty(&sv->api->batches->ready);
}

static void batches_free(struct server *sv)
{
    ASSERT(list_empty(&sv->api->batches->ready));
    free(sv->api->batches);
}

const struct part batches_part = {
    .name = "batches",
    .open = batches_open,
    .turn = batches_turn,
    .goes_on = batches_go_on,
    .is_drained = batches_are_drained,
    .free = batches_free,
};
