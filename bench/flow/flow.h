#ifndef BENCH_FLOW_H
#define BENCH_FLOW_H

/*
 * A load generator that does not hide queueing. Each task has a moment at which it is due, and its
 * latency counts from there to its end, however late it was sent: a server that stands still for a
 * second is charged for all that would have come in that second. A generator that waits for answers
 * before it sends measures only what the server let it measure ("coordinated omission": Gil Tene,
 * "How NOT to measure latency").
 *
 *   open loop     tasks are due at a fixed rate, or at random moments of that mean rate (Poisson)
 *   closed loop   so many are in flight: the end of one is the moment at which the next is due
 *
 * One thread, one epoll. What is due goes out on the next connection that is free, and up to
 * `lines` of them together. Ends are learned in one of the ways of enum ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/prng.h"

enum ends {
    /* One stream of GET /v1/events for each server, of ends alone: the only way that scales to many
     * in flight and costs no connection. After a gap each task that was sent is asked for, once. */
    ENDS_EVENTS,
    ENDS_WAIT,  /* POST /v1/tasks?wait=: the whole task. A connection for each in flight */
    ENDS_COUNT, /* GET /metrics twenty times a second: no latencies, next to no work for a server */
    ENDS_ANSWER, /* that of the submission: for tasks that nobody does, and for floors */
};

enum { SERVERS_MAX = 8, OUTCOMES = 3 }; /* processed, compensated, error */

struct flow_options {
    struct {
        char host[64];
        int port;
    } servers[SERVERS_MAX];
    int server_count;
    const char *token;    /* NULL: none */
    const char *workflow; /* name */
    const char *prefix;   /* of ids */
    const char *path;     /* of submissions */
    bool bare;            /* whatever it answers is right: that is no Intact */
    const char *not_before;
    enum ends ends;
    long tasks;
    double rate;    /* a second; 0: closed loop */
    long in_flight; /* closed loop */
    bool poisson;
    bool priorities; /* 0 to 9 in turn, instead of 5 */
    long lines;      /* of one request, at most; 1: as a request of its own */
    long connections;
    long payload; /* bytes of the input */
    long patience_s;
    uint64_t seed;
};

/* One request at a time; what is read is an answer. */
struct conn {
    int fd, server;
    bool busy;
    bool stream;       /* of events: it has no end */
    bool counts;       /* asks for /metrics */
    bool looks;        /* asks for the task `first` */
    long first, count; /* the tasks that it submits just now */
    struct buf out, in;
    size_t sent;
    size_t scanned; /* of the stream's: bytes before it are done with */
    bool begun;     /* of the stream's: its head was read */
};

struct flow {
    struct flow_options o;
    int epoll, timer;
    struct conn *conns;
    long conn_count;
    struct conn **idle;
    long idle_count;
    struct buf input; /* of each task */
    /* Of each task, by its number. Times are microseconds since the beginning. */
    double *due_at, *sent_at, *ended_at;
    long due, sent, answered, ended; /* so many are */
    double next_at;                  /* open loop: when the next is due */
    struct prng prng;
    uint64_t begun_ns;
    double progress_at;
    long outcomes[OUTCOMES];
    long requests, gaps;
    long look_at, look_end; /* after a gap: tasks that may have ended unheard */
    long counted_before;    /* ENDS_COUNT: had ended before we began; -1: not known yet */
    long streams_begun;
    double body_bytes, answer_bytes;
};

double flow_now(const struct flow *f);

/* Ends the program with what went wrong. */
_Noreturn void flow_fail(const char *fmt, ...) PRINTF(1, 2);

/* net.c: connections */
void net_open(struct flow *f);
void net_close(struct flow *f);
void net_ask(struct flow *f, struct conn *c, const char *method, const char *path,
             const char *content_type, struct slice body);
void net_ready(struct flow *f, struct conn *c, uint32_t events);

/* ends.c: what is heard */
void ends_begin(struct flow *f);                 /* asks for the streams, or for the first count */
void ends_heard(struct flow *f, struct conn *c); /* more of a stream is in c->in */
void ends_look(struct flow *f);                  /* at what a gap may have hidden */
void ends_answered(struct flow *f, struct conn *c, int status, struct slice body);
bool ends_ready(const struct flow *f); /* the load may begin */

/* flow.c */
void flow_ended(struct flow *f, long n, int outcome);

/* report.c */
void report_print(const struct flow *f, double seconds);

#endif
