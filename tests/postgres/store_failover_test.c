/*
 * The store over a primary and its synchronous standby, at the critical moments: nothing
 * acknowledged and nothing shown is lost once the standby is the primary.
 */

#include "base/test.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "scene.h"

enum { A, B, TRIES = 9000, PAUSE_US = 20000, WAIT_MS = 2000, PATIENCE_MS = 180000 };

static struct pair both;
static pid_t owner;

static void end_both(void)
{
    if (owner == getpid())
        pair_end(&both);
}

static void wait_until(int which, const char *sql, const char *answer)
{
    char got[PAIR_TEXT] = "";

    for (unsigned i = 0; i < TRIES; i++) {
        if (pair_ask(&both, which, sql, got) && strcmp(got, answer) == 0)
            return;
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "\"%s\" instead of \"%s\": %s", got, answer, sql);
}

/* A pair as it is at first: A leads, B follows. */
static void begin(struct scene *c, const char *node)
{
    char conninfo[PAIR_TEXT];

    pair_conninfo(&both, conninfo);
    scene_begin(c, conninfo, node, WAIT_MS);
}

/* From B leading, and A following, back to how it was. */
static void make_a_lead_again(void)
{
    pair_kill(&both, B);
    pair_promote(&both, A);
    pair_rejoin(&both, B);
}

#define CONNECTIONS "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'intact'"
#define WAITING     "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

/* What the log was told. */
static const char *why_not(const struct scene *c)
{
    return postgres_store_of(c->s)->unreachable.text;
}

/* ---- the standby is away ---- */

/* A commit is acknowledged by both or by nobody, and who asks for ever has no more than a few
 * connections. When the standby is back, all goes on. */
static void without_the_standby_nothing_is_acknowledged(void **state)
{
    char got[PAIR_TEXT];
    struct scene c;
    bool told = false;

    (void)state;
    begin(&c, "away");
    pair_kill(&both, B);
    CHECK(scene_insert(&c, "away-1") == ERR_UNKNOWN, "%s", c.e.text);
    CHECK(strstr(c.e.text, "standby"), "it says where to look: %s", c.e.text);
    for (unsigned i = 0; i < TRIES && !told; i++) {
        enum err err = scene_insert(&c, "away-2");
        told = strstr(why_not(&c), "acknowledges nothing");
        CHECK(err == ERR_UNKNOWN || err == ERR_IO, "%s", err_text(err));
        CHECK(scene_look(&c, "away-1") != ERR_OK, "it is not on the standby");
        CHECK(pair_ask(&both, A, CONNECTIONS, got) && atoi(got) <= 4, "%s connections", got);
        (void)usleep(PAUSE_US);
    }
    CHECK(told, "%s", why_not(&c));
    pair_start(&both, B);
    scene_insert_until_done(&c, "away-2");
    CHECK(scene_look_until_known(&c, "away-1") == ERR_OK, "what was unknown has happened");
    for (unsigned i = 0; i < TRIES && strcmp(got, "1") != 0; i++) { /* the others are ended */
        CHECK(scene_look_until_known(&c, "away-2") == ERR_OK, "%s", c.e.text);
        (void)usleep(PAUSE_US);
        (void)pair_ask(&both, A, CONNECTIONS, got);
    }
    CHECK(strcmp(got, "1") == 0, "%s connections", got);
    scene_end(&c);
}

/* ---- a wait that was cancelled ---- */

/* A process of its own, which inserts when it is told to, and looks. Its status: 0 if that was
 * right. (A CHECK that failed here would go on with the other tests.) */
static int insert_elsewhere(struct scene *c, int told, int tell)
{
    char byte = 0;

    if (write(tell, &byte, 1) != 1 || read(told, &byte, 1) != 1)
        return 1;
    if (scene_insert(c, "cancelled") != ERR_UNKNOWN)
        return 2;
    return scene_look(c, "cancelled") == ERR_OK ? 3 : 0;
}

