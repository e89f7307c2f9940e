#ifndef BACKGROUND_NOTICES_H
#define BACKGROUND_NOTICES_H

/* Notices: signals that applications insert by SQL. */

#include <stdbool.h>

struct server;
struct survey;

bool notices_part_has_news(const struct server *sv); /* some may wait, or are being decided */
void notices_part_wake(struct server *sv);           /* there are some */
void notices_part_surveyed(struct server *sv, const struct survey *v);

extern const struct part notices_part;

#endif
