#ifndef INTACT_AGENT_H
#define INTACT_AGENT_H

/*
 * Agents for Intact, in C.
 *
 * An agent wraps the calls to one service or resource. It fetches requests from the server over
 * HTTP, runs a handler for each, and hands the answers back:
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
 * What an agent has to know:
 *
 *  - The same request may come more than once: an answer may get lost, a process may die. All
 *    attempts of a step in one direction carry the same idempotency key. A handler whose effect
 *    must happen once keeps a durable record by that key; <intact/ledger.h> is one.
 *  - A request has until its deadline. What is past it is not started, and an answer that comes
 *    later is not sent: the server has given up that attempt, and may have given it to another.
 *    Deadlines are kept on CLOCK_BOOTTIME from the moment of our own call, so that neither clocks
 *    that disagree nor a suspended machine make an agent work on what is no longer its own.
 *  - Answers are sent again until the server has acknowledged them, however often the connection
 *    breaks or the server restarts.
 *
 *  - A long step may want heartbeats (`heartbeat` in its definition): then a request of which none
 *    was acknowledged for so long has passed its deadline, too.
 *
 * All times are milliseconds. All strings are UTF-8 and end with a NUL; JSON comes as its text.
 *
 * Thread-safety. An agent is set up and driven by one thread at a time; only intact_agent_stop_one
 * may be called by others meanwhile. Several agents may run in one process, each on a thread of
 * its own. Of a request each function says who may call it.
 *
 * When memory runs out the process aborts, as it may at any moment by a kill: what an agent must
 * not lose is with the server, and in its ledger.
 */

#include <intact/api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct intact_agent;

/* One step's attempt, handed to us. It lives until its handler returns, and if it was kept, until
 * it was answered; its strings live as long. */
struct intact_request;

enum intact_direction {
    INTACT_FORWARD, /* take effect */
    INTACT_UNDO,    /* undo an effect that happened, or may have happened */
    INTACT_ANY,     /* for intact_agent_on: whichever */
};

enum intact_log_level { INTACT_LOG_INFO = 1, INTACT_LOG_WARN, INTACT_LOG_ERROR };

enum intact_agent_result {
    INTACT_AGENT_STOPPED = 0,     /* stopped, every answer is with the server */
    INTACT_AGENT_UNDELIVERED = 1, /* stopped, some answers could not be delivered */
    INTACT_AGENT_FAILED = 2,      /* could not start, or its servers belong to two installations;
                                     the log says why */
};

/* Answers `r` (below) before it returns, or keeps it. Called on a thread of the library's pool, or,
 * if the agent runs its handlers inline, on the thread that drives it; on a pool several calls at a
 * time if concurrency is above 1. The pool's threads block all signals. */
typedef void intact_handler(struct intact_request *r, void *arg);

/* Where lines go ("event=... key=value"). Called on any thread. */
typedef void intact_logger(void *arg, enum intact_log_level level, const char *line);

/* ---- Setting up ----
 *
 * Texts are copied. A setting that makes no sense (no handler, a thousand and one places) is
 * reported when the agent starts, with one line in the log, and it does not start then. Settings
 * are made before it starts; later ones are logged and change nothing. */

/* An agent of that name, as the server knows it. Never NULL. */
INTACT_API struct intact_agent *intact_agent_new(const char *name);

/* Frees it. One that is still at work is broken off: handlers that run are waited for, what they
 * say is lost here and asked of the agent again by the server. NULL is fine. Not from a handler,
 * nor while another thread uses it. Who runs one agent to the end of the process may leave it out.
 */
INTACT_API void intact_agent_free(struct intact_agent *a);

/* A handler for an action, as workflows name it, in that direction. `arg` is handed to `run` and
 * not touched. For each action and direction there is one handler; that of the action "*" is called
 * for all that have none of their own. */
INTACT_API void intact_agent_on(struct intact_agent *a, const char *action,
                                enum intact_direction direction, intact_handler *run, void *arg);

/* "http://127.0.0.1:7420", or several with commas between, at most 64. If the server has several
 * nodes, any of them will do: the agent asks it for the others, works for all that are alive, finds
 * new ones and leaves those that are gone; two or three addresses are for the case that one cannot
 * be reached when the agent starts. A node may fill all places; answers go to the node that asked,
 * or if it is gone to any other. Default: $INTACT_SERVER, then that address. */
INTACT_API void intact_agent_set_server(struct intact_agent *a, const char *urls);

/* False: only the addresses given are called, all of them, and nobody is asked for others; for
 * nodes that go by addresses which mean something else here. Default: true. The token is sent to
 * every address that a server of yours names: trust it, or switch this off. */
