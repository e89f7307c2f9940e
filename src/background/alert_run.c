/*
 * Runs a command that receives alerts, without a shell. It is a process group of its own, which is
 * killed when its time is over, and when it has ended; what it moved to another group remains. It
 * gets PATH, HOME and LANG of the server's environment, and nothing else, because secrets may be
 * there.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "background/alert_send.h"
#include "base/buf.h"
#include "base/clock.h"

enum { TIMEOUT_MS = 30000, LOOK_MS = 50, HEARD_MAX = 150 };

struct run {
    pid_t pid;
    int in, err; /* -1: closed */
    size_t written;
    struct buf output; /* of its standard error */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void environment(char store[3][4200], char *ret[4])
{
    static const char *const names[] = {"PATH", "HOME", "LANG"};
    size_t count = 0;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (!value || strlen(value) > 4096)
            continue;
        (void)snprintf(store[count], 4200, "%s=%s", names[i], value);
        ret[count] = store[count];
        count++;
    }
    ret[count] = NULL;
}

static int spawn(struct run *r, const struct sink_setting *how, int in, int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all;
    sigset_t none;
    char store[3][4200];
    char *env[4];

    ASSERT(how->words[0]);
    environment(store, env);
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&files) | posix_spawnattr_init(&attr);
    ASSERT(rc == 0);
    rc = posix_spawn_file_actions_adddup2(&files, in, 0)
         | posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0)
         | posix_spawn_file_actions_adddup2(&files, err, 2)
         | posix_spawnattr_setsigdefault(&attr, &all) | posix_spawnattr_setsigmask(&attr, &none)
         | posix_spawnattr_setpgroup(&attr, 0)
         | posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
                                               | POSIX_SPAWN_SETPGROUP);
    if (rc == 0)
        rc = posix_spawn(&r->pid, how->words[0], &files, &attr,
                         (char *const *)(uintptr_t)how->words, env);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}

static int start(struct run *r, const struct sink_setting *how)
{
    int in[2];
    int err[2];

    if (pipe2(in, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(err, O_CLOEXEC) != 0) {
        int code = errno;
        (void)close(in[0]);
        (void)close(in[1]);
        return code;
    }
    int rc = spawn(r, how, in[0], err[1]);
    (void)close(in[0]);
    (void)close(err[1]);
    r->in = in[1];
    r->err = err[0];
    (void)fcntl(r->in, F_SETFL, O_NONBLOCK);
    (void)fcntl(r->err, F_SETFL, O_NONBLOCK);
    if (rc != 0) {
        close_fd(&r->in);
        close_fd(&r->err);
    }
    return rc;
}

/* A command need not read all of its input: SIGPIPE is ignored in a server. */
static void feed(struct run *r, struct slice body)
{
    ASSERT(r->written <= body.len);
    ssize_t n = write(r->in, body.ptr + r->written, body.len - r->written);

    if (n > 0)
        r->written += (size_t)n;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || r->written == body.len)
        close_fd(&r->in);
}

static void hear(struct run *r)
{
    char chunk[512];
    ssize_t n = read(r->err, chunk, sizeof chunk);

    if (n > 0 && r->output.len < HEARD_MAX)
        buf_add(&r->output, chunk, (size_t)n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(&r->err);
}

static void wait_a_while(struct run *r, struct slice body)
{
    struct pollfd fds[2] = {{.fd = r->in, .events = POLLOUT}, {.fd = r->err, .events = POLLIN}};

    if (poll(fds, 2, LOOK_MS) <= 0)
        return;
    if (r->in >= 0 && fds[0].revents)
        feed(r, body);
    if (r->err >= 0 && fds[1].revents)
        hear(r);
}

static bool has_ended(const struct run *r)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* False: it had to be killed. Its group is killed before it is waited for: until then the number is
 * its own. */
static bool attend(struct run *r, const struct alert_sending *s, int *ret_status)
{
    int64_t until = clock_steady_ms() + (s->how->timeout_ms ? s->how->timeout_ms : TIMEOUT_MS);
    bool ended = false;

    ASSERT(r->pid > 1); /* its group is killed below */
    while (!(ended = has_ended(r)) && clock_steady_ms() < until && !*s->stop)
        wait_a_while(r, s->body);
    (void)kill(-r->pid, SIGKILL);
    while (waitpid(r->pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    if (r->err >= 0)
        hear(r);
    return ended;
}

static bool tell(const struct run *r, bool ended, int status, char *story, size_t size)
{
    struct slice output = slice_cut(buf_view(&r->output), HEARD_MAX);

    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    for (size_t i = 0; i < output.len; i++)
        if ((unsigned char)r->output.ptr[i] < ' ' || (unsigned char)r->output.ptr[i] > '~')
            r->output.ptr[i] = ' ';
    if (!ended)
        (void)snprintf(story, size, "it did not end in time and was killed");
    else if (WIFSIGNALED(status))
        (void)snprintf(story, size, "signal %d ended it", WTERMSIG(status));
    else
        (void)snprintf(story, size, "it ended with status %d: %.*s", WEXITSTATUS(status),
                       SLICE_ARG(output));
    return false;
}

bool alert_run(const struct alert_sending *s, char *story, size_t story_size)
{
    struct run r = {.in = -1, .err = -1};
    int status = 0;

    int rc = start(&r, s->how);
    if (rc != 0) {
        (void)snprintf(story, story_size, "cannot run %s: %s", s->how->words[0], strerror(rc));
        return false;
    }
    bool ended = attend(&r, s, &status);
    close_fd(&r.in);
    close_fd(&r.err);
    bool took = tell(&r, ended, status, story, story_size);
    buf_fini(&r.output);
    return took;
}
