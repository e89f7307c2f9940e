#ifndef HTTP_CONNECTION_H
#define HTTP_CONNECTION_H

/*
 * One client's connection. One request at a time: the next is read when the present one is
 * answered, so responses leave in the order of the requests.
 *
 *      READING -----> PARKED -----> WRITING -----> ANSWERED ----> READING
 *         |     whole    |   answer     ^   with the   |
 *         |    request   +--------------+------------->+--------> LINGERING
 *         |              |  (what the kernel takes     |  closes
 *         |              |   at once skips WRITING)    |
 *         |              +-----> STREAMING ------------+
 *         |                begin           end         |
 *         +----------------- refused ------------------+
 *
 *  Every state goes to CLOSED when the client disconnects or the server closes.
 *
 * While a request is parked or a response written, further input is kept up to READ_AHEAD_MAX; then
 * reading stops, and a disconnect is detected by a check once a second.
 *
 * LINGERING: our side is shut down, and input is discarded until the client closes or two seconds
 * pass. Closing at once would answer its last bytes with a reset, which may destroy our response
 * before it is read (RFC 9112, 9.6). All connections together may have four of the longest bodies
 * discarded, and as much in each second; beyond that they are closed at once, so that clients that
 * are refused and send on do not take the time of others.
 *
 * With TLS the handshake is part of reading the first head, and of its deadline, which then begins
 * with the connection. Each step of it runs on a thread of libuv's pool, few at a time (secure.c).
 * Meanwhile nothing is read, and nothing else touches the connection's TLS.
 *
 * Deadlines: each connection waits for at most one thing. Waits of equal length form a queue
 * ordered by deadline, and the server has one timer for the earliest of all, so each event costs a
 * few pointer operations.
 */

#include "base/list.h"
#include "http/output.h"
#include "http/request_reader.h"
#include "http/tls.h"

enum http_phase {
    HTTP_READING,
    HTTP_PARKED,
    HTTP_STREAMING,
    HTTP_WRITING,
    HTTP_ANSWERED,
    HTTP_LINGERING,
    HTTP_CLOSED
};

enum http_wait {
    HTTP_WAIT_IDLE,
    HTTP_WAIT_HEAD,
    HTTP_WAIT_BODY,
    HTTP_WAIT_WRITE,
    HTTP_WAIT_LINGER,
    HTTP_WAIT_PEEK, /* for connections that are not read: is the client still there? */
    HTTP_WAIT_COUNT,
    HTTP_WAIT_NOTHING = HTTP_WAIT_COUNT
};

struct http_server {
    uv_loop_t *loop;
    struct http_limits limits;
    struct http_handler handler;
    uv_poll_t listener;
    uv_timer_t timer;
    uv_idle_t finisher; /* active while `answered` is not empty */
    uv_idle_t turner;   /* active while one of the next two is not empty */
    struct link turns_to_read, turns_to_write;
    int fd; /* that listens; -1 once drained */
    int port;
    unsigned handles;        /* not closed by libuv yet */
    size_t count;            /* connections that are not closed */
    size_t request_count;    /* requests that the handler has */
    size_t held;             /* the sum over the connections */
    struct link connections; /* all connections */
    struct link answered;    /* answered from outside their handler */
    struct link waiting[HTTP_WAIT_COUNT];
    uint64_t wait_ms[HTTP_WAIT_COUNT];
    uint64_t timer_at;                /* 0: not armed */
    uint64_t accept_at;               /* when to accept again after a shortage; 0: accepting */
    uint64_t discarded, discarded_at; /* bytes thrown away, less what time gave back; when */
    bool is_short;                    /* the handler was told that connections cannot be accepted */
    bool is_draining, is_closing;
    struct tls_keys *tls;   /* NULL: no TLS */
    uint64_t tls_look_at;   /* when to check its files again */
    struct link handshakes; /* struct http_handshake: waiting for a thread */
    unsigned handshakes_running;
    struct slice always;   /* lines in the head of every response; owned by the caller */
    struct buf head;       /* of the response being written */
    struct buf sealed;     /* the same, encrypted */
    struct buf joined;     /* what is encrypted together */
    struct buf plain;      /* decrypted input */
    char bytes[64 * 1024]; /* read buffer */
};

