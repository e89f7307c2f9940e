/* Limits the processor time of one turn of libcurl by a timer and a signal, whose handler shuts
 * the connections of the service down (watchdog.h says why). The handler uses only functions that
 * are safe in signal handlers. transfer.c registers sockets; agents/http/service.c and
 * webhook/receiver.c begin and end turns. */

#include "net/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id /* glibc before 2.35 has another name */
    #define sigev_notify_thread_id _sigev_un._tid
#endif

enum { TICKS_MAX = 3 /* seconds of processor time */, SOCKETS_MAX = 16384 };

static struct {
    timer_t timer;
    bool is_on;
    const void *volatile at_work;
    volatile sig_atomic_t ticks;
    const void *volatile whose[SOCKETS_MAX]; /* by descriptor; higher ones are not watched */
} watch;

/* Async-signal-safe functions only. */
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
    const struct itimerspec each_second = {{1, 0}, {1, 0}};
    struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent to_me = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    sigset_t prof;

    ASSERT(!watch.is_on);
    to_me.sigev_notify_thread_id = gettid();
    sigemptyset(&act.sa_mask);
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    if (sigaction(SIGPROF, &act, NULL) != 0 || pthread_sigmask(SIG_UNBLOCK, &prof, NULL) != 0
        || timer_create(CLOCK_THREAD_CPUTIME_ID, &to_me, &watch.timer) != 0)
        return false;
    watch.is_on = true;
    return timer_settime(watch.timer, 0, &each_second, NULL) == 0;
}

void watchdog_stop(void)
{
    if (watch.is_on)
        (void)timer_delete(watch.timer); /* it exists */
    watch.is_on = false;
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
