/*
 * GET /v1/tasks/{id}/events. All streams of a task share a watch. It reads the row when a stream
 * begins and whenever the row has changed; changes during a read are one more read, so quick
 * changes are one event. It reads in the turns of its first stream. An event is rendered once. In
 * one round of the loop it is written to as many streams as fit into a slice (fair.h), and to the
 * others in the next rounds; the time is charged to their tokens.
 */

#include <stdio.h>
#include <stdlib.h>

#include "api/body.h"
#include "api/events.h"
#include "api/handlers.h"
#include "api/room.h"
#include "api/tasks.h"
#include "background/cache.h"
#include "background/task_poll.h"
#include "base/list.h"
#include "base/map.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/fair.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/readings.h"
#include "node/task_json.h"
#include "node/task_read.h"
#include "store/codec/codec.h"
#include "store/job.h"
#include "tasks/tasks.h"
#include "json/json.h"

struct watch {
    struct events *ev;
    struct arena keys; /* of the id, and the workflow once it is known */
    struct slice id, workflow;
    int64_t version;
    struct link streams;
    size_t users; /* streams that are not gone yet, ended ones too */
    struct store_job job;
    struct registry_wait definitions;
    struct task_poll poll; /* other nodes change it, too */
    struct arena arena;    /* of what is read */
    struct task_row row;
    struct audit_page operations;
    struct reservation gone; /* of one that is not there */
    enum err err;
    struct error error;
    bool reading, touched; /* a read is over when it was written to all */
    bool was_read;         /* it was not dropped before it began */
    struct link link;      /* in events.unwritten */
    size_t untold;         /* so many of the first streams */
    struct pulses pulses;  /* as they were when the reading began */
    struct buf written; /* the event, as the thread that reads has written it; empty: it did not */
    struct http_text *text; /* the event that is written to them */
    size_t size;            /* of the latest */
    struct link late;       /* in events.late or .catching: a stream was too slow, or it could not
                             * be read */
    struct link heard, unheard; /* of its streams: they were told of the latest heartbeat, or not */
    struct http_text *beat;     /* that one; NULL: nobody waits for it */
    struct link beating;        /* in events.beating, then */
    uint64_t known;             /* the revision last read; 0: it could not be read */
};

static void begin_reading(struct watch *w);

static void beat_is_told(struct watch *w)
{
    link_remove(&w->beating);
    http_text_drop(w->beat);
    w->beat = NULL;
}

static void free_if_unused(struct watch *w)
{
    if (w->reading || w->users > 0)
        return;
    ASSERT(list_empty(&w->streams) && list_empty(&w->heard) && list_empty(&w->unheard));
    link_remove(&w->late);
    beat_is_told(w);
    task_poll_end(w->ev->server, &w->poll);
    (void)map_remove(&w->ev->watches, w->id);
    arena_fini(&w->keys);
    free(w);
}

void watch_left(struct stream *st)
{
    struct watch *w = st->watch;

    ASSERT(w->users > 0);
    w->users--;
    if (w->users == 0 && w->reading)
        readings_drop(w->ev->server->readings, &w->job); /* if it has not begun */
    free_if_unused(w);
}

/* ---- events ---- */

static void written_later(struct watch *w)
{
    if (!link_is_in(&w->late))
        list_push(&w->ev->late, &w->late);
    events_fall_behind(w->ev);
}

/* It never began, and is answered as any request is. */
static struct http_request *turn_away(struct stream *st)
{
    struct http_request *r = st->x.http;

    exchange_untie(&st->x);
    stream_free(st);
    return r;
}

static void begin(struct stream *st)
{
    stream_begin(st);
    buf_clear(&st->ev->text);
    buf_str(&st->ev->text, "retry: 1000\n\n");
    (void)stream_write(st, 0);
}