INTACT_API void intact_agent_set_discovery(struct intact_agent *a, bool is_on);

/* Bearer token with the role agent:NAME of this agent. Default: $INTACT_TOKEN, then none. While it
 * is refused (unknown, expired, another role), answers are kept and tried again for ever. */
INTACT_API void intact_agent_set_token(struct intact_agent *a, const char *token);

/* File of certificates (PEM) that an https:// server's must be signed by. Default: $INTACT_CA, then
 * those of the system. */
INTACT_API void intact_agent_set_ca(struct intact_agent *a, const char *path);

/* The id of the installation that is meant, a UUID. Default: $INTACT_INSTALLATION, then the one of
 * the server that answers first; "any" is as if there were neither. A server of another
 * installation gets no calls for work and no results; the log says so. If nothing is said, several
 * servers are given, and they belong to two installations when the agent starts, it ends at once.
 */
INTACT_API void intact_agent_set_installation(struct intact_agent *a, const char *id);

/* Unique among the agent's processes and the same after a restart, so that the server knows what
 * was lost. Default: HOST-PID (not the same). At most 150 bytes. */
INTACT_API void intact_agent_set_instance(struct intact_agent *a, const char *instance);

/* Places: requests in work at a time, 1 to 1000, kept ones among them. Default 1. */
INTACT_API void intact_agent_set_concurrency(struct intact_agent *a, unsigned places);

/* True: handlers run one by one on the thread that drives the agent, for those that return at once
 * and never wait: because there is nothing to wait for, or because they keep the request and
 * answer later. Default: on a pool with a thread for each place. */
INTACT_API void intact_agent_set_inline(struct intact_agent *a, bool is_inline);

/* True: for requests in work whose steps have a heartbeat, beats are sent by the library, each
 * third of its time, with the latest that the handler said with its own. Default: false, the
 * handler beats. Mind what is proved by that: a beat of the library says that this process lives
 * and reaches the server, and nothing of a handler that hangs, which then is found at its
 * complete-by only. For handlers that wait for somebody else, who has a time limit of his own. */
INTACT_API void intact_agent_set_heartbeats(struct intact_agent *a, bool are_automatic);

/* How intact_request_retry tries again, for all requests: at most so many tries in one attempt (0:
 * as many as there is time for), with waits that double from wait_ms to max_wait_ms, each less a
 * random part of up to its half. Default: 0, 100, 5000; waits are 1 to 24 hours. */
INTACT_API void intact_agent_set_retry(struct intact_agent *a, unsigned tries_max, int64_t wait_ms,
                                       int64_t max_wait_ms);

/* How long a call for work may be parked by the server. Default 30 000, at least 1. */
INTACT_API void intact_agent_set_wait_ms(struct intact_agent *a, int64_t ms);

/* How long a stopping agent tries to deliver its last answers if the server cannot be reached.
 * Default 10 000, at least 1. */
INTACT_API void intact_agent_set_stop_wait_ms(struct intact_agent *a, int64_t ms);

/* Default (and with NULL): standard error. */
INTACT_API void intact_agent_set_log(struct intact_agent *a, intact_logger *log, void *arg);

/* ---- Running ---- */

/* Runs an agent until it is stopped; once. A server that cannot be reached is tried again for ever.
 * It is a loop over the three functions below. */
INTACT_API enum intact_agent_result intact_agent_run(struct intact_agent *a);

/* Stops every agent of this process that runs: no more work is fetched, handlers that run are
 * waited for, kept requests until they are answered or their deadline has passed, and the answers
 * delivered. If none runs, the next one to start is over at once. May be called on any thread and
 * from a signal handler. */
INTACT_API void intact_agent_stop(void);

/* The same for one, whether it runs already or not. May be called on any thread and from a signal
 * handler, until it is freed. */
INTACT_API void intact_agent_stop_one(struct intact_agent *a);

/* ---- Driven by your own loop ----
 *
 *     struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};
 *     while (intact_agent_drive(a))
 *         poll(&p, 1, intact_agent_timeout_ms(a));
 *     return intact_agent_outcome(a);
 *
 * Drive the agent whenever its descriptor is readable or its time is over; once too often does no
 * harm. Whichever call comes first starts it. */

/* One descriptor, the same until the agent is freed, for poll, epoll, libuv, libev and the like:
 * readable, for as long as that is so, when there is something to do; never when the agent is over.
 * It is the agent's: do not read or close it. -1: the agent could not start. */
INTACT_API int intact_agent_fd(struct intact_agent *a);

/* How long to wait for it at most; -1: the agent is over. Ask anew after each drive. */
INTACT_API int intact_agent_timeout_ms(struct intact_agent *a);

