#ifndef STORE_POSTGRES_BODY_H
#define STORE_POSTGRES_BODY_H

/*
 * What the files of the PostgreSQL body share.
 *
 *   sql.c         every statement
 *   columns.h     what is made of the columns of store/rows
 *   query.c       a statement with its parameters; arrays in binary form
 *   hosts.c       where the database is
 *   connect.c     making the connection
 *   primary.c     whether it is the primary that answers
 *   abandoned.c   connections that were given up
 *   connection.c  transactions in one round trip; errors
 *   prepared.c    statements that the database keeps prepared; settings of a session
 *   durable.c     whether the database keeps what it acknowledges
 *   schema.c      migrations, and what is read once at start
 *   row.c         rows read
 *   commit.c      a batch
 *   family.c      what its changes insert for others
 *   claim.c       its claims
 *   read.c        get, overdue, requested
 *   list.c        listings
 *   reading.c     a second way to the store, for a thread that only reads
 *   census.c      counts
 *   retire.c      deletes what ended long ago
 *   workflow.c    definitions
 *   access.c      tokens, and the audit
 *   agent.c       settings and breakers of agents
 *   overrun.c     evaluations that took far too long
 *   listen.c      notifications of submissions
 *   submission.c  submissions by applications
 *   operation.c   what is done to many tasks
 *   schedule.c    when tasks are submitted
 *   node.c        what nodes report of themselves
 *   time.c        the database's clock, and leases, which go by it
 *   postgres.c    open, close, the table of operations
 */

#include <libpq-fe.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/prng.h"
#include "base/uuid.h"
#include "store/postgres/postgres.h"
#include "store/postgres/statements.h"
#include "store/store_time.h"

enum {
    PG_SECRET_SIZE = 32,
    PG_PARAMS_MAX = 96,
    PG_HOSTS_MAX = 8,
    PG_ABANDONED_MAX = 24,
    PG_PROVEN_MAX = 64,
};

/* What a result with rows of tasks may have behind the columns of enum task_column. */
enum pg_column {
    PG_PAYLOAD_NUMBERS = TASK_COLUMN_COUNT, /* where payloads are read: two arrays */
    PG_PAYLOAD_JSONS,
    PG_CLAIM_FOUND, /* of a claim: rows that it could have taken, one beyond its limit at most */
    PG_RECORD_NUMBER = PG_CLAIM_FOUND, /* of PG_RECORDS: which of the ids, from 1 */
};

enum pg_sql {
#define X(name) PG_##name,
    PG_STATEMENTS(X)
#undef X
        PG_COUNT
};

struct pg_host {
    char *host, *address, *port; /* NULL: libpq's default */
};

/* What the connection at hand has; prepared.c. */
struct pg_prepared {
    bool was_tried, is_settled; /* to make the settings for the whole session; they were made */
    bool is_lost;               /* a statement of the last round trip was not there any more */
    bool never;        /* something in between loses prepared statements: none is made any more */
    bool sets_durable; /* each transaction asks for it, because the role has another default */
    unsigned char states[PG_COUNT];
    uint32_t types[PG_COUNT]; /* a hash of what they were prepared with */
};

