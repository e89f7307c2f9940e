/* Runs many seeds in several processes, so that a run that fails or crashes ends only its
 * process, and shares the counts of coverage.c between them (many.h). main.c is the caller. */

#include "sim/many.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/coverage.h"
#include "sim/world.h"

enum { JOBS_MAX = 64 };

/* Shared by the processes. */
struct board {
    uint64_t next; /* the next seed, less `from` */
    struct place {
        uint64_t seed; /* the current run */
        char rule[300];
    } places[JOBS_MAX];
};

static void *share(size_t size)
{
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ASSERT(page != MAP_FAILED);
    return page;
}

static void work(const struct many *m, struct board *b, struct place *p)
{
    broken_rule = p->rule;
    broken_rule_size = sizeof p->rule;
    for (;;) {
        uint64_t at = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
        if (at >= m->count)
            break;
        p->seed = m->from + at;
        m->run(p->seed, m->arg);
    }
    fflush(stdout);
    _exit(0);
}

static pid_t start(const struct many *m, struct board *b, struct place *p)
{
    fflush(stdout);
    p->rule[0] = 0;
    pid_t pid = fork();
    ASSERT(pid >= 0);
    if (pid > 0)
        return pid;
    int nowhere = m->keep_going ? open("/dev/null", O_WRONLY) : -1;
    if (nowhere >= 0)
        (void)dup2(nowhere, STDERR_FILENO); /* if it fails, there is more output */
    work(m, b, p);
    _exit(0);
}

static void failed(const struct many *m, struct place *p, int status)
{
    bool silent = !p->rule[0];

    if (silent)
        (void)snprintf(p->rule, sizeof p->rule, "it crashed (%s %d)",
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (silent || m->keep_going)
        fprintf(stderr, "seed %" PRIu64 ": %s\n", p->seed, p->rule);
    m->failed(p->seed, p->rule, m->arg);
}

static uint32_t place_of(const pid_t *pids, uint32_t jobs, pid_t pid)
{
    for (uint32_t i = 0; i < jobs; i++)
        if (pids[i] == pid)
            return i;
    UNREACHABLE();
}

uint64_t many_run(const struct many *m)
{
    uint32_t jobs = m->jobs > 0 && m->jobs <= JOBS_MAX ? m->jobs : 1;
    struct board *b = share(sizeof *b);
    pid_t pids[JOBS_MAX];
    uint64_t failures = 0;
    int status = 0;

    coverage_share(share(coverage_size()));
    for (uint32_t i = 0; i < jobs; i++)
        pids[i] = start(m, b, &b->places[i]);
    for (uint32_t running = jobs; running > 0;) {
        pid_t pid = wait(&status);
        ASSERT(pid > 0);
        running--;
        if (status == 0)
            continue;
        uint32_t i = place_of(pids, jobs, pid);
        failures++;
        failed(m, &b->places[i], status);
        if (m->keep_going) {
            pids[i] = start(m, b, &b->places[i]);
            running++;
        } else {
            b->next = m->count; /* the others finish their current run */
        }
    }
    (void)munmap(b, sizeof *b);
    return failures;
}
