#ifndef NODE_INTERNAL_H
#define NODE_INTERNAL_H

/*
 * What the files of the server share: the node, and one exchange for each request that cannot be
 * answered at once. An exchange outlives its client: when that goes, `http` becomes NULL, and the
 * answer is dropped.
 */

#include <uv.h>

#include "alerts/alerts.h"
#include "background/elsewhere.h"
#include "background/waits.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "http/http.h"
#include "net/proof.h"
#include "node/access.h"
#include "node/aside.h"
#include "node/changes.h"
#include "node/content.h"
#include "node/limit.h"
#include "node/metrics.h"
#include "node/quota.h"
#include "node/readings.h"
#include "node/store_thread.h"
#include "node/strict.h"
#include "node/turns.h"
#include "scheduler/scheduler.h"
#include "server/server.h"
#include "supervisor/supervisor.h"

struct server {
    struct server_config config;
    char holder[80]; /* "node/boot": who we are for leases */
    uv_loop_t loop;
    struct turns turns;
    uv_signal_t sigterm, sigint, sighup; /* the last one if its data is set */
    uv_timer_t drain_timer;
    uv_timer_t watchdog;
    unsigned char token_key[PROOF_KEY_SIZE]; /* by which we show that we know the admin's token */
    bool token_is_known;                     /* else nothing is shown */
    struct timespec token_written_at;        /* of the file that it was read from ... */
    uint64_t token_inode;
    struct log_burst refusals[2]; /* of requests without a good token; with one of another role */
    char always[128];             /* the header lines of every answer: whose it is, among others */
    struct server_limits limits;
    struct http_server *http;
    struct store_thread *thread;
    struct store_queue *store;
    struct readings *readings;
    struct registry workflows;
    struct catalog *library;     /* what others store; NULL: nobody else does */
    struct elsewhere *elsewhere; /* what others do to tasks */
    struct strangers *strangers;
    struct aside *definitions, *bodies; /* large ones are read beside the loop, each in its own */
    struct token_key *key;
    struct overrun_watch *overrun;
    struct access *access;
    struct contents *contents; /* tells one submission from another */
    struct fair *fair;
    struct changes *changes; /* that people make beside tasks */
    struct quotas *quotas; /* what tokens use; http_request.account is that of its token, or NULL */
    enum {
        TOKEN_THERE,     /* the admin's: it was there; */
        TOKEN_MADE,      /* it was made at this start; */
        TOKEN_ELSEWHERE, /* another node that shares the store has made it */
    } token_made;
    /* Whose request is being handled, and by which token (NULL: it takes none); until its handler
     * returns. */
    struct slice caller;
    const struct bearer *bearer;
    uv_timer_t tokens_timer; /* reads the tokens again ... */
    bool tokens_stale;       /* ... until that succeeds */
    uint64_t tokens_heard;   /* the generation of which we know */
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct waits waits;           /* for the ends of tasks */
    struct link hungry;           /* of struct many: they have lines for the scheduler */
    size_t asks_open, asks_bytes; /* changes that were not answered, and what their requests hold */
    size_t reads_open;            /* with the store */
    size_t lines_open;            /* of batches, with the scheduler */
    size_t lines_waiting;         /* of batches, for the ends of their tasks */
    size_t readers_open;          /* requests that wait to see something */
    size_t untagged_open;         /* results whose tokens only their tasks can verify */
    size_t exchange_count;        /* open ones that the store works on */
    int64_t wall_minus_steady_ms; /* at the start: the anchor of all our times */
    int64_t wall_off_told_ms;     /* by how much the wall clock is off it, as last logged */
    int64_t clock_look_at;        /* steady */
    enum err trouble_err;         /* of the store; ERR_OK: it works */
    int64_t trouble_since;
    char trouble[400];
    bool scans_fail;      /* it is the supervisor who said so ... */
    uint64_t scans_until; /* ... after so many scans that did not */
    bool draining, ended;
    bool replaced; /* the node is another process now: this one ends */
    struct metrics metrics;
    struct events *events;
    struct nodes *nodes;
    struct backup *backup; /* NULL: none is made */
    struct keeper *keeper;
    struct open_tasks *open_tasks;
    struct inbox *inbox;
    struct operations *operations;
    struct helper *helpers[HELPERS_MAX]; /* NULL: none */
    struct channel *webhooks;            /* NULL: none are configured */
    struct telling_out *telling;
    struct alerting *alerting;
    struct archive_writer *archive; /* NULL: none is kept */
    bool archive_busy;              /* something is being written there */
};

