#ifndef BACKGROUND_INBOX_H
#define BACKGROUND_INBOX_H

/* Submissions that applications put into the database by SQL. */

#include "intake/intake.h"
#include "node/internal.h"

struct inbox *inbox_new(struct server *sv);
int64_t inbox_turn(struct inbox *ib); /* before each turn; when it wants to be called again, or 0 */
void inbox_surveyed(struct inbox *ib, const struct survey *v);
void inbox_stir(struct inbox *ib); /* some may have come */
void inbox_drain(struct inbox *ib);
bool inbox_is_busy(const struct inbox *ib);
void inbox_stats(const struct inbox *ib, struct intake_stats *ret);
void inbox_close(struct inbox *ib); /* before the loop ends */
void inbox_free(struct inbox *ib);  /* after it, and after the store's thread */

#endif
