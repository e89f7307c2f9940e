/* <intact/testing.h>: starts a server in virtual time as a child process, runs agents on threads,
 * and moves the clock. Calls go through the client (client.c); testing_handle.c has the part that
 * needs no server. Each wait has a bound in real time: neither a handler that hangs nor a server
 * that has ended holds a test. */

#include <intact/testing.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "libintact/agent.h"
#include "json/json.h"

enum {
    START_MS = 30000,
    TASK_MS = 60000, /* until the end of a task */
    END_MS = 10000,
    EXIT_MS = 1000, /* that a process whose connection broke may take to be seen to have ended */
    LOOK_MS = 10,
    FIRST_WAIT_MS = 300,
    WAIT_MS = 2000
};

struct testing_agent {
    struct testing_agent *next;
    struct intact_agent *agent;
    pthread_t thread;
    atomic_bool has_ended;
};

struct intact_testing {
    char *program, *at, *clock;
    int64_t patience_ms; /* 0: by default */
    pid_t pid;           /* 0: it was not started */
    bool has_ended;      /* the process; `status` says how */
    int status;
    int input; /* its standard input, which ends it; -1: none */
    char url[40];
    struct intact_client *client;
    struct testing_agent *agents;
    struct buf error;
};

static bool fails(struct intact_testing *t, const char *what, const char *why)
{
    buf_clear(&t->error);
    buf_fmt(&t->error, "%s%s%s", what, *why ? ": " : "", why);
    return false;
}

static void set(char **to, const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        abort();
    free(*to);
    *to = copy;
}

struct intact_testing *intact_testing_new(void)
{
    struct intact_testing *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    t->input = -1;
    buf_str(&t->error, "");
    return t;
}

void intact_testing_set_program(struct intact_testing *t, const char *path)
{
    set(&t->program, path);
}

void intact_testing_set_time(struct intact_testing *t, const char *at)
{
    set(&t->at, at);
}

void intact_testing_set_clock(struct intact_testing *t, const char *mode)
{
    set(&t->clock, mode);
}

void intact_testing_set_patience_ms(struct intact_testing *t, int64_t ms)
{
    t->patience_ms = max_i64(ms, 0);
}

/* When a wait ends that takes `usual_ms` unless the test says otherwise; steady. */
static int64_t patient_until(const struct intact_testing *t, int64_t usual_ms)
{
    return clock_steady_ms() + (t->patience_ms > 0 ? t->patience_ms : usual_ms);
}

static int64_t left_ms(int64_t until)
{
    return max_i64(until - clock_steady_ms(), 0);
}

static void wait_a_little(void)
{
    const struct timespec soon = {.tv_nsec = LOOK_MS * 1000000L};

    (void)nanosleep(&soon, NULL); /* a signal may end it sooner */
}

const char *intact_testing_error(const struct intact_testing *t)
{
    return t->error.ptr ? t->error.ptr : "";
}

const char *intact_testing_url(const struct intact_testing *t)
{
    return t->url;
}

struct intact_client *intact_testing_client(struct intact_testing *t)
{
    return t->client;
}

/* ---- the server ---- */

/* Without what is meant for other servers. To be freed. */
static char **surroundings(void)
{
    size_t count = 0;

    while (environ[count])
        count++;
    char **kept = calloc(count + 1, sizeof *kept);
    if (!kept)
        abort();
    for (size_t i = 0, n = 0; i < count; i++)
        if (strncmp(environ[i], "INTACT_", 7) != 0)
            kept[n++] = environ[i];
    return kept;
}

