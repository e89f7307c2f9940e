#ifndef API_EVENTS_H
#define API_EVENTS_H

/*
 * Streams of what happens (server-sent events), over http_stream_*.
 *
 *   events.c       what is common; GET /v1/events: a ring of recent changes, each listener at its
 *                  own place in it
 *   events_task.c  GET /v1/tasks/{id}/events: all listeners of a task share a watch, which reads
 *                  the row again when it has changed
 *
 * A slow reader does not delay others. While more than STREAM_FULL bytes wait for it, a stream gets
 * nothing: a listener of a task then receives the latest state, and a listener of all tasks is
 * notified of a gap if the ring has overwritten what it missed.
 */

#include <stdlib.h>

#include "api/visit.h"
#include "base/map.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/part.h"
#include "scheduler/scheduler.h"

enum {
    STREAM_FULL = 64 * 1024,
    STREAM_CHUNK_MAX = 64 * 1024, /* of what is written in one go */
    RING_MAX = 8192,
    BEHIND_MS = 20, /* slow readers are checked so often */
    RECORD_MS = 60000,
    ID_SIZE = 112, /* of an event of the stream of all tasks */
    STREAMS_OF_SESSION = 64,
    PER_SECOND_MAX = 1000000,
};

struct events;

struct events_stats {
    size_t listeners_all, listeners_task;
};

extern const struct part events_part;
void events_recheck(struct server *sv); /* clients whose tokens are no longer good are let go */
void events_changed(struct server *sv, const struct workflow *w, const struct task *t);
void events_touched(struct server *sv, struct slice task); /* its row may be another */
void events_beat(struct server *sv, const struct heartbeat *b);
void events_stats(const struct server *sv, struct events_stats *ret);

/* ---- what events.c and events_task.c share ---- */

struct watch;

/* A session of the console that has streams: a page has one, while it is in view. */
struct listening_session {
    unsigned char hash[TOKEN_HASH_SIZE];
    size_t count;
};

/* One open stream; lives until `done` of its request. */
struct stream {
    struct exchange x;
    struct events *ev;
    struct link link;  /* of its watch, or of all; in none once it has ended, like the next ones */
    struct link pulse; /* of `pulses` ... */
    int64_t pulse_at;  /* ... by this (steady): when it is looked at next, whatever happens */
    struct link check; /* of `checked` or `unchecked` */
    uint64_t checks;   /* how many changes of tokens there had been when its token was checked */
    bool of_task;
    bool begun;         /* its head was sent */
    struct arena arena; /* of the grant */
    const struct grant *grant;
    struct listening_session *session; /* NULL: it came with a token */
    /* of all tasks */
    uint64_t next;       /* the number of the event that it receives next */
    uint32_t states;     /* bits; 0: any */
    struct slice wanted; /* workflow, in the request's memory; NONE: any */
    int64_t per_second;  /* events at most; 0: all */
    int64_t second;      /* steady: the present one ... */
    int64_t sent;        /* ... and how many it got in it */
    bool skipped;        /* it got enough: a gap will tell it of the others */
    /* of a task */
    struct watch *watch;
    uint64_t after;   /* the revision that it knows */
    struct link beat; /* of `heard` or `unheard` of its watch */
};

/* A change as listeners of all tasks receive it. Most want only a few, mostly ends: its JSON is
 * written when a listener first wants it. */
struct happening {
    struct buf names; /* the task's id, then the workflow's name */
    size_t id_len;
    int64_t version, at, paused_at, closed_at;
    uint64_t revision;
    uint32_t failure_count;
    enum task_state state;
    enum direction direction;
    struct buf json; /* empty: not written yet */
};

struct events {
    struct server *server;
    char place[88]; /* what ids begin with: the boot, and the node's name where there are others */
    uv_timer_t timer;
    bool timer_open, drained;
    bool fresh;            /* there are events that were not written to all */
    bool behind;           /* some reader was too slow */
    int64_t behind_at;     /* when they are looked at again */
    struct link pulses;    /* of struct stream, all that have not ended, by their time */
    uint64_t checks;       /* changes of tokens */
    struct link checked;   /* of struct stream, all that have not ended, or ... */
    struct link unchecked; /* ... those not looked at since the last change */
    struct link all;       /* of struct stream, in the order of their turns */
    size_t unvisited;      /* of them, in this round */
    uint64_t rest_ns; /* uv_hrtime: when the first account ends its rest; UINT64_MAX: none rests */
    struct map watches;    /* of struct watch, by task id */
    struct map sessions;   /* of struct listening_session, by hash */
    uv_idle_t idle;        /* active while `unwritten` is not empty, and ... */
    uv_timer_t rest;       /* ... this is not: the account whose turn it is rests */
    struct link unwritten; /* of struct watch: some of their streams are behind */
    struct link late;      /* of struct watch: they are read again at `behind_at`, or ... */
    struct link catching;  /* ... in one of the next turns, as that has passed */
    struct link beating;   /* of struct watch: some of their streams wait for a heartbeat */
    struct visit beats;    /* what heartbeats have in this round (fair.h), however many they are: */
    uint64_t beats_round;
    struct events_stats stats;
    /* The ring holds events first <= n < next; all changes are counted, sent or not. */
    struct happening *ring;
    uint64_t first, next;
    int64_t record_until; /* until then events are kept without listeners, too */
    struct buf text;      /* what is about to be written */
};

/* A new stream for the request; NULL: there are too many, or the server ends; it was answered. */
struct stream *stream_new(struct server *sv, struct http_request *r, bool of_task);
void stream_begin(struct stream *st);
void stream_end(struct stream *st); /* nothing more is written; memory goes with `done` */
/* Call it before writing. False: its token is no longer valid, and the stream was ended. */
bool stream_recheck(struct stream *st);
void stream_free(struct stream *st); /* one that did not begin and is answered otherwise */
bool stream_is_full(const struct stream *st);

/* Writes ev->text, all or nothing: so many events. False: nothing was taken; if the client has
 * gone, `gone` is called. */
bool stream_write(struct stream *st, uint64_t events);

/* "event: NAME", "id: ID" (NULL: none), "data: DATA", to ev->text. DATA is made to be one line. */
void event_put(struct events *ev, const char *name, const char *id, struct slice data);
/* The same in two parts, with the data between them. Any thread. */
size_t event_begin(struct buf *b, const char *name, const char *id);
void event_end(struct buf *b, size_t from);

void events_fall_behind(struct events *ev); /* a reader gets the rest later */

/* Is there room for an event of so many bytes, for readers that do not take it at once? */
bool events_have_room(const struct events *ev, size_t bytes);

/* A test can have all checks of tokens left to those who write, as if there were too many streams
 * to visit before. Never in what is installed. */
static inline bool checks_wait(void)
{
#ifdef INTACT_FAULTS
    return getenv("INTACT_FAULT_UNCHECKED") != NULL;
#else
    return false;
#endif
}

/* events_task.c */
void watches_write(uv_idle_t *idle);       /* writes more; once in each round */
void watches_catch_up(struct events *ev);  /* some of `catching` */
void watches_beat(struct events *ev);      /* some of `beating` */
void events_go_on_soon(struct events *ev); /* the rest has its turn a little later */
void watch_left(struct stream *st);        /* it is no more */

#endif
