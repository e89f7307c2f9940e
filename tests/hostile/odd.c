/* Implements odd.h: starts processes with a prepared environment, and waits for lines in their
 * logs. */

#include "odd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;
static const char *agent;

void odd_program(int argc, char **argv)
{
    kit_program(argc, argv);
    program = realpath(argv[1], NULL);
    CHECK(program, "%s", argv[1]);
    agent = argc > 2 ? argv[2] : NULL;
}

/* ---- processes ---- */

static void become(const char *path, const char *const *argv, const char *log, void (*before)(void))
{
    union {
        const char *const *in;
        char *const *out;
    } args = {argv}; /* it changes none of them */
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    int err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (nowhere < 0 || err < 0)
        _exit(126);
    if (dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 || dup2(err, 2) < 0)
        _exit(126);
    if (before)
        before();
    (void)execv(path, args.out);
    _exit(127);
}

static pid_t spawn(const char *path, const char *name, const char *const *args, const char *log,
                   void (*before)(void))
{
    const char *argv[32] = {name};
    size_t argc = 1;

    while (*args)
        argv[argc++] = *args++;
    pid_t pid = fork();
    CHECK(pid >= 0, "%s", strerror(errno));
    if (pid == 0)
        become(path, argv, log, before);
    return pid;
}

pid_t odd_spawn(const char *const *args, const char *log, void (*before)(void))
{
    return spawn(program, "intact", args, log, before);
}

pid_t odd_agent(const char *const *args, const char *log)
{
    CHECK(agent, "no agent was named");
    return spawn(agent, "agent", args, log, NULL);
}

int odd_wait(pid_t pid, int ms)
{
    struct node n = {.pid = pid};

    return node_wait(&n, ms);
}

void odd_kill(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)odd_wait(pid, PATIENCE_MS);
}

int odd_run(const char *const *args, void (*before)(void), struct buf *ret_stderr)
{
    char log[] = "/tmp/intact-hostile.XXXXXX";
    ssize_t len = 0;
    int fd = mkstemp(log);

    CHECK(fd >= 0, "%s", strerror(errno));
    pid_t pid = odd_spawn(args, log, before);
    int status = odd_wait(pid, PATIENCE_MS);
    if (status < 0)
        odd_kill(pid);
    while ((len = read(fd, buf_room(ret_stderr, 4096), 4096)) > 0)
        ret_stderr->len += (size_t)len;
    buf_str(ret_stderr, "");
    (void)close(fd);
    (void)unlink(log);
    CHECK(status >= 0, "it runs, and should not: %s", ret_stderr->ptr);
    CHECK(WIFEXITED(status), "wait status %x: %s", (unsigned)status, ret_stderr->ptr);
    return WEXITSTATUS(status);
}

static bool answers(const struct node *n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)n->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;

    (void)close(fd);
    return ok;
}

void odd_node(struct node *n, const char *const *flags, void (*before)(void))
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char listen[32];
    const char *args[24] = {"serve", "--data", n->data, "--listen", listen};
    size_t argc = 5;
    REPLY r = {0};

    CHECK(n->port && !n->pid, "it never ran, or still does");
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", n->port);
    while (*flags)
        args[argc++] = *flags++;
    n->pid = odd_spawn(args, n->log, before);
    while (!answers(n)) {
        CHECK(odd_wait(n->pid, 10) < 0, "it ended");
        CHECK(steady_ms() < until, "it does not listen");
    }
    node_read_token(n);
    wait_until_ready_is(n, 200, &r);
}

void expect_refusal(const char *const *args, void (*before)(void), const char *says,
                    const char *says_too)
{
    CLEANUP(buf_fini) struct buf err = {0};
    int status = odd_run(args, before, &err);
    size_t lines = 0;

    CHECK(status == 1, "\"%s\": exit status %d: %s", says, status, err.ptr);
    CHECK(strstr(err.ptr, says), "\"%s\" is not in: %s", says, err.ptr);
    CHECK(strstr(err.ptr, says_too), "\"%s\" is not in: %s", says_too, err.ptr);
    CHECK(strncmp(err.ptr, "intact serve: ", 14) == 0, "%s", err.ptr);
    for (const char *p = err.ptr; (p = strchr(p, '\n')); p++)
        lines++;
    CHECK(lines == 1, "%zu lines: %s", lines, err.ptr);
}

/* ---- what a server says ---- */

unsigned logged(const struct node *n, const char *text)
{
    FILE *f = fopen(n->log, "r");
    char line[2000];
    unsigned count = 0;

    while (f && fgets(line, sizeof line, f))
        count += strstr(line, text) != NULL;
    if (f)
        (void)fclose(f);
    return count;
}

void wait_until_logged(const struct node *n, const char *text, unsigned count)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (logged(n, text) < count) {
        CHECK(steady_ms() < until, "%u times %s", logged(n, text), text);
        sleep_ms(20);
    }
}

void wait_until_ready_is(const struct node *n, int status, struct reply *r)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        get(n, r, "/readyz");
        if (r->status == status)
            return;
        CHECK(steady_ms() < until, "readyz stays %d: %.*s", r->status, SLICE_ARG(r->body));
        sleep_ms(20);
    }
}

/* ---- work ---- */

void define_one(const struct node *n)
{
    (void)define(n, "one",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"complete_by\": \"10m\", \"undo\": \"none\"}]");
}

void finish_one(const struct node *n, const char *id)
{
    serve_step(n, "ag", "i", "1");
    wait_for_state(n, id, "processed");
}
