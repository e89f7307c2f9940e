/* Stops all agents of the process, also from a signal handler, through descriptors that groups of
 * agents share (stop.h says why not one for all). Agents enter when they start and leave when
 * they end (agent.c). */

#include "libintact/stop.h"

#include <errno.h>
#include <intact/agent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    GROUP_SIZE = 40,  /* agents that share a descriptor, until all groups are full */
    GROUPS_MAX = 1024 /* 40 960 agents */
};

/* Descriptors stay open: a signal handler may hold their numbers. */
static struct {
    pthread_mutex_t lock;
    unsigned running; /* agents; under the lock, like the following */
    unsigned members[GROUPS_MAX];
    atomic_int fds[GROUPS_MAX]; /* eventfds, each plus one; 0: not created yet, like all after it */
    atomic_bool wanted;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

void intact_agent_stop(void)
{
    const uint64_t one = 1;
    int before = errno; /* a signal handler must preserve it */

    atomic_store(&process.wanted, true);
    for (int i = 0; i < GROUPS_MAX; i++) {
        int fd = atomic_load(&process.fds[i]) - 1;
        if (fd < 0)
            break;
        (void)!write(fd, &one, sizeof(one)); /* can only fail if it is readable already */
    }
    errno = before;
}

bool stop_is_wanted(void)
{
    return atomic_load(&process.wanted);
}

/* The first one with room, or else the one with the fewest members. */
static int best_group(void)
{
    int best = 0;

    for (int i = 0; i < GROUPS_MAX; i++) {
        if (process.members[i] < GROUP_SIZE)
            return i;
        if (process.members[i] < process.members[best])
            best = i;
    }
    return best;
}

/* A concurrent stop may miss a new descriptor; then it is made readable here. */
static bool make_descriptor(int group)
{
    if (atomic_load(&process.fds[group]) != 0)
        return true;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const uint64_t one = 1;
    if (fd < 0)
        return false;
    atomic_store(&process.fds[group], fd + 1);
    if (stop_is_wanted())
        (void)!write(fd, &one, sizeof(one)); /* it is empty */
    return true;
}

bool stop_enter(struct stop_seat *ret)
{
    pthread_mutex_lock(&process.lock);
    int group = best_group();
    bool ok = make_descriptor(group);
    if (ok) {
        process.running++;
        process.members[group]++;
        *ret = (struct stop_seat){.group = group, .fd = atomic_load(&process.fds[group]) - 1};
    }
    pthread_mutex_unlock(&process.lock);
    return ok;
}

/* The last agent to stop clears the request: agents that start later run. */
static void forget_stop(void)
{
    uint64_t ignored;

    atomic_store(&process.wanted, false);
    for (int i = 0; i < GROUPS_MAX && atomic_load(&process.fds[i]) != 0; i++)
        (void)!read(atomic_load(&process.fds[i]) - 1, &ignored, sizeof(ignored)); /* or empty */
}

void stop_leave(const struct stop_seat *s)
{
    pthread_mutex_lock(&process.lock);
    ASSERT(process.running > 0);
    ASSERT(process.members[s->group] > 0);
    process.members[s->group]--;
    if (--process.running == 0)
        forget_stop();
    pthread_mutex_unlock(&process.lock);
}
