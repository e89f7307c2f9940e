#ifndef CONTRACT_FAULT_NOTICES_H
#define CONTRACT_FAULT_NOTICES_H

/* What store_fault.c does with notices. */

#include "base/buf.h"
#include "contract/store_world.h"

static struct notice_row a_notice(const char *task)
{
    return (struct notice_row){.task = slice_of(task),
                               .sender = SLICE("test"),
                               .kind = NOTICE_SIGNAL,
                               .at = 1,
                               .body = SLICE("{}")};
}

static void tell_notices(struct world *w, struct buf *b)
{
    for (int i = 0; i < 2; i++) {
        struct notice_read n = {.limit = 9};
        must((i ? w->s->ops->notices->refused : w->s->ops->notices->read)(w->s, &n, &w->a, &w->e),
             w->e.text);
        for (size_t k = 0; k < n.count; k++)
            buf_fmt(b, "notice %d %.*s %d %.*s\n", (int)n.rows[k].seq, SLICE_ARG(n.rows[k].task), i,
                    SLICE_ARG(n.rows[k].reason));
    }
}

/* Three that are to be decided, and one that was refused. */
static void furnish_notices(struct world *w)
{
    const struct notice_row rows[] = {a_notice("claimable"), a_notice("claimable"),
                                      a_notice("claimable"), a_notice("nobody")};
    const struct notice_verdict v = {.seq = 4, .refused_at = 5, .reason = SLICE("no")};

    must(w->s->ops->notices->put(w->s, rows, COUNT_OF(rows), &w->e), "notices");
    must(w->s->ops->notices->settle(w->s, &v, 1, &w->e), "notices");
}

static enum err op_commit_notices(struct world *w)
{
    struct change c = {.kind = CHANGE_UPDATE, .row = a_row("claimable")};
    struct batch b = {.changes = &c, .change_count = 1};

    c.row.revision = 2;
    c.notices = (int64_t[]){1, 2};
    c.notice_count = 2;
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);

    CHECK(c.outcome == err, "outcome of the change");
    return err;
}

/* One is done, and tells another task, and has a child; one is not. */
static enum err op_commit_family(struct world *w)
{
    const struct notice_row tells[] = {a_notice("old"), a_notice("ended")};
    const struct submission_row children[] = {{.source = CHILD_SOURCE,
                                               .key = SLICE("claimable@a"),
                                               .id = SLICE("claimable@a"),
                                               .child = SLICE("{}"),
                                               .submitted_at = 1}};
    struct change c[2] = {{.kind = CHANGE_UPDATE, .row = a_row("claimable")},
                          {.kind = CHANGE_UPDATE, .row = a_row("old")}};
    struct batch b = {.changes = c, .change_count = 2};

    c[0].row.revision = 2;
    c[1].row.revision = 7;
    for (size_t i = 0; i < 2; i++) {
        c[i].tells = tells;
        c[i].tell_count = COUNT_OF(tells);
        c[i].children = children;
        c[i].child_count = COUNT_OF(children);
    }
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);

    CHECK(c[0].outcome == err && c[1].outcome == (err == ERR_OK ? ERR_CONFLICT : err), "outcomes");
    return err;
}

static enum err op_notices_read(struct world *w)
{
    struct notice_read n = {.limit = 9};
    enum err err = w->s->ops->notices->read(w->s, &n, &w->a, &w->e);

    CHECK(err != ERR_OK || n.count == 3, "those that are to be decided");
    return err;
}

static enum err op_notices_refused(struct world *w)
{
    struct notice_read n = {.limit = 9};
    enum err err = w->s->ops->notices->refused(w->s, &n, &w->a, &w->e);

    CHECK(err != ERR_OK || n.count == 1, "the one that was refused");
    return err;
}

static enum err op_notices_told(struct world *w)
{
    const struct slice id = SLICE("claimable");
    int64_t at = 0;
    enum err err = w->s->ops->notices->told(w->s, &id, 1, &at, &w->e);

    CHECK(err != ERR_OK || at == 1, "when they were inserted");
    return err;
}

static enum err op_notices_settle(struct world *w)
{
    const struct notice_verdict v[] = {{.seq = 1},
                                       {.seq = 3, .refused_at = 5, .reason = SLICE("no")},
                                       {.seq = 77}};

    return w->s->ops->notices->settle(w->s, v, COUNT_OF(v), &w->e);
}

static enum err op_notices_put(struct world *w)
{
    const struct notice_row rows[] = {a_notice("n-1"), a_notice("n-2")};

    return w->s->ops->notices->put(w->s, rows, COUNT_OF(rows), &w->e);
}

/* clang-format off */
#define NOTICE_OPERATIONS                                        \
    {op_commit_notices, "commit of a change with notices"},      \
    {op_commit_family, "commit of a change with a family"},      \
    {op_notices_read, "notices_read"},                           \
    {op_notices_refused, "notices_refused"},                     \
    {op_notices_told, "notices_told"},                           \
    {op_notices_settle, "notices_settle"},                       \
    {op_notices_put, "notices_put"},
/* clang-format on */

#endif
