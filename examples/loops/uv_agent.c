/* The agent of poll_agent.c on the loop of libuv: the loop watches the agent's descriptor and
 * drives it, and each request has a timer of its own. One thread. <intact/agent.h> says when an
 * agent has to be driven. */

#define _POSIX_C_SOURCE 200809L

#include <intact/agent.h>
#include <stdlib.h>
#include <uv.h>

static uv_loop_t *loop;
static struct intact_agent *agent;
static uv_poll_t readable;
static uv_timer_t limit;
static uv_signal_t terminated;

static void free_timer(uv_handle_t *timer)
{
    free(timer);
}

static void ring(uv_timer_t *timer)
{
    intact_answer((struct intact_request *)timer->data, "\"rang\"");
    uv_close((uv_handle_t *)timer, free_timer);
}

/* The deadline has passed, or the task is to be undone. */
static void on_stop(struct intact_request *r, void *arg)
{
    intact_answer_error(r, "stopped", "nobody waits for this alarm any more", INTACT_PERMANENT);
    uv_close((uv_handle_t *)arg, free_timer);
}

static void wait_a_while(struct intact_request *r, void *arg)
{
    uv_timer_t *timer = (uv_timer_t *)malloc(sizeof *timer);

    (void)arg;
    if (!timer) {
        intact_answer_error(r, "no_memory", NULL, INTACT_RETRYABLE | INTACT_EFFECT_NONE);
        return;
    }
    uv_timer_init(loop, timer);
    timer->data = r;
    intact_request_keep(r);
    intact_request_on_stop(r, on_stop, timer);
    uv_timer_start(timer, ring, strtoul(intact_request_input(r), NULL, 10), 0);
}

static void on_limit(uv_timer_t *timer);

static void drive(void)
{
    if (intact_agent_drive(agent)) {
        uv_timer_start(&limit, on_limit, (uint64_t)intact_agent_timeout_ms(agent), 0);
        return;
    }
    uv_close((uv_handle_t *)&readable,
             NULL); /* with these gone, and no request left, the loop ends */
    uv_close((uv_handle_t *)&limit, NULL);
    uv_close((uv_handle_t *)&terminated, NULL);
}

static void on_limit(uv_timer_t *timer)
{
    (void)timer;
    drive();
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)poll;
    (void)status;
    (void)events;
    drive();
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)signal;
    (void)number;
    intact_agent_stop_one(agent); /* the loop goes on until drive says that it is over */
}

int main(void)
{
    loop = uv_default_loop();
    agent = intact_agent_new("clock");
    intact_agent_on(agent, "wait", INTACT_FORWARD, wait_a_while, NULL);
    intact_agent_set_inline(agent, true);
    intact_agent_set_concurrency(agent, 1000);
    int fd = intact_agent_fd(agent);
    if (fd >= 0) {
        uv_poll_init(loop, &readable, fd);
        uv_poll_start(&readable, UV_READABLE, on_readable);
        uv_timer_init(loop, &limit);
        uv_timer_start(&limit, on_limit, 0, 0);
        uv_signal_init(loop, &terminated);
        uv_signal_start(&terminated, on_signal, SIGTERM);
        uv_run(loop, UV_RUN_DEFAULT);
    }
    int result = (int)intact_agent_outcome(agent);
    intact_agent_free(agent);
    uv_loop_close(loop);
    return result;
}
