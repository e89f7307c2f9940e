#ifndef BACKGROUND_SUBMISSION_INBOX_H
#define BACKGROUND_SUBMISSION_INBOX_H

/* Submissions that applications put into the database by SQL. */

#include "intake/intake.h"
#include "node/part.h"

struct server;
struct survey;
void inbox_surveyed(struct server *sv, const struct survey *v);
bool inbox_has_news(const struct server *sv); /* something may wait, or is being read */
void inbox_wake(struct server *sv);           /* some may have come */
void inbox_stats(const struct server *sv, struct intake_stats *ret);

extern const struct part inbox_part;

#endif