static void write_end_event(struct stream *st, const struct task_row *row)
{
    CLEANUP(buf_fini) struct buf data = {0};

    json_open(&data, '{');
    json_key(&data, "id");
    json_string(&data, row->id);
    json_key(&data, "state");
    json_string(&data, slice_of(task_state_text(row->state)));
    json_close(&data, '}');
    buf_clear(&st->ev->text);
    event_put(st->ev, "end", NULL, buf_view(&data));
    (void)stream_write(st, 1); /* a client that does not get it connects again, and gets 204 */
    stream_end(st);
}

/* True: it knows the row now. */
static bool write_row(const struct watch *w, struct stream *st)
{
    if (w->row.revision <= st->after)
        return true;
    if (stream_is_full(st) || !events_have_room(st->ev, w->text->bytes.len)
        || !http_stream_write_text(st->x.http, w->text))
        return false;
    st->ev->server->metrics.events_sent++;
    st->after = w->row.revision;
    return true;
}

static void tell(struct watch *w, struct stream *st)
{
    bool over = task_state_is_end(w->row.state);

    if (st->begun && !stream_recheck(st))
        return;
    if (!st->begun && !grant_sees(st->grant, &w->row)) {
        const struct reservation none = {0};
        answer_no_task(w->ev->server, turn_away(st), w->id, &none);
        return;
    }

    if (!st->begun && over && w->row.revision <= st->after) {
        http_answer(turn_away(st), 204, NULL, SLICE(""), NULL);
        return;
    }
    if (!st->begun && slice_is(st->x.http->method, "HEAD")) {
        http_answer(turn_away(st), 200, "text/event-stream", SLICE(""), NULL);
        return;
    }
    if (!st->begun)
        begin(st);
    bool knows = write_row(w, st);
    if (knows && over)
        write_end_event(st, &w->row);
    else if (st->ev->drained)
        stream_end(st);
    else if (!knows)
        written_later(w);
}

/* The event: rendered once for all streams. Any thread: a large task takes milliseconds, which the
 * event loop has for others. */
static bool write_event(struct watch *w, const struct definition *d)
{
    struct task t;
    char id[24];

    w->err = task_decode(&d->workflow, &w->row, &w->arena, &t, &w->error);
    if (w->err != ERR_OK)
        return false;
    (void)snprintf(id, sizeof id, "%" PRIu64, w->row.revision);
    size_t from = event_begin(&w->written, "task", id);
    render_task(&w->written, &w->pulses, &d->workflow, &t, &w->row, &w->operations);
    event_end(&w->written, from);
    return true;
}

static void render(struct watch *w)
{
    struct server *sv = w->ev->server;
    const struct definition *d = registry_find(&sv->workflows, w->row.workflow, w->row.version);

    if (!d) {
        w->err = error_set(&w->error, ERR_CORRUPT, "its workflow is not known to this program");
        return;
    }
    if (w->written.len == 0 && !write_event(w, d))
        return;
    w->text = http_text_new(&w->written);
    w->size = w->text->bytes.len;
    if (!w->workflow.ptr) {
        w->workflow = arena_copy(&w->keys, w->row.workflow);
        w->version = w->row.version;
    }
}

/* A row is hidden from a client that may not see it, also if it could not be decoded. */
static void refuse(struct watch *w, struct stream *st)
{
    enum err err = w->row.revision != 0 ? ERR_OK : w->err;
    struct reservation gone = w->gone;

    task_hide(st->grant, &w->row, &err, &gone);
    struct http_request *r = turn_away(st);
    if (err == ERR_NOT_FOUND)
        answer_no_task(w->ev->server, r, w->id, &gone);
    else if (w->err == ERR_CORRUPT)
        http_problem(r, 500, "task-unreadable", "task %.*s cannot be read: %s", SLICE_ARG(w->id),
                     w->error.text);
    else
        answer_trouble(r, w->err, w->error.text);
}

/* A new stream is answered with the error. The others get the state when it can be read again, or
 * end if there is nothing left to read. */
