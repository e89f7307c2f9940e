/* Implements the servers of kit.h: starts, signals and ends node processes, and reads their logs.
 * Requests are in kit_http.c, tasks and agents in kit_task.c. */

#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/test_port.h"
#include "postgres/cluster.h"

static const char *program;

/* Some tests hold a thousand connections, and their server too. */
static void raise_file_limit(void)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= 4096)
        return;
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

void kit_program(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s PATH/TO/intact\n", argv[0]);
        exit(2);
    }
    program = argv[1];
    if (getenv("TEST_FILTER"))
        cmocka_set_test_filter(getenv("TEST_FILTER"));
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setenv("no_proxy", "*", 1); /* for curl, which some tests call */
    (void)unsetenv("NOTIFY_SOCKET");  /* of who runs the tests */
    (void)unsetenv("WATCHDOG_USEC");
    if (geteuid() != 0) /* who is not root looks into servers by /proc */
        (void)setenv("INTACT_DUMPABLE", "1", 1);
    raise_file_limit();
}

static int64_t clock_ms(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t now_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

int64_t steady_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

void sleep_ms(int ms)
{
    const struct timespec ts = {ms / 1000, (ms % 1000) * 1000000L};

    (void)nanosleep(&ts, NULL);
}

/* ---- servers ---- */

bool store_is_postgres(void)
{
    const char *store = getenv("INTACT_TEST_STORE");

    return store && strcmp(store, "postgres") == 0;
}

static unsigned databases; /* made so far, each a schema */

static void name_on_database(struct node *n, const char *name, unsigned database)
{
    (void)snprintf(n->schema, sizeof n->schema, "e2e_%u", database);
    (void)snprintf(n->name, sizeof n->name, "%s", name);
}

void node_init(struct node *n)
{
    *n = (struct node){.home = "/tmp/intact-e2e.XXXXXX"};
    CHECK(mkdtemp(n->home), "%s", strerror(errno));
    (void)snprintf(n->data, sizeof n->data, "%s/data", n->home);
    (void)snprintf(n->log, sizeof n->log, "%s/log", n->home);
    if (store_is_postgres())
        name_on_database(n, "n1", ++databases);
}

void nodes_init(struct node *nodes, size_t count)
{
    const unsigned shared = ++databases; /* node_init may count others */
    for (size_t i = 0; i < count; i++) {
        const char name[2] = {(char)('a' + i), 0};
        node_init(&nodes[i]);
        name_on_database(&nodes[i], name, shared);
    }
}

void node_twin(struct node *twin, const struct node *of)
{
    node_init(twin);
    memcpy(twin->schema, of->schema, sizeof twin->schema);
    memcpy(twin->name, of->name, sizeof twin->name);
    memcpy(twin->token, of->token, sizeof twin->token);
}

static pid_t spawn(const char *const *argv, int out, const char *err_path)
{
    posix_spawn_file_actions_t fa;
    pid_t pid = 0;

    (void)posix_spawn_file_actions_init(&fa);
    (void)posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, err_path,
                                           O_WRONLY | O_CREAT | O_APPEND, 0600);
    union {
        const char *const *in;
        char *const *out;
    } args = {argv}; /* it changes none of them */
    int rc = posix_spawn(&pid, program, &fa, NULL, args.out, environ);
    (void)posix_spawn_file_actions_destroy(&fa);
    CHECK(rc == 0, "%s: %s", program, strerror(rc));
    return pid;
}

static void print_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[1000];

    while (f && fgets(line, sizeof line, f))
        fputs(line, stderr);
    if (f)
        (void)fclose(f);
}

void node_read_token(struct node *n)
{
    char path[100];

    (void)snprintf(path, sizeof path, "%s/admin-token", n->data);
    FILE *f = fopen(path, "r");
    if (f || !n->schema[0]) /* another node may have made it */
        n->token[0] = 0;
    if (f && fgets(n->token, sizeof n->token, f))
        n->token[strcspn(n->token, "\n")] = 0;
    if (f)
        (void)fclose(f);
}

static void spawn_node(struct node *n, const char *const *flags, int out)
{
    const char *argv[32] = {"intact", "serve", "--data", n->data, "--listen"};
    char listen[32];
    size_t argc = 6;

    if (!n->port)
        n->port = test_port();
    CHECK(n->port, "no free port");
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", n->port);
    argv[5] = listen;
    if (n->schema[0]) {
        const char *const more[] = {"--store", cluster_conninfo(), "--schema",
                                    n->schema, "--node",           n->name};
        memcpy(argv + argc, more, sizeof more);
        argc += COUNT_OF(more);
    }
    while (*flags)
        argv[argc++] = *flags++;
    CHECK(argc < COUNT_OF(argv), "too many flags");
    n->pid = spawn(argv, out, n->log);
}

void node_begin(struct node *n, const char *const *flags)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    spawn_node(n, flags, nowhere);
    (void)close(nowhere);
}

