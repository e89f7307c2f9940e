/* An agent on a loop of its own making, poll(2), with one thread: it answers "wait" after as many
 * milliseconds as the input says. Up to a thousand requests wait at a time. See alarm.json. */

#define _POSIX_C_SOURCE 200809L

#include <intact/agent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct alarm {
    struct alarm *next;
    struct intact_request *request;
    int64_t at;
};

static struct alarm *alarms;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The request will not be answered any more, or was. */
static void forget(struct alarm *alarm)
{
    struct alarm **place = &alarms;

    while (*place != alarm)
        place = &(*place)->next;
    *place = alarm->next;
    free(alarm);
}

/* The deadline has passed, or the task is to be undone. */
static void on_stop(struct intact_request *r, void *arg)
{
    intact_answer_error(r, "stopped", "nobody waits for this alarm any more", INTACT_PERMANENT);
    forget((struct alarm *)arg);
}

static void wait_a_while(struct intact_request *r, void *arg)
{
    struct alarm *alarm = (struct alarm *)malloc(sizeof *alarm);

    (void)arg;
    if (!alarm) {
        intact_answer_error(r, "no_memory", NULL, INTACT_RETRYABLE | INTACT_EFFECT_NONE);
        return;
    }
    alarm->request = r;
    alarm->at = now_ms() + strtol(intact_request_input(r), NULL, 10);
    alarm->next = alarms;
    alarms = alarm;
    intact_request_keep(r);
    intact_request_on_stop(r, on_stop, alarm);
}

static void ring(void)
{
    for (struct alarm *alarm = alarms, *next; alarm; alarm = next) {
        next = alarm->next;
        if (alarm->at > now_ms())
            continue;
        intact_answer(alarm->request, "\"rang\"");
        forget(alarm);
    }
}

/* Until the next alarm, or until the agent wants to be driven. */
static int timeout_ms(struct intact_agent *a)
{
    int64_t ms = intact_agent_timeout_ms(a);

    for (struct alarm *alarm = alarms; alarm; alarm = alarm->next)
        if (alarm->at - now_ms() < ms)
            ms = alarm->at - now_ms();
    return ms < 0 ? 0 : (int)ms;
}

static void on_signal(int number)
{
    (void)number;
    intact_agent_stop();
}

int main(void)
{
    struct intact_agent *a = intact_agent_new("clock");
    struct pollfd p = {0, POLLIN, 0};

    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    intact_agent_on(a, "wait", INTACT_FORWARD, wait_a_while, NULL);
    intact_agent_set_inline(a, true);
    intact_agent_set_concurrency(a, 1000);
    p.fd = intact_agent_fd(a);
    while (intact_agent_drive(a)) {
        poll(&p, 1, timeout_ms(a)); /* add descriptors of your own */
        ring();
    }
    int result = (int)intact_agent_outcome(a);
    intact_agent_free(a);
    return result;
}
