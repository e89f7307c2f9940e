/* A node's way to the state store: schedules. See disk.h. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/node.h"
#include "sim/schedules.h"
#include "sim/weather.h"
#include "sim/world.h"

/* Between this and the write, people and other leaders may write. */
static enum err look_due(struct store *s, struct schedule_look *l, struct arena *a, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    enum err err = inner->ops->schedules->look(inner, l, a, e);
    if (err == ERR_OK)
        check_schedules_looked(disk_of(s)->node, l);
    if (err == ERR_OK)
        schedules_come_between(disk_of(s)->node);
    return err;
}

static enum err list_some(struct store *s, const struct schedule_query *q, struct arena *a,
                          struct schedule_page *ret, struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO
                                          : inner->ops->schedules->list(inner, q, a, ret, e);
}

/* Whether nothing is stored; or *ret_unknown: nobody will know. */
static enum err write_fails(struct disk *d, bool *ret_unknown, struct error *e)
{
    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    *ret_unknown = chance(weather.store_unknown);
    if (*ret_unknown)
        disk_troubled(d, world.now);
    if (!*ret_unknown || chance(500))
        return ERR_OK;
    covered(COVER_SCHEDULE_LOST);
    return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
}

/* SQLite says what a transaction did before that is committed; PostgreSQL says nothing then. */
static void say_what_was_done(struct schedule_change *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list[i].done = !inner->shared;
}

/* Only the ticker has a fence. */
static enum err write_all(struct store *s, struct schedule_change *list, size_t count,
                          const struct fence *fence, struct error *e)
{
    struct disk *d = disk_of(s);
    bool unknown = false;

    enum err err = write_fails(d, &unknown, e);
    if (err == ERR_UNKNOWN)
        say_what_was_done(list, count);
    if (err != ERR_OK)
        return err;
    err = schedules_write(d->node, list, count, fence, e);
    if (err == ERR_CONFLICT && fence)
        covered(COVER_SCHEDULE_DEPOSED);
    if (err != ERR_OK || !unknown)
        return err;
    covered(COVER_SCHEDULE_UNKNOWN);
    say_what_was_done(list, count);
    return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
}

static enum err remove_one(struct store *s, struct slice name, const struct audit *audit,
                           struct error *e)
{
    bool unknown = false;

    enum err err = write_fails(disk_of(s), &unknown, e);
    if (err != ERR_OK)
        return err;
    err = schedules_remove(name, audit, e);
    if (err != ERR_OK || !unknown)
        return err;
    return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
}

const struct store_schedule_ops disk_schedules_ops = {
    .write = write_all,
    .look = look_due,
    .list = list_some,
    .remove = remove_one,
};