/* An operator, or a shutdown, cancels the wait for the standby: then the primary shows what the
 * standby never got. A writer that waited for it does not learn the outcome. */
static void what_the_standby_never_got_is_not_shown(void **state)
{
    struct scene other;
    struct scene c;
    int to[2];
    int from[2];
    int status = -1;
    char byte = 0;

    (void)state;
    CHECK(pipe(to) == 0 && pipe(from) == 0, "pipes");
    begin(&other, "elsewhere");
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(insert_elsewhere(&other, to[0], from[1]));
    }
    CHECK(pid > 0 && read(from[0], &byte, 1) == 1, "the other process");
    pair_kill(&both, B);
    CHECK(write(to[1], &byte, 1) == 1, "pipes");
    wait_until(A, WAITING, "1");
    pair_do(&both, A,
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    wait_until(A, "SELECT count(*) FROM intact.task WHERE id = 'cancelled'", "1");
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "it was told: %d", status);
    pair_kill(&both, A);
    scene_end(&other); /* what it shares with that process is broken now */
    pair_start(&both, B);
    pair_promote(&both, B);
    pair_rejoin(&both, A);
    begin(&c, "judge");
    CHECK(scene_look_until_known(&c, "cancelled") == ERR_NOT_FOUND, "the new primary never had it");
    scene_end(&c);
    make_a_lead_again();
}

/* The primary dies while a commit waits for the standby, and comes back without it: it shows the
 * commit, and the store does not until the standby has it too. */
static void after_a_crash_only_what_is_on_both_is_shown(void **state)
{
    char got[PAIR_TEXT];
    struct scene c;

    (void)state;
    begin(&c, "crash");
    scene_insert_until_done(&c, "crash-0");
    pair_kill(&both, B);
    CHECK(scene_insert(&c, "crash-1") == ERR_UNKNOWN, "%s", c.e.text);
    pair_kill(&both, A);
    pair_start(&both, A);
    CHECK(pair_ask(&both, A, "SELECT count(*) FROM intact.task WHERE id = 'crash-1'", got)
              && strcmp(got, "1") == 0,
          "the primary alone has it");
    for (unsigned i = 0; i < 3; i++)
        CHECK(scene_look(&c, "crash-1") != ERR_OK, "the standby does not have it");
    pair_start(&both, B);
    CHECK(scene_look_until_known(&c, "crash-1") == ERR_OK, "now both have it");
    scene_end(&c);
}

/* ---- fenced too late ---- */

/* The primary stands still, the standby is promoted, and the old primary goes on before anybody
 * has fenced it: two take connections for writing, and one of them acknowledges nothing. */
static void a_primary_that_wakes_up_acknowledges_nothing(void **state)
{
    char alone[PAIR_TEXT];
    struct scene c;
    struct scene old;

    (void)state;
    begin(&c, "late");
    scene_insert_until_done(&c, "late-1");
    pair_conninfo_of(&both, A, alone);
    scene_begin(&old, alone, "old", WAIT_MS);
    pair_signal(&both, A, SIGSTOP);
    enum err err = scene_insert(&c, "late-2");
    CHECK(err == ERR_UNKNOWN, "%s: %s", err_text(err), c.e.text);
    pair_promote(&both, B);
    scene_insert_until_done(&c, "late-3"); /* though the first host takes connections */
    pair_signal(&both, A, SIGCONT);
    for (unsigned i = 0; i < 3; i++) {
        err = scene_insert(&old, "late-4");
        CHECK(err != ERR_OK && err_is_transient(err), "%s: %s", err_text(err), old.e.text);
        CHECK(i == 0 || scene_look(&old, "late-3") != ERR_NOT_FOUND,
              "yesterday's primary is believed");
    }
    scene_end(&old);
    scene_end(&c);
    begin(&c, "late"); /* a node that starts now finds the right one, though both take it */
    CHECK(scene_look_until_known(&c, "late-1") == ERR_OK
              && scene_look_until_known(&c, "late-3") == ERR_OK,
          "what was acknowledged is there");
    scene_insert_until_done(&c, "late-5");
    pair_rejoin(&both, A); /* fenced, at last */
    CHECK(scene_look_until_known(&c, "late-4") == ERR_NOT_FOUND, "it was acknowledged by nobody");
    CHECK(scene_look_until_known(&c, "late-5") == ERR_OK, "what was acknowledged is there");
    scene_end(&c);
    make_a_lead_again();
}

