/*
 * A real server over SQLite with its threads, and a client on another thread of the process: one
 * connection, one request at a time, so that each run does the same. Work that depends on the clock
 * is off: no checkpoints, no scans, no counts for alerts, no looks for what others submit. The
 * client costs next to nothing: it sends fixed texts and searches the answer for a word.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "background/retention.h"
#include "base/buf.h"
#include "instructions/workload.h"
#include "sample.h"
#include "server/server.h"
#include "store/sqlite/sqlite.h"

enum { WARM = 20, ANSWER_MAX = 1 << 20, LINES = 100 };

static struct {
    int port, fd;
    char bearer[200];
    char answer[ANSWER_MAX];
    long next_id;
    struct store *store;
    char token_file[PATH_MAX];
    int said[2]; /* pipe: the server's standard output */
} my;

/* ---- the client ---- */

static void dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)my.port)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    my.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must_be(my.fd >= 0 && connect(my.fd, (struct sockaddr *)&to, sizeof to) == 0, "it listens");
}

/* Whether head and body, with Content-Length bytes, are complete. */
static bool is_whole(size_t len)
{
    my.answer[len] = 0;
    const char *end = strstr(my.answer, "\r\n\r\n");
    const char *length = strstr(my.answer, "Content-Length: ");

    return end && length && len >= (size_t)(end + 4 - my.answer) + strtoul(length + 16, NULL, 10);
}

static const char *call(const char *method, const char *path, const char *type, struct slice body)
{
    CLEANUP(buf_fini) struct buf b = {0};
    size_t got = 0;

    buf_fmt(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: %s\r\n", method, path,
            my.bearer, type);
    buf_fmt(&b, "Content-Length: %zu\r\n\r\n", body.len);
    buf_slice(&b, body);
    must_be(write(my.fd, b.ptr, b.len) == (ssize_t)b.len, "it takes a request");
    while (!is_whole(got)) {
        ssize_t n = read(my.fd, my.answer + got, ANSWER_MAX - 1 - got);
        must_be(n > 0, "it answers");
        got += (size_t)n;
    }
    if (strncmp(my.answer, "HTTP/1.1 20", 11) != 0) {
        (void)fprintf(stderr, "%s\n", my.answer);
        must_be(false, "it answers well");
    }
    return strstr(my.answer, "\r\n\r\n") + 4;
}

static const char *post(const char *path, const char *type, const struct buf *body)
{
    return call("POST", path, type, buf_view(body));
}

static void add_submission(struct buf *b)
{
    buf_fmt(b, "{\"workflow\":\"bench\",\"id\":\"order-%09ld\",\"input\":%s}\n", my.next_id++,
            payload_in);
}

static void submit(void)
{
    CLEANUP(buf_fini) struct buf b = {0};

    add_submission(&b);
    (void)post("/v1/tasks", "application/json", &b);
}

static void submit_many(void)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (int i = 0; i < LINES; i++)
        add_submission(&b);
    (void)post("/v1/tasks", "application/x-ndjson", &b);
}

static void get(void)
{
    (void)call("GET", "/v1/tasks/order-000000000", "application/json", SLICE(""));
}

static void work(const char *agent, const struct buf *body)
{
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    (void)post(path, "application/json", body);
}

/* Fetches one request and sends its result. */
static void serve(const char *agent)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char token[256] = "";

    buf_str(&b, "{\"instance\":\"i-1\",\"max\":1,\"wait\":\"100s\",\"holding\":[]}");
    work(agent, &b);
    const char *at = strstr(my.answer, "\"token\":\"");
    must_be(at && sscanf(at + 9, "%255[^\"]", token) == 1, "there is a request");
    buf_clear(&b);
    buf_fmt(&b,
            "{\"instance\":\"i-1\",\"max\":0,\"holding\":[],\"results\":[{\"token\":\"%s\","
            "\"output\":%s}]}",
            token, payload_out);
    work(agent, &b);
    must_be(strstr(my.answer, "\"accepted\""), "its result is accepted");
}

static void whole_task(void)
{
    submit();
    serve("a");
    serve("b");
    serve("c");
}

/* ---- the server ---- */

