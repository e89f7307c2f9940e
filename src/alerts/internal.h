#ifndef ALERTS_INTERNAL_H
#define ALERTS_INTERNAL_H

/* What the files of the alerts share. */

#include "alerts/alerts.h"

struct sink {
    struct sink_state state;
    int64_t pace_ms; /* the next delivery comes so long after the last one */
    bool resending;  /* the one at work holds all that is open */
    size_t count;    /* of the one at work: */
    struct alert *list[ALERTS_A_DELIVERY];
    uint32_t notices[ALERTS_A_DELIVERY]; /* as they were when it began */
};

struct alerts {
    struct alerts_config config;
    struct map by_key; /* of struct alert */
    struct sink sinks[ALERT_SINKS];
};

bool alert_is_open(const struct alert *al); /* opened, and not resolved */
bool sink_wants(const struct alert_sink *s, const struct alert *al);
/* Forgets what the sinks are being told: the alerts go. */
void sinks_forget(struct alerts *a);
void text_copy(char to[ALERT_TEXT_SIZE], struct slice from);
/* Condition and labels of a group, which has them already. */
void alert_key(const struct alert *al, struct buf *b);
void alert_free(struct alert *al);
struct alert *alert_new(struct alerts *a, const struct alert *like);

#endif
