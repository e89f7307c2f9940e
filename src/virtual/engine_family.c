/* Starts children from the rows that changes insert, and passes on notices (engine_family.h), as
 * background/submission_inbox.c and notices.c do on a server. Nothing but children is submitted by
 * rows here. */

#include "virtual/engine_node.h"

#include <stdlib.h>

enum { ASKS_MAX = 1000 /* of children and notices at once */ };

/* What starts a child, in its batch's memory. */
struct child_ask {
    struct asker asker; /* first: for `child.told.user` and `ask.user` */
    struct ask ask;
    struct child_row child;
    struct intake_item *item;
    struct engine_node *node;
};

static size_t room(void *arg)
{
    (void)arg;
    return ASKS_MAX;
}

/* Such an ask ends with the node. */
static void ask_inside(struct engine_node *n, struct ask *a)
{
    n->is_woken = true;
    scheduler_ask(n->scheduler, a);
}

static void parent_answered(struct ask *a)
{
    struct child_ask *c = a->user;

    child_refusal_told(&c->child);
    intake_answered(c->item, SLICE_NONE);
}

static void child_answered(struct ask *a)
{
    struct child_ask *c = a->user;

    if (!child_is_refused(a->outcome)) {
        intake_answered(c->item, slice_of(a->story));
        return;
    }
    c->asker.answered = parent_answered;
    child_refuse(&c->child, c->item, a->story, c);
    ask_inside(c->node, &c->child.told);
}

static int64_t number_of(struct slice text)
{
    return text.ptr ? strtoll(text.ptr, NULL, 10) : 0;
}

/* As background/submission_inbox.c does. Its input is checked against `inputs`. */
static enum err check_child(struct child_ask *c, struct error *e)
{
    const struct submission_row *r = c->item->row;
    struct slice input = r->input.ptr ? r->input : SLICE("null");

    c->ask.input = input;
    if (!c->ask.definition)
        return error_set(e, ERR_INVALID, "there is no workflow %.*s", SLICE_ARG(r->workflow));
    if (!c->ask.definition->has_inputs)
        return ERR_OK;
    return definition_check_input(c->ask.definition, input, c->item->arena, &c->ask.input, e);
}

static void read_child(void *arg, struct intake_item *it)
{
    struct engine_node *n = arg;
    const struct submission_row *r = it->row;
    struct child_ask *c = arena_alloc(it->arena, sizeof *c);
    struct error e = {0};

    ASSERT(child_is_started_by(r)); /* nothing else inserts submissions */
    *c = (struct child_ask){.asker = {child_answered},
                            .ask = {.kind = ASK_SUBMIT,
                                    .user = c,
                                    .id = r->id,
                                    .definition = registry_find(n->engine->config.workflows,
                                                                r->workflow, number_of(r->version)),
                                    .tags = r->tags,
                                    .priority = (int)number_of(r->priority),
                                    .by_id = true,
                                    .submitter = r->submitter,
                                    .content = {.hash = 1}},
                            .item = it,
                            .node = n};
    if (!child_read(it, &c->child, &c->ask))
        return;
    c->ask.trace = c->child.origin.trace;
    it->ask = &c->ask;
    if (check_child(c, &e) == ERR_OK)
        return;
    c->asker.answered = parent_answered;
    child_refuse(&c->child, it, e.text, c);
}

static void ask_child(void *arg, struct intake_item *it)
{
    ask_inside(arg, it->ask);
}

static void children_settled(void *arg, struct intake_item *const *refused, size_t count)
{
    (void)arg;
    (void)refused;
    (void)count;
}

static void notice_answered(struct ask *a)
{
    notices_answered(a->user);
}

static void read_notice(void *arg, struct notice_item *it)
{
    (void)arg;
    family_read_notice(it);
    it->answered = notice_answered;
}

static void ask_notice(void *arg, struct notice_item *it)
{
    it->ask.user = it;
    ask_inside(arg, &it->ask);
}

static void notice_refused(void *arg, const struct notice_item *it)
{
    (void)arg;
    (void)it;
}

static void failed(void *arg, const struct error *e)
{
    (void)e;
    const struct engine_node *n = arg;
    ASSERT(n->is_dying); /* the store in memory never fails */
}

static int64_t clock_now(void *arg)
{
    const struct engine_node *n = arg;

    return engine_clock(n->engine);
}

struct intake *family_intake(struct engine_node *n)
{
    const struct intake_config c = {.store = &n->queue,
                                    .workflows = n->engine->config.workflows,
                                    .clock = {clock_now, n},
                                    .shared = engine_is_several(n->engine),
                                    .arg = n,
                                    .room = room,
                                    .read = read_child,
                                    .ask = ask_child,
                                    .settled = children_settled,
                                    .failed = failed};

    return intake_new(&c);
}

struct notices *family_notices(struct engine_node *n)
{
    const struct notices_config c = {.store = &n->queue,
                                     .clock = {clock_now, n},
                                     .me = slice_of(n->me),
                                     .shared = engine_is_several(n->engine),
                                     .arg = n,
                                     .room = room,
                                     .read = read_notice,
                                     .ask = ask_notice,
                                     .refused = notice_refused,
                                     .failed = failed};

    return notices_new(&c);
}