static void tell_trouble(struct watch *w, struct stream *st)
{
    if (!st->begun)
        refuse(w, st);
    else if (!err_is_transient(w->err))
        stream_end(st);
    else
        written_later(w);
}

/* ---- reading ---- */

static void read_run(struct store_job *j, struct store *store)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);

    w->err = task_read(store, w->id, &w->arena, &w->row, &w->operations, &w->gone, &w->error);
    w->was_read = true;
    if (w->err == ERR_OK && w->arena.total > RECORD_LARGE) {
        const struct definition *d =
            registry_find_shared(&w->ev->server->workflows, w->row.workflow, w->row.version);
        if (d)
            (void)write_event(w, d);
    }
    j->bytes = w->arena.total + w->written.cap;
}

static void reading_ends(struct watch *w)
{
    w->ev->server->load.exchanges--;
    w->ev->server->load.reads_open--;
    link_remove(&w->link);
    http_text_drop(w->text);
    w->text = NULL;
    buf_fini(&w->written);
    arena_fini(&w->arena);
    w->arena = (struct arena){0};
    w->reading = false;
    if (w->touched && !list_empty(&w->streams))
        begin_reading(w);
    free_if_unused(w);
}

/* A stream that was written to goes to the end of the queue; a new one is written to as well. */
static void write_first(struct watch *w)
{
    struct link *first = w->streams.next; /* there is one */
    struct stream *st = CONTAINER_OF(first, struct stream, link);
    void *account = st->x.http->account; /* it outlives the stream */
    uint64_t began_ns = uv_hrtime();

    link_remove(first);
    list_push(&w->streams, first);
    visit_counts(w->ev->server);
    if (w->err != ERR_OK)
        tell_trouble(w, st);
    else
        tell(w, st);
    uint64_t now_ns = uv_hrtime();
    if (account)
        account_worked(w->ev->server, account, now_ns, now_ns - began_ns);
}

/* True: it was written to all. */
static bool write_some(struct watch *w)
{
    struct visit v = visit_begin();

    while (w->untold > 0 && !list_empty(&w->streams) && visit_goes_on(&v)) {
        w->untold--;
        write_first(w);
    }
    return w->untold == 0 || list_empty(&w->streams);
}

static void rested(uv_timer_t *timer)
{
    struct events *ev = timer->data;

    (void)uv_idle_start(&ev->idle, watches_write);
}

/* True: its turn is left out, and comes when the token of its next stream has rested. */
static bool rests(struct watch *w)
{
    const struct link *first = list_first(&w->streams);
    struct events *ev = w->ev;

    if (!first || ev->drained)
        return false;
    const struct stream *st = CONTAINER_OF(w->streams.next, struct stream, link);
    void *account = st->x.http->account;
    uint64_t now_ns = uv_hrtime();
    uint64_t until_ns = account ? account_rests_until(ev->server, account, now_ns) : 0;
    if (until_ns <= now_ns || ev->unwritten.next != ev->unwritten.prev)
        return until_ns != 0; /* in the next round; or others may go on meanwhile */
    (void)uv_idle_stop(&ev->idle);
    uv_update_time(ev->rest.loop);
    (void)uv_timer_start(&ev->rest, rested, (until_ns - now_ns) / 1000000 + 1, 0);
    return true;
}

void watches_write(uv_idle_t *idle)
{
    struct events *ev = idle->data;
    struct link *first = list_first(&ev->unwritten);

    if (first) {
        struct watch *w = CONTAINER_OF(first, struct watch, link);
        link_remove(first);
        list_push(&ev->unwritten, first);
        if (!rests(w) && write_some(w))
            reading_ends(w);
    }
    if (list_empty(&ev->unwritten))
        (void)uv_idle_stop(idle);
}

static size_t count_streams(const struct watch *w)
{
    size_t n = 0;

    for (const struct link *l = w->streams.next; l != &w->streams; l = l->next)
        n++;
    return n;
}

