/* Workloads of tools/instructions for whole tasks, from submission to end, through the scheduler
 * and a store in memory or SQLite. Letters of a workload's text turn its options on. flow.h runs
 * the tasks. */

#include "base/buf.h"
#include "instructions/flow.h"
#include "instructions/workload.h"
#include "sample.h"
#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"

enum { WARM = 10 };

/* Each letter of the workload's `text` turns on an option. */
static bool has(const struct workload *w, char letter)
{
    return strchr(w->text, letter) != NULL;
}

static enum sample_shape shape_of(const struct workload *w)
{
    return has(w, 'w') ? SHAPE_WIDE : has(w, 'u') ? SHAPE_UNDONE : SHAPE_SEQUENCE;
}

static struct store *open_sqlite(void)
{
    struct store *s = NULL;
    struct error e = {0};

    must(sqlite_store_open(".", &s, &e), &e);
    return s;
}

static void run(const struct workload *w, long rounds)
{
    CLEANUP(buf_fini) struct buf definition = {0};
    const bool on_disk = has(w, 's');
    const long at_once = has(w, 'm') ? 100 : 1;

    sample_workflow(&definition, w->arg, shape_of(w));
    const struct flow_config c = {.store = on_disk ? open_sqlite() : memory_store_new(),
                                  .maintain = on_disk ? sqlite_store_maintain : NULL,
                                  .definition = buf_view(&definition),
                                  .reply_to = has(w, 't') ? "test:anywhere" : NULL};
    struct flow *f = flow_new(&c);
    flow_run(f, at_once + WARM, at_once);
    count_begin();
    flow_run(f, rounds, at_once);
    count_end(w, NULL, rounds);
    must_be((flow_told(f) > 0) == has(w, 't'), "who asks for messages gets them");
    flow_free(f);
}

#define TASK(name, unit, rounds, arg, how)      \
    {                                           \
        name, unit, rounds, run, NULL, arg, how \
    }

/* clang-format off */
const struct workload workloads_task[] = {
    TASK("task-3-memory",        "a task of 3 steps, alone, in memory",            100,  3, ""),
    TASK("task-10-memory",       "a task of 10 steps, alone, in memory",            40, 10, ""),
    TASK("task-40-memory",       "a task of 40 steps, alone, in memory",            10, 40, ""),
    TASK("task-wide-memory",     "a task of 10 steps at once, alone, in memory",    40, 10, "w"),
    TASK("task-undo-memory",     "a task of 3 steps that is undone, in memory",    100,  3, "u"),
    TASK("task-3-many-memory",   "one of 100 tasks of 3 steps, in memory",         300,  3, "m"),
    TASK("task-3-sqlite",        "a task of 3 steps, alone, in SQLite",            100,  3, "s"),
    TASK("task-10-sqlite",       "a task of 10 steps, alone, in SQLite",            40, 10, "s"),
    TASK("task-40-sqlite",       "a task of 40 steps, alone, in SQLite",            10, 40, "s"),
    TASK("task-wide-sqlite",     "a task of 10 steps at once, alone, in SQLite",    40, 10, "sw"),
    TASK("task-undo-sqlite",     "a task of 3 steps that is undone, in SQLite",    100,  3, "su"),
    TASK("task-3-many-sqlite",   "one of 100 tasks of 3 steps, in SQLite",         300,  3, "sm"),
    TASK("task-3-told-memory",   "one of 100 tasks that tell, in memory",          300,  3, "mt"),
    TASK("task-3-told-sqlite",   "one of 100 tasks that tell, in SQLite",          300,  3, "smt"),
    {0},
};
/* clang-format on */
