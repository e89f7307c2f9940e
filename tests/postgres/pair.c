/* Implements pair.h: initdb, pg_basebackup and streaming replication, with processes started in the
 * pair's folder. The poolers are in pair_pool.c, the program for scripts in pair_main.c. */

#include "pair.h"

#include "base/test.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/test_port.h"
#include "server.h"

enum { TRIES = 9000, PAUSE_US = 20000 }; /* three minutes: only a failing test waits so long */

static const char *const names[] = {"a", "b"};

static const char settings[] = "\nlisten_addresses = '127.0.0.1'\n"
                               "fsync = off\n" /* processes are killed, and no machine */
                               "max_connections = 100\n"
                               "max_wal_senders = 4\n"
                               "wal_receiver_status_interval = 1s\n"
                               "wal_retrieve_retry_interval = 200ms\n"
                               "log_line_prefix = '%m [%p] '\n" SERVER_MEMORY "\n";

/* ---- programs ---- */

pid_t pair_begin(const struct pair *p, const char *log, const char *path, const char *const *args,
                 int end)
{
    pid_t pid = fork();

    CHECK(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    server_drop_root();
    if (p->outlives)
        (void)setsid();
    else
        (void)prctl(PR_SET_PDEATHSIG, end);
    if (!freopen("/dev/null", "r", stdin) || chdir(p->dir) != 0 || !freopen(log, "a", stdout)
        || dup2(1, 2) != 2)
        _exit(127);
    for (int fd = 3; fd < 64; fd++) /* nobody waits for the end of what we have open */
        (void)close(fd);
    server_exec(path, args);
}

/* What it says goes into the file NAME.log. */
static pid_t begin(const struct pair *p, int which, const char *program, const char *const *args)
{
    char path[SERVER_PATH];
    char log[8];

    server_program(program, path);
    (void)snprintf(log, sizeof log, "%s.log", names[which]);
    return pair_begin(p, log, path, args, strcmp(program, "postgres") == 0 ? SERVER_END : SIGKILL);
}

static void run(const struct pair *p, int which, const char *program, const char *const *args)
{
    int status = -1;
    pid_t pid = begin(p, which, program, args);

    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s ended with %d; see %s/%s.log",
          program, status, p->dir, names[which]);
}

/* ---- processes ---- */

static void path_of(const struct pair *p, int which, const char *file, char ret[PAIR_TEXT])
{
    (void)snprintf(ret, PAIR_TEXT, "%s/%s%s%s", p->dir, names[which], *file ? "/" : "", file);
}

/* Does that process run in the folder of that server? What a crash left behind may name one that
 * is gone, and whose number somebody else has by now. */
