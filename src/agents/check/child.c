/* The agent under test as a child process: starts it, keeps its output, and kills it with all its
 * descendants (child.h). Between fork and exec only system calls are made. stage.c is the main
 * caller. */

#include "agents/check/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_MAX = 1 << 20 }; /* in one look: endless output must not block the loop */

void child_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* Linux has it since 3.4 */
}

/* Between fork and exec: only system calls. */
_Noreturn static void become(char **command, char **environment, const int out[2],
                             const int trouble[2], pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY);
    if (getppid() == parent && null >= 0 && dup2(null, 0) == 0 && dup2(out[1], 1) == 1
        && dup2(out[1], 2) == 2) {
        environ = environment;
        (void)execvp(command[0], command);
    }
    int reason = errno;
    ssize_t sent = write(trouble[1], &reason, sizeof reason);
    _exit(sent == sizeof reason ? 127 : 126);
}

static bool is_named_by(const char *entry, char *const *variables)
{
    for (size_t i = 0; variables[i]; i++) {
        size_t len = strcspn(variables[i], "=") + 1;
        if (strncmp(entry, variables[i], len) == 0)
            return true;
    }
    return false;
}

/* Our environment with the given variables, and without those given as ""; the caller frees the
 * array. */
static char **environment_with(char *const *variables)
{
    static char *nothing[] = {NULL};
    char **ours = environ ? environ : nothing;
    size_t own = 0;
    size_t more = 0;
    size_t n = 0;

    while (ours[own])
        own++;
    while (variables[more])
        more++;
    char **all = calloc(own + more + 1, sizeof *all);
    if (!all)
        out_of_memory((own + more + 1) * sizeof *all);
    for (size_t i = 0; i < own; i++)
        if (!is_named_by(ours[i], variables))
            all[n++] = ours[i];
    for (size_t i = 0; i < more; i++) {
        const char *value = strchr(variables[i], '=');
        ASSERT(value); /* each is NAME=VALUE, see child.h */
        if (value[1])
            all[n++] = variables[i];
    }
    return all;
}

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            (void)close(pair[i]);
}

/* Whether exec succeeded: then the pipe closes without data. */
static int read_trouble(int fd)
{
    int reason = 0;
    ssize_t got = 0;

    do
        got = read(fd, &reason, sizeof reason);
    while (got < 0 && errno == EINTR);
    return got == sizeof reason ? reason : 0;
}

enum err child_start(struct child *c, char **command, char *const *variables, struct error *e)
{
    int out[2] = {-1, -1};
    int trouble[2] = {-1, -1};
    pid_t parent = getpid();

    ASSERT(c->pid == 0);
    *c = (struct child){.out = -1, .verbose = c->verbose};
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(trouble, O_CLOEXEC) != 0) {
        close_pair(out);
        return error_set(e, ERR_IO, "no pipe: %s", strerror(errno));
    }
    char **environment = environment_with(variables);
    c->pid = fork();
    if (c->pid == 0)
        become(command, environment, out, trouble, parent);
    free(environment);
    (void)close(out[1]);
    (void)close(trouble[1]);
    int reason = c->pid < 0 ? errno : read_trouble(trouble[0]);
    (void)close(trouble[0]);
    if (reason) {
        (void)close(out[0]);
        if (c->pid > 0)
            (void)waitpid(c->pid, NULL, 0);
        c->pid = 0;
        return error_set(e, ERR_INVALID, "\"%s\" cannot be started: %s", command[0],
                         strerror(reason));
    }
    c->out = out[0];
    (void)fcntl(c->out, F_SETFL, O_NONBLOCK);
    return ERR_OK;
}

static void keep(struct child *c, const char *bytes, size_t len)
{
    if (c->verbose)
        (void)fwrite(bytes, 1, len, stderr);
    c->written += len;
    if (len >= CHILD_TAIL_MAX) {
        bytes += len - CHILD_TAIL_MAX;
        len = CHILD_TAIL_MAX;
    }
    size_t kept = c->tail_len + len > CHILD_TAIL_MAX ? CHILD_TAIL_MAX - len : c->tail_len;
    memmove(c->tail, c->tail + c->tail_len - kept, kept);
    memcpy(c->tail + kept, bytes, len);
    c->tail_len = kept + len;
}

static void read_out(struct child *c)
{
    char bytes[4096];
    ssize_t got = 0;

    for (size_t all = 0; c->out >= 0 && all < READ_MAX; all += (size_t)got) {
        got = read(c->out, bytes, sizeof bytes);
        if (got <= 0)
            break;
        keep(c, bytes, (size_t)got);
    }
    if (got == 0 && c->out >= 0 && c->has_ended) {
        (void)close(c->out);
        c->out = -1;
    }
}

void child_look(struct child *c)
{
    if (c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
        c->has_ended = true;
        (void)kill(-c->pid, SIGKILL); /* everything left in its session */
        c->pid = 0;
    }
    read_out(c);
}

void child_signal(struct child *c, int what)
{
    if (c->pid > 0)
        (void)kill(c->pid, what);
}

/* Adopted processes are listed among our children. 0: there is none. */
static pid_t first_child(void)
{
    char path[64];
    char line[32] = ""; /* the first entry of the list */
    char *end = line;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        (void)fclose(f);
    long pid = strtol(line, &end, 10);
    return *end == ' ' ? (pid_t)pid : 0;
}

void child_kill(struct child *c)
{
    if (c->pid > 0) {
        (void)kill(-c->pid, SIGKILL); /* not yet a session leader */
        (void)kill(c->pid, SIGKILL);
        (void)waitpid(c->pid, &c->status, 0);
        c->has_ended = true;
        c->pid = 0;
    }
    for (pid_t orphan = first_child(); orphan > 0; orphan = first_child()) {
        (void)kill(orphan, SIGKILL);
        if (waitpid(orphan, NULL, 0) < 0 && errno != EINTR)
            break;
    }
    read_out(c);
    if (c->out >= 0)
        (void)close(c->out);
    c->out = -1;
}

void child_describe_end(const struct child *c, char *to, size_t size)
{
    if (WIFSIGNALED(c->status))
        (void)snprintf(to, size, "it was killed by signal %d", WTERMSIG(c->status));
    else
        (void)snprintf(to, size, "it ended with status %d", WEXITSTATUS(c->status));
}
