/* Evaluations that exceeded their time are counted per task, in every body: whether the task exists
 * or not, until it ends or an operator resumes it. */

#include "contract/store_world.h"

#include "base/buf.h"

static void count(struct world *w, const char *task, int by, int64_t at)
{
    const struct overrun_count c = {.task = slice_of(task), .by = by, .at = at};

    must(w->s->ops->overrun_count(w->s, &c, &w->e), task);
}

/* "task times at", the latest first. */
static void counted(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct overrun *list = NULL;
    size_t n = 77;

    must(w->s->ops->overrun_list(w->s, &w->a, &list, &n, &w->e), "list");
    for (size_t i = 0; i < n; i++)
        buf_fmt(&b, "%s%.*s %d %d", i ? ", " : "", SLICE_ARG(list[i].task), (int)list[i].times,
                (int)list[i].at);
    CHECK(slice_is(buf_view(&b), want), "counted: %s, expected: %s", b.ptr ? b.ptr : "", want);
}

static void each_task_is_counted_by_itself(void **state)
{
    struct world *w = *state;

    counted(w, "");
    count(w, "one", 1, 10);
    count(w, "two", 1, 20);
    count(w, "one", 1, 30);
    counted(w, "one 2 30, two 1 20");
    world_restart(w);
    counted(w, "one 2 30, two 1 20");
}

static void what_came_to_its_end_is_taken_back(void **state)
{
    struct world *w = *state;

    count(w, "one", 1, 10);
    count(w, "one", 1, 20);
    count(w, "one", -1, 30);
    counted(w, "one 1 20");
    count(w, "one", -1, 40);
    counted(w, "");
    count(w, "one", -1, 50); /* there is nothing */
    counted(w, "");
}

static enum err change(struct world *w, const char *id, uint64_t revision, bool drops)
{
    struct task_row row = a_row(id);

    row.revision = revision;
    return put_change(w,
                      (struct change){.kind = CHANGE_UPDATE, .row = row, .drops_overruns = drops});
}

static void a_change_takes_it_along(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("one")), "one");
    must(insert_row(w, a_row("two")), "two");
    count(w, "one", 1, 10);
    count(w, "two", 1, 20);
    must(change(w, "one", 2, false), "of something else");
    counted(w, "two 1 20, one 1 10");
    CHECK(change(w, "one", 9, true) == ERR_CONFLICT, "it has another revision");
    counted(w, "two 1 20, one 1 10");
    must(change(w, "one", 3, true), "with it");
    counted(w, "two 1 20");
    must(change(w, "one", 4, true), "there is nothing more");
    counted(w, "two 1 20");
}

/* What is long ago and has no task that could go on is deleted with the next count. */
static void what_nobody_needs_goes(void **state)
{
    struct world *w = *state;
    struct task_row ended = a_row("ended");
    int64_t later = OVERRUN_KEPT_MS + 25;

    ended.state = TASK_PROCESSED;
    ended.waiting_for = SLICE_NONE;
    ended.ended_at = 2000;
    must(insert_row(w, a_row("open")), "open");
    must(insert_row(w, ended), "ended");
    count(w, "gone", 1, 10);
    count(w, "ended", 1, 20);
    count(w, "open", 1, 15);
    count(w, "young", 1, 26);
    count(w, "now", 1, later);
    struct overrun *list = NULL;
    size_t n = 0;
    must(w->s->ops->overrun_list(w->s, &w->a, &list, &n, &w->e), "list");
    CHECK(n == 3 && slice_is(list[0].task, "now") && slice_is(list[1].task, "young")
              && slice_is(list[2].task, "open"),
          "%zu are left", n);
}

/* Those that wait with the other nodes look around for it. */
static void a_survey_tells_of_it(void **state)
{
    struct world *w = *state;
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .now = 1000,
                       .length_ms = 3000};

    if (!w->s->ops->nodes)
        return;
    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    CHECK(!v.overruns, "there is none");
    count(w, "one", 1, 10);
    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    CHECK(v.overruns, "there is one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(each_task_is_counted_by_itself), ON_ALL(what_came_to_its_end_is_taken_back),
        ON_ALL(a_change_takes_it_along),        ON_ALL(what_nobody_needs_goes),
        ON_ALL(a_survey_tells_of_it),
    };
    return cmocka_run_group_tests_name("store contract: overruns", tests, NULL, NULL);
}
