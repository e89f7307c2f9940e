/* The exec agent: its agents (libintact), the commands in execution, and the loop that serves both
 * until a signal ends it. See exec_agent.h. */

#include "agents/exec/exec_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agents/exec/command.h"
#include "agents/exec/outcome.h"
#include "base/clock.h"
#include "base/log.h"

enum { EVENTS_MAX = 64, LOOK_MS = 1000 };

struct host;

/* A handler's argument: one action, in one direction. */
struct job {
    struct host *host;
    const struct exec_agent_config *agent;
    const struct exec_command *command;
};

struct host {
    const struct exec_config *config;
    struct intact_agent **agents;
    bool *is_over;
    size_t agent_count;
    struct job *jobs;
    size_t job_count;
    struct rlimit files;  /* of descriptors, as it was when we began */
    struct link commands; /* of struct command */
    int epoll;
    bool has_lost;   /* a keeper was killed: what it kept may be ours now */
    int64_t stop_by; /* when commands are terminated; 0: no signal came */
};

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    if (signals < 2)
        signals = signals + 1;
    intact_agent_stop();
}

/* ---- commands ---- */

/* On the thread that drives: ours. */
static void on_stop(struct intact_request *r, void *arg)
{
    struct command *c = arg;

    ASSERT(c->request == r);
    if (intact_request_time_left_ms(r) > 0)
        command_terminate(c, COMMAND_STOPPED);
    else
        command_kill(c); /* its result is not needed any more */
}

static void run_command(struct intact_request *r, void *arg)
{
    const struct job *job = arg;
    char why[200] = "";

    ASSERT(job->command->argv);
    struct command *c =
        command_start(job->agent, job->command, r, &job->host->files, why, sizeof why);

    if (!c) {
        ASSERT(*why);
        log_line(LOG_ERROR, "event=command_failed agent=%s action=%s task=%s step=%s error=\"%s\"",
                 job->agent->name.ptr, intact_request_action(r), intact_request_task(r),
                 intact_request_step(r), why);
        outcome_not_started(r, why);
        return;
    }
    intact_request_keep(r);
    intact_request_on_stop(r, on_stop, c);
    intact_request_set_heartbeats(r, !job->command->beats);
    list_push(&job->host->commands, &c->link);
    if (!command_watch(c, job->host->epoll))
        command_give_up(c);
}

static void end_command(struct host *h, struct command *c)
{
    CLEANUP(buf_fini) struct buf word = {0}; /* the command's own */
    char code[64];
    char task[160];

    ASSERT(c->is_over);
    (void)strncat(memset(task, 0, sizeof task), intact_request_task(c->request), sizeof task - 1);
    unsigned attempt = intact_request_attempt(c->request);
    h->has_lost |= !command_drain(c) || c->report.what == 0;
    link_remove(&c->link);
    outcome_answer(c, code);
    log_word(&word, slice_of(code));
    if (code[0])
        log_line(LOG_WARN, "event=command_failed agent=%s program=%s task=%s attempt=%u code=%s",
                 c->agent->name.ptr, c->what->argv[0], task, attempt, word.ptr);
    command_free(c);
}

static void tend(struct host *h)
{
    int64_t now = clock_boot_ms();

    LIST_FOREACH (l, after, &h->commands) {
        struct command *c = CONTAINER_OF(l, struct command, link);
        if (h->stop_by > 0 && now >= h->stop_by)
            command_terminate(c, COMMAND_STOPPED);
        command_tick(c, now);
        if (c->is_over)
            end_command(h, c);
    }
}

/* ---- orphans of keepers that were killed ---- */

static bool is_keeper(void *arg, pid_t pid)
{
    struct host *h = arg;
    bool found = false;

    LIST_FOREACH (l, after, &h->commands)
        found |= CONTAINER_OF(l, struct command, link)->keeper == pid;
    return found;
}

static void sweep(struct host *h)
{
    if (h->has_lost)
        h->has_lost = keeper_sweep(is_keeper, h);
}

/* ---- agents ---- */

static void add_job(struct host *h, size_t agent, const struct exec_action *action,
                    const struct exec_command *command, enum intact_direction direction)
{
    struct job *job = &h->jobs[h->job_count++];

    ASSERT(agent < h->agent_count && command->argv);
    *job = (struct job){h, &h->config->agents[agent], command};
    intact_agent_on(h->agents[agent], action->name.ptr, direction, run_command, job);
}

static void add_agent(struct host *h, size_t i, const struct exec_settings *s)
{
    const struct exec_agent_config *c = &h->config->agents[i];
    struct intact_agent *a = intact_agent_new(c->name.ptr);

    h->agents[i] = a;
    intact_agent_set_server(a, s->server);
    intact_agent_set_token(a, s->token);
    intact_agent_set_ca(a, s->ca);
    intact_agent_set_inline(a, true);
    intact_agent_set_concurrency(a, (unsigned)c->places);
    if (s->instance || c->instance)
        intact_agent_set_instance(a, s->instance ? s->instance : c->instance);
    for (size_t k = 0; k < c->action_count; k++) {
        const struct exec_action *action = &c->actions[k];
        if (action->forward.argv)
            add_job(h, i, action, &action->forward, INTACT_FORWARD);
        if (action->undo.argv)
            add_job(h, i, action, &action->undo, INTACT_UNDO);
    }
}

