#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

/*
 * An HTTP/1.1 server on a libuv loop, parsed by llhttp (strict). It is independent of what is
 * served: it passes each complete request to one function and takes one response for it, now or
 * later.
 *
 * Life of a request: `handle` is called when head and body are complete. The request and its memory
 * live until the response was written or the client disconnected; in both cases `done` is called,
 * once, and afterwards the request must not be used. A request may be parked: it can be answered at
 * any later time.
 *
 * `done` is never called from inside http_answer, so the caller may use the request until it
 * returns to the loop. A client that closes its side while its request is parked counts as
 * disconnected; one that does so while the response is being written still gets it.
 *
 * Path and query contain only visible ASCII and well-formed percent-encodings. libuv writes with
 * write(2), so http_listen makes the process ignore SIGPIPE.
 *
 * Everything runs on the loop's thread. The limits (struct http_limits) hold for every client. One
 * that exceeds a limit gets 400, 408, 413, 414, 431 or 503 as a problem document, and the
 * connection is closed.
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
    /* Bytes of all requests and responses in memory; default 512 MiB. Beyond it, clients that send
     * much are refused, and clients that do not read their response are disconnected. */
    size_t memory_max;
    uint64_t head_ms;          /* from the first byte to the end of the headers; default 10 s */
    uint64_t body_ms;          /* from the headers to the end of the body, in total; default 60 s */
    uint64_t idle_ms;          /* between requests; default 75 s */
    uint64_t write_ms;         /* for the client to read a response, in total; default 60 s */
    size_t stream_backlog_max; /* bytes that may wait for the reader of a stream; default 256 KiB */
};

extern const struct http_limits http_limits_default;

struct http_handler {
    void *arg;
    /* The head of a request is complete, and its body is not. True: the body is read, and `handle`
     * follows. False: the request was or will be answered without its body, which is discarded; the
     * connection ends after the response, and `done` follows as for any request. Not called if the
     * request came in one piece. May be NULL: all bodies are read. */
    bool (*head)(void *arg, struct http_request *r);
    void (*handle)(void *arg, struct http_request *r);
    /* The response was written (sent = true: the kernel has its bytes), or the client disconnected
     * before. Free `r->user` here. Called exactly once for each handled request. */
    void (*done)(void *arg, struct http_request *r, bool sent);
    /* The certificate files have changed: they were reloaded (NULL), or could not be, and the
     * present certificate stays. May be NULL. */
    void (*certificate)(void *arg, const struct error *e);
    /* Connections cannot be accepted because of a shortage (EMFILE, ENFILE, ENOMEM ...): called
     * once, and again with 0 when they can. Meanwhile they wait. May be NULL. */
    void (*accepting)(void *arg, int reason);
    /* The reader of this stream has taken everything: time for the next piece. May be NULL. Not
     * called if a write left nothing waiting. */
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
    struct slice query;   /* after the '?', raw; NONE if there is none */
    struct slice body;    /* whole; empty if there is none */
    struct arena arena;   /* dies with the request; free to use */
    void *user, *account; /* for the handler */
    int status;           /* of the response; 0: none yet */
    uint64_t began_ns;    /* this and the next two: for the handler's accounting */
    unsigned route;
    bool is_reader, is_by_cookie;
    struct large_body *large; /* the parsed body, if available already; for the handler */
    /* For the handler, which may set them in `head`: what it keeps for the request while the body
     * comes. `let_go` is called with `kept` when the request's memory ends, unless it is NULL. */
    void *kept;
    void (*let_go)(void *kept);
};

/* Listens on "ADDR:PORT" ("[::1]:7420"; port 0: any free one). `limits` NULL: the defaults. The
 * error names address and reason. */
enum err http_listen(uv_loop_t *loop, const char *address, const struct http_limits *limits,
                     const struct http_handler *handler, struct http_server **ret,
                     struct error *e) MUST_USE;

/* Sets lines ("Name: value\r
 * ") for the head of every response from now on, including refusals and streams. The caller owns
 * them; they must live as long as the server. */
void http_say_always(struct http_server *s, struct slice lines);

/* New connections must use TLS from now on (tls.h describes the files). The files are checked for
 * changes when a client connects, at most every two seconds, so an idle server does no work. */
enum err http_secure(struct http_server *s, const char *cert_file, const char *key_file,
                     struct error *e) MUST_USE;
bool http_is_secure(const struct http_server *s);

/* Reloads the files now. The result goes to `handler.certificate`. */
void http_secure_reload(struct http_server *s);

/* Adds a connection: the server takes ownership of the socket, which does not use TLS. http_adopted
 * returns `whose` (above 0) for its requests, and 0 for all others. */
void http_adopt(struct http_server *s, int fd, unsigned whose);
unsigned http_adopted(const struct http_request *r);

