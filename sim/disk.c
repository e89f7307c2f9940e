#include "sim/disk.h"

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"
#include "store/memory.h"

struct disk disk;

/* ---- a body that fails ---- */

static void claims_empty(struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        b->claims[i].rows = NULL;
        b->claims[i].row_count = 0;
        b->claims[i].more = false;
        b->claims[i].next_rank = 0;
    }
}

static enum err fails(struct batch *b, enum err err, struct error *e)
{
    disk.trouble_at = world.now;
    claims_empty(b);
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].outcome = err;
    return error_set(e, err, "simulated: %s", err_text(err));
}

/* What became durable is read back and shown to the checkers. */
static void show(struct slice id, uint64_t changes, bool told)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row;
    struct error e = {0};

    enum err err = disk.inner->ops->get(disk.inner, id, &a, &row, &e);
    ASSERT(err == ERR_OK);
    check_row(&row, changes, told);
}

static bool is_claimed(const struct batch *b, struct slice id)
{
    for (size_t i = 0; i < b->claim_count; i++)
        for (size_t k = 0; k < b->claims[i].row_count; k++)
            if (slice_eq(b->claims[i].rows[k].id, id))
                return true;
    return false;
}

static bool is_changed(const struct batch *b, struct slice id)
{
    for (size_t i = 0; i < b->change_count; i++)
        if (b->changes[i].outcome == ERR_OK && slice_eq(b->changes[i].row.id, id))
            return true;
    return false;
}

static void show_batch(struct batch *b, bool told)
{
    for (size_t i = 0; i < b->change_count; i++) {
        const struct change *c = &b->changes[i];
        if (c->outcome == ERR_OK)
            show(c->row.id, 1 + is_claimed(b, c->row.id), told);
        else if (c->outcome == ERR_CONFLICT)
            check_conflict(&c->row);
    }
    for (size_t i = 0; i < b->claim_count; i++) {
        check_claim(&b->claims[i]);
        for (size_t k = 0; k < b->claims[i].row_count; k++)
            if (!is_changed(b, b->claims[i].rows[k].id))
                show(b->claims[i].rows[k].id, 1, told);
    }
}

/* One change of the batch cannot be stored; it is put last, and the others are committed without
 * it. */
static enum err commit_without_one(struct batch *b, struct arena *a, struct error *e)
{
    struct change *last = &b->changes[b->change_count - 1];

    b->change_count--;
    enum err err = disk.inner->ops->commit(disk.inner, b, a, e);
    if (err == ERR_OK)
        show_batch(b, true);
    b->change_count++;
    last->outcome = err == ERR_OK ? ERR_TOO_BIG : err;
    struct subject *t = subject_find(last->row.id);
    memset(t->unsent, 0, sizeof t->unsent); /* what was to be said of it is lost, as it must be */
    return err;
}

static enum err commit(struct store *s, struct batch *b, struct arena *a, struct error *e)
{
    (void)s;
    if (disk.dead)
        return fails(b, ERR_IO, e);
    trace("commit: %zu changes, %zu claims", b->change_count, b->claim_count);
    if (chance(weather.store_fails)) {
        trace("commit fails");
        return fails(b, chance(300) ? ERR_FULL : chance(500) ? ERR_BUSY : ERR_IO, e);
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500)) {
        covered(COVER_UNKNOWN_LOST);
        trace("commit is lost, outcome unknown");
        return fails(b, ERR_UNKNOWN, e);
    }
    if (!unknown && b->change_count > 0 && chance(weather.store_refuses))
        return commit_without_one(b, a, e);
    enum err err = disk.inner->ops->commit(disk.inner, b, a, e);
    if (err != ERR_OK)
        return err;
    show_batch(b, !unknown);
    if (!unknown)
        return ERR_OK;
    covered(COVER_UNKNOWN_STORED);
    trace("commit is stored, outcome unknown");
    return fails(b, ERR_UNKNOWN, e);
}

static bool read_fails(struct error *e)
{
    if (!disk.dead && !chance(weather.read_fails))
        return false;
    disk.trouble_at = world.now;
    (void)error_set(e, ERR_IO, "simulated: cannot be read");
    return true;
}

static enum err probe(struct store *s, struct error *e)
{
    (void)s;
    if (disk.dead || chance(weather.store_fails))
        return error_set(e, ERR_IO, "simulated: cannot be written");
    return disk.inner->ops->probe(disk.inner, e);
}

