#ifndef INTACT_AGENT_H
#define INTACT_AGENT_H

/*
 * Agents for Intact, in C.
 *
 * An agent wraps the calls to one service or resource. It fetches requests from the server over
 * HTTP, runs a handler for each, and returns the answers:
 *
 *     static void charge(struct intact_request *r, void *arg)
 *     {
 *         ... intact_request_input(r), intact_request_idempotency_key(r) ...
 *         intact_answer(r, "{\"receipt\": 17}");
 *     }
 *
 *     int main(void)
 *     {
 *         struct intact_agent *a = intact_agent_new("payment");
 *
 *         intact_agent_on(a, "charge", INTACT_FORWARD, charge, NULL);
 *         intact_agent_on(a, "refund", INTACT_UNDO, refund, NULL);
 *         return intact_agent_run(a);
 *     }
 *
 * What an agent must observe:
 *
 *  - The same request may come more than once: an answer may get lost, a process may die. All
 *    attempts of a step in one direction carry the same idempotency key. A handler whose effect
 *    must happen once keeps a durable record by that key, for example <intact/ledger.h>.
 *  - A request has a deadline. After it, the request is not started and an answer is not sent: the
 *    server has given up that attempt and may have started another. Deadlines are measured on
 *    CLOCK_BOOTTIME from the start of the agent's own call, so neither clock differences nor a
 *    suspended machine make an agent work on an expired attempt.
 *  - Answers are sent again until the server has acknowledged them, however often the connection
 *    breaks or the server restarts.
 *
 *  - A long step may require heartbeats (`heartbeat` in its definition): then a request without an
 *    acknowledged heartbeat for that time has passed its deadline, too.
 *
 * All times are milliseconds. All strings are UTF-8 and end with a NUL; JSON comes as its text.
 *
 * Thread-safety. An agent is set up and driven by one thread at a time; other threads may only call
 * intact_agent_stop_one meanwhile. Several agents may run in one process, each on its own thread.
 * Each function on a request says which threads may call it.
 *
 * If memory runs out, the process aborts. An agent must survive that like a kill: what must not be
 * lost is with the server and in the agent's ledger.
 */

#include <intact/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct intact_agent;

/* One attempt of a step, passed to the agent. It and its strings live until its handler returns, or
 * if it was kept, until it is answered. */
struct intact_request;

enum intact_direction {
    INTACT_FORWARD, /* take effect */
    INTACT_UNDO,    /* undo an effect that happened, or may have happened */
    INTACT_ANY,     /* for intact_agent_on: both */
};

enum intact_log_level { INTACT_LOG_INFO = 1, INTACT_LOG_WARN, INTACT_LOG_ERROR };

enum intact_agent_result {
    INTACT_AGENT_STOPPED = 0,     /* stopped, the server has every answer */
    INTACT_AGENT_UNDELIVERED = 1, /* stopped, some answers were not delivered */
    INTACT_AGENT_FAILED = 2,      /* could not start, or its servers belong to two installations;
                                   * the log says why */
};

/* Answers `r` (below) before it returns, or keeps it. Runs on a thread of the library's pool or, if
 * handlers are inline, on the thread that drives the agent. On a pool, several calls run in
 * parallel if concurrency is above 1. The pool's threads block all signals. */
typedef void intact_handler(struct intact_request *r, void *arg);

/* Receives log lines ("event=... key=value"). Called on any thread. */
typedef void intact_logger(void *arg, enum intact_log_level level, const char *line);

/* ---- Setting up ----
 *
 * Texts are copied. Settings must be made before the agent starts; later ones are logged and have
 * no effect. An invalid setting (no handler, 1001 places) is reported when the agent starts, with
 * one log line, and the agent does not start. */

/* Creates an agent with that name, as the server knows it. Never NULL. */
INTACT_API struct intact_agent *intact_agent_new(const char *name);

/* Frees the agent; NULL is allowed. If it is running, it is aborted: running handlers are waited
 * for, their answers are lost here, and the server requests them again. Not from a handler, and not
 * while another thread uses the agent. Optional for an agent that runs until the process ends. */
INTACT_API void intact_agent_free(struct intact_agent *a);

/* Sets the handler for an action, as workflows name it, in that direction. `arg` is passed to `run`
 * and not accessed. Each action and direction has one handler; the one for action "*" is called for
 * all actions without their own. */
INTACT_API void intact_agent_on(struct intact_agent *a, const char *action,
                                enum intact_direction direction, intact_handler *run, void *arg);

/* "http://127.0.0.1:7420", or several separated by commas, at most 64. If the server has several
 * nodes, any of them suffices: the agent asks it for the others, works for all live nodes, finds
 * new ones and drops those that are gone. Two or three addresses help if one is unreachable when
 * the agent starts. One node may fill all places. Answers go to the node that sent the request, or
 * to any other if it is gone. Default: $INTACT_SERVER, then the address above. */
