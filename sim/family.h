#ifndef SIM_FAMILY_H
#define SIM_FAMILY_H

/*
 * Families: workflows with steps that start tasks of other workflows, and the tasks that they
 * start. family.c draws the workflows and meets the tasks; check_families.c has the rules. Nodes
 * take children in with submissions by SQL (sql.c), and what tasks tell each other with signals by
 * SQL (notices.c).
 */

#include "sim/subject.h"

struct node;

/* Does this run have families? */
bool flows_family(void);

/* And do items start children in it? */
bool flows_item_children(void);

/* Some steps of that workflow start tasks of those before it, of which all is drawn. */
void family_draw(struct flow *flows, uint32_t number);
void family_put_task(struct buf *b, const struct flow_step *s);

bool flow_has_children(const struct flow *f);
bool flow_has_item_children(const struct flow *f);          /* itself, or one that it can start */
bool family_is_stored(const struct flow *f);                /* of all that it can start, too */
bool family_is_known(struct node *n, const struct flow *f); /* if not, it soon will be */
/* As the API fixes it for a new task; NONE: it has none. */
struct slice family_fixed(const struct node *n, const struct definition *d, struct arena *a);

void families_begin(bool on); /* flows are drawn, and submissions by SQL have begun */
bool families_are_on(void);

/* Children that a commit started. */
void families_meet(void);

/* Its submission is never accepted: by its reader, or by the store. */
bool child_is_unread(const struct subject *t);
bool child_is_too_big(struct slice id);

/* Commits a batch but for children that the store refuses. */
enum err family_commit(struct batch *b, struct arena *a, struct error *e);
bool family_begins_with(const struct change *c); /* it makes a child */

static inline bool is_of_family(const struct subject *t)
{
    return t->parent || flow_has_children(t->flow);
}

#endif
