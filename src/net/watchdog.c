#include "net/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { TICKS_MAX = 3 /* of a second of processor time */, SOCKETS_MAX = 16384 };

static struct {
    const void *volatile at_work;
    volatile sig_atomic_t ticks;
    const void *volatile whose[SOCKETS_MAX]; /* by descriptor; those above go unwatched */
} watch;

/* Only what may be called at any moment. */
static void on_tick(int number)
{
    int before = errno;
    const void *whose = watch.at_work;
    (void)number;

    if (!whose)
        return;
    watch.ticks = watch.ticks + 1;
    for (int i = 0; i < SOCKETS_MAX && watch.ticks >= TICKS_MAX; i++)
        if (watch.whose[i] == whose)
            (void)shutdown(i, SHUT_RDWR);
    errno = before;
}

bool watchdog_start(void)
{
    const struct itimerval each_second = {{1, 0}, {1, 0}};
    struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};

    sigemptyset(&act.sa_mask);
    return sigaction(SIGPROF, &act, NULL) == 0 && setitimer(ITIMER_PROF, &each_second, NULL) == 0;
}

void watchdog_begin(const void *whose)
{
    watch.ticks = 0;
    watch.at_work = whose;
}

void watchdog_end(void)
{
    watch.at_work = NULL;
}

bool watchdog_bit(void)
{
    return watch.at_work && watch.ticks >= TICKS_MAX;
}

void watchdog_opened(int fd, const void *whose)
{
    if (fd >= 0 && fd < SOCKETS_MAX)
        watch.whose[fd] = whose;
}

void watchdog_closes(int fd)
{
    watchdog_opened(fd, NULL);
}