static void *grown(size_t count, size_t size)
{
    void *all = calloc(count + 1, size);

    if (!all)
        out_of_memory(count * size);
    return all;
}

/* Commands of our own user could read it in /proc of their keeper, which is a copy of us. */
static void forget_token(void)
{
    char *token = getenv("INTACT_TOKEN");

    if (token)
        explicit_bzero(token, strlen(token));
    (void)unsetenv("INTACT_TOKEN");  /* it has a good name */
    (void)prctl(PR_SET_DUMPABLE, 0); /* neither memory nor a core file */
}

static bool open_host(struct host *h, const struct exec_settings *s)
{
    size_t jobs = 0;

    h->agent_count = h->config->agent_count;
    for (size_t i = 0; i < h->agent_count; i++)
        jobs += 2 * h->config->agents[i].action_count;
    h->agents = grown(h->agent_count, sizeof(struct intact_agent *));
    h->is_over = grown(h->agent_count, sizeof *h->is_over);
    h->jobs = grown(jobs, sizeof *h->jobs);
    list_init(&h->commands);
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < h->agent_count; i++) {
        struct epoll_event e = {.events = EPOLLIN};
        add_agent(h, i, s);
        int fd = intact_agent_fd(h->agents[i]);
        if (fd < 0 || h->epoll < 0 || epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
            return false; /* the agent has reported why */
    }
    ASSERT(h->job_count <= jobs);
    return true;
}

static void close_host(struct host *h)
{
    ASSERT(list_empty(&h->commands));
    for (size_t i = 0; i < h->agent_count; i++)
        intact_agent_free(h->agents[i]);
    if (h->epoll >= 0)
        close(h->epoll);
    free(h->agents);
    free(h->is_over);
    free(h->jobs);
}

/* ---- the loop ---- */

static int timeout_ms(struct host *h)
{
    int64_t now = clock_boot_ms();
    int64_t wake = now + LOOK_MS;

    for (size_t i = 0; i < h->agent_count; i++)
        if (!h->is_over[i])
            wake = min_i64(wake, now + max_i64(intact_agent_timeout_ms(h->agents[i]), 0));
    LIST_FOREACH (l, after, &h->commands)
        wake = min_i64(wake, command_wake_at(CONTAINER_OF(l, struct command, link)));
    if (h->stop_by > now)
        wake = min_i64(wake, h->stop_by);
    return (int)max_i64(wake - now, 0);
}

static void serve_pipes(struct host *h, int timeout)
{
    struct epoll_event events[EVENTS_MAX];

    ASSERT(timeout >= 0 && timeout <= LOOK_MS);
    int count = epoll_wait(h->epoll, events, EVENTS_MAX, timeout);

    for (int i = 0; i < count; i++) {
        struct command_pipe *p = events[i].data.ptr;
        if (p && p->fd >= 0) /* agents have none, and are driven anyway */
            command_serve(p);
    }
}

static void read_signals(struct host *h)
{
    int64_t now = clock_boot_ms();

    if (signals > 0 && h->stop_by == 0)
        h->stop_by = now + max_i64(h->config->stop_wait_ms, 1);
    if (signals > 1)
        h->stop_by = min_i64(h->stop_by, now);
}

/* False: all agents are over. */
static bool drive(struct host *h)
{
    bool any = false;

    for (size_t i = 0; i < h->agent_count; i++) {
        h->is_over[i] = !intact_agent_drive(h->agents[i]);
        any |= !h->is_over[i];
    }
    return any;
}

static enum intact_agent_result worst_of(const struct host *h)
{
    enum intact_agent_result worst = INTACT_AGENT_STOPPED;

    for (size_t i = 0; i < h->agent_count; i++)
        if (intact_agent_outcome(h->agents[i]) > worst)
            worst = intact_agent_outcome(h->agents[i]);
    return worst;
}

static void prepare_process(struct host *h)
{
    const struct sigaction stop = {.sa_handler = on_signal};
    const struct sigaction ignored = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGPIPE, &ignored, NULL); /* commands may close their input */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);   /* for what killed keepers leave behind */
    (void)getrlimit(RLIMIT_NOFILE, &h->files);
    const struct rlimit most = {h->files.rlim_max, h->files.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &most); /* or places end sooner, with a word why */
}

enum intact_agent_result exec_agent_run(const struct exec_config *config,
                                        const struct exec_settings *settings)
{
    struct host h = {.config = config};
    enum intact_agent_result result = INTACT_AGENT_FAILED;

    ASSERT(config->agent_count > 0);
    prepare_process(&h);
    if (open_host(&h, settings)) {
        forget_token();
        while (drive(&h) || !list_empty(&h.commands)) {
            serve_pipes(&h, timeout_ms(&h));
            read_signals(&h);
            tend(&h);
            sweep(&h);
        }
        result = worst_of(&h);
    }
    close_host(&h);
    return result;
}