static enum err get(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                    struct error *e)
{
    (void)s;
    return read_fails(e) ? ERR_IO : disk.inner->ops->get(disk.inner, id, a, ret, e);
}

static enum err overdue(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e)
{
    (void)s;
    if (read_fails(e))
        return ERR_IO;
    return disk.inner->ops->overdue(disk.inner, now, after_wake_at, after_seq, limit, a, ret, e);
}

static enum err list(struct store *s, const struct list_query *q, struct arena *a,
                     struct row_page *ret, struct error *e)
{
    (void)s;
    return read_fails(e) ? ERR_IO : disk.inner->ops->list(disk.inner, q, a, ret, e);
}

static enum err lease(struct store *s, struct slice name, struct slice holder, int64_t now,
                      int64_t until, struct arena *a, struct lease *ret, struct error *e)
{
    (void)s;
    if (read_fails(e))
        return ERR_IO;
    return disk.inner->ops->lease(disk.inner, name, holder, now, until, a, ret, e);
}

static const struct store_ops ops = {
    .commit = commit, .probe = probe, .get = get, .overdue = overdue, .list = list, .lease = lease};

/* ---- the queue ---- */

static void run_one(void *arg, uint64_t life);

static void done_one(void *arg, uint64_t life)
{
    (void)arg;
    if (life != disk.life || node.dead || node_sleeps(done_one, arg, life))
        return;
    struct link *first = list_first(&disk.ran);
    ASSERT(first);
    link_remove(first);
    struct store_job *j = CONTAINER_OF(first, struct store_job, link);
    j->done(j);
    check_told(++disk.dones);
    node.spins = 0;
    if (chance(weather.crash_inside))
        node_crash("before it could speak");
    node_turn();
}

static void schedule_run(void)
{
    int64_t delay = between(0, weather.store_ms);

    if (disk.scheduled || list_empty(&disk.waiting))
        return;
    if (chance(weather.store_stalls)) {
        delay = spread(500, 20000);
        trace("the store stalls for %" PRId64 " ms", delay);
        disk.trouble_at = world.now + delay;
    }
    disk.scheduled = true;
    later(delay, run_one, NULL, disk.life);
}

static void run_one(void *arg, uint64_t life)
{
    if (life != disk.life || node.dead || node_sleeps(run_one, arg, life))
        return;
    struct link *first = list_first(&disk.waiting);
    ASSERT(first);
    link_remove(first);
    list_push(&disk.ran, first);
    struct store_job *j = CONTAINER_OF(first, struct store_job, link);
    disk.runs++;
    j->run(j, &disk.store);
    disk.scheduled = false;
    disk.done_at = max_i64(disk.done_at, world.now + between(0, 2));
    later(disk.done_at - world.now, done_one, NULL, life);
    if (chance(weather.crash_inside))
        node_crash("before it heard of its commit");
    else
        schedule_run();
}

static void submit(struct store_queue *q, struct store_job *j)
{
    (void)q;
    node.deeds++;
    list_init(&j->link);
    list_push(&disk.waiting, &j->link);
    if (!disk.dead)
        schedule_run();
}

/* ---- its life ---- */

void disk_begin(void)
{
    disk = (struct disk){.inner = memory_store_new()};
    disk.store.ops = &ops;
    disk.queue.submit = submit;
    list_init(&disk.waiting);
    list_init(&disk.ran);
}

void disk_end(void)
{
    disk.inner->ops->close(disk.inner);
}

void disk_crash(void)
{
    bool reaches = chance(500);

    disk.life++;
    while (!list_empty(&disk.waiting) || !list_empty(&disk.ran)) {
        struct link *first = list_first(&disk.ran);
        if (!first) {
            first = disk.waiting.next; /* not empty: the loop goes on */
            disk.dead = !reaches;
            reaches = false;
            struct store_job *w = CONTAINER_OF(first, struct store_job, link);
            w->run(w, &disk.store);
        }
        disk.dead = true;
        link_remove(first);
        struct store_job *j = CONTAINER_OF(first, struct store_job, link);
        j->done(j);
    }
    disk.dead = true;
}

void disk_boot(void)
{
    ASSERT(disk_is_idle());
    memory_store_boot(disk.inner);
    disk.dead = false;
    disk.scheduled = false;
    disk.done_at = 0;
    disk.dones = disk.runs;
    disk.life++;
}

bool disk_is_idle(void)
{
    return list_empty(&disk.waiting) && list_empty(&disk.ran);
}

bool disk_has_unheard(void)
{
    return !list_empty(&disk.ran);
}
