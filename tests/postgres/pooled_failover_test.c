/*
 * The store over a primary and its synchronous standby with a PgBouncer in front of each. A pooler
 * keeps reporting the server parameters of its first connection, and may switch the connection with
 * each transaction, also after a restart of the server.
 */

#include "base/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "pair.h"
#include "scene.h"

enum { WAIT_MS = 2000, PATIENT_MS = 60000 };

static struct pair both;
static int leader, follower = 1; /* they change places all the time */

static void end_both(void)
{
    pair_end(&both);
}

static void begin(struct scene *c, const char *node, int64_t wait_ms)
{
    char conninfo[PAIR_TEXT];

    pair_pool_conninfo(&both, conninfo);
    scene_begin(c, conninfo, node, wait_ms);
}

static void promote(void)
{
    int before = leader;

    pair_promote(&both, follower);
    leader = follower;
    follower = before;
}

static bool is_stored(struct scene *c, const char *id)
{
    return scene_look_until_known(c, id) == ERR_OK;
}

/* Tells how long it took, which is no condition. */
static void go_on(struct scene *c, const char *id, int64_t began, const char *what)
{
    scene_insert_until_done(c, id);
    fprintf(stderr, "%s: writes go on after %" PRId64 " ms\n", what, clock_steady_ms() - began);
}

/* ---- who is the primary now ---- */

/* The standby's pooler has been asked while it was one. */
static void a_promoted_standby_is_found(void **state)
{
    struct scene c;

    (void)state;
    begin(&c, "killed", 0);
    scene_insert_until_done(&c, "killed-1");
    pair_kill(&both, leader);
    for (unsigned i = 0; i < 3; i++)
        CHECK(scene_insert(&c, "killed-2") != ERR_OK, "nobody could have written it");
    promote();
    go_on(&c, "killed-2", clock_steady_ms(), "promotion of the standby");
    CHECK(is_stored(&c, "killed-1"), "it was on both");
    scene_end(&c);
    begin(&c, "killed", 0); /* a node that starts after it */
    CHECK(is_stored(&c, "killed-1") && is_stored(&c, "killed-2"), "they were acknowledged");
    scene_end(&c);
    pair_rejoin(&both, follower);
}

/* As an operator does it: nobody is killed. The pooler of the old primary keeps what it is sent
 * until there is a server again: that is noticed before the call's time is over. */
static void a_planned_change_of_places_is_followed(void **state)
{
    struct scene c;

    (void)state;
    begin(&c, "planned", PATIENT_MS);
    scene_insert_until_done(&c, "planned-1");
    pair_stop(&both, leader, "fast");
    promote();
    int64_t began = clock_steady_ms();
    enum err err = scene_insert(&c, "planned-2");
    CHECK(err != ERR_OK && !strstr(c.e.text, "did not answer within"), "%s", c.e.text);
    go_on(&c, "planned-2", began, "planned change of places");
    pair_rejoin(&both, follower);
    scene_insert_until_done(&c, "planned-3");
    CHECK(is_stored(&c, "planned-1") && is_stored(&c, "planned-2"), "they were acknowledged");
    scene_end(&c);
}

/* ---- what is behind a connection to a pooler ---- */

/* The connection to the pooler stays while the server behind it becomes a standby. What that one
 * shows may be of yesterday. */
static void a_standby_behind_the_same_connection_is_not_believed(void **state)
{
    char direct[PAIR_TEXT];
    struct scene other;
    struct scene reader;
    struct scene writer;

    (void)state;
    begin(&reader, "reader", WAIT_MS);
    begin(&writer, "writer", WAIT_MS);
    scene_insert_until_done(&reader, "idle-1");
    pair_stop(&both, leader, "fast");
    promote();
    pair_rejoin(&both, follower);
    pair_do(&both, follower, "SELECT pg_wal_replay_pause()");
    pair_conninfo_of(&both, leader, direct);
    scene_begin(&other, direct, "other", WAIT_MS);
    scene_insert_until_done(&other, "idle-2");
    CHECK(is_stored(&reader, "idle-2"), "a standby was asked, which does not have it yet");
    go_on(&writer, "idle-3", clock_steady_ms(), "a server that became a standby");
    scene_end(&other);
    scene_end(&writer);
    scene_end(&reader);
    pair_do(&both, follower, "SELECT pg_wal_replay_resume()");
}

/* The primary dies while a commit waits for the standby, and comes back without it. It shows the
 * commit, also to who has been connected to the pooler all the time. */
static void after_a_crash_behind_it_only_what_is_on_both_is_shown(void **state)
{
    struct scene other;
    struct scene c;

    (void)state;
    begin(&c, "crash", WAIT_MS);
    begin(&other, "reader", WAIT_MS);
    scene_insert_until_done(&c, "crash-0");
    CHECK(is_stored(&other, "crash-0"), "it is connected");
    pair_kill(&both, follower);
    enum err err = scene_insert(&c, "crash-1");
    CHECK(err == ERR_UNKNOWN, "%s: %s", err_text(err), c.e.text);
    pair_kill(&both, leader);
    pair_start(&both, leader);
    for (unsigned i = 0; i < 3; i++)
        CHECK(scene_look(&other, "crash-1") != ERR_OK, "the standby does not have it");
    pair_start(&both, follower);
    CHECK(is_stored(&other, "crash-1"), "now both have it");
    scene_end(&other);
    scene_end(&c);
}

static int run_with(const char *mode)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promoted_standby_is_found),
        cmocka_unit_test(a_planned_change_of_places_is_followed),
        cmocka_unit_test(a_standby_behind_the_same_connection_is_not_believed),
        cmocka_unit_test(after_a_crash_behind_it_only_what_is_on_both_is_shown),
    };

    fprintf(stderr, "pooling by the %s\n", mode);
    pair_pool(&both, mode);
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        if (_cmocka_run_group_tests(tests[i].name, &tests[i], 1, NULL, NULL) != 0) {
            pair_tell(&both); /* the others would wait for servers that are not as they expect */
            return 1;
        }
    return 0;
}

int main(void)
{
    char dir[] = "/tmp/intact-pair-XXXXXX";

    if (!mkdtemp(dir))
        return 1;
    (void)atexit(end_both);
    pair_make(&both, dir);
    if (run_with("transaction") != 0)
        return 1;
    pair_do(&both, leader, "TRUNCATE intact.task CASCADE");
    return run_with("session");
}
