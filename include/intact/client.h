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
 * Calls block. A client keeps one connection open and must be used by one thread at a time; use as
 * many clients as you like. What a call leaves behind (body, status, error) belongs to the client
 * and lives until its next call. Times are milliseconds. Texts are UTF-8.
 *
 * Repeating: submitting the same content under the same id again gives the task that exists, so
 * whoever gives ids of his own may repeat any call that ended INTACT_UNREACHABLE or INTACT_BUSY.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef INTACT_API
    #if defined(__GNUC__)
        #define INTACT_API __attribute__((visibility("default")))
    #else
        #define INTACT_API
    #endif
#endif

struct intact_client;

enum intact_status {
    INTACT_OK,          /* 2xx */
    INTACT_REFUSED,     /* the server said no: 4xx; intact_client_error says why */
    INTACT_BUSY,        /* 429 or 5xx: the same call may succeed later */
    INTACT_TIMEOUT,     /* intact_client_wait: the task has not ended yet; body is its record */
    INTACT_UNREACHABLE, /* no answer: whether the call took effect is not known */
};

/* `server`: "http://127.0.0.1:7420"; NULL: $INTACT_SERVER, then that address. `token`: the bearer
 * token; NULL: $INTACT_TOKEN, then none. Both are copied. NULL if memory or libcurl fail. */
INTACT_API struct intact_client *intact_client_new(const char *server, const char *token);
/* The same with more to say. Fields left NULL have the default; what is not NULL is copied. */
struct intact_client_options {
    const char *server, *token; /* as above */
    const char *ca; /* file of certificates (PEM) that an https:// server's must be signed by;
                       default: $INTACT_CA, then those of the system */
    /* Asked once, when the server first answers 401 and no token was given: a token, which the call
     * is repeated with and the client keeps; from malloc, freed by the client. NULL: there is none.
     * May look at `c`, but not make calls with it. */
    char *(*find_token)(void *arg, const struct intact_client *c);
    void *arg; /* handed to it; not touched */
};
INTACT_API struct intact_client *intact_client_open(const struct intact_client_options *options);

INTACT_API void intact_client_free(struct intact_client *c); /* NULL is fine */

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

/* Waits until a task has ended (processed, compensated or error), through restarts of the server;
 * INTACT_TIMEOUT after timeout_ms, INTACT_UNREACHABLE if then nobody answers. */
INTACT_API enum intact_status intact_client_wait(struct intact_client *c, const char *id,
                                                 int64_t timeout_ms);

/* Tasks, newest first: {"tasks": [...], "next": "..."}. `query` as in a URL, already escaped:
 * "state=error&workflow=order&limit=20"; NULL: the newest of all. */
INTACT_API enum intact_status intact_client_list(struct intact_client *c, const char *query);

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

#ifdef __cplusplus
}
#endif

#endif
