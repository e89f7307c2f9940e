/* <intact/testing.h>: starts a server in virtual time as a child process, runs agents on threads,
 * and moves the clock. Calls go through the client (client.c); testing_handle.c has the part that
 * needs no server. */

#include <intact/testing.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "json/json.h"

enum {
    START_MS = 30000,
    END_MS = 10000,
    LOOK_MS = 10,
    FIRST_WAIT_MS = 300,
    WAIT_MS = 2000,
    TASK_MAX = 200
};

struct testing_agent {
    struct testing_agent *next;
    struct intact_agent *agent;
    pthread_t thread;
};

struct intact_testing {
    char *program, *at, *clock;
    pid_t pid; /* 0: it does not run */
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

/* "listening on port N" */
static bool read_port(struct intact_testing *t, int output)
{
    struct pollfd p = {.fd = output, .events = POLLIN};
    char line[80] = "";
    size_t len = 0;
    int port = 0;

    while (len + 1 < sizeof line && !strchr(line, '\n')) {
        ssize_t got =
            poll(&p, 1, START_MS) == 1 ? read(output, line + len, sizeof line - 1 - len) : 0;
        if (got <= 0)
            return fails(t, "the server did not start", "its words are on standard error");
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
    int64_t until = clock_steady_ms() + END_MS;
    int status = 0;

    if (t->input >= 0)
        (void)close(t->input);
    if (!t->pid)
        return;
    while (waitpid(t->pid, &status, WNOHANG) == 0) {
        const struct timespec soon = {.tv_nsec = LOOK_MS * 1000000L};
        if (clock_steady_ms() > until)
            (void)kill(t->pid, SIGKILL);
        (void)nanosleep(&soon, NULL);
    }
}

/* ---- agents ---- */

static void *run_agent(void *arg)
{
    (void)intact_agent_run(arg);
    return NULL;
}

bool intact_testing_agent(struct intact_testing *t, struct intact_agent *a)
{
    struct testing_agent *mine = calloc(1, sizeof *mine);

    if (!mine)
        abort();
    intact_agent_set_server(a, t->url);
    intact_agent_set_token(a, "");
    intact_agent_set_discovery(a, false);
    intact_agent_set_installation(a, "any");
    mine->agent = a;
    int rc = pthread_create(&mine->thread, NULL, run_agent, a);
    if (rc != 0) {
        free(mine);
        return fails(t, "a thread", strerror(rc));
    }
    mine->next = t->agents;
    t->agents = mine;
    return true;
}

void intact_testing_free(struct intact_testing *t)
{
    if (!t)
        return;
    for (struct testing_agent *a = t->agents; a; a = a->next)
        intact_agent_stop_one(a->agent);
    while (t->agents) {
        struct testing_agent *a = t->agents;
        t->agents = a->next;
        (void)pthread_join(a->thread, NULL);
        intact_agent_free(a->agent);
        free(a);
    }
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
    return status == INTACT_OK || fails(t, what, intact_client_error(t->client));
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

/* Nothing is due, and nothing is under way. */
static bool time_brings_nothing(struct intact_testing *t)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (intact_client_call(t->client, "GET", "/v1/clock", NULL, NULL, 0) != INTACT_OK
        || json_parse(&a, slice_of(intact_client_body(t->client)), &j, NULL) != ERR_OK)
        return false;
    const struct json *next = json_get(j, "next");
    const struct json *held = json_get(j, "held_by");
    return next && next->type == JSON_NULL && held && held->count == 0;
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

const char *intact_testing_ended(struct intact_testing *t, const char *task)
{
    for (int64_t wait = FIRST_WAIT_MS;; wait = WAIT_MS) {
        if (!answered(t, intact_client_get(t->client, task, wait), task))
            return NULL;
        if (has_ended(intact_client_body(t->client)))
            return intact_client_body(t->client);
        if (!time_brings_nothing(t))
            continue;
        if (!answered(t, intact_client_get(t->client, task, 0), task))
            return NULL;
        if (has_ended(intact_client_body(t->client)))
            return intact_client_body(t->client);
        (void)fails(t, "the task does not end by itself", intact_client_body(t->client));
        return NULL;
    }
}
