/*
 * The tests' own servers leave nothing behind, however a test ends: no process, and no shared
 * memory, of which a machine has little.
 */

#include "base/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "cluster.h"
#include "pair.h"
#include "server.h"

enum { TRIES = 9000, PAUSE_US = 20000 }; /* three minutes: only a failing test waits so long */

struct server {
    pid_t pid;
    int segment; /* of System V shared memory */
};

/* As its file says: the first line is its process, the seventh has a key and the segment. */
static struct server server_in(const char *dir)
{
    struct server s = {.segment = -1};
    char path[200];
    char line[400];

    (void)snprintf(path, sizeof path, "%s/postmaster.pid", dir);
    FILE *f = fopen(path, "r");
    CHECK(f, "%s", path);
    for (int i = 1; fgets(line, sizeof line, f); i++) {
        if (i == 1)
            s.pid = (pid_t)strtol(line, NULL, 10);
        if (i == 7)
            CHECK(sscanf(line, "%*s %d", &s.segment) == 1, "%s", line);
    }
    (void)fclose(f);
    CHECK(s.pid > 1 && s.segment >= 0, "%s", path);
    return s;
}

static bool has_segment(struct server s)
{
    struct shmid_ds is;

    return shmctl(s.segment, IPC_STAT, &is) == 0 && is.shm_cpid == s.pid;
}

static void wait_gone(struct server s)
{
    for (unsigned i = 0; i < TRIES && !server_is_gone(s.pid); i++)
        (void)usleep(PAUSE_US);
    CHECK(server_is_gone(s.pid), "server %d stays", s.pid);
    CHECK(!has_segment(s), "server %d left shared memory", s.pid);
}

/* A test of its own, which has a database, and ends or waits to be killed. Tells where. */
static pid_t begin_test(bool ends, char dir[64])
{
    int told[2];
    CHECK(pipe(told) == 0, "pipe");
    pid_t pid = fork();

    CHECK(pid >= 0, "fork");
    if (pid == 0) {
        char text[64] = "";
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
        (void)snprintf(text, sizeof text, "%s", cluster_dir());
        if (write(told[1], text, sizeof text) != sizeof text)
            abort();
        if (ends)
            exit(0);
        for (;;)
            (void)pause();
    }
    (void)close(told[1]);
    CHECK(read(told[0], dir, 64) == 64, "it has a database");
    (void)close(told[0]);
    return pid;
}

static void a_test_that_ends_leaves_nothing(void **state)
{
    char dir[64];
    int status = -1;
    (void)state;

    pid_t test = begin_test(true, dir);
    CHECK(waitpid(test, &status, 0) == test && status == 0, "it ended with %d", status);
    CHECK(access(dir, F_OK) != 0, "%s is still there", dir);
}

static void a_test_that_is_killed_leaves_no_server(void **state)
{
    char dir[64];
    char path[100];
    (void)state;

    pid_t test = begin_test(false, dir);
    (void)snprintf(path, sizeof path, "%s/data", dir);
    struct server server = server_in(path);
    CHECK(has_segment(server), "server %d has shared memory", server.pid);
    CHECK(kill(test, SIGKILL) == 0 && waitpid(test, NULL, 0) == test, "kill the test");
    wait_gone(server);
    (void)snprintf(path, sizeof path, "rm -rf '%s'", dir);
    CHECK(system(path) == 0, "%s", path);
}

static void make_pair(struct pair *p)
{
    char dir[64] = "/tmp/intact-pair-XXXXXX";

    CHECK(mkdtemp(dir), "a folder");
    pair_make(p, dir);
}

static void servers_that_stand_still_end_too(void **state)
{
    struct pair p = {0};
    struct server servers[2];
    char path[120];
    (void)state;

    make_pair(&p);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%c", p.dir, 'a' + i);
        servers[i] = server_in(path);
        pair_signal(&p, i, SIGSTOP);
    }
    pair_end(&p);
    wait_gone(servers[0]);
    wait_gone(servers[1]);
    CHECK(access(p.dir, F_OK) != 0, "%s is still there", p.dir);
}

/* What a crash left behind names a process; meanwhile its number is somebody else's. */
static void nobody_else_is_killed(void **state)
{
    struct pair p = {.dir = "/tmp/intact-pair-XXXXXX"};
    char path[200];
    int status = -1;
    (void)state;

    CHECK(mkdtemp(p.dir), "a folder");
    pid_t other = fork();
    CHECK(other >= 0, "fork");
    if (other == 0)
        for (;;)
            (void)pause();
    (void)snprintf(path, sizeof path, "%s/a", p.dir);
    CHECK(mkdir(path, 0700) == 0, "%s", path);
    (void)snprintf(path, sizeof path, "%s/a/postmaster.pid", p.dir);
    FILE *f = fopen(path, "w");
    CHECK(f && fprintf(f, "%d\n", other) > 0 && fclose(f) == 0, "%s", path);
    pair_kill(&p, 0);
    pair_end(&p);
    CHECK(waitpid(other, &status, WNOHANG | WUNTRACED) == 0, "it was signalled: %d", status);
    CHECK(kill(other, SIGKILL) == 0 && waitpid(other, &status, 0) == other, "kill it");
}

/* Its processes do not look for their postmaster while they are at work. */
static void a_killed_server_does_nothing_more(void **state)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r;
    (void)state;

    CHECK(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    r = PQexec(conn, "SELECT 1");
    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(conn));
    PQclear(r);
    CHECK(PQsendQuery(conn, "DO $$BEGIN FOR i IN 1..50000000 LOOP NULL; END LOOP; END$$")
              && PQflush(conn) == 0,
          "%s", PQerrorMessage(conn));
    cluster_kill();
    r = PQgetResult(conn);
    CHECK(PQresultStatus(r) == PGRES_FATAL_ERROR, "it ended with %s",
          PQresStatus(PQresultStatus(r)));
    PQclear(r);
    PQfinish(conn);
    cluster_start();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_test_that_ends_leaves_nothing),
        cmocka_unit_test(a_test_that_is_killed_leaves_no_server),
        cmocka_unit_test(servers_that_stand_still_end_too),
        cmocka_unit_test(nobody_else_is_killed),
        cmocka_unit_test(a_killed_server_does_nothing_more),
    };

    return cmocka_run_group_tests_name("the tests' own servers", tests, NULL, NULL);
}
