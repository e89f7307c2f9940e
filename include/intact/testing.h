#ifndef INTACT_TESTING_H
#define INTACT_TESTING_H

/*
 * Tests of agents in C, and of workflows with them.
 *
 * Against a real server whose time is virtual (`intact serve --virtual-time`): a workflow that
 * takes a month ends at once.
 *
 *     struct intact_testing *t = intact_testing_new();
 *
 *     if (!intact_testing_start(t) || !intact_testing_define(t, "order.yaml"))
 *         fail(intact_testing_error(t));
 *     intact_testing_agent(t, payment);            // an agent with its handlers, not started
 *     intact_client_submit(intact_testing_client(t), "{\"workflow\": \"order\", \"id\": \"o-1\"}",
 * 0); intact_testing_advance(t, "2d", false); const char *task = intact_testing_ended(t, "o-1"); //
 * its record, as JSON intact_testing_free(t);
 *
 * The server keeps nothing, and ends with the process, however that ends. Its clock moves while
 * intact_testing_ended waits, and by intact_testing_advance; else it stands still. An agent at work
 * holds it. Each test can have a server of its own, on a port of its own.
 *
 * Without a server: intact_testing_handle calls one handler with a request that no server sent.
 *
 * Thread-safety: one `struct intact_testing` is used by one thread at a time. Texts are copied.
 */

#include <intact/agent.h>
#include <intact/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct intact_testing;

/* Never NULL. */
INTACT_API struct intact_testing *intact_testing_new(void);

/* Stops its agents and frees them, and ends its server. NULL is allowed. An agent one of whose
 * handlers is still at work after ten seconds is left to its thread, and standard error says so; if
 * the server has ended, after one second. */
INTACT_API void intact_testing_free(struct intact_testing *t);

/* Before it starts. The program intact; default: $INTACT_PROGRAM, then the one in $PATH. / The time
 * at which the server begins, such as "2026-01-01T09:00:00Z"; default: now. / When its clock moves
 * by itself: "waits" (while a client waits for the end of a task), "auto" (whenever nothing is
 * under way) or "manual"; default "waits". */
INTACT_API void intact_testing_set_program(struct intact_testing *t, const char *path);
INTACT_API void intact_testing_set_time(struct intact_testing *t, const char *at);
INTACT_API void intact_testing_set_clock(struct intact_testing *t, const char *mode);

/* How long each of these waits may take in real time: for the server to start (by default 30 s),
 * for the end of a task (60 s), for handlers at work when it is freed (10 s). 0: those again. */
INTACT_API void intact_testing_set_patience_ms(struct intact_testing *t, int64_t ms);

/* The functions from here to intact_testing_ended return false or NULL if they fail;
 * intact_testing_error says why, for a person. If the server has ended, they do so at once. */
INTACT_API bool intact_testing_start(struct intact_testing *t);
INTACT_API const char *intact_testing_error(const struct intact_testing *t);

/* Its address; "" before it has started. / A client of it, which stays its own. */
INTACT_API const char *intact_testing_url(const struct intact_testing *t);
INTACT_API struct intact_client *intact_testing_client(struct intact_testing *t);

/* Stores the definition in that file, under the name that it says itself. */
INTACT_API bool intact_testing_define(struct intact_testing *t, const char *path);

/* Takes an agent that was set up and not started, and runs it on a thread of its own, for this
 * server, until intact_testing_free frees it. */
INTACT_API bool intact_testing_agent(struct intact_testing *t, struct intact_agent *a);

/* Lets time pass, for so long ("2d", "90m") or until then ("2026-03-01T09:00:00Z"), by all that is
 * due on the way, and returns when what that began is done. Agents at work are waited for, up to
 * ten seconds of real time; then it fails. It also fails if all of it takes more than a minute of
 * real time: advance by less, several times. `regardless`: what is at work now, or waits for an
 * agent, does not matter: for agents that hang or are missing. */
INTACT_API bool intact_testing_advance(struct intact_testing *t, const char *moment,
                                       bool regardless);

/* Waits for the end of a task while time passes. Its record as JSON, valid until the next call. It
 * fails if the task does not end by itself, because it waits for something that no time brings, and
 * after a minute of real time, if a handler hangs: then it says what holds the clock. */
INTACT_API const char *intact_testing_ended(struct intact_testing *t, const char *task);

/* Calls a handler without any server, on this thread, and returns its answer, to be freed:
 * {"output": ...}, {"error": {"code", "message", "retryable", ...}} or {"elsewhere": true}.
 * `request_json` has what the request is to say: "input", "action", "task", "step", "attempt",
 * "idempotency_key", "resume", "heartbeat_ms", "time_left_ms", "traceparent", and for an undo
 * "forward" with "input", "output", "in_doubt"; NULL: nothing. What is left out has a value that
 * fits. A kept request is waited for. NULL: it is no JSON object, or the time is over. */
INTACT_API char *intact_testing_handle(intact_handler *run, void *arg, const char *request_json);

#ifdef __cplusplus
}
#endif

#endif
