/* The poolers of a primary and its standby: starts a PgBouncer before each, and finds and ends
 * what an earlier process left. pair.h declares it; pooled_failover_test.c and intact-pair
 * (pair_main.c) use it. */

#include "pair.h"

#include "base/test.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "server.h"

enum { TRIES = 9000, PAUSE_US = 20000 }; /* three minutes: only a failing test waits so long */

static const char *const names[] = {"pool-a", "pool-b"};

static void path_of(const struct pair *p, int which, const char *ending, char ret[PAIR_TEXT])
{
    (void)snprintf(ret, PAIR_TEXT, "%s/%s.%s", p->dir, names[which], ending);
}

static void write_settings(const struct pair *p, int which, const char *mode)
{
    char path[PAIR_TEXT];

    path_of(p, which, "ini", path);
    FILE *f = fopen(path, "w");
    CHECK(f, "%s", path);
    fprintf(f,
            "[databases]\npostgres = host=127.0.0.1 port=%d dbname=postgres user=intact\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = %s\ndefault_pool_size = 20\nserver_login_retry = 1\n"
            "query_wait_timeout = 0\n"
            "pidfile = %s.pid\n",
            p->ports[which], p->pool_ports[which], mode, names[which]);
    CHECK(fclose(f) == 0 && chmod(path, 0644) == 0, "%s", path);
}

static bool listens(const struct pair *p, int which)
{
    char conninfo[PAIR_TEXT];

    (void)snprintf(conninfo, sizeof conninfo,
                   "host=127.0.0.1 port=%d user=intact dbname=postgres connect_timeout=10",
                   p->pool_ports[which]);
    return PQping(conninfo) == PQPING_OK;
}

static void start(const struct pair *p, int which, const char *mode)
{
    char ini[24];
    char log[24];
    const char *const args[] = {"pgbouncer", ini, NULL};
    unsigned tries = 0;

    (void)snprintf(ini, sizeof ini, "%s.ini", names[which]);
    (void)snprintf(log, sizeof log, "%s.log", names[which]);
    write_settings(p, which, mode);
    (void)pair_begin(p, log, "/usr/sbin/pgbouncer", args, SIGKILL);
    while (!listens(p, which) && tries++ < TRIES)
        (void)usleep(PAUSE_US);
    CHECK(tries <= TRIES, "the pooler does not start; see %s/%s", p->dir, log);
}

/* 0: none. A number that a crash left behind may be another process's by now. */
static pid_t pid_in(const struct pair *p, const char *path)
{
    char cwd[40];
    struct stat its;
    struct stat ours;
    int pid = 0;

    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%d", &pid) != 1)
        pid = 0;
    (void)fclose(f);
    (void)snprintf(cwd, sizeof cwd, "/proc/%d/cwd", pid);
    bool is_ours = pid > 1 && stat(cwd, &its) == 0 && stat(p->dir, &ours) == 0
                   && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
    return is_ours ? pid : 0;
}

static void end(const struct pair *p, int which)
{
    char path[PAIR_TEXT];

    path_of(p, which, "pid", path);
    pid_t pid = pid_in(p, path);
    if (!pid)
        return;
    (void)kill(pid, SIGKILL);
    while (!server_is_gone(pid))
        (void)usleep(PAUSE_US);
    (void)remove(path);
}

void pair_pool(const struct pair *p, const char *mode)
{
    pair_pool_end(p);
    for (int which = 0; which < 2; which++)
        start(p, which, mode);
}

void pair_pool_end(const struct pair *p)
{
    for (int which = 0; which < 2; which++)
        end(p, which);
}

void pair_pool_conninfo(const struct pair *p, char ret[PAIR_TEXT])
{
    (void)snprintf(ret, PAIR_TEXT,
                   "host=127.0.0.1,127.0.0.1 port=%d,%d user=intact dbname=postgres",
                   p->pool_ports[0], p->pool_ports[1]);
}
