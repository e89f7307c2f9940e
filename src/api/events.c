/*
 * Streams of events: what all streams share, and GET /v1/events from a ring of recent changes. The
 * streams of single tasks are in events_task.c. A slow reader is never waited for.
 */

#include "api/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "base/list.h"
#include "base/map.h"
#include "node/access.h"
#include "node/door.h"
#include "node/exchange.h"
#include "node/fair.h"
#include "node/node.h"
#include "node/part.h"
#include "node/pressure.h"
#include "node/sessions.h"
#include "node/strict.h"
#include "node/task_json.h"
#include "json/json.h"

/* ---- how many ---- */

static void count_stream(struct stream *st, bool more)
{
    struct events_stats *s = &st->ev->stats;
    size_t *n = st->of_task ? &s->listeners_task : &s->listeners_all;

    ASSERT(more || *n > 0);
    *n += more ? 1 : (size_t)-1;
}

/* ---- of one session ---- */

static struct slice key_of(const struct session_row *row)
{
    return (struct slice){(const char *)row->hash, sizeof row->hash};
}

static struct listening_session *session_joined(struct events *ev, const struct session_row *row)
{
    struct listening_session *s = map_get(&ev->sessions, key_of(row));

    if (!s) {
        s = calloc(1, sizeof *s);
        ASSERT(s);
        memcpy(s->hash, row->hash, sizeof s->hash);
        map_put(&ev->sessions, (struct slice){(const char *)s->hash, sizeof s->hash}, s);
    }
    s->count++;
    return s;
}

static void session_left(struct events *ev, struct listening_session *s)
{
    ASSERT(s->count > 0);
    if (--s->count > 0)
        return;
    (void)map_remove(&ev->sessions, (struct slice){(const char *)s->hash, sizeof s->hash});
    free(s);
}

/* Whoever has got hold of a browser, or a page that goes wrong, takes no places of others. False:
 * it was answered. */
static bool session_has_room(const struct events *ev, const struct session_row *row,
                             struct http_request *r)
{
    const struct listening_session *s = map_get(&ev->sessions, key_of(row));

    if (!s || s->count < STREAMS_OF_SESSION)
        return true;
    http_problem_with(r, 429, "over-quota", "Retry-After: 10\r\n",
                      "the session has %d streams of events open, which is the maximum: close some "
                      "pages",
                      STREAMS_OF_SESSION);
    return false;
}

/* ---- streams ---- */

void stream_free(struct stream *st)
{
    count_stream(st, false);
    if (st->session)
        session_left(st->ev, st->session);
    link_remove(&st->link);
    link_remove(&st->pulse);
    link_remove(&st->check);
    link_remove(&st->beat);
    if (st->watch)
        watch_left(st);
    arena_fini(&st->arena);
    free(st);
}

static void stream_gone(struct exchange *x)
{
    struct stream *st = CONTAINER_OF(x, struct stream, x);
    struct events *ev = st->ev;
    bool of_task = st->of_task;

    stream_free(st);
    if (!of_task && ev->stats.listeners_all == 0)
        ev->record_until = server_steady(NULL) + RECORD_MS;
}

static void arm(struct events *ev);
static void pump(struct stream *st);

static void wait_for_pulse(struct stream *st)
{
    st->pulse_at = server_steady(NULL) + visit_pulse_ms();
    link_remove(&st->pulse);
    list_push(&st->ev->pulses, &st->pulse);
}

struct stream *stream_new(struct server *sv, struct http_request *r, bool of_task)
{
    struct events *ev = sv->api->events;
    const char *why = NULL;

    if (ev->drained) {
        http_problem(r, 503, "draining", "the server is ending");
        return NULL;
    }
    const struct session_row *row = r->is_by_cookie ? caller_session(sv, r, &why) : NULL;
    if (row && !session_has_room(ev, row, r))
        return NULL;
    if (!door_may_read(sv, r)) {
        door_refuse_to_wait(sv, r);
        return NULL;
    }
    struct stream *st = calloc(1, sizeof *st);
    ASSERT(st);
    st->ev = ev;
    st->of_task = of_task;
    st->grant = grant_new(sv->api->bearer, &st->arena);
    st->session = row ? session_joined(ev, row) : NULL;
    exchange_begin(&st->x, sv, r);
    st->x.gone = stream_gone;
    count_stream(st, true);
    st->checks = ev->checks;
    list_push(&ev->checked, &st->check);
    wait_for_pulse(st);
    arm(ev);
    return st;
}