/* Does what there is to do, and does not wait. Handlers that run inline are called in here. False:
 * the agent is over. From one of its own handlers it does nothing, and says true. */
INTACT_API bool intact_agent_drive(struct intact_agent *a);

/* How it ended, once intact_agent_drive has said false. */
INTACT_API enum intact_agent_result intact_agent_outcome(const struct intact_agent *a);

/* ---- Requests ---- */

/* What is asked. Pointers are never NULL unless said so. Any thread. */
INTACT_API const char *intact_request_task(const struct intact_request *r);
INTACT_API const char *intact_request_step(const struct intact_request *r);
INTACT_API const char *intact_request_action(const struct intact_request *r);
INTACT_API enum intact_direction intact_request_direction(const struct intact_request *r);
INTACT_API unsigned intact_request_attempt(const struct intact_request *r); /* from 1 */
INTACT_API const char *intact_request_idempotency_key(const struct intact_request *r);
INTACT_API const char *intact_request_input(const struct intact_request *r); /* JSON */
/* Of an undo: {"idempotency_key", "input", "output" or null, "attempts", "in_doubt"} of the step
 * going forward, as JSON, and its key by itself. NULL for a request going forward. */
INTACT_API const char *intact_request_forward(const struct intact_request *r);
INTACT_API const char *intact_request_forward_key(const struct intact_request *r);
INTACT_API const char *intact_request_traceparent(const struct intact_request *r); /* or NULL */

/* What an earlier attempt in this direction left for the next one, with a heartbeat or an error, as
 * JSON; NULL: nothing. A hint, and no record: the latest may have got lost. */
INTACT_API const char *intact_request_resume(const struct intact_request *r);

/* Names this attempt. Who has it may end the attempt, without any other right, through
 * intact_attempt_complete (<intact/client.h>) or POST /v1/attempts/{token}: keep it as you would a
 * password, and out of logs. Copy it before you answer. */
INTACT_API const char *intact_request_token(const struct intact_request *r);

/* Within which a heartbeat has to be acknowledged, again and again; 0: the step wants none. */
INTACT_API int64_t intact_request_heartbeat_ms(const struct intact_request *r);

/* Until the deadline; 0 once it has passed, or no heartbeat was acknowledged in time. Any thread.
 */
INTACT_API int64_t intact_request_time_left_ms(const struct intact_request *r);

/* The deadline has passed, or the server asked to stop this request (its task is to be undone), or
 * gave it up because no heartbeat came: as far as we know, if none was acknowledged for
 * intact_request_heartbeat_ms. Once true it stays so. A long handler looks at it before each
 * effect, and gives up if it can do so cleanly. Any thread. */
INTACT_API bool intact_request_should_stop(const struct intact_request *r);

/* Keeps the request beyond the return of its handler: it is answered later, once, by any thread,
 * even before the handler has returned. Whoever answers does not use it afterwards. It takes its
 * place until then, also past its deadline. If its agent has ended meanwhile, the answer is lost
 * without harm. From the handler, before anybody else is told of the request. */
INTACT_API void intact_request_keep(struct intact_request *r);

typedef void intact_stopper(struct intact_request *r, void *arg);

/* For a request that is kept: calls `stop` once when intact_request_should_stop has become true, on
 * the thread that drives the agent and after the handler has returned. It may answer. It is not
 * called once the request was answered; if that happens on another thread, at that very moment, it
 * may be, with `r` still valid: what lies behind `arg` is yours to guard. From the handler. */
INTACT_API void intact_request_on_stop(struct intact_request *r, intact_stopper *stop, void *arg);

/* As intact_agent_set_heartbeats, for this request. From its handler. */
INTACT_API void intact_request_set_heartbeats(struct intact_request *r, bool are_automatic);

/* Tells the server that this request is being worked on, and how far it is: shown in the task's
 * record and its stream of events, and nothing else; it never moves the deadline. Returns at once:
 * it is sent soon, at most a few times a second, the latest one only, and one that gets lost is not
 * sent again. The server's answer may ask to stop (intact_request_should_stop). `progress_json` is
 * any JSON value of at most 2048 bytes, `message` a text of which 256 bytes are sent; both may be
 * NULL. Both are copied. False: progress is not JSON, or too long; nothing is sent. Any thread,
 * until the request is answered or its handler, unless it keeps it, has returned. It is sent when
 * the agent is driven: not while a handler that runs inline has the thread. */
INTACT_API bool intact_heartbeat(struct intact_request *r, const char *progress_json,
                                 const char *message);

