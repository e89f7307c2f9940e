#ifndef BACKGROUND_ALERTS_H
#define BACKGROUND_ALERTS_H

/*
 * Alerts of this node: the conditions that it sees in memory and in the store, the watch that opens
 * and resolves them while the node leads, and their delivery to the sinks.
 */

#include "alerts/alert_settings.h"
#include "alerts/alerts.h"
#include "alerts/watch.h"
#include "base/list.h"
#include "node/part.h"

struct server;

void alerts_hint(struct server *sv); /* a task stopped in error, or may have gone on */
size_t alerts_open_count(const struct server *sv, enum alert_condition c); /* known here */
void alerts_deliveries(const struct server *sv, uint64_t *ret_taken, uint64_t *ret_failed);
struct watch *alerts_watch(const struct server *sv);
const struct alerts_settings *alerts_sinks_of(const struct server *sv);

/* An alert that is sent to all sinks as a test. Embed it. */
struct alert_trial {
    struct link link;
    void (*delivered)(struct alert_trial *t, size_t sink, bool took, const char *story);
    void (*dropped)(struct alert_trial *t); /* the server ends */
};

void alerts_try(struct server *sv, struct alert_trial *t, const struct alert *a);

extern const struct part alerts_part;

#endif