/* False: it does not run. */
static bool start_once(struct node *n, const char *const *flags, char line[100])
{
    int pipes[2];

    CHECK(pipe2(pipes, O_CLOEXEC) == 0, "%s", strerror(errno));
    spawn_node(n, flags, pipes[1]);
    (void)close(pipes[1]);
    FILE *f = fdopen(pipes[0], "r");
    bool ready = f && fgets(line, 100, f) && sscanf(line, "listening on port %d", &n->port) == 1;
    if (f)
        (void)fclose(f);
    return ready;
}

void node_start(struct node *n, const char *const *flags)
{
    bool has_port = n->port != 0;
    char line[100] = "";
    bool ready = start_once(n, flags, line);

    if (!ready && !has_port && node_log_has(n, "address already in use")) {
        (void)node_wait(n, PATIENCE_MS); /* another test was faster */
        n->port = 0;
        ready = start_once(n, flags, line);
    }
    if (!ready)
        print_file(n->log);
    CHECK(ready, "it does not start; it said \"%s\"", line);
    node_read_token(n);
}

void nodes_start(struct node *nodes, size_t count, const char *const *flags)
{
    for (size_t i = 0; i < count; i++) {
        node_start(&nodes[i], flags);
        if (i > 0)
            memcpy(nodes[i].token, nodes[0].token, sizeof nodes[i].token);
    }
}

int node_wait(struct node *n, int ms)
{
    int64_t until = steady_ms() + ms;
    int status = 0;

    while (waitpid(n->pid, &status, WNOHANG) == 0) {
        if (steady_ms() >= until)
            return -1;
        sleep_ms(5);
    }
    n->pid = 0;
    return status;
}

void node_signal(struct node *n, int signal)
{
    CHECK(n->pid != 0, "no server");
    CHECK(kill(n->pid, signal) == 0, "%s", strerror(errno));
}

void node_kill(struct node *n)
{
    node_signal(n, SIGKILL);
    (void)node_wait(n, PATIENCE_MS);
}

void node_stop(struct node *n)
{
    node_signal(n, SIGTERM);
    int status = node_wait(n, PATIENCE_MS);
    if (status != 0)
        print_file(n->log);
    CHECK(status == 0, "wait status %x", (unsigned)status);
}

size_t node_log_count(const struct node *n, const char *text)
{
    FILE *f = fopen(n->log, "r");
    char line[2000];
    size_t count = 0;

    while (f && fgets(line, sizeof line, f))
        count += strstr(line, text) != NULL;
    if (f)
        (void)fclose(f);
    return count;
}

bool node_log_has(const struct node *n, const char *text)
{
    return node_log_count(n, text) > 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void node_fini(struct node *n)
{
    static const char *const bad[] = {"assertion failed", "AddressSanitizer",
                                      "runtime error:", "LeakSanitizer", "ThreadSanitizer"};

    if (n->pid)
        node_kill(n);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bool has = node_log_has(n, bad[i]);
        if (has)
            print_file(n->log);
        CHECK(!has, "the server's log has \"%s\"", bad[i]);
    }
    (void)nftw(n->home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct node *node_open(struct node *n, const char *const *flags)
{
    node_init(n);
    node_start(n, flags);
    return n;
}

int node_end(void **state)
{
    struct node *n = *state;

    if (!n)
        return 0; /* there was no set-up */
    if (n->pid)
        node_stop(n);
    node_fini(n);
    return 0;
}

int64_t node_resident_kb(const struct node *n)
{
    char path[64];
    char line[200];
    int64_t kb = -1;

    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)n->pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtoll(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    CHECK(kb > 0, "no VmRSS in %s", path);
    return kb;
}

int serve_briefly(const char *const *flags, struct buf *ret_stderr)
{
    const char *argv[24] = {"intact", "serve"};
    char path[] = "/tmp/intact-e2e-err.XXXXXX";
    struct node n = {0};
    size_t argc = 2;
    ssize_t len = 0;

    while (*flags)
        argv[argc++] = *flags++;
    int fd = mkstemp(path);
    CHECK(fd >= 0, "%s", strerror(errno));
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    n.pid = spawn(argv, nowhere, path);
    (void)close(nowhere);
    pid_t pid = n.pid;
    int status = node_wait(&n, PATIENCE_MS);
    if (status < 0)
        (void)kill(pid, SIGKILL);
    while ((len = read(fd, buf_room(ret_stderr, 4096), 4096)) > 0)
        ret_stderr->len += (size_t)len;
    buf_str(ret_stderr, "");
    (void)close(fd);
    (void)unlink(path);
    CHECK(status >= 0, "it runs, and should not: %s", ret_stderr->ptr);
    CHECK(WIFEXITED(status), "ended by a signal: %s", ret_stderr->ptr);
    return WEXITSTATUS(status);
}
