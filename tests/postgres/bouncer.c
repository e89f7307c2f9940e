/* Implements bouncer.h: writes the settings of PgBouncer, starts it and waits for its first
 * answer. */

#include "bouncer.h"

#include "base/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "cluster.h"

enum { TRIES = 6000, PAUSE_US = 20000 }; /* only a failing test waits so long */

static struct {
    char conninfo[128];
    pid_t pid;
} b;

static void write_settings(const char *pool_mode)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/bouncer.ini", cluster_dir());
    FILE *f = fopen(path, "w");
    CHECK(f, "%s", path);
    fprintf(f,
            "[databases]\npostgres = host=%s dbname=postgres user=intact\n[pgbouncer]\n"
            "listen_addr =\nlisten_port = 6432\nunix_socket_dir = %s\nauth_type = any\n"
            "pool_mode = %s\ndefault_pool_size = 3\nserver_login_retry = 1\n",
            cluster_dir(), cluster_dir(), pool_mode);
    CHECK(fclose(f) == 0 && chmod(path, 0644) == 0, "%s", path);
}

void bouncer_start(const char *pool_mode)
{
    const char *const args[] = {"pgbouncer", "bouncer.ini", NULL};
    bool up = false;

    write_settings(pool_mode);
    (void)snprintf(b.conninfo, sizeof b.conninfo, "host=%s port=6432 user=intact dbname=postgres",
                   cluster_dir());
    b.pid = cluster_run("/usr/sbin/pgbouncer", args);
    for (unsigned i = 0; !up && i < TRIES; i++) {
        PGconn *c = PQconnectdb(b.conninfo);
        up = PQstatus(c) == CONNECTION_OK;
        PQfinish(c);
        if (!up && waitpid(b.pid, NULL, WNOHANG) != 0) /* a socket of one that was killed */
            b.pid = cluster_run("/usr/sbin/pgbouncer", args);
        if (!up)
            (void)usleep(PAUSE_US);
    }
    CHECK(up, "the pooler does not start; see %s/log", cluster_dir());
}

void bouncer_kill(void)
{
    CHECK(kill(b.pid, SIGKILL) == 0 && waitpid(b.pid, NULL, 0) == b.pid, "kill the pooler");
}

const char *bouncer_conninfo(void)
{
    if (!b.pid)
        bouncer_start("transaction");
    return b.conninfo;
}

bool is_pooled(void)
{
    return getenv("INTACT_TEST_POOLER") != NULL;
}

const char *pooled_conninfo(void)
{
    return is_pooled() ? bouncer_conninfo() : cluster_conninfo();
}