/* The first field of whatever hangs on http_request.user. */
struct exchange {
    struct server *server;
    struct http_request *http;        /* NULL: the client has gone */
    void (*gone)(struct exchange *x); /* may be NULL */
    struct store_job *reading;        /* for it alone: dropped when its client goes; or NULL */
};

const char *server_version(const struct server *sv); /* with its build, if that is known */
int64_t server_now(void *arg);                       /* the store's time; arg is the server */
/* The store's time or this machine's, whichever is earlier: for what cannot be made good. One clock
 * that stands ahead makes nothing old. */
int64_t server_now_at_least(struct server *sv);
int64_t server_steady(void *arg);

/* What is wrong with the store: it fails, or has not answered for long. ERR_OK: nothing; then the
 * story is not written. */
enum err server_trouble(const struct server *sv, char *ret_story, size_t story_size);

/* A request that waits for something: its memory, and the tie to its client. */
void exchange_begin(struct exchange *x, struct server *sv, struct http_request *r);
void exchange_untie(struct exchange *x); /* before answering: `gone` will not be called */

void exchange_done(void *arg, struct http_request *r, bool sent); /* for the http server */

void server_on_signal(uv_signal_t *s, int signum); /* drains; a second one ends the process */

/* door.c */
enum err door_open(struct server *sv, struct error *e) MUST_USE; /* listens, and says so */
void door_close(struct server *sv);
bool door_is_foreign(const struct server *sv, const struct http_request *r); /* 403 */
/* Ask this before a request is left to wait for more than the store; if not, refuse it (503). */
bool door_may_wait(const struct server *sv);
/* The same for a request that waits for work, of a token that leaves places to others. */
bool door_may_park(const struct server *sv, const struct http_request *r);
/* The same for those who wait to see something, and not for work: they may take but a part of all
 * places, so that agents find one. It counts as such a reader until it is done. */
bool door_may_read(struct server *sv, struct http_request *r);
void door_left(struct server *sv, const struct http_request *r); /* it is done */
void door_refuse_to_wait(const struct server *sv, struct http_request *r);

/* routes.c */
void route(void *arg, struct http_request *r);
/* A request that was let in, and has waited. */
void route_held(struct server *sv, struct http_request *r);
bool route_head(void *arg, struct http_request *r); /* false: refused, or held, without its body */
void route_label(struct buf *b, unsigned route);    /* method="GET",route="/v1/tasks/" */
/* The token of a request that has waited, if it is still good; until it is back in the loop. NULL:
 * the request was answered that it is not. */
const struct bearer *route_recheck(struct server *sv, struct http_request *r);

/* A request is answered 403 for want of a scope that its route could not know of: told in the log
 * as those are that lack the role. */
void route_log_forbidden(struct server *sv, const struct http_request *r, struct slice token,
                         const char *why);

/* From where a request comes, as the audit says it: the peer's address; behind a proxy, " for " and
 * what the proxy says. Printable ASCII. */
#define ADDRESS_FOR " for "
enum { ADDRESS_SIZE = 256 };
void caller_address_write(const struct server *sv, const struct http_request *r,
                          char ret[ADDRESS_SIZE]);
struct slice caller_address(const struct server *sv, const struct http_request *r, struct arena *a);

enum { TAGS_MAX = 32, TAG_VALUE_MAX = 256 };

/* open_tasks.c: counts those of each token, for its quota */
struct open_tasks *open_tasks_new(struct server *sv);
void open_tasks_close(struct open_tasks *count); /* before the loop ends */
void open_tasks_free(struct open_tasks *count);

/* installation.c */
const char *installation_id(const struct server *sv);
struct slice installation_headers(struct server *sv); /* a line for the head of every answer */
/* True: the request is meant for another installation, and was answered. */
bool installation_is_another(const struct server *sv, struct http_request *r);

