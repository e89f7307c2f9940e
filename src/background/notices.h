#ifndef BACKGROUND_NOTICES_H
#define BACKGROUND_NOTICES_H

/* Notices: signals that applications insert by SQL. */

struct server;
struct survey;

void notices_part_wake(struct server *sv); /* there are some */
void notices_part_surveyed(struct server *sv, const struct survey *v);

extern const struct part notices_part;

#endif