struct postgres_store {
    struct store base;
    PQconninfoOption *options; /* of the connection, but for the hosts */
    struct pg_host hosts[PG_HOSTS_MAX];
    size_t host_count, host_at;  /* host_at: the one that was reached last */
    char schema[64], prefix[72]; /* "intact", "\"intact\"." */
    char *node;
    int64_t wait_ms;
    struct pg_abandoned {
        PGconn *conn;
        size_t host;
    } abandoned[PG_ABANDONED_MAX]; /* given up without an answer */
    size_t abandoned_count;
    PGconn *conn;   /* NULL: to be made again */
    bool unproven;  /* what it shows may not be on the standby: a commit must prove it */
    bool is_pooled; /* there is a pooler in between */
    struct pg_prepared prepared;
    bool was_pooled;               /* at some time: for error texts */
    bool pooler_is_silent;         /* since it was connected to last: the same */
    int64_t proven[PG_PROVEN_MAX]; /* processes of the server from before the last proof; 0: none */
    size_t proven_next;
    int64_t connect_at;      /* steady: not before */
    int64_t contended_until; /* steady: batches lock their rows before they change them */
    int64_t backoff_ms;
    struct error refused;     /* why the last try failed */
    struct error unreachable; /* what was logged of that; "": nothing */
    int64_t until;      /* steady: of the round trip at hand, and what it takes to get there */
    int64_t call_until; /* of a call of several of them; 0: each has its own */
    struct prng random; /* of pauses */
    unsigned told;      /* what was found not to be durable */
    char write_settings[3][80], read_settings[100];
    size_t settings_count; /* the third is known once the database was seen */
    bool warned;           /* the server has warned of something since the last look */
    char *sql[PG_COUNT];   /* with the schema's name in them */
    uint64_t boot;
    unsigned char secret[PG_SECRET_SIZE];
    char installation[UUID_SIZE];
    struct store_time time;
    struct pg_listener *listener; /* listen.c; NULL: not used */
    /* reading.c: each time that its connection becomes, or may be, of no use, and each
     * time that it has another; and where that leads. */
    atomic_uint turns, turned_to;
    struct postgres_store *of; /* of one that only reads: whose database it is; NULL: it is none */
    unsigned turns_seen;       /* of `of` */
};

static inline struct postgres_store *postgres_store_of(struct store *s)
{
    return CONTAINER_OF(s, struct postgres_store, base);
}

/* sql.c: with "~" for the schema, and names for parameters */
const char *pg_sql_text(enum pg_sql which);
const char *pg_sql_end(enum pg_sql which); /* follows it */

/* query.c. Puts in the prefix for "~", and numbers for the names of parameters: $1 for the one that
 * is named first, and so on. */
void pg_sql_expand(struct buf *b, const char *text, const char *prefix);

/* A statement and its parameters, whose bytes lie in the arena. */
struct query {
    const char *sql;
    unsigned statement; /* 1 + enum pg_sql; 0: it is none of these, and never prepared */
    struct arena *arena;
    int count;
    Oid types[PG_PARAMS_MAX];
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    int formats[PG_PARAMS_MAX];
};
void query_of(struct query *q, const struct postgres_store *s, enum pg_sql which, struct arena *a);
void param_text(struct query *q, struct slice s); /* NONE: NULL */
void param_number(struct query *q, int64_t v);
void param_time(struct query *q, int64_t at); /* 0: NULL */
void param_flag(struct query *q, bool v);
void param_bytes(struct query *q, const void *bytes, size_t size);

/* An array in the making; a parameter once all of its elements are there. */
struct array {
    struct buf elements;
    uint32_t count;
    Oid type; /* of its elements, once there is one */
    bool nulls;
};
void array_text(struct array *a, struct slice s);
void array_number(struct array *a, int64_t v);
void array_time(struct array *a, int64_t at);
enum array_kind { ARRAY_NUMBERS, ARRAY_TEXTS };
void param_array(struct query *q, struct array *a, enum array_kind kind); /* ends the array */

bool text_is_storable(struct slice s); /* UTF-8 without NULs, or NONE */

/* Values of a result in binary form. */
struct slice result_text(const PGresult *r, int row, int column); /* NONE for NULL */
int64_t result_number(const PGresult *r, int row, int column);    /* 0 for NULL */
/* An array of numbers; NULL for an empty one. */
size_t result_numbers(const PGresult *r, int row, int column, struct arena *a, int64_t **ret);
bool result_flag(const PGresult *r, int row, int column);

/* hosts.c */
enum err pg_hosts_read(struct postgres_store *s, const char *conninfo, struct error *e) MUST_USE;
void pg_hosts_free(struct postgres_store *s);

/* reading.c */
struct store *pg_reading_new(struct store *s);
/* What was relied on so far does not hold any more: the one that reads has to look again. */
void pg_turn(struct postgres_store *s);
void pg_follow(struct postgres_store *s); /* of one that reads: before each call */

/* abandoned.c. The connection is given up; it may still be at work on the server. */
void pg_abandoned_put(struct postgres_store *s, PGconn *c);
/* False: too many connections to the host that is next wait for an answer already. */
bool pg_abandoned_has_room(struct postgres_store *s);
void pg_abandoned_tidy(struct postgres_store *s); /* ends those that are through by now */
void pg_abandoned_free(struct postgres_store *s);