static void begin_writing(struct watch *w)
{
    w->untold = count_streams(w);
    if (write_some(w)) {
        reading_ends(w);
        return;
    }
    list_push(&w->ev->unwritten, &w->link);
    (void)uv_idle_start(&w->ev->idle, watches_write);
}

static void is_read(struct watch *w)
{
    bool writes = w->was_read && !list_empty(&w->streams);

    if (writes && w->err == ERR_OK)
        render(w);
    w->known = w->was_read && w->err == ERR_OK ? w->row.revision : 0;
    if (writes)
        begin_writing(w);
    else
        reading_ends(w);
}

static void definitions_read(struct registry_wait *wait, enum err err, const char *story)
{
    struct watch *w = CONTAINER_OF(wait, struct watch, definitions);

    if (err != ERR_OK)
        w->err = error_set(&w->error, err, "%s", story);
    is_read(w);
}

static void read_done(struct store_job *j)
{
    struct watch *w = CONTAINER_OF(j, struct watch, job);

    if (w->was_read && w->err == ERR_OK && cache_must_wait(w->ev->server, &w->row, &w->definitions))
        return;
    is_read(w);
}

/* Another node changed it: this node was not notified. */
static void changed(struct task_poll *s, const struct glance *g)
{
    struct watch *w = CONTAINER_OF(s, struct watch, poll);

    if (g->revision != w->known && !list_empty(&w->streams))
        begin_reading(w);
}

static void begin_reading(struct watch *w)
{
    struct server *sv = w->ev->server;

    if (w->reading) {
        w->touched = true;
        return;
    }
    w->reading = true;
    w->touched = false;
    w->row = (struct task_row){0};
    w->error = (struct error){0};
    sv->load.exchanges++;
    sv->load.reads_open++;
    w->was_read = false;
    scheduler_pulses(sv->scheduler, w->id, &w->arena, &w->pulses);
    struct link *first = list_first(&w->streams);
    ASSERT(first);
    const struct stream *st = CONTAINER_OF(first, struct stream, link);
    w->job = (struct store_job){.run = read_run, .done = read_done, .account = st->x.http->account};
    readings_add(sv->readings, quota_name(st->x.http->account), READING_ONE, &w->job);
}

void events_touched(struct server *sv, struct slice task)
{
    const struct events *ev = sv->api->events;
    struct watch *w = ev->stats.listeners_task > 0 ? map_get(&ev->watches, task) : NULL;

    if (w && !list_empty(&w->streams))
        begin_reading(w);
}

/* ---- heartbeats ---- */

static void render_beat(struct buf *b, const struct definition *d, const struct heartbeat *beat,
                        int64_t now)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice step = d->workflow.steps[beat->of.step].name;

    json_open(b, '{');
    json_key(b, "step");
    json_string(b, beat->of.item.any ? item_name(step, beat->of.item.number, &a) : step);
    json_key(b, "direction");
    json_string(b, slice_of(direction_text(beat->of.direction)));
    json_key(b, "attempt");
    json_number(b, beat->of.attempt);
    json_key(b, "at");
    json_time(b, now);
    json_key(b, "progress");
    json_raw(b, beat->progress);
    json_key(b, "message");
    json_string(b, beat->message);
    if (beat->resume.ptr) {
        json_key(b, "resume");
        json_raw(b, beat->resume);
    }
    json_close(b, '}');
}

/* The next event has more: a stream without room goes without this one, and so does one whose turn
 * has not come before there is another. */
static void beat_first(struct watch *w)
{
    struct stream *st = CONTAINER_OF(w->unheard.next, struct stream, beat);

    visit_counts(w->ev->server);
    link_remove(&st->beat);
    list_push(&w->heard, &st->beat);
    if (st->begun && stream_recheck(st) && !stream_is_full(st)
        && http_stream_write_text(st->x.http, w->beat)) /* if not, both may be gone */
        st->ev->server->metrics.events_sent++;
}