static void *serve_all(void *arg)
{
    static const struct retention keep_all = {.reserve_ms = 86400000};
    const struct server_config c = {.listen = "127.0.0.1:0",
                                    .store = my.store,
                                    .token_file = my.token_file,
                                    .node = "n1",
                                    .retention = &keep_all,
                                    .supervisor_interval_ms = 3600000,
                                    .print_ready = true};
    struct error e = {0};
    (void)arg;

    must(server_run(&c, &e), &e);
    return NULL;
}

static void read_port(void)
{
    char line[100] = "";
    size_t got = 0;

    while (got < sizeof line - 1 && !strchr(line, '\n')) {
        ssize_t n = read(my.said[0], line + got, 1);
        must_be(n == 1, "the server starts");
        got++;
    }
    must_be(sscanf(line, "listening on port %d", &my.port) == 1, "it says where it listens");
}

static void read_token(void)
{
    char text[100] = "";
    FILE *f = fopen(my.token_file, "r");

    must_be(f && fgets(text, sizeof text, f), "there is a token");
    (void)fclose(f);
    text[strcspn(text, "\r\n")] = 0;
    (void)snprintf(my.bearer, sizeof my.bearer, "Authorization: Bearer %s\r\n", text);
}

/* No other process writes to the store, so the check for foreign changes would only add noise. */
static int nobody(struct store *s)
{
    static int never;
    (void)s;

    if (never == 0)
        never = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return never;
}

static enum err no_submissions(struct store *s, struct submission_take *t, struct arena *a,
                               struct error *e)
{
    (void)s;
    (void)a;
    (void)e;
    t->count = 0;
    t->more = t->unsettled = false;
    t->refused = 0;
    return ERR_OK;
}

static void open_store(void)
{
    static struct store_ops ops;
    static struct store_submission_ops submissions;
    struct error e = {0};

    must(sqlite_store_open(".", &my.store, &e), &e);
    ops = *my.store->ops;
    ops.watch = nobody;
    submissions = *ops.submissions;
    submissions.take = no_submissions;
    ops.submissions = &submissions;
    ops.counts = NULL;
    my.store->ops = &ops;
}

/* While the server starts, its standard output is a pipe, from which the listen address is read. */
static pthread_t start(void)
{
    pthread_t thread;
    char here[PATH_MAX - 16];

    must_be(getcwd(here, sizeof here), "the folder has a name");
    (void)snprintf(my.token_file, sizeof my.token_file, "%s/admin.token", here);
    open_store();
    must_be(freopen("server.log", "w", stderr), "there is room for a log");
    must_be(pipe2(my.said, O_CLOEXEC) == 0, "there are descriptors");
    (void)fflush(stdout);
    int before = dup(STDOUT_FILENO);
    must_be(before >= 0 && dup2(my.said[1], STDOUT_FILENO) >= 0, "there are descriptors");
    must_be(pthread_create(&thread, NULL, serve_all, NULL) == 0, "there are threads");
    read_port();
    must_be(dup2(before, STDOUT_FILENO) >= 0, "there are descriptors");
    (void)close(before);
    read_token();
    dial();
    return thread;
}

static void define(void)
{
    CLEANUP(buf_fini) struct buf b = {0};

    sample_workflow(&b, 3, SHAPE_SEQUENCE);
    (void)call("PUT", "/v1/workflows/bench", "application/json", buf_view(&b));
}

static void count(const struct workload *w, const char *what, void (*one)(void), long times,
                  long units)
{
    for (int i = 0; i < WARM; i++)
        one();
    count_begin();
    for (long i = 0; i < times; i++)
        one();
    count_end(w, what, times * units);
}

static void run(const struct workload *w, long rounds)
{
    pthread_t thread = start();

    define();
    count(w, "task-3", whole_task, rounds, 1);
    count(w, "submit", submit, rounds, 1);
    count(w, "submit-many", submit_many, rounds / 20 + 1, LINES);
    count(w, "get", get, rounds, 1);
    (void)close(my.fd);
    (void)kill(getpid(), SIGTERM);
    (void)pthread_join(thread, NULL);
    my.store->ops->close(my.store);
}

const struct workload workloads_server[] = {
    {"server", "a task of 3 steps, a submission, ... over HTTP", 100, run, NULL, 0, NULL},
    {0},
};
