#ifndef CLI_VERBS_SERVE_SETTINGS_H
#define CLI_VERBS_SERVE_SETTINGS_H

/*
 * The file for `intact serve --config`, for settings that are too long for flags. YAML or JSON;
 * docs/configuration.md is the reference. Each section is read by its own module.
 */

#include "alerts/alert_settings.h"
#include "amqp/amqp_config.h"
#include "background/retention.h"
#include "base/arena.h"
#include "cli/verbs/serve_messages.h"
#include "config/mistakes.h"
#include "config/source.h"
#include "webhook/webhook_config.h"

struct serve_settings {
    struct arena arena;       /* for everything */
    struct amqp_config *amqp; /* NULL: none */
    struct webhook_config webhooks;
    struct alerts_settings *alerts; /* in the arena */
    struct retention retention;
    struct messages_settings messages;
};

/* Sets the defaults of every section. */
void serve_settings_init(struct serve_settings *s);
/* NULL is allowed. */
void serve_settings_fini(struct serve_settings *s);

/* False: *m has all mistakes. Reads no other file. `s` must be initialised. */
bool serve_settings_parse(struct serve_settings *s, struct slice text, enum source_format format,
                          struct mistakes *m) MUST_USE;

/* The same from a file. False: invalid, which was reported. */
bool serve_settings_read(struct serve_settings *s, const char *file) MUST_USE;

#endif
