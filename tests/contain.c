/*
 * contain: runs a test and leaves none of its processes running.
 *
 *     contain [--grace SECONDS] COMMAND [ARGUMENT...]
 *
 * Meson waits until all writers have closed a test's output. A process that a test left in the
 * background would block the whole run, most likely after a failure. Such processes become children
 * of contain (PR_SET_CHILD_SUBREAPER). Those that still run ten seconds after the test are printed
 * and killed, and the test fails. Otherwise contain exits as the command did.
 *
 * SIGTERM, which meson sends to a test that takes too long, kills all of them.
 *
 * A test that is a script starts the program many times. The search for leaks at each end is a
 * third of what a command takes, so contain turns it off for scripts, unless LSAN_OPTIONS is set.
 * Tests in C and the servers that they start do look for leaks.
 *
 * Its last line on stderr is the processor time of the test and its processes, which tools/test
 * adds up.
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_S = 10, PAUSE_MS = 50, DYING_MS = 200, TEXT = 512, RUNNING = -1 };

static struct {
    sigset_t signals;
    pid_t test;
    int status; /* of the test; RUNNING until it has ended */
} c = {.status = RUNNING};

/* Collects what has ended. False: nothing is left. */
static bool reap(void)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0)
            return pid == 0;
        if (pid == c.test)
            c.status = status;
    }
}

/* Waits for the end of a child, but not for long. True: we are told to end. */
static bool pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    int signal = sigtimedwait(&c.signals, NULL, &time);

    return signal == SIGTERM || signal == SIGINT;
}

/* False: nothing was left after that time. */
static bool remain(long ms)
{
    for (; ms > 0 && reap(); ms -= PAUSE_MS)
        (void)pause_ms(PAUSE_MS);
    return reap();
}

static void name_process(int pid)
{
    char path[64];
    char line[TEXT] = "";

    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "r");
    size_t size = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        (void)fclose(f);
    for (size_t i = 0; i + 1 < size; i++)
        if (line[i] == '\0')
            line[i] = ' ';
    fprintf(stderr, "left behind: %s\n", size ? line : "a process without a name");
}

/* The children of those that are killed become ours. */
static void kill_children(bool name)
{
    char path[64];
    int child;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", getpid(), getpid());
    FILE *f = fopen(path, "r");
    while (f && fscanf(f, "%d", &child) == 1) {
        if (name)
            name_process(child);
        (void)kill(child, SIGKILL);
    }
    if (f)
        (void)fclose(f);
}

/* A program of the build is in or below the folder above contain's own; what is found by PATH is
 * not. */
static bool is_script(const char *contain, const char *program)
{
    char *here = realpath(contain, NULL);
    char *there = realpath(program, NULL);
    size_t length = here ? strlen(here) : 0;
    size_t own = strlen("tests/contain");
    bool is_built = there && length > own && strcmp(here + length - own, "tests/contain") == 0
                    && strncmp(here, there, length - own) == 0;

    free(here);
    free(there);
    return !is_built;
}

static void start(char **command)
{
    sigset_t before;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)sigemptyset(&c.signals);
    (void)sigaddset(&c.signals, SIGCHLD);
    (void)sigaddset(&c.signals, SIGTERM);
    (void)sigaddset(&c.signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &c.signals, &before);
    c.test = fork();
    if (c.test == 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        (void)execvp(command[0], command);
        fprintf(stderr, "contain: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    if (c.test < 0) {
        perror("contain: fork");
        exit(1);
    }
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void print_processor_time(void)
{
    struct rusage used;

    if (getrusage(RUSAGE_CHILDREN, &used) == 0)
        fprintf(stderr, "processor time: %.1f s\n",
                seconds(&used.ru_utime) + seconds(&used.ru_stime));
}

int main(int argc, char **argv)
{
    bool has_grace = argc > 2 && strcmp(argv[1], "--grace") == 0;
    long grace_ms = has_grace ? strtol(argv[2], NULL, 10) * 1000 : GRACE_S * 1000;
    char **command = argv + (has_grace ? 3 : 1);
    bool told = false;

    if (argc < (has_grace ? 4 : 2)) {
        fprintf(stderr, "usage: contain [--grace SECONDS] COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (is_script(argv[0], command[0]))
        (void)setenv("LSAN_OPTIONS", "detect_leaks=0", 0);
    start(command);
    while (c.status == RUNNING && !told) {
        told = pause_ms(1000);
        (void)reap();
    }
    bool left = remain(told ? DYING_MS : grace_ms);
    for (bool name = !told; reap(); name = false) {
        kill_children(name);
        (void)pause_ms(PAUSE_MS);
    }
    print_processor_time();
    if (told)
        return 128 + SIGTERM;
    if (WIFSIGNALED(c.status))
        return 128 + WTERMSIG(c.status);
    return WEXITSTATUS(c.status) == 0 && left ? 1 : WEXITSTATUS(c.status);
}
