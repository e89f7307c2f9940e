/* Implements server.h: the processes of the tests' PostgreSQL servers. Finds their programs,
 * starts them as a user that PostgreSQL accepts, and ends them by SIGQUIT, without residue.
 * cluster.c makes databases in them, pair.c pairs of them. */

#include "server.h"

#include "base/test.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 3000, PAUSE_US = 20000 }; /* a minute */

/* Debian has each version in a folder of its own. */
void server_program(const char *name, char ret[SERVER_PATH])
{
    if (*name == '/') {
        (void)snprintf(ret, SERVER_PATH, "%s", name);
        return;
    }
    for (int version = 20; version >= 14; version--) {
        (void)snprintf(ret, SERVER_PATH, "/usr/lib/postgresql/%d/bin/%s", version, name);
        if (access(ret, X_OK) == 0)
            return;
    }
    CHECK(false, "there is no %s of PostgreSQL; tools/setup test installs it", name);
}

static const struct passwd *unprivileged(void)
{
    const struct passwd *who = getpwnam("postgres");

    return who ? who : getpwnam("nobody");
}

void server_drop_root(void)
{
    const struct passwd *who = unprivileged();

    if (getuid() == 0
        && (!who || setgroups(0, NULL) != 0 || setgid(who->pw_gid) != 0
            || setuid(who->pw_uid) != 0))
        _exit(126);
}

void server_own(const char *path)
{
    const struct passwd *who = unprivileged();

    CHECK(getuid() != 0 || (who && chown(path, who->pw_uid, who->pw_gid) == 0), "chown %s", path);
}

noreturn void server_exec(const char *path, const char *const *args)
{
    const char *own[SERVER_ARGS] = {path};

    for (size_t i = 1; i < SERVER_ARGS - 1 && args[i]; i++)
        own[i] = args[i];
    (void)execv(path, (char *const *)(uintptr_t)own); /* it changes none of them */
    _exit(127);
}

/* Dead, and nobody has asked for its status yet: whoever inherited it may not care. */
static bool is_zombie(pid_t pid)
{
    char path[40];
    char state = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    bool ok = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
    if (f)
        (void)fclose(f);
    return ok && state == 'Z';
}

bool server_is_gone(pid_t pid)
{
    if (waitpid(pid, NULL, WNOHANG) == pid || (kill(pid, 0) != 0 && errno == ESRCH))
        return true;
    if (!is_zombie(pid))
        return false;
    /* It may have died since: as long as nobody has waited for it, its lock files hold. */
    (void)waitpid(pid, NULL, WNOHANG);
    return true;
}

void server_signal_children(pid_t pid, int signal)
{
    char path[64];
    int child;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "r");
    while (f && fscanf(f, "%d", &child) == 1)
        (void)kill(child, signal);
    if (f)
        (void)fclose(f);
}

void server_end(pid_t pid)
{
    (void)kill(pid, SERVER_END);
    server_signal_children(pid,
                           SIGCONT); /* else it would wait seconds for those that are stopped */
    (void)kill(pid, SIGCONT);
    for (unsigned i = 0; i < TRIES; i++) {
        if (server_is_gone(pid))
            return;
        (void)usleep(PAUSE_US);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}
