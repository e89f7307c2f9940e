#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

/*
 * An HTTP/1.1 server on a libuv loop, parsed by llhttp (strict). It knows nothing of what is
 * served: it hands each complete request to one function and takes one answer for it, now or later.
 *
 * Life of a request: `handle` is called when head and body are complete. The request and its memory
 * live until the server has written the answer or the client has gone; in both cases `done` is
 * called, once, and afterwards the request must not be touched. A request may be parked: answer it
 * whenever.
 *
 * `done` never comes from inside http_answer, so that whoever answers may go on with the request
 * until it returns to the loop. A client that closes its side while its request is parked has gone;
 * one that does so while it is being answered still gets its answer.
 *
 * Path and query hold visible ASCII and well-formed percent-encodings only. libuv writes with
 * write(2), so http_listen makes the process ignore SIGPIPE.
 *
 * All on the loop's thread. Limits (each in struct http_limits) hold for every client; who exceeds
 * one gets 400, 408, 413, 414, 431 or 503 as a problem document, and the connection is closed.
 */

#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct http_server;
struct http_request;
struct large_body;

struct http_limits {
    size_t body_max;         /* bytes of a request's body; default 4 MiB */
    size_t line_max;         /* bytes of the request line; default 8 KiB */
    size_t head_max;         /* bytes of request line and headers; default 16 KiB */
    size_t header_count_max; /* default 64 */
    size_t connection_max;   /* default 16 384; more are closed at once */
    /* Bytes of all requests and answers in work; default 512 MiB. Beyond it whoever sends much is
     * refused, and whoever does not take an answer is cut off. */
    size_t memory_max;
    uint64_t head_ms;          /* from the first byte to the end of the headers; default 10 s */
    uint64_t body_ms;          /* from the headers to the end of the body, in total; default 60 s */
    uint64_t idle_ms;          /* between requests; default 75 s */
    uint64_t write_ms;         /* for the client to take an answer, in total; default 60 s */
    size_t stream_backlog_max; /* bytes that may wait for the reader of a stream; default 256 KiB */
};

extern const struct http_limits http_limits_default;

struct http_handler {
    void *arg;
    /* The head of a request is there and its body is not, or not all of it. True: the body is read,
     * and `handle` follows. False: the request was answered, or will be, without its body: that is
     * never kept, the connection ends behind the answer, and `done` follows as for any request. Not
     * called for a request that came in one piece. May be NULL: all bodies are read. */
    bool (*head)(void *arg, struct http_request *r);
    void (*handle)(void *arg, struct http_request *r);
    /* The answer was written (sent = true: its bytes are with the kernel), or the client went away
     * before that. `r->user` is yours to free here. Called exactly once for each handled request.
     */
    void (*done)(void *arg, struct http_request *r, bool sent);
    /* The files of the certificate have changed: they were read (NULL), or could not be, and the
     * certificate that was there stays. May be NULL. */
    void (*certificate)(void *arg, const struct error *e);
    /* Connections cannot be accepted for want of something of the system's (EMFILE, ENFILE, ENOMEM
     * ...): told once, and again with 0 when they can. Meanwhile they wait. May be NULL. */
    void (*accepting)(void *arg, int reason);
    /* Nothing waits any more for the reader of this stream: time for its next piece. May be NULL.
     * Not called where a write found that nothing has to wait. */
    void (*flushed)(void *arg, struct http_request *r);
    /* More of the answer, or of the stream, was written, and that took so long. Not told of the
     * first slice, which is written by whoever answers. May be NULL. */
    void (*wrote)(void *arg, struct http_request *r, uint64_t took_ns);
    /* What a client sent was refused before it became a request (400, 408, 413, 414, 431, 5xx), and
     * why. May be NULL. */
    void (*refused)(void *arg, int status, const char *reason);
};

struct http_request {
    struct slice method;  /* "GET" */
    struct slice path;    /* percent-decoding is done per segment by http_segment */
    struct slice query;   /* behind the '?', raw; NONE if there is none */
    struct slice body;    /* whole; empty if there is none */
    struct arena arena;   /* dies with the request; free to use */
    void *user, *account; /* the handler's */
    int status;           /* of the answer; 0: there is none yet */
    uint64_t began_ns;    /* the handler's, as the next one: for its books */
    unsigned route;
    bool is_reader;
    struct large_body *large; /* what its body says, if that is known already; the handler's */
};

/* Listens on "ADDR:PORT" ("[::1]:7420"; port 0: any free one). `limits` may be NULL for the default
 * ones. The error names address and reason. */
enum err http_listen(uv_loop_t *loop, const char *address, const struct http_limits *limits,
                     const struct http_handler *handler, struct http_server **ret,
                     struct error *e) MUST_USE;

/* Lines ("Name: value\r\n") for the head of every answer from now on, refusals and streams among
 * them. They stay the caller's, for as long as the server lives. */
void http_say_always(struct http_server *s, struct slice lines);

/* From the next connection on clients must speak TLS (see tls.h about the files). They are looked
 * at again when a client connects, at most every two seconds, so that a server in peace does
 * nothing for it. */
enum err http_secure(struct http_server *s, const char *cert_file, const char *key_file,
                     struct error *e) MUST_USE;
bool http_is_secure(const struct http_server *s);

/* Reads them again now. What comes of it is told by `handler.certificate`. */
void http_secure_reload(struct http_server *s);

/* One more connection: a socket that is the server's from now on, and on which no TLS is spoken.
 * `whose`, above 0, is what http_adopted says of its requests; of all others it says 0. */
void http_adopt(struct http_server *s, int fd, unsigned whose);
unsigned http_adopted(const struct http_request *r);