/* What was just acknowledged is read, though the second connection still has the old primary, which
 * answers. */
static void who_only_reads_asks_where_changes_go(void **state)
{
    struct scene c;
    struct scene reading = {0};

    (void)state;
    begin(&c, "reads");
    scene_insert_until_done(&c, "reads-1");
    reading.s = c.s->ops->reading(c.s);
    CHECK(scene_look_until_known(&reading, "reads-1") == ERR_OK, "%s", reading.e.text);
    pair_signal(&both, A, SIGSTOP);
    enum err err = scene_insert(&c, "reads-2");
    CHECK(err == ERR_UNKNOWN, "%s: %s", err_text(err), c.e.text);
    pair_promote(&both, B);
    scene_insert_until_done(&c, "reads-3");
    pair_signal(&both, A, SIGCONT);
    CHECK(scene_look_until_known(&reading, "reads-3") == ERR_OK, "yesterday's primary is believed");
    scene_end(&reading);
    scene_end(&c);
    pair_rejoin(&both, A);
    make_a_lead_again();
}

/* ---- submissions ---- */

/* A standby tells nobody of them: the next host is listened to. */
static void submissions_are_heard_of_though_a_standby_comes_first(void **state)
{
    char conninfo[PAIR_TEXT];
    struct pollfd heard = {.events = POLLIN};
    uint64_t times;
    struct scene c;

    (void)state;
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=127.0.0.1,127.0.0.1 port=%d,%d user=intact dbname=postgres", both.ports[B],
                   both.ports[A]);
    scene_begin(&c, conninfo, "hears", WAIT_MS);
    heard.fd = c.s->ops->watch(c.s);
    CHECK(poll(&heard, 1, PATIENCE_MS) == 1, "it never listens");
    CHECK(read(heard.fd, &times, sizeof times) == sizeof times, "it listens");
    pair_do(&both, A, "NOTIFY \"intact.intact\"");
    CHECK(poll(&heard, 1, PATIENCE_MS) == 1, "it does not hear of it");
    scene_end(&c);
}

/* ---- no room, no connections ---- */

/* Tables on a disk that is full: that is said, nothing is acknowledged, and it goes on as soon as
 * there is room. */
static void a_full_disk_is_said_and_goes_by(void **state)
{
    char dir[PAIR_TEXT / 2];
    char command[4 * PAIR_TEXT];
    struct scene c;
    enum err err = ERR_OK;

    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/small", both.dir);
    (void)snprintf(command, sizeof command,
                   "mkdir %s && mount -t tmpfs -o size=8m,mode=0777 tmpfs %s && "
                   "mkdir %s/a && chown --reference=%s %s/a",
                   dir, dir, dir, both.dir, dir);
    if (getuid() != 0 || system(command) != 0) {
        skip(); /* no mounts are allowed here */
        return;
    }
    (void)snprintf(command, sizeof command, "CREATE TABLESPACE small LOCATION '%s/a'", dir);
    begin(&c, "full");
    pair_kill(&both, B); /* it would want that place for itself */
    pair_do(&both, A, "ALTER SYSTEM SET synchronous_standby_names = ''");
    pair_do(&both, A, "SELECT pg_reload_conf()");
    pair_do(&both, A, command);
    scene_insert_until_done(&c, "full-0");
    pair_do(&both, A, "ALTER TABLE intact.task SET TABLESPACE small");
    for (unsigned i = 0; i < 100000 && err != ERR_FULL; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "full-%u", i + 1);
        err = scene_insert_large(&c, id);
        CHECK(err == ERR_OK || err_is_transient(err) || err == ERR_FULL, "%s", c.e.text);
    }
    CHECK(err == ERR_FULL && strstr(c.e.text, "could not extend"), "%s", c.e.text);
    CHECK(scene_look(&c, "full-0") == ERR_OK, "what there is can be read: %s", c.e.text);
    pair_do(&both, A, "ALTER TABLE intact.task SET TABLESPACE pg_default");
    scene_insert_until_done(&c, "after");
    CHECK(scene_look_until_known(&c, "after") == ERR_OK
              && scene_look_until_known(&c, "full-1") == ERR_OK,
          "all that was acknowledged is there");
    scene_end(&c);
    pair_do(&both, A, "DROP TABLESPACE small");
    (void)snprintf(command, sizeof command, "umount -l %s", dir);
    CHECK(system(command) == 0, "%s", command);
    pair_rejoin(&both, B);
}