/* connect.c. A connection that can be used, and `until` of what is done with it. */
enum err connection_ready(struct postgres_store *s, struct error *e) MUST_USE;
void connection_drop(struct postgres_store *s);
/* Another one to the same host; NULL: it was not reached in time. To be ended by the caller. */
PGconn *connection_beside(const struct postgres_store *s, int64_t until);
/* By a commit of our own: all that it shows is durable. False: the connection is gone. */
bool connection_prove(struct postgres_store *s, struct error *e);
/* What takes several round trips has wait_ms for all of them:
 *     CLEANUP(pg_call_end) struct postgres_store *call = pg_call_begin(s); */
struct postgres_store *pg_call_begin(struct postgres_store *s);
void pg_call_end(struct postgres_store **s);

/* primary.c. At the start of a connection; false: it is of no use, and is gone. */
bool pg_primary_check(struct postgres_store *s, struct error *e);
/* Queries the same host on another connection, for a pooler that is silent. */
bool pg_primary_is_reached(const struct postgres_store *s);
#define PG_NO_ROOM "the pooler reaches no primary, or all of its connections to it are taken"
/* Another possible cause of a silence, to be appended to an error text. */
static inline const char *pg_pooler_hint(const struct postgres_store *s)
{
    return s->was_pooled ? "; and whether its pooler has a connection free" : "";
}
/* Comes with each read through a pooler, in the same transaction. False: what was read does not
 * count, and the connection is gone. */
const struct query *pg_primary_query(void);
bool pg_primary_answered(struct postgres_store *s, const PGresult *r, struct error *e,
                         const char *what);

/* durable.c. False: the connection was lost. */
bool pg_durable_check(struct postgres_store *s, struct error *e);

/* connection.c */
struct slice pg_message_line(const char *text);
bool pg_wait_socket(PGconn *c, short events, int64_t until);
bool pg_await(PGconn *c, int64_t until); /* the next result is there; false: too late, or lost */
void pg_settings_make(struct postgres_store *s);
void pg_settings_durable(struct postgres_store *s, struct slice level); /* of synchronous_commit */
/* Statements without parameters, outside of pipeline mode: the last one's result, or NULL. */
bool pg_scripts_begin(struct postgres_store *s);
PGresult *pg_script(struct postgres_store *s, const char *sql, int64_t wait_ms);
bool pg_scripts_end(struct postgres_store *s);

/* prepared.c. A statement that is used again on a connection is prepared there, unless a pooler is
 * in between. */
void pg_prepared_begin(struct postgres_store *s);                       /* the connection is new */
bool pg_prepared_send(struct postgres_store *s, const struct query *q); /* false: it is lost */
/* Does the result of its preparation come first, which `good` then tells? */
bool pg_prepared_is_due(const struct postgres_store *s, const struct query *q);
void pg_prepared_done(struct postgres_store *s, const struct query *q, bool good);
/* The database has no such statement any more, or its result would be another one: nothing was
 * done, and it is tried again on a new connection. */
struct pg_end;
void pg_prepared_trip_ended(struct postgres_store *s);
bool pg_prepared_is_lost(struct postgres_store *s, const struct pg_end *o);
/* Makes the settings for the whole session, if that is this node's alone. */
enum err pg_session_settle(struct postgres_store *s, struct error *e) MUST_USE;

/* How a round trip ended. */
struct pg_end {
    enum err err;
    bool unknown;     /* it was a transaction that may be durable nevertheless */
    size_t failed_at; /* the statement that failed; `count` for none in particular */
    char sqlstate[6];
};

/* Sends all statements at once and takes their results (to be cleared by the caller with
 * results_clear, whatever comes back). `e` has the server's message and `what`, which was being
 * done. A transaction left open by a failure is rolled back. */
struct pg_end pg_run(struct postgres_store *s, const struct query *queries, size_t count,
                     PGresult **results, struct error *e, const char *what);
