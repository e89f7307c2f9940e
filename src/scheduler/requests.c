/* What others wrote to rows of this node, the supervisor here or that of another node: the rows are
 * read again. The requests in them are posted by tasks/live.c. */

#include "scheduler/internal.h"

enum { SPARE_MAX = 256 /* tasks in memory beyond the limit: one page of the supervisor */ };

/* Nothing is claimed while memory is full, which may last. Overdue tasks do not wait for that: they
 * are read by id, as for an operator's ask. */
static bool reads_what_is_overdue(const struct scheduler *s)
{
    return s->tasks.counts.live >= s->config.live_max
           && s->tasks.counts.live < 2 * s->config.live_max + SPARE_MAX && !s->draining
           && shared_may_claim(s);
}

void scheduler_requested(struct scheduler *s, struct slice id, bool released)
{
    struct live *l = live_find(&s->tasks, id);

    ASSERT(id.len > 0);
    if (l && l->in_flight)
        l->reload = true;
    else if (l && l->loaded)
        live_reload(&s->tasks, l);
    else if (!l && (released ? reads_what_is_overdue(s) : !s->config.shared))
        live_read(&s->tasks, id); /* ours, but elsewhere: then it is overdue */
    if (released)
        s->due_at[DUE_TIME] = scheduler_now(s);
}

void requests_polled(struct scheduler *s, const struct row_page *page)
{
    ASSERT(!page->more || page->count > 0);
    s->polling = page->more;
    s->poll_after_seq = page->more ? page->rows[page->count - 1].seq : 0;
    for (size_t i = 0; i < page->count; i++) {
        scheduler_requested(s, page->rows[i].id, false);
        if (!live_find(&s->tasks, page->rows[i].id))
            live_read(&s->tasks, page->rows[i].id);
    }
}
