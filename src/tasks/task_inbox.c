/* Commands on their way to a task: they gather until it is loaded and not in flight. Posting
 * decides nothing: scheduler/commands.c does. */

#include "tasks/task_inbox.h"

#include <stdlib.h>

void inbox_post(struct tasks *ts, struct slice id, struct command *c)
{
    struct live *l = live_find(ts, id);

    if (!l) {
        l = live_stub(ts, id);
        bool submission = c->kind == COMMAND_ASK && c->ask->kind == ASK_SUBMIT;
        /* A submission is first tried as an insertion, without a read. */
        if (!submission || c->ask->only_if_exists || overruns_too_often(&ts->overruns, id))
            list_push(&ts->loads, &l->load_link);
    }
    c->overtook = l->in_flight;
    list_push(&l->inbox, &c->link);
    if (!link_is_in(&l->inbox_link))
        list_push(&ts->inboxes, &l->inbox_link);
}

void inbox_post_event(struct tasks *ts, struct slice id, const struct event *e)
{
    struct command *c = calloc(1, sizeof *c);
    const struct live *l = live_find(ts, id);

    ASSERT(c);
    c->kind = COMMAND_EVENT;
    c->event = *e;
    if (l && l->loaded && e->step >= 0 && e->step < task_unit_count(&l->task)) {
        c->item = live_item(l, (uint16_t)e->step);
        c->event.step = unit_step(&l->definition->workflow, (uint16_t)e->step);
    }
    c->owned = true;
    inbox_post(ts, id, c);
}

/* Commands that were applied to an outdated state are decided again, before later ones. */
void inbox_rewind(struct live *l)
{
    while (!list_empty(&l->applied)) {
        struct link *last = l->applied.prev;
        link_remove(last);
        list_push_front(&l->inbox, last);
    }
}

void command_discard(struct command *c)
{
    ASSERT(!link_is_in(&c->link));
    if (c->owned)
        free(c);
}
