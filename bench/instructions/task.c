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

static struct flow_config flow_of(const struct workload *w, const struct buf *definition)
{
    const bool on_disk = has(w, 's');

    return (struct flow_config){.store = on_disk ? open_sqlite() : memory_store_new(),
                                .maintain = on_disk ? sqlite_store_maintain : NULL,
                                .definition = buf_view(definition),
                                .reply_to = has(w, 't') ? "test:anywhere" : NULL};
}

static void run(const struct workload *w, long rounds)
{
    CLEANUP(buf_fini) struct buf definition = {0};
    const long at_once = has(w, 'm') ? 100 : has(w, 'd') ? 10 : 1;

    sample_workflow(&definition, w->arg, shape_of(w));
    const struct flow_config c = flow_of(w, &definition);
    struct flow *f = flow_new(&c);
    flow_run(f, at_once + WARM, at_once);
    count_begin();
    flow_run(f, rounds, at_once);
    count_end(w, NULL, rounds);
    must_be((flow_told(f) > 0) == has(w, 't'), "who asks for messages gets them");
    flow_free(f);
}

/* A list of so many items, of a line of an order each. */
static void write_list(struct buf *b, long items)
{
    buf_str(b, "{\"lines\":[");
    for (long i = 0; i < items; i++)
        buf_fmt(b, "%s{\"sku\":\"A-%ld\",\"quantity\":1}", i ? "," : "", i);
    buf_str(b, "]}");
}

/* One task, alone, with a list: `arg` is how many of its items are at work at a time. */
static void run_items(const struct workload *w, long rounds)
{
    CLEANUP(buf_fini) struct buf definition = {0};
    CLEANUP(buf_fini) struct buf input = {0};

    sample_items(&definition, w->arg, shape_of(w));
    write_list(&input, rounds);
    struct flow_config c = flow_of(w, &definition);
    c.input = buf_view(&input);
    struct flow *f = flow_new(&c);
    flow_run(f, 1, 1);
    count_begin();
    flow_run(f, 1, 1);
    count_end(w, NULL, rounds);
    flow_free(f);
}

#define ITEMS(name, unit, arg, how)                 \
    {                                               \
        name, unit, 1000, run_items, NULL, arg, how \
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
    TASK("task-3-ten-memory",    "one of 10 tasks of 3 steps, in memory",          300,  3, "d"),
    TASK("task-3-ten-sqlite",    "one of 10 tasks of 3 steps, in SQLite",          300,  3, "sd"),
    ITEMS("items-10-memory",      "an item, 10 at work, in memory",             10, ""),
    ITEMS("items-10-sqlite",      "an item, 10 at work, in SQLite",             10, "s"),
    ITEMS("items-100-memory",     "an item, 100 at work, in memory",           100, ""),
    ITEMS("items-100-sqlite",     "an item, 100 at work, in SQLite",           100, "s"),
    ITEMS("items-undo-10-memory", "an item that is undone, 10 at work, in memory", 10, "u"),
    ITEMS("items-undo-10-sqlite", "an item that is undone, 10 at work, in SQLite", 10, "su"),
    ITEMS("items-undo-100-memory","an item that is undone, 100 at work, in memory",100, "u"),
    ITEMS("items-undo-100-sqlite","an item that is undone, 100 at work, in SQLite",100, "su"),
    TASK("task-3-told-memory",   "one of 100 tasks that tell, in memory",          300,  3, "mt"),
    TASK("task-3-told-sqlite",   "one of 100 tasks that tell, in SQLite",          300,  3, "smt"),
    {0},
};
/* clang-format on */
