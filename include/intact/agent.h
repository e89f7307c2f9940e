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
 *     static const struct intact_handler handlers[] = {
 *         {.action = "charge", .run = charge},
 *         {.action = "refund", .direction = INTACT_UNDO, .run = refund},
 *     };
 *
 *     int main(void)
 *     {
 *         signal(SIGTERM, on_term); // calls intact_agent_stop()
 *         return intact_agent_run(&(struct intact_agent_options){
 *             .agent = "payment", .handlers = handlers, .handler_count = 2, .concurrency = 8});
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
 * All times are milliseconds. All strings are UTF-8 and end with a NUL; JSON comes as its text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
    #define INTACT_API __attribute__((visibility("default")))
#else
    #define INTACT_API
#endif

/* One step's attempt, handed to us. Lives until its handler returns; its strings live as long. */
struct intact_request;

enum intact_direction {
    INTACT_FORWARD, /* take effect */
    INTACT_UNDO,    /* undo an effect that happened, or may have happened */
    INTACT_ANY,     /* in a handler: whichever */
};

struct intact_handler {
    const char *action; /* as the workflow names it */
    enum intact_direction direction;
    /* Answers `r` (below) before it returns. Called on a thread of the pool, or on the thread of
     * intact_agent_run if the agent runs its handlers inline; several calls at a time if
     * concurrency is above 1. Those threads block all signals. */
    void (*run)(struct intact_request *r, void *arg);
    void *arg; /* handed to run; not touched */
};

enum intact_log_level { INTACT_LOG_INFO = 1, INTACT_LOG_WARN, INTACT_LOG_ERROR };

/* Fields left zero have the default. Everything is borrowed until intact_agent_run returns. */
struct intact_agent_options {
    const char *server; /* "http://127.0.0.1:7420", or several with commas between; default:
                           $INTACT_SERVER, then http://127.0.0.1:7420. All of them are polled, and
                           the places are shared out among them, at least one each. */
    const char *token;  /* bearer token with the role agent:NAME of this agent; default:
                           $INTACT_TOKEN, then none. While it is refused (unknown, expired, another
                           role), answers are kept and tried again for ever. */
    const char *ca;     /* file of certificates (PEM) that an https:// server's must be signed by;
                           default: $INTACT_CA, then those of the system */
    const char *agent;  /* name of the agent; required */
    const char
        *instance; /* unique among the agent's processes and the same after a restart, so
                      that the server knows what was lost; default: HOST-PID (not the same) */
    const struct intact_handler *handlers;
    size_t handler_count;
    unsigned concurrency; /* places: requests in work at a time, 1 to 1000; default 1 */
    bool inline_handlers; /* run them one by one on the calling thread: for those that return at
                             once and never wait. Concurrency is then the size of a batch. */
    int64_t wait_ms;      /* how long a call for work may be parked; default 30 000 */
    int64_t stop_wait_ms; /* how long a stopping agent tries to deliver its last answers if the
                             server cannot be reached; default 10 000 */
    /* Where lines go ("event=... key=value"); default: standard error. Called on any thread. */
    void (*log)(void *arg, enum intact_log_level level, const char *line);
    void *log_arg;
};

enum intact_agent_result {
    INTACT_AGENT_STOPPED = 0,     /* stopped, every answer is with the server */
    INTACT_AGENT_UNDELIVERED = 1, /* stopped, some answers could not be delivered */
    INTACT_AGENT_FAILED = 2,      /* could not start; the log says why */
};

/* Runs an agent until intact_agent_stop. A server that cannot be reached is tried again for ever.
 * Several agents may run in one process, each on a thread of its own. */
INTACT_API enum intact_agent_result intact_agent_run(const struct intact_agent_options *options);

/* Stops every agent that runs in this process: no more work is fetched, handlers that run are
 * waited for, their answers delivered. If none runs, the next one to start returns at once. May be
 * called on any thread and from a signal handler. */
INTACT_API void intact_agent_stop(void);

/* What is asked. Pointers are never NULL unless said so. */
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

/* Until the deadline; 0 once it has passed. Any thread. */
INTACT_API int64_t intact_request_time_left_ms(const struct intact_request *r);

/* The deadline has passed, or the server asked to stop this request (its task is to be undone). A
 * long handler looks at it before each effect, and gives up if it can do so cleanly. Any thread. */
INTACT_API bool intact_request_should_stop(const struct intact_request *r);

/* Tells the server that this request is being worked on, and how far it is: shown in the task's
 * record and its stream of events, and nothing else; it never moves the deadline. Returns at once:
 * it is sent soon, at most a few times a second, the latest one only, and one that gets lost is not
 * sent again. The server's answer may ask to stop (intact_request_should_stop). `progress_json` is
 * any JSON value of at most 2048 bytes, `message` a text of which 256 bytes are sent; both may be
 * NULL. Both are copied. False: progress is not JSON, or too long; nothing is sent. Any thread,
 * until the handler returns. Of handlers that run inline nothing is sent while they run. */
INTACT_API bool intact_heartbeat(struct intact_request *r, const char *progress_json,
                                 const char *message);

enum intact_effect {
    INTACT_EFFECT_DEFAULT, /* unknown if retryable, otherwise none */
    INTACT_EFFECT_NONE,    /* this attempt certainly changed nothing */
    INTACT_EFFECT_UNKNOWN, /* it may have taken effect */
};

struct intact_error {
    const char *code;    /* a short word: "card_declined"; default "error" */
    const char *message; /* for people; may be NULL */
    bool retryable;      /* trying again may help */
    enum intact_effect effect;
    int64_t retry_after_ms; /* try again no sooner; 0: as the workflow says */
};

/* The answer: one of these, once, before the handler returns. The texts are copied; the first
 * answer counts. A handler that returns without any has answered with a retryable error
 * "no_answer" of unknown effect. */
INTACT_API void intact_answer(struct intact_request *r, const char *output_json); /* NULL: null */
INTACT_API void intact_answer_error(struct intact_request *r, const struct intact_error *error);
INTACT_API void intact_answer_nothing(struct intact_request *r); /* the deadline will tell */

#ifdef __cplusplus
}
#endif

#endif