/* The same on the connection that there is; nothing is rolled back. */
struct pg_end pg_round_trip(struct postgres_store *s, const struct query *queries, size_t count,
                            PGresult **results, struct error *e, const char *what);
/* The same between BEGIN and COMMIT, durable whatever the role's settings, with an end to waiting
 * for locks. */
struct pg_end pg_transact(struct postgres_store *s, const struct query *queries, size_t count,
                          PGresult **results, struct error *e, const char *what);
/* One statement less, for what may be lost and waits for no lock: leases, claims. */
struct pg_end pg_transact_brief(struct postgres_store *s, const struct query *queries, size_t count,
                                PGresult **results, struct error *e, const char *what);
void results_clear(PGresult **results, size_t count);
/* One statement that only reads: its result, or NULL and *e. */
PGresult *pg_read(struct postgres_store *s, const struct query *q, struct error *e,
                  const char *what);
/* The same for what may take long: the database gives it up before we do, and so its snapshot. */
PGresult *pg_read_long(struct postgres_store *s, const struct query *q, struct error *e,
                       const char *what);
void result_end(PGresult **r);                                /* for CLEANUP */
enum err pg_end_err(const struct pg_end *o, struct error *e); /* ERR_UNKNOWN if it is */
bool pg_end_concerns_change(const struct pg_end *o);          /* its data, not the store */

/* schema.c: the version of the schema that this program knows. */
extern const int pg_schema_version;
enum err pg_schema_check(struct postgres_store *s, struct error *e) MUST_USE;
enum err pg_schema_node(struct postgres_store *s, struct error *e) MUST_USE; /* boot, secret */

/* time.c */
/* A round trip gave `theirs` of the database's clock. */
void pg_time_heard(struct postgres_store *s, int64_t sent_at, int64_t theirs);
int64_t pg_now(struct store *s);
enum err pg_survey(struct store *s, struct survey *v, struct arena *a, struct error *e);
enum err pg_lease(struct store *s, const struct lease_try *want, struct arena *a, struct lease *ret,
                  struct error *e);

/* row.c */
/* An array of numbers, and one of texts behind it. */
void pg_payloads_read(const PGresult *r, int row, int column, struct arena *a,
                      const struct payload **ret, size_t *ret_count);
void pg_row_read(const PGresult *r, int i, struct arena *a, struct task_row *ret);
void pg_rows_read(const PGresult *r, size_t limit, struct arena *a, struct row_page *ret);

/* read.c: reads the groups of steps that the documents of these rows name. */
enum err pg_groups_read(struct postgres_store *s, struct row_page *page, struct arena *a,
                        struct error *e) MUST_USE;

/* claim.c: two statements at most for each claim, four for one of locks */
size_t pg_claim_queries(struct postgres_store *s, const struct claim *c, struct arena *a,
                        struct query *ret);
void pg_claim_read(struct claim *c, PGresult *const *results, struct arena *a);

size_t pg_claim_statements(const struct claim *c);

/* lock.c */
/* What the changes do to locks: at most three statements. *ret_checks: the last one fails if
 * a lock has no room; then nothing of the batch is done, and pg_lock_room() finds which. */
size_t pg_lock_queries(struct postgres_store *s, const struct batch *b, const bool *wanted,
                       struct arena *a, struct query *ret, bool *ret_checks);
/* Changes whose lock has no room are wanted no more: their outcome is ERR_TAKEN. */
enum err pg_lock_room(struct postgres_store *s, struct batch *b, bool *wanted, struct arena *a,
                      struct error *e) MUST_USE;
size_t pg_lock_claim(struct postgres_store *s, const struct claim *c, struct arena *a,
                     struct query *ret);
enum err pg_items_read(struct store *s, struct item_read *ir, struct arena *a, struct error *e);
enum err pg_items_outputs(struct store *s, struct item_outputs *o, struct arena *a,
                          struct error *e);
enum err pg_lock_list(struct store *s, const struct lock_query *q, struct arena *a,
                      struct lock_page *ret, struct error *e);
enum err pg_lock_held(struct store *s, struct slice lock, struct arena *a, struct lock_held *ret,
                      struct error *e);

