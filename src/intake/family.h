#ifndef INTAKE_FAMILY_H
#define INTAKE_FAMILY_H

/*
 * What tasks of one family tell each other, and the submissions that start children, as asks: for
 * the readers of intake.h and notices.h.
 */

#include "intake/intake.h"
#include "intake/notices.h"

/* Is it from a task of the same family? */
bool family_tells(const struct notice_row *row);

/* Makes it->ask of such a notice, or says it->problem. An output is not copied: the row outlives
 * the ask. */
void family_read_notice(struct notice_item *it);

/* A submission that starts a child; in the memory of its item. */
struct child_row {
    struct child_origin origin;
    struct ask told; /* if the child is refused, its parent is told */
};

bool child_is_started_by(const struct submission_row *row);

/* Whose child it is; *ask gets what a child has from its parent. False: it->problem says why. */
bool child_read(struct intake_item *it, struct child_row *c, struct ask *ask) MUST_USE;

/* Whether the outcome of its submission is for good, so that there will be no such child. */
bool child_is_refused(enum err outcome);

/* It ended before it began, so its parent's step fails: c->told tells that, and is the item's ask
 * from now on. `user` is that ask's. */
void child_refuse(struct child_row *c, struct intake_item *it, const char *problem, void *user);

/* c->told was answered: what intake_answered is to be called for. The parent knows, or is gone; or
 * it is told when the row is read again. */
void child_refusal_told(struct child_row *c);

#endif
