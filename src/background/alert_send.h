#ifndef BACKGROUND_ALERT_SEND_H
#define BACKGROUND_ALERT_SEND_H

/* What is sent of alerts, and sending it so that it blocks its thread, at most for its timeout. */

#include <stdatomic.h>

#include "alerts/alert_settings.h"

/* {"alerts": [...]} as webhooks (in a CloudEvent) and commands get it, or Alertmanager's array.
 * *id names it: the same for the same notices. */
void alert_body(enum sink_kind kind, const struct alert *const *list, size_t count,
                const char *source, int64_t now, struct buf *body, struct buf *id);

struct alert_sending {
    const struct sink_setting *how; /* ALERTMANAGER or COMMAND */
    struct slice body;
    const atomic_bool *stop; /* true: give up */
};

void alert_send_init(void); /* before threads */
/* False: *story says why not. */
bool alert_send(const struct alert_sending *s, char *story, size_t story_size);

/* A command whose argv is `words`: JSON on its standard input, killed with its group when its time
 * has expired. */
bool alert_run(const struct alert_sending *s, char *story, size_t story_size);

#endif