static bool spawn(struct intact_testing *t, int input, int output)
{
    const char *named = t->program ? t->program : getenv("INTACT_PROGRAM");
    const char *program = named && *named ? named : "intact";
    const char *argv[] = {program,
                          "serve",
                          "--virtual-time",
                          "--clock",
                          t->clock ? t->clock : "waits",
                          "--listen",
                          "127.0.0.1:0",
                          "--end-with-stdin",
                          "--no-console",
                          "--log",
                          "error",
                          t->at ? "--clock-at" : NULL,
                          t->at,
                          NULL};
    posix_spawn_file_actions_t actions;
    char **env = surroundings();

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    int rc = posix_spawnp(&t->pid, program, &actions, NULL, (char *const *)(uintptr_t)argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    free(env);
    if (rc == 0)
        return true;
    t->pid = 0;
    return fails(t, program, strerror(rc));
}

/* Whether its process has ended, or does so until then (steady). It is then known how. */
static bool ends_until(struct intact_testing *t, int64_t until)
{
    while (!t->has_ended && t->pid) {
        t->has_ended = waitpid(t->pid, &t->status, WNOHANG) != 0;
        if (t->has_ended || clock_steady_ms() >= until)
            break;
        wait_a_little();
    }
    return t->has_ended;
}

/* What it wrote itself was on standard error, which it shares with the test. */
static bool fails_as_ended(struct intact_testing *t, const char *what)
{
    char how[120];

    if (WIFSIGNALED(t->status))
        (void)snprintf(how, sizeof how, "the server has ended by signal %d (%s)",
                       WTERMSIG(t->status), strsignal(WTERMSIG(t->status)));
    else
        (void)snprintf(how, sizeof how,
                       "the server has ended with status %d; its words are on standard error",
                       WEXITSTATUS(t->status));
    return fails(t, what, how);
}

static bool fails_to_start(struct intact_testing *t)
{
    if (ends_until(t, clock_steady_ms() + EXIT_MS))
        return fails_as_ended(t, "the server did not start");
    (void)kill(t->pid, SIGKILL);
    return fails(t, "the server did not start", "it did not say its port in time");
}

/* "listening on port N" */
static bool read_port(struct intact_testing *t, int output)
{
    int64_t until = patient_until(t, START_MS);
    struct pollfd p = {.fd = output, .events = POLLIN};
    char line[80] = "";
    size_t len = 0;
    int port = 0;

    while (len + 1 < sizeof line && !strchr(line, '\n')) {
        int ready = poll(&p, 1, (int)left_ms(until));
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t got = ready == 1 ? read(output, line + len, sizeof line - 1 - len) : 0;
        if (got <= 0)
            return fails_to_start(t);
        len += (size_t)got;
        line[len] = 0;
    }
    if (sscanf(line, "listening on port %d", &port) != 1)
        return fails(t, "the server said", line);
    (void)snprintf(t->url, sizeof t->url, "http://127.0.0.1:%d", port);
    return true;
}

static bool connect_client(struct intact_testing *t)
{
    t->client = intact_client_new(t->url, "");
    if (!t->client)
        return fails(t, "no client", "memory or libcurl failed");
    intact_client_set_installation(t->client, "any");
    return true;
}

/* The ends of the pipes are this process's own: no child has them, so the server ends with it. */
bool intact_testing_start(struct intact_testing *t)
{
    int input[2];
    int output[2];

    if (t->pid)
        return fails(t, "it has started", "");
    if (pipe2(input, O_CLOEXEC) != 0)
        return fails(t, "pipe", strerror(errno));
    if (pipe2(output, O_CLOEXEC) != 0) {
        int why = errno;
        (void)close(input[0]);
        (void)close(input[1]);
        return fails(t, "pipe", strerror(why));
    }
    bool ok = spawn(t, input[0], output[1]);
    (void)close(input[0]);
    (void)close(output[1]);
    t->input = input[1];
    ok = ok && read_port(t, output[0]) && connect_client(t);
    (void)close(output[0]);
    return ok;
}

static void end_server(struct intact_testing *t)
{
    if (t->input >= 0)
        (void)close(t->input);
    if (!t->pid || ends_until(t, clock_steady_ms() + END_MS))
        return;
    (void)kill(t->pid, SIGKILL);
    (void)waitpid(t->pid, &t->status, 0);
}

/* ---- agents ---- */

static void *run_agent(void *arg)
{
    struct testing_agent *a = arg;

    (void)intact_agent_run(a->agent);
    atomic_store(&a->has_ended, true);
    return NULL;
}

bool intact_testing_agent(struct intact_testing *t, struct intact_agent *a)
{
    struct testing_agent *mine = calloc(1, sizeof *mine);

    if (!mine)
        abort();
    atomic_init(&mine->has_ended, false);
    intact_agent_set_server(a, t->url);
    intact_agent_set_token(a, "");
    intact_agent_set_discovery(a, false);
    intact_agent_set_installation(a, "any");
    mine->agent = a;
    int rc = pthread_create(&mine->thread, NULL, run_agent, mine);
    if (rc != 0) {
        free(mine);
        return fails(t, "a thread", strerror(rc));
    }
    mine->next = t->agents;
    t->agents = mine;
    return true;
}

/* A thread cannot be ended from outside: one whose handler hangs keeps its agent, until the process
 * ends. */
static void end_agent(struct testing_agent *a, int64_t until)
{
    while (!atomic_load(&a->has_ended) && clock_steady_ms() < until)
        wait_a_little();
    if (!atomic_load(&a->has_ended)) {
        (void)fprintf(stderr,
                      "intact_testing_free: agent %s has not ended in time: a handler hangs, or an "
                      "answer was not delivered\n",
                      a->agent->options.name);
        (void)pthread_detach(a->thread);
        return;
    }
    (void)pthread_join(a->thread, NULL);
    intact_agent_free(a->agent);
    free(a);
}

/* Answers cannot be delivered to a server that has ended: only agents that are idle end then. */
static void end_agents(struct intact_testing *t)
{
    bool is_served = !ends_until(t, 0);
    int64_t until = is_served ? patient_until(t, END_MS) : clock_steady_ms() + EXIT_MS;

    for (struct testing_agent *a = t->agents; a; a = a->next)
        intact_agent_stop_one(a->agent);
    while (t->agents) {
        struct testing_agent *a = t->agents;
        t->agents = a->next;
        end_agent(a, until);
    }
}

void intact_testing_free(struct intact_testing *t)
{
    if (!t)
        return;
    end_agents(t);
    intact_client_free(t->client);
    end_server(t);
    free(t->program);
    free(t->at);
    free(t->clock);
    buf_fini(&t->error);
    free(t);
}

/* ---- definitions and time ---- */

static bool answered(struct intact_testing *t, enum intact_status status, const char *what)
{
    if (status == INTACT_OK)
        return true;
    if (status == INTACT_UNREACHABLE && ends_until(t, clock_steady_ms() + EXIT_MS))
        return fails_as_ended(t, what);
    return fails(t, what, intact_client_error(t->client));
}

bool intact_testing_define(struct intact_testing *t, const char *path)
{
    CLEANUP(buf_fini) struct buf text = {0};
    char bytes[4096];
    FILE *f = fopen(path, "re");
    size_t got = 0;

    if (!f)
        return fails(t, path, strerror(errno));
    while ((got = fread(bytes, 1, sizeof bytes, f)) > 0)
        buf_add(&text, bytes, got);
    (void)fclose(f);
    const char *type = text.len > 0 && text.ptr[0] == '{' ? "application/json" : "application/yaml";
    return answered(t,
                    intact_client_call(t->client, "POST", "/v1/workflows", type,
                                       text.ptr ? text.ptr : "", text.len),
                    path);
}

/* "2d", and not a time. */
static bool is_duration(const char *text)
{
    const char *unit = text + strspn(text, "0123456789");

    return *text && strspn(unit, "dhms") == strlen(unit);
}

bool intact_testing_advance(struct intact_testing *t, const char *moment, bool regardless)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, is_duration(moment) ? "by" : "to", slice_of(moment));
    json_member_bool(&b, "regardless", regardless);
    json_close(&b, '}');
    return answered(t,
                    intact_client_call(t->client, "POST", "/v1/clock/advance", "application/json",
                                       b.ptr, b.len),
                    "the clock");
}

