#ifndef E2E_KIT_H
#define E2E_KIT_H

/*
 * What the end-to-end tests share: a real server in a temporary folder, a client that says exactly
 * what it is told to, and what the server answered. Everything fails the test that finds it wrong.
 *
 * The program under test is the first argument of the test's own command line.
 */

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/test.h"
#include "json/json.h"

enum { PATIENCE_MS = 180000 /* for what must happen: only a failing test waits so long */ };

struct node {
    pid_t pid;       /* 0: it does not run */
    int port;        /* 0: any; kept over restarts */
    char home[64];   /* holds data folder and log */
    char data[80];   /* --data */
    char log[80];    /* what it wrote to standard error */
    char token[64];  /* sent with every request: the admin's since node_start; "": none is */
    char schema[32]; /* of the tests' PostgreSQL, which is its state store; "": it is in `data` */
    char name[16];   /* --node, with a schema */
};

void kit_program(int argc, char **argv); /* first of main */
int64_t now_ms(void);                    /* wall clock */
int64_t steady_ms(void);
void sleep_ms(int ms);

/* ---- servers ---- */

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

void node_init(struct node *n);                            /* a new, empty home */
void node_start(struct node *n, const char *const *flags); /* returns when it listens */
void node_begin(struct node *n, const char *const *flags); /* returns at once */
int node_wait(struct node *n, int ms);                     /* its wait status; -1: runs still */
void node_signal(struct node *n, int signal);
void node_kill(struct node *n); /* SIGKILL, and it is gone */
void node_stop(struct node *n); /* SIGTERM; it must end with 0 */
void node_fini(struct node *n); /* kills it, looks at its log, removes its home */

/* For the set-up of a test or of all of them, "*state = node_open(&node, FLAGS(...))", and its
 * tear-down, as which it stops the server, should it run, and node_fini()s it. */
struct node *node_open(struct node *n, const char *const *flags);
int node_end(void **state);

/* Nodes "a", "b", ... that share a database: node_init for all of them. Every node that node_init
 * makes has such a database, and is "n1", if INTACT_TEST_STORE is "postgres". */
void nodes_init(struct node *nodes, size_t count);
void nodes_start(struct node *nodes, size_t count, const char *const *flags);
/* Another process of the same node, with a port, a folder and a log of its own. */
void node_twin(struct node *twin, const struct node *of);
bool store_is_postgres(void); /* INTACT_TEST_STORE says so */

bool node_log_has(const struct node *n, const char *text);
size_t node_log_count(const struct node *n, const char *text); /* lines with it */
int64_t node_resident_kb(const struct node *n);

/* Runs `intact serve` with these flags until it ends; its exit status, and standard error. */
int serve_briefly(const char *const *flags, struct buf *ret_stderr);

void node_read_token(struct node *n); /* the admin's; none if there is none */

/* ---- requests ---- */

/* What to put into a request that is written by hand. */
struct slice authorization(const struct node *n); /* a whole header line, or empty */

struct reply {
    int status; /* 0: the connection was closed without an answer */
    char *raw;
    struct slice head, body;
    struct arena arena;
    struct json *json; /* of the body, if it is JSON */
};

void reply_fini(struct reply *r); /* usable again */

#define REPLY CLEANUP(reply_fini) struct reply

int dial(const struct node *n);
void say(int fd, struct slice bytes);   /* what the other side does not take is dropped */
void hear(int fd, struct reply *ret);   /* one answer; closes fd */
void hear_all(int fd, struct buf *ret); /* all up to the end of the connection; closes fd */
int status_heard(const struct buf *heard, unsigned n); /* of the n-th answer, from 0; 0: none */

/* Sends a whole request; hear() its answer. `type` NULL: no body. */
int ask(const struct node *n, const char *method, const char *path, const char *type,
        struct slice body);
void get(const struct node *n, struct reply *ret, const char *fmt, ...) PRINTF(3, 4);
void post(const struct node *n, struct reply *ret, const char *path, const char *fmt, ...)
    PRINTF(4, 5);
void put(const struct node *n, struct reply *ret, const char *path, const char *fmt, ...)
    PRINTF(4, 5);
void send_as(const struct node *n, struct reply *ret, const char *method, const char *path,
             const char *type, struct slice body);

