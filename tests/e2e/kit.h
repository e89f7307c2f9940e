#ifndef E2E_KIT_H
#define E2E_KIT_H

/*
 * What the end-to-end tests share: a real server in a temporary folder, a client that sends exactly
 * the bytes given, and the parsed answers. Each function fails the test on an unexpected result.
 *
 * The program under test is the first argument of the test's own command line.
 */

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/test.h"
#include "json/json.h"

enum { PATIENCE_MS = 180000 /* upper bound for waits: only failing tests reach it */ };

struct node {
    pid_t pid;       /* 0: not running */
    int port;        /* 0: any; kept over restarts */
    char home[64];   /* has the data folder and the log */
    char data[80];   /* --data */
    char log[80];    /* its standard error */
    char token[64];  /* sent with every request: the admin's after node_start; "": none */
    char schema[32]; /* of the tests' PostgreSQL, which is its state store; "": it is in `data` */
    char name[16];   /* --node, with a schema */
};

/* First in main. TEST_FILTER in the environment chooses tests by their name ("*" and "?"). */
void kit_program(int argc, char **argv);
int64_t now_ms(void); /* wall clock */
int64_t steady_ms(void);
void sleep_ms(int ms);

/* ---- servers ---- */

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

void node_init(struct node *n);                            /* with a new, empty home */
void node_start(struct node *n, const char *const *flags); /* returns when it listens */
void node_begin(struct node *n, const char *const *flags); /* returns at once */
int node_wait(struct node *n, int ms); /* returns the wait status; -1: still running */
void node_signal(struct node *n, int signal);
void node_kill(struct node *n); /* SIGKILL; waits for its end */
void node_stop(struct node *n); /* SIGTERM; fails unless the status is 0 */
void node_fini(struct node *n); /* kills it, checks its log, removes its home */

/* Set-up of a test or of all tests, "*state = node_open(&node, FLAGS(...))", and its tear-down,
 * which stops the server if it runs and calls node_fini(). */
struct node *node_open(struct node *n, const char *const *flags);
int node_end(void **state);

/* node_init for the nodes "a", "b", ... that share a database. If INTACT_TEST_STORE is "postgres",
 * node_init gives each node a database, too, and the name "n1". */
void nodes_init(struct node *nodes, size_t count);
void nodes_start(struct node *nodes, size_t count, const char *const *flags);
/* Another process of the same node, with its own port, folder and log. */
void node_twin(struct node *twin, const struct node *of);
bool store_is_postgres(void); /* by INTACT_TEST_STORE */

bool node_log_has(const struct node *n, const char *text);
size_t node_log_count(const struct node *n, const char *text); /* number of lines with `text` */
int64_t node_resident_kb(const struct node *n);

/* Runs `intact serve` with these flags until it ends; returns its exit status and standard
 * error. */
int serve_briefly(const char *const *flags, struct buf *ret_stderr);

void node_read_token(struct node *n); /* the admin's; none if there is none */

/* ---- requests ---- */

/* For requests written by hand. */
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
void say(int fd, struct slice bytes);   /* unsent bytes are dropped */
void hear(int fd, struct reply *ret);   /* reads one answer; closes fd */
void hear_all(int fd, struct buf *ret); /* reads to the end of the connection; closes fd */
int status_heard(const struct buf *heard, unsigned n); /* of the n-th answer, from 0; 0: none */

/* Sends a whole request; hear() reads its answer. `type` NULL: no body. */
int ask(const struct node *n, const char *method, const char *path, const char *type,
        struct slice body);
void get(const struct node *n, struct reply *ret, const char *fmt, ...) PRINTF(3, 4);
void post(const struct node *n, struct reply *ret, const char *path, const char *fmt, ...)
    PRINTF(4, 5);
void put(const struct node *n, struct reply *ret, const char *path, const char *fmt, ...)
    PRINTF(4, 5);
void send_as(const struct node *n, struct reply *ret, const char *method, const char *path,
             const char *type, struct slice body);

/* kit_record.c, called by the functions above; tests that read from a descriptor themselves call
 * record_heard with all bytes before they close it. Without INTACT_RECORD nothing happens. */
void record_dialled(int fd);
void record_said(int fd, struct slice bytes);
void record_heard(int fd, struct slice bytes);

/* ---- reading answers ---- */

/* `path` such as "steps.0.attempts.1.outcome"; NULL if there is no such value. */
const struct json *at(const struct reply *r, const char *path);
const char *text_at(const struct reply *r, const char *path); /* "" if it is missing or no string */
int64_t int_at(const struct reply *r, const char *path);      /* INT64_MIN if it is missing */
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

/* Checks for a complete problem document of that type. */
void expect_problem(const struct reply *r, int status, const char *type);
/* The status of a call with an empty object as its body, if it has one; 401 and 403 are as they
 * should be. */
int status_as(const struct node *n, const char *method, const char *path);

/* ---- tasks and agents ---- */

/* Stores a definition that lacks only its name. Returns its version. */
int64_t define(const struct node *n, const char *name, const char *rest);
/* Stores a definition of `steps` steps "s0", "s1", ... in sequence, of agent "ag", each with the
 * members `each`. From nine steps on, resting steps move from the task's document to groups. */
void define_long(const struct node *n, const char *name, int steps, const char *each,
                 const char *rest);
void submit(const struct node *n, const char *workflow, const char *id);

/* Submits a task whose step hands on the URL of a signal: the path of that. To be freed. */
char *signal_url(const struct node *n, const char *id);
void wait_for_state(const struct node *n, const char *id, const char *state);
void task_of(const struct node *n, struct reply *ret, const char *id);

/* Repeats work calls with max 1 until there is a request. */
void fetch(const struct node *n, struct reply *ret, const char *agent, const char *instance);
char *token_in(const struct reply *r, int index); /* to be freed */
/* Sends `result` ("\"output\": 1") for the token and checks its status. */
void hand_in(const struct node *n, const char *agent, const char *instance, const char *token,
             const char *result, const char *expected_status);
/* Fetches a request and completes it with `output`. */
void serve_step(const struct node *n, const char *agent, const char *instance, const char *output);
/* The same for attempts with a short complete-by: repeated as often as they expire first. */
void serve_in_time(const struct node *n, const char *agent, const char *instance,
                   const char *output);
void wait_until_ready(const struct node *n);
void wait_for_parked(const struct node *n, int count); /* until that many work calls wait */
/* Returns when the server has read all that was sent before: it accepts connections in order. */
void let_read(const struct node *n);

/* Creates a token with the token of `n`: ("ci", "\"submit\", \"read\"", "30d" or NULL). */
void make_token(const struct node *n, const char *name, const char *roles, const char *expires_in,
                char ret[64]);
/* The same server, with another token; "": with none. */
struct node as(const struct node *server, const char *token);

/* One value of an SQL query, on the database of the running server; "" for none. To be freed. */
char *sql(const struct node *n, const char *query);
int64_t sql_int(const struct node *n, const char *query);

/* Enters a mount namespace that ends with this process. False: not permitted here. */
bool own_mounts(void);

/* Waits until `condition` holds; fails the test after PATIENCE_MS. */
#define WAIT_FOR(condition, what)                                           \
    do {                                                                    \
        for (int64_t until = steady_ms() + PATIENCE_MS; !(condition);) {    \
            CHECK(steady_ms() < until, "waited for ever until %s", (what)); \
            sleep_ms(2);                                                    \
        }                                                                   \
    } while (0)

#endif
