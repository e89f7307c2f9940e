#ifndef ALERTS_ALERT_SETTINGS_H
#define ALERTS_ALERT_SETTINGS_H

/*
 * Section `alerts` of the server's configuration: who is notified, and when. docs/alerts.md is its
 * reference. The log is always notified.
 */

#include "alerts/alerts.h"
#include "config/config_reader.h"

enum sink_kind { SINK_LOG, SINK_WEBHOOK, SINK_ALERTMANAGER, SINK_COMMAND };

enum { COMMAND_WORDS = 32 };

struct sink_setting {
    enum sink_kind kind;
    const char *url;                      /* WEBHOOK, ALERTMANAGER */
    const char *words[COMMAND_WORDS + 1]; /* COMMAND: its argv, NULL-terminated */
    size_t word_count;
    int64_t timeout_ms; /* 0: the default, 10 s, for a command 30 s */
};

struct alerts_settings {
    struct alerts_config config; /* its sinks are those below */
    struct alert_sink sinks[ALERT_SINKS];
    struct sink_setting how[ALERT_SINKS]; /* with the same index */
    size_t count;                         /* at least 1: the log */
};

void alerts_settings_init(struct alerts_settings *s);
/* For a `struct field`; target is a struct alerts_settings *. */
void read_alerts(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