/* tasks_submit.c, tasks_read.c, tasks_operate.c */
void tasks_post(struct server *sv, struct http_request *r);
void task_get(struct server *sv, struct http_request *r);
/* All that its record shows; on the store thread. */
enum err task_read(struct store *store, struct slice id, struct arena *a, struct task_row *ret,
                   struct audit_page *ret_operations, struct reservation *ret_gone,
                   struct error *e);
void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind);
void ask_answered(void *arg, struct ask *a);
/* What `grant` does not see is not there. */
void task_get_when_ended(struct server *sv, struct http_request *r, struct slice id,
                         const struct grant *grant, int64_t wait_ms, int status);
/* Of one that was not found: 410 if it was deleted, else 404. */
void task_get_missing(struct server *sv, struct http_request *r, struct slice id,
                      const struct grant *grant);
/* What was read, or that there was nothing: as if it were not there, if `grant` does not see it. So
 * is a row that cannot be read for whoever does not read all. */
void task_hide(const struct grant *grant, const struct task_row *row, enum err *err,
               struct reservation *gone);
void answer_no_task(struct server *sv, struct http_request *r, struct slice id,
                    const struct reservation *gone);

/* tasks_why.c */
void task_why_get(struct server *sv, struct http_request *r);

/* tasks_list.c */
void tasks_list(struct server *sv, struct http_request *r);
/* tasks_many.c: NDJSON */
void many_post(struct server *sv, struct http_request *r, int64_t wait_ms);
void many_go_on(struct server *sv);           /* hands in more lines; before each turn */
bool many_may_go_on(const struct server *sv); /* and would do so at once */

/* pressure.c: what waits for the store is bounded, whoever is still there to hear of it */
bool asks_have_room(struct server *sv, struct http_request *r, size_t bytes); /* false: answered */
/* What the tree of one text from outside may take. It is memory as the text is, and more of it. */
size_t trees_max(const struct server *sv);
size_t trees_left(const struct server *sv);  /* the same, as far as there is room just now */
size_t asks_left(const struct server *sv);   /* that are let in yet */
bool asks_may_grow(const struct server *sv); /* by one more line */
bool reads_have_room(struct server *sv, struct http_request *r); /* false: answered */
/* The same of a reading that its token waits for in line, which is begun by reading_begin. */
bool reading_has_room(struct server *sv, struct http_request *r, enum reading_kind kind);
void reading_begin(struct exchange *x, enum reading_kind kind, struct store_job *j);
struct changes *pressure_changes(struct server *sv); /* for server.changes */
void server_ask(struct server *sv, struct ask *a);   /* and counts it */
bool answer_has_room(struct server *sv, struct http_request *r, size_t bytes); /* false: answered */
/* What the loop does for the account of a token (struct quota; NULL: nobody's); arg is the server.
 */
void account_worked(void *arg, void *account, uint64_t now_ns, uint64_t took_ns);
uint64_t account_rests_until(void *arg, void *account, uint64_t now_ns); /* 0: it does not */

/* work.c */
void work_post(struct server *sv, struct http_request *r);
bool work_answered(void *arg, struct work *w);
/* What a result says, its token aside, in `a`. False: it cannot be told what it says. A fault, or
 * NONE, is told of either; what is then left out of a good one, the fault says. */
bool result_read(struct arena *a, const struct json *j, struct work_result *r,
                 struct slice *ret_fault);

/* attempts.c: POST /v1/attempts/{token} */
void attempt_post(struct server *sv, struct http_request *r);
bool attempt_head(struct server *sv, struct http_request *r); /* false: answered */

/* heartbeats.c */
void heartbeats_post(struct server *sv, struct http_request *r);

/* events.c, events_task.c: streams of what happens */
struct events_stats {
    size_t listeners_all, listeners_task;
};
struct events *events_new(struct server *sv);
void events_free(struct events *ev);    /* no stream is open any more */
void events_drain(struct events *ev);   /* all streams end */
void events_close(struct events *ev);   /* its timer goes; before the loop ends */
void events_recheck(struct events *ev); /* whose tokens are good no more are let go */
void events_turn(struct events *ev);    /* writes what has gathered */
void events_changed(struct events *ev, const struct workflow *w, const struct task *t);
void events_touched(struct events *ev, struct slice task); /* its row may be another */
void events_beat(struct events *ev, const struct heartbeat *b);
void events_stats(const struct server *sv, struct events_stats *ret);
void events_get(struct server *sv, struct http_request *r);
void task_events_get(struct server *sv, struct http_request *r);