INTACT_API void intact_agent_set_server(struct intact_agent *a, const char *urls);

/* False: only the given addresses are called, all of them, and no others are discovered. For nodes
 * whose own addresses mean something else here. Default: true. The token is sent to every address
 * that a configured server names: trust it, or set false. */
INTACT_API void intact_agent_set_discovery(struct intact_agent *a, bool is_on);

/* Bearer token with the role agent:NAME of this agent. Default: $INTACT_TOKEN, then none. While the
 * token is refused (unknown, expired, wrong role), answers are kept and retried without limit. */
INTACT_API void intact_agent_set_token(struct intact_agent *a, const char *token);

/* File of CA certificates (PEM) to verify https:// servers. Default: $INTACT_CA, then the
 * system's. */
INTACT_API void intact_agent_set_ca(struct intact_agent *a, const char *path);

/* The UUID of the intended installation. Default: $INTACT_INSTALLATION, then that of the server
 * that answers first; "any" means the latter. A server of another installation gets no calls for
 * work and no results; the log says so. Without an id, if the given servers belong to two
 * installations when the agent starts, it ends at once. */
INTACT_API void intact_agent_set_installation(struct intact_agent *a, const char *id);

/* Must be unique among the agent's processes and the same after a restart, so that the server knows
 * what was lost. Default: HOST-PID (which changes). At most 150 bytes. */
INTACT_API void intact_agent_set_instance(struct intact_agent *a, const char *instance);

/* Places: concurrent requests including kept ones, 1 to 1000. Default 1. */
INTACT_API void intact_agent_set_concurrency(struct intact_agent *a, unsigned places);

/* True: handlers run one by one on the thread that drives the agent. They must return at once: they
 * have nothing to wait for, or they keep the request and answer later. Default: a pool with one
 * thread for each place. */
INTACT_API void intact_agent_set_inline(struct intact_agent *a, bool is_inline);

/* True: the library sends the heartbeats of requests whose steps require them, every third of the
 * interval, with the handler's latest details. Default: false, the handler sends them. A heartbeat
 * from the library only proves that the process lives and reaches the server. A hanging handler is
 * then detected no earlier than at its complete-by. Use it for handlers that wait for another party
 * which has a time limit of its own. */
INTACT_API void intact_agent_set_heartbeats(struct intact_agent *a, bool are_automatic);

/* How intact_request_retry retries, for all requests: at most `tries_max` times in one attempt (0:
 * as often as time permits), with waits that double from wait_ms to max_wait_ms, each reduced by a
 * random part of up to half. Default: 0, 100, 5000. Waits are 1 ms to 24 hours. */
INTACT_API void intact_agent_set_retry(struct intact_agent *a, unsigned tries_max, int64_t wait_ms,
                                       int64_t max_wait_ms);

/* How long the server may hold a call for work. Default 30 000, at least 1. */
INTACT_API void intact_agent_set_wait_ms(struct intact_agent *a, int64_t ms);

/* How long a stopping agent tries to deliver its last answers to an unreachable server. Default 10
 * 000, at least 1. */
INTACT_API void intact_agent_set_stop_wait_ms(struct intact_agent *a, int64_t ms);

/* Default (and with NULL): standard error. */
INTACT_API void intact_agent_set_log(struct intact_agent *a, intact_logger *log, void *arg);

/* ---- Running ---- */

/* Runs an agent, once, until it is stopped. An unreachable server is retried without limit. The
 * function is a loop over the three functions below. */
INTACT_API enum intact_agent_result intact_agent_run(struct intact_agent *a);

/* Stops every running agent of this process: no more work is fetched, running handlers are waited
 * for, kept requests until they are answered or their deadline passes, and the answers are
 * delivered. If none runs, the next one to start ends at once. Callable on any thread and from a
 * signal handler. */
INTACT_API void intact_agent_stop(void);

/* The same for one agent, whether it is running yet or not. Callable on any thread and from a
 * signal handler, until the agent is freed. */
INTACT_API void intact_agent_stop_one(struct intact_agent *a);

/* ---- Driven by your own loop ----
 *
 *     struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};
 *     while (intact_agent_drive(a))
 *         poll(&p, 1, intact_agent_timeout_ms(a));
 *     return intact_agent_outcome(a);
 *
 * Drive the agent whenever its descriptor is readable or its timeout has passed; extra calls are
 * harmless. The first call of any of these functions starts it. */

/* One descriptor, the same until the agent is freed, for poll, epoll, libuv, libev and the like.
 * Readable (level-triggered) when there is work; never once the agent has ended. It belongs to the
 * agent: do not read or close it. -1: the agent could not start. */
INTACT_API int intact_agent_fd(struct intact_agent *a);

