#ifndef ALERTS_INTERNAL_H
#define ALERTS_INTERNAL_H

/* Shared by the files of this folder. */

#include "alerts/alerts.h"

struct sink {
    struct sink_state state;
    int64_t pace_ms; /* the minimum time between the last delivery and the next */
    bool resending;  /* the running delivery contains everything open */
    size_t count;    /* the running delivery: */
    struct alert *list[ALERTS_A_DELIVERY];
    uint32_t notices[ALERTS_A_DELIVERY]; /* their numbers when it began */
};

struct alerts {
    struct alerts_config config;
    struct map by_key; /* of struct alert */
    struct sink sinks[ALERT_SINKS];
};

bool alert_is_open(const struct alert *al); /* opened, and not resolved */
bool sink_wants(const struct alert_sink *s, const struct alert *al);
/* Forgets running deliveries, because the alerts are freed. */
void sinks_forget(struct alerts *a);
int64_t alert_repeat_ms(int64_t ms); /* of its own, as far as that is allowed; 0: none */
void text_copy(char to[ALERT_TEXT_SIZE], struct slice from);
/* Builds the key from a group's condition and labels. */
void alert_key(const struct alert *al, struct buf *b);
void alert_free(struct alert *al);
struct alert *alert_new(struct alerts *a, const struct alert *like);

#endif