/* known.c: what other nodes stored */
void known_heard(void *arg, const struct generations *g); /* arg is the server */
/* At the start: says of definitions that were stored before the store knew their inputs what these
 * are. */
void known_describe(struct server *sv);
/* Compiles what was read of it (catalog_aside_fn); arg is the server. */
void known_compile(void *arg, void (*run)(void *of), void (*done)(void *of), void *of);
/* Serves the request when all that was stored by now is known here; at once where nobody else
 * stores anything. */
void known_serve(struct server *sv, struct http_request *r,
                 void (*serve)(struct server *sv, struct http_request *r));
/* Is the row of a definition that is not known here, but may be stored? Then w->told is called when
 * that is known. */
bool known_puzzles(struct server *sv, const struct task_row *row, struct registry_wait *w);

/* strangers.c: requests whose token is not known here */
enum { STRANGER_BODY_MAX = 16 << 10 }; /* of those whose right is not known before it is read */
struct strangers *strangers_new(struct server *sv);
void strangers_close(struct strangers *st);       /* its timer goes: before the loop ends */
void strangers_free(struct strangers *st);        /* none is held any more */
bool strangers_may_hold(const struct server *sv); /* one more */
/* True: another node may know it; `again` will be called when that is known, or its client goes. */
bool strangers_hold(struct server *sv, struct http_request *r,
                    void (*again)(struct server *sv, struct http_request *r));

/* workflows.c */
void workflow_put(struct server *sv, struct http_request *r);
void workflow_get(struct server *sv, struct http_request *r);
void workflows_list(struct server *sv, struct http_request *r);
void validate_post(struct server *sv, struct http_request *r);

/* tokens.c, audit.c, admin_token.c */
void tokens_list(struct server *sv, struct http_request *r);
void token_put(struct server *sv, struct http_request *r);
void token_rotate(struct server *sv, struct http_request *r);
void token_post(struct server *sv, struct http_request *r);
void token_delete(struct server *sv, struct http_request *r);
struct token_list {
    struct token_row *rows;
    size_t count;
    enum err err;
};
void token_list_read(struct store *st, struct arena *a,
                     struct token_list *ret);                            /* store's thread */
void token_list_apply(struct server *sv, const struct token_list *list); /* these are good */
void tokens_reload(uv_timer_t *t);
void tokens_heard(struct server *sv, uint64_t generation); /* reads them again if that is news */
enum err tokens_load(struct server *sv, struct error *e) MUST_USE; /* before the store's thread */
enum err admin_token_ensure(struct server *sv, struct error *e) MUST_USE; /* the same */
void admin_token_tell(struct server *sv);                                 /* in the log */
/* A rotation. Does the file hold the text with this hash? Then the new text is put beside it before
 * the store knows it, and takes its place after that, or goes. Any thread but for `renewed`. */
bool admin_token_holds(const char *path, const unsigned char hash[TOKEN_HASH_SIZE]);
enum err admin_token_prepare(const char *path, const char *text, struct error *e) MUST_USE;
enum err admin_token_settle(const char *path, bool good, struct error *e) MUST_USE;
void admin_token_renewed(struct server *sv);
/* Looks at the file again if it is not the one that was read last. */
void admin_token_refresh(struct server *sv);
void audit_get(struct server *sv, struct http_request *r);
void render_audit(struct buf *b, const struct audit *a);

/* agents.c */
void agent_get(struct server *sv, struct http_request *r);
void agent_put(struct server *sv, struct http_request *r);
void agent_delete(struct server *sv, struct http_request *r);
void breaker_post(struct server *sv, struct http_request *r);

/* backup.c */
void backup_post(struct server *sv, struct http_request *r);
void backup_flushed(struct server *sv, struct http_request *r); /* its reader has taken all */
void backup_drain(struct server *sv);                           /* the one at work ends */