/* The operations. */
enum err pg_commit(struct store *s, struct batch *b, struct arena *a, struct error *e);
enum err pg_probe(struct store *s, struct error *e);
enum err pg_get(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                struct error *e);
enum err pg_get_many(struct store *s, struct reading *readings, size_t count, struct arena *a,
                     struct error *e);
enum err pg_records(struct store *s, struct task_record *list, size_t count, size_t bytes_max,
                    struct error *e);
enum err pg_glance(struct store *s, const struct slice *ids, size_t count, struct arena *a,
                   struct glance *ret, struct error *e);
enum err pg_overdue(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                    size_t limit, struct arena *a, struct row_page *ret, struct error *e);
enum err pg_requested(struct store *s, struct slice locked_by, int64_t after_seq, size_t limit,
                      struct arena *a, struct row_page *ret, struct error *e);
enum err pg_list(struct store *s, const struct list_query *q, struct arena *a, struct row_page *ret,
                 struct error *e);
enum err pg_owners(struct store *s, struct owners_part *p, struct arena *a, struct error *e);
enum err pg_census(struct store *s, int64_t now, size_t most, struct arena *a, struct census *ret,
                   struct error *e);
enum err pg_retire_look(struct store *s, struct retire_look *r, struct arena *a, struct error *e);
enum err pg_retire(struct store *s, struct retire *r, struct error *e);
enum err pg_reserved(struct store *s, struct slice id, struct arena *a, struct reservation *ret,
                     struct error *e);
enum err pg_reserved_sweep(struct store *s, int64_t now, size_t limit, size_t *ret_count,
                           struct error *e);
enum err pg_workflow_put(struct store *s, struct slice name, struct slice text, int64_t now,
                         const struct audit *audit, int64_t *ret_version, bool *ret_new,
                         struct error *e);
enum err pg_workflow_get(struct store *s, struct slice name, int64_t version, struct arena *a,
                         struct workflow_row *ret, struct error *e);
enum err pg_workflow_list(struct store *s, struct arena *a, struct workflow_row **ret,
                          size_t *ret_count, struct error *e);
enum err pg_workflow_since(struct store *s, uint64_t after, struct arena *a,
                           struct workflow_row **ret, size_t *ret_count, uint64_t *ret_generation,
                           struct error *e);
int pg_watch(struct store *s);
void pg_unwatch(struct postgres_store *s);
enum err pg_workflow_describe(struct store *s, const struct workflow_inputs *list, size_t count,
                              struct error *e);
enum err pg_notices_read(struct store *s, struct notice_read *n, struct arena *a, struct error *e);
enum err pg_notices_told(struct store *s, const struct slice *ids, size_t count, int64_t *ret_at,
                         struct error *e);
enum err pg_notices_refused(struct store *s, struct notice_read *n, struct arena *a,
                            struct error *e);
enum err pg_notices_settle(struct store *s, const struct notice_verdict *list, size_t count,
                           struct error *e);
enum err pg_notices_put(struct store *s, const struct notice_row *rows, size_t count,
                        struct error *e);
enum err pg_submissions_take(struct store *s, struct submission_take *t, struct arena *a,
                             struct error *e);
enum err pg_submissions_settle(struct store *s, const struct submission_verdict *list, size_t count,
                               struct error *e);
enum err pg_submissions_put(struct store *s, const struct submission_row *rows, size_t count,
                            struct error *e);
enum err pg_submissions_list(struct store *s, const struct submission_query *q, struct arena *a,
                             struct submission_page *ret, struct error *e);
enum err pg_submissions_verb(struct store *s, struct submission_verb *v, struct error *e);
enum err pg_token_put(struct store *s, const struct token_row *t, bool replace,
                      const struct audit *audit, struct error *e);
enum err pg_token_change(struct store *s, const struct token_row *t,
                         const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                         struct error *e);
enum err pg_token_delete(struct store *s, struct slice name, int64_t now, const struct audit *audit,
                         struct error *e);
enum err pg_token_list(struct store *s, struct arena *a, struct token_row **ret, size_t *ret_count,
                       struct error *e);