/* The longest time to wait for the descriptor; -1: the agent has ended. Call it after each
 * drive. */
INTACT_API int intact_agent_timeout_ms(struct intact_agent *a);

/* Performs pending work without waiting. Inline handlers run inside this call. False: the agent has
 * ended. From a handler of the agent it does nothing and returns true. */
INTACT_API bool intact_agent_drive(struct intact_agent *a);

/* The result, once intact_agent_drive has returned false. */
INTACT_API enum intact_agent_result intact_agent_outcome(const struct intact_agent *a);

/* ---- Requests ---- */

/* The contents of the request. Pointers are never NULL unless noted. Any thread. */
INTACT_API const char *intact_request_task(const struct intact_request *r);
INTACT_API const char *intact_request_step(const struct intact_request *r);
INTACT_API const char *intact_request_action(const struct intact_request *r);
INTACT_API enum intact_direction intact_request_direction(const struct intact_request *r);
INTACT_API unsigned intact_request_attempt(const struct intact_request *r); /* from 1 */
INTACT_API const char *intact_request_idempotency_key(const struct intact_request *r);
INTACT_API const char *intact_request_input(const struct intact_request *r); /* JSON */
/* For an undo: {"idempotency_key", "input", "output" or null, "attempts", "in_doubt"} of the
 * forward step, as JSON, and its key separately. NULL for a forward request. */
INTACT_API const char *intact_request_forward(const struct intact_request *r);
INTACT_API const char *intact_request_forward_key(const struct intact_request *r);
INTACT_API const char *intact_request_traceparent(const struct intact_request *r); /* or NULL */

/* Resume details from an earlier attempt in this direction, sent with a heartbeat or an error, as
 * JSON; NULL: none. A hint, not a record: the latest may have got lost. */
INTACT_API const char *intact_request_resume(const struct intact_request *r);

/* Identifies this attempt. Its holder may end the attempt, without any other right, through
 * intact_attempt_complete (<intact/client.h>) or POST /v1/attempts/{token}: protect it like a
 * password, and keep it out of logs. Copy it before you answer. */
INTACT_API const char *intact_request_token(const struct intact_request *r);

/* The interval within which each heartbeat must be acknowledged; 0: the step requires none. */
INTACT_API int64_t intact_request_heartbeat_ms(const struct intact_request *r);

/* Time until the deadline; 0 once it has passed, or no heartbeat was acknowledged in time. Any
 * thread. */
INTACT_API int64_t intact_request_time_left_ms(const struct intact_request *r);

/* True if the deadline has passed, the server asked to stop this request (its task is to be
 * undone), or the server gave it up without a heartbeat, which is assumed if none was acknowledged
 * for intact_request_heartbeat_ms. Once true it stays true. A long handler checks it before each
 * effect, and ends if it can do so cleanly. Any thread. */
INTACT_API bool intact_request_should_stop(const struct intact_request *r);

/* Keeps the request beyond the return of its handler: it is answered later, once, on any thread,
 * even before the handler has returned. After answering, the caller must not use it. The request
 * occupies its place until then, even past its deadline. If its agent has ended, the answer is
 * discarded without harm. Call it from the handler, before the request is passed to another
 * thread. */
INTACT_API void intact_request_keep(struct intact_request *r);

typedef void intact_stopper(struct intact_request *r, void *arg);

/* For a kept request: calls `stop` once when intact_request_should_stop becomes true, on the thread
 * that drives the agent and after the handler has returned. `stop` may answer. It is not called
 * once the request was answered; if another thread answers at the same moment, it may be called,
 * with `r` still valid: protect the data behind `arg` yourself. Call from the handler. */
INTACT_API void intact_request_on_stop(struct intact_request *r, intact_stopper *stop, void *arg);

/* Like intact_agent_set_heartbeats, for this request. From its handler. */
INTACT_API void intact_request_set_heartbeats(struct intact_request *r, bool are_automatic);

/* Reports that this request is being worked on, and its progress. Shown in the task's record and
 * event stream; it never moves the deadline. Returns at once: the latest heartbeat is sent soon, at
 * most a few times a second, and is not sent again if lost. The server's answer may ask to stop
 * (intact_request_should_stop). `progress_json` is any JSON value of at most 2048 bytes, `message`
 * a text of which 256 bytes are sent; both may be NULL and are copied. False: progress is not JSON
 * or too long; nothing is sent. Any thread, until the request is answered or, unless kept, its
 * handler has returned. It is sent when the agent is driven, so not while an inline handler
 * occupies the thread. */
INTACT_API bool intact_heartbeat(struct intact_request *r, const char *progress_json,
                                 const char *message);