/* retire.c, keeper.c: deleting what ended long ago */
enum {
    RETIRE_ROWS = 500,        /* that one part looks at */
    RETIRE_BUDGET_US = 2000,  /* how long a change may have to wait for one, about */
    RETIRE_PATIENCE = 4,      /* the others get so much more of a busy store */
    RETIRE_AGE_MIN_MS = 60000 /* younger ones are not deleted */
};
void retire_post(struct server *sv, struct http_request *r);
/* What keeps tasks from being deleted or archived, for whoever is to be told; false: nothing. The
 * story is the keeper's; either may be NULL. */
bool keeper_trouble(const struct server *sv, struct slice *ret_story, int64_t *ret_since);
struct keeper *keeper_new(struct server *sv);
void keeper_close(struct keeper *k); /* before the loop ends; no part of it is with the store */
void keeper_free(struct keeper *k);  /* after it */

/* outbox.c: status messages */
struct courier_stats;
struct telling_out *telling_new(struct server *sv); /* before the scheduler is made */
struct slice telling_source(const struct telling_out *t);
void telling_told(struct server *sv); /* there are new messages */
void telling_stored(struct server *sv, const struct message *list, size_t count); /* these are */
void telling_heard(struct server *sv, uint64_t generation); /* of what people did to them */
int64_t telling_turn(struct server *sv);
void telling_drain(struct server *sv);
bool telling_is_busy(const struct server *sv); /* with the store */
bool telling_is_drained(const struct server *sv);
void telling_free(struct server *sv);    /* the channels are closed */
void telling_by_hand(struct server *sv); /* people did something to messages, here */
int64_t telling_paused_until(const struct server *sv, struct slice target, char *story);
/* Is there a way to it? False: *e says what would be. */
bool telling_takes(const struct server *sv, struct slice target, struct error *e);
/* For the metrics; what the store has is as of a little earlier. */
void telling_stats(struct server *sv, struct courier_stats *ret, struct outbox_census *ret_census);
void outbox_get(struct server *sv, struct http_request *r);
void targets_get(struct server *sv, struct http_request *r);
void outbox_retry_post(struct server *sv, struct http_request *r);
void outbox_drop_post(struct server *sv, struct http_request *r);

/* alerts.c, alerts_http.c: what a person is told of */
enum err alerts_open_all(struct server *sv, struct error *e) MUST_USE;
bool alerts_are_busy(const struct server *sv);
void alerts_drain(struct server *sv);
void alerts_close(struct server *sv); /* its handles go: before the loop ends; no job is out */
void alerts_free_all(struct server *sv);
void alerts_hint(struct server *sv); /* a task stopped in error, or may have gone on */
/*
 * Something that others know of holds; with a count of 0: no more. `label` is one of those of
 * alert_json.c, with `value` what tells apart what holds at the same time; `example` a task, or
 * NONE. It is told if this node leads, and forgotten with the process: who leads next has to say it
 * again. At most ALERT_SAID at a time; beyond that it is left out.
 */
enum { ALERT_SAID = 256 };
void alerts_condition(struct server *sv, enum alert_condition c, const char *label,
                      struct slice value, uint64_t count, struct slice example, struct slice story);
size_t alerts_open_count(const struct server *sv, enum alert_condition c); /* known here */
void alerts_deliveries(const struct server *sv, uint64_t *ret_taken, uint64_t *ret_failed);
void alerts_list(struct server *sv, struct http_request *r);
void alert_acknowledge(struct server *sv, struct http_request *r);
void alert_test(struct server *sv, struct http_request *r);

/* submissions.c: what came by SQL or from a queue */
void submissions_get(struct server *sv, struct http_request *r);
void submissions_retry(struct server *sv, struct http_request *r);
void submissions_drop(struct server *sv, struct http_request *r);
void submissions_put_refused(struct server *sv, struct http_request *r); /* submissions_put.c */