void stream_begin(struct stream *st)
{
    ASSERT(!st->begun);
    st->begun = true;
    http_stream_begin(st->x.http, 200, "text/event-stream",
                      "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
}

void stream_end(struct stream *st)
{
    struct http_request *r = st->x.http;

    ASSERT(st->begun);
    link_remove(&st->link);
    link_remove(&st->pulse);
    link_remove(&st->check);
    link_remove(&st->beat);
    http_stream_end(r);
}

bool stream_is_full(const struct stream *st)
{
    return http_stream_backlog(st->x.http) > STREAM_FULL;
}

bool events_have_room(const struct events *ev, size_t bytes)
{
    const struct server *sv = ev->server;

    return bytes <= STREAM_FULL || http_held(sv->http) + bytes <= sv->limits.http.memory_max;
}

bool stream_write(struct stream *st, uint64_t events)
{
    if (!http_stream_write(st->x.http, buf_view(&st->ev->text)))
        return false;
    st->ev->server->metrics.events_sent += events;
    return true;
}

size_t event_begin(struct buf *b, const char *name, const char *id)
{
    buf_str(b, "event: ");
    buf_str(b, name);
    if (id) {
        buf_str(b, "\nid: ");
        buf_str(b, id);
    }
    buf_str(b, "\ndata: ");
    return b->len;
}

void event_end(struct buf *b, size_t from)
{
    render_one_line(b, from);
    buf_str(b, "\n\n");
}

void event_put(struct events *ev, const char *name, const char *id, struct slice data)
{
    size_t from = event_begin(&ev->text, name, id);

    buf_slice(&ev->text, data);
    event_end(&ev->text, from);
}

/* ---- the one timer ---- */

/* A stream is for the token of its request, and ends when that expires or is deleted, however long
 * it has been open. */
static bool ends_with_token(struct stream *st)
{
    struct events *ev = st->ev;
    const char *why = NULL;

    st->checks = ev->checks;
    if (caller_of(ev->server, st->x.http, &why))
        return false;
    stream_end(st);
    return true;
}

bool stream_recheck(struct stream *st)
{
    return st->checks == st->ev->checks || !ends_with_token(st);
}

/* So that proxies, clients and we ourselves notice a connection that is dead. A stream of all tasks
 * that has had its turn is told how far it is: what it did not receive was not for it. */
static void keep_alive(struct stream *st)
{
    struct events *ev = st->ev;

    buf_clear(&ev->text);
    if (!st->of_task && st->next == ev->next && !st->skipped)
        buf_fmt(&ev->text, "id: %s-%" PRIu64 "\n", ev->place, ev->next - 1);
    buf_str(&ev->text, ":\n\n");
    if (http_stream_backlog(st->x.http) == 0)
        (void)stream_write(st, 0);
}

static int64_t next_pulse_at(const struct events *ev)
{
    return list_empty(&ev->pulses) ? INT64_MAX
                                   : CONTAINER_OF(ev->pulses.next, struct stream, pulse)->pulse_at;
}

/* Thousands of streams take longer than others may wait: the rest has its turn a little later. */
static void pulse_some(struct events *ev)
{
    struct visit v = visit_begin();

    while (next_pulse_at(ev) <= server_steady(NULL) && visit_goes_on(&v)) {
        struct stream *st = CONTAINER_OF(ev->pulses.next, struct stream, pulse);
        visit_counts(ev->server);
        wait_for_pulse(st);
        if (st->begun && !ends_with_token(st))
            keep_alive(st);
    }
}

/* Checks streams after a change of tokens, some in each turn. Those that are left are checked
 * before they are written to. */
static void check_some(struct events *ev)
{
    struct visit v = visit_begin();

    while (!list_empty(&ev->unchecked) && visit_goes_on(&v) && !checks_wait()) {
        struct stream *st = CONTAINER_OF(ev->unchecked.next, struct stream, check);
        visit_counts(ev->server);
        link_remove(&st->check);
        list_push(&ev->checked, &st->check);
        if (st->begun)
            (void)stream_recheck(st);
    }
}

void events_recheck(struct server *sv)
{
    struct events *ev = sv->api->events;

    ev->checks++;
    list_take_all(&ev->unchecked, &ev->checked);
    check_some(ev);
    arm(ev);
}

static void catch_up(struct events *ev)
{
    if (!ev->behind || server_steady(NULL) < ev->behind_at)
        return;
    ev->behind = false;
    ev->fresh = true; /* the turn after this writes to them */
    list_take_all(&ev->catching, &ev->late);
}

/* The server ends: each stream gets what it has not received yet, and ends. Those that have not
 * begun are answered by their watches. */
static void end_some(struct events *ev)
{
    struct visit v = visit_begin();

    while (!list_empty(&ev->pulses) && visit_goes_on(&v)) {
        struct link *first = ev->pulses.next;
        visit_counts(ev->server);
        struct stream *st = CONTAINER_OF(first, struct stream, pulse);
        bool begun = st->begun;
        if (begun && !st->of_task)
            pump(st);
        if (ev->pulses.next != first)
            continue; /* it has gone, or was ended */
        if (begun)
            stream_end(st);
        else
            link_remove(first);
    }
}

/* Is there something that waits for the next turn only? */
static bool has_rest(const struct events *ev)
{
    return !list_empty(&ev->unchecked) || !list_empty(&ev->catching) || !list_empty(&ev->beating)
           || (ev->drained && !list_empty(&ev->pulses));
}

static void timer_fired(uv_timer_t *t)
{
    struct events *ev = t->data;

    catch_up(ev);
    watches_catch_up(ev);
    watches_beat(ev);
    check_some(ev);
    if (ev->drained)
        end_some(ev);
    else
        pulse_some(ev);
    arm(ev);
}

static void arm(struct events *ev)
{
    int64_t at = next_pulse_at(ev);

    if (ev->behind)
        at = min_i64(at, ev->behind_at);
    if (has_rest(ev))
        at = 0;
    if (!ev->timer_open || at == INT64_MAX)
        return;
    uv_update_time(&ev->server->loop);
    (void)uv_timer_start(&ev->timer, timer_fired, (uint64_t)max_i64(1, at - server_steady(NULL)),
                         0);
}

void events_go_on_soon(struct events *ev)
{
    arm(ev);
}

void events_fall_behind(struct events *ev)
{
    if (ev->behind)
        return;
    ev->behind = true;
    ev->behind_at = server_steady(NULL) + BEHIND_MS;
    arm(ev);
}

/* ---- the ring ---- */

static bool is_recording(const struct events *ev)
{
    return ev->stats.listeners_all > 0 || server_steady(NULL) < ev->record_until;
}

static struct slice id_of(const struct happening *h)
{
    return (struct slice){h->names.ptr, h->id_len};
}

static struct slice workflow_of(const struct happening *h)
{
    return (struct slice){h->names.ptr + h->id_len, h->names.len - h->id_len};
}

static struct slice json_of(const struct events *ev, struct happening *h)
{
    struct buf *b = &h->json;

    if (b->len > 0)
        return buf_view(b);
    json_open(b, '{');
    json_key(b, "id");
    json_string(b, id_of(h));
    json_key(b, "workflow");
    json_string(b, workflow_of(h));
    json_key(b, "version");
    json_number(b, h->version);
    json_key(b, "revision");
    json_number(b, (int64_t)h->revision);
    json_key(b, "state");
    json_string(b, slice_of(task_state_text(h->state)));
    json_key(b, "direction");
    json_string(b, slice_of(direction_text(h->direction)));
    json_key(b, "failure_count");
    json_number(b, h->failure_count);
    json_key(b, "node");
    json_string(b, slice_of(ev->server->config.node));
    json_key(b, "at");
    json_time(b, h->at);
    json_key(b, "paused_at");
    json_time(b, h->paused_at);
    json_key(b, "closed_at");
    json_time(b, h->closed_at);
    json_close(b, '}');
    return buf_view(b);
}

static void record(struct events *ev, const struct workflow *w, const struct task *t)
{
    if (!ev->ring) {
        ev->ring = calloc(RING_MAX, sizeof *ev->ring);
        ASSERT(ev->ring);
    }
    struct happening *h = &ev->ring[ev->next % RING_MAX];
    buf_clear(&h->names);
    buf_slice(&h->names, t->id);
    buf_slice(&h->names, w->name);
    buf_clear(&h->json);
    h->id_len = t->id.len;
    h->version = w->version;
    h->at = server_now(ev->server);
    h->paused_at = t->paused_at;
    h->closed_at = t->closed_at;
    h->revision = t->revision;
    h->failure_count = t->failure_count;
    h->state = t->state;
    h->direction = t->direction;
    ev->next++;
    if (ev->next - ev->first > RING_MAX)
        ev->first = ev->next - RING_MAX;
    ev->fresh = ev->stats.listeners_all > 0;
}

void events_changed(struct server *sv, const struct workflow *w, const struct task *t)
{
    struct events *ev = sv->api->events;

    if (ev->stats.listeners_task > 0)
        events_touched(sv, t->id);
    if (ev->stats.listeners_all > 0 || (ev->record_until != 0 && is_recording(ev))) {
        record(ev, w, t);
        return;
    }
    ev->record_until = 0;
    ev->first = ++ev->next;
}

static bool is_wanted(const struct stream *st, const struct happening *h)
{
    return (st->states == 0 || (st->states >> h->state & 1))
           && (!st->wanted.ptr || slice_eq(st->wanted, workflow_of(h)))
           && grant_reads(st->grant, workflow_of(h));
}

static void put_id(char *ret, size_t size, const struct events *ev, uint64_t n)
{
    (void)snprintf(ret, size, "%s-%" PRIu64, ev->place, n);
}

static void put_gap(struct events *ev)
{
    char id[ID_SIZE];

    put_id(id, sizeof id, ev, ev->next - 1);
    event_put(ev, "gap", id, SLICE("{\"reason\":\"events were missed: list the tasks again\"}"));
    ev->server->metrics.gaps++;
}

static bool has_more(const struct stream *st, uint64_t events)
{
    return st->per_second == 0 || st->sent + (int64_t)events < st->per_second;
}

/* Writes what it has not received yet. False: it did not take it. */
static bool pump_more(struct stream *st)
{
    struct events *ev = st->ev;
    uint64_t next = st->next;
    uint64_t events = 0;
    char id[ID_SIZE];

    buf_clear(&ev->text);
    if (next < ev->first || st->skipped) {
        put_gap(ev);
        next = ev->next;
        events++;
    }
    for (; next < ev->next && ev->text.len < STREAM_CHUNK_MAX && has_more(st, events); next++) {
        struct happening *h = &ev->ring[next % RING_MAX];
        if (!is_wanted(st, h))
            continue;
        put_id(id, sizeof id, ev, next);
        event_put(ev, "task", id, json_of(ev, h));
        events++;
    }
    if (ev->text.len > 0 && !stream_write(st, events))
        return false;
    st->next = next;
    st->sent += (int64_t)events;
    st->skipped = false;
    return true;
}

/* True: it got as many events as it wants in a second. The others are left out, so that a reader
 * for people costs no more the more there are; when the second has passed, a gap tells of them. */
static bool skips(struct stream *st)
{
    int64_t second = st->per_second > 0 ? server_steady(NULL) / 1000 : 0;

    if (second != st->second) {
        st->second = second;
        st->sent = 0;
    }
    if (st->per_second == 0 || st->sent < st->per_second)
        return false;
    st->skipped = true;
    st->next = st->ev->next;
    return true;
}

/* As far as it has room for that: what the kernel takes is gone at once. */
static void pump(struct stream *st)
{
    if (!stream_recheck(st))
        return;
    while (st->next < st->ev->next || st->skipped)
        if (skips(st) || stream_is_full(st) || !pump_more(st)) {
            events_fall_behind(st->ev);
            return;
        }
}

/* The first stream comes last. Returns until when its account rests instead; 0: it was written
 * to, or needs nothing. */
static uint64_t pump_first(struct events *ev, uint64_t now_ns)
{
    struct link *first = ev->all.next;
    struct stream *st = CONTAINER_OF(first, struct stream, link);
    void *account = st->x.http->account; /* it outlives the stream */

    link_remove(first);
    list_push(&ev->all, first);
    if (st->next == ev->next && !st->skipped)
        return 0;
    uint64_t until_ns = account ? account_rests_until(ev->server, account, now_ns) : 0;
    if (until_ns != 0)
        return until_ns;
    pump(st);
    uint64_t done_ns = uv_hrtime();
    if (account)
        account_worked(ev->server, account, done_ns, done_ns - now_ns);
    return 0;
}

/* Visits streams until all had their turn, or this slice is over. */
static void pump_some(struct events *ev)
{
    struct visit v = visit_begin();

    while (ev->unvisited > 0 && !list_empty(&ev->all) && visit_goes_on(&v)) {
        ev->unvisited--;
        visit_counts(ev->server);
        uint64_t until_ns = pump_first(ev, uv_hrtime());
        if (until_ns != 0 && until_ns < ev->rest_ns)
            ev->rest_ns = until_ns;
    }
    if (list_empty(&ev->all))
        ev->unvisited = 0;
}

static void visit_all(struct events *ev)
{
    ev->unvisited = ev->stats.listeners_all;
    ev->rest_ns = UINT64_MAX;
}

/* Thousands of streams take longer than others may wait: each round writes to some. Those whose
 * accounts rest are visited again. */
static int64_t events_turn(struct server *sv)
{
    struct events *ev = sv->api->events;

    if (ev->fresh)
        visit_all(ev);
    ev->fresh = false;
    if (ev->unvisited == 0)
        return 0;
    pump_some(ev);
    if (ev->unvisited > 0 || ev->rest_ns == UINT64_MAX)
        return 0;
    if (ev->rest_ns <= uv_hrtime())
        visit_all(ev);
    else
        events_fall_behind(ev);
    return 0;
}

static bool events_go_on(const struct server *sv)
{
    return sv->api->events->unvisited > 0;
}

/* ---- GET /v1/events ---- */

/* "BOOT-N", or "NODE/BOOT-N" if the store is shared; false: an id of another boot or node, or
 * none. */
static bool read_id(const struct events *ev, struct slice id, uint64_t *ret)
{
    size_t place = strlen(ev->place);
    uint64_t n = 0;

    if (id.len < place + 2 || id.len > place + 20 || memcmp(id.ptr, ev->place, place) != 0
        || id.ptr[place] != '-')
        return false;
    for (size_t i = place + 1; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(id.ptr[i] - '0');
    }
    *ret = n;
    return n < ev->next;
}

static void begin_listening(struct stream *st)
{
    struct events *ev = st->ev;
    struct slice last = http_header(st->x.http, "last-event-id");
    uint64_t n = 0;
    char id[ID_SIZE];

    list_push(&ev->all, &st->link);
    stream_begin(st);
    buf_clear(&ev->text);
    buf_str(&ev->text, "retry: 1000\n");
    if (!last.ptr) { /* from now on; should the connection break, there is an id to go on from */
        put_id(id, sizeof id, ev, ev->next - 1);
        buf_fmt(&ev->text, "id: %s\n\n", id);
        st->next = ev->next;
    } else {
        buf_str(&ev->text, "\n");
        st->next = read_id(ev, last, &n) ? n + 1 : 0;
    }
    if (stream_write(st, 0))
        pump(st);
}

/* False: it was answered. */
static bool read_per_second(struct http_request *r, int64_t *ret)
{
    struct slice value = http_query(r, "per_second");

    if (!value.ptr || count_of(value, PER_SECOND_MAX, ret))
        return true;
    http_problem(r, 422, "bad-limit", "per_second is \"%.*s\", expected a number from 1 to %d",
                 SLICE_ARG(value), PER_SECOND_MAX);
    return false;
}

void events_get(struct server *sv, struct http_request *r)
{
    struct slice state = http_query(r, "state");
    int64_t per_second = 0;
    uint32_t states = 0;

    if (!parameters_ok(r, NAMES("workflow", "state", "per_second"))
        || (state.ptr && !states_of(r, state, &states)) || !read_per_second(r, &per_second))
        return;
    if (slice_is(r->method, "HEAD")) {
        http_answer(r, 200, "text/event-stream", SLICE(""), NULL);
        return;
    }
    struct stream *st = stream_new(sv, r, false);
    if (!st)
        return;
    st->states = states;
    st->per_second = per_second;
    st->wanted = http_query(r, "workflow");
    begin_listening(st);
}

/* ---- life ---- */

static enum err events_open(struct server *sv, struct error *e)
{
    struct events *ev = calloc(1, sizeof *ev);
    (void)e;

    ASSERT(ev);
    ev->server = sv;
    (void)snprintf(ev->place, sizeof ev->place, "%s%s%" PRIu64,
                   sv->config.store->shared ? sv->config.node : "",
                   sv->config.store->shared ? "/" : "",
                   sv->config.store->ops->boot(sv->config.store));
    ev->first = ev->next = 1;
    list_init(&ev->all);
    list_init(&ev->pulses);
    list_init(&ev->checked);
    list_init(&ev->unchecked);
    list_init(&ev->unwritten);
    list_init(&ev->late);
    list_init(&ev->catching);
    list_init(&ev->beating);
    int rc = uv_timer_init(&sv->loop, &ev->timer) | uv_idle_init(&sv->loop, &ev->idle)
             | uv_timer_init(&sv->loop, &ev->rest);
    ASSERT(rc == 0);
    ev->timer.data = ev->idle.data = ev->rest.data = ev;
    ev->timer_open = true;
    sv->api->events = ev;
    return ERR_OK;
}

static void events_drain(struct server *sv)
{
    struct events *ev = sv->api->events;

    ev->drained = true;
    end_some(ev);
    arm(ev);
}

static bool events_are_drained(const struct server *sv)
{
    return list_empty(&sv->api->events->pulses);
}

static void events_close(struct server *sv)
{
    struct events *ev = sv->api->events;

    ev->timer_open = false;
    uv_close((uv_handle_t *)&ev->timer, NULL);
    uv_close((uv_handle_t *)&ev->idle, NULL);
    uv_close((uv_handle_t *)&ev->rest, NULL);
}

static void events_free(struct server *sv)
{
    struct events *ev = sv->api->events;

    ASSERT(list_empty(&ev->all) && list_empty(&ev->unwritten) && list_empty(&ev->pulses));
    ASSERT(list_empty(&ev->checked) && list_empty(&ev->unchecked));
    ASSERT(list_empty(&ev->late) && list_empty(&ev->catching) && list_empty(&ev->beating));
    ASSERT(ev->watches.len == 0);
    ASSERT(ev->sessions.len == 0);
    for (size_t i = 0; ev->ring && i < RING_MAX; i++) {
        buf_fini(&ev->ring[i].names);
        buf_fini(&ev->ring[i].json);
    }
    free(ev->ring);
    buf_fini(&ev->text);
    map_fini(&ev->watches);
    map_fini(&ev->sessions);
    free(ev);
}

void events_stats(const struct server *sv, struct events_stats *ret)
{
    const struct events *ev = sv->api->events; /* NULL: the node could not start */

    *ret = ev ? ev->stats : (struct events_stats){0};
}

const struct part events_part = {
    .name = "events",
    .open = events_open,
    .turn = events_turn,
    .goes_on = events_go_on,
    .drain = events_drain,
    .is_drained = events_are_drained,
    .close = events_close,
    .free = events_free,
};
