#ifndef CLI_SERVE_SETTINGS_H
#define CLI_SERVE_SETTINGS_H

/*
 * The file of `intact serve --config`: what a server is told that is too long for flags. YAML or
 * JSON; docs/configuration.md is its reference. Each section is read by whoever it is for.
 */

#include "alerts/settings.h"
#include "amqp/config.h"
#include "base/arena.h"
#include "cli/serve_messages.h"
#include "config/mistakes.h"
#include "config/source.h"
#include "server/retention.h"
#include "webhook/config.h"

struct serve_settings {
    struct arena arena;       /* of all of it */
    struct amqp_config *amqp; /* NULL: none */
    struct webhook_config webhooks;
    struct alerts_settings *alerts; /* in the arena */
    struct retention retention;
    struct messages_settings messages;
};

/* Without a file: every section as by default. */
void serve_settings_init(struct serve_settings *s);
/* NULL is fine. */
void serve_settings_fini(struct serve_settings *s);

/* False: *m has all mistakes. Reads no other file. `s` was initialised. */
bool serve_settings_parse(struct serve_settings *s, struct slice text, enum source_format format,
                          struct mistakes *m) MUST_USE;

/* Of a file. False: it has been said what is wrong with it. */
bool serve_settings_read(struct serve_settings *s, const char *file) MUST_USE;

#endif
