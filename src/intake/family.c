/* Makes asks of what tasks of one family tell each other, and of submissions that start children
 * (family.h). Pure. background/notices.c and submission_inbox.c call it, and the readers of the
 * simulator. */

#include "intake/family.h"

bool family_tells(const struct notice_row *row)
{
    return slice_eq(row->kind, NOTICE_CHILD) || slice_eq(row->kind, NOTICE_PARENT);
}

void family_read_notice(struct notice_item *it)
{
    bool from_child = slice_eq(it->row->kind, NOTICE_CHILD);
    struct ask *a = &it->ask;

    *a = (struct ask){.kind = from_child ? ASK_CHILD : ASK_PARENT};
    if (family_word_read(it->row->kind, it->row->body, it->arena, &a->word))
        a->step = a->word.step;
    else
        it->problem = SLICE("this version of the program does not understand it");
}

bool child_is_started_by(const struct submission_row *row)
{
    return slice_eq(row->source, CHILD_SOURCE);
}

bool child_read(struct intake_item *it, struct child_row *c, struct ask *ask)
{
    const struct child_origin *o = &c->origin;

    if (!it->row->child.ptr || !child_origin_read(it->row->child, it->arena, &c->origin)) {
        it->problem = SLICE("child: this version of the program does not understand it");
        return false;
    }
    ask->owner = o->owner;
    ask->parent = o->parent;
    ask->root = o->root;
    ask->parent_step = o->step;
    ask->parent_number = o->number;
    ask->complete_by_cap = o->complete_by;
    ask->family = o->family;
    return true;
}

bool child_is_refused(enum err outcome)
{
    return outcome == ERR_CONFLICT || outcome == ERR_INVALID || outcome == ERR_TOO_BIG;
}

void child_refuse(struct child_row *c, struct intake_item *it, const char *problem, void *user)
{
    c->told = (struct ask){
        .kind = ASK_CHILD,
        .user = user,
        .id = c->origin.parent,
        .step = c->origin.step,
        .word = {.number = c->origin.number,
                 .state = CHILD_COMPENSATED,
                 .error = {SLICE("refused"), arena_copy(it->arena, slice_of(problem))}},
    };
    it->ask = &c->told;
}

void child_refusal_told(struct child_row *c)
{
    if (err_is_transient(c->told.outcome))
        return;
    c->told.outcome = ERR_OK;
    c->told.existed = true; /* the row is deleted */
}
