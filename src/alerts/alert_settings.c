/* Reads the section `alerts` of the server's configuration: sinks (webhooks, Alertmanager,
 * commands), which conditions go to them, and how long each has to hold (alert_settings.h). Names
 * of sinks must stay the same over restarts, because the stored state of alerts refers to them.
 * background/alert_sinks.c makes the deliveries. */

#include "alerts/alert_settings.h"

#include <stdio.h>
#include <strings.h>

#include "base/when.h"
#include "config/secret.h"

enum { RESEND_MS = 60000 };

void alerts_settings_init(struct alerts_settings *s)
{
    *s = (struct alerts_settings){.config = alerts_config_default(), .count = 1};
    (void)snprintf(s->sinks[0].name, sizeof s->sinks[0].name, "log");
}

/* ---- a sink ---- */

/* A sink while it is read. */
struct draft {
    struct sink_setting how;
    struct alert_sink sink;
    unsigned kinds; /* how many kinds were given */
};

static bool is_url(struct slice s)
{
    return (s.len > 7 && strncasecmp(s.ptr, "http://", 7) == 0)
           || (s.len > 8 && strncasecmp(s.ptr, "https://", 8) == 0);
}

static void read_url(struct reader *r, const struct json *j, const struct path *path,
                     struct draft *d, enum sink_kind kind)
{
    d->kinds++;
    d->how.kind = kind;
    if (j->type != JSON_STRING || !is_url(j->text))
        mistake_in(r, path, j, "a URL such as https://example.org/alerts");
    else
        d->how.url = arena_copy(r->arena, j->text).ptr;
}

static void read_webhook(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    read_url(r, j, path, target, SINK_WEBHOOK);
}

static void read_alertmanager(struct reader *r, const struct json *j, const struct path *path,
                              void *target)
{
    struct draft *d = target;

    read_url(r, j, path, d, SINK_ALERTMANAGER);
    d->sink.resend_ms = RESEND_MS;
}

static void read_command(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct draft *d = target;
    struct path at = {path, SLICE_NONE, 0};

    d->kinds++;
    d->how.kind = SINK_COMMAND;
    if (j->type != JSON_ARRAY || j->count == 0 || j->count > COMMAND_WORDS) {
        mistake_in(r, path, j, "an array of 1 to %d words: a program and its arguments",
                   COMMAND_WORDS);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at.index++) {
        if (m->type != JSON_STRING || (at.index == 0 && m->text.len == 0))
            mistake_in(r, &at, m, "a text");
        else
            d->how.words[d->how.word_count++] = arena_copy(r->arena, m->text).ptr;
    }
    if (d->how.word_count > 0 && d->how.words[0][0] != '/')
        mistake_in(r, path, j->child, "the absolute path of a program: there is no shell");
}

static void read_conditions(struct reader *r, const struct json *j, const struct path *path,
                            void *target)
{
    struct draft *d = target;
    struct path at = {path, SLICE_NONE, 0};
    enum alert_condition c = CONDITION_TEST;

    if (j->type != JSON_ARRAY || j->count == 0) {
        mistake_in(r, path, j, "an array of conditions such as [task_error, store_trouble]");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at.index++) {
        if (m->type == JSON_STRING && condition_parse(m->text, &c) && c != CONDITION_TEST)
            d->sink.conditions |= BIT(c);
        else
            mistake_in(r, &at, m, "a condition: docs/alerts.md lists them");
    }
}

/* The part of a URL that may be shown: many contain a secret. */
static struct slice shown(const struct draft *d)
{
    struct slice s = slice_of(d->how.kind == SINK_COMMAND ? d->how.words[0] : d->how.url);

    if (d->how.kind == SINK_COMMAND || !s.ptr)
        return s.ptr ? s : SLICE("");
    const char *host = strstr(s.ptr, "://") + 3;
    const char *end = host + strcspn(host, "/?#");
    for (const char *c = host; c < end; c++)
        if (*c == '@')
            host = c + 1;
    return (struct slice){host, (size_t)(end - host)};
}

/* Must be stable over restarts, whatever precedes it in the file. */
static void name_it(const struct alerts_settings *s, struct draft *d)
{
    static const char *const kinds[] = {"log", "webhook", "alertmanager", "command"};
    struct slice what = slice_cut(shown(d), 150);
    char *name = d->sink.name;

    (void)snprintf(name, sizeof d->sink.name, "%s %.*s", kinds[d->how.kind], SLICE_ARG(what));
    for (size_t i = 0, n = 2; i < s->count; i++)
        if (strcmp(s->sinks[i].name, name) == 0) {
            (void)snprintf(name, sizeof d->sink.name, "%s %.*s (%zu)", kinds[d->how.kind],
                           SLICE_ARG(what), n++);
            i = 0;
        }
}

static void read_sink(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("webhook", read_webhook, 0),
        FIELD("alertmanager", read_alertmanager, 0),
        FIELD("command", read_command, 0),
        FIELD("conditions", read_conditions, 0),
        FIELD("workflow", read_name, offsetof(struct draft, sink.workflow)),
        FIELD("timeout", read_length, offsetof(struct draft, how.timeout_ms)),
    };
    struct alerts_settings *s = target;
    struct draft d = {0};

    read_object(r, j, path, fields, COUNT_OF(fields), &d);
    if (j->type == JSON_OBJECT && d.kinds != 1) {
        mistake_in(r, path, j, "one of webhook, alertmanager and command");
        return;
    }
    if (s->count == ALERT_SINKS) {
        mistake_in(r, path, j, "at most %d sinks", ALERT_SINKS - 1);
        return;
    }
    name_it(s, &d);
    s->how[s->count] = d.how;
    s->sinks[s->count++] = d.sink;
}

/* ---- the section ---- */

static void read_for(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct alerts_settings *s = target;
    enum alert_condition c = CONDITION_TEST;

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "durations by condition, such as {breaker_open: 5m}");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        if (condition_parse(m->key, &c) && c != CONDITION_TEST)
            read_duration(r, m, &at, &s->config.for_ms[c]);
        else
            mistake_at(r, &at, m->key_at, "no condition", "a condition: docs/alerts.md lists them");
    }
}

#define CONFIG(member) \
    (offsetof(struct alerts_settings, config) + offsetof(struct alerts_config, member))

void read_alerts(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("group_wait", read_length, CONFIG(group_wait_ms)),
        FIELD("repeat", read_length, CONFIG(repeat_ms)),
        FIELD("resolve_after", read_length, CONFIG(resolve_after_ms)),
        FIELD("for", read_for, 0),
        LIST_FIELD("sinks", false, read_sink, 0,
                   "an array of sinks such as [{webhook: https://example.org/alerts}]"),
    };
    struct alerts_settings *s = *(struct alerts_settings **)target;

    read_object(r, j, path, fields, COUNT_OF(fields), s);
}
