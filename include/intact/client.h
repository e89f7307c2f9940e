#ifndef INTACT_CLIENT_H
#define INTACT_CLIENT_H

/*
 * A client of an Intact server: stores workflows, submits tasks, asks how they do.
 *
 *     struct intact_client *c = intact_client_new(NULL, NULL);
 *
 *     if (intact_client_submit(c, "{\"workflow\": \"order\", \"input\": {...}}", 0) != INTACT_OK)
 *         fprintf(stderr, "%s\n", intact_client_error(c));
 *     else
 *         puts(intact_client_body(c)); // the task, as JSON
 *     intact_client_free(c);
 *
 * These calls block, over one connection that is kept open. What a call leaves behind (body,
 * status, error) belongs to the client and lives until its next call. Calls that do not block are
 * further down: as many at a time as you like, driven by your own loop.
 *
 * Thread-safety: a client is used by one thread at a time; use as many clients as you like.
 *
 * Times are milliseconds. Texts are UTF-8; what is given is copied where it is needed longer.
 *
 * Several servers: the nodes of one installation, with commas between. A call goes to the one that
 * answered last, and on to the next if that cannot be reached, hangs or answers 503: at once if the
 * call may be repeated (reading, and what has a name or id; a submission without an id is given
 * one), else only if the first has certainly not begun with it.
 * Before its first call the client asks each of them (GET /healthz) to which installation it
 * belongs.
 *
 * Installations: a client stays with the one that it was told of, else with the one that answered
 * first. A server of another one does nothing for it; if no other server takes the call it ends
 * INTACT_REFUSED, and the error names both.
 *
 * Repeating: submitting the same content under the same id again gives the task that exists, so
 * whoever gives ids of his own may repeat any call that ended INTACT_UNREACHABLE or INTACT_BUSY.
 */

#include <intact/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct intact_client;

enum intact_status {
    INTACT_OK,          /* 2xx */
    INTACT_REFUSED,     /* the server said no: 4xx; intact_client_error says why. Or it belongs to
                           another installation */
    INTACT_BUSY,        /* 429 or 5xx: the same call may succeed later */
    INTACT_TIMEOUT,     /* intact_client_wait: the task has not ended yet; body is its record */
    INTACT_UNREACHABLE, /* no answer: whether the call took effect is not known */
};

/* `server`: "http://127.0.0.1:7420", or several; NULL: $INTACT_SERVER, then that address. `token`:
 * the bearer token; NULL: $INTACT_TOKEN, then none. Both are copied. NULL if memory or libcurl
 * fail. */
INTACT_API struct intact_client *intact_client_new(const char *server, const char *token);

/* File of certificates (PEM) that an https:// server's must be signed by. Default: $INTACT_CA, then
 * those of the system. NULL leaves it at that. */
INTACT_API void intact_client_set_ca(struct intact_client *c, const char *path);

/* The id of the installation that is meant, a UUID. Default: $INTACT_INSTALLATION, then the one
 * that answers first. "any" is as if there were neither. NULL: the default. Calls with what is no
 * id are refused. Not while calls are at work. */
INTACT_API void intact_client_set_installation(struct intact_client *c, const char *id);
/* The one that the client works with; "" if that is not known yet. */
INTACT_API const char *intact_client_installation(const struct intact_client *c);

/* Asked once, when the server first answers 401 and no token was given: a token, which the call is
 * repeated with and the client keeps; from malloc, freed by the client. NULL: there is none. May
 * look at `c`, which shows that answer, but not make calls with it. */
typedef char *intact_token_finder(void *arg, const struct intact_client *c);
INTACT_API void intact_client_set_find_token(struct intact_client *c, intact_token_finder *find,
                                             void *arg);

/* Frees it. Calls that were started and are not done are given up; nobody is told. NULL is fine. */
INTACT_API void intact_client_free(struct intact_client *c);

INTACT_API const char *intact_client_server(const struct intact_client *c); /* in use */

/* Of the latest call. The error is a text for people that says what went wrong and what to do
 * about it; empty after INTACT_OK. */
INTACT_API const char *intact_client_body(const struct intact_client *c); /* ends with a NUL */
INTACT_API size_t intact_client_body_size(const struct intact_client *c);
INTACT_API int intact_client_http_status(const struct intact_client *c); /* 0: no answer */
INTACT_API const char *intact_client_error(const struct intact_client *c);
/* A header of the answer, by its name in any case; NULL if there is none. */
INTACT_API const char *intact_client_header(const struct intact_client *c, const char *name);

/* Stores a definition (JSON, or YAML if it does not begin with a brace): 201 and the new version,
 * 200 if the newest has the same content. */
INTACT_API enum intact_status intact_client_put_workflow(struct intact_client *c, const char *name,
                                                         const char *definition);

/* Submits one task: {"workflow", "version"?, "id"?, "input", "priority"?, "not_before"?, ...}. With
 * wait_ms above 0 the server answers when the task has ended or that time is over. 201 for a new
 * task, 200 for one that exists with the same content, 409 if its content is another. */
INTACT_API enum intact_status intact_client_submit(struct intact_client *c, const char *task_json,
                                                   int64_t wait_ms);

/* Submits many: one such object a line. The body has one line for each, in the same order:
 * {"line", "status", "id", "problem"?}. INTACT_OK says that the call was answered: look at each. */
INTACT_API enum intact_status intact_client_submit_many(struct intact_client *c, const char *ndjson,
                                                        size_t size);

/* The whole record of a task. With wait_ms above 0 as soon as it has ended, or that time is over.
 */
INTACT_API enum intact_status intact_client_get(struct intact_client *c, const char *id,
                                                int64_t wait_ms);