/* operations.c, operations_dry.c, operations_run.c: what is done to many tasks */
void operations_post(struct server *sv, struct http_request *r);
void operations_list(struct server *sv, struct http_request *r);
void operation_get(struct server *sv, struct http_request *r);
void operation_stop(struct server *sv, struct http_request *r);
void operation_continue(struct server *sv, struct http_request *r);
struct operation; /* operations/operation.h */
struct runner_stats;
/* Answers with what would become of it. It takes the arena, in which the operation lies. */
void operation_dry_run(struct server *sv, struct http_request *r, struct arena *a,
                       const struct operation *op);
struct operations *operations_new(struct server *sv);
void operations_turn(struct operations *o);
bool operations_answered(struct operations *o, struct ask *a); /* false: it is not theirs */
void operations_changed(struct operations *o);                 /* one was stored, or changed */
void operations_drain(struct operations *o);
bool operations_are_busy(const struct operations *o);
bool operations_have_jobs(const struct operations *o); /* with the store */
void operations_stats(const struct operations *o, struct runner_stats *ret);
void operations_close(struct operations *o); /* before the loop ends */
void operations_free(struct operations *o);  /* after it */

/* nodes.c */
struct nodes *nodes_new(struct server *sv);
void nodes_free(struct nodes *n);      /* nobody waits for the list any more */
void nodes_listening(struct nodes *n); /* says so in the store, as soon as that takes it */
void nodes_drain(struct nodes *n);     /* the same of the end that begins */
void nodes_turn(struct nodes *n);      /* before each turn */
void nodes_surveyed(struct nodes *n);  /* each second: agents may have come or gone */
void nodes_get(struct server *sv, struct http_request *r);
/* 503: this node is no scheduler, and which ones are. */
void nodes_refuse(struct server *sv, struct http_request *r);

/* status.c */
void healthz_get(struct server *sv, struct http_request *r);
void readyz_get(struct server *sv, struct http_request *r);
void agents_get(struct server *sv, struct http_request *r);
/* The members of an agent, as lists show it. */
void render_agent(struct buf *b, const struct agent *a, int64_t now);
/* Why the steps that wait for it do: a word of the API. NULL: nothing holds them, or there are
 * none. `stored`: some wait in the store. */
const char *agent_held_by(const struct agent *a, bool stored, int64_t now);
void stats_get(struct server *sv, struct http_request *r);
void metrics_get(struct server *sv, struct http_request *r);

/* body.c: reading requests */
/* NULL: answered with a problem. Trees are many times as large as their texts: whose request may
 * wait keeps its tree in memory of its own, and no longer than needed. */
struct json *body_json(struct http_request *r, struct arena *tree);
void asides_new(struct server *sv); /* body_aside.c */
/* True: the body is large, and is parsed aside; then the request is served again, by route_held.
 * Or it was answered. `line`: by whose turns it is done. */
bool body_is_parsed_first(struct server *sv, struct http_request *r, struct slice line);
void body_is_used(struct server *sv, struct http_request *r); /* the tree is not needed any more */
bool wait_of(struct http_request *r, int64_t *ret_ms);        /* ?wait=; false: answered */
/* "error,pending" as bits of (1 << enum task_state); false: answered. */
bool states_of(struct http_request *r, struct slice text, uint32_t *ret);
bool count_of(struct slice text, int64_t max, int64_t *ret); /* digits only, from 1 to max */
bool is_name(struct slice s); /* of an id, agent, instance: 1 to 128 of [A-Za-z0-9._:-] */
/* A new one, by RFC 9562, version 7: those given one after another lie together. */
enum { ID_TEXT_SIZE = 37 };
void id_give(struct server *sv, char ret[ID_TEXT_SIZE]);
bool is_tag_key(struct slice s); /* 1 to 64 of [A-Za-z0-9._-] */

/* render.c */
/* A record of which more was read is written where it was read: that takes longer than handing it
 * over. */
enum { RECORD_LARGE = 32 << 10 };
/* The whole record. Any thread. */
void render_task(struct buf *b, const struct pulses *pulses, const struct workflow *w,
                 const struct task *t, const struct task_row *row,
                 const struct audit_page *operations);
void render_summary(struct buf *b, const struct task_row *row);
void answer_json(struct http_request *r, int status, const struct buf *b, const char *headers);
const char *trouble_type(enum err err); /* as problem documents name it */
void answer_trouble(struct http_request *r, enum err err, const char *story);

#endif
