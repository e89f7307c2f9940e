/* The part of a node's way to the state store that takes what applications insert by SQL:
 * submissions and notices, with failures (disk.h). disk.c has the rest; sql.c and notices.c are
 * the applications. */

#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/node.h"
#include "sim/notices.h"
#include "sim/sql.h"
#include "sim/weather.h"
#include "sim/world.h"

static enum err submissions_take(struct store *s, struct submission_take *t, struct arena *a,
                                 struct error *e)
{
    struct submission_take judged = *t; /* by the store's clock */

    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    judged.now = store_now();
    enum err err = inner->ops->submissions->take(inner, &judged, a, e);
    judged.now = t->now;
    *t = judged;
    if (t->count > 0)
        covered(COVER_SQL_TAKEN);
    return err;
}

static enum err submissions_settle(struct store *s, const struct submission_verdict *list,
                                   size_t count, struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500))
        return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
    enum err err = inner->ops->submissions->settle(inner, list, count, e);
    trace("%s settles %zu submissions: %s", d->node->me, count, err_text(err));
    sql_changed();
    if (err == ERR_OK && unknown)
        return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
    return err;
}

static enum err notices_read(struct store *s, struct notice_read *n, struct arena *a,
                             struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    return inner->ops->notices->read(inner, n, a, e);
}

static enum err notices_told(struct store *s, const struct slice *ids, size_t count,
                             int64_t *ret_at, struct error *e)
{
    if (disk_is_cut(disk_of(s)))
        return error_set(e, ERR_IO, "simulated: cannot be read");
    return inner->ops->notices->told(inner, ids, count, ret_at, e);
}

static enum err notices_settle(struct store *s, const struct notice_verdict *list, size_t count,
                               struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500))
        return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
    enum err err = inner->ops->notices->settle(inner, list, count, e);
    trace("%s settles %zu notices: %s", d->node->me, count, err_text(err));
    sql_signals_changed();
    if (err == ERR_OK && unknown)
        return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
    return err;
}

const struct store_submission_ops disk_submissions_ops = {
    .take = submissions_take,
    .settle = submissions_settle,
};

const struct store_notice_ops disk_notices_ops = {
    .read = notices_read,
    .told = notices_told,
    .settle = notices_settle,
};
