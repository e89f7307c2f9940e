#ifndef INTACT_CLIENT_H
#define INTACT_CLIENT_H

/*
 * A client of an Intact server: stores workflows, submits tasks, reads their state.
 *
 *     struct intact_client *c = intact_client_new(NULL, NULL);
 *
 *     if (intact_client_submit(c, "{\"workflow\": \"order\", \"input\": {...}}", 0) != INTACT_OK)
 *         fprintf(stderr, "%s\n", intact_client_error(c));
 *     else
 *         puts(intact_client_body(c)); // the task, as JSON
 *     intact_client_free(c);
 *
 * These calls block, over one persistent connection. Their results (body, status, error) belong to
 * the client and live until its next call. Calls that do not block are below: any number at a time,
 * driven by your own loop.
 *
 * Thread-safety: a client is used by one thread at a time; use any number of clients.
 *
 * Times are milliseconds. Texts are UTF-8 and copied where necessary.
 *
 * Several servers: the nodes of one installation, separated by commas. A call goes to the one that
 * answered last, and to the next if that one cannot be reached, hangs or answers 503: at once if
 * the call may be repeated (reads, and calls with a name or id; a submission without an id gets
 * one), otherwise only if the first has certainly not begun it. Before its first call the client
 * asks each server for its installation (GET /healthz).
 *
 * Installations: a client uses the one that was set, otherwise that of the server that answered
 * first. A server of another installation is not used; if no other takes the call, the result is
 * INTACT_REFUSED, and the error names both.
 *
 * Repeating: submitting the same content under the same id again returns the existing task. So with
 * ids of your own, any call that ended INTACT_UNREACHABLE or INTACT_BUSY may be repeated.
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
    INTACT_REFUSED,     /* 4xx: the server refused, intact_client_error says why. Or it belongs to
                         * another installation */
    INTACT_BUSY,        /* 429 or 5xx: the same call may succeed later */
    INTACT_TIMEOUT,     /* intact_client_wait: the task has not ended yet; body is its record */
    INTACT_UNREACHABLE, /* no answer: it is unknown whether the call took effect */
};

/* `server`: "http://127.0.0.1:7420", or several; NULL: $INTACT_SERVER, then that address. `token`:
 * the bearer token; NULL: $INTACT_TOKEN, then none. Both are copied. NULL if memory or libcurl
 * fails. */
INTACT_API struct intact_client *intact_client_new(const char *server, const char *token);

/* File of CA certificates (PEM) to verify https:// servers. Default: $INTACT_CA, then the system's.
 * NULL changes nothing. */
INTACT_API void intact_client_set_ca(struct intact_client *c, const char *path);

/* The UUID of the intended installation. Default: $INTACT_INSTALLATION, then that of the server
 * that answers first; "any" means the latter. NULL: the default. With an invalid id all calls are
 * refused. Not while calls are running. */
INTACT_API void intact_client_set_installation(struct intact_client *c, const char *id);
/* The installation that the client uses; "" if not known yet. */
INTACT_API const char *intact_client_installation(const struct intact_client *c);

/* Called once, when the server first answers 401 and no token was given. Returns a token, which the
 * client keeps and repeats the call with; allocated by malloc, freed by the client. NULL: there is
 * none. It may inspect `c`, which shows that answer, but must not make calls with it. */
typedef char *intact_token_finder(void *arg, const struct intact_client *c);
INTACT_API void intact_client_set_find_token(struct intact_client *c, intact_token_finder *find,
                                             void *arg);

/* Frees it; NULL is allowed. Started calls that are not done are abandoned without notice. */
INTACT_API void intact_client_free(struct intact_client *c);

INTACT_API const char *intact_client_server(const struct intact_client *c); /* in use */

/* The results of the latest call. The error is a text for people: what failed and what to do about
 * it; empty after INTACT_OK. */
INTACT_API const char *intact_client_body(const struct intact_client *c); /* ends with a NUL */
INTACT_API size_t intact_client_body_size(const struct intact_client *c);
INTACT_API int intact_client_http_status(const struct intact_client *c); /* 0: no answer */
INTACT_API const char *intact_client_error(const struct intact_client *c);
/* A header of the answer, by its case-insensitive name; NULL if there is none. */
INTACT_API const char *intact_client_header(const struct intact_client *c, const char *name);

/* Stores a definition (JSON, or YAML if it does not begin with a brace): 201 and the new version,
 * 200 if the newest version has the same content. */
INTACT_API enum intact_status intact_client_put_workflow(struct intact_client *c, const char *name,
                                                         const char *definition);

/* Submits one task: {"workflow", "version"?, "id"?, "input", "priority"?, "not_before"?, ...}. With
 * wait_ms above 0 the server answers when the task has ended or the time has passed. 201 for a new
 * task, 200 if it exists with the same content, 409 if the content differs. */
INTACT_API enum intact_status intact_client_submit(struct intact_client *c, const char *task_json,
                                                   int64_t wait_ms);

/* Submits many tasks, one such object a line. The body has one line for each, in the same order:
 * {"line", "status", "id", "problem"?}. INTACT_OK means that the call was answered: check each
 * line. */
INTACT_API enum intact_status intact_client_submit_many(struct intact_client *c, const char *ndjson,
                                                        size_t size);

/* The whole record of a task. With wait_ms above 0 it is returned when the task has ended or the
 * time has passed. */
INTACT_API enum intact_status intact_client_get(struct intact_client *c, const char *id,
                                                int64_t wait_ms);

/* Waits until a task has ended (processed, compensated or error), across restarts of servers;
 * INTACT_TIMEOUT after timeout_ms, INTACT_UNREACHABLE if no server answers then. */
INTACT_API enum intact_status intact_client_wait(struct intact_client *c, const char *id,
                                                 int64_t timeout_ms);