static bool is_of(const struct pair *p, int which, pid_t pid)
{
    char path[PAIR_TEXT];
    struct stat its;
    struct stat ours;

    path_of(p, which, "", path);
    if (stat(path, &ours) != 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/cwd", pid);
    return stat(path, &its) == 0 && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/* 0: none. */
static pid_t postmaster(const struct pair *p, int which)
{
    char path[PAIR_TEXT];
    int pid = 0;

    path_of(p, which, "postmaster.pid", path);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%d", &pid) != 1)
        pid = 0;
    (void)fclose(f);
    return pid > 1 && is_of(p, which, pid) ? pid : 0;
}

static void wait_gone(pid_t pid, int which)
{
    for (unsigned i = 0; i < TRIES; i++) {
        if (server_is_gone(pid))
            return;
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "server %s does not go", names[which]);
}

void pair_signal(const struct pair *p, int which, int signal)
{
    pid_t pid = postmaster(p, which);

    CHECK(pid, "server %s does not run", names[which]);
    if (signal == SIGCONT)
        server_signal_children(pid, signal);
    CHECK(kill(pid, signal) == 0, "server %s does not run", names[which]);
    if (signal != SIGCONT) /* the first one makes no new ones any more */
        server_signal_children(pid, signal);
}

void pair_kill(const struct pair *p, int which)
{
    pid_t pid = postmaster(p, which);

    if (!pid || kill(pid, SIGSTOP) != 0)
        return;
    server_signal_children(pid, SIGKILL);
    (void)kill(pid, SIGKILL);
    wait_gone(pid, which);
}

/* ---- clients ---- */

void pair_conninfo_of(const struct pair *p, int which, char ret[PAIR_TEXT])
{
    (void)snprintf(ret, PAIR_TEXT, "host=%s port=%d user=intact dbname=postgres connect_timeout=10",
                   p->dir, p->ports[which]);
}

void pair_conninfo(const struct pair *p, char ret[PAIR_TEXT])
{
    (void)snprintf(ret, PAIR_TEXT,
                   "host=127.0.0.1,127.0.0.1 port=%d,%d user=intact dbname=postgres "
                   "target_session_attrs=read-write",
                   p->ports[0], p->ports[1]);
}

bool pair_ask(const struct pair *p, int which, const char *sql, char ret[PAIR_TEXT])
{
    char conninfo[PAIR_TEXT];

    pair_conninfo_of(p, which, conninfo);
    PGconn *c = PQconnectdb(conninfo);
    PGresult *r = PQstatus(c) == CONNECTION_OK ? PQexec(c, sql) : NULL;
    bool ok = PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK;
    (void)snprintf(ret, PAIR_TEXT, "%s",
                   ok && PQntuples(r) && PQnfields(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(c);
    return ok;
}

static void wait_for(const struct pair *p, int which, const char *sql, const char *answer)
{
    char got[PAIR_TEXT] = "";

    for (unsigned i = 0; i < TRIES; i++) {
        if (pair_ask(p, which, sql, got) && strcmp(got, answer) == 0)
            return;
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "server %s answers \"%s\" to %s; see %s/%s.log", names[which], got, sql, p->dir,
          names[which]);
}

void pair_do(const struct pair *p, int which, const char *sql)
{
    char got[PAIR_TEXT];

    for (unsigned i = 0; i < TRIES; i++) {
        if (pair_ask(p, which, sql, got))
            return;
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "server %s does not do %s", names[which], sql);
}

/* ---- servers ---- */

/* What is left of one that was killed may hold its memory for a moment: then it is tried again. */
void pair_start(const struct pair *p, int which)
{
    char port[24];
    char name[40];
    const char *args[] = {"postgres", "-D", names[which], "-k", p->dir,
                          "-c",       port, "-c",         name, NULL};
    char got[PAIR_TEXT];
    pid_t pid = 0;

    (void)snprintf(port, sizeof port, "port=%d", p->ports[which]);
    (void)snprintf(name, sizeof name, "cluster_name=%s", names[which]);
    for (unsigned i = 0; i < TRIES; i++) {
        if (!pid || waitpid(pid, NULL, WNOHANG) == pid)
            pid = begin(p, which, "postgres", args);
        if (pair_ask(p, which, "SELECT 1", got))
            return;
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "server %s does not answer; see %s/%s.log", names[which], p->dir, names[which]);
}

void pair_stop(const struct pair *p, int which, const char *mode)
{
    const char *args[] = {"pg_ctl", "stop", "-D", names[which], "-m", mode, "-t", "180", NULL};
    pid_t pid = postmaster(p, which);

    run(p, which, "pg_ctl", args);
    if (pid)
        wait_gone(pid, which);
}

void pair_restart(const struct pair *p, int which, const char *mode)
{
    pair_stop(p, which, mode);
    pair_start(p, which);
}

void pair_promote(const struct pair *p, int which)
{
    char got[PAIR_TEXT];

    /* A call fails if an earlier one, whose answer was lost, has promoted the server. */
    for (unsigned i = 0; i < TRIES; i++) {
        (void)pair_ask(p, which, "SELECT pg_promote(true, 180)", got);
        if (pair_ask(p, which, "SELECT pg_is_in_recovery()", got) && strcmp(got, "f") == 0)
            return;
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "server %s is not promoted; see %s/%s.log", names[which], p->dir, names[which]);
}

/* Appended, so that it wins over what was copied. */
static void set_last(const struct pair *p, int which, const char *file, const char *text)
{
    char path[PAIR_TEXT];

    path_of(p, which, file, path);
    FILE *f = fopen(path, "a");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "cannot write %s", path);
    server_own(path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void pair_rejoin(const struct pair *p, int which)
{
    char source[PAIR_TEXT];
    char sql[128];
    char path[PAIR_TEXT];
    const char *args[] = {"pg_basebackup", "-D", names[which], "-d", source, "-R", "-X",
                          "stream",        "-c", "fast",       NULL};

    pair_kill(p, which);
    path_of(p, which, "", path);
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    (void)snprintf(source, sizeof source, "host=127.0.0.1 port=%d user=intact", p->ports[!which]);
    run(p, which, "pg_basebackup", args);
    set_last(p, which, "postgresql.auto.conf", "synchronous_standby_names = ''\n");
    pair_start(p, which);
    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET synchronous_standby_names = '%s'",
                   names[which]);
    pair_do(p, !which, sql);
    pair_do(p, !which, "SELECT pg_reload_conf()");
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM pg_stat_replication WHERE application_name = '%s' "
                   "AND sync_state = 'sync'",
                   names[which]);
    wait_for(p, !which, sql, "1");
}

void pair_make(struct pair *p, const char *dir)
{
    const char *args[] = {"initdb", "-D", "a",    "-U",         "intact",    "-A",
                          "trust",  "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
                          NULL};
    char path[PAIR_TEXT];

    (void)snprintf(p->dir, sizeof p->dir, "%s", dir);
    CHECK((mkdir(dir, 0755) == 0 || errno == EEXIST) && chmod(dir, 0755) == 0, "mkdir %s", dir);
    server_own(dir);
    for (int which = 0; which < 2; which++) { /* each is another one than those before it */
        p->ports[which] = test_port();
        p->pool_ports[which] = test_port();
    }
    (void)snprintf(path, sizeof path, "%s/ports", dir);
    FILE *f = fopen(path, "w");
    CHECK(f, "%s", path);
    fprintf(f, "%d %d %d %d\n", p->ports[0], p->ports[1], p->pool_ports[0], p->pool_ports[1]);
    CHECK(fclose(f) == 0, "%s", path);
    run(p, 0, "initdb", args);
    set_last(p, 0, "postgresql.conf", settings);
    pair_start(p, 0);
    pair_rejoin(p, 1);
}

bool pair_load(struct pair *p, const char *dir)
{
    char path[PAIR_TEXT];

    (void)snprintf(p->dir, sizeof p->dir, "%s", dir);
    (void)snprintf(path, sizeof path, "%s/ports", dir);
    FILE *f = fopen(path, "r");
    bool ok = f
              && fscanf(f, "%d %d %d %d", &p->ports[0], &p->ports[1], &p->pool_ports[0],
                        &p->pool_ports[1])
                     == 4;
    if (f)
        (void)fclose(f);
    return ok;
}

void pair_tell(const struct pair *p)
{
    char command[2 * PAIR_TEXT];

    (void)snprintf(
        command, sizeof command,
        "cd %s && ps axo pid,ppid,stat,lstart,args | grep '[p]ostgres'; tail -n 40 a.log b.log",
        p->dir);
    (void)fflush(NULL);
    if (system(command) != 0)
        fprintf(stderr, "there are no logs in %s\n", p->dir);
}

void pair_end(const struct pair *p)
{
    pair_pool_end(p);
    for (int which = 0; which < 2; which++) {
        pid_t pid = postmaster(p, which);
        if (pid)
            server_end(pid);
    }
    (void)nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
