/* The process between the agent and a command. It starts the command, limits and confines it,
 * reaps what it leaves behind, and ends when the agent does. Runs in a forked child: it allocates
 * nothing. See keeper.h. */

#include "agents/exec/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/calls.h"
#include "confine/landlock.h"

enum {
    ABOVE = 16,
    RULESET = KEEPER_ENDS, /* where the ruleset is, if there is one */
    FAILED_TO_RUN = 127,
    CHILDREN_READ_MAX = 256,
};

/* ---- the command ---- */

static _Noreturn void give_up(const char *stage)
{
    struct keeper_report report = {.what = KEEPER_NOT_RUN, .value = errno};

    memcpy(report.stage, stage, strnlen(stage, sizeof report.stage - 1));
    (void)!write(KEEPER_STATUS, &report, sizeof report); /* who does not read it has died */
    _exit(FAILED_TO_RUN);
}

static void set_limits(const struct keeper_order *o)
{
    const struct rlimit none = {0, 0};
    const struct rlimit memory = {(rlim_t)o->memory, (rlim_t)o->memory};

    if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_NOFILE, &o->files) != 0
        || (o->memory > 0 && setrlimit(RLIMIT_AS, &memory) != 0))
        give_up("limits");
}

static void set_user(const struct keeper_order *o)
{
    if (!o->switches_user)
        return;
    if (setgroups(o->group_count, o->groups) != 0 || setgid(o->gid) != 0 || setuid(o->uid) != 0)
        give_up("user");
}

static void set_bounds(const struct keeper_order *o)
{
    if (o->no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        give_up("privileges");
    if (o->ruleset < 0)
        return;
    if (!landlock_enter(RULESET)
        || (landlock_version() < LANDLOCK_HAS_TRUNCATE && !calls_give_up_truncating()))
        give_up("confine");
}

static void reset_signals(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &usual, NULL); /* some cannot be changed */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail */
}

static _Noreturn void become_command(const struct keeper_order *o, pid_t keeper)
{
    (void)setsid(); /* a child of fork leads no group yet */
    set_limits(o);
    set_user(o);
    /* Behind the change of user, which takes it back. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != keeper)
        give_up("keeper");
    if (chdir(o->directory) != 0)
        give_up("directory");
    set_bounds(o);
    reset_signals();
    (void)execve(o->program, o->argv, o->envp);
    give_up("program");
}

/* ---- children ---- */

/* The first few children of this thread. -1: /proc is not readable. */
static int children(pid_t *ret)
{
    char text[4096];
    int count = 0;
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size < 0)
        return -1;
    text[size] = 0;
    for (char *p = text; *p && count < CHILDREN_READ_MAX;) {
        char *end = p;
        pid_t pid = 0;
        while (*end >= '0' && *end <= '9')
            pid = pid * 10 + (*end++ - '0');
        if (end > p && *end == ' ') /* else it may be cut off */
            ret[count++] = pid;
        p = *end ? end + 1 : end;
    }
    return count;
}

static void pause_briefly(void)
{
    const struct timespec t = {0, 2000000};

    (void)nanosleep(&t, NULL);
}

bool keeper_sweep(bool (*is_known)(void *arg, pid_t pid), void *arg)
{
    pid_t pids[CHILDREN_READ_MAX];
    bool any = false;
    int count = children(pids);

    for (int i = 0; i < count; i++) {
        if (is_known(arg, pids[i]))
            continue;
        any = true;
        (void)kill(pids[i], SIGKILL); /* fails for another user's: then it is waited for */
        (void)waitpid(pids[i], NULL, WNOHANG);
    }
    return any;
}

static bool nobody(void *arg, pid_t pid)
{
    (void)arg;
    (void)pid;
    return false;
}

/* What the killed leave behind becomes ours, and is killed in the next round. */
static void kill_what_is_left(void)
{
    while (waitpid(-1, NULL, WNOHANG) >= 0) { /* until there are none */
        (void)keeper_sweep(nobody, NULL);     /* without /proc they have to end by themselves */
        pause_briefly();
    }
}

/* ---- the keeper ---- */

struct keeping {
    pid_t command;
    int signals;
    bool agent_died;
};

