/* Parses the `reply_to` of a submission: a target alone, or an object with the wanted events
 * (reply_to.h). Checks it when a task is submitted, and reads it again from the task when messages
 * are due. telling.c makes the messages. */

#include "outbox/reply_to.h"

enum { TARGET_MAX = 2048 };

static const char *const texts[] = {
#define X(name, text, told) [EVENT_TYPE_##name] = (text),
    EVENTS(X)
#undef X
};

#define X(name, text, told) | ((told) ? 1U << EVENT_TYPE_##name : 0)
static const uint32_t events_default = 0 EVENTS(X);
#undef X

static const uint32_t events_all = (1U << EVENT_TYPE_COUNT) - 1;

const char *event_type_text(enum event_type t)
{
    return texts[t];
}

static bool event_of(const struct json *j, uint32_t *events)
{
    for (size_t i = 0; j->type == JSON_STRING && i < COUNT_OF(texts); i++)
        if (slice_is(j->text, texts[i])) {
            *events |= 1U << i;
            return true;
        }
    return false;
}

static enum err events_read(const struct json *j, uint32_t *ret, struct error *e)
{
    static const char *const all = "received, started, progress, waiting, processed, "
                                   "compensating, compensated, error, needs_operator, "
                                   "paused, resumed, closed";

    *ret = 0;
    if (j->type == JSON_STRING && slice_is(j->text, "all")) {
        *ret = events_all;
        return ERR_OK;
    }
    if (j->type != JSON_ARRAY || j->count == 0)
        return error_set(e, ERR_INVALID,
                         "reply_to.events is %s, expected \"all\", or an array of some of %s",
                         j->type == JSON_ARRAY ? "empty" : json_type_text(j->type), all);
    for (const struct json *m = j->child; m; m = m->next)
        if (!event_of(m, ret))
            return error_set(e, ERR_INVALID, "reply_to.events has %.*s, expected some of %s",
                             (int)(m->raw.len < 60 ? m->raw.len : 60), m->raw.ptr, all);
    return ERR_OK;
}

static enum err target_check(struct slice to, struct error *e)
{
    if (to.len == 0 || to.len > TARGET_MAX)
        return error_set(e, ERR_INVALID,
                         "reply_to is %s, expected an address of 1 to %d bytes, as "
                         "\"https://example.com/messages\"",
                         to.len ? "a longer string" : "empty", TARGET_MAX);
    for (size_t i = 0; i < to.len; i++)
        if ((unsigned char)to.ptr[i] <= ' ' || to.ptr[i] == 0x7f)
            return error_set(e, ERR_INVALID, "reply_to has a blank or control character in it");
    return ERR_OK;
}

enum err reply_check(const struct json *j, struct reply *ret, struct error *e)
{
    const struct json *to = j;
    const struct json *events = NULL;

    *ret = (struct reply){.events = events_default};
    if (j->type == JSON_OBJECT) {
        to = json_get(j, "to");
        events = json_get(j, "events");
        for (const struct json *m = j->child; m; m = m->next)
            if (!slice_is(m->key, "to") && !slice_is(m->key, "events"))
                return error_set(e, ERR_INVALID,
                                 "reply_to has a member \"%.*s\", expected \"to\" and \"events\"",
                                 (int)(m->key.len < 60 ? m->key.len : 60), m->key.ptr);
    }
    if (!to || to->type != JSON_STRING)
        return error_set(e, ERR_INVALID,
                         "reply_to%s is %s, expected an address, or {\"to\": address, "
                         "\"events\": [...]}",
                         to == j ? "" : ".to", to ? json_type_text(to->type) : "missing");
    if (target_check(to->text, e) != ERR_OK)
        return ERR_INVALID;
    ret->to = to->text;
    return events && events->type != JSON_NULL ? events_read(events, &ret->events, e) : ERR_OK;
}

struct slice reply_text(const struct json *j)
{
    return j->type == JSON_OBJECT ? j->raw : j->text;
}

void reply_read(struct slice reply_to, struct arena *a, struct reply *ret)
{
    struct json *j = NULL;
    struct error e;

    *ret = (struct reply){0};
    if (!reply_to.ptr || reply_to.len == 0)
        return;
    if (reply_to.ptr[0] != '{') {
        *ret = (struct reply){reply_to, events_default};
        return;
    }
    if (json_parse(a, reply_to, &j, NULL) != ERR_OK || reply_check(j, ret, &e) != ERR_OK)
        *ret = (struct reply){0};
}