enum err pg_node_put(struct store *s, const struct node_row *row, struct error *e);
enum err pg_node_list(struct store *s, int64_t now, struct arena *a, struct node_row **ret,
                      size_t *ret_count, struct error *e);
/* Its values; NULL: no entry, nothing is written. */
void pg_bind_audit(struct query *q, const struct audit *audit);
/* The latest entries of several tasks, TASK_OPERATIONS_MAX of each; ends the arrays. The result is
 * in the order of their numbers, and is taken in that order: *at is the next row, from 0. */
void pg_operations_query(struct query *q, const struct postgres_store *s, struct array *numbers,
                         struct array *ids, struct arena *a);
void pg_operations_take(const PGresult *r, int *at, int64_t number, struct arena *a,
                        struct audit_page *ret);
enum err pg_agent_put(struct store *s, const struct agent_change *c, const struct audit *audit,
                      struct error *e);
enum err pg_agent_since(struct store *s, uint64_t after, struct arena *a, struct agent_row **ret,
                        size_t *ret_count, uint64_t *ret_generation, struct error *e);
enum err pg_overrun_count(struct store *s, const struct overrun_count *c, struct error *e);
enum err pg_overrun_list(struct store *s, struct arena *a, struct overrun **ret, size_t *ret_count,
                         struct error *e);
enum err pg_outbox_read(struct store *s, struct outbox_read *r, struct arena *a, struct error *e);
enum err pg_outbox_settle(struct store *s, const struct settlement *list, size_t count,
                          const struct fence *fence, struct error *e);
enum err pg_outbox_targets(struct store *s, const struct target_query *q, struct arena *a,
                           struct outbox_target **ret, size_t *ret_count, struct error *e);
enum err pg_outbox_list(struct store *s, const struct outbox_query *q, struct arena *a,
                        struct message_page *ret, struct error *e);
enum err pg_outbox_do(struct store *s, struct outbox_verb *v, struct error *e);
enum err pg_outbox_census(struct store *s, size_t most, struct outbox_census *ret, struct error *e);
enum err pg_stopped(struct store *s, int64_t after_ended_at, int64_t after_seq, size_t limit,
                    struct arena *a, struct stopped_page *ret, struct error *e);
enum err pg_alert_put(struct store *s, const struct alert_row *row, struct error *e);
enum err pg_alert_list(struct store *s, const struct alert_query *q, struct arena *a,
                       struct alert_page *ret, struct error *e);
enum err pg_alert_acknowledge(struct store *s, struct slice id, const struct audit *audit,
                              struct error *e);
enum err pg_schedule_write(struct store *s, struct schedule_change *list, size_t count,
                           const struct fence *fence, struct error *e);
enum err pg_schedule_look(struct store *s, struct schedule_look *l, struct arena *a,
                          struct error *e);
enum err pg_schedule_list(struct store *s, const struct schedule_query *q, struct arena *a,
                          struct schedule_page *ret, struct error *e);
enum err pg_schedule_version(struct store *s, struct slice name, int64_t version, struct arena *a,
                             struct schedule_version_row *ret, struct error *e);
enum err pg_schedule_remove(struct store *s, struct slice name, const struct audit *audit,
                            struct error *e);
enum err pg_operation_put(struct store *s, const struct operation_row *row,
                          const struct audit *audit, struct error *e);
enum err pg_operation_list(struct store *s, const struct operation_query *q, struct arena *a,
                           struct operation_page *ret, struct error *e);
enum err pg_audit_list(struct store *s, const struct audit_query *q, struct arena *a,
                       struct audit_page *ret, struct error *e);
enum err pg_audit_put(struct store *s, const struct audit *audit, struct error *e);
/* False, and nothing is written, unless it is as long as a hash. */
bool result_hash(const PGresult *r, int i, int col, unsigned char ret[TOKEN_HASH_SIZE]);

/* session.c */
enum err pg_session_put(struct store *s, const struct session_row *row, const unsigned char *code,
                        const struct audit *audit, struct error *e);
enum err pg_session_delete(struct store *s, struct slice id, const struct audit *audit,
                           struct error *e);
enum err pg_session_list(struct store *s, struct arena *a, struct session_row **ret,
                         size_t *ret_count, struct error *e);

#endif
