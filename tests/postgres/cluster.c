/* Implements cluster.h: one PostgreSQL server per test process, created at first use and removed at
 * exit. */

#include "cluster.h"

#include "base/test.h"

#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "server.h"

enum { TRIES = 3000, PAUSE_US = 20000 }; /* a minute: only a failing test waits so long */

static struct {
    char dir[64], conninfo[128];
    pid_t pid, owner;
} c;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void stop(void)
{
    if (c.owner != getpid()) /* a child of a test is no owner */
        return;
    if (c.pid > 0)
        server_end(c.pid);
    if (c.dir[0])
        (void)nftw(c.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static pid_t run(const char *program, const char *const *args)
{
    char path[SERVER_PATH];

    server_program(program, path);
    pid_t pid = fork();
    CHECK(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    server_drop_root();
    (void)prctl(PR_SET_PDEATHSIG, strcmp(program, "postgres") == 0 ? SERVER_END : SIGKILL);
    if (!freopen("/dev/null", "r", stdin) || chdir(c.dir) != 0 || !freopen("log", "a", stdout)
        || dup2(1, 2) != 2)
        _exit(127);
    server_exec(path, args);
}

static void make(void)
{
    const char *args[] = {"initdb", "-D", "data", "-U",         "intact",    "-A",
                          "trust",  "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
                          NULL};
    int status = -1;

    (void)snprintf(c.dir, sizeof c.dir, "/tmp/intact-pg-XXXXXX");
    CHECK(mkdtemp(c.dir), "a folder for the database");
    server_own(c.dir);
    pid_t pid = run("initdb", args);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "initdb ended with %d; see %s/log",
          status, c.dir);
}

static bool answers(void)
{
    PGconn *conn = PQconnectdb(c.conninfo);
    bool ok = PQstatus(conn) == CONNECTION_OK;

    PQfinish(conn);
    return ok;
}

void cluster_start_with(const char *const *settings)
{
    enum { OURS = 13, MOST = 40 };
    const char *args[OURS + 2 * MOST + 1] = {"postgres",
                                             "-D",
                                             "data",
                                             "-k",
                                             c.dir,
                                             "-c",
                                             "listen_addresses=",
                                             "-c",
                                             "fsync=off",
                                             "-c",
                                             "max_connections=40",
                                             "-c",
                                             SERVER_MEMORY};
    size_t count = OURS;

    args[count++] = "-c";
    args[count++] = "autovacuum=off";
    for (; settings && *settings && count < OURS + 2 * MOST - 2; settings++) {
        args[count++] = "-c";
        args[count++] = *settings;
    }
    c.pid = run("postgres", args);
    for (unsigned i = 0; i < TRIES; i++) {
        if (answers())
            return;
        /* While children of one that was killed still hold its shared memory, it ends at once. */
        if (waitpid(c.pid, NULL, WNOHANG) != 0)
            c.pid = run("postgres", args);
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "the database does not start; see %s/log", c.dir);
}

void cluster_start(void)
{
    cluster_start_with(NULL);
}

const char *cluster_dir(void)
{
    (void)cluster_conninfo();
    return c.dir;
}

pid_t cluster_run(const char *program, const char *const *args)
{
    (void)cluster_conninfo();
    return run(program, args);
}

void cluster_kill(void)
{
    CHECK(kill(c.pid, SIGSTOP) == 0, "stop the database"); /* it makes no new children */
    server_signal_children(c.pid, SIGKILL);
    CHECK(kill(c.pid, SIGKILL) == 0 && waitpid(c.pid, NULL, 0) == c.pid, "kill the database");
}

pid_t cluster_fork(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    CHECK(pid >= 0, "fork");
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);                              /* it was faster */
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failing CHECK ends it, not its test */
    }
    return pid;
}

const char *cluster_conninfo(void)
{
    if (c.pid == 0) {
        c.owner = getpid();
        (void)atexit(stop);
        make();
        (void)snprintf(c.conninfo, sizeof c.conninfo, "host=%s user=intact dbname=postgres", c.dir);
        cluster_start();
    }
    return c.conninfo;
}
