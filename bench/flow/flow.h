#ifndef BENCH_FLOW_H
#define BENCH_FLOW_H

/*
 * A load generator that does not hide queueing. Each task has a due time, and its latency counts
 * from there to its end, however late it was sent: a server that stalls for a second is charged for
 * all tasks due in that second. A generator that waits for answers before it sends measures only
 * what the server let it measure ("coordinated omission": Gil Tene, "How NOT to measure latency").
 *
 *   open loop     tasks are due at a fixed rate, or at random times with that mean rate (Poisson)
 *   closed loop   a fixed number is in flight: the end of one task is the due time of the next
 *
 * One thread, one epoll. Due tasks go out on the next free connection, up to `lines` of them in one
 * request. The ends are detected in one of the ways of enum ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/prng.h"

enum ends {
    /* One stream of GET /v1/events per server, for ends only: the only way that scales to many in
     * flight and costs no connection. After a gap, each task sent is queried once. */
    ENDS_EVENTS,
    ENDS_WAIT,  /* POST /v1/tasks?wait=: the whole task. One connection per task in flight */
    ENDS_COUNT, /* GET /metrics twenty times a second: no latencies, hardly any work for a server */
    ENDS_ANSWER, /* the answer to the submission: for tasks without agents, and for floors */
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
    bool bare;            /* any answer is accepted: the server is not Intact */
    const char *not_before;
    enum ends ends;
    long tasks;
    double rate;    /* per second; 0: closed loop */
    long in_flight; /* closed loop */
    bool poisson;
    bool priorities; /* 0 to 9 in turn, instead of 5 */
    long lines;      /* per request, at most; 1: plain requests */
    long connections;
    long payload; /* bytes of the input */
    long patience_s;
    uint64_t seed;
};

/* One request at a time; the input is its answer. */
struct conn {
    int fd, server;
    bool busy;
    bool stream;       /* of events, without an end */
    bool counts;       /* queries /metrics */
    bool looks;        /* queries the task `first` */
    long first, count; /* the tasks of the current submission */
    struct buf out, in;
    size_t sent;
    size_t scanned; /* stream: processed bytes of `in` */
    bool begun;     /* stream: its head was read */
};

struct flow {
    struct flow_options o;
    int epoll, timer;
    struct conn *conns;
    long conn_count;
    struct conn **idle;
    long idle_count;
    struct buf input; /* of each task */
    /* By task number. Times are microseconds since the beginning. */
    double *due_at, *sent_at, *ended_at;
    long due, sent, answered, ended; /* numbers of tasks */
    double next_at;                  /* open loop: when the next is due */
    struct prng prng;
    uint64_t begun_ns;
    double progress_at;
    long outcomes[OUTCOMES];
    long requests, gaps;
    long look_at, look_end; /* after a gap: tasks that may have ended unnoticed */
    long counted_before;    /* ENDS_COUNT: tasks ended before the start; -1: unknown yet */
    long streams_begun;
    double body_bytes, answer_bytes;
};

double flow_now(const struct flow *f);

/* Prints the message and ends the program. */
_Noreturn void flow_fail(const char *fmt, ...) PRINTF(1, 2);

/* net.c: connections */
void net_open(struct flow *f);
void net_close(struct flow *f);
void net_ask(struct flow *f, struct conn *c, const char *method, const char *path,
             const char *content_type, struct slice body);
void net_ready(struct flow *f, struct conn *c, uint32_t events);

/* ends.c: detection of ends */
void ends_begin(struct flow *f);                 /* opens the streams, or queries the first count */
void ends_heard(struct flow *f, struct conn *c); /* c->in has more of a stream */
void ends_look(struct flow *f);                  /* queries tasks that may have ended in a gap */
void ends_answered(struct flow *f, struct conn *c, int status, struct slice body);
bool ends_ready(const struct flow *f); /* the load may begin */

/* flow.c */
void flow_ended(struct flow *f, long n, int outcome);

/* report.c */
void report_print(const struct flow *f, double seconds);

#endif