int http_port(const struct http_server *s); /* on which it listens */
size_t http_connection_count(const struct http_server *s);
size_t http_request_count(const struct http_server *s); /* that are not done: parked for the most */
size_t http_held(const struct http_server *s);          /* bytes of requests and answers in work */
void *http_handler_arg(const struct http_request *r);   /* the handler's `arg` */

/* Takes no more connections; answers from now on say "Connection: close"; idle ones are closed. */
void http_drain(struct http_server *s);

/* Closes everything at once (`done` is called for open requests, before it returns; for the one
 * whose handler calls this, when that handler returns) and frees the server when libuv has let go
 * of its handles; run the loop once more after it. */
void http_close(struct http_server *s);

struct slice http_header(const struct http_request *r, const char *name);   /* NONE if absent */
unsigned http_header_count(const struct http_request *r, const char *name); /* fields so named */
bool http_slice_is_like(struct slice s, const char *text);                  /* whatever the case */
struct slice http_query(struct http_request *r, const char *name); /* decoded; NONE if absent */

/* Walks over all of the query: for (size_t at = 0; http_query_next(r, &at, &name, &value);).
 * Decoded; what is broken is NONE, a name without '=' has an empty value. */
bool http_query_next(struct http_request *r, size_t *at, struct slice *ret_name,
                     struct slice *ret_value);

/* The n-th segment of the path (from 0), percent-decoded into the request's arena; NONE if there is
 * none or the encoding is broken. */
struct slice http_segment(struct http_request *r, unsigned n);
unsigned http_segment_count(const struct http_request *r);

/* Sends the one answer. `body` is copied. `headers` are extra lines ("Retry-After: 1\r\n") or NULL.
 * HEAD gets no body. Answering a request whose client has gone is harmless. */
void http_answer(struct http_request *r, int status, const char *content_type, struct slice body,
                 const char *headers);

/* A text that many answers and streams may share. What is not with the kernel yet is kept by
 * holding it: nothing of it is copied. */
struct http_text {
    unsigned refs;
    struct buf bytes;
};
struct http_text *http_text_new(struct buf *bytes); /* takes the bytes; held once */
struct http_text *http_text_hold(struct http_text *t);
void http_text_drop(struct http_text *t); /* NULL is fine */

void http_answer_text(struct http_request *r, int status, const char *content_type,
                      struct http_text *body, const char *headers);

/* The same as application/problem+json (RFC 9457): type is "urn:intact:problem:" + `type`. */
void http_problem(struct http_request *r, int status, const char *type, const char *fmt, ...)
    PRINTF(4, 5);

/* The same with extra header lines, as http_answer takes them. */
void http_problem_with(struct http_request *r, int status, const char *type, const char *headers,
                       const char *fmt, ...) PRINTF(5, 6);

/* The address of the client, "192.0.2.7" or "2001:db8::1"; "unknown" if it is gone. */
struct http_peer {
    char text[48];
};
struct http_peer http_peer_of(const struct http_request *r);

/* Within `head`: the body may have at most so many bytes. False: more than that are announced
 * already, or it comes in chunks, and `may_be_chunked` is false. */
bool http_limit_body(struct http_request *r, size_t max, bool may_be_chunked) MUST_USE;

/* Is the request being answered without its body, as `head` wanted it? */
bool http_is_without_body(const struct http_request *r);

/* Takes the body's bytes out of the request, for whoever needs them when it may have ended;
 * `r->body` goes on pointing at them. */
struct buf http_take_body(struct http_request *r);
/* Puts them back: they end with the request again. */
void http_return_body(struct http_request *r, struct buf body);

/* Does the client come from 127.0.0.0/8 or ::1? A proxy may stand there for somebody else. */
bool http_peer_is_loopback(const struct http_request *r);
int http_local_port(const struct http_request *r); /* ours, of its connection; 0: it is closed */

/* Closes the connection without an answer, for who plays a server that breaks down. `done` is
 * called before it returns; for the request whose handler calls this, when that handler returns. */
void http_break(struct http_request *r);

/*
 * An answer that comes in pieces, for as long as the handler likes: begin, any number of writes,
 * end; no other answer follows. HTTP/1.1 gets chunks, HTTP/1.0 bytes until the connection ends.
 * `done` comes behind the end as for any answer, with sent = false if the client went away before;
 * it closes its side to say so. None of these calls `done` from inside.
 *
 * A HEAD has its whole answer with the head, and so has a status without a body: `done` follows by
 * itself. Then, and when the client has gone or the stream was ended, writes take nothing, and
 * ending it (again) is harmless.
 *
 * A reader that takes nothing for limits.write_ms while something waits for it is cut off, after
 * twice that time at the latest. A stream that is quiet has no deadline; who wants to know whether
 * somebody still listens sends something now and then.
 */
void http_stream_begin(struct http_request *r, int status, const char *content_type,
                       const char *headers);

/* The same for an answer of which it is known how long it will be: exactly so many bytes are to be
 * written before its end. Ended before, the connection is cut, so that the client knows. */
void http_stream_begin_sized(struct http_request *r, int status, const char *content_type,
                             const char *headers, uint64_t size);

/* Copies the bytes. False: the client has gone, or more than limits.stream_backlog_max bytes wait
 * for it: nothing was taken. A piece may be longer than that if little waits. What the client was
 * not offered yet, since others have their turn, does not keep a piece of up to 4 KiB out. */
bool http_stream_write(struct http_request *r, struct slice bytes);

bool http_stream_write_text(struct http_request *r, struct http_text *t); /* the same */

size_t http_stream_backlog(const struct http_request *r); /* bytes not yet with the kernel */
void http_stream_end(struct http_request *r);

/* Is the client still there (as far as we know)? */
bool http_is_alive(const struct http_request *r);

#endif