/* Waits until a task has ended (processed, compensated or error), through restarts of servers;
 * INTACT_TIMEOUT after timeout_ms, INTACT_UNREACHABLE if then nobody answers. */
INTACT_API enum intact_status intact_client_wait(struct intact_client *c, const char *id,
                                                 int64_t timeout_ms);

/* Tasks, newest first: {"tasks": [...], "next": "..."}. `query` as in a URL, already escaped:
 * "state=error&workflow=order&limit=20"; NULL: the newest of all. */
INTACT_API enum intact_status intact_client_list(struct intact_client *c, const char *query);

/* Ends an attempt of a step from elsewhere than its agent: `token` is what intact_request_token
 * said there, output_json any JSON value (NULL: null). It needs no other token than that one. Any
 * node takes it, and it may be repeated. The body is {"status": "accepted"}; "repeated" if it has a
 * result already, "late" if it was given up before; 404 if there is no such attempt. */
INTACT_API enum intact_status intact_attempt_complete(struct intact_client *c, const char *token,
                                                      const char *output_json);

/* The same with an error: {"code": "refused", "message": "...", "retryable": false, ...}, as agents
 * hand them in. */
INTACT_API enum intact_status intact_attempt_fail(struct intact_client *c, const char *token,
                                                  const char *error_json);

/* Any other call: "GET", "/v1/workflows", NULL, NULL, 0. `path` with its query, already escaped. */
INTACT_API enum intact_status intact_client_call(struct intact_client *c, const char *method,
                                                 const char *path, const char *content_type,
                                                 const char *body, size_t size);

/* Gets the next bytes of an answer; `whole` is how many there will be, -1: not known. False: no
 * more are wanted, the call ends. */
typedef bool intact_take(void *arg, const char *bytes, size_t size, int64_t whole);

/* A call whose answer may be larger than memory: what a good answer (2xx) brings goes to `take` as
 * it comes, on the calling thread, and none of it is kept; the body of any other is, as always.
 * INTACT_UNREACHABLE if the connection ended before its end, or `take` said no: then what was taken
 * is of no use. It may last as long as it likes; that the server is there is asked by the kernel.
 */
INTACT_API enum intact_status intact_client_fetch(struct intact_client *c, const char *method,
                                                  const char *path, intact_take *take, void *arg);

/* ---- Calls that do not block ----
 *
 *     static void on_answer(const struct intact_reply *reply, void *arg)
 *     {
 *         if (intact_reply_status(reply) == INTACT_OK)
 *             puts(intact_reply_body(reply));
 *     }
 *
 *     intact_client_start_submit(c, task_json, 0, on_answer, NULL);
 *     struct pollfd p = {.fd = intact_client_fd(c), .events = POLLIN};
 *     while (intact_client_drive(c) > 0)
 *         poll(&p, 1, intact_client_timeout_ms(c));
 *
 * Nothing moves but in intact_client_drive: call it whenever the descriptor is readable or the time
 * is over; once too often does no harm. Calls may be answered in any order. The blocking calls may
 * be used between, and do not move the others. */

struct intact_call;  /* one that was started; gone once its function was called */
struct intact_reply; /* what came of it; gone when that function returns */

/* Called once for each call, in intact_client_drive. It may start, cancel and make calls with the
 * client, but not free it. */
typedef void intact_client_done(const struct intact_reply *reply, void *arg);

/* Starts any call, as intact_client_call makes it. What it is given is copied. `wait_ms` is what
 * the path asks the server to wait (?wait=...), by so much longer it is waited for; otherwise 0.
 * NULL: no method, path or function, or libcurl failed. */
INTACT_API struct intact_call *intact_client_start(struct intact_client *c, const char *method,
                                                   const char *path, const char *content_type,
                                                   const char *body, size_t size, int64_t wait_ms,
                                                   intact_client_done *done, void *arg);

/* intact_client_submit and intact_client_get in this way. */
INTACT_API struct intact_call *intact_client_start_submit(struct intact_client *c,
                                                          const char *task_json, int64_t wait_ms,
                                                          intact_client_done *done, void *arg);
INTACT_API struct intact_call *intact_client_start_get(struct intact_client *c, const char *id,
                                                       int64_t wait_ms, intact_client_done *done,
                                                       void *arg);

/* Gives a call up: its function is not called any more. Whether it takes effect is not known. From
 * its own function it does nothing. */
INTACT_API void intact_client_cancel(struct intact_client *c, struct intact_call *call);

/* Connections that these calls share, 1 to 1000, default 16; what has none waits for one. */
INTACT_API void intact_client_set_connections(struct intact_client *c, unsigned connections);

/* One descriptor, always the same, for poll, epoll, libuv, libev and the like: readable, for as
 * long as that is so, when there is something to do. It is the client's: do not read or close it.
 * -1: the process has no descriptor left, or libcurl failed. */
INTACT_API int intact_client_fd(struct intact_client *c);
/* How long to wait for it at most; -1: for ever. Ask anew after each drive; a call that is started
 * makes the descriptor readable. */
INTACT_API int intact_client_timeout_ms(const struct intact_client *c);
/* Does what there is to do, and does not wait. How many calls are not done. From one of its own
 * functions it does nothing else than count. */
INTACT_API size_t intact_client_drive(struct intact_client *c);

/* As of the latest blocking call, above. */
INTACT_API enum intact_status intact_reply_status(const struct intact_reply *r);
INTACT_API const char *intact_reply_body(const struct intact_reply *r);
INTACT_API size_t intact_reply_body_size(const struct intact_reply *r);
INTACT_API int intact_reply_http_status(const struct intact_reply *r);
INTACT_API const char *intact_reply_error(const struct intact_reply *r);
INTACT_API const char *intact_reply_header(const struct intact_reply *r, const char *name);

#ifdef __cplusplus
}
#endif

#endif
