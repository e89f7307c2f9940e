#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 3000, PAUSE_US = 20000 }; /* a minute */

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