/* The same, with `resume_json` (any JSON value of at most 2048 bytes) for the next attempt if this
 * one fails or is given up: see intact_request_resume. The latest value goes with all later
 * heartbeats and with a retryable error, so it need not be repeated; NULL: unchanged. If the step
 * requires heartbeats, send at least three in its interval. False: progress or resume is not JSON
 * or too long; nothing is sent or stored. */
INTACT_API bool intact_heartbeat_resume(struct intact_request *r, const char *progress_json,
                                        const char *message, const char *resume_json);

/* ---- Retries within one attempt ----
 *
 *     do {
 *         intact_request_try(r);
 *         if (call_the_service(intact_request_idempotency_key(r)) == DONE) {
 *             intact_answer(r, "\"done\"");
 *             return;
 *         }
 *     } while (intact_request_retry(r, 0));
 *     intact_answer_error(r, "unreachable", NULL, INTACT_RETRYABLE);
 *
 * For a service that is unavailable for a moment. The server also retries after the agent has given
 * up, but that costs a durable write, counts as a failure of the step, and may go to another
 * instance. The task's record shows the number of tries of an attempt as `tries`. */

/* Begins a try. Returns its number within this attempt, from 1. Any thread, one at a time. */
INTACT_API unsigned intact_request_try(struct intact_request *r);

/* After a failed try: the time to wait before the next; -1: give up. It is -1 if the request should
 * stop, the allowed tries are used up, or the wait plus a try as long as the last one would exceed
 * the deadline. `after_ms`: a minimum that the service asked for; 0: none. Does not wait itself:
 * for kept requests, on a loop with timers. The same thread as the try. */
INTACT_API int64_t intact_request_retry_ms(struct intact_request *r, int64_t after_ms);

/* The same, and waits, for handlers that may block. True: try again now. False: give up. Returns at
 * once if asked to stop. */
INTACT_API bool intact_request_retry(struct intact_request *r, int64_t after_ms);

/* Like intact_agent_set_retry, for this request. An invalid value is replaced by the nearest valid
 * one. From its handler, before the first try. */
INTACT_API void intact_request_set_retry(struct intact_request *r, unsigned tries_max,
                                         int64_t wait_ms, int64_t max_wait_ms);

/* Sleeps until the time has passed or intact_request_should_stop becomes true. Not on the thread
 * that drives the agent. False: it should stop. */
INTACT_API bool intact_request_sleep(struct intact_request *r, int64_t ms);

/* The retry rule as a pure function: after `tries` (from 1) failed, the time to wait before the
 * next; -1: give up, because tries_max was reached (0: no limit) or the wait is not less than
 * left_ms. `chance`: any uniformly distributed number. */
INTACT_API int64_t intact_retry_wait_ms(unsigned tries, unsigned tries_max, int64_t wait_ms,
                                        int64_t max_wait_ms, int64_t left_ms, uint64_t chance);

/* ---- Answers ----
 *
 * Exactly one of these, before the handler returns or, for a kept request, at any later time on any
 * thread. The texts are copied. For a request that is not kept, the first answer counts, and a
 * handler that returns without one has answered with a retryable error "no_answer" of unknown
 * effect. */

INTACT_API void intact_answer(struct intact_request *r, const char *output_json); /* NULL: null */

/* Attributes of an error; combine with |. */
enum intact_error_flags {
    INTACT_PERMANENT = 0,      /* a retry would not help, and nothing has changed */
    INTACT_RETRYABLE = 1,      /* a retry may help; it may have taken effect */
    INTACT_EFFECT_NONE = 2,    /* this attempt certainly changed nothing */
    INTACT_EFFECT_UNKNOWN = 4, /* it may have taken effect */
};

/* `code`: a short word, "card_declined"; NULL: "error". `message`: for people; may be NULL. */
INTACT_API void intact_answer_error(struct intact_request *r, const char *code, const char *message,
                                    unsigned flags);

/* A retryable error, to be retried no sooner than after that time. */
INTACT_API void intact_answer_retry(struct intact_request *r, const char *code, const char *message,
                                    unsigned flags, int64_t after_ms);

/* An error with `resume_json` for the next attempt (intact_request_resume): any JSON value of at
 * most 2048 bytes; NULL: the latest from a heartbeat. An invalid or too long value is left out.
 * `flags` say whether it is retryable; after_ms 0: as the server's rule says. */
INTACT_API void intact_answer_error_resume(struct intact_request *r, const char *code,
                                           const char *message, unsigned flags, int64_t after_ms,
                                           const char *resume_json);

/* This agent is done with the request, and the holder of its token (intact_request_token) will end
 * it: a person, or a service that calls back. It occupies no place any more, survives this process,
 * and ends at its deadline if no result comes. It is not asked to stop. */
INTACT_API void intact_answer_elsewhere(struct intact_request *r);

INTACT_API void intact_answer_nothing(struct intact_request *r); /* it ends at its deadline */

#ifdef __cplusplus
}
#endif

#endif
