#ifndef API_WHY_SOURCES_H
#define API_WHY_SOURCES_H

/*
 * Notifications about a task: messages that were not delivered, and open alerts that concern it. A
 * part of the answer to "why": a task does not wait for them.
 */

#include "store/store.h"
#include "why/why.h"

struct server;

struct why_sources {
    struct message_page waiting, dead;
    struct alert_page alerts; /* all that are live */
};

/* On the store's thread. What is read lies in `a`. */
enum err why_sources_read(struct store *store, const struct task_row *row, struct arena *a,
                          struct why_sources *ret, struct error *e) MUST_USE;

/* The members `messages`, `more_messages` and `alerts`. `reads_all`: may the caller read all tasks?
 * Alerts are groups of tasks; others are shown of them only what concerns this one. */
void why_sources_render(struct buf *b, const struct server *sv, const struct why *y,
                        const struct why_sources *t, bool reads_all);

#endif