void watches_beat(struct events *ev)
{
    uint64_t round = fair_round(ev->server->fair);

    if (round != ev->beats_round)
        ev->beats = visit_begin();
    ev->beats_round = round;
    while (!list_empty(&ev->beating) && visit_goes_on(&ev->beats)) {
        struct watch *w = CONTAINER_OF(ev->beating.next, struct watch, beating);
        link_remove(&w->beating);
        list_push(&ev->beating, &w->beating);
        if (list_empty(&w->unheard))
            beat_is_told(w);
        else
            beat_first(w);
    }
}

void events_beat(struct server *sv, const struct heartbeat *beat)
{
    struct events *ev = sv->api->events;
    struct watch *w = ev->stats.listeners_task > 0 ? map_get(&ev->watches, beat->of.task) : NULL;
    CLEANUP(buf_fini) struct buf data = {0};

    if (!w || !w->workflow.ptr || (!beat->progress.ptr && !beat->message.ptr && !beat->resume.ptr))
        return;
    const struct definition *d = registry_find(&sv->workflows, w->workflow, w->version);
    if (!d || beat->of.step >= d->workflow.step_count + d->workflow.slot_count)
        return;
    render_beat(&data, d, beat, server_now(sv));
    buf_clear(&ev->text);
    event_put(ev, "progress", NULL, buf_view(&data));
    beat_is_told(w);
    w->beat = http_text_new(&ev->text);
    list_take_all(&w->unheard, &w->heard);
    list_push(&ev->beating, &w->beating);
    watches_beat(ev);
    events_go_on_soon(ev);
}

/* ---- all watches ---- */

/* A read takes as long as the record is large: there is none before a stream can take its
 * result. */
static bool is_worth_reading(const struct watch *w)
{
    if (w->known == 0)
        return true;
    LIST_FOREACH (l, after, &w->streams) {
        const struct stream *st = CONTAINER_OF(l, struct stream, link);
        if (st->after < w->known && !stream_is_full(st) && events_have_room(w->ev, w->size))
            return true;
    }
    return list_empty(&w->streams);
}

void watches_catch_up(struct events *ev)
{
    struct visit v = visit_begin();

    while (!list_empty(&ev->catching) && visit_goes_on(&v)) {
        struct watch *w = CONTAINER_OF(ev->catching.next, struct watch, late);
        link_remove(&w->late);
        if (!is_worth_reading(w))
            written_later(w);
        else if (!list_empty(&w->streams))
            begin_reading(w);
    }
}

/* ---- GET /v1/tasks/{id}/events ---- */

static struct watch *watch_of(struct events *ev, struct slice id)
{
    struct watch *w = map_get(&ev->watches, id);

    if (w)
        return w;
    w = calloc(1, sizeof *w);
    ASSERT(w);
    w->ev = ev;
    w->id = arena_copy(&w->keys, id);
    w->definitions.done = definitions_read;
    w->poll.id = w->id;
    w->poll.changed = changed;
    task_poll_begin(ev->server, &w->poll);
    list_init(&w->streams);
    list_init(&w->heard);
    list_init(&w->unheard);
    map_put(&ev->watches, w->id, w);
    return w;
}

void task_events_get(struct server *sv, struct http_request *r)
{
    struct slice id = http_segment(r, 2);
    struct slice last = http_header(r, "last-event-id");
    int64_t after = 0;

    if (!id.ptr) {
        http_problem(r, 404, "no-such-task", "the id in the path is not well encoded");
        return;
    }
    if (!reading_has_room(sv, r, READING_ONE))
        return;
    if (last.ptr && !count_of(last, INT64_MAX, &after))
        after = 0; /* in a line of no token: from the start, so that nothing is missed */
    struct stream *st = stream_new(sv, r, true);
    if (!st)
        return;
    st->after = (uint64_t)after;
    st->watch = watch_of(sv->api->events, id);
    st->watch->users++;
    list_push(&st->watch->streams, &st->link);
    list_push(&st->watch->heard, &st->beat);
    begin_reading(st->watch);
}
