/* One command in execution: its keeper, its pipes, what it wrote, and when it must stop. Nothing
 * here blocks: exec_agent.c calls it when a pipe or a time is due. See command.h. */

#include "agents/exec/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/exec/bounds.h"
#include "agents/exec/surroundings.h"
#include "base/clock.h"
#include "json/json.h"

enum {
    TURN_MAX = 65536,       /* bytes read from a pipe at a time: others want their turn */
    OBEYS_WITHIN_MS = 5000, /* for a keeper to kill and reap all that its command started */
};

/* A keeper that was just started has a copy for a moment, through which epoll would still report
 * the pipe: so it is removed first. */
static void close_pipe(struct command_pipe *p)
{
    ASSERT(p == &p->command->pipes[p->end]);
    if (p->fd >= 0 && p->command->epoll >= 0)
        (void)epoll_ctl(p->command->epoll, EPOLL_CTL_DEL, p->fd, NULL); /* if it was in */
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* ---- start ---- */

/* What the command gets, and what we keep. Standard input and control are written by us. */
static bool open_pipes(struct command *c, int theirs[KEEPER_ENDS])
{
    for (int i = 0; i < KEEPER_ENDS; i++) {
        int fds[2];
        bool we_write = i == KEEPER_IN || i == KEEPER_CONTROL;
        if (pipe2(fds, O_CLOEXEC) != 0)
            return false;
        c->pipes[i].fd = fds[we_write];
        theirs[i] = fds[!we_write];
        if (fcntl(c->pipes[i].fd, F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return true;
}

static void close_theirs(const int theirs[KEEPER_ENDS])
{
    for (int i = 0; i < KEEPER_ENDS; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
}

static struct command *command_new(const struct exec_agent_config *agent,
                                   const struct exec_command *what, struct intact_request *r)
{
    struct command *c = calloc(1, sizeof *c);

    ASSERT(what->argv && what->output_max > 0);
    if (!c)
        out_of_memory(sizeof *c);
    /* cppcheck-suppress nullPointerRedundantCheck ; out_of_memory does not return */
    *c = (struct command){.agent = agent,
                          .what = what,
                          .request = r,
                          .epoll = -1,
                          .give_up_at = INT64_MAX,
                          .output = {.max = (size_t)what->output_max}};
    for (int i = 0; i < KEEPER_ENDS; i++)
        c->pipes[i] = (struct command_pipe){c, (enum keeper_end)i, -1};
    return c;
}

/* The grace lies before the deadline: what is past it must not have any effect. */
static void set_times(struct command *c)
{
    int64_t left = intact_request_time_left_ms(c->request);

    c->started_at = clock_boot_ms();
    c->grace_ms = min_i64(c->what->grace_ms, left / 4);
    c->kill_at = c->started_at + left;
    c->term_at = c->kill_at - c->grace_ms;
    if (c->what->time_ms > 0)
        c->term_at = min_i64(c->term_at, c->started_at + c->what->time_ms);
}

struct command *command_start(const struct exec_agent_config *agent,
                              const struct exec_command *what, struct intact_request *r,
                              const struct rlimit *files, char *why, size_t why_size)
{
    struct command *c = command_new(agent, what, r);
    int theirs[KEEPER_ENDS] = {-1, -1, -1, -1, -1, -1};
    struct keeper_order o = {.directory = what->directory,
                             .argv = what->argv,
                             .switches_user = what->user.name && geteuid() == 0,
                             .uid = what->user.uid,
                             .gid = what->user.gid,
                             .groups = what->user.groups,
                             .group_count = (size_t)what->user.group_count,
                             .memory = what->memory,
                             .no_new_privileges = what->no_new_privileges,
                             .ruleset = -1,
                             .files = *files};

    ASSERT(files && why_size > 0);
    set_times(c);
    bool ok = surroundings_make(c, &o, why, why_size);
    if (ok && what->is_confined)
        o.ruleset = bounds_open(what, o.program, why, why_size);
    if (!ok || (what->is_confined && o.ruleset < 0)) {
        command_free(c);
        return NULL;
    }
    ASSERT(o.program && o.envp);
    ok = open_pipes(c, theirs);
    memcpy(o.ends, theirs, sizeof theirs);
    c->keeper = ok ? keeper_start(&o) : -1;
    int err = errno;
    close_theirs(theirs);
    if (o.ruleset >= 0)
        (void)close(o.ruleset);
    if (c->keeper > 0)
        return c;
    (void)snprintf(why, why_size, "no process could be started: %s", strerror(err));
    command_free(c);
    return NULL;
}

/* ---- pipes ---- */

static void write_input(struct command_pipe *p)
{
    struct command *c = p->command;

    ASSERT(p->end == KEEPER_IN && c->written <= c->input.len);
    while (c->written < c->input.len) {
        ssize_t n = write(p->fd, c->input.ptr + c->written, c->input.len - c->written);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            break; /* it has closed its standard input, as it may */
        c->written += (size_t)n;
    }
    close_pipe(p);
    buf_fini(&c->input);
}

/* Bytes that came; 0: none now, or it is at its end, and closed. */
static size_t take(struct command_pipe *p, char *bytes, size_t size)
{
    ASSERT(p->fd >= 0 && size > 0);
    ssize_t n = read(p->fd, bytes, size);

    if (n > 0)
        return (size_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_pipe(p);
    return 0;
}

static void add_output(struct command *c, const char *bytes, size_t size)
{
    if (c->what->output == EXEC_NONE)
        return;
    buf_add(&c->output, bytes, size);
    ASSERT(c->output.len <= (size_t)c->what->output_max);
    if (c->output.overflow && c->end == COMMAND_BY_ITSELF) {
        c->end = COMMAND_FLOODS;
        command_kill(c);
    }
}

static void add_tail(struct command *c, const char *bytes, size_t size)
{
    struct buf *b = &c->tail;

    ASSERT(b->len <= (size_t)2 * COMMAND_TAIL_MAX);
    buf_add(b, bytes, size);
    if (b->len <= (size_t)2 * COMMAND_TAIL_MAX)
        return;
    c->tail_is_cut = true;
    memmove(b->ptr, b->ptr + b->len - COMMAND_TAIL_MAX, COMMAND_TAIL_MAX);
    b->len = COMMAND_TAIL_MAX;
    b->ptr[b->len] = 0;
}

/* A line is {"progress", "message", "resume"}, any of them, or a message. */
static void send_progress(struct command *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf progress = {0};
    CLEANUP(buf_fini) struct buf resume = {0};
    CLEANUP(buf_fini) struct buf message = {0};
    struct json *j = NULL;
    struct slice line = buf_view(&c->line);

    if (json_parse(&a, line, &j, NULL) == ERR_OK && j->type == JSON_OBJECT) {
        surroundings_clean_json(c, json_get_raw(j, "progress"), &progress);
        surroundings_clean_json(c, json_get_raw(j, "resume"), &resume);
        surroundings_clean(c, json_get_text(j, "message"), &message);
    } else {
        surroundings_clean(c, line, &message);
    }
    (void)intact_heartbeat_resume(c->request, progress.len ? progress.ptr : NULL,
                                  message.len ? message.ptr : NULL,
                                  resume.len ? resume.ptr : NULL); /* too long: it is dropped */
}

static void add_progress(struct command *c, const char *bytes, size_t size)
{
    ASSERT(c->line.len <= COMMAND_LINE_MAX);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            if (c->line.len > 0 && !c->line_is_too_long)
                send_progress(c);
            buf_clear(&c->line);
            c->line_is_too_long = false;
        } else if (c->line.len < COMMAND_LINE_MAX) {
            buf_byte(&c->line, bytes[i]);
        } else {
            c->line_is_too_long = true;
        }
    }
}

static void read_report(struct command_pipe *p)
{
    struct command *c = p->command;
    struct keeper_report report;

    ASSERT(p->end == KEEPER_STATUS);
    while (p->fd >= 0) {
        size_t size = take(p, (char *)&report, sizeof report); /* they come whole */
        if (size == sizeof report && c->report.what == 0)
            c->report = report;
        if (size == 0)
            break;
    }
    c->is_over = p->fd < 0;
}

static void read_some(struct command_pipe *p)
{
    struct command *c = p->command;
    char bytes[TURN_MAX / 8];
    int times = p->end == KEEPER_PROGRESS ? 1 : 8; /* each of its lines is parsed */

    for (int i = 0; i < times && p->fd >= 0; i++) {
        size_t size = take(p, bytes, sizeof bytes);
        if (p->end == KEEPER_OUT)
            add_output(c, bytes, size);
        else if (p->end == KEEPER_ERR)
            add_tail(c, bytes, size);
        else
            add_progress(c, bytes, size);
        if (size < sizeof bytes)
            break;
    }
}

bool command_watch(struct command *c, int epoll)
{
    bool ok = true;

    ASSERT(epoll >= 0 && c->keeper > 0);
    c->epoll = epoll;
    for (int i = 0; i < KEEPER_ENDS && ok; i++) {
        struct command_pipe *p = &c->pipes[i];
        struct epoll_event e = {.events = i == KEEPER_IN ? EPOLLOUT : EPOLLIN, .data.ptr = p};
        if (i != KEEPER_CONTROL)
            ok = epoll_ctl(epoll, EPOLL_CTL_ADD, p->fd, &e) == 0;
    }
    return ok;
}

void command_give_up(struct command *c)
{
    ASSERT(c->keeper > 0);
    (void)kill(c->keeper, SIGKILL); /* it is our child, and not reaped */
    c->is_over = true;
}

void command_serve(struct command_pipe *p)
{
    switch (p->end) {
    case KEEPER_IN:
        write_input(p);
        break;
    case KEEPER_STATUS:
        read_report(p);
        break;
    case KEEPER_OUT:
    case KEEPER_ERR:
    case KEEPER_PROGRESS:
        read_some(p);
        break;
    case KEEPER_CONTROL:
    case KEEPER_ENDS:
        break; /* the keeper is gone, which the status pipe reports */
    }
}

/* ---- its end ---- */

/* A command of the same user may have stopped its keeper. */
static void order(struct command *c, char what)
{
    if (c->keeper > 0)
        (void)kill(c->keeper, SIGCONT);
    if (c->pipes[KEEPER_CONTROL].fd >= 0)
        (void)!write(c->pipes[KEEPER_CONTROL].fd, &what, 1); /* or the keeper is gone */
}

void command_terminate(struct command *c, enum command_end why)
{
    ASSERT(why != COMMAND_BY_ITSELF);
    if (c->term_at == INT64_MAX)
        return;
    if (c->end == COMMAND_BY_ITSELF)
        c->end = why;
    c->term_at = INT64_MAX;
    c->kill_at = min_i64(c->kill_at, clock_boot_ms() + c->grace_ms);
    order(c, KEEPER_TERM);
}

void command_kill(struct command *c)
{
    if (c->kill_at == INT64_MAX)
        return;
    c->term_at = c->kill_at = INT64_MAX;
    c->give_up_at = clock_boot_ms() + OBEYS_WITHIN_MS;
    order(c, KEEPER_KILL);
}

void command_tick(struct command *c, int64_t now)
{
    if (now >= c->give_up_at) {
        c->give_up_at = INT64_MAX;
        command_give_up(c);
    } else if (now >= c->kill_at) {
        if (c->end == COMMAND_BY_ITSELF)
            c->end = COMMAND_OUT_OF_TIME;
        command_kill(c);
    } else if (now >= c->term_at) {
        command_terminate(c, COMMAND_OUT_OF_TIME);
    }
}

int64_t command_wake_at(const struct command *c)
{
    return min_i64(min_i64(c->term_at, c->kill_at), c->give_up_at);
}

/* Bounded, although a command that killed its keeper may still write: a pipe holds little. */
bool command_drain(struct command *c)
{
    int status = 0;
    static const enum keeper_end ends[] = {KEEPER_OUT, KEEPER_ERR, KEEPER_PROGRESS};

    ASSERT(c->is_over && c->keeper > 0);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        for (int turn = 0;
             turn < (ends[i] == KEEPER_PROGRESS ? 8 : 64) && c->pipes[ends[i]].fd >= 0; turn++)
            read_some(&c->pipes[ends[i]]);
    (void)waitpid(c->keeper, &status, 0); /* it has closed all: it is about to end, or has */
    c->keeper = 0;
    return WIFEXITED(status);
}

void command_free(struct command *c)
{
    ASSERT(c->keeper <= 0); /* it was reaped, or never started */
    for (int i = 0; i < KEEPER_ENDS; i++)
        close_pipe(&c->pipes[i]);
    buf_fini(&c->input);
    buf_fini(&c->output);
    buf_fini(&c->tail);
    buf_fini(&c->line);
    exec_secrets_fini(&c->secrets);
    arena_fini(&c->arena);
    free(c);
}