/* No connection is left for us: that is said, and it goes on when there is one again. */
static void without_a_connection_it_waits_for_one(void **state)
{
    char alone[2 * PAIR_TEXT];
    struct postgres_options o = {.conninfo = alone, .node = "limit", .wait_ms = WAIT_MS};
    struct scene c = {0};
    struct store *second = NULL;
    struct error e = {0};

    (void)state;
    pair_do(&both, A, "CREATE ROLE few LOGIN SUPERUSER");
    pair_do(&both, A, "ALTER ROLE few NOSUPERUSER CONNECTION LIMIT 1");
    pair_do(&both, A, "GRANT ALL ON DATABASE postgres TO few");
    (void)snprintf(alone, sizeof alone, "host=127.0.0.1 port=%d user=few dbname=postgres",
                   both.ports[A]);
    o.schema = "few";
    for (enum err err = ERR_IO; err != ERR_OK;) {
        err = postgres_store_open(&o, &c.s, &c.e);
        CHECK(err == ERR_OK || err_is_transient(err), "%s", c.e.text);
    }
    o.node = "second";
    CHECK(postgres_store_open(&o, &second, &e) == ERR_IO, "there is one connection");
    CHECK(strstr(e.text, "too many connections"), "%s", e.text);
    scene_insert_until_done(&c, "few-1");
    pair_do(&both, A, "ALTER ROLE few CONNECTION LIMIT 0");
    pair_do(&both, A,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'");
    enum err err = scene_insert(&c, "few-2");
    for (unsigned i = 0; i < TRIES && !strstr(why_not(&c), "too many connections"); i++) {
        CHECK(err_is_transient(err), "%s", err_text(err));
        (void)usleep(PAUSE_US);
        err = scene_insert(&c, "few-2");
    }
    CHECK(strstr(why_not(&c), "too many connections"), "%s", why_not(&c));
    pair_do(&both, A, "ALTER ROLE few CONNECTION LIMIT 1");
    scene_insert_until_done(&c, "few-2");
    scene_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_standby_nothing_is_acknowledged),
        cmocka_unit_test(what_the_standby_never_got_is_not_shown),
        cmocka_unit_test(after_a_crash_only_what_is_on_both_is_shown),
        cmocka_unit_test(a_primary_that_wakes_up_acknowledges_nothing),
        cmocka_unit_test(who_only_reads_asks_where_changes_go),
        cmocka_unit_test(submissions_are_heard_of_though_a_standby_comes_first),
        cmocka_unit_test(without_a_connection_it_waits_for_one),
        cmocka_unit_test(a_full_disk_is_said_and_goes_by),
    };
    char dir[64];

    (void)snprintf(dir, sizeof dir, "/tmp/intact-pair-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    owner = getpid();
    if (unshare(CLONE_NEWNS) == 0) /* mounts end with us */
        (void)mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    (void)atexit(end_both);
    pair_make(&both, dir);
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        if (_cmocka_run_group_tests(tests[i].name, &tests[i], 1, NULL, NULL) != 0) {
            pair_tell(&both); /* the others would wait for servers that are not as they expect */
            return 1;
        }
    return 0;
}
