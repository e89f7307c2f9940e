/*
 * What a change inserts for others in PostgreSQL: notices to tasks of its family, and the
 * submissions of its children. commit.c has the statement that they go with, and schedule.c and
 * submission.c insert submissions, too.
 */
#include "store/postgres/family.h"

#define ADD_any(array, v)  array_text(array, v)
#define KIND_any           ARRAY_TEXTS
#define IS_STORABLE_any(v) IS_STORABLE_text(v)

void submission_add(struct submission_arrays *k, const struct submission_row *row)
{
    ADD(source, text)
    ADD(key, text)
    SUBMISSION_COLUMNS(ADD, )
}

void submissions_bind(struct submission_arrays *k, struct query *q)
{
    BIND_ARRAY(source, text)
    BIND_ARRAY(key, text)
    SUBMISSION_COLUMNS(BIND_ARRAY, )
}

bool submission_is_storable(const struct submission_row *row)
{
    return text_is_storable(row->source)
           && text_is_storable(row->key) SUBMISSION_COLUMNS(IS_STORABLE, );
}

static bool notice_is_storable(const struct notice_row *row)
{
    return true NOTICE_COLUMNS(IS_STORABLE, );
}

void family_add(struct family_arrays *f, const struct change *c, int64_t ord)
{
    for (size_t i = 0; i < c->tell_count; i++) {
        array_number(&f->t_ord, ord);
        array_text(&f->t_task, c->tells[i].task);
        array_text(&f->t_sender, c->tells[i].sender);
        array_text(&f->t_kind, c->tells[i].kind);
        array_text(&f->t_body, c->tells[i].body);
    }
    for (size_t i = 0; i < c->child_count; i++) {
        array_number(&f->b_ord, ord);
        submission_add(&f->children, &c->children[i]);
    }
}

void tells_bind(struct family_arrays *f, struct query *q)
{
    param_array(q, &f->t_ord, ARRAY_NUMBERS);
    param_array(q, &f->t_task, ARRAY_TEXTS);
    param_array(q, &f->t_sender, ARRAY_TEXTS);
    param_array(q, &f->t_kind, ARRAY_TEXTS);
    param_array(q, &f->t_body, ARRAY_TEXTS);
}

void children_bind(struct family_arrays *f, struct query *q)
{
    param_array(q, &f->b_ord, ARRAY_NUMBERS);
    submissions_bind(&f->children, q);
}

bool family_is_storable(const struct change *c)
{
    for (size_t i = 0; i < c->tell_count; i++)
        if (!notice_is_storable(&c->tells[i]))
            return false;
    for (size_t i = 0; i < c->child_count; i++)
        if (!submission_is_storable(&c->children[i]))
            return false;
    return true;
}