/* A group exists until its leader is reaped; then its number may be reused. A command gets a signal
 * once: a shell would run its trap a second time within the first. */
static void end_command(const struct keeping *k, int how)
{
    bool is_alone = kill(-k->command, how) != 0; /* it does not lead its group yet */

    if (is_alone || how == SIGKILL)
        (void)kill(k->command, how);
}

static void read_control(struct keeping *k)
{
    char what = 0;
    ssize_t size = read(KEEPER_CONTROL, &what, 1);

    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (size <= 0) {
        k->agent_died = true;
        end_command(k, SIGKILL);
    } else {
        end_command(k, what == KEEPER_TERM ? SIGTERM : SIGKILL);
    }
}

/* True: the command has ended, and that was reported. Other, orphaned processes are reaped. */
static bool reap(const struct keeping *k)
{
    siginfo_t info;
    struct keeper_report report = {.what = KEEPER_ENDED};

    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return false;
        if (info.si_pid != k->command) {
            (void)waitpid(info.si_pid, NULL, WNOHANG);
            continue;
        }
        end_command(k, SIGKILL); /* the rest of its group */
        (void)waitpid(k->command, &report.value, 0);
        (void)!write(KEEPER_STATUS, &report, sizeof report); /* or the agent has died */
        return true;
    }
}

static void watch(struct keeping *k)
{
    struct pollfd p[] = {{.fd = k->signals, .events = POLLIN},
                         {.fd = KEEPER_CONTROL, .events = POLLIN}};
    struct signalfd_siginfo ignored;

    while (!reap(k)) {
        p[1].fd = k->agent_died ? -1 : KEEPER_CONTROL;
        (void)poll(p, 2, -1);
        if (p[0].revents)
            (void)!read(k->signals, &ignored, sizeof ignored);
        if (p[1].revents)
            read_control(k);
    }
}

/* The ends become 0 to 5, the ruleset 6, and nothing else stays open. */
static bool place_ends(const struct keeper_order *o)
{
    int safe[KEEPER_ENDS + 1];
    int count = o->ruleset >= 0 ? KEEPER_ENDS + 1 : KEEPER_ENDS;
    bool ok = true;

    for (int i = 0; i < count; i++) {
        safe[i] = fcntl(i == RULESET ? o->ruleset : o->ends[i], F_DUPFD, ABOVE);
        ok &= safe[i] >= 0;
    }
    for (int i = 0; i < count && ok; i++)
        ok = dup2(safe[i], i) == i;
    ok &= close_range((unsigned)count, ~0u, 0) == 0;
    ok &= count == KEEPER_ENDS || fcntl(RULESET, F_SETFD, FD_CLOEXEC) == 0;
    ok &= fcntl(KEEPER_CONTROL, F_SETFD, FD_CLOEXEC) == 0;
    ok &= fcntl(KEEPER_STATUS, F_SETFD, FD_CLOEXEC) == 0;
    return ok;
}

static _Noreturn void keep(const struct keeper_order *o)
{
    struct keeping k = {0};
    sigset_t child;

    if (!place_ends(o))
        _exit(FAILED_TO_RUN);
    (void)prctl(PR_SET_NAME, "intact-keeper"); /* for people */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)setsid();                         /* no signals from a terminal */
    (void)prctl(PR_SET_PDEATHSIG, SIGCONT); /* its command may have stopped it */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    k.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t self = getpid();
    k.command = fork();
    if (k.command == 0)
        become_command(o, self);
    if (k.command < 0 || k.signals < 0)
        give_up("fork");
    for (int i = KEEPER_IN; i <= KEEPER_PROGRESS; i++)
        close(i);
    watch(&k);
    kill_what_is_left();
    _exit(0);
}

pid_t keeper_start(const struct keeper_order *o)
{
    sigset_t all;
    sigset_t before;

    ASSERT(o->program && o->argv && o->argv[0] && o->envp && o->directory);
    for (int i = 0; i < KEEPER_ENDS; i++)
        ASSERT(o->ends[i] >= 0);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
    pid_t pid = fork();
    if (pid == 0)
        keep(o);
    int err = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = err;
    return pid;
}
