/* Scenes of submissions by SQL while the nodes that take them die. The table of scenes at the end
 * says which conditions and acts follow each other (scene.h); sql.c has the applications and the
 * rules. */

#include "base/when.h"
#include "sim/scene.h"
#include "sim/sql.h"
#include "sim/world.h"

static void an_application_commits(void)
{
    sql_put(the_task(), false);
}

static bool taken(void)
{
    return met(COVER_SQL_TAKEN);
}

static bool asked(void)
{
    return met(COVER_SQL_ASKED);
}

static bool stored(void)
{
    return the_task()->seen.revision != 0;
}

static void node_crashes(void)
{
    node_crash(&nodes.list[0], "for the scene");
}

static void it_commits_thrice(void)
{
    sql_put(the_task(), false);
    sql_put(the_task(), false);
    sql_put(the_task(), true);
}

static bool one_is_refused(void)
{
    return sql_refused() == 1;
}

static void somebody_tries_again(void)
{
    sql_verb(false);
}

static void one_is_kept(void)
{
    scene_must(sql_refused() == 1, "of other content, and kept");
}

static void none_is_kept(void)
{
    scene_must(sql_refused() == 0, "nothing was refused");
}

static void puts_in_a_slip(void)
{
    sql_put_bad();
    sql_put(the_task(), false);
}

static void somebody_drops_it(void)
{
    sql_verb(true);
}

const struct scene scenes_of_sql[] = {
    {
        .name = "sql_taken",
        .sentence = "a node dies with a submission that it has taken: another start takes it again",
        .sql = true,
        .unasked = true,
        .flow = {.step_count = 1},
        .beats = {{.what = "an application commits",
                   .after_ms = 2000,
                   .then = an_application_commits},
                  {.what = "it is taken", .until = taken, .then = node_crashes},
                  {.what = "it is a task", .until = stored}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = none_is_kept,
    },
    {
        .name = "sql_asked",
        .sentence = "a node dies as it makes a task of a submission: there is one task",
        .nodes = 2,
        .sql = true,
        .unasked = true,
        .flow = {.step_count = 1},
        .beats = {{.what = "an application commits",
                   .after_ms = 2000,
                   .then = an_application_commits},
                  {.what = "it is asked for", .until = asked, .then = node_crashes},
                  {.what = "it is a task", .until = stored}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = none_is_kept,
    },
    {
        .name = "sql_thrice",
        .sentence = "an id is put in twice, and once with other content: one task, and one row"
                    " that is refused, however often it is tried",
        .nodes = 2,
        .sql = true,
        .unasked = true,
        .flow = {.step_count = 1},
        .beats = {{.what = "an application commits", .after_ms = 2000, .then = it_commits_thrice},
                  {.what = "one is refused", .until = one_is_refused, .then = somebody_tries_again},
                  {.what = "one is refused again", .after_ms = 10000, .until = one_is_refused}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = one_is_kept,
    },
    {
        .name = "sql_slip",
        .sentence = "what can be no task is refused and dropped, and is in nobody's way",
        .sql = true,
        .unasked = true,
        .flow = {.step_count = 1},
        .beats = {{.what = "an application commits", .after_ms = 2000, .then = puts_in_a_slip},
                  {.what = "one is refused", .until = one_is_refused, .then = somebody_drops_it},
                  {.what = "it is a task", .until = stored}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = none_is_kept,
    },
    {.name = NULL},
};