/* The same, and leaves `resume_json` (any JSON value of at most 2048 bytes) for the next attempt,
 * should this one fail or be given up: intact_request_resume. The latest one goes with all later
 * heartbeats, and with a retryable error, so that it need not be said again; NULL: as before. Where
 * the step has a heartbeat, beat at least three times in its time. False: progress or resume is not
 * JSON, or too long; nothing is sent or left. */
INTACT_API bool intact_heartbeat_resume(struct intact_request *r, const char *progress_json,
                                        const char *message, const char *resume_json);

/* ---- Trying again, within one attempt ----
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
 * For a service that is away for a moment. The server tries again by itself, too, after the agent
 * has given up: that costs a durable write, counts as a failure of the step, and may go to another
 * instance. How many tries an attempt made is shown in its record as `tries`. */

/* Begins a try. Which one of this attempt it is, from 1. Any thread, one at a time. */
INTACT_API unsigned intact_request_try(struct intact_request *r);

/* A try has failed: how long to wait before the next; -1: give up. That is so if it is to stop,
 * there were as many tries as allowed, or the wait and a try as long as the last one would go
 * beyond the deadline. `after_ms`: no sooner than that, as the service wished; 0: it did not. Does
 * not wait itself: for kept requests, on a loop with timers. The same thread as the try. */
INTACT_API int64_t intact_request_retry_ms(struct intact_request *r, int64_t after_ms);

/* The same, and waits, for handlers that may block. True: try again now. False: give up; told of a
 * stop it returns at once. */
INTACT_API bool intact_request_retry(struct intact_request *r, int64_t after_ms);

/* As intact_agent_set_retry, for this request. A value that makes no sense is taken as the nearest
 * that does. From its handler, before the first try. */
INTACT_API void intact_request_set_retry(struct intact_request *r, unsigned tries_max,
                                         int64_t wait_ms, int64_t max_wait_ms);

/* Sleeps, on a thread that is not the one which drives the agent, until the time is over or
 * intact_request_should_stop has become true. False: it is to stop. */
INTACT_API bool intact_request_sleep(struct intact_request *r, int64_t ms);

/* The rule by itself, a pure function: after `tries` (from 1) that failed, how long to wait before
 * the next; -1: give up, since there were tries_max (0: no limit), or the wait would last left_ms
 * or longer. `chance`: any number, equally distributed. */
INTACT_API int64_t intact_retry_wait_ms(unsigned tries, unsigned tries_max, int64_t wait_ms,
                                        int64_t max_wait_ms, int64_t left_ms, uint64_t chance);

/* ---- Answers ----
 *
 * One of these, once, before the handler returns or, of a kept request, whenever you are ready, on
 * any thread. The texts are copied. Of a request that is not kept the first answer counts, and a
 * handler that returns without any has answered with a retryable error "no_answer" of unknown
 * effect. */

INTACT_API void intact_answer(struct intact_request *r, const char *output_json); /* NULL: null */

/* What an error says beyond its code; to be or-ed. */
enum intact_error_flags {
    INTACT_PERMANENT = 0,      /* trying again would not help, and nothing has changed */
    INTACT_RETRYABLE = 1,      /* trying again may help; it may have taken effect */
    INTACT_EFFECT_NONE = 2,    /* this attempt certainly changed nothing */
    INTACT_EFFECT_UNKNOWN = 4, /* it may have taken effect */
};

/* `code`: a short word, "card_declined"; NULL: "error". `message`: for people; may be NULL. */
INTACT_API void intact_answer_error(struct intact_request *r, const char *code, const char *message,
                                    unsigned flags);

/* A retryable error, to be tried again no sooner than after that time. */
INTACT_API void intact_answer_retry(struct intact_request *r, const char *code, const char *message,
                                    unsigned flags, int64_t after_ms);

/* An error with `resume_json` for the next attempt (intact_request_resume): any JSON value of at
 * most 2048 bytes; NULL: the latest that a heartbeat left. What is no JSON, or too long, is left
 * out. `flags` say whether it is retryable; after_ms 0: whenever the server likes. */
INTACT_API void intact_answer_error_resume(struct intact_request *r, const char *code,
                                           const char *message, unsigned flags, int64_t after_ms,
                                           const char *resume_json);

/* We are done with it, and somebody else will say what came of it: whoever was given its token
 * (intact_request_token), a person or a service that calls back. It takes no place any more,
 * outlives this process, and ends at its deadline if nobody says anything until then. It is not
 * told to stop. */
INTACT_API void intact_answer_elsewhere(struct intact_request *r);

INTACT_API void intact_answer_nothing(struct intact_request *r); /* the deadline will tell */

#ifdef __cplusplus
}
#endif

#endif