struct http_connection {
    uv_tcp_t tcp;
    struct http_server *server;
    struct http_message *message; /* the request that the handler has */
    struct http_reader reader;
    struct http_output output;
    struct tls *tls;                  /* NULL: no TLS */
    struct http_handshake *handshake; /* a step that waits or runs; NULL: none */
    struct buf in;                    /* unparsed input: the first `in_at` bytes are consumed */
    size_t in_at;
    size_t held; /* bytes, as last counted */
    struct link all, answered, waiting;
    struct link turn_to_read, turn_to_write; /* it has much to read, or to write */
    uint64_t deadline;
    uint64_t taken; /* bytes taken by the kernel when the present wait for it began */
    enum http_phase phase;
    enum http_wait wait;
    bool is_in_handler;
    bool is_reading;
    bool is_sent;     /* ANSWERED: the kernel has all bytes */
    bool is_ended;    /* the client will send no more */
    bool closes;      /* after this response */
    bool is_let_go;   /* libuv has closed it: it is freed when its handshake returns */
    unsigned adopted; /* the id given to http_adopt; 0: accepted by the listener */
};

/* Whether data can be sent: there is no TLS, or its handshake is done. */
static inline bool http_connection_is_up(const struct http_connection *c)
{
    return !c->tls || (!c->handshake && tls_is_up(c->tls));
}

void http_connection_settle(struct http_connection *c); /* a handshake has begun */
void http_connection_free(struct http_connection *c);   /* libuv and the handshake thread are done
                                                         * with it */

/* Takes ownership of the socket; closes it if libuv refuses it. */
void http_connection_open(struct http_server *s, int fd, unsigned adopted);
void http_connection_close(struct http_connection *c);
/* Sends the whole response, or the last part of a stream. */
void http_connection_answer(struct http_connection *c, struct slice head, struct slice body);
/* Begins a stream; continues it. False: it is broken, and its end follows by itself. */
void http_connection_stream(struct http_connection *c, struct slice head);
bool http_connection_stream_on(struct http_connection *c, const struct slice *parts,
                               unsigned count);
void http_connection_cut(struct http_connection *c);              /* ends a stream early */
void http_connection_flushed(struct http_connection *c, bool ok); /* nothing is kept any more */
void http_connection_expire(struct http_connection *c);           /* its deadline has passed */
void http_connection_drain(struct http_connection *c);            /* closes it if it is idle */
void http_connection_resume(struct http_connection *c);           /* its response was written */
void http_connection_go_on(struct http_connection *c);            /* it is its turn to read */

/* In secure.c: input from a TLS client. */
void http_secure_open(struct http_connection *c); /* before anything is read */
void http_secure_receive(struct http_connection *c, struct slice wire);
bool http_secure_let_go(struct http_connection *c); /* false: a thread is working on it */

/* For secure.c. */
void http_connection_receive(struct http_connection *c, struct slice in);
void http_connection_ended(struct http_connection *c); /* the client will send no more */
void http_connection_refuse(struct http_connection *c, const struct http_fault *f);
void http_connection_hang_up(struct http_connection *c); /* after it had time to read the
                                                          * response */

/* In http.c. */
void http_server_arm(struct http_server *s, uint64_t at); /* wake up at this time at the latest */
void http_server_defer(struct http_server *s, struct http_connection *c);
/* May so much be thrown away? Then it is counted. */
bool http_server_may_discard(struct http_server *s, size_t bytes);
/* It goes on reading, or writing, when it is its turn: in each round of the loop few do. */
void http_server_turn_to_read(struct http_server *s, struct http_connection *c);
void http_server_turn_to_write(struct http_server *s, struct http_connection *c);
void http_server_forget(struct http_server *s);  /* a connection was closed */
void http_server_release(struct http_server *s); /* libuv has closed a handle */

#endif
