#ifndef SERVER_INTERNAL_H
#define SERVER_INTERNAL_H

/*
 * What the files of the server share: the node, and one exchange for each request that cannot be
 * answered at once. An exchange outlives its client: when that goes, `http` becomes NULL, and the
 * answer is dropped.
 */

#include <uv.h>

#include "http/http.h"
#include "scheduler/scheduler.h"
#include "server/limit.h"
#include "server/server.h"
#include "server/store_thread.h"
#include "supervisor/supervisor.h"

struct server {
    struct server_config config;
    char holder[80]; /* "node/boot": who we are for leases */
    uv_loop_t loop;
    uv_check_t check;                    /* after each round of arrivals: a turn */
    uv_timer_t timer;                    /* for turns that are due by themselves */
    uv_signal_t sigterm, sigint, sighup; /* the last one only with TLS */
    uv_timer_t drain_timer;
    struct server_limits limits;
    struct http_server *http;
    struct store_thread *thread;
    struct store_queue *store;
    struct registry workflows;
    struct token_key *key;
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct map waits;             /* of struct wait_list, by task id */
    size_t exchange_count;        /* open ones that the store works on */
    int64_t wall_minus_steady_ms; /* at the start: the anchor of all our times */
    int64_t wall_off_told_ms;     /* by how much the wall clock is off it, as last logged */
    int64_t clock_look_at;        /* steady */
    int64_t timer_at;
    enum err trouble_err; /* of the store; ERR_OK: it works */
    char trouble[400];
    bool scans_fail;      /* it is the supervisor who said so ... */
    uint64_t scans_until; /* ... after so many scans that did not */
    bool draining, ended;
    uint64_t requests;
};

/* The first field of whatever hangs on http_request.user. */
struct exchange {
    struct server *server;
    struct http_request *http;        /* NULL: the client has gone */
    void (*gone)(struct exchange *x); /* may be NULL */
};

int64_t server_now(void *arg); /* the store's time; arg is the server */
int64_t server_steady(void *arg);

/* A request that waits for something: its memory, and the tie to its client. */
void exchange_begin(struct exchange *x, struct server *sv, struct http_request *r);
void exchange_untie(struct exchange *x); /* before answering: `gone` will not be called */

void exchange_done(void *arg, struct http_request *r, bool sent); /* for the http server */

/* door.c */
enum err door_open(struct server *sv, struct error *e) MUST_USE; /* listens, and says so */
void door_close(struct server *sv);
bool door_is_foreign(const struct server *sv, const struct http_request *r); /* 403 */
/* Ask this before a request is left to wait for more than the store; if not, refuse it (503). */
bool door_may_wait(const struct server *sv);
void door_refuse_to_wait(const struct server *sv, struct http_request *r);

/* routes.c */
void route(void *arg, struct http_request *r);

/* tasks_submit.c, tasks_read.c, tasks_operate.c */
void tasks_post(struct server *sv, struct http_request *r);
void tasks_list(struct server *sv, struct http_request *r);
void task_get(struct server *sv, struct http_request *r);
void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind);
void ask_answered(void *arg, struct ask *a);
void waiters_tell(struct server *sv, struct slice id); /* it ended */
void waiters_drain(struct server *sv);                 /* all are answered with what there is */
void task_get_when_ended(struct server *sv, struct http_request *r, struct slice id,
                         int64_t wait_ms, int status);

/* work.c */
void work_post(struct server *sv, struct http_request *r);
bool work_answered(void *arg, struct work *w);

/* workflows.c */
void workflow_put(struct server *sv, struct http_request *r);
void workflow_get(struct server *sv, struct http_request *r);
void workflows_list(struct server *sv, struct http_request *r);
void validate_post(struct server *sv, struct http_request *r);

/* status.c */
void healthz_get(struct server *sv, struct http_request *r);
void readyz_get(struct server *sv, struct http_request *r);
void agents_get(struct server *sv, struct http_request *r);
void nodes_get(struct server *sv, struct http_request *r);
void metrics_get(struct server *sv, struct http_request *r);

/* body.c: reading requests */
struct json *body_json(struct http_request *r);              /* NULL: answered with a problem */
bool wait_of(struct http_request *r, int64_t *ret_ms);       /* ?wait=; false: answered */
bool count_of(struct slice text, int64_t max, int64_t *ret); /* digits only, from 1 to max */
bool is_name(struct slice s); /* of an id, agent, instance: 1 to 128 of [A-Za-z0-9._:-] */
bool content_type_is(const struct http_request *r, const char *type);

/* render.c */
void render_task(struct buf *b, const struct workflow *w, const struct task *t,
                 const struct task_row *row);
void render_summary(struct buf *b, const struct task_row *row);
void answer_json(struct http_request *r, int status, const struct buf *b, const char *headers);
const char *trouble_type(enum err err); /* as problem documents name it */
void answer_trouble(struct http_request *r, enum err err, const char *story);

#endif
