/*
 * Priorities of threads: see priority.h.
 *
 * Since Linux 6.12 a thread of the normal class can ask for a time slice of its own. A shorter one
 * gives it no larger share, but an earlier one: EEVDF runs the thread with the earliest deadline,
 * which is one slice away (Documentation/scheduler/sched-eevdf.rst). Older kernels ignore the
 * request.
 */
#include "base/priority.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOWER_BY = 10,     /* a ninth of the share of the thread that serves */
    LOWEST = 19,       /* of nice values */
    SLICE_NS = 100000, /* the shortest that the kernel takes */
    RESET_ON_FORK = 1, /* SCHED_FLAG_...: new threads and processes have the usual slice */
    KEEP_POLICY = 8,
};

/* As sched_setattr(2) takes it; the C library has no declaration of it. */
struct sched_attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime; /* of SCHED_OTHER: the slice; 0: the usual one */
    uint64_t deadline;
    uint64_t period;
};

/* Should the system not allow it, the thread goes on as it is. On Linux a nice value is the calling
 * thread's. */
static void thread_set(uint64_t flags, int nice, uint64_t slice_ns)
{
    struct sched_attr a = {.size = sizeof a,
                           .flags = KEEP_POLICY | flags,
                           .nice = nice,
                           .runtime = slice_ns};

    if (syscall(SYS_sched_setattr, 0, &a, 0) != 0)
        (void)setpriority(PRIO_PROCESS, 0, nice);
}

void thread_is_prompt(void)
{
    thread_set(RESET_ON_FORK, getpriority(PRIO_PROCESS, 0), SLICE_NS);
}

void thread_is_beside(void)
{
    static _Thread_local bool is_lower;

    if (is_lower)
        return;
    is_lower = true;
    int nice = getpriority(PRIO_PROCESS, 0) + LOWER_BY;
    thread_set(0, nice < LOWEST ? nice : LOWEST, 0);
}
