/* Reads the configuration file of a server: finds the sections, and has each read by its own
 * module (serve_settings.h). docs/configuration.md is its reference. serve.c uses the result, and
 * agent_amqp.c the section for AMQP. */

#include "cli/verbs/serve_settings.h"

#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/verbs/serve_retention.h"
#include "config/config_reader.h"

void serve_settings_init(struct serve_settings *s)
{
    *s = (struct serve_settings){0};
    s->alerts = arena_alloc(&s->arena, sizeof *s->alerts);
    alerts_settings_init(s->alerts);
    serve_retention_init(&s->retention);
}

void serve_settings_fini(struct serve_settings *s)
{
    if (s)
        arena_fini(&s->arena);
}

static void read_all(struct reader *r, const struct json *root, struct serve_settings *s)
{
    static const struct field fields[] = {
        REQUIRED("intact_server", read_version, 0),
        FIELD("amqp", amqp_config_read, offsetof(struct serve_settings, amqp)),
        FIELD("alerts", read_alerts, offsetof(struct serve_settings, alerts)),
        FIELD("webhooks", read_webhooks, offsetof(struct serve_settings, webhooks)),
        FIELD("messages", read_messages, offsetof(struct serve_settings, messages)),
        FIELD("retention", read_retention, offsetof(struct serve_settings, retention)),
        FIELD("archive", read_archive, offsetof(struct serve_settings, retention)),
        FIELD("reserve", read_reserve, offsetof(struct serve_settings, retention)),
    };
    struct path at_root = {0};

    read_object(r, root, &at_root, fields, COUNT_OF(fields), s);
    serve_retention_check(r, root, &s->retention);
}

bool serve_settings_parse(struct serve_settings *s, struct slice text, enum source_format format,
                          struct mistakes *m)
{
    struct reader r = {.arena = &s->arena, .mistakes = m};
    struct json *root = NULL;

    m->count = 0;
    enum err err =
        read_source(&r, arena_copy(&s->arena, text.ptr ? text : SLICE("")), format, &root);
    if (err == ERR_OK)
        read_all(&r, root, s);
    mistakes_sort(m);
    return err == ERR_OK && m->count == 0;
}

bool serve_settings_read(struct serve_settings *s, const char *file)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct mistakes *m = calloc(1, sizeof *m);

    ASSERT(m);
    bool there = client_read_file(file, &text);
    bool good =
        there
        && serve_settings_parse(s, buf_view(&text), (enum source_format)format_of_file(file), m);
    if (there && !good)
        mistakes_print(file, "error", m);
    free(m);
    return good;
}
