/*
 * `intact console`: opens the console in the browser, signed in by a code that the server makes
 * for the token of this command line. The code is in the part of the address that browsers send to
 * nobody. Sessions: api/sessions.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client/client.h"
#include "cli/verbs.h"

enum { OPENER_MS = 3000, OPENER_STEP_US = 20000 };

/* xdg-open would start a browser for terminals instead. */
static bool has_display(void)
{
    static const char *const names[] = {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (getenv(names[i]) && *getenv(names[i]))
            return true;
    return false;
}

/* The browser says things that are of no use here, and may outlive this program. */
static bool opener_start(const char *url, pid_t *ret)
{
    char name[] = "xdg-open";
    char *copy = strdup(url);
    char *const argv[] = {name, copy, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;

    ASSERT(copy);
    int rc = posix_spawn_file_actions_init(&files) | posix_spawnattr_init(&attributes);
    ASSERT(rc == 0);
    rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
         | posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
         | posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO)
         | posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    ASSERT(rc == 0);
    rc = posix_spawnp(ret, name, &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    free(copy);
    return rc == 0;
}

/* An opener that is still running by then may have become the browser. */
static bool browser_opens(const char *url)
{
    int64_t until = clock_steady_ms() + OPENER_MS;
    pid_t pid = 0;
    int status = 0;

    if (!has_display() || !opener_start(url, &pid))
        return false;
    while (clock_steady_ms() < until) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR)
            return false;
        (void)usleep(OPENER_STEP_US);
    }
    return true;
}

/* The code goes into an address, and to a terminal: it is taken only as the server makes them. */
static bool code_ok(struct slice code)
{
    enum { CODE_SIZE = 43 };

    for (size_t i = 0; i < code.len; i++) {
        char c = code.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
              || c == '_'))
            return false;
    }
    return code.len == CODE_SIZE;
}

static int show(const struct invocation *in, const char *url, bool has_code)
{
    if (!given(in, "print") && browser_opens(url)) {
        puts("The console is open in the browser.");
        return CLI_OK;
    }
    puts(url);
    if (has_code)
        fputs("intact console: open this address in a browser within a minute; it works once\n",
              stderr);
    return CLI_OK;
}

static void print_json(const char *url, const struct json *answer)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "url", slice_of(url));
    json_member_text(&b, "expires_at", json_get_text(answer, "expires_at"));
    json_close(&b, '}');
    puts(b.ptr);
}

static int run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf url = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;

    const struct json *answer = client_ask(c, "POST", "/v1/session/codes", NULL, &a, &end);
    struct slice code = json_get_text(answer, "code");
    buf_fmt(&url, "%s/", intact_client_server(c));
    if (code_ok(code)) /* a server that requires no tokens makes none */
        buf_fmt(&url, "signin#code=%.*s", SLICE_ARG(code));
    if (answer && !code_ok(code) && !json_get_bool(answer, "open", false))
        end = verb_failed(in, CLI_NOT_WELL, "%s does not answer like an Intact server",
                          intact_client_server(c));
    else if (answer && given(in, "json"))
        print_json(url.ptr, answer);
    else if (answer)
        end = show(in, url.ptr, code_ok(code));
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {
    {.name = "print", .help = "print the address instead of opening a browser"},
    {0},
};

const struct verb verb_console = {
    .name = "console",
    .summary = "open the web console in the browser, signed in",
    .about =
        "Opens the console of the server in the browser (xdg-open), signed in as the token of "
        "this command. Without a browser, or with --print, it prints the address. The address "
        "contains a code that works once, within a minute. The session lasts 12 hours; it may do "
        "what the token may do, and ends with it. A token of an agent cannot sign in.",
    .flags = flags,
    .examples = {{"intact console", "open the console of the server on this machine"},
                 {"intact console --server https://intact.example.org --token-file ann",
                  "that of another server"},
                 {"intact console --print", "an address to open on another machine"}},
    .run = run,
};
