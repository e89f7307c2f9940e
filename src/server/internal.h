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
#include "server/server.h"
#include "server/store_thread.h"
#include "server/strict.h"
#include "server/waits.h"
#include "supervisor/supervisor.h"

struct server {
    struct server_config config;
    char holder[80]; /* "node/boot": who we are for leases */
    uv_loop_t loop;
    uv_check_t check; /* after each round of arrivals: a turn */
    uv_timer_t timer; /* for turns that are due by themselves */
    uv_signal_t sigterm, sigint;
    uv_timer_t drain_timer;
    struct http_server *http;
    struct store_thread *thread;
    struct store_queue *store;
    struct registry workflows;
    struct token_key *key;
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct map waits;             /* for the ends of tasks */
    struct link hungry;           /* of struct many: they have lines for the scheduler */
    size_t asks_open, asks_bytes; /* with the scheduler, and what their requests hold */
    size_t reads_open;            /* with the store */
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

/* routes.c */
void route(void *arg, struct http_request *r);

enum { TAGS_MAX = 32, TAG_VALUE_MAX = 256 };

/* tasks_submit.c, tasks_read.c, tasks_operate.c */
void tasks_post(struct server *sv, struct http_request *r);
void task_get(struct server *sv, struct http_request *r);
void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind);
void ask_answered(void *arg, struct ask *a);
void task_get_when_ended(struct server *sv, struct http_request *r, struct slice id,
                         int64_t wait_ms, int status);

/* tasks_many.c: NDJSON */
void many_post(struct server *sv, struct http_request *r, int64_t wait_ms);
void many_go_on(struct server *sv);           /* hands in more lines; before each turn */
bool many_may_go_on(const struct server *sv); /* and would do so at once */

/* pressure.c: what waits for the store is bounded, whoever is still there to hear of it */
bool asks_have_room(struct server *sv, struct http_request *r, size_t bytes); /* false: answered */
bool asks_may_grow(const struct server *sv);                                  /* by one more line */
bool reads_have_room(struct server *sv, struct http_request *r);              /* false: answered */
void server_ask(struct server *sv, struct ask *a);                            /* and counts it */

/* tasks_list.c */
void tasks_list(struct server *sv, struct http_request *r);

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
bool is_name(struct slice s);    /* of an id, agent, instance: 1 to 128 of [A-Za-z0-9._:-] */
bool is_tag_key(struct slice s); /* 1 to 64 of [A-Za-z0-9._-] */

/* render.c */
void render_task(struct buf *b, const struct workflow *w, const struct task *t,
                 const struct task_row *row);
void render_summary(struct buf *b, const struct task_row *row);
void answer_json(struct http_request *r, int status, const struct buf *b, const char *headers);
const char *trouble_type(enum err err); /* as problem documents name it */
void answer_trouble(struct http_request *r, enum err err, const char *story);

#endif