/* What the clock knows. */
struct clock_answer {
    bool is_known;
    bool brings_nothing; /* nothing is due, and nothing is under way */
    struct buf held_by;  /* JSON */
};

static void clock_answer_fini(struct clock_answer *c)
{
    buf_fini(&c->held_by);
}

static struct clock_answer ask_clock(struct intact_testing *t)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct clock_answer c = {0};
    struct json *j = NULL;

    if (intact_client_call(t->client, "GET", "/v1/clock", NULL, NULL, 0) != INTACT_OK
        || json_parse(&a, slice_of(intact_client_body(t->client)), &j, NULL) != ERR_OK)
        return c;
    const struct json *next = json_get(j, "next");
    const struct json *held = json_get(j, "held_by");
    c.is_known = next && held;
    c.brings_nothing = c.is_known && next->type == JSON_NULL && held->count == 0;
    if (c.is_known)
        buf_slice(&c.held_by, held->raw);
    return c;
}

static bool has_ended(const char *body)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (json_parse(&a, slice_of(body), &j, NULL) != ERR_OK)
        return false;
    struct slice state = json_get_text(j, "state");
    return slice_is(state, "processed") || slice_is(state, "compensated")
           || slice_is(state, "error");
}

static const char *fails_in_time(struct intact_testing *t, const struct clock_answer *c)
{
    CLEANUP(buf_fini) struct buf why = {0};

    buf_fmt(&why, "%s; the clock is held by %s", intact_client_body(t->client),
            c->held_by.ptr ? c->held_by.ptr : "[]");
    (void)fails(t, "the task has not ended in time", why.ptr);
    return NULL;
}

const char *intact_testing_ended(struct intact_testing *t, const char *task)
{
    int64_t until = patient_until(t, TASK_MS);

    for (int64_t wait = FIRST_WAIT_MS;; wait = WAIT_MS) {
        int64_t now_ms = max_i64(min_i64(wait, left_ms(until)), 1);
        if (!answered(t, intact_client_get(t->client, task, now_ms), task))
            return NULL;
        if (has_ended(intact_client_body(t->client)))
            return intact_client_body(t->client);
        CLEANUP(clock_answer_fini) struct clock_answer clock = ask_clock(t);
        bool is_late = left_ms(until) == 0;
        if (!clock.brings_nothing && !is_late)
            continue;
        if (!answered(t, intact_client_get(t->client, task, 0), task))
            return NULL;
        if (has_ended(intact_client_body(t->client)))
            return intact_client_body(t->client);
        if (!clock.brings_nothing)
            return fails_in_time(t, &clock);
        (void)fails(t, "the task does not end by itself", intact_client_body(t->client));
        return NULL;
    }
}