int http_port(const struct http_server *s); /* on which it listens */
size_t http_connection_count(const struct http_server *s);
size_t http_request_count(const struct http_server *s); /* requests that are not done, mostly
                                                         * parked */
size_t http_held(const struct http_server *s);          /* bytes of requests and responses in
                                                         * memory */
void *http_handler_arg(const struct http_request *r);   /* the handler's `arg` */

/* Accepts no more connections; responses say "Connection: close" from now on; idle connections are
 * closed. */
void http_drain(struct http_server *s);

/* Closes everything at once, and frees the server when libuv has closed its handles: run the loop
 * once more after it. `done` is called for open requests before this returns; for the request whose
 * handler calls it, when that handler returns. */
void http_close(struct http_server *s);

struct slice http_header(const struct http_request *r, const char *name);   /* NONE if absent */
unsigned http_header_count(const struct http_request *r, const char *name); /* fields so named */
bool http_slice_is_like(struct slice s, const char *text);                  /* case-insensitive */
struct slice http_query(struct http_request *r, const char *name); /* decoded; NONE if absent */

/* Iterates over the query: for (size_t at = 0; http_query_next(r, &at, &name, &value);). Decoded;
 * an invalid part is NONE, a name without '=' has an empty value. */
bool http_query_next(struct http_request *r, size_t *at, struct slice *ret_name,
                     struct slice *ret_value);

/* The n-th segment of the path (from 0), percent-decoded into the request's arena; NONE if it does
 * not exist or its encoding is invalid. */
struct slice http_segment(struct http_request *r, unsigned n);
unsigned http_segment_count(const struct http_request *r);

/* Sends the one response. `body` is copied. `headers` are extra lines ("Retry-After: 1\r
 * ") or NULL. HEAD gets no body. Answering after the client disconnected is harmless. */
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

/* The client's address, "192.0.2.7" or "2001:db8::1"; "unknown" if it disconnected. */
struct http_peer {
    char text[48];
};
struct http_peer http_peer_of(const struct http_request *r);

/* Within `head`: limits the size of the body. False: a larger one is announced already, or it is
 * chunked, and `may_be_chunked` is false. */
bool http_limit_body(struct http_request *r, size_t max, bool may_be_chunked) MUST_USE;

/* Within `head`: the bytes of the body that is announced; of a chunked one, the most it may have.
 */
size_t http_body_expected(const struct http_request *r);

/* Whether the request is being answered without its body, as `head` decided. */
bool http_is_without_body(const struct http_request *r);

/* Transfers ownership of the body's bytes to the caller, for use after the request may have ended;
 * `r->body` still points to them. */
struct buf http_take_body(struct http_request *r);
/* Gives them back: the request frees them again. */
void http_return_body(struct http_request *r, struct buf body);

/* Whether the client's address is in 127.0.0.0/8 or ::1. It may be a proxy for another client. */
bool http_peer_is_loopback(const struct http_request *r);
int http_local_port(const struct http_request *r); /* of our end of its connection; 0: it is
                                                    * closed */

/* Closes the connection without a response, to simulate a failing server. `done` is called before
 * it returns; for the request whose handler calls this, when that handler returns. */
void http_break(struct http_request *r);

/*
 * A response that comes in pieces: begin, any number of writes, end; no other response follows.
 * HTTP/1.1 gets chunks, HTTP/1.0 bytes until the connection ends. `done` follows the end as for any
 * response, with sent = false if the client disconnected before; closing its side counts. None of
 * these functions calls `done` itself.
 *
 * For a HEAD, or a status without a body, the response is complete with its head: `done` follows by
 * itself. Then, and after a disconnect or the end, writes are ignored, and ending the stream
 * (again) is harmless.
 *
 * A reader that reads nothing for limits.write_ms while data waits is disconnected, after twice
 * that time at the latest. An idle stream has no deadline; to detect a disconnect, send something
 * now and then.
 */
void http_stream_begin(struct http_request *r, int status, const char *content_type,
                       const char *headers);

/* The same for a response of known length: exactly that many bytes must be written before its end.
 * If it ends early, the connection is cut, so that the client notices. */
void http_stream_begin_sized(struct http_request *r, int status, const char *content_type,
                             const char *headers, uint64_t size);

/* Copies the bytes. False: the client has gone, or more than limits.stream_backlog_max bytes wait
 * for it: nothing was taken. A piece may be longer than that if little waits. What the client was
 * not offered yet, since others have their turn, does not keep a piece of up to 4 KiB out. */
bool http_stream_write(struct http_request *r, struct slice bytes);

bool http_stream_write_text(struct http_request *r, struct http_text *t); /* the same */

size_t http_stream_backlog(const struct http_request *r); /* bytes not yet with the kernel */
void http_stream_end(struct http_request *r);

/* Whether the client is still connected, as far as known. */
bool http_is_alive(const struct http_request *r);

#endif