/* kit_record.c, called by what is above; tests that read from a descriptor themselves call
 * record_heard with all that came, before they close it. Nothing happens without INTACT_RECORD. */
void record_dialled(int fd);
void record_said(int fd, struct slice bytes);
void record_heard(int fd, struct slice bytes);

/* ---- what was answered ---- */

/* "steps.0.attempts.1.outcome"; NULL if there is no such thing. */
const struct json *at(const struct reply *r, const char *path);
const char *text_at(const struct reply *r, const char *path); /* "" if there is none; no number */
int64_t int_at(const struct reply *r, const char *path);      /* INT64_MIN if there is none */
int64_t time_at(const struct reply *r, const char *path);     /* 0: null */
bool raw_is(const struct reply *r, const char *path, const char *json);
bool head_has(const struct reply *r, const char *text);

#define EXPECT(r, code) \
    CHECK((r)->status == (code), "answered %d: %.*s", (r)->status, SLICE_ARG((r)->body))
#define EXPECT_TEXT(r, path, expected)                                                          \
    CHECK(strcmp(text_at((r), (path)), (expected)) == 0, "%s is \"%s\", expected \"%s\": %.*s", \
          (path), text_at((r), (path)), (expected), SLICE_ARG((r)->body))
#define EXPECT_INT(r, path, expected)                                           \
    CHECK(int_at((r), (path)) == (expected), "%s is %" PRId64 ": %.*s", (path), \
          int_at((r), (path)), SLICE_ARG((r)->body))
#define EXPECT_RAW(r, path, expected)                                                \
    CHECK(raw_is((r), (path), (expected)), "%s is not %s: %.*s", (path), (expected), \
          SLICE_ARG((r)->body))

/* A problem document of that type, with all that one has. */
void expect_problem(const struct reply *r, int status, const char *type);

/* ---- tasks and agents ---- */

/* Stores a definition: the name is in it. Returns its version. */
int64_t define(const struct node *n, const char *name, const char *rest);
/* One of so many steps, "s0", "s1", ..., one after the other, of agent "ag", each with this
 * besides. From more than eight on, steps that rest leave the document of its tasks, in groups. */
void define_long(const struct node *n, const char *name, int steps, const char *each,
                 const char *rest);
void submit(const struct node *n, const char *workflow, const char *id);
void wait_for_state(const struct node *n, const char *id, const char *state);
void task_of(const struct node *n, struct reply *ret, const char *id);

/* One work call with room for one; waits until there is a request. */
void fetch(const struct node *n, struct reply *ret, const char *agent, const char *instance);
char *token_in(const struct reply *r, int index); /* to be freed */
/* Hands in `result` ("\"output\": 1") for the token. Its status must be the one expected. */
void hand_in(const struct node *n, const char *agent, const char *instance, const char *token,
             const char *result, const char *expected_status);
/* Fetches and completes with that output. */
void serve_step(const struct node *n, const char *agent, const char *instance, const char *output);
/* The same where attempts have little time: as often as they are past it before they are done. */
void serve_in_time(const struct node *n, const char *agent, const char *instance,
                   const char *output);
void wait_until_ready(const struct node *n);
void wait_for_parked(const struct node *n, int count); /* that many calls for work wait */
/* Returns when all that was sent before was read: the server takes connections in their order. */
void let_read(const struct node *n);

/* A new token, made by the one whose `n` has: ("ci", "\"submit\", \"read\"", "30d" or NULL). */
void make_token(const struct node *n, const char *name, const char *roles, const char *expires_in,
                char ret[64]);
/* The same server, as somebody with that token calls it; "": with none. */
struct node as(const struct node *server, const char *token);

/* One value of an SQL query, on the database of the running server; "" for none. To be freed. */
char *sql(const struct node *n, const char *query);
int64_t sql_int(const struct node *n, const char *query);

/* Mounts that vanish with this process. False: not allowed here. */
bool own_mounts(void);

/* Until it is so; a test in which it never is fails. */
#define WAIT_FOR(condition, what)                                           \
    do {                                                                    \
        for (int64_t until = steady_ms() + PATIENCE_MS; !(condition);) {    \
            CHECK(steady_ms() < until, "waited for ever until %s", (what)); \
            sleep_ms(2);                                                    \
        }                                                                   \
    } while (0)

#endif