/* Tasks, newest first: {"tasks": [...], "next": "..."}. `query` as in a URL, already escaped:
 * "state=error&workflow=order&limit=20"; NULL: the newest of all. */
INTACT_API enum intact_status intact_client_list(struct intact_client *c, const char *query);

/* Sends a signal to a task: the first step that waits for that name takes it, or it is kept.
 * data_json is any JSON value (NULL: null). `key` (1 to 128 printable ASCII characters without
 * spaces) names the signal: the same key again is the same signal, so the call may be repeated;
 * NULL: it has no name of its own. INTACT_OK means that it is stored. */
INTACT_API enum intact_status intact_client_signal(struct intact_client *c, const char *id,
                                                   const char *name, const char *data_json,
                                                   const char *key);

/* What waits for the decision of this token's person: {"approvals": [...], "next": "..."}. `query`
 * as in a URL, already escaped: "task=e-1"; NULL: the newest. */
INTACT_API enum intact_status intact_client_approvals(struct intact_client *c, const char *query);

/* Agrees to what a step asks, or rejects it, for the person of this token. `asking`: the number of
 * the question that was read, from intact_client_approvals(); if it was asked anew meanwhile, the
 * decision is refused. 0: whichever it is, and the call is not repeated. A rejection needs a
 * comment; NULL: none. INTACT_OK means that it is stored. */
INTACT_API enum intact_status intact_client_approve(struct intact_client *c, const char *id,
                                                    const char *step, uint32_t asking,
                                                    const char *comment);
INTACT_API enum intact_status intact_client_reject(struct intact_client *c, const char *id,
                                                   const char *step, uint32_t asking,
                                                   const char *comment);

/* Ends an attempt of a step in place of its agent: `token` is what intact_request_token returned
 * there, output_json any JSON value (NULL: null). It needs no other token. Any node accepts it, and
 * it may be repeated. The body is {"status": "accepted"}; "repeated" if there is a result already,
 * "late" if the attempt was given up before; 404 if there is no such attempt. */
INTACT_API enum intact_status intact_attempt_complete(struct intact_client *c, const char *token,
                                                      const char *output_json);

/* The same with an error, as agents send it: {"code": "refused", "message": "...", "retryable":
 * false, ...}. */
INTACT_API enum intact_status intact_attempt_fail(struct intact_client *c, const char *token,
                                                  const char *error_json);

/* Any other call: "GET", "/v1/workflows", NULL, NULL, 0. `path` includes its query, already
 * escaped. */
INTACT_API enum intact_status intact_client_call(struct intact_client *c, const char *method,
                                                 const char *path, const char *content_type,
                                                 const char *body, size_t size);

/* Receives the next bytes of an answer; `whole` is the total size, -1: unknown. False ends the
 * call. */
typedef bool intact_take(void *arg, const char *bytes, size_t size, int64_t whole);

/* A call whose answer may exceed memory: the body of a successful answer (2xx) goes to `take` as it
 * arrives, on the calling thread, and is not kept; other bodies are kept as usual.
 * INTACT_UNREACHABLE if the connection broke before the end, or `take` returned false: then the
 * data is incomplete. There is no time limit; the kernel checks that the server is alive. */
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
 * Calls make progress only in intact_client_drive: call it whenever the descriptor is readable or
 * the timeout has passed; extra calls are harmless. Calls may complete in any order. Blocking calls
 * may be made in between, and do not advance the others. */

struct intact_call;  /* a started call; invalid once its function was called */
struct intact_reply; /* its result; invalid when that function returns */

/* Called once for each call, in intact_client_drive. It may start, cancel and make calls with the
 * client, but not free it. */
typedef void intact_client_done(const struct intact_reply *reply, void *arg);

/* Starts any call, like intact_client_call. Arguments are copied. `wait_ms` is what the path asks
 * the server to wait (?wait=...), which extends the timeout; otherwise 0. NULL: no method, path or
 * function, or libcurl failed. */
INTACT_API struct intact_call *intact_client_start(struct intact_client *c, const char *method,
                                                   const char *path, const char *content_type,
                                                   const char *body, size_t size, int64_t wait_ms,
                                                   intact_client_done *done, void *arg);

/* intact_client_submit and intact_client_get as calls that do not block. */
INTACT_API struct intact_call *intact_client_start_submit(struct intact_client *c,
                                                          const char *task_json, int64_t wait_ms,
                                                          intact_client_done *done, void *arg);
INTACT_API struct intact_call *intact_client_start_get(struct intact_client *c, const char *id,
                                                       int64_t wait_ms, intact_client_done *done,
                                                       void *arg);

/* Abandons a call: its function is not called any more. It is unknown whether the call takes
 * effect. Does nothing inside the call's own function. */
INTACT_API void intact_client_cancel(struct intact_client *c, struct intact_call *call);

/* Number of connections that these calls share, 1 to 1000, default 16; other calls wait for one. */
INTACT_API void intact_client_set_connections(struct intact_client *c, unsigned connections);

/* One descriptor, always the same, for poll, epoll, libuv, libev and the like. Readable
 * (level-triggered) when there is work. It belongs to the client: do not read or close it. -1: the
 * process has no descriptor left, or libcurl failed. */
INTACT_API int intact_client_fd(struct intact_client *c);
/* The longest time to wait for the descriptor; -1: unlimited. Call it after each drive; starting a
 * call makes the descriptor readable. */
INTACT_API int intact_client_timeout_ms(const struct intact_client *c);
/* Performs pending work without waiting. Returns the number of calls that are not done. Inside a
 * call's function it only returns that number. */
INTACT_API size_t intact_client_drive(struct intact_client *c);

/* Like those of the latest blocking call, above. */
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
